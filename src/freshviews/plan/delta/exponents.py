"""Computes an exponent that bounds the time of an update.

With N stored rows, the innermost statement of a trigger runs at most N^exponent times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property, lru_cache, reduce
from itertools import combinations
from math import inf
from operator import or_

from freshviews.program.statements import Body, Loop, Smaller
from freshviews.program.structure import bodies
from freshviews.records import dataclass

Keys = tuple[frozenset[int], ...]
"""Sets of positions of a view's key: no two rows agree on all positions of a set."""

_ALL_LOOPS = 8
"""Maximum number of nested loops for which the smallest determining set is found exactly; beyond it, greedily."""

_Rules = tuple[tuple[int, int], ...]
"""Pairs of sets of variables: the first determines the second."""


def update_exponent(body: Body, unique: Mapping[str, Keys]) -> int:
    """The exponent of a trigger's body: the worst over all nests of loops. ``unique``: the keys of each view.

    Choose as few loops as possible such that their rows and the updated row together determine the variables of all
    loops. The number of chosen loops is the exponent; in nests of more than 8 loops the choice is greedy, and may not
    be the least. The columns of a declared key determine the whole row: the exponent of ``for b in R[a]: for c in
    S[b]`` is 1 if b is a key of S, otherwise 2.
    """
    return _worst(body, _Numbered(unique), _Nest())


@dataclass(frozen=True)
class _Row:
    """The row of a loop: its variables in order, the set of them, those that the loop binds, and those that variables
    at unique positions determine."""

    variables: tuple[int, ...]
    whole: int
    free: int
    rules: _Rules


@dataclass(frozen=True)
class _Numbered:
    """The keys of views, the bit of each variable, and the rows of loops that were met."""

    unique: Mapping[str, Keys]
    bits: dict[str, int] = field(default_factory=dict)
    rows: dict[tuple[str, tuple[str, ...], tuple[int, ...]], _Row] = field(default_factory=dict)

    def row(self, loop: Loop) -> _Row:
        """The row of a loop."""
        known = self.rows.get((loop.view, loop.key, loop.bound))
        if known is not None:
            return known
        row = tuple(self.bits.setdefault(v, 1 << len(self.bits)) for v in loop.key)
        whole = _union(row)
        free = _union(bit for i, bit in enumerate(row) if i not in loop.bound)
        rules = tuple((_union(row[i] for i in positions), whole) for positions in self.unique[loop.view])
        found = self.rows[loop.view, loop.key, loop.bound] = _Row(row, whole, free, rules)
        return found


@dataclass(frozen=True)
class _Nest:
    """Loops within each other, the outermost first: the variables of each row in order, those of all rows, those that a
    loop binds, and the dependencies that hold in the rows."""

    rows: tuple[tuple[int, ...], ...] = ()
    variables: int = 0
    free: int = 0
    rules: _Rules = ()

    def within(self, row: _Row) -> _Nest:
        """These loops with another one inside."""
        rules = self.rules + tuple(rule for rule in row.rules if rule not in self.rules)
        return _Nest((*self.rows, row.variables), self.variables | row.whole, self.free | row.free, rules)

    @cached_property
    def cover(self) -> int:
        """The number of loops whose rows, with the update, determine the rows of all loops: the minimum, or a greedy
        choice."""
        return _cover(self.rows, self.free, self.variables & ~self.free, self.rules)


def _worst(body: Body, numbered: _Numbered, around: _Nest, least: int = 0, most: float = inf) -> int:
    """The worst exponent of the nests of a body; ``least`` if it is less. The search ends at ``most``, and may return
    more."""
    worst = least
    for statement in body:
        if worst >= most:
            return worst
        match statement:
            case Loop(body=inner):
                nested = around.within(numbered.row(statement))
                worst = _worst(inner, numbered, nested, max(worst, nested.cover), most)
            case Smaller(left=left, right=right):
                # The smaller slice is at most as long as either slice.
                one = _worst((left,), numbered, around, worst, most)
                worst = one if one == worst else min(one, _worst((right,), numbered, around, worst, min(one, most)))
            case _:
                for inner in bodies(statement):
                    worst = _worst(inner, numbered, around, worst, most)
    return worst


@lru_cache(maxsize=4096)
def _cover(rows: tuple[tuple[int, ...], ...], free: int, given: int, rules: _Rules) -> int:
    """The number of rows that, with the given variables, determine the free ones."""
    if len(rows) > _ALL_LOOPS:
        return _greedy_cover(rows, free, given, rules)
    whole = [_union(row) for row in rows]
    for count in range(len(rows)):
        for chosen in combinations(whole, count):
            if not free & ~_closure(given | _union(chosen), rules):
                return count
    return len(rows)


def _greedy_cover(rows: tuple[tuple[int, ...], ...], free: int, given: int, rules: _Rules) -> int:
    """Innermost variables first: each is covered by the row that determines most variables with it."""
    having: dict[int, list[int]] = {}
    for row in rows:
        whole = _union(row)
        for bit in row:
            having.setdefault(bit, []).append(whole)
    known, count = _closure(given, rules), 0
    for row in reversed(rows):
        for bit in row:
            if bit & free and not bit & known:
                known = max((_closure(known | other, rules) for other in having[bit]), key=int.bit_count)
                count += 1
    return count


def _closure(variables: int, rules: _Rules) -> int:
    """The variables and all variables that they determine."""
    while True:
        known = variables
        for determinant, dependents in rules:
            if not determinant & ~variables:
                variables |= dependents
        if variables == known:
            return known


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
