"""The change oracle: where in the space of bindings a rule is to be looked at again (sections 4 and 4.2.2).

A disjunction of contributions, which is never spelled out. One says: under this binding of the first variables, the
leapfrog join of the next one depends on a change, from a place on up to a code. They hang in a trie of their own,
``Region``, whose branches are the bindings, so that the maintenance rule walks the oracle and the relations together.

Where no index is kept, as the variables of an atom are a prefix of the order, the change itself says which binding it
concerns: that and no other. Such a contribution may be about a binding to which the rule does not come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from freshviews.program.reference.incremental.leapfrog import Place
from freshviews.program.reference.incremental.versions import Row


@dataclass(frozen=True)
class Contribution:
    """The leapfrog join is to be looked at again from a place on up to a code, that included."""

    place: Place
    high: int


@dataclass
class Region:
    """What the oracle says below a binding. ``carried``: codes at which rows carry something else than before."""

    contributions: list[Contribution] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    below: dict[int, Region] = field(default_factory=dict)

    def under(self, binding: Row) -> Region:
        """The region under a binding, made where there is none."""
        region = self
        for code in binding:
            region = region.below.setdefault(code, Region())
        return region

    def in_order(self) -> list[Contribution]:
        """The contributions by place, then by their ends, then by whose turn it is."""
        return sorted(self.contributions, key=lambda c: (c.place.order, c.high, c.place.first))

    def codes(self) -> list[int]:
        """The codes at which there is more to be said, in order."""
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
