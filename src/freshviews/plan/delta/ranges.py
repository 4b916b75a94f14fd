"""Range sums: a loop over rows between two bounds becomes a sum, or a loop over these rows alone.

A delta of a join with ``<``, ``<=``, ``>``, ``>=`` or BETWEEN loops over all rows of a group and tests each::

    for t, v, s in S[g]:                      u = sum:
        if t <= x:                                u += S_t[g, t <= x]
            Q[g] += m * s.sum_v               if u:
                                                  Q[g] += m * u.sum_v

The *range view* ``S_t(g, t)`` has the sums of S by the group and the bounded variable, ordered by it; statements that
add to S add to it, too. It has subtree sums (``kernel.ordered.sums``), so the sum of a range takes O(log N). Where the
body needs other variables of the row, as one that adds to a result of its own for each, the range view has all columns
of S, and the loop visits the rows of the range, in order. This pass works on programs, so it serves every strategy
that loops. A view that is read no more is dropped.

The body must add the payload of the row linearly, each addition with one factor of it. A lift over variables of both
sides is taken apart into products (``products``), whose factors on the side of the row are summed in the range view.
Such a lift is taken apart where no condition bounds the rows, too: the sums by group are then looked up.

Integer arithmetic in a condition or a lift is checked. The range view has the values for which it cannot fail
(``bounds``). The *wide view* ``S_wide(g)`` counts rows with a greater value. Where the group has such a row, or the
update has such a value, the loop runs as before, with its errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of, substitute
from freshviews.expr.ops import may_fail
from freshviews.plan.delta.bounds import Ranges, beyond, conjuncts, ranges_of, shift_of
from freshviews.plan.delta.linear import Linear
from freshviews.plan.delta.products import Products
from freshviews.plan.delta.visits import bounds_of, opened_by, peeled, visited
from freshviews.plan.naming import names_in
from freshviews.program.payload import COUNT, ZERO, Component, ComponentOf, Value
from freshviews.program.program import Program
from freshviews.program.rewrite import rename, transform
from freshviews.program.statements import (
    Add,
    Body,
    Bound,
    Emit,
    Exists,
    If,
    Into,
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
from freshviews.program.views import Order, View
from freshviews.types import BIGINT, BOOLEAN

_COUNTED = (Component(COUNT, "integer"),)


def with_ranges(program: Program) -> Program:
    """The program with range sums, and loops over ranges, in the place of loops over whole slices."""
    if program.balancing is not None or not isinstance(program.upkeep, ByTriggers):
        return program
    made = _Pass(program)
    triggers = tuple(replace(t, body=made.body(t.body)) for t in program.triggers)
    if not made.stores:
        notes = visited(program.triggers, frozenset())
        return replace(program, bounds=(*program.bounds, *notes)) if notes else program
    triggers = tuple(replace(t, body=transform(t.body, made.kept_up)) for t in triggers)
    views = [view for one in program.views for view in (*made.views_of(one.name), one)]
    found = _pruned(replace(program, views=tuple(views), triggers=triggers), frozenset(made.stores))
    wide = frozenset(name for store in made.stores.values() for name in store.wide.values())
    return replace(found, bounds=bounds_of(found, program.bounds, wide))


@dataclass
class _Store:
    """The range views of a view, by the positions of their keys and how many of them are not ordered; and the names of
    its wide views, by the positions of their keys and the condition."""

    view: View
    ranges: dict[tuple[tuple[int, ...], int], _RangeView] = field(default_factory=dict)
    wide: dict[tuple[tuple[int, ...], Expr], str] = field(default_factory=dict)


@dataclass
class _RangeView:
    """A range view: its name, how many columns of its key are not ordered, the order of the next one if there is one;
    whether ranges of it are summed; the components, each with the one of the store that it sums, and what that is
    multiplied by."""

    name: str
    prefix: int
    order: Order | None
    summed: bool
    components: dict[tuple[str, Expr | None], str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Split:
    """A loop taken apart: its conditions over terms outside, the ranges if any, and the statements below."""

    outside: tuple[Expr, ...]
    ranges: Ranges | None
    body: Body


class _Pass:
    """Rewrites the statements of one program. ``stores``: by view, what is kept for its ranges."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stores: dict[str, _Store] = {}
        # What runs beside the triggers, as when changes begin to be wanted, adds to no range view.
        beside = (s for body in program.result.bodies for s in visit(body))
        self.fixed = frozenset(view for s in beside for view in uses(s).changes)
        self.taken = {*names_in(program), *program.free}
        self.taken.update(v for view in program.views for v in view.key)

    def fresh(self, wish: str) -> str:
        name = next(one for n in count(1) if (one := wish if n == 1 else f"{wish}_{n}") not in self.taken)
        self.taken.add(name)
        return name

    def conditions(self, loop: Loop) -> tuple[list[Expr], Body]:
        """The terms of the conditions that begin the body of a loop, and the rest of the body.

        Variables of the row that are one column of a relation and a constant, as the ends of ``BETWEEN t - 5 AND t +
        5``, are written as one of them and constants.
        """
        conditions, body = peeled(loop.body)
        terms = [one for condition in conditions for one in conjuncts(condition)]
        if not terms:
            return [], body
        first: dict[Expr, tuple[Column, int]] = {}
        same: dict[str, Expr] = {}
        types = {c.name: c for one in terms for c in _columns(one)}
        for name, (base, constant) in self._shifts(loop).items():
            if name not in types:
                continue
            if base not in first:
                first[base] = types[name], constant
                continue
            variable, other = first[base]
            if constant != other:
                op, by = ("add_int" if constant > other else "sub_int"), Literal(abs(constant - other), BIGINT)
                same[name] = Call(op, (variable, by), BIGINT)
            else:
                same[name] = variable
        return [substitute(one, same) for one in terms], body

    def _shifts(self, loop: Loop) -> dict[str, tuple[Expr, int]]:
        """The variables that a loop binds to a column of a relation and a constant."""
        adding = [
            (trigger, s)
            for trigger in self.program.triggers
            for s in visit(trigger.body)
            if isinstance(s, Add) and s.view == loop.view
        ]
        if len(adding) != 1:
            return {}
        ((trigger, add),) = adding
        exprs = {p.name: p.expr for p in trigger.parameters}
        found = {}
        for i, variable in enumerate(loop.key):
            shift = shift_of(exprs[add.key[i]]) if i not in loop.bound and add.key[i] in exprs else None
            if shift is not None:
                found[variable] = shift
        return found

    def body(self, body: Body) -> Body:
        """The body with range sums, and loops over ranges, from the inside out. The loops of a Smaller stay: the
        shorter one is chosen, and each looks the other up."""
        result: list[Statement] = []
        for one in body:
            if isinstance(one, Smaller):
                left, right = (replace(side, body=self.body(side.body)) for side in (one.left, one.right))
                result.append(Smaller(left, right))
            else:
                result.extend(self.statement(with_bodies(one, self.body)))
        return tuple(result)

    def statement(self, statement: Statement) -> Body:
        """The statement, or what it becomes."""
        if not isinstance(statement, Loop) or not self._takes(statement):
            return (statement,)
        return self._summed(statement) or self._visited(statement) or (statement,)

    def _takes(self, loop: Loop) -> bool:
        """True if the view of a loop can have range views: it only grows by plain additions."""
        view = self.program.view(loop.view)
        plain = not (view.journal or view.subsets or view.tally or view.ordered or view.name in self.fixed)
        return plain and not loop.optional and not loop.among and any(c.name == COUNT for c in view.components)

    # Sums

    def _summed(self, loop: Loop) -> Body | None:
        """The loop as the sum of a range, and then what its body does with a row."""
        opened = frozenset(opened_by(loop))
        split = _split(*self.conditions(loop), opened)
        if split is None or not (split.ranges or any(isinstance(s, Let) for s in split.body)):
            return None
        total = self.fresh(f"{loop.alias}_sum")
        within = frozenset(v for s in visit(split.body) for v in (*uses(s).binds, *uses(s).defines))
        linear = Linear(loop.alias, total, opened, within)
        body = linear.body(split.body)
        if body is None or not linear.used or not (split.ranges or linear.products):
            return None
        places = loop.bound
        if split.ranges is not None:
            places = (*loop.bound, loop.key.index(split.ranges.variable.name))
        lifts = tuple(linear.products.values())
        view = self._range_view(loop, places, split.ranges, summed=True)
        components = []
        for factor in linear.used:
            components.append(self._component(loop, view, factor))
        body = linear.named(body, dict(zip(linear.used, (c.name for c in components), strict=True)), self.fresh)
        made: Body = (Lookup(view.name, tuple(loop.key[i] for i in loop.bound), total, body),)
        if split.ranges is not None:
            lets, rows = self._bounds(split.ranges, loop, view)
            sums = tuple(RangeSum(total, place, times) for place, times in rows)
            made = (*lets, Sum(total, tuple(components), sums, body))
        for condition in reversed(split.outside):
            made = (If(condition, made),)
        return self._checked(loop, opened, split.ranges, lifts, made)

    def _range_view(self, loop: Loop, places: tuple[int, ...], ranges: Ranges | None, summed: bool) -> _RangeView:
        store = self.stores.setdefault(loop.view, _Store(self.program.view(loop.view)))
        prefix = len(loop.bound)
        if (places, prefix) not in store.ranges:
            name = self.fresh(f"{loop.view}_sums" if ranges is None else f"{loop.view}_by_{loop.key[places[prefix]]}")
            order = None if ranges is None else Order(ranges.variable.type)
            store.ranges[places, prefix] = _RangeView(name, prefix, order, summed and ranges is not None)
        found = store.ranges[places, prefix]
        found.summed |= summed
        return found

    def _component(self, loop: Loop, view: _RangeView, factor: tuple[str, Expr | None]) -> Component:
        """The component of a range view that sums one of the store, times a factor over the variables of the row."""
        store = self.stores[loop.view].view
        name, expr = factor
        expr = None if expr is None else _renamed(expr, dict(zip(loop.key, store.key, strict=True)))
        if (name, expr) not in view.components:
            view.components[name, expr] = _component_name(name, expr, view.components.values())
        return Component(view.components[name, expr], store.component(name).ring)

    def _bounds(
        self, ranges: Ranges, loop: Loop, view: _RangeView
    ) -> tuple[tuple[Let, ...], list[tuple[Range, int]]]:
        """What computes the bounds, and the ranges."""
        lets: dict[Expr, Let] = {}
        prefix = tuple(loop.key[i] for i in loop.bound)

        def bound(side: str, expr: Expr, strict: bool) -> Bound:
            if isinstance(expr, Column):
                return Bound(expr.name, strict)
            if expr not in lets:
                lets[expr] = Let(self.fresh(side), expr)
            return Bound(lets[expr].variable, strict)

        rows = []
        for interval, times in ranges.parts:
            low, high = (
                None if one is None else bound(side, one.expr, one.strict)
                for side, one in (("low", interval.low), ("high", interval.high))
            )
            rows.append((Range(view.name, prefix, low, high), times))
        return tuple(lets.values()), rows

    # Loops

    def _visited(self, loop: Loop) -> Body | None:
        """The loop over the rows of a range alone."""
        opened = frozenset(opened_by(loop))
        terms, inner = self.conditions(loop)
        ranges: Ranges | None = None
        left: list[Expr] = []
        for one in terms:
            found = ranges_of(one, opened)
            both = found if ranges is None or found is None else _both(ranges, found)
            if both is None or len(both.parts) != 1:
                left.append(one)
            else:
                ranges = both
        if ranges is None:
            return None
        for one in reversed(left):
            inner = (If(one, inner),)
        first = loop.key.index(ranges.variable.name)
        places = (*loop.bound, first, *(i for i in range(len(loop.key)) if i not in (*loop.bound, first)))
        view = self._range_view(loop, places, ranges, summed=False)
        for component in self.program.view(loop.view).components:
            self._component(loop, view, (component.name, None))
        lets, ((rows, _),) = self._bounds(ranges, loop, view)
        key = tuple(loop.key[i] for i in places[len(loop.bound) :])
        names = {c.name: view.components[c.name, None] for c in self.program.view(loop.view).components}
        body = _with_components(inner, loop.alias, names)
        return self._checked(loop, opened, ranges, (), (*lets, RangeLoop(rows, key, loop.alias, body)))

    # Values beyond the limits

    def _checked(
        self, loop: Loop, opened: frozenset[str], ranges: Ranges | None, lifts: tuple[Products, ...], made: Body
    ) -> Body:
        """The statements, and the loop as it was where a value is beyond a limit."""
        store = self.stores[loop.view]
        rows, others = [], []
        tests: list[Ranges | Products] = [*([] if ranges is None else [ranges]), *lifts]
        for one in tests:
            of_rows = [term for term in one.checked if opened.intersection(columns_of(term))]
            rows.append(beyond(of_rows, one.limit))
            others.append(beyond((term for term in one.checked if term not in of_rows), one.limit))
        wide = _any(rows)
        if wide is not None:
            prefix = tuple(loop.key[i] for i in loop.bound)
            condition = _renamed(wide, dict(zip(loop.key, store.view.key, strict=True)))
            name = store.wide.setdefault((loop.bound, condition), "") or self.fresh(f"{loop.view}_wide")
            store.wide[loop.bound, condition] = name
            made = (Lookup(name, prefix, self.fresh(f"{name.lower()}_row"), (loop,), made),)
        beyond_here = _any(others)
        if beyond_here is not None:
            test = self.fresh("wide")
            column = Column(test, BOOLEAN, False)
            otherwise = If(Call("not", (column,), BOOLEAN, False), made)
            made = (Let(test, beyond_here), If(column, (loop,)), otherwise)
        return made

    # Upkeep

    def views_of(self, name: str) -> Iterator[View]:
        """The range views and wide views of a view."""
        if name not in self.stores:
            return
        store = self.stores[name]
        for (places, _), one in store.ranges.items():
            key = tuple(store.view.key[i] for i in places)
            rings = [store.view.component(old).ring for old, _ in one.components]
            components = tuple(map(Component, one.components.values(), rings))
            if one.order is None:
                yield View(one.name, key, components, definition=f"sums of {name}")
                continue
            orders = (one.order, *(Order(BIGINT) for _ in places[one.prefix + 1 :]))
            sums = tuple(c.name for c in components) if one.summed else ()
            what = f"{name}, in the order of {key[one.prefix]}"
            yield View(one.name, key, components, ordered=orders, sums=sums, definition=what)
        for (bound, condition), wide in store.wide.items():
            key = tuple(store.view.key[i] for i in bound)
            yield View(wide, key, _COUNTED, definition=f"{name} where {condition}")

    def kept_up(self, statement: Statement) -> Body:
        """An addition to a view, and before it those to its range views."""
        if not isinstance(statement, Add) or statement.view not in self.stores:
            return (statement,)
        store = self.stores[statement.view]
        given = dict(zip(statement.components, statement.payload, strict=True))
        names = dict(zip(store.view.key, statement.key, strict=True))
        found: list[Statement] = []
        lets: dict[Expr, str] = {}
        for (places, _), one in store.ranges.items():
            payload = []
            for component, expr in one.components:
                monomial = given.get(component, ZERO)
                if expr is not None and monomial != ZERO:
                    factor = _renamed(expr, names)
                    if factor not in lets:
                        lets[factor] = self.fresh("term")
                        found.append(Let(lets[factor], factor))
                    monomial = replace(monomial, factors=(*monomial.factors, Value(lets[factor])))
                payload.append(monomial)
            key = tuple(statement.key[i] for i in places)
            found.append(Add(one.name, key, tuple(one.components.values()), tuple(payload)))
        for (bound, condition), wide in store.wide.items():
            add = Add(wide, tuple(statement.key[i] for i in bound), (COUNT,), (given.get(COUNT, ZERO),))
            found.append(If(_renamed(condition, names), (add,)))
        return (*found, statement)


def _component_name(name: str, expr: Expr | None, taken: Collection[str]) -> str:
    """The name of a component of a range view: that of the store's, or ``sum_x``."""
    if expr is not None:
        name = "_".join(["sum", *columns_of(expr)])
    return next(one for n in count(1) if (one := name if n == 1 else f"{name}_{n}") not in taken)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """An expression over other variables."""
    (found,) = rename((Let("", expr),), names, {})
    assert isinstance(found, Let)
    return found.expr


def _columns(expr: Expr) -> Iterator[Column]:
    """The columns of an expression."""
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call):
        yield from (column for arg in expr.args for column in _columns(arg))


def _any(conditions: Iterable[Expr | None]) -> Expr | None:
    """OR of the conditions that there are."""
    found: Expr | None = None
    for one in dict.fromkeys(conditions):
        if one is not None:
            found = one if found is None else Call("or", (found, one), BOOLEAN, False)
    return found


def _both(one: Ranges, other: Ranges) -> Ranges | None:
    return one.with_(other) if one.variable.name == other.variable.name else None


def _split(terms: Iterable[Expr], body: Body, opened: frozenset[str]) -> _Split | None:
    """A loop taken apart; None if a term of its conditions is no range of one variable."""
    outside: list[Expr] = []
    ranges: Ranges | None = None
    for one in terms:
        if opened.isdisjoint(columns_of(one)):
            if may_fail(one):
                return None
            outside.append(one)
            continue
        found = ranges_of(one, opened)
        if found is None:
            return None
        ranges = found if ranges is None else _both(ranges, found)
        if ranges is None:
            return None
    return _Split(tuple(outside), ranges, body)


def _with_components(body: Body, alias: str, names: Mapping[str, str]) -> Body:
    """The body with components of a row under other names."""
    if all(old == new for old, new in names.items()):
        return body

    def factor(one: ComponentOf | Value) -> ComponentOf | Value:
        if isinstance(one, ComponentOf) and one.alias == alias:
            return replace(one, component=names[one.component])
        return one

    def change(statement: Statement) -> Body:
        if isinstance(statement, Into | Add | Emit):
            payload = tuple(replace(p, factors=tuple(map(factor, p.factors))) for p in statement.payload)
            return (replace(statement, payload=payload),)
        return (statement,)

    return transform(body, change)


# What is no longer read


def _pruned(program: Program, stores: frozenset[str]) -> Program:
    """The program without views, of those that have range views, that nothing reads any more, and without indexes that
    nothing needs."""
    statements = [s for trigger in program.triggers for s in visit(trigger.body)]
    read = {view for s in statements for view in uses(s).views}
    watched = {s.view for s in statements if isinstance(s, Add) and (s.appear or s.vanish or s.stay)}
    read |= {view for body in program.result.bodies for s in visit(body) for view in uses(s).views}
    gone = stores - read - watched
    indexes = {(s.view, s.bound) for s in statements if isinstance(s, Loop | Exists)}

    def change(statement: Statement) -> Body:
        return () if isinstance(statement, Add) and statement.view in gone else (statement,)

    views = [
        replace(v, indexes=tuple(i for i in v.indexes if (v.name, i) in indexes)) if v.name in stores else v
        for v in program.views
        if v.name not in gone
    ]
    triggers = tuple(replace(t, body=transform(t.body, change)) for t in program.triggers)
    return replace(program, views=tuple(views), triggers=triggers)
