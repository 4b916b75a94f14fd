"""Writes updates of optional atoms (outer joins) and negated atoms (NOT EXISTS), for all strategies that join views.

In ``R(x, k) S?(k, y)``, S is optional. The view ``E_S`` counts the rows of S by k. For a result grouped by x::

    on S(k, y) += m:                  and for SUM(y), if only the variable k is read:
        for x, r in R[k]:                 on S(k) += m:
            Q[x, y] += m * r                  d = sum:
        S[k, y] += m                              d += (count: m, sum: m * y)
            appears:                              S[k] += (count: m, sum: m * y)
                E_S[k] += 1                           appears:  d += (count: -1, sum: 0)
                    appears:                          vanishes: d += (count: 1, sum: 0)
                        for x, r in R[k]:         if d:
                            Q[x, NULL] -= r           for x, r in R[k]:
            vanishes: the other way round                 Q[x] += r * d
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Literal
from freshviews.plan.leaves import Carrier, add_count, add_to, product, sum_carrier
from freshviews.plan.naming import Namer
from freshviews.program.payload import COUNT, COUNTED, ZERO, Monomial
from freshviews.program.rewrite import rename
from freshviews.program.statements import Body, Into, Let, Sum
from freshviews.program.views import View
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass
from freshviews.types import BIGINT

Delta = Callable[[tuple[Carrier, ...]], Body]
"""Writes the statements that follow from the change of a view, given as the product of carriers."""


@dataclass(frozen=True)
class OptionalView:
    """A view with its given variables, and its indicator: the values of these, each with the number of rows that have
    it. The view is its own indicator if its whole key is given."""

    view: View
    given: tuple[str, ...]
    indicator: View | None

    @property
    def opened(self) -> tuple[str, ...]:
        """The variables that are NULL in the default row."""
        return tuple(v for v in self.view.key if v not in self.given)


def given_of(atoms: Sequence[Atom]) -> tuple[str, ...] | None:
    """The given variables of the view of atoms that depend on the first one; None if an atom is ordinary."""
    if any(atom.given is None for atom in atoms):
        return None
    opened = {v for atom in atoms for v in atom.opened}
    return tuple(dict.fromkeys(v for atom in atoms for v in atom.given or () if v not in opened))


def with_given(query: Query, variables: Iterable[str]) -> frozenset[str]:
    """The variables, and the given variables of optional atoms that open one of them."""
    found = frozenset(variables)
    while True:
        more = [a.given for a in query.atoms if a.given is not None and not found.isdisjoint(a.opened)]
        grown = found.union(*more)
        if grown == found:
            return found
        found = grown


def optional_view(view: View, given: tuple[str, ...], names: Namer) -> OptionalView:
    """The optional view, with a name for its indicator.

    An *optional view* has the rows of an optional atom, or the join of several. A lookup by values of the given
    variables finds the default row if no row has these values. So the default row vanishes when the first row with
    these values appears, and returns when the last one vanishes.

    An update of a row that is neither the first nor the last costs as much as in an inner join. For a *negated atom*,
    the join continues only if the view of the atom has no matching row.

    Source: F-IVM (indicator projections; Nikolic and Olteanu, SIGMOD 2018) and DBToaster (domains; Koch et al., VLDB
    Journal 23(2), 2014). Both count the rows that have given values. The default row is our own.
    """
    own = tuple(v for v in view.key if v in given)
    if own == view.key:
        return OptionalView(view, own, None)
    name = names.of(("indicator", view.name), f"E_{view.name}")
    what = f"the values of {', '.join(own) or '()'} in {view.name}, with the number of rows of each"
    return OptionalView(view, own, View(name, own, COUNTED, definition=what))


def update_optional(one: OptionalView, carriers: tuple[Carrier, ...], delta: Delta, names: Namer) -> Body:
    """Add a change, the product of carriers, to an optional view, with its consequences: the change of its rows, and a
    default row that vanishes or comes back."""
    return _add_summed(one, carriers, delta, names) if one.indicator is None else _by_row(one, carriers, delta, names)


def _add_summed(one: OptionalView, carriers: tuple[Carrier, ...], delta: Delta, names: Namer) -> Body:
    """Add the change as one sum: the default row has the key of the row that changes."""
    components = one.view.components
    total = names.of(("change", one.view.name), f"d_{one.view.name.lower()}")

    def default(sign: int) -> Body:
        return (Into(total, tuple(Monomial((), sign) if c.name == COUNT else ZERO for c in components)),)

    add = replace(add_to(one.view, carriers), appear=default(-1), vanish=default(1))
    carrier = sum_carrier(total, components)
    return (Sum(total, components, (Into(total, product(components, carriers)), add), delta((carrier,))),)


def _by_row(one: OptionalView, carriers: tuple[Carrier, ...], delta: Delta, names: Namer) -> Body:
    assert one.indicator is not None
    nulls = {v: names.of(("null", one.view.name, v), f"no_{v}") for v in one.opened}
    zeros = frozenset(c.name for c in one.view.components if c.name != COUNT)

    def default(sign: int) -> Body:
        body = rename(delta((Carrier(None, sign=sign, zeros=zeros),)), nulls, {})
        return (*(Let(name, Literal(None, BIGINT)) for name in nulls.values()), *body)

    counted = replace(add_count(one.indicator, 1, one.given), appear=default(-1))
    uncounted = replace(add_count(one.indicator, -1, one.given), vanish=default(1))
    return (*delta(carriers), replace(add_to(one.view, carriers), appear=(counted,), vanish=(uncounted,)))


def update_negated(view: View, carriers: tuple[Carrier, ...], delta: Delta) -> Body:
    """Add a change to the view of a negated atom, with the consequences of a row that appears or vanishes."""
    return (
        replace(
            add_to(view, carriers),
            appear=delta((Carrier(None, sign=-1),)),
            vanish=delta((Carrier(None, sign=1),)),
        ),
    )
