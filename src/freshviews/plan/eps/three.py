"""IVM^eps: counts over three relations, by heavy and light parts, in sublinear time.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang: Counting Triangles under Updates in Worst-Case Optimal Time (ICDT 2019):
parts (Definition 6), auxiliary views (Figure 2), ApplyUpdate (Figure 3), OnUpdate and both rebalancings (Figure 4).

The relations lie in a cycle R(a, b), S(b, c), T(c, a), each parted by its first variable: a value is heavy where it
has about N^eps rows or more. An update of R(a, b) needs the sum over c of S(b, c) T(c, a). Where b is light in S, it
has few rows, and is joined as by ``first_order``. Where b is heavy, the light c are in the view
V_ST(b, a) = S_heavy(b, c) T_light(c, a), and there are few heavy c. Such a view costs few steps as well: an update of
S_heavy(b, c) finds the few rows of a light c, one of T_light(c, a) the few heavy b. So an update takes
O(N^max(eps, 1 - eps)) steps. The views have O(N^(1 + min(eps, 1 - eps))) rows, and as much time takes their making.

``a``, ``b`` and ``c`` stand for all variables that two of the relations share; there may be none, as in the chain
R(b), S(b, c), T(c), whose a is empty. Variables of all three relations belong to every key. For eps = 0 a relation
is heavy as a whole, for eps = 1 light, and it has no parts: with one eps for all that is first-order maintenance;
with S heavy and T light as a whole V_ST is the one view of factorised maintenance.

Departures. The parts are marked in one store per relation, so that a light value costs what it costs ``first_order``,
and the four sums of Figure 3 over the rows of S and T are one loop. What a value that moves has in its old part is
deleted from the views before any of its rows is in the new one, instead of row by row, and the result, which does not
depend on the parts, is left alone meanwhile. Occurrences of one relation that are parted alike share their store:
see ``first_order``. Where the result is grouped by a variable that an update does not bind, that update changes as
many groups as it finds, and goes as under ``first_order``.

The plan of Q() = R(a, b) S(b, c) T(c, a), as far as R is concerned::

    on R(a, b) += m:
        u = sum:
            if S_heavy[b]:
                if v := V_ST[b, a]: u += m * v
                for c, t in T.heavy[_, a]:
                    if s := S[b, c]: u += m * s * t
            else:
                for c, s in S[b]:                   or the rows of T[_, a], if they are fewer
                    if t := T[c, a]: u += m * s * t
        Q[] += u
        if R_heavy[a]:
            if no S_heavy[b]:
                for c, s in S[b]: V_RS[a, c] += m * s
        else:
            for c, t in T.heavy[_, a]: V_TR[c, b] += m * t
        R[a, b] += m
            appears: if R_heavy[a]: the row enters R.heavy
        balance R by a
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Column, columns_of, substitute
from freshviews.plan.delta.first_order import Store, canonical, non_empty_subsets, term
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, nest
from freshviews.plan.eps import four as ivm_eps_four
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
from freshviews.types import BIGINT

Body = tuple[Statement, ...]

DEFAULT = 0.5
"""The exponent where none is named: that of the least time."""
HEAVY = "heavy"
"""The subset of the rows of heavy values."""


@dataclass(frozen=True)
class Auxiliary:
    """The join of the heavy part of one atom with the light part of the next one, summed over what they share."""

    view: View
    heavy: Role
    light: Role
    pending: Pending


@dataclass
class _Plan:
    """What is known of the query, and, as they are found to be needed, the indexes of stores and of their heavy
    parts."""

    query: Query
    cycle: tuple[Role, Role, Role]
    stores: tuple[Store, ...]
    values: dict[str, str]
    """By store, the view of its heavy values."""
    auxiliaries: dict[tuple[str, str], Auxiliary]
    """By the names of the two atoms; equal ones are one."""
    indexes: Indexes
    parts: Indexes

    def store(self, role: Role) -> Store:
        return next(store for store in self.stores if role.atom in store.atoms)

    def role(self, store: Store) -> Role:
        """The role of a store's first atom; the others are parted alike."""
        return next(role for role in self.cycle if role.atom == store.atoms[0])

    def after(self, role: Role) -> tuple[Role, Role]:
        """The two roles that follow in the cycle."""
        at = self.cycle.index(role)
        return self.cycle[(at + 1) % 3], self.cycle[(at + 2) % 3]

    def step(self, role: Role) -> Step:
        view = self.store(role).view
        alias = f"{role.name.lower()}_row"
        return Step(view.name, role.atom.variables, alias, row_carrier(alias, view))

    def pending(self) -> Pending:
        return Pending(self.query.conditions, spanning_lifts(self.query))


def plan(query: Query, epsilon: float | Mapping[str, float] | None = None) -> Program:
    """Program of a query over three relations, or over four (``ivm_eps_four``); ``epsilon`` from 0 to 1, for all
    atoms or by the atom's name, by default that of the least time.

    Raises PlanError for other queries, and where no update would be helped.
    """
    if len(query.atoms) == 4:
        return ivm_eps_four.plan(query, {"": epsilon} if isinstance(epsilon, float | int) else epsilon or {})
    cycle = cycle_of(query, DEFAULT if epsilon is None else epsilon)
    query = replace(query, atoms=tuple(next(r.atom for r in cycle if r.name == a.name) for a in query.atoms))
    namer = Namer(query)
    stores = stores_of(query, cycle, namer)
    made = _Plan(query, cycle, stores, {}, {}, {}, {})
    for store in stores:
        if made.role(store).parted:
            made.values[store.view.name] = namer.view(f"{store.view.name}_heavy")
    _name_auxiliaries(made, namer)
    for _ in range(2):  # once to find out which heavy parts are looped over
        triggers = tuple(_trigger(made, store) for store in stores)
        balancing = _balancing(made)
    values = tuple(_values_view(made, store) for store in stores if store.view.name in made.values)
    auxiliaries = tuple({a.view.name: a.view for a in made.auxiliaries.values()}.values())
    views = (
        *(_stored(made, store) for store in stores),
        *values,
        *auxiliaries,
        View(RESULT, query.free, all_components(query), journal=True, definition="the result"),
    )
    views = tuple(replace(v, indexes=tuple(sorted(made.indexes.get(v.name, ())))) for v in views)
    return Program(
        query.name, query.free, views, triggers, RESULT, strategy="ivm_eps", bounds=_bounds(made), balancing=balancing
    )


def _is_aware(made: _Plan, role: Role) -> bool:
    """Whether an update of an atom is summed up by the parts of the two others: it binds the groups, and leaves
    something to be summed over."""
    first, _ = made.after(role)
    return set(role.atom.variables).issuperset(made.query.free) and not set(first.other) <= set(role.atom.variables)


def _name_auxiliaries(made: _Plan, namer: Namer) -> None:
    """The views that updates need: those that could be heavy there and light here."""
    known: dict[object, Auxiliary] = {}
    for role in made.cycle:
        heavy, light = made.after(role)
        if not _is_aware(made, role) or heavy.epsilon == 1 or light.epsilon == 0:
            continue
        variables = tuple(dict.fromkeys((*heavy.atom.variables, *light.atom.variables)))
        names = {v: f"v{i}" for i, v in enumerate(variables)}
        sign = (
            made.store(heavy).view.name,
            tuple(names[v] for v in heavy.atom.variables),
            made.store(light).view.name,
            tuple(names[v] for v in light.atom.variables),
            *(substitute(c, {v: Column(n, BIGINT) for v, n in names.items()}) for c in made.query.conditions),
            *((a, substitute(let.expr, {v: Column(n, BIGINT) for v, n in names.items()}))
              for a, let, _ in spanning_lifts(made.query)),
        )
        if sign not in known:
            summed = set(heavy.other) - set(role.atom.variables)
            key = tuple(v for v in variables if v not in summed)
            spanning = frozenset(name for name, _, _ in spanning_lifts(made.query))
            components = components_over(made.query, frozenset({heavy.name, light.name}), spanning)
            name = namer.view(f"V_{joined_name((heavy.name, light.name))}")
            shown = f"{heavy.name}_heavy * {light.name}_light"
            known[sign] = Auxiliary(View(name, key, components, definition=shown), heavy, light, made.pending())
        made.auxiliaries[heavy.name, light.name] = known[sign]


def _names(made: _Plan, store: Store) -> tuple[Parameter, ...]:
    """The parameters of a store's trigger: variables of the query where it is one atom's, else of no atom."""
    parameters = parameters_of(made.query, store.atoms[0])
    if len(store.atoms) == 1:
        return parameters
    return Namer(made.query).columns(parameters)


def _trigger(made: _Plan, store: Store) -> Trigger:
    """ApplyUpdate of Figure 3, then the rebalancing of Figure 4."""
    first = store.atoms[0]
    parameters = _names(made, store)
    names = tuple(p.name for p in parameters)
    key = names[: len(first.variables)]
    terms: dict[Body, int] = {}
    for updated in non_empty_subsets(store.atoms):
        role = next(r for r in made.cycle if r.atom == updated[0])
        if len(updated) == 1 and _is_aware(made, role):
            body = rename(_sum(made, role), dict(zip(role.atom.variables, key, strict=True)), {})
        else:
            body = term(made.query, updated, names, made.stores, made.indexes, Namer(made.query))
        if len(store.atoms) > 1:
            body = canonical(body, frozenset(names), Namer(made.query))
        terms[body] = terms.get(body, 0) + 1
    body = tuple(s for one, times in terms.items() for s in scale(one, times))
    carrier = update_carrier(made.query, first)
    own = made.role(store)
    by = tuple(key[i] for i in own.places)
    heavy, light = (_moved(made, store, key, carrier, 1, part) for part in (True, False))
    body += _by_part(made, own, by, heavy, light, "is_heavy")
    components = store.view.components
    entering: Body = ()
    alias = ""
    if made.parts.get(store.view.name):
        alias = f"{store.view.name.lower()}_new"
        entering = _by_part(made, own, by, (Enter(alias, HEAVY),), (), "is_heavy")
    payload = product(components, (carrier,))
    body += (Add(store.view.name, key, tuple(c.name for c in components), payload, appear=entering, alias=alias),)
    if made.values:
        body += (Balance(store.view.name, key),)
    return Trigger(first.relation, parameters, first.filters, body)


def _by_part(made: _Plan, role: Role, by: tuple[str, ...], heavy: Body, light: Body, alias: str = "") -> Body:
    """What is done for a heavy value, or for a light one."""
    if not role.parted:
        return light if role.epsilon == 1 else heavy
    if not heavy and not light:
        return ()
    view = made.values[made.store(role).view.name]
    return (Lookup(view, by, alias or f"{role.name.lower()}_heavy", heavy, light),)


def _sum(made: _Plan, role: Role) -> Body:
    """Lines 3 to 7 of Figure 3: what an update of one atom adds to the result."""
    query = made.query
    first, second = made.after(role)
    bound = frozenset(role.atom.variables)
    components = all_components(query)
    ready = tuple(c for c in query.conditions if bound.issuperset(columns_of(c)))
    pending = Pending(tuple(c for c in query.conditions if c not in ready), spanning_lifts(query))
    update = update_carrier(query, role.atom)

    def finish(done: Join) -> Body:
        return (Into("u", product(components, done.carriers)),)

    def loop(outer: Role, inner: Role, among: str) -> Loop:
        step = made.step(outer)
        carriers = (update, row_carrier(step.alias, made.store(outer).view))
        body = nest(Join(bound | set(step.key), carriers, (made.step(inner),), pending), finish, made.indexes)
        return _loop(made, step, bound, body, among)

    light: Body = (Smaller(loop(first, second, ""), loop(second, first, "")),)
    heavy: Body = ()
    if first.epsilon < 1 and second.epsilon > 0:
        known = made.auxiliaries[first.name, second.name]
        variables = tuple(dict.fromkeys((*first.atom.variables, *second.atom.variables)))
        summed = set(first.other) - bound
        key = tuple(v for v in variables if v not in summed)
        alias = f"{known.view.name.lower()}_row"
        payload = product(components, (update, row_carrier(alias, known.view)))
        heavy += (Lookup(known.view.name, key, alias, (Into("u", payload),)),)
    if first.epsilon < 1 and second.epsilon < 1:
        heavy += (loop(second, first, HEAVY if second.parted else ""),)
    if first.epsilon == 1 and second.epsilon == 1:
        light = (loop(first, second, ""),)
    body = _by_part(made, first, first.by, heavy, light)
    added = tuple(Monomial((Part("u", c.name),)) for c in components)
    names = tuple(c.name for c in components)
    body = (Sum("u", components, body, (Add(RESULT, query.free, names, added),)),)
    for condition in reversed(ready):
        body = (If(condition, body),)
    return body


def _loop(made: _Plan, step: Step, bound: frozenset[str], body: Body, among: str = "") -> Loop:
    """A loop over the rows of a store, or of its heavy part, that agree with what is bound."""
    at = tuple(i for i, v in enumerate(step.key) if v in bound)
    if among:
        made.parts.setdefault(step.view, set()).add(at)
    elif at:
        made.indexes.setdefault(step.view, set()).add(at)
    return Loop(step.view, step.key, at, step.alias, body, among)


def _moved(made: _Plan, store: Store, key: tuple[str, ...], carrier: Carrier, sign: int, heavy: bool) -> Body:
    """Lines 8 to 11 of Figure 3: what a row of a store, in its heavy or its light part, adds to the auxiliary
    views; ``key`` are its variables, ``sign`` is -1 where it goes."""
    body: Body = ()
    for one in {a.view.name: a for a in made.auxiliaries.values()}.values():
        own, other = (one.heavy, one.light) if heavy else (one.light, one.heavy)
        if made.store(own) == store:
            added = _joined(made, one, own, other, carrier, sign)
            body += rename(added, dict(zip(own.atom.variables, key, strict=True)), {})
    return body


def _joined(made: _Plan, one: Auxiliary, own: Role, other: Role, carrier: Carrier, sign: int) -> Body:
    """A row of one side of an auxiliary view, joined with the part of the other side."""
    step = made.step(other)
    bound = frozenset(own.atom.variables)
    names = tuple(c.name for c in one.view.components)

    def finish(done: Join) -> Body:
        payload = tuple(
            replace(p, coefficient=sign * p.coefficient) for p in product(one.view.components, done.carriers)
        )
        return (Add(one.view.name, one.view.key, names, payload),)

    def within(bound: frozenset[str], carriers: tuple[Carrier, ...], steps: tuple[Step, ...]) -> Body:
        return nest(Join(bound, carriers, steps, one.pending), finish, made.indexes)

    heavy = other == one.heavy
    if bound.issuperset(step.key) or not heavy:
        body = within(bound, (carrier,), (step,))
        return _by_part(made, other, other.by, body if heavy else (), () if heavy else body)
    inner = within(bound | set(step.key), (carrier, row_carrier(step.alias, made.store(other).view)), ())
    return (_loop(made, step, bound, inner, HEAVY if other.parted else ""),)


def _balancing(made: _Plan) -> Balancing | None:
    """Figure 4: how values move from part to part, and how the auxiliary views are made anew."""
    if not made.values:
        return None
    partitions = tuple(_partition(made, store) for store in made.stores if store.view.name in made.values)
    auxiliaries = {a.view.name: a for a in made.auxiliaries.values()}
    recompute: Body = ()
    for one in auxiliaries.values():
        step = made.step(one.heavy)
        carrier = row_carrier(step.alias, made.store(one.heavy).view)
        body = _joined(made, one, one.heavy, one.light, carrier, 1)
        if one.heavy.parted:
            rows = _loop(made, step, frozenset(one.heavy.by), body)
            recompute += (Loop(made.values[step.view], one.heavy.by, (), f"{step.view.lower()}_value", (rows,)),)
        else:
            recompute += (_loop(made, step, frozenset(), body),)
    names = tuple(store.view.name for store in made.stores)
    return Balancing(names, partitions, tuple(auxiliaries), recompute)


def _partition(made: _Plan, store: Store) -> Partition:
    """The partition of a store. All rows of a value leave the old part before the first enters the new one, so that
    no view ever sees a value that is in both."""
    role = made.role(store)
    key = tuple(p.name for p in _names(made, store))[: len(store.view.key)]
    by = tuple(key[i] for i in role.places)
    name = store.view.name
    values = made.values[name]
    alias = f"{name.lower()}_moved"
    carrier = row_carrier(alias, store.view)
    step = Step(name, key, alias, carrier)
    subset = HEAVY if made.parts.get(name) else ""

    def rows(sign: int, heavy: bool) -> Body:
        body = _moved(made, store, key, carrier, sign, heavy)
        if heavy and subset:
            body = (Enter(alias, HEAVY), *body) if sign > 0 else (*body, Leave(alias, HEAVY))
        return (_loop(made, step, frozenset(by), body),) if body else ()

    def value(sign: int) -> Add:
        return Add(values, by, (COUNT,), (Monomial((), sign),))

    rise = (*rows(-1, False), value(1), *rows(1, True))
    sink = (*rows(-1, True), value(-1), *rows(1, False))
    if by:
        made.indexes.setdefault(name, set()).add(role.places)
    return Partition(name, role.places, values, subset, role.epsilon, by, rise, sink)


def _values_view(made: _Plan, store: Store) -> View:
    role = made.role(store)
    what = f"values that are heavy in {store.view.name}"
    return View(made.values[store.view.name], role.by, (Component(COUNT, "integer"),), definition=what)


def _stored(made: _Plan, store: Store) -> View:
    parts = made.parts.get(store.view.name)
    return replace(store.view, subsets=(Subset(HEAVY, tuple(sorted(parts))),) if parts else ())


def _bounds(made: _Plan) -> tuple[tuple[str, str], ...]:
    """The bounds of the paper, where they hold for every update."""
    if not made.values:
        return (("update", "O(N)"), ("delay", "O(1)"), ("space", _space(made)))
    slow = [r.name for r in made.cycle if not _is_aware(made, r)]
    exponent = max(max(r.epsilon, 1 - r.epsilon) for r in made.cycle if r.parted)
    update = f"O(N^{exponent:g}) amortised"
    if slow:
        update += f"; O(N) of {', '.join(slow)}, for as many groups may change"
    return (("update", update), ("delay", "O(1)"), ("space", _space(made)))


def _space(made: _Plan) -> str:
    exponents = [1 + min(1 - a.heavy.epsilon, a.light.epsilon) for a in made.auxiliaries.values()]
    return f"O(N^{max(exponents):g})" if exponents else "O(N)"
