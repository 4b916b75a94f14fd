"""Makes programs from tables of cases. A *case* says which values are heavy (have many rows) and which are light.

An update adds a sum to the result. This sum is split into one sum per case. For example, if ``a`` is light, an update
of R(a, b) loops over the few rows of T(c, a).

Source: Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from freshviews.expr.nodes import Call, Column, Expr, substitute
from freshviews.plan.delta.first_order import Store, Terms, canonical, non_empty_subsets, term
from freshviews.plan.delta.nest import Pending
from freshviews.plan.leaves import (
    Carrier,
    add_count,
    add_to,
    all_components,
    components_over,
    leaf_view,
    parameters_of,
    product,
    result_view,
    row_carrier,
    sum_carrier,
    under,
    update_carrier,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.program.heavy_light import Balancing, Partition, Procedure
from freshviews.program.payload import COUNTED, MULTIPLICITY
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.results import Held, Result
from freshviews.program.rewrite import rename, scale
from freshviews.program.statements import Add, Balance, Body, Into, Lookup, Loop, Move, Perform, Smaller, Sum
from freshviews.program.structure import visit
from freshviews.program.views import Subset, View
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN

Key = tuple[str, ...]
Places = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Values of the variables ``key``: heavy if heavy in one of ``atoms``, else light."""

    key: Key
    atoms: tuple[str, ...]


Where = Mapping[Part, bool]
"""The parts in which the values of a row are heavy (True) and light (False)."""
Test = tuple[str, Key]
"""A view of heavy values, and the variables whose value may be in it."""
Asked = Mapping[Test, bool]
Finish = Callable[[tuple[Carrier, ...]], Body]
"""Makes the innermost statements of a join from the carriers of the joined rows."""


@dataclass(frozen=True)
class Case:
    """The join of ``factors`` (names of atoms and of views) over the rows whose values are heavy or light as given."""

    where: Where
    factors: tuple[str, ...]


@dataclass(frozen=True)
class Auxiliary:
    """A view: the sum of the join of ``atoms``, by ``key``, over the disjoint cases in ``where``.

    ``short``: by atom, equivalent cases that take fewer steps for an update of it.
    """

    name: str
    key: Key
    atoms: tuple[str, ...]
    where: tuple[Where, ...]
    short: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The cases of a query. ``result``: by updated atom, the cases of what the update adds to the result. The update
    of an atom that it lacks runs as under ``first_order``."""

    auxiliaries: tuple[Auxiliary, ...]
    result: Mapping[str, tuple[Case, ...]]

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts that the cases name."""
        cases = [where for one in self.auxiliaries for where in one.where]
        cases += [case.where for found in self.result.values() for case in found]
        return tuple(dict.fromkeys(part for where in cases for part in where))


@dataclass(frozen=True)
class Beside:
    """Further statements of a store's trigger: those ``before`` the views change, and those for a row of the store,
    known by ``alias``, that appears or vanishes."""

    before: Body = ()
    appear: Body = ()
    vanish: Body = ()
    alias: str = ""


@dataclass(frozen=True)
class Partitioned:
    """A partition of a store by some positions of its key. ``values``: the view of the heavy values. ``subset``: the
    name of the subset of the heavy rows. ``value``: the variables of a value that moves."""

    store: Store
    places: Places
    values: View
    subset: str
    epsilon: float
    value: Key


@dataclass(frozen=True)
class Heavy:
    """The heavy values of a part: those of its only partition, or how many partitions a value is heavy in."""

    view: View
    partitions: tuple[Partitioned, ...]

    @property
    def epsilon(self) -> float:
        return max(one.epsilon for one in self.partitions)

    @property
    def only(self) -> Partitioned | None:
        return self.partitions[0] if len(self.partitions) == 1 else None


@dataclass(frozen=True)
class Factor:
    """An atom or an auxiliary view in a join: its view, the variables of its key, and its row as a carrier.

    ``joined``: the variables of a view's atoms. Conditions and lifts over these have been applied.
    """

    view: View
    key: Key
    carrier: Carrier
    joined: frozenset[str] = frozenset()

    @property
    def alias(self) -> str:
        assert self.carrier.alias is not None
        return self.carrier.alias


@dataclass(frozen=True)
class _Join:
    """State of a join. ``asked``: tests that are still to be made. ``light``: values that are known to be light."""

    bound: frozenset[str]
    factors: tuple[Factor, ...]
    asked: Asked
    light: frozenset[Test]
    carriers: tuple[Carrier, ...]
    pending: Pending
    finish: Finish


class Cases:
    """Writes the views, triggers and rebalancing of a table of cases.

    ``epsilon``: the exponents by atom. ``stores``: by default one for each atom. ``added`` gets the name of an
    auxiliary view and each Add to it, and may return an Add that does more.

    A ``Part`` names variables and relations. A value of the variables is heavy if one of the relations has many rows
    with the value. There are few heavy values, and a light value has few rows in each relation.

    A join may loop over the rows of a light value, over the rows with a heavy value, or over the heavy values. It takes
    the loop with the least bound on its length. A loop over all rows that agree with the bound variables is always
    possible. If two loops bind the same variables, the program takes the shorter loop at run time.

    If a value becomes heavy or light, each view loses the rows of the value's old case and gains the rows of its new
    case (``turn_``). A major rebalancing recomputes the views from the stored rows.

    Atoms over the same rows may share a store, and its parts. Then a view or the result changes by a sum over sets of
    atoms, as in ``first_order``.
    """

    def __init__(
        self,
        query: Query,
        table: Table,
        epsilon: Mapping[str, float],
        namer: Namer,
        stores: tuple[Store, ...] = (),
        added: Callable[[str, Add], Add] = lambda _, add: add,
    ) -> None:
        self.query = query
        self.table = table
        self.epsilon = epsilon
        self.namer = namer
        self.stores = stores or tuple(Store(leaf_view(query, a, namer.view(a.name)), (a,)) for a in query.atoms)
        self.added = added
        self.pending = Pending.of(query)
        self.store = {atom.name: store for store in self.stores for atom in store.atoms}
        self.partitions = self._partitions()
        self.heavy = self._heavy()
        self.tested = {one.view.name: one for one in self.heavy.values()}
        self.factors: dict[str, Factor] = {}
        for atom in query.atoms:
            view = self.store[atom.name].view
            self.factors[atom.name] = Factor(view, atom.variables, row_carrier(namer.row(atom.name), view))
        self.auxiliaries = self._auxiliaries()

    # What is stored

    def names(self, store: Store) -> Key:
        """The variables of an update of a store: those of its only atom, or its columns."""
        return tuple(p.name for p in self._parameters(store))[: len(store.view.key)]

    def _parameters(self, store: Store) -> tuple[Parameter, ...]:
        own = parameters_of(self.query, store.atoms[0])
        return own if len(store.atoms) == 1 else self.namer.columns(own)

    def _partitions(self) -> tuple[Partitioned, ...]:
        found = []
        for store in self.stores:
            parted = [_places(part, a) for part in self.table.parts for a in store.atoms if a.name in part.atoms]
            name, key, names = store.view.name, store.view.key, self.names(store)
            for places in dict.fromkeys(parted):
                own = tuple(key[i] for i in places)
                subset = "heavy" if len(set(parted)) == 1 else "_".join(("heavy", *own))
                view = View(self.namer.view(f"{name}_{subset}"), own, COUNTED, definition=f"heavy in {name}")
                value = tuple(names[i] for i in places)
                found.append(Partitioned(store, places, view, subset, self.epsilon[store.atoms[0].name], value))
        return tuple(found)

    def _heavy(self) -> dict[Part, Heavy]:
        known: dict[tuple[Partitioned, ...], Heavy] = {}
        found: dict[Part, Heavy] = {}
        for part in self.table.parts:
            places = {(self.store[a.name], _places(part, a)) for a in self.query.atoms if a.name in part.atoms}
            own = tuple(one for one in self.partitions if (one.store, one.places) in places)
            if own not in known:
                view = own[0].values
                if len(own) > 1:
                    what = f"in how many tables {', '.join(part.key)} is heavy"
                    view = View(self.namer.view(f"heavy_{'_'.join(part.key)}"), part.key, COUNTED, definition=what)
                known[own] = Heavy(view, own)
            found[part] = known[own]
        return found

    def _auxiliaries(self) -> tuple[Auxiliary, ...]:
        """The auxiliary views, each a factor. Equal ones over shared stores are stored once."""
        known: dict[object, View] = {}
        found = []
        for one in self.table.auxiliaries:
            atoms = [self.query.atom(name) for name in one.atoms]
            variables = tuple(dict.fromkeys((*one.key, *(v for a in atoms for v in a.variables))))
            own = self.pending.where(frozenset(variables).issuperset)
            numbers = {v: f"v{i}" for i, v in enumerate(variables)}
            identity = (
                tuple((self.store[a.name].view.name, _named(a.variables, numbers)) for a in atoms),
                _named(one.key, numbers),
                tuple(frozenset(self._tests(where, numbers)) for where in one.where),
                _renamed(own, numbers),
            )
            if identity not in known:
                components = components_over(self.query, frozenset(one.atoms), frozenset(x for x, _, _ in own.lifts))
                what = f"{' * '.join(one.atoms)}, {' or '.join(map(_in_words, one.where))}"
                known[identity] = View(self.namer.view(one.name), one.key, components, definition=what)
                found.append(one)
            view = known[identity]
            carrier = row_carrier(self.namer.row(view.name), view)
            self.factors[one.name] = Factor(view, one.key, carrier, frozenset(variables))
        return tuple(found)

    def _views(self, loops: Mapping[tuple[str, str], set[Places]]) -> tuple[View, ...]:
        views = [
            *(store.view for store in self.stores),
            *(one.values for one in self.partitions),
            *(one.view for one in self.tested.values() if one.only is None),
            *(self.factors[one.name].view for one in self.auxiliaries),
        ]
        found = []
        for view in views:
            own = {among: tuple(sorted(at)) for (name, among), at in sorted(loops.items()) if name == view.name}
            subsets = tuple(Subset(among, at) for among, at in own.items() if among)
            found.append(replace(view, indexes=own.get("", ()), subsets=subsets))
        return tuple(found)

    # Programs

    def held(self, bounds: tuple[tuple[str, str], ...]) -> Program:
        """The program whose result is stored."""
        program = self.program(Held(RESULT), bounds, lambda store: Beside(self._result(store)))
        return replace(program, views=(*program.views, result_view(self.query)))

    def program(
        self,
        result: Result,
        bounds: tuple[tuple[str, str], ...],
        beside: Callable[[Store], Beside],
        first: Body = (),
    ) -> Program:
        """The program. Views are recomputed after the statements ``first``."""
        written = [(store, beside(store), self._updated(store)) for store in self.stores]
        turns = tuple(
            Procedure(self._turn(one), one.partitions[0].value, body)
            for one in self.tested.values()
            if (body := self._changes_of_turn(one))
        )
        recompute = (*first, *self._recomputed())
        bodies = [body for _, more, changes in written for body in (more.before, more.appear, more.vanish, changes)]
        loops: dict[tuple[str, str], set[Places]] = {}
        for statement in visit(tuple(s for body in (*bodies, *(t.body for t in turns), recompute) for s in body)):
            if isinstance(statement, Loop) and (statement.bound or statement.among):
                loops.setdefault((statement.view, statement.among), set()).add(statement.bound)
        marked = [one for one in self.partitions if (one.store.view.name, one.subset) in loops]
        triggers = tuple(self._trigger(*one, [p for p in marked if p.store is one[0]]) for one in written)
        balancing = None
        if self.partitions:
            for one in self.partitions:
                if one.places:
                    loops.setdefault((one.store.view.name, ""), set()).add(one.places)
            names = frozenset(turn.name for turn in turns)
            partitions = tuple(self._partition(one, one in marked, names) for one in self.partitions)
            emptied = (name for name, heavy in self.tested.items() if heavy.only is None)
            auxiliary = (*emptied, *(self.factors[one.name].view.name for one in self.auxiliaries))
            stores = tuple(store.view.name for store in self.stores)
            balancing = Balancing(stores, partitions, auxiliary, recompute, turns)
        query, views = self.query, self._views(loops)
        return Program(query.name, query.free, views, triggers, result, "ivm_eps", bounds, balancing=balancing)

    def _trigger(self, store: Store, beside: Beside, changes: Body, marked: list[Partitioned]) -> Trigger:
        """The statements ``before``, then changes of the views, the store, its heavy rows and the parts."""
        first, key = store.atoms[0], self.names(store)
        alias = beside.alias or self.namer.marked(store.view.name, "new")
        enters = tuple(
            Lookup(one.values.name, one.value, self._alias((one.values.name, one.value)), (Move(alias, one.subset, 1),))
            for one in marked
        )
        add = add_to(store.view, (update_carrier(self.query, first),), key=key)
        if enters or beside.appear or beside.vanish:
            add = replace(add, alias=alias, appear=(*beside.appear, *enters), vanish=beside.vanish)
        body = (*beside.before, *changes, add)
        if self.partitions:
            body += (Balance(store.view.name, key),)
        return Trigger(first.relation, self._parameters(store), first.filters, body)

    def _updated(self, store: Store) -> Body:
        """The changes of auxiliary views by an update of a store."""
        names, carrier = self.names(store), update_carrier(self.query, store.atoms[0])
        found: dict[tuple[Expr, ...], list[_Join]] = {}
        for one in self.auxiliaries:
            for updated in non_empty_subsets(tuple(a for a in store.atoms if a.name in one.atoms)):
                named, equal = _identified([(atom.variables, names) for atom in updated])
                rest = tuple(name for name in one.atoms if all(atom.name != name for atom in updated))
                cases = tuple(Case(where, rest) for where in one.where)
                if len(updated) == 1:
                    cases = one.short.get(updated[0].name, cases)
                joins = found.setdefault(equal, [])
                for case in cases:
                    joins += self._joins(case, named, (carrier,) * len(updated), self._adder(one, named, 1))
        return tuple(s for equal, joins in found.items() for s in _where(equal, self._by_case(joins)))

    def _adder(self, one: Auxiliary, named: Mapping[str, str], sign: int) -> Finish:
        """Add the joined rows to a view, or take them out where ``sign`` is -1."""
        view, key = self.factors[one.name].view, _named(one.key, named)
        return lambda carriers: (self.added(one.name, add_to(view, carriers, sign, key)),)

    def _result(self, store: Store) -> Body:
        """The additions of an update of a store to a stored result."""
        names = tuple(p.name for p in self._parameters(store))
        components, total = all_components(self.query), self.namer.of("u", "u")
        add = add_to(result_view(self.query), (sum_carrier(total, components),))
        terms: dict[Body, int] = {}
        for updated in non_empty_subsets(store.atoms):
            atom = updated[0]
            if len(updated) == 1 and atom.name in self.table.result:
                body = self.change(
                    atom,
                    lambda carriers: (Into(total, product(components, carriers)),),
                    whole=lambda body: (Sum(total, components, body, (add,)),),
                )
                body = rename(body, dict(zip(atom.variables, names, strict=False)), {})
            else:
                body = term(self.query, updated, names, self.stores, Terms({}), self.namer)
            if len(store.atoms) > 1:
                body = canonical(body, frozenset(names), self.namer)
            terms[body] = terms.get(body, 0) + 1
        return tuple(s for body, times in terms.items() for s in scale(body, times))

    def change(
        self, atom: Atom, finish: Finish, update: bool = True, whole: Callable[[Body], Body] = lambda body: body
    ) -> Body:
        """The cases of the result for an update of an atom, each with ``finish``. ``update``: its multiplicity and
        lifts are factors of the payload. ``whole`` may put a statement around all of them."""
        ready = self.pending.where(frozenset(atom.variables).issuperset).conditions
        pending = replace(self.pending, conditions=tuple(c for c in self.pending.conditions if c not in ready))
        carriers = (update_carrier(self.query, atom),) if update else ()
        named = dict(zip(atom.variables, atom.variables, strict=True))
        joins = [j for case in self.table.result[atom.name] for j in self._joins(case, named, carriers, finish)]
        return _where(ready, whole(self._by_case([replace(join, pending=pending) for join in joins])))

    # Joins

    def _tests(self, where: Where, named: Mapping[str, str]) -> list[tuple[Test, bool]]:
        return [((self.heavy[part].view.name, _named(part.key, named)), heavy) for part, heavy in where.items()]

    def _joins(
        self,
        case: Case,
        named: Mapping[str, str],
        carriers: tuple[Carrier, ...],
        finish: Finish,
        light: frozenset[Test] = frozenset(),
    ) -> list[_Join]:
        """The join of a case, under the names of the bound variables; none if a value would be heavy and light."""
        tests = self._tests(case.where, named)
        asked = dict(tests)
        if any(asked[test] != heavy for test, heavy in tests):
            return []
        factors = tuple(
            replace(f, key=_named(f.key, named), joined=frozenset(_named(tuple(f.joined), named)))
            for f in (self.factors[name] for name in case.factors)
        )
        pending = _renamed(self.pending, named)
        return [_Join(frozenset(named.values()), factors, asked, light, carriers, pending, finish)]

    def _by_case(self, joins: list[_Join]) -> Body:
        """All the joins. Each value that is bound is tested once."""
        test = next((t for join in joins for t in join.asked if join.bound.issuperset(t[1])), None)
        if test is None:
            return tuple(s for join in joins for s in self._step(join)[0])
        heavy, light = (
            self._by_case([_after_test(join, test) for join in joins if join.asked.get(test) is side])
            for side in (True, False)
        )
        others = self._by_case([join for join in joins if test not in join.asked])
        return (*others, Lookup(*test, self._alias(test), heavy, light))

    def _alias(self, test: Test) -> str:
        """The name of a row of heavy values."""
        return self.namer.of(("heavy", test), f"is_heavy_{'_'.join(test[1])}")

    def _step(self, join: _Join) -> tuple[Body, float]:
        """Statements that join the remaining factors, and the exponent of the steps that they take."""
        costs: list[float] = []

        def go_on(ready: _Join) -> Body:
            body, cost = self._step(ready)
            costs.append(cost)
            return body

        applied = join.pending.applied(join, go_on)
        if applied is not None:
            return applied, costs[0]
        test = next((t for t in join.asked if join.bound.issuperset(t[1])), None)
        if test is not None:
            inner, cost = self._step(_after_test(join, test))
            sides = (inner, ()) if join.asked[test] else ((), inner)
            return (Lookup(*test, self._alias(test), *sides),), cost
        for factor in join.factors:
            if join.bound.issuperset(factor.key):
                inner, cost = self._step(_with_joined(join, factor))
                return (Lookup(factor.view.name, factor.key, factor.alias, inner),), cost
        return self._loops(join) if join.factors else (join.finish(join.carriers), 0.0)

    def _loops(self, join: _Join) -> tuple[Body, float]:
        """A loop over the option with the smallest bound; of two that bind the same, over the smaller at run time.

        An option is the exponent of its rows, and one of: the rows of a factor, its rows with a heavy value, or the
        heavy values.
        """
        groups: dict[frozenset[str], list[tuple[float, Factor | None, Test | None]]] = {}
        touching = [f for f in join.factors if join.bound.intersection(f.key)] or list(join.factors)
        wanted = [test for test, heavy in join.asked.items() if heavy]
        for factor in touching:
            new = frozenset(factor.key) - join.bound
            among = next((test for test in wanted if self._has_subset(test, factor)), None)
            rows = self._rows(factor, join)
            if among is not None and new.issubset(among[1]):
                rows = min(rows, 1 - self.tested[among[0]].epsilon)
            groups.setdefault(new, []).append((rows, factor, among))
        for test in wanted:
            new = frozenset(test[1]) - join.bound
            if new in groups and not any(self._has_subset(test, factor) for factor in touching):
                groups[new].append((1 - self.tested[test[0]].epsilon, None, test))
        least = min(groups.values(), key=lambda group: (min(o[0] for o in group), len(groups) - len(group)))
        chosen = sorted(least, key=lambda option: option[0])[:2]
        if None not in chosen[0][1:]:
            chosen = chosen[:1]
        loops, costs = zip(*(self._loop(join, factor, test) for _, factor, test in chosen), strict=True)
        return ((Smaller(*loops),) if len(loops) == 2 else loops), chosen[0][0] + max(costs)

    def _is_partitioned_by(self, test: Test, factor: Factor) -> bool:
        """True if the store of a factor is partitioned by the value of a test."""
        return any(
            one.store.view.name == factor.view.name and tuple(factor.key[i] for i in one.places) == test[1]
            for one in self.tested[test[0]].partitions
        )

    def _has_subset(self, test: Test, factor: Factor) -> bool:
        """True if the rows of a factor with a heavy value can be a subset: no other store is partitioned by the
        value."""
        return self.tested[test[0]].only is not None and self._is_partitioned_by(test, factor)

    def _rows(self, factor: Factor, join: _Join) -> float:
        """The exponent of the number of rows of a factor that agree with the bound variables."""
        if factor.joined:
            return 1 - max(self.epsilon.values())
        light = (test for test in join.light if self._is_partitioned_by(test, factor))
        return min([1.0, *(self.tested[test[0]].epsilon for test in light)])

    def _loop(self, join: _Join, factor: Factor | None, test: Test | None) -> tuple[Loop, float]:
        among = ""
        if test is not None:
            view, key, alias = *test, self._alias(test)
            only = self.tested[view].only
            among = only.subset if only is not None else ""
            join = _after_test(join, test)
        bound = join.bound
        if factor is not None:
            view, key, alias = factor.view.name, factor.key, factor.alias
            join = _with_joined(join, factor)
        at = tuple(i for i, v in enumerate(key) if v in bound)
        body, cost = self._step(replace(join, bound=bound | set(key)))
        return Loop(view, key, at, alias, body, among if factor is not None else ""), cost

    # Rebalancing

    def _recomputed(self) -> Body:
        """Recompute the views from the stores and the heavy values."""
        body: Body = ()
        for heavy in self.tested.values():
            for one in heavy.partitions if heavy.only is None else ():
                alias, add = self.namer.row(one.values.name), add_count(heavy.view, 1, one.value)
                body += (Loop(one.values.name, one.value, (), alias, (add,)),)
        for auxiliary in self.auxiliaries:
            for where in auxiliary.where:
                found = [self._recomputed_case(auxiliary, where, name) for name in auxiliary.atoms]
                body += min(found, key=lambda option: option[1:])[0]
        return body

    def _recomputed_case(self, one: Auxiliary, where: Where, name: str) -> tuple[Body, bool, float]:
        """Recompute one case of a view, beginning with the rows of an atom, or with those of its heavy values. Also
        returns whether it begins with all rows, and the exponent of the steps for each."""
        start = self.factors[name]
        named = dict(zip(start.key, start.key, strict=True))
        case = Case(where, tuple(other for other in one.atoms if other != name))
        (join,) = self._joins(case, named, (start.carrier,), self._adder(one, named, 1))
        test = next((test for test, heavy in join.asked.items() if heavy and self._has_subset(test, start)), None)
        body, cost = self._step(join if test is None else _after_test(join, test))
        if test is None:
            return (Loop(start.view.name, start.key, (), start.alias, body),), True, cost
        at = tuple(i for i, v in enumerate(start.key) if v in test[1])
        rows = Loop(start.view.name, start.key, at, start.alias, body)
        return (Loop(*test, (), self._alias(test), (rows,)),), False, cost

    def _turn(self, heavy: Heavy) -> str:
        return f"turn_{heavy.view.name}"

    def _changes_of_turn(self, heavy: Heavy) -> Body:
        """Changes of the views if a value becomes heavy (m = 1) or light (m = -1), run while it is light."""
        carrier = Carrier(None, frozenset(), tuple((a.name, MULTIPLICITY) for a in self.query.aggregates))
        value = heavy.partitions[0].value
        body: Body = ()
        for one in self.auxiliaries:
            for where in one.where:
                for parts in non_empty_subsets(tuple(part for part in where if self.heavy[part] == heavy)):
                    named, equal = _identified([(part.key, value) for part in parts])
                    sign = -1 if sum(not where[part] for part in parts) % 2 else 1
                    rest = {part: side for part, side in where.items() if part not in parts}
                    into, light = self._adder(one, named, sign), frozenset({(heavy.view.name, value)})
                    for join in self._joins(Case(rest, one.atoms), named, (carrier,), into, light):
                        body += _where(equal, self._step(join)[0])
        return body

    def _partition(self, one: Partitioned, marked: bool, turns: frozenset[str]) -> Partition:
        """How values of a partition move. The views change while the value and its rows are light."""
        row, name = self.namer.marked(one.store.view.name, "moved"), one.store.view.name

        def turned(m: int) -> Body:
            body: Body = ()
            for heavy in self.tested.values():
                if one in heavy.partitions:
                    turn = self._turn(heavy)
                    perform: Body = (Perform(turn, one.value, m),) if turn in turns else ()
                    add = add_count(heavy.view, m, one.value)
                    counted = replace(add, appear=perform) if m > 0 else replace(add, vanish=perform)
                    body += perform if heavy.only is not None else (counted,)
            return body

        def rows(body: Body) -> Body:
            return (Loop(name, self.names(one.store), one.places, row, body),) if marked else ()

        rise = (*turned(1), add_count(one.values, 1, one.value), *rows((Move(row, one.subset, 1),)))
        sink = (*rows((Move(row, one.subset, -1),)), add_count(one.values, -1, one.value), *turned(-1))
        subset = one.subset if marked else ""
        return Partition(name, one.places, one.values.name, subset, one.epsilon, one.value, rise, sink)


def _places(part: Part, atom: Atom) -> Places:
    return tuple(map(atom.variables.index, part.key))


def _named(key: Key, named: Mapping[str, str]) -> Key:
    return tuple(named.get(v, v) for v in key)


def _renamed(pending: Pending, named: Mapping[str, str]) -> Pending:
    columns: dict[str, Expr] = {v: Column(name, BIGINT) for v, name in named.items() if v != name}
    return Pending(
        tuple(substitute(c, columns) for c in pending.conditions),
        tuple((name, replace(let, expr=substitute(let.expr, columns)), value) for name, let, value in pending.lifts),
    )


def _identified(rows: Iterable[tuple[Key, Key]]) -> tuple[dict[str, str], tuple[Expr, ...]]:
    """Names for variables with the values of given names, and equalities where a variable has several."""
    named: dict[str, str] = {}
    same: dict[str, str] = {}
    equal: list[Expr] = []
    for variables, names in rows:
        for variable, name in zip(variables, names, strict=True):
            one, other = same.setdefault(named.setdefault(variable, name), name), same.setdefault(name, name)
            if one != other:
                columns = tuple(Column(n, BIGINT, False) for n in (one, other))
                equal.append(Call("null_safe_eq", columns, BOOLEAN, False))
                same = {n: one if of == other else of for n, of in same.items()}
    return {variable: same[name] for variable, name in named.items()}, tuple(equal)


def _where(conditions: Iterable[Expr], body: Body) -> Body:
    return under(conditions, body) if body else ()


def _after_test(join: _Join, test: Test) -> _Join:
    """The join where a test has the result that it asks for."""
    light = join.light if join.asked[test] else join.light | {test}
    return replace(join, asked={t: heavy for t, heavy in join.asked.items() if t != test}, light=light)


def _with_joined(join: _Join, factor: Factor) -> _Join:
    """The join with a factor joined."""
    pending = join.pending.where(lambda names: not factor.joined or not factor.joined.issuperset(names))
    return replace(
        join,
        bound=join.bound | set(factor.key),
        factors=tuple(f for f in join.factors if f is not factor),
        carriers=(*join.carriers, factor.carrier),
        pending=pending,
    )


def _in_words(where: Where) -> str:
    """A case in words: ``b heavy, c light``."""
    return ", ".join(f"{' '.join(part.key) or 'all'} {'heavy' if heavy else 'light'}" for part, heavy in where.items())
