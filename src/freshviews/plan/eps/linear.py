"""IVM^eps in linear space: every relation parted by both of its sides.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019 and its extended version), the variant that parts relations on
both variables. The relations lie in a cycle R(a, b), S(b, c), T(c, a) as in ``ivm_eps``. For an update of R(a, b),
S is parted by b and T by a:

- where b is light in S, or a in T, the fewer rows of the two are joined, as by ``first_order``: O(N^eps) steps;
- where both are heavy, the sum is in V_ST(b, a), the join of the rows of S with a heavy b and of T with a heavy a.

There are at most 2 N^(1 - eps) heavy values, so V_ST has at most 4 N^(2 - 2 eps) rows: for eps = 1/2, as many as the
relations. An update of S(b, c) with a heavy b finds the rows of T with its c and a heavy a, O(N^(1 - eps)) of them.
So an update takes O(N^max(eps, 1 - eps)) steps, and moving a value O(N^eps) such updates. In a graph it is seldom
that both ends of an edge are heavy, and so most updates cost what they cost ``first_order``, and two small lookups.

Departures. Where both are heavy, the views hold the sum over all c, so that c needs no parts. Occurrences of one
relation share a store and its parts; where an update is in both sides of a view at once, the product of the update
with itself is added as well.

The plan of Q() = R(a, b) S(b, c) T(c, a), as far as R is concerned::

    on R(a, b) += m:
        u = sum:
            if S_heavy_b[b] and T_heavy_a[a]:
                if v := V_ST[b, a]: u += m * v
            else:
                for c, s in S[b]:                   or the rows of T[_, a], if they are fewer
                    if t := T[c, a]: u += m * s * t
        Q[] += u
        if R_heavy_a[a]:
            for c, s in S.heavy_c[b]: V_RS[a, c] += m * s
        if R_heavy_b[b]:
            for c, t in T.heavy_c[_, a]: V_TR[c, b] += m * t
        R[a, b] += m
            appears: the row enters R.heavy_a and R.heavy_b where its values are heavy
        balance R[a, b]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Call, Column, Expr, columns_of, substitute
from freshviews.plan.delta.first_order import Store, canonical, non_empty_subsets, term
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, nest
from freshviews.plan.eps.cycle import Role, cycle_of, stores_of
from freshviews.plan.leaves import (
    Carrier,
    all_components,
    components_over,
    parameters_of,
    product,
    row_carrier,
    spanning_lifts,
    update_carrier,
)
from freshviews.plan.naming import RESULT, Namer, joined_name
from freshviews.program.nodes import (
    COUNT,
    Add,
    Balance,
    Component,
    Enter,
    If,
    Into,
    Leave,
    Lookup,
    Loop,
    Monomial,
    Parameter,
    Part,
    Program,
    Smaller,
    Statement,
    Subset,
    Sum,
    Trigger,
    View,
)
from freshviews.program.parts import Balancing, Partition
from freshviews.program.rewrite import rename, scale
from freshviews.query.query import Query
from freshviews.types import BIGINT, BOOLEAN

Body = tuple[Statement, ...]


@dataclass(frozen=True)
class Side:
    """An atom of an auxiliary view and the variables by which it is parted there."""

    role: Role
    by: tuple[str, ...]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(self.role.atom.variables.index(v) for v in self.by)

    @property
    def epsilon(self) -> float:
        """1 where all rows are light, 0 where all are heavy."""
        return 1.0 if set(self.by) == set(self.role.atom.variables) else self.role.given

    @property
    def parted(self) -> bool:
        return 0 < self.epsilon < 1


@dataclass(frozen=True)
class Auxiliary:
    """The join of the heavy parts of two atoms, summed over what they share."""

    view: View
    sides: tuple[Side, Side]
    pending: Pending


@dataclass(frozen=True)
class Parts:
    """The partition of a store by some positions of its key: the view of the heavy values, the subset of their rows."""

    store: Store
    places: tuple[int, ...]
    values: str
    subset: str
    epsilon: float


@dataclass
class _Plan:
    """What is known of the query, and, as they are found to be needed, the indexes of stores and of parts."""

    query: Query
    cycle: tuple[Role, Role, Role]
    stores: tuple[Store, ...]
    parts: list[Parts]
    auxiliaries: dict[str, Auxiliary]
    """By the name of the atom whose updates look it up; equal ones are one."""
    indexes: Indexes
    subsets: dict[tuple[str, str], set[tuple[int, ...]]]

    def store(self, role: Role) -> Store:
        return next(store for store in self.stores if role.atom in store.atoms)

    def after(self, role: Role) -> tuple[Role, Role]:
        at = self.cycle.index(role)
        return self.cycle[(at + 1) % 3], self.cycle[(at + 2) % 3]

    def step(self, role: Role) -> Step:
        view = self.store(role).view
        alias = f"{role.name.lower()}_row"
        return Step(view.name, role.atom.variables, alias, row_carrier(alias, view))

    def part(self, side: Side) -> Parts:
        store = self.store(side.role)
        return next(p for p in self.parts if p.store == store and p.places == side.places)


def plan(query: Query, epsilon: float | Mapping[str, float] = 0.5) -> Program:
    """Program of a query over three relations; ``epsilon`` from 0 to 1, for all atoms or by the atom's name.

    Raises PlanError for other queries.
    """
    cycle = cycle_of(query, epsilon)
    query = replace(query, atoms=tuple(next(r.atom for r in cycle if r.name == a.name) for a in query.atoms))
    namer = Namer(query)
    made = _Plan(query, cycle, stores_of(query, cycle, namer, placed=False), [], {}, {}, {})
    _name_auxiliaries(made, namer)
    for _ in range(2):  # once to find out which heavy parts are looped over
        triggers = tuple(_trigger(made, store) for store in made.stores)
        balancing = _balancing(made)
    auxiliaries = _views(made)
    views = (
        *(_stored(made, store) for store in made.stores),
        *(_values_view(p) for p in made.parts),
        *(a.view for a in auxiliaries),
        View(RESULT, query.free, all_components(query), journal=True, definition="the result"),
    )
    views = tuple(replace(v, indexes=tuple(sorted(made.indexes.get(v.name, ())))) for v in views)
    return Program(
        query.name, query.free, views, triggers, RESULT, strategy="ivm_eps", bounds=_bounds(made), balancing=balancing
    )


def is_aware(query: Query, cycle: tuple[Role, Role, Role], role: Role) -> bool:
    """Whether an update of an atom is summed up by parts of the two others: it binds the groups, and leaves something
    to be summed over."""
    first = cycle[(cycle.index(role) + 1) % 3]
    return set(role.atom.variables).issuperset(query.free) and not set(first.other) <= set(role.atom.variables)


def is_helped(query: Query) -> bool:
    """Whether the updates of some relation take fewer steps than under ``first_order``: all its occurrences bind the
    groups. PlanError where the query is none for this strategy."""
    cycle = cycle_of(query, 0.5)
    relations = {role.atom.relation for role in cycle}
    aware = {role.name: is_aware(query, cycle, role) for role in cycle}
    return any(all(aware[r.name] for r in cycle if r.atom.relation == relation) for relation in relations)


def _views(made: _Plan) -> list[Auxiliary]:
    return list({a.view.name: a for a in made.auxiliaries.values()}.values())


def _name_auxiliaries(made: _Plan, namer: Namer) -> None:
    """The views that updates look up, and the parts that they are made of."""
    query = made.query
    known: dict[object, Auxiliary] = {}
    for role in made.cycle:
        first, second = made.after(role)
        sides = (Side(first, first.by), Side(second, second.other))
        if not is_aware(query, made.cycle, role) or 1 in (sides[0].epsilon, sides[1].epsilon):
            continue
        variables = tuple(dict.fromkeys((*first.atom.variables, *second.atom.variables)))
        names: dict[str, Expr] = {v: Column(f"v{i}", BIGINT) for i, v in enumerate(variables)}
        sign = (
            *((made.store(s.role).view.name, tuple(map(variables.index, s.role.atom.variables))) for s in sides),
            *(substitute(c, names) for c in query.conditions),
            *((name, substitute(let.expr, names)) for name, let, _ in spanning_lifts(query)),
        )
        if sign not in known:
            summed = set(first.other) - set(role.atom.variables)
            spanning = frozenset(name for name, _, _ in spanning_lifts(query))
            components = components_over(query, frozenset({first.name, second.name}), spanning)
            name = namer.view(f"V_{joined_name((first.name, second.name))}")
            shown = f"{first.name} * {second.name}, heavy {', '.join(sides[0].by)} and {', '.join(sides[1].by)}"
            key = tuple(v for v in variables if v not in summed)
            pending = Pending(query.conditions, spanning_lifts(query))
            known[sign] = Auxiliary(View(name, key, components, definition=shown), sides, pending)
        made.auxiliaries[role.name] = known[sign]
        for side in (*sides, *known[sign].sides):
            store = made.store(side.role)
            if side.parted and not any(p.store == store and p.places == side.places for p in made.parts):
                by = "_".join(store.view.key[i] for i in side.places)
                values = namer.view("_".join(w for w in (store.view.name, "heavy", by) if w))
                made.parts.append(Parts(store, side.places, values, f"heavy_{by}" if by else "heavy", side.epsilon))


def _names(made: _Plan, store: Store) -> tuple[Parameter, ...]:
    """The parameters of a store's trigger: variables of the query where it is one atom's, else of no atom."""
    parameters = parameters_of(made.query, store.atoms[0])
    if len(store.atoms) == 1:
        return parameters
    return Namer(made.query).columns(parameters)


def _trigger(made: _Plan, store: Store) -> Trigger:
    first = store.atoms[0]
    parameters = _names(made, store)
    names = tuple(p.name for p in parameters)
    key = names[: len(first.variables)]
    terms: dict[Body, int] = {}
    for updated in non_empty_subsets(store.atoms):
        role = next(r for r in made.cycle if r.atom == updated[0])
        if len(updated) == 1 and is_aware(made.query, made.cycle, role):
            body = rename(_sum(made, role), dict(zip(role.atom.variables, key, strict=True)), {})
        else:
            body = term(made.query, updated, names, made.stores, made.indexes, Namer(made.query))
        if len(store.atoms) > 1:
            body = canonical(body, frozenset(names), Namer(made.query))
        terms[body] = terms.get(body, 0) + 1
    body = tuple(s for one, times in terms.items() for s in scale(one, times))
    carrier = update_carrier(made.query, first)
    for one in _views(made):
        body += _maintained(made, one, store, key, carrier)
    entering: Body = ()
    alias = f"{store.view.name.lower()}_new"
    for parts in (p for p in made.parts if p.store == store and (store.view.name, p.subset) in made.subsets):
        value = tuple(key[i] for i in parts.places)
        entering += (Lookup(parts.values, value, f"is_{parts.subset}", (Enter(alias, parts.subset),)),)
    components = store.view.components
    payload = product(components, (carrier,))
    names = tuple(c.name for c in components)
    body += (Add(store.view.name, key, names, payload, appear=entering, alias=alias if entering else ""),)
    if made.parts:
        body += (Balance(store.view.name, key),)
    return Trigger(first.relation, parameters, first.filters, body)


def _sum(made: _Plan, role: Role) -> Body:
    """What an update of one atom adds to the result."""
    query = made.query
    first, second = made.after(role)
    bound = frozenset(role.atom.variables)
    components = all_components(query)
    ready = tuple(c for c in query.conditions if bound.issuperset(columns_of(c)))
    pending = Pending(tuple(c for c in query.conditions if c not in ready), spanning_lifts(query))
    update = update_carrier(query, role.atom)

    def finish(done: Join) -> Body:
        return (Into("u", product(components, done.carriers)),)

    def loop(outer: Role, inner: Role) -> Loop:
        step = made.step(outer)
        carriers = (update, row_carrier(step.alias, made.store(outer).view))
        body = nest(Join(bound | set(step.key), carriers, (made.step(inner),), pending), finish, made.indexes)
        return _loop(made, step, bound, body)

    body: Body = (Smaller(loop(first, second), loop(second, first)),)
    known = made.auxiliaries.get(role.name)
    if known is not None:
        variables = tuple(dict.fromkeys((*first.atom.variables, *second.atom.variables)))
        key = tuple(v for v in variables if v not in set(first.other) - bound)
        alias = f"{known.view.name.lower()}_row"
        payload = product(components, (update, row_carrier(alias, known.view)))
        heavy: Body = (Lookup(known.view.name, key, alias, (Into("u", payload),)),)
        for side in (Side(second, second.other), Side(first, first.by)):
            heavy = _where_heavy(made, side, side.by, heavy, body)
        body = heavy
    added = tuple(Monomial((Part("u", c.name),)) for c in components)
    names = tuple(c.name for c in components)
    body = (Sum("u", components, body, (Add(RESULT, query.free, names, added),)),)
    for condition in reversed(ready):
        body = (If(condition, body),)
    return body


def _where_heavy(made: _Plan, side: Side, value: tuple[str, ...], body: Body, otherwise: Body = ()) -> Body:
    """What is done where a value is heavy on a side, and where it is not."""
    if not side.parted:
        return body if side.epsilon == 0 else otherwise
    values = made.part(side).values
    return (Lookup(values, value, f"{values.lower()}_row", body, otherwise),)


def _loop(made: _Plan, step: Step, bound: frozenset[str], body: Body, among: str = "") -> Loop:
    """A loop over the rows of a store, or of a heavy part of it, that agree with what is bound."""
    at = tuple(i for i, v in enumerate(step.key) if v in bound)
    if among:
        made.subsets.setdefault((step.view, among), set()).add(at)
    elif at:
        made.indexes.setdefault(step.view, set()).add(at)
    return Loop(step.view, step.key, at, step.alias, body, among)


def _maintained(made: _Plan, one: Auxiliary, store: Store, key: tuple[str, ...], carrier: Carrier) -> Body:
    """What an update of a store adds to an auxiliary view: as either side of it, and as both."""
    body: Body = ()
    own = [i for i in (0, 1) if made.store(one.sides[i].role) == store]
    for i in own:
        value = tuple(key[k] for k in one.sides[i].places)
        body += _where_heavy(made, one.sides[i], value, _joined(made, one, i, key, carrier, 1))
    if len(own) == 2:
        both = _both(made, one, key, (carrier, carrier), 1)
        for side in one.sides:
            both = _where_heavy(made, side, tuple(key[k] for k in side.places), both)
        body += _where_equal(one, key, both)
    return body


def _joined(made: _Plan, one: Auxiliary, at: int, key: tuple[str, ...], carrier: Carrier, sign: int) -> Body:
    """A row of one side of an auxiliary view, joined with the heavy part of the other side."""
    own, other = one.sides[at], one.sides[1 - at]
    step = made.step(other.role)
    bound = frozenset(own.role.atom.variables)

    def finish(done: Join) -> Body:
        return (_added(one, one.view.key, done.carriers, sign),)

    if bound.issuperset(step.key):
        body = nest(Join(bound, (carrier,), (step,), one.pending), finish, made.indexes)
        body = _where_heavy(made, other, other.by, body)
    else:
        carriers = (carrier, row_carrier(step.alias, made.store(other.role).view))
        inner = nest(Join(bound | set(step.key), carriers, (), one.pending), finish, made.indexes)
        body = (_loop(made, step, bound, inner, made.part(other).subset if other.parted else ""),)
    return rename(body, dict(zip(own.role.atom.variables, key, strict=True)), {})


def _added(one: Auxiliary, key: tuple[str, ...], carriers: tuple[Carrier, ...], sign: int) -> Add:
    payload = product(one.view.components, carriers)
    payload = tuple(replace(p, coefficient=sign * p.coefficient) for p in payload)
    return Add(one.view.name, key, tuple(c.name for c in one.view.components), payload)


def _mapping(one: Auxiliary, key: tuple[str, ...]) -> dict[str, str]:
    """The variables of both sides where one row is on both."""
    names: dict[str, str] = {}
    for side in one.sides:
        for variable, name in zip(side.role.atom.variables, key, strict=True):
            names.setdefault(variable, name)
    return names


def _both(made: _Plan, one: Auxiliary, key: tuple[str, ...], carriers: tuple[Carrier, ...], sign: int) -> Body:
    """The product of a row with itself."""
    bound = frozenset(_mapping(one, key))
    join = Join(bound, carriers, (), one.pending)
    body = nest(join, lambda done: (_added(one, one.view.key, done.carriers, sign),), made.indexes)
    return rename(body, _mapping(one, key), {})


def _where_equal(one: Auxiliary, key: tuple[str, ...], body: Body) -> Body:
    """Where a row can be on both sides: what these share is the same in it."""
    names = _mapping(one, key)
    pairs = {
        (names[v], name)
        for side in one.sides
        for v, name in zip(side.role.atom.variables, key, strict=True)
        if names[v] != name
    }
    for pair in sorted(pairs):
        same = Call("null_safe_eq", tuple(Column(n, BIGINT, False) for n in pair), BOOLEAN, False)
        body = (If(same, body),)
    return body


def _balancing(made: _Plan) -> Balancing | None:
    """How values move from part to part, and how the auxiliary views are made anew."""
    if not made.parts:
        return None
    recompute: Body = ()
    for one in _views(made):
        side = one.sides[0]
        step = made.step(side.role)
        carrier = row_carrier(step.alias, made.store(side.role).view)
        body = _joined(made, one, 0, side.role.atom.variables, carrier, 1)
        if side.parted:
            values = made.part(side).values
            rows = _loop(made, step, frozenset(side.by), body)
            recompute += (Loop(values, side.by, (), f"{values.lower()}_row", (rows,)),)
        else:
            recompute += (_loop(made, step, frozenset(), body),)
    names = tuple(store.view.name for store in made.stores)
    partitions = tuple(_partition(made, parts) for parts in made.parts)
    return Balancing(names, partitions, tuple(one.view.name for one in _views(made)), recompute)


def _partition(made: _Plan, parts: Parts) -> Partition:
    """The rows of a value enter the heavy part, or leave it, one by one: each is joined with the others there."""
    store = parts.store
    key = tuple(p.name for p in _names(made, store))[: len(store.view.key)]
    by = tuple(key[i] for i in parts.places)
    alias = f"{store.view.name.lower()}_moved"
    carrier = row_carrier(alias, store.view)
    looped = (store.view.name, parts.subset) in made.subsets

    def joins(sign: int) -> Body:
        body: Body = ()
        for one in _views(made):
            own = [
                i
                for i in (0, 1)
                if one.sides[i].parted and made.part(one.sides[i]) == parts
            ]
            for i in own:
                body += _joined(made, one, i, key, carrier, sign)
            if len(own) == 2:
                body += _where_equal(one, key, _both(made, one, key, (carrier, carrier), sign))
        return body

    def rows(body: Body) -> Body:
        step = Step(store.view.name, key, alias, carrier)
        return (_loop(made, step, frozenset(by), body),) if body else ()

    enter: Body = (Enter(alias, parts.subset),) if looped else ()
    leave: Body = (Leave(alias, parts.subset),) if looped else ()
    rise = (*rows((*joins(1), *enter)), Add(parts.values, by, (COUNT,), (Monomial((), 1),)))
    sink = (*rows((*leave, *joins(-1))), Add(parts.values, by, (COUNT,), (Monomial((), -1),)))
    if by:
        made.indexes.setdefault(store.view.name, set()).add(parts.places)
    subset = parts.subset if looped else ""
    return Partition(store.view.name, parts.places, parts.values, subset, parts.epsilon, by, rise, sink)


def _values_view(parts: Parts) -> View:
    key = tuple(parts.store.view.key[i] for i in parts.places)
    return View(parts.values, key, (Component(COUNT, "integer"),), definition=f"heavy in {parts.store.view.name}")


def _stored(made: _Plan, store: Store) -> View:
    names = [p.subset for p in made.parts if p.store == store]
    subsets = tuple(
        Subset(name, tuple(sorted(made.subsets[store.view.name, name])))
        for name in names
        if (store.view.name, name) in made.subsets
    )
    return replace(store.view, subsets=subsets)


def _bounds(made: _Plan) -> tuple[tuple[str, str], ...]:
    if not made.parts:
        return (("update", "O(N)"), ("delay", "O(1)"), ("space", "O(N^2)" if made.auxiliaries else "O(N)"))
    slow = [r.name for r in made.cycle if not is_aware(made.query, made.cycle, r)]
    update = f"O(N^{max(max(p.epsilon, 1 - p.epsilon) for p in made.parts):g}) amortised"
    if slow:
        update += f"; O(N) of {', '.join(slow)}, for as many groups may change"
    space = max([1.0, *(2 - sum(s.epsilon for s in a.sides) for a in _views(made))])
    return (("update", update), ("delay", "O(1)"), ("space", "O(N)" if space == 1 else f"O(N^{space:g})"))
