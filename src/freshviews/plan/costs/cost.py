"""Computes the cost of an update of a relation: how many rows it looks up, visits in loops and changes, on average."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

from freshviews.expr.nodes import Call, Column, Expr
from freshviews.plan.costs.degrees import Asked, Degrees, Probe
from freshviews.plan.costs.origins import Cover, Origin, Origins, Place
from freshviews.program.heavy_light import Partition, thresholds
from freshviews.program.payload import MULTIPLICITY
from freshviews.program.program import Program
from freshviews.program.roles import Often, Role
from freshviews.program.statements import Body, Statement
from freshviews.program.structure import Row, Slice, bodies, slice_of, uses, values_of, visits, work
from freshviews.program.upkeep import BY_TRIGGERS
from freshviews.records import dataclass

RANGE = 0.5
"""The share of a slice's rows that a range holds, and of rows that satisfy a comparison."""


@dataclass(frozen=True)
class Cost:
    """Mean numbers per update of a relation: triggers run, rows looked up, rows walked in loops, and changes of stored
    rows."""

    runs: float = 0.0
    lookups: float = 0.0
    walked: float = 0.0
    writes: float = 0.0

    @property
    def steps(self) -> float:
        """The sum, as ``program.reference.interpreter`` counts it."""
        return self.runs + self.lookups + self.walked + self.writes

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.runs + other.runs,
            self.lookups + other.lookups,
            self.walked + other.walked,
            self.writes + other.writes,
        )


def costs_of(program: Program, degrees: Degrees) -> dict[str, Cost] | None:
    """The cost of an update, by relation; None for a program that triggers alone do not maintain."""
    if program.upkeep is not BY_TRIGGERS:
        return None
    walk = _Walk(program, degrees)
    found: dict[str, Cost] = {}
    for number, trigger in enumerate(program.triggers):
        found[trigger.relation] = found.get(trigger.relation, Cost()) + walk.cost(number)
    return found


def cost_of(program: Program, number: int, degrees: Degrees) -> Cost:
    """The cost of one trigger, of a program that triggers alone maintain.

    A walk over the triggers computes the cost. Degrees say how often, on average, a statement runs its body. A loop
    runs its body once per row of its slice; a lookup runs its body with the probability that it finds a row. Steps are
    counted as in ``program.reference.interpreter``.

    Assumptions: values from different relations are independent; half of the updates are deletes; no subscriber wants
    changes; every condition over several relations holds; a range holds half of the rows. The cost of rebalancing is
    left out.
    """
    return _Walk(program, degrees).cost(number)


def mean_steps(costs: Mapping[str, Cost], rates: Mapping[str, float]) -> float:
    """The steps of an update, averaged over relations by their update rates, or evenly without rates."""
    weights = {name: rates.get(name, 0.0) for name in costs}
    if not any(weights.values()):
        weights = dict.fromkeys(costs, 1.0)
    total = sum(weights.values())
    return sum(weights[name] * one.steps for name, one in costs.items()) / total if total else 0.0


Binding = tuple[int, int]
"""A binding at hand: its trigger, and its row (see ``Origin``)."""


@dataclass(frozen=True)
class _Row:
    """A bound row: its view, and the variables of its key. ``stays``: the share of updates before and after which it is
    present, if known."""

    view: str
    key: tuple[str, ...]
    stays: float = 1.0


@dataclass(frozen=True)
class _Scope:
    """Where a statement stands. ``alone``: variables whose values no other binding of the trigger has; None if unknown.
    ``once``: a loop ends at the first row that counts. ``around``: the probes of the enclosing loops, by the binding
    that they weight. ``inserts``: the share of updates that are inserts."""

    trigger: int
    variables: Mapping[str, Origin | None]
    rows: Mapping[str, _Row] = field(default_factory=dict)
    alone: frozenset[str] | None = None
    once: bool = False
    around: Mapping[Binding, tuple[Probe, ...]] = field(default_factory=dict)
    depth: int = 0
    inserts: float = 0.5


_AT_ENDS = (Often.APPEARS, Often.VANISHES, Often.STAYS, Often.ALONE, Often.OTHERS, Often.FULL)


def _slice(statement: Statement) -> Slice:
    found = slice_of(statement)
    assert found is not None
    return found


def _row(statement: Statement, scope: _Scope) -> _Row | None:
    """The row that a statement refers to."""
    return next((scope.rows.get(one.alias) for one in uses(statement).reads if isinstance(one, Row)), None)


def _grows(statement: Statement, scope: _Scope) -> float:
    """The share of the runs of an addition that add more than zero."""
    ((first, *_),) = values_of(statement, Role.PAYLOAD)
    if MULTIPLICITY in first.factors:
        return scope.inserts if first.coefficient > 0 else 1.0 - scope.inserts
    return 1.0 if first.coefficient > 0 else 0.0


Counts = defaultdict[tuple[str, str], float]
"""Counted steps by kind: ``lookups``, ``walked`` and ``writes`` without a name, ``into`` with the name of a Sum."""


class _Walk:
    def __init__(self, program: Program, degrees: Degrees) -> None:
        self._program, self._degrees = program, degrees
        self._origins = Origins(program)
        self._reaches: dict[str, dict[int, float]] = {}
        self._sums: dict[tuple[int, int], float] = {}
        balancing = program.balancing
        self._heavy: dict[str, Partition] = {}
        self._subsets: dict[tuple[str, str], Partition] = {}
        self._base = 0.0
        if balancing is not None:
            self._heavy = {one.heavy: one for one in balancing.partitions}
            self._subsets = {(one.view, one.subset): one for one in balancing.partitions if one.subset}

    def cost(self, trigger: int) -> Cost:
        counts: Counts = defaultdict(float)
        passing = self._degrees.passing(trigger)
        self._run(self._program.triggers[trigger].body, self._outermost(trigger), passing, counts)
        return Cost(1.0, counts["lookups", ""], counts["walked", ""], counts["writes", ""])

    def _outermost(self, trigger: int) -> _Scope:
        return _Scope(trigger, self._origins.parameters(trigger))

    def _run(self, body: Body, scope: _Scope, times: float, counts: Counts) -> None:
        for statement in body:
            self._count(statement, scope, times, counts)
            for number, inner in enumerate(bodies(statement)):
                runs = times * self._runs(statement, number, scope) if inner else 0.0
                if runs > 0:
                    self._run(inner, self._inside(statement, number, scope), runs, counts)

    def _count(self, statement: Statement, scope: _Scope, times: float, counts: Counts) -> None:
        """Count the steps of a statement itself."""
        own = work(statement)
        counts["lookups", ""] += own.lookups * times
        counts["writes", ""] += own.writes * times
        if own.walks:
            counts["walked", ""] += times * self._runs(statement, 0, scope)
        for alias in own.into:
            counts["into", alias] += times

    # How often a body runs

    def _runs(self, statement: Statement, number: int, scope: _Scope) -> float:
        """How often a body of a statement runs, per run of the statement."""
        often, owner = visits(statement)[number]
        match often:
            case Often.FOUND:
                rows = _slice(statement)
                return 1.0 if rows.optional else self._share_found(rows.view, rows.bound, rows.given, scope)
            case Often.MISSING:
                rows = _slice(statement)
                return 1.0 - self._share_found(rows.view, rows.bound, rows.given, scope)
            case Often.EACH:
                return self._rows_visited(_slice(statement), scope)
            case Often.SHORTER:
                sides = [loop for (loop,) in bodies(statement)]
                side = self._runs(sides[number], 0, scope)
                return 0.5 * self._least(sides, scope) / side if side else 0.0
            case Often.NONZERO:
                return self._nonzero(statement, scope)
            case Often.APPEARS | Often.VANISHES:
                rows = _slice(statement)
                grows = _grows(statement, scope)
                return self._share_new(rows.view, rows.key, scope) * (grows if often is Often.APPEARS else 1.0 - grows)
            case Often.STAYS:
                rows = _slice(statement)
                return 1.0 - self._share_new(rows.view, rows.key, scope)
            case Often.ALONE | Often.OTHERS:
                row = _row(statement, scope)
                if row is None:
                    return 0.5
                alone = self._share_alone(tuple(row.key[i] for i in owner.bound), row.view, scope)
                return alone if often is Often.ALONE else 1.0 - alone
            case Often.FULL:
                return self._full(_row(statement, scope), scope)
            case Often.MOVED:
                return self._rows_crossing(owner.last - owner.first, _row(statement, scope), scope)
            case Often.WANTED:
                return 0.0
            case Often.HOLDS:
                return self._holds(owner.condition, scope)
            case Often.ONCE | Often.SUMMED:
                return 1.0
            case _:
                assert_never(often)

    def _rows_visited(self, rows: Slice, scope: _Scope) -> float:
        """The rows of a slice that are visited."""
        degree = self._degree(rows.view, rows.bound, rows.given, scope) * self._share(rows.view, rows.among)
        if rows.limited:
            return RANGE * degree
        if rows.optional:
            degree += 1.0 - self._share_found(rows.view, rows.bound, rows.given, scope)
        return min(degree, 1.0) if scope.once else degree

    def _rows_crossing(self, positions: int, row: _Row | None, scope: _Scope) -> float:
        """Rows that enter or leave a range of positions: the row itself, if it is in the range, and another one."""
        if row is None:
            return 2.0
        prefix = len(self._program.view(row.view).prefix)
        group = self._degree(row.view, tuple(range(prefix)), row.key[:prefix], scope)
        return 2.0 * min(1.0, positions / group) if group else 2.0

    def _holds(self, condition: Expr, scope: _Scope) -> float:
        """The share of runs in which a condition is true."""
        if not isinstance(condition, Call) or condition.op not in ("eq", "null_safe_eq", "lt", "le", "gt", "ge"):
            return 1.0
        if condition.op not in ("eq", "null_safe_eq"):
            return RANGE
        values = [1.0]
        for side in condition.args:
            origin = scope.variables.get(side.name) if isinstance(side, Column) else None
            if origin is not None:
                values.append(self._degrees.values(origin.trigger, (origin.variable,)))
        return 1.0 / max(values)

    def _inside(self, statement: Statement, number: int, scope: _Scope) -> _Scope:
        """The scope of a body of a statement."""
        before = scope
        bound = self._origins.bound_by(statement, scope.depth + 1)
        if bound:
            scope = replace(scope, variables={**scope.variables, **bound}, depth=scope.depth + 1)
        often, owner = visits(statement)[number]
        rows = slice_of(statement)
        if rows is not None and rows.alias:
            row = _Row(rows.view, rows.key)
            if often is Often.STAYS:
                row = replace(row, stays=1.0 - self._share_new(rows.view, rows.key, scope))
            scope = replace(scope, rows={**scope.rows, rows.alias: row})
        match often:
            case Often.SUMMED | Often.NONZERO:
                return replace(scope, once=often is Often.SUMMED and owner.once)
            case Often.EACH:
                assert rows is not None
                return scope if rows.limited else replace(scope, around=self._enclosing_probes(rows, before))
            case Often.APPEARS | Often.VANISHES:
                assert rows is not None
                inserts = 1.0 if often is Often.APPEARS else 0.0
                return replace(scope, alone=self._known_unique(rows.key, scope), inserts=inserts)
            case Often.ALONE:
                held = _row(statement, scope)
                if held is None:
                    return scope
                key = tuple(held.key[i] for i in owner.bound)
                return replace(scope, alone=self._known_unique(key, scope))
            case _:
                return scope

    def _enclosing_probes(self, rows: Slice, scope: _Scope) -> Mapping[Binding, tuple[Probe, ...]]:
        """The probes around the body of a loop: its own, and the probe from its rows back to the current binding."""
        covers = self._origins.covers.get(rows.view)
        probes = self._probes(covers[0], rows.bound, rows.given, scope) if covers else []
        if len(probes) != 1:
            return scope.around
        ((here, probe),) = probes
        back = Probe(probe.key, here[0], probe.given, ())
        there = (probe.trigger, scope.depth + 1)
        return {**scope.around, here: (*scope.around.get(here, ()), probe), there: (back,)}

    def _nonzero(self, statement: Statement, scope: _Scope) -> float:
        """The share of runs in which a Sum is added to."""
        place = (scope.trigger, id(statement))
        if place not in self._sums:
            counts: Counts = defaultdict(float)
            self._run(bodies(statement)[0], self._inside(statement, 0, scope), 1.0, counts)
            (alias,) = uses(statement).rows
            self._sums[place] = min(1.0, counts["into", alias])
        return self._sums[place]

    def _full(self, row: _Row | None, scope: _Scope) -> float:
        """The share of runs in which a tally is full: every other trigger that adds to the row has done so."""
        own = None if row is None else self._parameters_in(row.key, scope)
        if row is None or own is None:
            return 1.0
        others = [c for c in self._origins.covers.get(row.view, ()) if c.trigger != scope.trigger]
        share = math.prod((self._found_in(cover, row.key, scope) for cover in others), start=1.0)
        return min(1.0, share / row.stays) if row.stays else 0.0

    # Appearing and vanishing rows

    def _parameters_in(self, key: tuple[str, ...], scope: _Scope) -> frozenset[str] | None:
        """The variables of a key, if all are parameters of the trigger."""
        origins = [scope.variables.get(v) for v in key]
        if all(one is not None and (one.trigger, one.row) == (scope.trigger, 0) for one in origins):
            return frozenset(one.variable for one in origins if one is not None)
        return None

    def _known_unique(self, key: tuple[str, ...], scope: _Scope) -> frozenset[str] | None:
        """Variables with unique values, given that those of a key have: the fewest that are known."""
        own = self._parameters_in(key, scope)
        if own is None or (scope.alone is not None and scope.alone <= own):
            return scope.alone
        return own

    def _share_new(self, view: str, key: tuple[str, ...], scope: _Scope) -> float:
        """The share of Adds by which a row appears or vanishes."""
        own = self._parameters_in(key, scope)
        if own is None:
            flow = self._flow(view)
            return min(1.0, self._rows(view) / flow) if flow else 1.0
        others = [c for c in self._origins.covers.get(view, ()) if c.trigger != scope.trigger]
        absent = math.prod((1.0 - self._found_in(cover, key, scope) for cover in others), start=1.0)
        return self._share_alone(key, view, scope) * absent

    def _share_alone(self, key: tuple[str, ...], view: str, scope: _Scope) -> float:
        """The share of bindings whose values in a key no other binding has."""
        own = self._parameters_in(key, scope)
        if own is None:
            by_binding: dict[Binding, set[str]] = {}
            for origin in (scope.variables.get(v) for v in key):
                if origin is not None:
                    by_binding.setdefault((origin.trigger, origin.row), set()).add(origin.variable)
            return min((self._degrees.alone(t, tuple(sorted(vs))) for (t, _), vs in by_binding.items()), default=1.0)
        if scope.alone is not None and own >= scope.alone:
            return 1.0
        share = self._degrees.alone(scope.trigger, tuple(sorted(own)))
        if scope.alone is not None and own <= scope.alone:
            known = self._degrees.alone(scope.trigger, tuple(sorted(scope.alone)))
            return min(1.0, share / known) if known else 0.0
        return share

    # Rows of views, and of their slices

    def _probes(
        self, cover: Cover, bound: tuple[int, ...], given: tuple[str, ...], scope: _Scope
    ) -> list[tuple[Binding, Probe]]:
        """The probes of a cover by the current values: one for each binding that they come from. Computed values are
        not probed."""
        by_binding: dict[Binding, list[tuple[str, str]]] = {}
        for position, variable in zip(bound, given, strict=True):
            origin = scope.variables.get(variable)
            if origin is not None:
                here = (origin.trigger, origin.row)
                by_binding.setdefault(here, []).append((origin.variable, cover.variables[position]))
        distinct = tuple(dict.fromkeys(cover.variables))
        return [
            (here, Probe(tuple(g for g, _ in pairs), cover.trigger, tuple(k for _, k in pairs), distinct))
            for here, pairs in by_binding.items()
        ]

    def _matches(self, here: Binding, probes: tuple[Probe, ...], scope: _Scope) -> float:
        return self._degrees.matches(here[0], probes, scope.around.get(here, ()))

    def _matched(self, here: Binding, probe: Probe, scope: _Scope) -> float:
        return self._degrees.found(here[0], probe, scope.around.get(here, ()))

    def _degree(self, view: str, bound: tuple[int, ...], given: tuple[str, ...], scope: _Scope) -> float:
        """Rows of a slice of a view, on average."""
        rows = self._rows(view)
        if not bound:
            return rows
        covers = self._origins.covers.get(view)
        if not covers:
            return rows * self._share_selected(view, bound, given, scope)
        probes = self._probes(covers[0], bound, given, scope)
        computed = [p for p, v in zip(bound, given, strict=True) if scope.variables.get(v) is None]
        share = 1.0
        if computed:
            names = tuple(sorted({covers[0].variables[p] for p in computed}))
            share = 1.0 / max(self._degrees.values(covers[0].trigger, names), 1.0)
        if not probes:
            return rows * share
        degrees = [self._matches(here, (probe,), scope) for here, probe in probes]
        if len(degrees) == 1:
            return degrees[0] * share * self._share_in_view(covers[0])
        every = self._degrees.values(covers[0].trigger, probes[0][1].distinct)
        return rows * share * math.prod(d / every for d in degrees) if every else 0.0

    def _share_selected(self, view: str, bound: tuple[int, ...], given: tuple[str, ...], scope: _Scope) -> float:
        """The share of the rows of a join that a slice has."""
        share = 1.0
        columns = self._origins.columns(view)
        pairs: dict[tuple[Binding, Binding], list[tuple[str, str]]] = {}
        for position, variable in zip(bound, given, strict=True):
            origin, column = scope.variables.get(variable), columns[position]
            if origin is not None and column is not None:
                between = ((origin.trigger, origin.row), (column.trigger, column.row))
                pairs.setdefault(between, []).append((origin.variable, column.variable))
        for (here, (there, _)), same in pairs.items():
            every = self._degrees.rows(there)
            probe = Probe(tuple(g for g, _ in same), there, tuple(k for _, k in same), ())
            share *= self._matches(here, (probe,), scope) / every if every else 0.0
        return share

    def _share_found(self, view: str, bound: tuple[int, ...], given: tuple[str, ...], scope: _Scope) -> float:
        """The share of lookups that find a row."""
        partition = self._heavy.get(view)
        if partition is not None:
            return self._is_heavy(partition, given, scope)
        covers = self._origins.covers.get(view)
        if not covers:
            return min(1.0, self._degree(view, bound, given, scope)) if bound else min(1.0, self._rows(view))
        if any(cover.trigger == scope.trigger for cover in covers) and self._parameters_in(given, scope) is not None:
            return 1.0
        found = [self._found_by(cover, view, bound, given, scope) for cover in covers]
        return max(found)

    def _found_by(
        self, cover: Cover, view: str, bound: tuple[int, ...], given: tuple[str, ...], scope: _Scope
    ) -> float:
        probes = self._probes(cover, bound, given, scope)
        if len(probes) == 1 and len(probes[0][1].key) == len(bound):
            return self._matched(*probes[0], scope) * self._share_in_view(cover)
        return min(1.0, self._degree(view, bound, given, scope)) if bound else 1.0

    def _found_in(self, cover: Cover, key: tuple[str, ...], scope: _Scope) -> float:
        """The share of the current bindings for which another trigger has the values of a key."""
        probes = self._probes(cover, tuple(range(len(key))), key, scope)
        return math.prod((self._matched(*one, scope) for one in probes), start=1.0) * self._share_in_view(cover)

    def _least(self, loops: Sequence[Statement], scope: _Scope) -> float:
        """Rows of the smaller one of two slices, on average."""
        sides = [self._runs(loop, 0, scope) for loop in loops]
        probes = []
        for rows in map(_slice, loops):
            covers = self._origins.covers.get(rows.view)
            if not covers or rows.among or rows.optional or scope.once:
                return min(sides)
            found = self._probes(covers[0], rows.bound, rows.given, scope)
            if len(found) != 1 or len(found[0][1].key) != len(rows.bound):
                return min(sides)
            probes.append(found[0])
        (here, probe), (there, other) = probes
        if here == there:
            return min(*sides, self._matches(here, (probe, other), scope))
        one, two = (Asked(at[0], asked, scope.around.get(at, ())) for at, asked in probes)
        return min(*sides, self._degrees.least(one, two))

    def _rows(self, view: str) -> float:
        """Rows of a view."""
        covers = self._origins.covers.get(view)
        if covers:
            cover = covers[0]
            return self._degrees.values(cover.trigger, tuple(sorted(set(cover.variables)))) * self._share_in_view(cover)
        by_binding: dict[Binding, set[str]] = {}
        for origin in self._origins.columns(view):
            if origin is not None:
                by_binding.setdefault((origin.trigger, origin.row), set()).add(origin.variable)
        most = math.prod(self._degrees.values(t, tuple(sorted(names))) for (t, _), names in by_binding.items())
        flow = self._flow(view)
        return most * -math.expm1(-flow / most) if most else 0.0

    def _flow(self, view: str) -> float:
        """The number of derivations of a view's rows: all additions of a trigger over all of its bindings."""
        reaches = self._times_reached(view)
        return max((self._degrees.rows(t) * reach for t, reach in reaches.items()), default=0.0)

    def _share_in_view(self, cover: Cover) -> float:
        """The share of a trigger's distinct bindings that are in the view: some binding with these values reaches the
        Add."""
        if not cover.place.path:
            return 1.0
        reach = min(1.0, self._times_reached(cover.place.add.view).get(cover.trigger, 1.0))
        values = self._degrees.values(cover.trigger, tuple(sorted(set(cover.variables))))
        rows = self._degrees.rows(cover.trigger)
        return 1.0 - (1.0 - reach) ** max(1.0, rows / values) if values else 0.0

    def _times_reached(self, view: str) -> dict[int, float]:
        """By trigger, how often its statements that add to a view are reached, per binding."""
        if view not in self._reaches:
            self._reaches[view] = {}  # while it is computed
            found: dict[int, float] = {}
            for place in self._origins.places.get(view, ()):
                found[place.trigger] = found.get(place.trigger, 0.0) + self._reach(place)
            self._reaches[view] = found
        return self._reaches[view]

    def _reach(self, place: Place) -> float:
        scope, times = self._outermost(place.trigger), 1.0
        for statement, number in place.path:
            if visits(statement)[number].often in _AT_ENDS:
                # A statement that runs at the first and the last row of a value keeps a row for each value.
                continue
            times *= self._runs(statement, number, scope)
            scope = self._inside(statement, number, scope)
        return times

    # Heavy and light parts

    def _is_heavy(self, partition: Partition, given: tuple[str, ...], scope: _Scope) -> float:
        """The share of bindings with a heavy value."""
        covers = self._origins.covers.get(partition.view)
        if not covers:
            return 0.0
        probes = self._probes(covers[0], partition.by, given, scope)
        if len(probes) != 1:
            return 0.0
        (((here, _), probe),) = probes
        return self._degrees.above(here, probe, self._threshold(partition))

    def _share(self, view: str, among: str) -> float:
        """The share of a view's rows that are in a subset; that of heavy rows is known."""
        partition = self._subsets.get((view, among))
        covers = self._origins.covers.get(view)
        if partition is None or not covers:
            return 1.0
        cover = covers[0]
        key = tuple(cover.variables[i] for i in partition.by)
        probe = Probe(key, cover.trigger, key, cover.variables)
        return self._degrees.above(cover.trigger, probe, self._threshold(partition))

    def _threshold(self, partition: Partition) -> float:
        """The least degree of a heavy value. The base is between the number of rows and twice that number."""
        assert self._program.balancing is not None
        if not self._base:
            self._base = 1.5 * sum(self._rows(store) for store in self._program.balancing.stores)
        return thresholds(round(self._base), partition.epsilon)[1]
