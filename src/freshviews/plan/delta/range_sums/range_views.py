"""Declares the views that range sums read, and writes the statements that maintain these views.

The views of ``S(g, t, v)`` for the condition ``t <= low``. Sums are not used if a group has a t beyond 2^60::

    S_by_t(g, v, t) -> count  by [g, v]  ordered by t  summed by count        a range view
    S_groups(g, v) -> count  by [g]                                           its groups
    S_wide(g) -> count                                 how many rows have t beyond 2^60

    S_by_t[g, v, t] += m
        appears:   S_groups[g, v] += 1
        vanishes:  S_groups[g, v] += -1
    if t > 1152921504606846976:
        S_wide[g] += m
    S[g, t, v] += m
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import field, replace

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.delta.range_sums.linear import ring_of
from freshviews.program.payload import COUNT, COUNTED, ZERO, Component, Monomial, Value
from freshviews.program.rewrite import Renaming
from freshviews.program.statements import Add, Body, If, Let, Statement
from freshviews.program.views import Order, View
from freshviews.records import dataclass
from freshviews.types import BIGINT

Places = tuple[int, ...]
"""Positions of the key of a view."""
Fresh = Callable[[str], str]
"""Makes a new name from a wanted one."""


@dataclass(frozen=True)
class Grouping:
    """The columns of a view that are the key of a range view: those that a loop over the view is ``given``, those that
    its body ``kept``, then those in the ``order``, whose first column a range bounds."""

    given: Places
    kept: Places = ()
    order: Places = ()

    @property
    def places(self) -> Places:
        return (*self.given, *self.kept, *self.order)

    @property
    def by_given(self) -> Places:
        """The positions of the given columns in the key of the range view."""
        return tuple(range(len(self.given)))


@dataclass
class RangeView:
    """A range view of a view, or, without an order, its sums by group.

    ``order``: the order of the bounded column. ``summed``: ranges are summed. ``looped``: loops visit its groups, which
    the view ``groups`` has if it differs from the range view. ``components``: names, by the component of the view that
    each sums, and the factor that multiplies it.
    """

    name: str
    grouping: Grouping
    order: Order | None
    summed: bool = False
    looped: bool = False
    groups: str = ""
    components: dict[tuple[str, Expr | None], str] = field(default_factory=dict)


@dataclass
class RangeViews:
    """The range views of a view, and the names of its wide views by given columns and condition, a wide row's."""

    view: View
    ranges: dict[Grouping, RangeView] = field(default_factory=dict)
    wide: dict[tuple[Places, Expr], str] = field(default_factory=dict)

    def component(self, of: RangeView, name: str, factor: Expr | None) -> Component:
        """The component of a range view that sums a component of the view, times a factor over columns of its key."""
        if (name, factor) not in of.components:
            of.components[name, factor] = _component_name(name, factor, of.components.values())
        return Component(of.components[name, factor], self._ring(name, factor))

    def _ring(self, name: str, factor: Expr | None) -> str:
        """The ring of a component times a factor, of which at most one is real."""
        own = self.view.component(name).ring
        return own if factor is None or own == "real" else ring_of(factor)

    def declared(self) -> Iterator[View]:
        """The declarations of all these views."""
        for one in self.ranges.values():
            yield from self._declared(one)
        for (given, condition), wide in self.wide.items():
            yield View(wide, self._key(given), COUNTED, definition=f"{self.view.name} where {condition}")

    def _declared(self, one: RangeView) -> Iterator[View]:
        grouping, name = one.grouping, self.view.name
        key = self._key(grouping.places)
        rings = [self._ring(*summed) for summed in one.components]
        components = tuple(map(Component, one.components.values(), rings))
        by_given = (grouping.by_given,) if one.looped and grouping.given else ()
        if one.order is None:
            yield View(one.name, key, components, by_given, definition=f"sums of {name}")
            return
        first = self.view.key[grouping.order[0]]
        if one.looped:
            grouped = self._key((*grouping.given, *grouping.kept))
            yield View(one.groups, grouped, COUNTED, by_given, definition=f"the groups of {one.name}")
        orders = (one.order, *(Order(BIGINT) for _ in grouping.order[1:]))
        sums = tuple(c.name for c in components) if one.summed else ()
        prefix = tuple(range(len(key) - len(orders)))
        what = f"{name}, in the order of {first}"
        yield View(one.name, key, components, (prefix,) if prefix else (), orders, sums=sums, definition=what)

    def _key(self, places: Places) -> tuple[str, ...]:
        return tuple(self.view.key[i] for i in places)

    def additions(self, add: Add, fresh: Fresh) -> Body:
        """The additions to these views that an addition to the view causes."""
        payload = dict(zip(add.components, add.payload, strict=True))
        to = Renaming(dict(zip(self.view.key, add.key, strict=True)))
        found: list[Statement] = []
        factors: dict[Expr, str] = {}

        def times(monomial: Monomial, factor: Expr | None) -> Monomial:
            if factor is None or monomial == ZERO:
                return monomial
            here = to.expression(factor)
            if here not in factors:
                factors[here] = fresh("term")
                found.append(Let(factors[here], here))
            return replace(monomial, factors=(*monomial.factors, Value(factors[here], ring_of(here))))

        for one in self.ranges.values():
            grown = tuple(times(payload.get(name, ZERO), factor) for name, factor in one.components)
            key = tuple(add.key[i] for i in one.grouping.places)
            appear, vanish = self._group_additions(one, key)
            found.append(Add(one.name, key, tuple(one.components.values()), grown, appear, vanish))
        for (given, condition), wide in self.wide.items():
            count = Add(wide, tuple(add.key[i] for i in given), (COUNT,), (payload.get(COUNT, ZERO),))
            found.append(If(to.expression(condition), (count,)))
        return tuple(found)

    def _group_additions(self, one: RangeView, key: tuple[str, ...]) -> tuple[Body, Body]:
        """The additions to the groups of a range view when a row of it appears or vanishes. Multiplicities of both
        signs may cancel out, so rows are counted."""
        if not one.groups:
            return (), ()
        group = key[: len(key) - len(one.grouping.order)]
        appear, vanish = (Add(one.groups, group, (COUNT,), (Monomial((), sign),)) for sign in (1, -1))
        return (appear,), (vanish,)


def _component_name(name: str, factor: Expr | None, taken: Collection[str]) -> str:
    """The name of a component of a range view: that of the view's, or ``sum_x``."""
    if factor is not None:
        name = "_".join(["sum", *columns_of(factor)])
    return unused(name, taken)


def unused(wish: str, taken: Collection[str]) -> str:
    """An unused name: the wanted one, or that name with the first free number from 2 on."""
    name, n = wish, 1
    while name in taken:
        n += 1
        name = f"{wish}_{n}"
    return name
