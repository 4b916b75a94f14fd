"""Programs by heavy and light values, from tables of cases.

What IVM^eps does for a query is a table, as in Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019, Section 3): for an update
of a relation, the sum that it adds to the result is taken case by case, by which values are heavy, each time as a join
of few rows or out of a view that was kept for that case. A strategy writes the table (``Case``) and says of what the
views are sums (``Auxiliary``); here it becomes a program.

A *key* is a tuple of variables, such as ``("b",)``; its value is heavy where it has about N^eps rows or more in one of
the relations that are parted by it. So a light value has at most 3/2 N^eps rows in each of them, and there are
O(N^(1 - eps)) heavy ones. A join goes step by step, each time through the least number of rows that this tells: the
rows of a light value, or the heavy values, or, where neither is known to be few, all rows; of two such sets that bind
the same, through the one that is smaller when it runs.

Where a value turns heavy, or light, the views lose what they had of it in its old case and gain what they have in the
new one (``turn_b``): joins that begin with the value, whose rows are few at that moment. Views are made anew the same
way, beginning with a relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.leaves import (
    Carrier,
    all_components,
    components_over,
    leaf_view,
    parameters_of,
    product,
    row_carrier,
    update_carrier,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.program.parts import Balancing, Partition, Procedure
from freshviews.program.payload import COUNT, MULTIPLICITY, Component, ComponentOf, Monomial
from freshviews.program.program import Trigger
from freshviews.program.statements import Add, Balance, If, Into, Lookup, Loop, Perform, Smaller, Statement, Sum
from freshviews.program.views import View
from freshviews.query.query import Atom, Query

T = TypeVar("T")
Body = tuple[Statement, ...]
Key = tuple[str, ...]
Where = Mapping[Key, bool]
"""Which keys are heavy (True) and which are light."""
Finish = Callable[[tuple[Carrier, ...]], Body]


@dataclass(frozen=True)
class Case:
    """The rows that ``factors`` (names of atoms and of views) join to, where keys are heavy or light."""

    where: Where
    factors: tuple[str, ...]


@dataclass(frozen=True)
class Auxiliary:
    """A view: the sum of the join of ``atoms``, by ``key``, over the cases in ``where``, of which no two overlap.

    ``short``: by atom, cases that come to the same for an update of it, in fewer steps.
    """

    name: str
    key: Key
    atoms: tuple[str, ...]
    where: tuple[Where, ...]
    short: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """What a strategy says of a query: by which keys atoms are parted, the views, and, by atom, the cases of the
    result."""

    parts: Mapping[str, tuple[Key, ...]]
    auxiliaries: tuple[Auxiliary, ...]
    result: Mapping[str, tuple[Case, ...]]


@dataclass(frozen=True)
class _Factor:
    name: str
    view: View
    parts: tuple[Key, ...]
    carrier: Carrier

    @property
    def alias(self) -> str:
        assert self.carrier.alias is not None
        return self.carrier.alias


@dataclass(frozen=True)
class _Join:
    """State of a join: variables bound, factors left, keys to be asked for, keys known to be light, conditions."""

    bound: frozenset[str]
    factors: tuple[_Factor, ...]
    asked: Where
    light: frozenset[Key]
    carriers: tuple[Carrier, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class _Piece:
    """A case of an update, and what is done with what it finds; ``light``: keys that are known to be light."""

    where: Where
    factors: tuple[str, ...]
    finish: Finish
    light: frozenset[Key] = frozenset()


class Cases:
    """The parts of a program over a table of cases. ``added`` may do more than add a row to a view: it is given the
    view's name and the Add."""

    def __init__(
        self,
        query: Query,
        table: Table,
        epsilon: Mapping[str, float],
        namer: Namer,
        added: Callable[[str, Add], Add] = lambda _, add: add,
    ) -> None:
        self.query = query
        self.table = table
        self.epsilon = epsilon
        self.added = added
        self.indexes: dict[str, set[tuple[int, ...]]] = {}
        self.auxiliaries = {a.name: a for a in table.auxiliaries}
        self.factors: dict[str, _Factor] = {}
        for atom in query.atoms:
            view = leaf_view(query, atom, namer.view(atom.name))
            carrier = row_carrier(f"{view.name.lower()}_row", view)
            self.factors[atom.name] = _Factor(atom.name, view, table.parts[atom.name], carrier)
        for one in table.auxiliaries:
            components = components_over(query, frozenset(one.atoms))
            cases = " or ".join(_shown(where) for where in one.where)
            view = View(namer.view(one.name), one.key, components, definition=f"{' * '.join(one.atoms)}, {cases}")
            self.factors[one.name] = _Factor(one.name, view, (), row_carrier(f"{view.name.lower()}_row", view))
        keys = dict.fromkeys(key for atom in query.atoms for key in table.parts[atom.name])
        self.parted = {key: tuple(a for a in query.atoms if key in table.parts[a.name]) for key in keys}
        self.heavy: dict[Key, View] = {}
        """By key, the values that are heavy in some relation, counted by relations."""
        self.values: dict[tuple[str, Key], View] = {}
        """By atom and key, the values that are heavy there."""
        for key, atoms in self.parted.items():
            count = (Component(COUNT, "integer"),)
            for atom in atoms:
                store = self.store(atom).name
                name = namer.view(f"{store}_heavy_{'_'.join(key)}")
                self.values[atom.name, key] = View(name, key, count, definition=f"heavy in {store}")
            if len(atoms) == 1:
                self.heavy[key] = self.values[atoms[0].name, key]
            else:
                name = namer.view(f"heavy_{'_'.join(key)}")
                self.heavy[key] = View(name, key, count, definition=f"in how many tables {', '.join(key)} is heavy")

    def store(self, atom: Atom) -> View:
        return self.factors[atom.name].view

    def views(self) -> tuple[View, ...]:
        """All views but the result; to be asked for when all else is written."""
        heavy = {view.name: view for view in (*self.values.values(), *self.heavy.values())}
        views = (*(f.view for f in self.factors.values()), *heavy.values())
        return tuple(replace(v, indexes=tuple(sorted(self.indexes.get(v.name, ())))) for v in views)

    # Triggers

    def trigger(self, atom: Atom, before: Body = (), appear: Body = (), vanish: Body = (), alias: str = "") -> Trigger:
        """What an update of an atom does: to the views, then to its store, then to the parts."""
        carrier = update_carrier(self.query, atom)
        pieces = [
            _Piece(case.where, case.factors, self._into(one, 1))
            for one in self.table.auxiliaries
            if atom.name in one.atoms
            for case in one.short.get(atom.name) or (
                Case(where, tuple(a for a in one.atoms if a != atom.name)) for where in one.where
            )
        ]
        view = self.store(atom)
        names = tuple(c.name for c in view.components)
        body = (
            *before,
            *self._by_case(pieces, frozenset(atom.variables), (carrier,)),
            Add(view.name, atom.variables, names, product(view.components, (carrier,)), appear, vanish, alias=alias),
            Balance(view.name, atom.variables),
        )
        return Trigger(atom.relation, parameters_of(self.query, atom), atom.filters, body)

    def change(self, atom: Atom, finish: Finish, update: bool = True) -> Body:
        """The cases of the result for an update of an atom, each with ``finish``; ``update``: what came is a factor."""
        pieces = [_Piece(case.where, case.factors, finish) for case in self.table.result[atom.name]]
        carriers = (update_carrier(self.query, atom),) if update else ()
        return self._by_case(pieces, frozenset(atom.variables), carriers)

    def summed(self, atom: Atom) -> Body:
        """What an update of an atom adds to a result without groups."""
        components = all_components(self.query)
        body = self.change(atom, lambda carriers: (Into("u", product(components, carriers)),))
        names = tuple(c.name for c in components)
        total = tuple(Monomial((ComponentOf("u", name),)) for name in names)
        return (Sum("u", components, body, (Add(RESULT, (), names, total),)),)

    def _into(self, one: Auxiliary, sign: int) -> Finish:
        view = self.factors[one.name].view

        def finish(carriers: tuple[Carrier, ...]) -> Body:
            payload = tuple(replace(p, coefficient=sign * p.coefficient) for p in product(view.components, carriers))
            names = tuple(c.name for c in view.components)
            return (self.added(one.name, Add(view.name, view.key, names, payload)),)

        return finish

    def _by_case(self, pieces: list[_Piece], bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        """The cases of an update: keys that it binds are asked for once."""

        def split(left: list[_Piece]) -> Body:
            key = next((k for p in left for k in p.where if bound.issuperset(k)), None)
            if key is None:
                return tuple(s for p in left for s in self._joined(p, bound, carriers)[0])
            free = [p for p in left if key not in p.where]
            heavy = [replace(p, where=_without(p.where, key)) for p in left if p.where.get(key) is True]
            light = [
                replace(p, where=_without(p.where, key), light=p.light | {key})
                for p in left
                if p.where.get(key) is False
            ]
            sides = (split(heavy) if heavy else (), split(light) if light else ())
            asked = Lookup(self.heavy[key].name, key, self._heavy_alias(key), *sides)
            return (*(split(free) if free else ()), asked)

        return split(pieces) if pieces else ()

    def _heavy_alias(self, key: Key) -> str:
        return f"is_heavy_{'_'.join(key)}"

    # Joins

    def _joined(self, piece: _Piece, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> tuple[Body, float]:
        factors = tuple(self.factors[name] for name in piece.factors)
        join = _Join(bound, factors, piece.where, piece.light, carriers, self.query.conditions)
        return self._step(join, piece.finish)

    def _step(self, join: _Join, finish: Finish) -> tuple[Body, float]:
        """What joins the factors that are left, and the exponent of the steps it takes."""
        ready = next((c for c in join.conditions if join.bound.issuperset(columns_of(c))), None)
        if ready is not None:
            inner, cost = self._step(replace(join, conditions=_less(join.conditions, ready)), finish)
            return (If(ready, inner),), cost
        key = next((k for k in join.asked if join.bound.issuperset(k)), None)
        if key is not None:
            heavy = join.asked[key]
            light = join.light if heavy else join.light | {key}
            inner, cost = self._step(replace(join, asked=_without(join.asked, key), light=light), finish)
            sides = (inner, ()) if heavy else ((), inner)
            return (Lookup(self.heavy[key].name, key, self._heavy_alias(key), *sides),), cost
        for factor in join.factors:
            if join.bound.issuperset(factor.view.key):
                taken = replace(
                    join, factors=_less(join.factors, factor), carriers=(*join.carriers, factor.carrier)
                )
                inner, cost = self._step(taken, finish)
                return (Lookup(factor.view.name, factor.view.key, factor.alias, inner),), cost
        if not join.factors:
            return finish(join.carriers), 0.0
        return self._loops(join, finish)

    def _loops(self, join: _Join, finish: Finish) -> tuple[Body, float]:
        """A loop through the fewest rows; where two bind the same, through the smaller one."""
        groups: dict[frozenset[str], list[tuple[float, _Factor | Key]]] = {}
        touching = [f for f in join.factors if join.bound.intersection(f.view.key)] or list(join.factors)
        for factor in touching:
            new = frozenset(factor.view.key) - join.bound
            groups.setdefault(new, []).append((self._rows(factor, join), factor))
        for key, heavy in join.asked.items():
            new = frozenset(key) - join.bound
            if heavy and any(new == frozenset(f.view.key) - join.bound for f in touching):
                groups.setdefault(new, []).append((1 - self._eps(key), key))
        least = min(groups.values(), key=lambda group: (min(cost for cost, _ in group), len(groups) - len(group)))
        chosen = sorted(least, key=lambda option: option[0])[:2]
        loops, costs = zip(*(self._loop(join, option, finish) for _, option in chosen), strict=True)
        cost = min(rows for rows, _ in chosen) + max(costs)
        return ((Smaller(*loops),) if len(loops) == 2 else loops), cost

    def _rows(self, factor: _Factor, join: _Join) -> float:
        """The exponent of the rows of a factor that agree with what is bound."""
        here = frozenset(factor.view.key) & join.bound
        if factor.name in self.auxiliaries:
            return 1 - self._eps(())
        light = [self._eps(key) for key in factor.parts if key in join.light and here.issuperset(key)]
        return min([1.0, *light])

    def _eps(self, key: Key) -> float:
        given = [self.epsilon[atom.name] for atom in self.parted.get(key, ())]
        return max(given, default=max(self.epsilon.values()))

    def _loop(self, join: _Join, option: _Factor | Key, finish: Finish) -> tuple[Loop, float]:
        if isinstance(option, _Factor):
            view, alias = option.view, option.alias
            key = view.key
            then = replace(
                join, factors=_less(join.factors, option), carriers=(*join.carriers, option.carrier)
            )
        else:
            view, key, alias = self.heavy[option], option, self._heavy_alias(option)
            then = replace(join, asked=_without(join.asked, option))
        at = tuple(i for i, v in enumerate(key) if v in join.bound)
        if at:
            self.indexes.setdefault(view.name, set()).add(at)
        body, cost = self._step(replace(then, bound=join.bound | set(key)), finish)
        return Loop(view.name, key, at, alias, body), cost

    # Rebalancing

    def balancing(self, first: Body = ()) -> Balancing:
        """How values turn, and how views are made anew, after ``first``."""
        procedures = tuple(
            Procedure(self._turn(key), key, body) for key in self.parted if (body := self._turned(key))
        )
        partitions = tuple(
            self._partition(atom, key, any(p.name == self._turn(key) for p in procedures))
            for key, atoms in self.parted.items()
            for atom in atoms
        )
        recompute = first
        shared = [key for key, atoms in self.parted.items() if len(atoms) > 1]
        for key in shared:
            for atom in self.parted[key]:
                counted = Add(self.heavy[key].name, key, (COUNT,), (Monomial(()),))
                values = self.values[atom.name, key].name
                recompute += (Loop(values, key, (), f"{values.lower()}_row", (counted,)),)
        for one in self.table.auxiliaries:
            for where in one.where:
                recompute += self._whole(one, where)
        stores = tuple(self.store(atom).name for atom in self.query.atoms)
        emptied = (*(self.heavy[key].name for key in shared), *(self.factors[a].view.name for a in self.auxiliaries))
        return Balancing(stores, partitions, emptied, recompute, procedures)

    def _whole(self, one: Auxiliary, where: Where) -> Body:
        """A case of a view from scratch, beginning with the relation from which it takes the fewest steps."""
        found = []
        for name in one.atoms:
            factors = tuple(self.factors[other] for other in one.atoms if other != name)
            start = self.factors[name]
            bound = frozenset(start.view.key)
            join = _Join(bound, factors, where, frozenset(), (start.carrier,), self.query.conditions)
            kept = {view: set(indexes) for view, indexes in self.indexes.items()}
            body, cost = self._step(join, self._into(one, 1))
            wanted, self.indexes = self.indexes, kept
            found.append((cost, body, start, wanted))
        _, body, start, self.indexes = min(found, key=lambda option: option[0])
        return (Loop(start.view.name, start.view.key, (), start.alias, body),)

    def _turn(self, key: Key) -> str:
        return f"turn_{'_'.join(key)}"

    def _turned(self, key: Key) -> Body:
        """What turns with a value: for m = 1 it becomes heavy, for m = -1 light."""
        everything = [(a.name, MULTIPLICITY) for a in self.query.aggregates]
        carrier = Carrier(None, frozenset(), tuple(everything))
        body: Body = ()
        for one in self.table.auxiliaries:
            for where in one.where:
                if key in where:
                    finish = self._into(one, 1 if where[key] else -1)
                    piece = _Piece(_without(where, key), one.atoms, finish, frozenset({key}))
                    body += self._joined(piece, frozenset(key), (carrier,))[0]
        return body

    def _partition(self, atom: Atom, key: Key, turns: bool) -> Partition:
        view = self.store(atom)
        places = tuple(view.key.index(v) for v in key)
        self.indexes.setdefault(view.name, set()).add(places)
        values = self.values[atom.name, key].name
        rise: Body = (Perform(self._turn(key), key, 1),) if turns else ()
        sink: Body = (Perform(self._turn(key), key, -1),) if turns else ()
        if len(self.parted[key]) > 1:
            heavy = self.heavy[key].name
            rise = (Add(heavy, key, (COUNT,), (Monomial(()),), appear=rise),)
            sink = (Add(heavy, key, (COUNT,), (Monomial((), -1),), vanish=sink),)
        one = Add(values, key, (COUNT,), (Monomial(()),))
        gone = Add(values, key, (COUNT,), (Monomial((), -1),))
        return Partition(view.name, places, values, "", self.epsilon[atom.name], key, (one, *rise), (gone, *sink))


def _less(items: tuple[T, ...], one: T) -> tuple[T, ...]:
    return tuple(item for item in items if item is not one)


def _without(where: Where, key: Key) -> Where:
    return {k: heavy for k, heavy in where.items() if k != key}


def _shown(where: Where) -> str:
    """A case in words: ``b heavy, c light``."""
    return ", ".join(f"{' '.join(key) or 'all'} {'heavy' if heavy else 'light'}" for key, heavy in where.items())
