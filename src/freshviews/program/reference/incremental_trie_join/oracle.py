"""Computes the change oracle: the bindings for which a rule must be evaluated again (sections 4 and 4.2.2).

A binding gives values to the first variables of the rule. A *contribution* has a binding, a position and a code. It
says that the join of the next variable must run again from the position up to the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from freshviews.program.reference.incremental_trie_join.leapfrog import Position
from freshviews.program.reference.incremental_trie_join.versions import Row
from freshviews.records import dataclass


@dataclass(frozen=True)
class Contribution:
    """The leapfrog join must run again from a position up to the code ``high``, included."""

    place: Position
    high: int


@dataclass
class Region:
    """The part of the oracle below a binding. ``carried``: codes of rows whose element changed.

    The oracle is a disjunction of contributions, stored in a trie whose branches are the bindings.

    If the variables of an atom are a prefix of the key order, the atom has no sensitivity index: a changed row
    determines the binding of its contribution.
    """

    contributions: list[Contribution] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    below: dict[int, Region] = field(default_factory=dict)

    def under(self, binding: Row) -> Region:
        """The region under a binding; it is created if there is none."""
        region = self
        for code in binding:
            region = region.below.setdefault(code, Region())
        return region

    def in_order(self) -> list[Contribution]:
        """The contributions, sorted by position, end and turn."""
        return sorted(self.contributions, key=lambda c: (c.place.order, c.high, c.place.first))

    def codes(self) -> list[int]:
        """The codes with a deeper region or a changed row, in order."""
        return sorted(self.carried | self.below.keys())

    def intervals(self, binding: Row = ()) -> Iterator[tuple[Row, int, int]]:
        """The disjunction, for reading: bindings, and the intervals of the next variable."""
        for contribution in self.in_order():
            yield binding, contribution.place.candidate, contribution.high
        for code in self.codes():
            if code in self.carried:
                yield binding, code, code
            if code in self.below:
                yield from self.below[code].intervals((*binding, code))
