"""Lanes: parts of a trigger that change different views and may run in parallel.

A lane has some of the additions of a trigger, and the loops and lookups around them. No lane reads a view that another
lane changes. So each view gets the same additions in the same order as from the whole trigger, and lanes may run over a
batch in any order or at the same time. The trigger of a self-join has one lane, because its statements read views that
other statements change.

A row that two lanes need is looked up twice. So lanes are merged until such repeated lookups cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from freshviews.plan.costs.cost import cost_of
from freshviews.plan.costs.degrees import Degrees
from freshviews.program.program import Program, Trigger
from freshviews.program.statements import (
    Add,
    Body,
    Changed,
    Emit,
    Exists,
    If,
    Into,
    Let,
    Lookup,
    Loop,
    RangeLoop,
    RangeSum,
    Scan,
    Smaller,
    Statement,
    Sum,
)
from freshviews.program.structure import bodies, uses, visit, with_bodies
from freshviews.program.upkeep import BY_TRIGGERS

MOST_LANES = 4
"""Maximum number of lanes of a trigger: each is a function to compile."""
MOST_REPEATED = 1.25
"""Maximum cost of all lanes of a trigger together, relative to the whole trigger."""
MOST_STATEMENTS = 60
"""Maximum number of statements of a trigger that is divided: more take long to compile."""

_EMITTED = ""
"""Stands for a view: the rows that are emitted."""

_Inner = If | Lookup | Loop | Exists | Smaller | RangeLoop | Changed
_Divided = _Inner | Sum | Add | Scan | Emit | Let | Into | RangeSum
"""Statements of divisible triggers. All others change views or rows through aliases."""


@dataclass(frozen=True)
class Lanes:
    """Triggers that together do the work of one. ``cost``: their steps per step of that trigger."""

    triggers: tuple[Trigger, ...]
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
    """The lanes of a trigger; None if it has one."""
    trigger = program.triggers[number]
    if program.upkeep is not BY_TRIGGERS or program.balancing is not None:
        return None
    changes = [part.changes for part in independent(trigger.body)]
    if len(changes) < 2:
        return None

    def steps(views: frozenset[str]) -> float:
        lane = replace(trigger, body=changing(trigger.body, views))
        triggers = (*program.triggers[:number], lane, *program.triggers[number + 1 :])
        return cost_of(replace(program, triggers=triggers), number, degrees).steps

    whole = steps(frozenset().union(*changes))
    costs = list(map(steps, changes))
    while len(changes) > MOST_LANES or sum(costs) > MOST_REPEATED * whole:
        # Neighbours have the most in common.
        joined = [steps(one | other) for one, other in pairwise(changes)]
        if not joined:
            return None
        saved = [costs[i] + costs[i + 1] - both for i, both in enumerate(joined)]
        i = saved.index(max(saved))
        changes[i : i + 2] = [changes[i] | changes[i + 1]]
        costs[i : i + 2] = [joined[i]]
    if len(changes) < 2:
        return None
    triggers = tuple(replace(trigger, body=changing(trigger.body, views)) for views in changes)
    return Lanes(triggers, sum(costs) / whole)


def independent(body: Body) -> list[_Part]:
    """Splits a trigger's body into the largest number of parts such that no part changes a view that another reads or
    changes, in the order of their first statements; empty if a statement cannot be divided."""
    statements = list(visit(body))
    if len(statements) > MOST_STATEMENTS or not all(isinstance(s, _Divided) for s in statements):
        return []
    parts: list[_Part] = []
    for part in _parts(body, frozenset()) or ():
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


def _parts(body: Body, around: frozenset[str]) -> list[_Part] | None:
    """The statements that change views, with all statements inside them. ``around``: the views that enclosing
    statements read. None if the statements cannot be separated."""
    found: list[_Part] = []
    for statement in body:
        if isinstance(statement, Add | Scan | Emit):
            found.append(_part(statement, around))
            continue
        inner = list(bodies(statement))
        reads = around.union(uses(statement).views)
        if isinstance(statement, Sum):
            summed = _views_summed(statement)
            if summed is None:
                return None
            inner, reads = [statement.then], reads | summed
        for one in inner:
            parts = _parts(one, reads)
            if parts is None:
                return None
            found += parts
    return found


def _part(statement: Statement, around: frozenset[str]) -> _Part:
    within = list(visit((statement,)))
    changes = {view for s in within for view in uses(s).changes} | {_EMITTED for s in within if isinstance(s, Emit)}
    return _Part(frozenset(changes), around.union(view for s in within for view in uses(s).views))


def _views_summed(statement: Sum) -> frozenset[str] | None:
    """The views that a Sum reads; None if its body changes one."""
    within = list(visit(statement.body))
    if any(isinstance(s, Add | Scan | Emit) for s in within):
        return None
    return frozenset(view for s in within for view in uses(s).views)


def changing(body: Body, views: frozenset[str]) -> Body:
    """The statements of a body that change these views, with the statements around them, and all that they need."""
    kept = (_changing(statement, views) for statement in body)
    return _without_last_needs(tuple(statement for statement in kept if statement is not None))


def _changing(statement: Statement, views: frozenset[str]) -> Statement | None:
    match statement:
        case Add(view) | Scan(view):
            return statement if view in views else None
        case Emit():
            return statement if _EMITTED in views else None
        case Let() | Into() | RangeSum():
            return statement
        case Sum():
            then = changing(statement.then, views)
            return replace(statement, then=then) if then else None
        case Smaller(left, right):
            sides = [replace(side, body=changing(side.body, views)) for side in (left, right)]
            return Smaller(sides[0], sides[1]) if any(side.body for side in sides) else None
        case _:
            made = with_bodies(statement, lambda inner: changing(inner, views))
            return made if any(bodies(made)) else None


def _without_last_needs(body: Sequence[Statement]) -> Body:
    """A body without the Lets at its end, which nothing reads."""
    last = len(body)
    while last and isinstance(body[last - 1], Let):
        last -= 1
    return tuple(body[:last])
