"""Splits a trigger into *lanes*, which may run in parallel. No lane reads or changes what another lane changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from freshviews.plan.costs.cost import Cost, cost_of
from freshviews.plan.costs.degrees import Degrees
from freshviews.program.heavy_light import Balancing
from freshviews.program.program import Program, Trigger
from freshviews.program.roles import Often, Part, Role, mapped
from freshviews.program.statements import Add, Balance, Body, Perform, Statement
from freshviews.program.structure import bodies, slice_of, uses, values_of, visit, visits, with_bodies
from freshviews.program.upkeep import BY_TRIGGERS
from freshviews.records import dataclass

MOST_LANES = 4
"""Maximum number of lanes of a trigger: each is a function to compile."""
MOST_REPEATED = 1.25
"""Maximum cost of all lanes of a trigger together, relative to the whole trigger."""
MOST_STATEMENTS = 60
"""Maximum number of statements of a trigger that is divided: more take long to compile."""

_EMITTED = ""
"""Stands for a view: the rows that are emitted."""
_FEEDS = (Role.DEFINES, Role.SUM)
"""Roles by which a statement without bodies serves other statements, instead of changing the state."""


@dataclass(frozen=True)
class _Scope:
    """The views of the rows that enclosing statements bind, by alias, and the program's balancing."""

    balancing: Balancing | None = None
    rows: Mapping[str, str] = field(default_factory=dict)

    def within(self, statement: Statement) -> _Scope:
        """The scope of the bodies of a statement."""
        found = slice_of(statement)
        return self if found is None or not found.alias else replace(self, rows={**self.rows, found.alias: found.view})

    def moves(self, statement: Statement) -> list[Body]:
        """The statements of the balancing that a statement runs, those of major rebalancings left out."""
        if self.balancing is None:
            return []
        if isinstance(statement, Perform):
            return [self.balancing.procedure(statement.procedure).body]
        if isinstance(statement, Balance):
            return [body for one in self.balancing.partitions_of(statement.view) for body in (one.rise, one.sink)]
        return []


@dataclass(frozen=True)
class Lane:
    """A part of a trigger. ``added``: the views to which it adds, if threads may share its rows; else empty.
    ``searched``: the ordered views that it does not change. A search in an order keeps what it looks for beside the
    order, so each thread needs a place of its own for that."""

    trigger: Trigger
    added: tuple[str, ...]
    searched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lanes:
    """Lanes that together do the work of a trigger. ``cost``: their steps per step of that trigger."""

    lanes: tuple[Lane, ...]
    cost: float


@dataclass(frozen=True)
class _Part:
    """Statements that stay together: the views that they change and read."""

    changes: frozenset[str]
    reads: frozenset[str]

    def meets(self, other: _Part) -> bool:
        """True if one part changes a view that the other reads or changes."""
        return bool(self.changes & (other.changes | other.reads) or other.changes & self.reads)

    def with_(self, other: _Part) -> _Part:
        return _Part(self.changes | other.changes, self.reads | other.reads)


def lanes_of(program: Program, number: int, degrees: Degrees) -> Lanes | None:
    """The lanes of a trigger; None if it has one, whose rows threads cannot share.

    A lane has some of the additions of a trigger, and the loops and lookups around them. No lane reads a view that
    another lane changes. So lanes may run over a batch at the same time, and each view gets the same additions in the
    same order. The trigger of a self-join has one lane, because its statements read views that other statements change.
    Lanes are not valid for a batch that causes a major rebalancing.

    A row that two lanes need is looked up twice. So lanes are merged until repeated lookups cost little.

    Threads may share the rows of a lane that reads none of the views it adds to. Each thread adds to tables of its own,
    which are added up in the end. That pays if a row costs more lookups than additions.
    """
    trigger = program.triggers[number]
    if program.upkeep is not BY_TRIGGERS:
        return None
    scope = _Scope(program.balancing)
    ordered = {view.name for view in program.views if view.ordered}
    parts = independent(trigger.body, scope)
    if not parts:
        return None

    def cut(part: _Part) -> Trigger:
        return replace(trigger, body=changing(trigger.body, part.changes, scope))

    def cost(part: _Part) -> Cost:
        triggers = (*program.triggers[:number], cut(part), *program.triggers[number + 1 :])
        return cost_of(replace(program, triggers=triggers), number, degrees)

    whole = cost_of(program, number, degrees).steps
    costs = list(map(cost, parts))
    while len(parts) > MOST_LANES or (sum(one.steps for one in costs) > MOST_REPEATED * whole and len(parts) > 1):
        # Neighbours have the most in common.
        joined = [cost(one.with_(other)) for one, other in pairwise(parts)]
        saved = [costs[i].steps + costs[i + 1].steps - both.steps for i, both in enumerate(joined)]
        i = saved.index(max(saved))
        parts[i : i + 2] = [parts[i].with_(parts[i + 1])]
        costs[i : i + 2] = [joined[i]]
    found = tuple(
        Lane(
            trigger if len(parts) == 1 else cut(part),
            _added(cut(part).body, part, one),
            tuple(sorted(ordered & (part.reads - part.changes))),
        )
        for part, one in zip(parts, costs, strict=True)
    )
    if len(found) == 1 and not found[0].added:
        return None
    return Lanes(found, sum(one.steps for one in costs) / whole)


def _added(body: Body, part: _Part, cost: Cost) -> tuple[str, ...]:
    """The views to which a part with this body adds, if threads may share its rows, and should."""
    if part.changes & part.reads or cost.lookups + cost.walked < cost.writes:
        return ()
    for statement in visit(body):
        if _is_effect(statement) and not (isinstance(statement, Add) and not any(bodies(statement))):
            return ()
    return tuple(sorted(part.changes))


def independent(body: Body, scope: _Scope) -> list[_Part]:
    """Splits a trigger's body into the largest number of parts such that no part changes a view that another reads or
    changes, in the order of their first statements; empty if the body is too long."""
    if sum(1 for _ in visit(body)) > MOST_STATEMENTS:
        return []
    parts: list[_Part] = []
    for part in _parts(body, frozenset(), scope):
        # A part that meets several joins them into one.
        met = [i for i, other in enumerate(parts) if part.meets(other)]
        for i in met:
            part = part.with_(parts[i])
        if met:
            parts[met[0]] = part
            parts = [other for i, other in enumerate(parts) if i not in met[1:]]
        else:
            parts.append(part)
    return parts


def _is_effect(statement: Statement) -> bool:
    """Whether a statement changes the state as a whole: a view, a row in place, the rows that are emitted; or whether
    its sum does."""
    if uses(statement).changes or values_of(statement, Role.UPDATED):
        return True
    if not bodies(statement):
        return not any(values_of(statement, role) for role in _FEEDS)
    return any(_is_effect(inner) for one in _summed(statement) for inner in visit(one))


def _summed(statement: Statement) -> list[Body]:
    """The bodies that a statement runs to compute a sum, on which its other bodies depend."""
    each = zip(visits(statement), bodies(statement), strict=True)
    return [body for visited, body in each if visited.often is Often.SUMMED]


def _parts(body: Body, around: frozenset[str], scope: _Scope) -> Iterator[_Part]:
    """The statements that change the state, each with all statements inside it. ``around``: the views that enclosing
    statements read."""
    for statement in body:
        if _is_effect(statement):
            found = _whole((statement,), scope)
            reads = found.reads | around
            yield _Part(found.changes, reads)
            continue
        reads, known = around.union(uses(statement).views), scope.within(statement)
        for one in _summed(statement):
            reads |= _whole(one, known).reads
        for one in bodies(statement):
            yield from _parts(one, reads, known)


def _whole(body: Body, scope: _Scope) -> _Part:
    """The views that statements read and change, those inside them included."""
    whole = _Part(frozenset(), frozenset())
    for statement in body:
        found, updated, moves = uses(statement), values_of(statement, Role.UPDATED), scope.moves(statement)
        changes = {*found.changes, *(scope.rows[alias] for alias in updated)}
        if not (changes or moves or bodies(statement)) and _is_effect(statement):
            changes.add(_EMITTED)
        read = (scope.rows[alias] for alias in values_of(statement, Role.ROW) if alias in scope.rows)
        whole = whole.with_(_Part(frozenset(changes), frozenset((*found.views, *read))))
        for one in (*moves, *bodies(statement)):
            whole = whole.with_(_whole(one, scope.within(statement)))
    return whole


def changing(body: Body, views: frozenset[str], scope: _Scope) -> Body:
    """The statements of a body that change these views, with the statements around them, and all that they need."""
    kept = (_changing(statement, views, scope) for statement in body)
    return _without_last_needs(tuple(statement for statement in kept if statement is not None))


def _changing(statement: Statement, views: frozenset[str], scope: _Scope) -> Statement | None:
    if _is_effect(statement):
        return statement if views & _whole((statement,), scope).changes else None
    if not bodies(statement):
        return statement
    known = scope.within(statement)
    kept = False

    def cut(part: Part, value: Any) -> Any:
        nonlocal kept
        if part.runs is None or part.runs.often is Often.SUMMED:
            return value
        if part.role is Role.SIDE:
            side = with_bodies(value, lambda one: changing(one, views, known.within(value)))
            kept |= any(bodies(side))
            return side
        made = changing(value, views, known)
        kept |= bool(made)
        return made

    made: Statement = mapped(statement, cut)
    return made if kept else None


def _without_last_needs(body: Sequence[Statement]) -> Body:
    """A body without the Lets at its end, which nothing reads."""
    last = len(body)
    while last and not bodies(body[last - 1]) and values_of(body[last - 1], Role.DEFINES):
        last -= 1
    return tuple(body[:last])
