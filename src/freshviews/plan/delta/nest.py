"""Loop nests: joining what is bound with a list of views, one statement inside the other.

Every strategy evaluates some join of stored views around bound variables. ``nest`` orders it greedily: a
view whose key is bound is looked up at once; else a view is looped over of which a declared key is bound, so that
one row at most agrees; else, of those that touch a bound variable, the one whose rows tell most by keys, then the
one with the fewest unbound variables. Where two views would bind the same variables, the one with the smaller slice
is looped over and the other looked up, decided at run time. Conditions and lifts across atoms are placed as soon as
their variables are bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.leaves import Carrier
from freshviews.program.payload import Value
from freshviews.program.statements import If, Let, Lookup, Loop, Smaller, Statement
from freshviews.query.dependencies import FD, closure


@dataclass(frozen=True)
class Step:
    """A stored view to join with: its name, the variables of its key, the alias of its row and what the row
    carries into payloads. ``carrier`` is None where its payload is not multiplied in. ``unique``: sets of positions
    of the key that no two rows agree on."""

    view: str
    key: tuple[str, ...]
    alias: str
    carrier: Carrier | None
    unique: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True)
class Pending:
    """What waits for its variables: conditions, and (aggregate, Let, Value) of lifts across atoms."""

    conditions: tuple[Expr, ...] = ()
    lifts: tuple[tuple[str, Let, Value], ...] = ()

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """What has to be computed."""
        return (*self.conditions, *(let.expr for _, let, _ in self.lifts))

    def applied(
        self,
        bound: frozenset[str],
        carriers: tuple[Carrier, ...],
        go_on: Callable[[Pending, tuple[Carrier, ...]], tuple[Statement, ...]],
    ) -> tuple[Statement, ...] | None:
        """Statements that apply what has all its variables bound; None if nothing has.

        ``go_on`` writes the statements that follow, for what is still pending and for the carriers so far.
        """
        ready = [c for c in self.conditions if bound.issuperset(columns_of(c))]
        if ready:
            body = go_on(Pending(tuple(c for c in self.conditions if c not in ready), self.lifts), carriers)
            for condition in reversed(ready):
                body = (If(condition, body),)
            return body
        lifts = [lift for lift in self.lifts if bound.issuperset(columns_of(lift[1].expr))]
        if not lifts:
            return None
        carrier = Carrier(None, frozenset(), tuple((name, value) for name, _, value in lifts))
        rest = Pending(self.conditions, tuple(lift for lift in self.lifts if lift not in lifts))
        return (*(let for _, let, _ in lifts), *go_on(rest, (*carriers, carrier)))


@dataclass(frozen=True)
class Join:
    """State of a nest: bound variables, carriers multiplied so far, what is left, what waits; and the keys of all
    that is joined, as dependencies."""

    bound: frozenset[str]
    carriers: tuple[Carrier, ...]
    steps: tuple[Step, ...]
    pending: Pending = field(default_factory=Pending)
    rules: tuple[FD, ...] = ()


Finish = Callable[[Join], tuple[Statement, ...]]
Indexes = dict[str, set[tuple[int, ...]]]


def nest(join: Join, finish: Finish, indexes: Indexes, smaller: bool = True) -> tuple[Statement, ...]:
    """Statements that join all steps and then do what ``finish`` says with the completed Join.

    The indexes that loops need are added to ``indexes``, by view.
    """
    applied = join.pending.applied(
        join.bound,
        join.carriers,
        lambda pending, carriers: nest(replace(join, pending=pending, carriers=carriers), finish, indexes, smaller),
    )
    if applied is not None:
        return applied
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


def _is_one_row(join: Join, step: Step) -> bool:
    return any(all(step.key[i] in join.bound for i in positions) for positions in step.unique)


def _determined(join: Join, step: Step) -> int:
    """How many variables a row tells by keys beside its own: a view with many is near the one that tells all, so
    that few rows follow, where two views that tell little of each other would make a product."""
    return len(closure(step.key, join.rules).difference(step.key))


def _choose(join: Join) -> tuple[Step, Step | None]:
    """The view to loop over next, and one that binds the same variables, if any."""
    touching = [s for s in join.steps if join.bound.intersection(s.key)] or list(join.steps)
    step = min(touching, key=lambda s: (not _is_one_row(join, s), -_determined(join, s), len(_unbound(join, s))))
    if _is_one_row(join, step):
        return step, None
    twins = [s for s in touching if s is not step and _unbound(join, s) == _unbound(join, step)]
    twin = next((s for s in twins if join.bound.intersection(s.key)), None)
    return step, twin


def _take(join: Join, step: Step) -> Join:
    carriers = join.carriers if step.carrier is None else (*join.carriers, step.carrier)
    rest = tuple(s for s in join.steps if s is not step)
    return replace(join, bound=join.bound | frozenset(step.key), carriers=carriers, steps=rest)


def _loop(join: Join, step: Step, finish: Finish, indexes: Indexes, smaller: bool) -> Loop:
    bound = tuple(i for i, v in enumerate(step.key) if v in join.bound)
    if bound:
        indexes.setdefault(step.view, set()).add(bound)
    body = nest(_take(join, step), finish, indexes, smaller)
    return Loop(step.view, step.key, bound, step.alias, body)
