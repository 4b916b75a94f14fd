"""Programs over three relations in a cycle, from two tables: the pairs of parts to store, and the cases of a sum.

An update of one relation adds to the result a sum over rows of the two others, the *first* and the *second* after it
in the cycle (``cycle.Role``). A strategy describes that sum in a ``PairTable``:

- ``pair``: which part of the first joins which part of the second in a stored view. A part (``Side``) is the rows of
  a relation whose values of some variables are heavy, or those whose values are light;
- ``cases``: which values are heavy or light, and how the sum is then computed: by a lookup of the pair, or by a loop
  over the rows of one relation with lookups in the other.

The program asks for each value that the update binds once whether it is heavy. A heavy value that the update does not
bind is found by a loop over the heavy rows of its relation, which are a subset of the stored rows.

Atoms over the same rows share a store, and its parts. The delta of such a store has a term for each set of its atoms
that take the update (``first_order``). A row that is on both sides of a pair also joins itself. Where the result is
grouped by a variable that an update does not bind, that update runs as under ``first_order``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from freshviews.expr.nodes import Call, Column, Expr, columns_of, substitute
from freshviews.plan.delta.first_order import Store, Terms, canonical, non_empty_subsets, term
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, nest
from freshviews.plan.eps.cycle import Cycle, Role, after, cycle_of, is_aware, stores_of
from freshviews.plan.eps.statements import COUNTED, Body, add_count, add_product, add_sum
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
from freshviews.program.heavy_light import Balancing, Partition
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.results import Held
from freshviews.program.rewrite import rename, scale
from freshviews.program.statements import Balance, Enter, If, Into, Leave, Lookup, Loop, Smaller
from freshviews.program.views import Subset, View
from freshviews.query.query import Query
from freshviews.types import BIGINT, BOOLEAN

Key = tuple[str, ...]
Places = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """The rows of an atom whose values of the variables ``by`` are heavy, or, if not ``heavy``, light."""

    role: Role
    by: Key
    heavy: bool

    def __str__(self) -> str:
        return f"{' '.join(self.by) or 'all'} {'heavy' if self.heavy else 'light'}"

    @property
    def places(self) -> Places:
        """The positions of ``by`` in the atom."""
        return tuple(self.role.atom.variables.index(v) for v in self.by)

    @property
    def epsilon(self) -> float:
        """The exponent of the threshold: 1 where all values are light, 0 where all are heavy.

        Values of all variables of the atom have one row each, so they are light.
        """
        return 1.0 if set(self.by) == set(self.role.atom.variables) else self.role.given

    @property
    def parted(self) -> bool:
        """Whether there are both heavy and light values."""
        return 0 < self.epsilon < 1

    @property
    def is_empty(self) -> bool:
        """Whether no row is ever on this side."""
        return self.epsilon == (1 if self.heavy else 0)

    @property
    def opposite(self) -> Side:
        """The other rows of the atom."""
        return replace(self, heavy=not self.heavy)

    def asks_as(self, other: Side) -> bool:
        """Whether both sides depend on the same values being heavy."""
        return self.role == other.role and self.by == other.by


@dataclass(frozen=True)
class SumCase:
    """One case of the sum that an update adds to the result.

    ``where``: the sides that the joined rows are on. ``outer``: the atoms over whose rows the loop may go. Of two, the
    one with the smaller slice at run time is taken. If it is empty, the sum is looked up in the pair.
    """

    where: tuple[Side, ...]
    outer: tuple[Role, ...] = ()


@dataclass(frozen=True)
class PairTable:
    """What a strategy chooses: functions of the two roles that follow the updated one.

    ``pair``: the two sides whose join is stored. ``cases``: disjoint cases that make up the whole sum; those with an
    empty side are left out. ``placed``: atoms share a store only if they are parted by the same columns.
    """

    pair: Callable[[Role, Role], tuple[Side, Side]]
    cases: Callable[[Role, Role], tuple[SumCase, ...]]
    placed: bool


@dataclass(frozen=True)
class Pair:
    """A stored view: the join of two sides, summed over the variables that only these two share."""

    view: View
    sides: tuple[Side, Side]
    pending: Pending

    @property
    def rows(self) -> float:
        """The exponent of the number of rows, for N rows stored.

        Two heavy sides: all pairs of heavy values. A heavy and a light one: for each stored row, the heavy values on
        the one side or the rows of a light value on the other.
        """
        first, second = (side.epsilon for side in self.sides)
        return 2 - first - second if self.sides[1].heavy else 1 + min(1 - first, second)


@dataclass(frozen=True)
class Parts:
    """How a store is parted by some positions of its key.

    ``values``: the view of the heavy values. ``subset``: the name of the subset of the heavy rows.
    """

    store: Store
    places: Places
    values: View
    subset: str
    epsilon: float


def plan(query: Query, epsilon: float | Mapping[str, float], table: PairTable) -> Program:
    """The program of a query over three relations by a table.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom. PlanError for other queries.
    """
    return _Writer(query, epsilon, table).program()


class _Writer:
    """Names the views of a program, then writes its triggers and its rebalancing.

    ``indexes`` (by view) and ``subset_indexes`` (by view and subset) collect what the loops need.
    """

    def __init__(self, query: Query, epsilon: float | Mapping[str, float], table: PairTable) -> None:
        self.cycle: Cycle = cycle_of(query, epsilon)
        atoms = {role.name: role.atom for role in self.cycle}
        self.query = replace(query, atoms=tuple(atoms[atom.name] for atom in query.atoms))
        self.table = table
        self.namer = Namer(self.query)
        self.stores = stores_of(self.query, self.cycle, self.namer, table.placed)
        self.indexes: Indexes = {}
        self.subset_indexes: dict[tuple[str, str], set[Places]] = {}
        self.pairs = self._pairs()
        self.parts = self._parts()
        self.total = self.namer.of("u", "u")

    # What is stored

    def _pairs(self) -> dict[str, Pair]:
        """The pairs that updates look up, by the name of the updated atom. Equal pairs are one."""
        query = self.query
        lifts = spanning_lifts(query)
        known: dict[object, Pair] = {}
        found: dict[str, Pair] = {}
        for role in self.cycle:
            first, second = after(self.cycle, role)
            sides = self.table.pair(first, second)
            if not is_aware(query, self.cycle, role) or any(side.is_empty for side in sides):
                continue
            variables = tuple(dict.fromkeys((*first.atom.variables, *second.atom.variables)))
            numbered: dict[str, Expr] = {v: Column(f"v{i}", BIGINT) for i, v in enumerate(variables)}
            sign = (
                *((self.store(s.role).view.name, tuple(map(variables.index, s.role.atom.variables))) for s in sides),
                *(substitute(c, numbered) for c in query.conditions),
                *((name, substitute(let.expr, numbered)) for name, let, _ in lifts),
            )
            if sign not in known:
                names = (first.name, second.name)
                view = View(
                    self.namer.view(f"V_{joined_name(names)}"),
                    _pair_key(role, first, second),
                    components_over(query, frozenset(names), frozenset(name for name, _, _ in lifts)),
                    definition=f"{' * '.join(names)}, {', '.join(map(str, sides))}",
                )
                known[sign] = Pair(view, sides, Pending(query.conditions, lifts))
            found[role.name] = known[sign]
        return found

    def _parts(self) -> tuple[Parts, ...]:
        """How stores are parted: by what pairs and cases depend on."""
        asked = [side for pair in self.views() for side in pair.sides]
        for role in self.cycle:
            if is_aware(self.query, self.cycle, role):
                asked += [s for case in self.table.cases(*after(self.cycle, role)) for s in case.where]
        parted = dict.fromkeys(
            (store.view.name, side.places, side.epsilon)
            for store in self.stores
            for side in asked
            if side.parted and self.store(side.role) == store
        )
        found = []
        for name, places, epsilon in parted:
            store = next(store for store in self.stores if store.view.name == name)
            key = tuple(store.view.key[i] for i in places)
            several = sum(other == name for other, _, _ in parted) > 1
            subset = "_".join(("heavy", *key)) if several else "heavy"
            values = self.namer.view(f"{name}_{subset}")
            what = f"values that are heavy in {name}"
            found.append(Parts(store, places, View(values, key, COUNTED, definition=what), subset, epsilon))
        return tuple(found)

    def views(self) -> list[Pair]:
        """The stored pairs, each once."""
        return list({pair.view.name: pair for pair in self.pairs.values()}.values())

    def store(self, role: Role) -> Store:
        return next(store for store in self.stores if role.atom in store.atoms)

    def part(self, side: Side) -> Parts:
        store = self.store(side.role)
        return next(p for p in self.parts if p.store == store and p.places == side.places)

    def step(self, role: Role) -> Step:
        view = self.store(role).view
        alias = self.namer.row(role.name)
        return Step(view.name, role.atom.variables, alias, row_carrier(alias, view))

    def program(self) -> Program:
        for _ in range(2):  # The first pass finds out which subsets are looped over.
            triggers = tuple(map(self._trigger, self.stores))
            balancing = self._balancing()
        views = (
            *(replace(store.view, subsets=self._subsets(store)) for store in self.stores),
            *(parts.values for parts in self.parts),
            *(pair.view for pair in self.views()),
            View(RESULT, self.query.free, all_components(self.query), journal=True, definition="the result"),
        )
        return Program(
            self.query.name,
            self.query.free,
            tuple(replace(v, indexes=tuple(sorted(self.indexes.get(v.name, ())))) for v in views),
            triggers,
            Held(RESULT),
            strategy="ivm_eps",
            bounds=self._bounds(),
            balancing=balancing,
        )

    def _subsets(self, store: Store) -> tuple[Subset, ...]:
        return tuple(
            Subset(parts.subset, tuple(sorted(self.subset_indexes[store.view.name, parts.subset])))
            for parts in self.parts
            if parts.store == store and self._is_looped(parts)
        )

    def _is_looped(self, parts: Parts) -> bool:
        """Whether some loop goes over the heavy rows, so that they are marked."""
        return (parts.store.view.name, parts.subset) in self.subset_indexes

    def _bounds(self) -> tuple[tuple[str, str], ...]:
        update = "O(N)"
        if self.parts:
            update = f"O(N^{max(max(p.epsilon, 1 - p.epsilon) for p in self.parts):g}) amortised"
            slow = [r.name for r in self.cycle if not is_aware(self.query, self.cycle, r)]
            if slow:
                update += f"; O(N) of {', '.join(slow)}, for as many groups may change"
        space = max([1.0, *(pair.rows for pair in self.views())])
        return (("update", update), ("delay", "O(1)"), ("space", "O(N)" if space == 1 else f"O(N^{space:g})"))

    # Triggers

    def _parameters(self, store: Store) -> tuple[Parameter, ...]:
        """The parameters of a store's trigger: variables of the query where it is one atom's, else of no atom."""
        parameters = parameters_of(self.query, store.atoms[0])
        if len(store.atoms) == 1:
            return parameters
        return self.namer.columns(parameters)

    def _trigger(self, store: Store) -> Trigger:
        """An update of a store: it changes the result, then the pairs, then the store, then the parts."""
        first = store.atoms[0]
        parameters = self._parameters(store)
        names = tuple(p.name for p in parameters)
        key = names[: len(first.variables)]
        terms: dict[Body, int] = {}
        for updated in non_empty_subsets(store.atoms):
            role = next(r for r in self.cycle if r.atom == updated[0])
            if len(updated) == 1 and is_aware(self.query, self.cycle, role):
                body = rename(self._sum(role), dict(zip(role.atom.variables, key, strict=True)), {})
            else:
                body = term(self.query, updated, names, self.stores, Terms(self.indexes), self.namer)
            if len(store.atoms) > 1:
                body = canonical(body, frozenset(names), self.namer)
            terms[body] = terms.get(body, 0) + 1
        body = tuple(s for one, times in terms.items() for s in scale(one, times))
        carrier = update_carrier(self.query, first)
        body += self._paired(store, key, carrier)
        alias = self._name(store.view, "new")
        entering: Body = ()
        for parts in self.parts:
            if parts.store == store and self._is_looped(parts):
                value = tuple(key[i] for i in parts.places)
                enter = (Enter(alias, parts.subset),)
                entering += (Lookup(parts.values.name, value, self._name(parts.values, "asked"), enter),)
        add = add_product(store.view, (carrier,))
        body += (replace(add, key=key, appear=entering, alias=alias if entering else ""),)
        if self.parts:
            body += (Balance(store.view.name, key),)
        return Trigger(first.relation, parameters, first.filters, body)

    def _ask(self, side: Side, value: Key, heavy: Body, light: Body, alias: str = "") -> Body:
        """Run ``heavy`` or ``light``, by whether a value is heavy in the store of a side."""
        if not side.parted:
            return light if side.epsilon == 1 else heavy
        if not heavy and not light:
            return ()
        return (Lookup(self.part(side).values.name, value, alias or self._alias(side), heavy, light),)

    def _alias(self, side: Side) -> str:
        """The name of a row of the heavy values of a side; those of the two sides of a pair may be in one view."""
        wanted = f"{side.role.name.lower()}_{self.part(side).subset}_row"
        return self.namer.of(("heavy", side.role.name, side.by), wanted)

    def _name(self, view: View, mark: str) -> str:
        """The name of a row of a view, other than those that joins use."""
        return self.namer.of((mark, view.name), f"{view.name.lower()}_{mark}")

    def _where(self, side: Side, value: Key, body: Body) -> Body:
        """Run ``body`` for a value that is on a side."""
        return self._ask(side, value, *((body, ()) if side.heavy else ((), body)))

    def _sum(self, role: Role) -> Body:
        """What an update of one atom adds to the result, case by case."""
        query = self.query
        bound = frozenset(role.atom.variables)
        ready = tuple(c for c in query.conditions if bound.issuperset(columns_of(c)))
        pending = Pending(tuple(c for c in query.conditions if c not in ready), spanning_lifts(query))

        def by_case(cases: list[SumCase]) -> Body:
            asked = next((s for case in cases for s in case.where if s.parted and bound.issuperset(s.by)), None)
            if asked is None:
                return tuple(s for case in cases for s in self._case(role, case, pending))
            branches: dict[bool, list[SumCase]] = {True: [], False: []}
            for case in cases:
                side = next(s for s in case.where if s.asks_as(asked))
                branches[side.heavy].append(replace(case, where=tuple(s for s in case.where if s != side)))
            return self._ask(asked, asked.by, by_case(branches[True]), by_case(branches[False]))

        cases = self.table.cases(*after(self.cycle, role))
        body: Body = (add_sum(query, self.total, by_case([c for c in cases if not any(s.is_empty for s in c.where)])),)
        for condition in reversed(ready):
            body = (If(condition, body),)
        return body

    def _case(self, role: Role, case: SumCase, pending: Pending) -> Body:
        """One case: a lookup of the pair, or a loop over one of the other atoms and lookups in the other."""
        first, second = after(self.cycle, role)
        bound = frozenset(role.atom.variables)
        update = update_carrier(self.query, role.atom)
        components = all_components(self.query)
        if not case.outer:
            view = self.pairs[role.name].view
            alias = self.namer.row(view.name)
            payload = product(components, (update, row_carrier(alias, view)))
            return (Lookup(view.name, _pair_key(role, first, second), alias, (Into(self.total, payload),)),)

        def loop(outer: Role, inner: Role) -> Loop:
            step = self.step(outer)
            carriers = (update, row_carrier(step.alias, self.store(outer).view))
            body = nest(
                Join(bound | set(step.key), carriers, (self.step(inner),), pending),
                lambda done: (Into(self.total, product(components, done.carriers)),),
                self.indexes,
            )
            among = next((self.part(s).subset for s in case.where if s.role == outer and s.heavy and s.parted), "")
            return self._loop(step, bound, body, among)

        loops = tuple(loop(outer, second if outer == first else first) for outer in case.outer)
        return (Smaller(*loops),) if len(loops) == 2 else loops

    def _loop(self, step: Step, bound: frozenset[str], body: Body, among: str = "") -> Loop:
        """A loop over the rows of a store, or of a subset of it, that agree with the bound variables."""
        at = tuple(i for i, v in enumerate(step.key) if v in bound)
        if among:
            self.subset_indexes.setdefault((step.view, among), set()).add(at)
        elif at:
            self.indexes.setdefault(step.view, set()).add(at)
        return Loop(step.view, step.key, at, step.alias, body, among)

    # Pairs

    def _paired(self, store: Store, key: Key, carrier: Carrier) -> Body:
        """What an update of a store, with the variables ``key``, adds to the pairs: on each side, and on both."""
        pieces = [
            (side, self._joined(pair, at, key, carrier, 1))
            for pair in self.views()
            for at, side in enumerate(pair.sides)
            if self.store(side.role) == store
        ]
        body: Body = ()
        for places, group in groupby(pieces, key=lambda piece: piece[0].places):
            same = list(group)
            side = same[0][0]
            heavy, light = (tuple(s for own, one in same if own.heavy == part for s in one) for part in (True, False))
            alias = self._name(self.part(side).values, "asked") if side.parted else ""
            body += self._ask(side, tuple(key[i] for i in places), heavy, light, alias)
        for pair in self.views():
            if all(self.store(side.role) == store for side in pair.sides):
                both = self._both(pair, key, carrier, 1)
                for side in pair.sides:
                    both = self._where(side, tuple(key[i] for i in side.places), both)
                body += _where_equal(pair, key, both)
        return body

    def _joined(self, pair: Pair, at: int, key: Key, carrier: Carrier, sign: int) -> Body:
        """A row on one side of a pair, with the variables ``key``, joined with the rows on the other side."""
        own, other = pair.sides[at], pair.sides[1 - at]
        step = self.step(other.role)
        bound = frozenset(own.role.atom.variables)

        def within(bound: frozenset[str], carriers: tuple[Carrier, ...], steps: tuple[Step, ...]) -> Body:
            join = Join(bound, carriers, steps, pair.pending)
            return nest(join, lambda done: (add_product(pair.view, done.carriers, sign),), self.indexes)

        if other.heavy and not bound.issuperset(step.key):
            carriers = (carrier, row_carrier(step.alias, self.store(other.role).view))
            among = self.part(other).subset if other.parted else ""
            body: Body = (self._loop(step, bound, within(bound | set(step.key), carriers, ()), among),)
        else:
            body = self._where(other, other.by, within(bound, (carrier,), (step,)))
        return rename(body, dict(zip(own.role.atom.variables, key, strict=True)), {})

    def _both(self, pair: Pair, key: Key, carrier: Carrier, sign: int) -> Body:
        """The product of a row with itself; none where a row cannot be on both sides, as one is heavy, one light."""
        if pair.sides[0].heavy != pair.sides[1].heavy:
            return ()
        names = _names_on_both(pair, key)
        join = Join(frozenset(names), (carrier, carrier), (), pair.pending)
        return rename(nest(join, lambda done: (add_product(pair.view, done.carriers, sign),), self.indexes), names, {})

    # Rebalancing

    def _balancing(self) -> Balancing | None:
        """How values move between parts, and how the pairs are recomputed from the rows of their first sides."""
        if not self.parts:
            return None
        recompute: Body = ()
        for pair in self.views():
            side = pair.sides[0]
            step = self.step(side.role)
            carrier = row_carrier(step.alias, self.store(side.role).view)
            body = self._joined(pair, 0, side.role.atom.variables, carrier, 1)
            if side.parted:
                rows = self._loop(step, frozenset(side.by), body)
                recompute += (Loop(self.part(side).values.name, side.by, (), self._alias(side), (rows,)),)
            else:
                recompute += (self._loop(step, frozenset(), body),)
        names = tuple(store.view.name for store in self.stores)
        partitions = tuple(map(self._partition, self.parts))
        return Balancing(names, partitions, tuple(pair.view.name for pair in self.views()), recompute)

    def _partition(self, parts: Parts) -> Partition:
        """Move a value from one part to the other.

        A row of the value joins the other side as it is without the value. So where the other side is light, its rows
        join while the value is heavy; where the other side is heavy, before the value becomes heavy, or after it is
        light again. A row of the value on the same other side joins by the subset, which rows enter one by one.
        """
        store = parts.store
        key = tuple(p.name for p in self._parameters(store))[: len(store.view.key)]
        by = tuple(key[i] for i in parts.places)
        alias = self._name(store.view, "moved")
        carrier = row_carrier(alias, store.view)
        subset = parts.subset if self._is_looped(parts) else ""
        both_heavy = all(side.heavy for pair in self.views() for side in pair.sides)

        def rows(sign: int, heavy: bool) -> Body:
            """The rows of the value are added to one of its sides in every pair, or taken away."""
            body: Body = ()
            for pair in self.views():
                own = [
                    at for at, s in enumerate(pair.sides) if s.parted and self.part(s) == parts and s.heavy == heavy
                ]
                for at in own:
                    body += self._joined(pair, at, key, carrier, sign)
                if len(own) == 2:
                    body += _where_equal(pair, key, self._both(pair, key, carrier, sign))
            if heavy and subset:
                body = (*body, Enter(alias, subset)) if sign > 0 else (Leave(alias, subset), *body)
            step = Step(store.view.name, key, alias, carrier)
            return (self._loop(step, frozenset(by), body),) if body else ()

        marked, unmarked = (add_count(parts.values, sign, by) for sign in (1, -1))
        if both_heavy:
            rise, sink = (*rows(1, True), marked), (unmarked, *rows(-1, True))
        else:
            rise, sink = (*rows(-1, False), marked, *rows(1, True)), (*rows(-1, True), unmarked, *rows(1, False))
        if by:
            self.indexes.setdefault(store.view.name, set()).add(parts.places)
        return Partition(store.view.name, parts.places, parts.values.name, subset, parts.epsilon, by, rise, sink)


def _pair_key(role: Role, first: Role, second: Role) -> Key:
    """The key of the pair that an update of ``role`` looks up: all variables but those only the other two share."""
    variables = dict.fromkeys((*first.atom.variables, *second.atom.variables))
    summed = set(first.other) - set(role.atom.variables)
    return tuple(v for v in variables if v not in summed)


def _names_on_both(pair: Pair, key: Key) -> dict[str, str]:
    """The variables of both sides where one row, with the variables ``key``, is on both."""
    names: dict[str, str] = {}
    for side in pair.sides:
        for variable, name in zip(side.role.atom.variables, key, strict=True):
            names.setdefault(variable, name)
    return names


def _where_equal(pair: Pair, key: Key, body: Body) -> Body:
    """Run ``body`` where one row can be on both sides: its values of the shared variables are equal."""
    if not body:
        return ()
    names = _names_on_both(pair, key)
    unequal = {
        (names[v], name)
        for side in pair.sides
        for v, name in zip(side.role.atom.variables, key, strict=True)
        if names[v] != name
    }
    for names_of_one in sorted(unequal):
        same = Call("null_safe_eq", tuple(Column(n, BIGINT, False) for n in names_of_one), BOOLEAN, False)
        body = (If(same, body),)
    return body
