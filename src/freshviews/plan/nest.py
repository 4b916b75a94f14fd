"""Loop nests: joining what is bound with a list of views, one statement inside the other.

Every strategy evaluates some join of stored views around bound variables. ``nest`` orders it greedily: a
view whose key is bound is looked up at once; else the view with the fewest unbound variables among those
that touch a bound one is looped over; where two views would bind the same variables, the one with the
smaller slice is looped over and the other looked up, decided at run time. Conditions and lifts across atoms
are placed as soon as their variables are bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.leaves import Carrier
from freshviews.program.nodes import If, Let, Lookup, Loop, Smaller, Statement, Value


@dataclass(frozen=True)
class Step:
    """A stored view to join with: its name, the variables of its key, the alias of its row and what the row
    carries into payloads. ``carrier`` is None where its payload is not multiplied in."""

    view: str
    key: tuple[str, ...]
    alias: str
    carrier: Carrier | None


@dataclass(frozen=True)
class Pending:
    """What waits for its variables: conditions, and (aggregate, Let, Value) of lifts across atoms."""

    conditions: tuple[Expr, ...] = ()
    lifts: tuple[tuple[str, Let, Value], ...] = ()


@dataclass(frozen=True)
class Join:
    """State of a nest: bound variables, carriers multiplied so far, what is left, what waits."""

    bound: frozenset[str]
    carriers: tuple[Carrier, ...]
    steps: tuple[Step, ...]
    pending: Pending = field(default_factory=Pending)


Finish = Callable[[Join], tuple[Statement, ...]]
Indexes = dict[str, set[tuple[int, ...]]]


def nest(join: Join, finish: Finish, indexes: Indexes, smaller: bool = True) -> tuple[Statement, ...]:
    """Statements that join all steps and then do what ``finish`` says with the completed Join.

    The indexes that loops need are added to ``indexes``, by view.
    """
    ready = [c for c in join.pending.conditions if join.bound.issuperset(columns_of(c))]
    if ready:
        rest = Pending(tuple(c for c in join.pending.conditions if c not in ready), join.pending.lifts)
        inner = Join(join.bound, join.carriers, join.steps, rest)
        body = nest(inner, finish, indexes, smaller)
        for condition in reversed(ready):
            body = (If(condition, body),)
        return body
    lifts = [lift for lift in join.pending.lifts if join.bound.issuperset(columns_of(lift[1].expr))]
    if lifts:
        rest = Pending(
            join.pending.conditions, tuple(lift for lift in join.pending.lifts if lift not in lifts)
        )
        carrier = Carrier(None, frozenset(), tuple((name, value) for name, _, value in lifts))
        inner = Join(join.bound, (*join.carriers, carrier), join.steps, rest)
        return (*(let for _, let, _ in lifts), *nest(inner, finish, indexes, smaller))
    if not join.steps:
        return finish(join)
    for step in join.steps:
        if join.bound.issuperset(step.key):
            return (Lookup(step.view, step.key, step.alias, nest(_take(join, step), finish, indexes, smaller)),)
    step, twin = _choose(join)
    left = _loop(join, step, finish, indexes, smaller)
    if twin is None or not smaller:
        return (left,)
    return (Smaller(left, _loop(join, twin, finish, indexes, smaller)),)


def _unbound(join: Join, step: Step) -> frozenset[str]:
    return frozenset(step.key) - join.bound


def _choose(join: Join) -> tuple[Step, Step | None]:
    """The view to loop over next, and one that binds the same variables, if any."""
    touching = [s for s in join.steps if join.bound.intersection(s.key)] or list(join.steps)
    step = min(touching, key=lambda s: len(_unbound(join, s)))
    twins = [s for s in touching if s is not step and _unbound(join, s) == _unbound(join, step)]
    twin = next((s for s in twins if join.bound.intersection(s.key)), None)
    return step, twin


def _take(join: Join, step: Step) -> Join:
    carriers = join.carriers if step.carrier is None else (*join.carriers, step.carrier)
    return Join(
        join.bound | frozenset(step.key),
        carriers,
        tuple(s for s in join.steps if s is not step),
        join.pending,
    )


def _loop(join: Join, step: Step, finish: Finish, indexes: Indexes, smaller: bool) -> Loop:
    bound = tuple(i for i, v in enumerate(step.key) if v in join.bound)
    if bound:
        indexes.setdefault(step.view, set()).add(bound)
    body = nest(_take(join, step), finish, indexes, smaller)
    return Loop(step.view, step.key, bound, step.alias, body)
