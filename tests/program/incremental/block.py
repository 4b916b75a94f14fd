"""A join block maintained by its trace: atoms become tries that carry payloads, the result becomes a head.

It has the interface of ``program.reference.interpreter.State``: it takes batches of one relation and returns the
result and its change, so it is tested with the programs of all strategies. Rows of an atom that agree on the atom's
variables are one row of its trie, which carries the sum of their payloads: the count, and each aggregate with its lifts
inside the atom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from freshviews.program import rule
from freshviews.program.reference.incremental_trie_join.maintenance import Derivation, MaintainedRule
from freshviews.program.reference.incremental_trie_join.versions import Row
from freshviews.program.reference.scalars import evaluate
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.ring import ProductRing, Ring, named, ring_over
from freshviews.types.dictionary import Dictionary
from tests.program.incremental.heads import projected

NOTHING = "@nothing"
"""The variable of an atom that has none; it is 0. No column can have its name."""


@dataclass
class BlockState:
    """The result of a query, empty at first. ``order`` is the order of its variables, by default that of the query."""

    query: Query
    order: tuple[str, ...] = ()
    dictionary: Dictionary | None = None
    result: dict[Row, tuple[Any, ...]] = field(default_factory=dict)
    journal: dict[Row, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        query = self.query
        self.ring = ProductRing(tuple(a.name for a in query.aggregates), tuple(map(_ring_of, query.aggregates)))
        atoms = tuple(rule.Atom(atom.name, atom.variables or (NOTHING,)) for atom in query.atoms)
        atoms += tuple(rule.Atom(atom.name, atom.variables, negated=True) for atom in query.negated)
        order = self.order or query.variables
        if any(not atom.variables for atom in query.atoms):
            order = (NOTHING, *order)
        self.maintained = MaintainedRule(rule.Rule(order, atoms, query.conditions), self.ring, self.dictionary)

    def apply(self, relation: str, updates: Iterable[tuple[Mapping[str, int], int]]) -> None:
        """Apply a batch of updates of one relation: rows (column to code) and their multiplicities."""
        batch = list(updates)
        edits: dict[str, dict[Row, Any]] = {}
        for atom in (*self.query.atoms, *self.query.negated):
            if atom.relation == relation:
                rows = edits.setdefault(atom.name, {})
                for columns, m in batch:
                    if all(evaluate(f, columns, self.dictionary) == 1 for f in atom.filters):
                        row = tuple(evaluate(c, columns, self.dictionary) for c in atom.columns) or (0,)
                        rows[row] = self.ring.add(rows.get(row, self.ring.zero), self._payload(atom, columns, m))
        delta = self.maintained.apply(edits)
        for derivation in delta.erased:
            self._add(derivation, -1)
        for derivation in delta.inserted:
            self._add(derivation, 1)

    def output(self) -> dict[Row, tuple[Any, ...]]:
        """The result: payloads by values of the free variables."""
        return dict(self.result)

    def change(self) -> dict[Row, tuple[Any, ...]]:
        """The change of payloads since the last call."""
        journal, self.journal = self.journal, {}
        pairs = ((key, self.result.get(key, self.ring.zero), before) for key, before in journal.items())
        return {key: self.ring.add(after, self.ring.negate(before)) for key, after, before in pairs if after != before}

    def _payload(self, atom: Atom, columns: Mapping[str, int], m: int) -> tuple[Any, ...]:
        """The payload that a row of an atom carries, ``m`` times."""
        return tuple(self._lifted(a, atom.name, columns, m) for a in self.query.aggregates)

    def _lifted(self, aggregate: Aggregate, atom: str | None, codes: Mapping[str, int], times: int) -> Any:
        """The product of the lifts of an aggregate in an atom, or of those across atoms, the given number of times."""
        ring = _ring_of(aggregate)
        product = ring.one
        for lift in aggregate.lifts:
            if lift.atom == atom:
                product = ring.multiply(product, self._lift(aggregate, lift, codes))
        return ring.scale(product, times)

    def _lift(self, aggregate: Aggregate, lift: Lift, codes: Mapping[str, int]) -> Any:
        code = evaluate(lift.expr, codes, self.dictionary)
        if lift.place is not None:
            return named(ring_over(aggregate.ring, [lift.place])).lift(code)
        ring = _ring_of(aggregate)
        return ring.scale(ring.one, code) if aggregate.ring != "real" else ring.lift(code)

    def _add(self, derivation: Derivation, sign: int) -> None:
        binding, carried = derivation
        order = self.maintained.rule.order
        codes = dict(zip(order, binding, strict=True))
        for condition in self.query.conditions:
            evaluate(condition, codes, self.dictionary)  # raises an error that the trace could not report
        across = tuple(self._lifted(a, None, codes, sign) for a in self.query.aggregates)
        key = projected(order, self.query.free, binding)
        before = self.result.get(key, self.ring.zero)
        self.journal.setdefault(key, before)
        after = self.ring.add(before, self.ring.multiply(carried, across))
        if self.ring.is_zero(after):
            self.result.pop(key, None)
        else:
            self.result[key] = after


def _ring_of(aggregate: Aggregate) -> Ring[Any]:
    """The ring of an aggregate over all of its variables."""
    places = [lift.place for lift in aggregate.lifts if lift.place is not None]
    return named(ring_over(aggregate.ring, places))
