"""Heads: aggregates of a rule's derivations, maintained as derivations appear and vanish (section 2).

Each takes a ``Delta``, erases before it inserts, and stores sums in the project's rings:

- ``Grouped``: a projection, with support counts; counts, and sums over an Abelian group. Doubles are summed in
  ``ring.real``: exact, in one fixed-point number of 2176 bits. The paper stores only the segments of such a number that
  differ from a fixed one, so that no borrow runs through it. Here a borrow costs one pass over at most 34 words, and no
  segment is searched or moved. All strategies share this representation, so their sums are equal bit by bit.
- ``Function``: one value per key; a second value at the same time is an error.
- ``Scanned``: a semigroup, such as min and max: derivations are stored in order, and every aggregate scans those
  that begin with a key (section 2.3.3). Aggregates at several levels of detail share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from freshviews.program.reference.incremental_trie_join.maintenance import Delta, Derivation
from freshviews.program.reference.incremental_trie_join.versions import Row, Version
from freshviews.ring import INTEGER, Ring


@dataclass
class Grouped:
    """Sums of what derivations carry, by the variables of ``key``; a group exists while its sum is not zero.

    With the ring of integers a sum is the support count. In a product ring, one component must be the count.
    """

    order: tuple[str, ...]
    key: tuple[str, ...]
    ring: Ring[Any] = INTEGER
    groups: dict[Row, Any] = field(default_factory=dict)

    def apply(self, delta: Delta) -> dict[Row, tuple[Any, Any]]:
        """Apply a delta; returns the groups whose sum changed, with the sums before and after."""
        before: dict[Row, Any] = {}
        for binding, carried in _signed(delta, self.ring):
            key = projected(self.order, self.key, binding)
            held = self.groups.get(key, self.ring.zero)
            before.setdefault(key, held)
            self.groups[key] = self.ring.add(held, carried)
        changed = {}
        for key, old in before.items():
            new = self.groups[key]
            if self.ring.is_zero(new):
                del self.groups[key]
            if old != new:
                changed[key] = (old, new)
        return changed


class Conflict(ValueError):
    """A key of a function has two values."""


@dataclass
class Function:
    """The value, a variable, per key, with its support."""

    order: tuple[str, ...]
    key: tuple[str, ...]
    value: str
    values: dict[Row, tuple[int, Any]] = field(default_factory=dict)
    ring: Ring[Any] = INTEGER

    def apply(self, delta: Delta) -> None:
        """Apply a delta; raises Conflict if, after its deletes, a key would have two values."""
        for binding, carried in _signed(delta, self.ring):
            key = projected(self.order, self.key, binding)
            (value,) = projected(self.order, (self.value,), binding)
            held, support = self.values.get(key, (value, self.ring.zero))
            if held != value:
                raise Conflict(f"{self.value} of {key} is {held}, and would be {value} as well")
            support = self.ring.add(support, carried)
            if self.ring.is_zero(support):
                self.values.pop(key, None)
            else:
                self.values[key] = (value, support)


@dataclass(frozen=True)
class Scan:
    """An aggregate: per value of the first ``depth`` variables, ``combine`` of all codes of the last variable."""

    depth: int
    combine: Callable[[int, int], int]


@dataclass
class Scanned:
    """Derivations in order of ``key``, whose last variable is aggregated, and scans of them."""

    order: tuple[str, ...]
    key: tuple[str, ...]
    scans: tuple[Scan, ...]
    ring: Ring[Any] = INTEGER
    rows: Version = field(default_factory=Version)
    results: list[dict[Row, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.results = [{} for _ in self.scans]

    def apply(self, delta: Delta) -> None:
        """Apply a delta, and repeat the scans whose rows changed."""
        edits: dict[Row, Any] = {}
        for binding, carried in _signed(delta, self.ring):
            row = projected(self.order, self.key, binding)
            if row not in edits:
                edits[row] = self.rows.carried(row) or self.ring.zero
            edits[row] = self.ring.add(edits[row], carried)
        self.rows = self.rows.edited(
            (row, None if self.ring.is_zero(carried) else carried) for row, carried in edits.items()
        )
        for scan, result in zip(self.scans, self.results, strict=True):
            for group in {row[: scan.depth] for row in edits}:
                codes = [row[-1] for row in self.rows.below(group)]
                if codes:
                    result[group] = combined(scan.combine, codes)
                else:
                    result.pop(group, None)


def combined(combine: Callable[[int, int], int], codes: list[int]) -> int:
    """An associative operation over codes in order."""
    result = codes[0]
    for code in codes[1:]:
        result = combine(result, code)
    return result


def projected(order: tuple[str, ...], key: tuple[str, ...], binding: Row) -> Row:
    """The codes of some of the variables of a binding."""
    return tuple(binding[order.index(v)] for v in key)


def _signed(delta: Delta, ring: Ring[Any]) -> Iterable[Derivation]:
    """The deletes, negated, before the inserts."""
    yield from ((binding, ring.negate(carried)) for binding, carried in delta.erased)
    yield from delta.inserted
