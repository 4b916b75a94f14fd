"""Programs by heavy and light values, from tables of cases over any number of relations.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019, Section 3). For an update of a relation, the sum that it adds to
the result is split into cases, by which values are heavy. Each case is a join of few rows, or a lookup in a view that
is stored for the case. A strategy writes the cases (``Case``) and defines the views (``Auxiliary``). This module makes
the program.

A *key* is a tuple of variables, such as ``("b",)``. Its value is heavy if it is heavy in one of the relations that are
parted by the key, and light otherwise. So a light value has few rows in each of them, and there are few heavy values.

A join goes step by step. Each step takes the option with the smallest bound: the rows of a light value, the heavy
values, or, if neither applies, all rows that agree. Of two options that bind the same variables, the smaller one at
run time is taken.

If a value becomes heavy or light, each view loses the rows of the value's old case and gains those of its new case
(``turn_b``). These joins begin with the value, which has few rows at that moment. Views are recomputed in the same
way, beginning with a relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.eps.statements import COUNTED, Body, add_count, add_product, add_sum
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
from freshviews.plan.naming import Namer
from freshviews.program.heavy_light import Balancing, Partition, Procedure
from freshviews.program.payload import MULTIPLICITY
from freshviews.program.program import Trigger
from freshviews.program.statements import Add, Balance, If, Into, Lookup, Loop, Perform, Smaller
from freshviews.program.views import View
from freshviews.query.query import Atom, Query

T = TypeVar("T")
Key = tuple[str, ...]
Where = Mapping[Key, bool]
"""Which keys are heavy (True) and which are light."""
Finish = Callable[[tuple[Carrier, ...]], Body]
"""Makes the innermost statements of a join from the carriers of the joined rows."""


@dataclass(frozen=True)
class Case:
    """The join of ``factors`` (names of atoms and of views) over the rows whose keys are heavy or light as given."""

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
    """The cases of a query. ``parts``: by atom, the keys that it is parted by. ``result``: by updated atom, the cases
    of what the update adds to the result."""

    parts: Mapping[str, tuple[Key, ...]]
    auxiliaries: tuple[Auxiliary, ...]
    result: Mapping[str, tuple[Case, ...]]


@dataclass(frozen=True)
class Factor:
    """An atom or an auxiliary view in a join: its view, the keys that it is parted by, and its row as a carrier."""

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
    """State of a join. ``asked``: keys that must still be tested. ``light``: keys that are known to be light."""

    bound: frozenset[str]
    factors: tuple[Factor, ...]
    asked: Where
    light: frozenset[Key]
    carriers: tuple[Carrier, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class _Piece:
    """A case of an update and what happens with the joined rows. ``light``: keys that are known to be light."""

    where: Where
    factors: tuple[str, ...]
    finish: Finish
    light: frozenset[Key] = frozenset()


class Cases:
    """Writes the views, triggers and rebalancing of a table of cases.

    ``added`` gets the name of an auxiliary view and each Add to it, and may return an Add that does more.
    """

    def __init__(
        self,
        query: Query,
        table: Table,
        epsilon: Mapping[str, float],
        namer: Namer,
        added: Callable[[str, Add], Add] = lambda _, add: add,
    ) -> None:
        self.query = query
        self.namer = namer
        self.table = table
        self.epsilon = epsilon
        self.added = added
        self.indexes: dict[str, set[tuple[int, ...]]] = {}
        self.auxiliaries = {a.name: a for a in table.auxiliaries}
        self.factors: dict[str, Factor] = {}
        for atom in query.atoms:
            view = leaf_view(query, atom, namer.view(atom.name))
            self.factors[atom.name] = Factor(atom.name, view, table.parts[atom.name], self._carrier(view))
        for one in table.auxiliaries:
            components = components_over(query, frozenset(one.atoms))
            cases = " or ".join(_shown(where) for where in one.where)
            view = View(namer.view(one.name), one.key, components, definition=f"{' * '.join(one.atoms)}, {cases}")
            self.factors[one.name] = Factor(one.name, view, (), self._carrier(view))
        keys = dict.fromkeys(key for atom in query.atoms for key in table.parts[atom.name])
        self.parted = {key: tuple(a for a in query.atoms if key in table.parts[a.name]) for key in keys}
        self.heavy: dict[Key, View] = {}
        """By key, its heavy values. The payload counts the relations in which a value is heavy."""
        self.values: dict[tuple[str, Key], View] = {}
        """By atom and key, the values that are heavy in the atom."""
        for key, atoms in self.parted.items():
            for atom in atoms:
                store = self.store(atom).name
                name = namer.view(f"{store}_heavy_{'_'.join(key)}")
                self.values[atom.name, key] = View(name, key, COUNTED, definition=f"heavy in {store}")
            if len(atoms) == 1:
                self.heavy[key] = self.values[atoms[0].name, key]
            else:
                name = namer.view(f"heavy_{'_'.join(key)}")
                self.heavy[key] = View(name, key, COUNTED, definition=f"in how many tables {', '.join(key)} is heavy")

    def _carrier(self, view: View) -> Carrier:
        return row_carrier(self.namer.row(view.name), view)

    def store(self, atom: Atom) -> View:
        return self.factors[atom.name].view

    def views(self) -> tuple[View, ...]:
        """All views but the result. Their indexes are complete only after triggers and rebalancing are written."""
        heavy = {view.name: view for view in (*self.values.values(), *self.heavy.values())}
        views = (*(f.view for f in self.factors.values()), *heavy.values())
        return tuple(replace(v, indexes=tuple(sorted(self.indexes.get(v.name, ())))) for v in views)

    # Triggers

    def trigger(self, atom: Atom, before: Body = (), appear: Body = (), vanish: Body = (), alias: str = "") -> Trigger:
        """The trigger of an atom: the statements ``before``, then changes of the views, its store and the parts.

        ``appear`` and ``vanish`` run if a row of the store appears or vanishes; ``alias`` is the name of that row.
        """
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
        body = (
            *before,
            *self._by_case(pieces, frozenset(atom.variables), (carrier,)),
            replace(add_product(view, (carrier,)), appear=appear, vanish=vanish, alias=alias),
            Balance(view.name, atom.variables),
        )
        return Trigger(atom.relation, parameters_of(self.query, atom), atom.filters, body)

    def change(self, atom: Atom, finish: Finish, update: bool = True) -> Body:
        """The cases of the result for an update of an atom, each with ``finish``. ``update``: its multiplicity and
        lifts are factors of the payload."""
        pieces = [_Piece(case.where, case.factors, finish) for case in self.table.result[atom.name]]
        carriers = (update_carrier(self.query, atom),) if update else ()
        return self._by_case(pieces, frozenset(atom.variables), carriers)

    def summed(self, atom: Atom) -> Body:
        """What an update of an atom adds to a result without groups."""
        components = all_components(self.query)
        total = self.namer.of("u", "u")
        body = self.change(atom, lambda carriers: (Into(total, product(components, carriers)),))
        return (add_sum(self.query, total, body),)

    def _into(self, one: Auxiliary, sign: int) -> Finish:
        """Add the joined rows to a view, or take them out where ``sign`` is -1."""
        view = self.factors[one.name].view
        return lambda carriers: (self.added(one.name, add_product(view, carriers, sign)),)

    def _by_case(self, pieces: list[_Piece], bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        """The cases of an update. Each key that the update binds is tested once."""

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
        return self.namer.of(("heavy", key), f"is_heavy_{'_'.join(key)}")

    # Joins

    def _joined(self, piece: _Piece, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> tuple[Body, float]:
        factors = tuple(self.factors[name] for name in piece.factors)
        join = _Join(bound, factors, piece.where, piece.light, carriers, self.query.conditions)
        return self._step(join, piece.finish)

    def _step(self, join: _Join, finish: Finish) -> tuple[Body, float]:
        """Statements that join the remaining factors, and the exponent of the steps that they take."""
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
        """A loop over the option with the smallest bound; of two that bind the same, over the smaller at run time."""
        groups: dict[frozenset[str], list[tuple[float, Factor | Key]]] = {}
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

    def _rows(self, factor: Factor, join: _Join) -> float:
        """The exponent of the number of rows of a factor that agree with the bound variables."""
        here = frozenset(factor.view.key) & join.bound
        if factor.name in self.auxiliaries:
            return 1 - self._eps(())
        light = [self._eps(key) for key in factor.parts if key in join.light and here.issuperset(key)]
        return min([1.0, *light])

    def _eps(self, key: Key) -> float:
        given = [self.epsilon[atom.name] for atom in self.parted.get(key, ())]
        return max(given, default=max(self.epsilon.values()))

    def _loop(self, join: _Join, option: Factor | Key, finish: Finish) -> tuple[Loop, float]:
        if isinstance(option, Factor):
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
        """How values become heavy or light, and how views are recomputed after the statements ``first``."""
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
                values = self.values[atom.name, key].name
                recompute += (Loop(values, key, (), self.namer.row(values), (add_count(self.heavy[key], 1),)),)
        for one in self.table.auxiliaries:
            for where in one.where:
                recompute += self._whole(one, where)
        stores = tuple(self.store(atom).name for atom in self.query.atoms)
        emptied = (*(self.heavy[key].name for key in shared), *(self.factors[a].view.name for a in self.auxiliaries))
        return Balancing(stores, partitions, emptied, recompute, procedures)

    def _whole(self, one: Auxiliary, where: Where) -> Body:
        """Recompute one case of a view, beginning with the relation from which it takes the fewest steps."""
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
        """Changes of the views if a value becomes heavy (m = 1) or light (m = -1)."""
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
        values = self.values[atom.name, key]
        rise: Body = (Perform(self._turn(key), key, 1),) if turns else ()
        sink: Body = (Perform(self._turn(key), key, -1),) if turns else ()
        heavy = self.heavy[key]
        if len(self.parted[key]) > 1:
            rise = (replace(add_count(heavy, 1), appear=rise),)
            sink = (replace(add_count(heavy, -1), vanish=sink),)
        rise, sink = (add_count(values, 1), *rise), (add_count(values, -1), *sink)
        return Partition(view.name, places, values.name, "", self.epsilon[atom.name], key, rise, sink)


def _less(items: tuple[T, ...], one: T) -> tuple[T, ...]:
    return tuple(item for item in items if item is not one)


def _without(where: Where, key: Key) -> Where:
    return {k: heavy for k, heavy in where.items() if k != key}


def _shown(where: Where) -> str:
    """A case in words: ``b heavy, c light``."""
    return ", ".join(f"{' '.join(key) or 'all'} {'heavy' if heavy else 'light'}" for key, heavy in where.items())
