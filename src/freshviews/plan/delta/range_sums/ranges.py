"""Replaces a loop that tests every row by the sum of the rows within bounds, or by a loop over only these rows::

    for t, v, s in S[g]:                      u = sum:
        if t <= x:                                u += S_by_t[g, t <= x]
            Q[g] += m * s.sum_v               if u:
                                                  Q[g] += m * u.sum_v

The *range view* ``S_by_t(g, t)`` has the sums of S by g and t, in the order of t. The sum of a range takes O(log N).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import is_

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.plan.delta.range_sums.bounds import Ranges, Side, beyond
from freshviews.plan.delta.range_sums.grid import joined
from freshviews.plan.delta.range_sums.linear import Linear, kept_by
from freshviews.plan.delta.range_sums.products import Products
from freshviews.plan.delta.range_sums.range_views import Grouping, RangeView, RangeViews, unused
from freshviews.plan.delta.range_sums.slices import Slice, Split, in_one_range, slice_of, split
from freshviews.plan.delta.range_sums.unneeded import with_own_ranges, without_unread
from freshviews.plan.delta.range_sums.visits import bounds_of, visited
from freshviews.plan.leaves import under
from freshviews.plan.naming import names_in
from freshviews.program.payload import COUNT, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.rewrite import Renaming, transform, with_payload, with_statements
from freshviews.program.statements import (
    Add,
    Body,
    Bound,
    If,
    Let,
    Lookup,
    Loop,
    Range,
    RangeLoop,
    RangeSum,
    Smaller,
    Statement,
    Sum,
)
from freshviews.program.structure import uses, visit, with_bodies
from freshviews.program.upkeep import ByTriggers
from freshviews.program.views import Order
from freshviews.query.dependencies import FD, closure
from freshviews.types import BOOLEAN, SqlType


def with_ranges(program: Program, groups: Iterable[str] = (), dependencies: Iterable[FD] = ()) -> Program:
    """The program with range sums, and loops over groups or ranges, in the place of loops over whole slices.

    ``groups``: the variables of GROUP BY, which have fewer values than there are rows; ``dependencies`` between
    variables, from declared keys. They only decide between loops over groups and over rows, never the result.

    The *range view* ``S_by_t(g, t)`` has the sums of S by the group and the bounded variable. Its ordered index stores
    sums of subtrees (``kernel.ordered``), so the sum of a range takes O(log N). A loop is replaced in the first way
    that fits:

    1. by one sum, as above, if the body reads no variable of the row, and each addition is a multiple of the row's
       payload;
    2. by a sum for each group, if the body reads some variables of the row, here b. The range must have one end only::

           for t, b, s in S[g]:                      for b, _ in S_groups[g]:
               if t <= x:                                u = sum:
                   Q[b] += m * s                             u += S_by_b_t[g, b, t <= x]
                                                         if u:
                                                             Q[b] += m * u

    3. by a loop over the rows of the range. The range view then has all columns of S.

    A lift over variables of the row and other variables is split into products (``products``); the range view sums the
    factors over variables of the row.

    A sum is used only for values whose integer arithmetic cannot overflow (``bounds``) and whose double arithmetic is
    exact (``grid``). The *wide view* ``S_wide(g)`` counts rows with other values. If the group has such a row, or the
    update has such a value, the original loop runs.
    """
    if program.balancing is not None or not isinstance(program.upkeep, ByTriggers):
        return program
    if not any(isinstance(s, If | Let) for trigger in program.triggers for s in visit(trigger.body)):
        # Without conditions and computed values no loop can become a range or a product of sums.
        return program
    made = _Pass(program, frozenset(groups), tuple(dependencies))
    triggers = tuple(replace(t, body=made.body(t.body)) for t in program.triggers)
    if not made.stores:
        notes = visited(program.triggers, frozenset())
        return replace(program, bounds=(*program.bounds, *notes)) if notes else program
    declared = {name: tuple(store.declared()) for name, store in made.stores.items()}
    views = tuple(view for one in program.views for view in (*declared.get(one.name, ()), one))
    found = with_statements(replace(program, views=views, triggers=triggers), made.with_additions)
    found = without_unread(found, frozenset(made.stores))
    found = with_own_ranges(found, made.stores.values())
    wide = frozenset(name for store in made.stores.values() for name in store.wide.values())
    return replace(found, bounds=bounds_of(found, program.bounds, wide, made.looped, made.limited))


class _Pass:
    """Rewrites the statements of one program.

    ``stores``: the range views of each view; ``limited``: the types of the terms that have limits.
    """

    def __init__(self, program: Program, groups: frozenset[str], dependencies: tuple[FD, ...]) -> None:
        self.program = program
        self.groups = groups
        self.dependencies = dependencies
        self.stores: dict[str, RangeViews] = {}
        self.limited: set[SqlType] = set()
        self.has_lets = any(isinstance(s, Let) for trigger in program.triggers for s in visit(trigger.body))
        # Statements outside of triggers, as those run by the first subscriber, add to no range view.
        beside = (s for body in program.result.bodies for s in visit(body))
        self.fixed = frozenset(view for s in beside for view in uses(s).changes)
        self.taken = {*names_in(program), *program.free}
        self.taken.update(v for view in program.views for v in view.key)

    def fresh(self, wish: str) -> str:
        name = unused(wish, self.taken)
        self.taken.add(name)
        return name

    def body(self, body: Body) -> Body:
        """The body with its loops replaced, from the inside out. The loops of a Smaller stay: the shorter one is
        chosen, and each looks the other up."""
        result: list[Statement] = []
        for one in body:
            if isinstance(one, Smaller):
                left, right = (replace(side, body=self.body(side.body)) for side in (one.left, one.right))
                result.append(Smaller(left, right))
            else:
                result.extend(self._statement(with_bodies(one, self.body)))
        return body if len(result) == len(body) and all(map(is_, result, body)) else tuple(result)

    def _statement(self, statement: Statement) -> Body:
        if not isinstance(statement, Loop) or not self._takes(statement):
            return (statement,)
        rows = slice_of(self.program, statement)
        if rows.ends:
            return self._by_rows(rows) or (statement,)
        return self._by_sums(rows) or self._by_rows(rows) or (statement,)

    def _takes(self, loop: Loop) -> bool:
        """True if the view of a loop can have range views: it only grows by plain additions of numbers."""
        view = self.program.view(loop.view)
        plain = not (view.journal or view.subsets or view.tally or view.ordered or view.name in self.fixed)
        plain = plain and all(c.ring in ("integer", "real") for c in view.components)
        return plain and not loop.optional and not loop.among and any(c.name == COUNT for c in view.components)

    # A sum, or one for each group

    def _by_sums(self, rows: Slice) -> Body | None:
        """The sum of the rows, or of each group of them, and the statements of the body for a row."""
        if not rows.terms and not (self.has_lets and any(isinstance(s, Let) for s in visit(rows.body))):
            # No condition is a range and no lift is split.
            return None
        kept = kept_by(rows.body, rows.opened)
        parted = split(rows.terms, rows.opened - kept)
        if parted is None or (kept and not self._pays(rows, kept, parted)):
            return None
        conditions, ranges = parted
        loop, total = rows.loop, self.fresh(f"{rows.loop.alias}_sum")
        within = frozenset(v for s in visit(rows.body) for v in (*uses(s).binds, *uses(s).defines))
        linear = Linear(loop.alias, total, rows.opened - kept, within)
        body = linear.body(rows.body)
        if body is None or not linear.used or not (ranges or linear.products):
            return None
        limited: list[Ranges | Products] = [*([] if ranges is None else [ranges]), *linear.products.values()]
        if any(_is_mixed(term, rows.opened) for one in limited for term in one.checked):
            return None
        view = self._range_view(rows, Grouping(loop.bound, rows.places(kept), rows.bounded(ranges)), ranges)
        components = tuple(self._component(rows, view, *factor) for factor in linear.used)
        names = dict(zip(linear.used, (c.name for c in components), strict=True))
        body = linear.named(body, names, self.fresh, self.program.view)
        if ranges is not None:
            view.summed = True
            lets, parts = self._parts(ranges, rows.names((*loop.bound, *view.grouping.kept)), view)
            body = (*lets, Sum(total, components, tuple(RangeSum(total, part, n) for part, n in parts), body))
        body = under((one for one in conditions if not kept.isdisjoint(columns_of(one))), body)
        if kept:
            body = (self._group_loop(rows, view, total, body),)
        elif ranges is None:
            body = (Lookup(view.name, rows.names(loop.bound), total, body),)
        body = under((one for one in conditions if kept.isdisjoint(columns_of(one))), body)
        return self._within_limits(rows, limited, body)

    def _pays(self, rows: Slice, kept: frozenset[str], parted: Split) -> bool:
        """True if there may be fewer groups by ``kept`` than rows that a loop visits."""
        conditions, ranges = parted
        known = closure((*rows.names(rows.loop.bound), *kept), self.dependencies)
        if kept == rows.opened or known.issuperset(rows.opened):
            return False
        if ranges is not None:
            return kept <= self.groups and not _is_band(ranges)
        return all(kept.isdisjoint(columns_of(one)) for one in conditions)

    def _group_loop(self, rows: Slice, view: RangeView, total: str, body: Body) -> Loop:
        """The loop over the groups of a range view: over its rows, if they are sums, or over the view that has its
        groups."""
        view.looped = True
        name, alias = view.name, total
        if view.order is not None:
            view.groups = view.groups or self.fresh(f"{rows.loop.view}_groups")
            name, alias = view.groups, self.fresh(f"{rows.loop.alias}_group")
        grouping = view.grouping
        return Loop(name, rows.names((*grouping.given, *grouping.kept)), grouping.by_given, alias, body)

    def _range_view(self, rows: Slice, grouping: Grouping, ranges: Ranges | None) -> RangeView:
        loop = rows.loop
        store = self.stores.setdefault(loop.view, RangeViews(self.program.view(loop.view)))
        if grouping not in store.ranges:
            by = rows.names((*grouping.kept, *grouping.order[:1]))
            name = self.fresh("_".join([loop.view, "by", *by]) if by else f"{loop.view}_sums")
            store.ranges[grouping] = RangeView(name, grouping, None if ranges is None else Order(ranges.variable.type))
        return store.ranges[grouping]

    def _component(self, rows: Slice, view: RangeView, name: str, factor: Expr | None) -> Component:
        """The component of a range view that sums one of the view, times a factor over variables of the row."""
        return self.stores[rows.loop.view].component(view, name, None if factor is None else self._stored(rows, factor))

    def _stored(self, rows: Slice, expr: Expr) -> Expr:
        """An expression over the row, rewritten over the key of the view."""
        names = dict(zip(rows.loop.key, self.program.view(rows.loop.view).key, strict=True))
        return Renaming(names).expression(expr)

    def _parts(
        self, ranges: Ranges, prefix: tuple[str, ...], view: RangeView
    ) -> tuple[tuple[Let, ...], list[tuple[Range, int]]]:
        """The statements that compute the bounds, and the ranges, each with how often its rows count."""
        lets: dict[Expr, Let] = {}

        def bound(name: str, side: Side | None) -> Bound | None:
            if side is None:
                return None
            if isinstance(side.expr, Column):
                return Bound(side.expr.name, side.strict)
            if side.expr not in lets:
                lets[side.expr] = Let(self.fresh(name), side.expr)
            return Bound(lets[side.expr].variable, side.strict)

        parts = [
            (Range(view.name, prefix, bound("low", one.low), bound("high", one.high)), n) for one, n in ranges.parts
        ]
        return tuple(lets.values()), parts

    # A loop over the rows of a range

    def _by_rows(self, rows: Slice) -> Body | None:
        """The loop over the rows of a range only."""
        loop = rows.loop
        ranges, others = in_one_range(rows)
        if ranges is None:
            return None
        (first,) = rows.bounded(ranges)
        rest = rows.places(name for name in rows.ends if name != ranges.variable.name)
        rest += tuple(i for i in range(len(loop.key)) if i not in (*loop.bound, first, *rest))
        view = self._range_view(rows, Grouping(loop.bound, (), (first, *rest)), ranges)
        components = {
            c.name: self._component(rows, view, c.name, None) for c in self.program.view(loop.view).components
        }
        lets, ((part, _),) = self._parts(ranges, rows.names(loop.bound), view)
        body = _with_components(under(others, rows.body), loop.alias, {old: c.name for old, c in components.items()})
        only = "" if not rows.ends else "last" if part.low is None else "first"
        made: Body = (*lets, RangeLoop(part, rows.names(view.grouping.order), loop.alias, body, only))
        return self._within_limits(rows, [ranges], made)

    # Values beyond the limits

    def _within_limits(self, rows: Slice, limited: Iterable[Ranges | Products], made: Body) -> Body:
        """The statements for terms within the limits, and the original loop for values beyond a limit."""
        loop, store = rows.loop, self.stores[rows.loop.view]
        of_rows, others = [], []
        for one in limited:
            own = [term for term in one.checked if rows.opened.intersection(columns_of(term))]
            self.limited.update(term.type for term in one.checked)
            of_rows.append(beyond(own, one.limit))
            others.append(beyond((term for term in one.checked if term not in own), one.limit))
        wide = joined("or", dict.fromkeys(one for one in of_rows if one is not None))
        if wide is not None:
            place = loop.bound, self._stored(rows, wide)
            if place not in store.wide:
                store.wide[place] = self.fresh(f"{loop.view}_wide")
            name = store.wide[place]
            made = (Lookup(name, rows.names(loop.bound), self.fresh(f"{name.lower()}_row"), (loop,), made),)
        beyond_here = joined("or", dict.fromkeys(one for one in others if one is not None))
        if beyond_here is not None:
            test = Column(self.fresh("wide"), BOOLEAN, False)
            otherwise = If(Call("not", (test,), BOOLEAN, False), made)
            made = (Let(test.name, beyond_here), If(test, (loop,)), otherwise)
        return made

    def with_additions(self, statement: Statement) -> Body:
        """A statement; if it is an addition, preceded by its additions to range views."""
        if not isinstance(statement, Add) or statement.view not in self.stores:
            return (statement,)
        return (*self.stores[statement.view].additions(statement, self.fresh), statement)

    @property
    def looped(self) -> frozenset[str]:
        """The views that loops over groups visit."""
        made = (one for store in self.stores.values() for one in store.ranges.values())
        return frozenset(one.groups or one.name for one in made if one.looped)


def _is_mixed(term: Expr, opened: frozenset[str]) -> bool:
    """True if a term reads variables of the row and others."""
    names = columns_of(term)
    return not opened.isdisjoint(names) and not opened.issuperset(names)


def _is_band(ranges: Ranges) -> bool:
    """True if all ranges have two ends. Few rows are between them as a rule, fewer than there are groups: flights that
    leave within two hours after another one arrived."""
    return all(one.low is not None and one.high is not None for one, _ in ranges.parts)


def _with_components(body: Body, alias: str, names: Mapping[str, str]) -> Body:
    """The body with components of a row under other names."""
    if all(old == new for old, new in names.items()):
        return body

    def factor(one: ComponentOf | Value) -> ComponentOf | Value:
        if isinstance(one, ComponentOf) and one.alias == alias:
            return replace(one, component=names[one.component])
        return one

    def monomial(one: Monomial) -> Monomial:
        return replace(one, factors=tuple(map(factor, one.factors)))

    return transform(body, lambda statement: (with_payload(statement, monomial),))
