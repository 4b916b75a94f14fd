"""Writes a join as nested loops and lookups.

Some variables have values from the start. For each joined view, a loop or lookup gives values to further variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property
from typing import Any, TypeVar

from freshviews.errors import PlanError
from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.leaves import Carrier, add_to, product, row_carrier, spanning_lifts, under
from freshviews.program.payload import Value
from freshviews.program.statements import Body, Into, Let, Lookup, Loop, Smaller, Sum
from freshviews.program.views import View
from freshviews.query.query import Query
from freshviews.records import dataclass

S = TypeVar("S")

CHOICES = 4
"""Maximum number of nested choices between two slices: each doubles the statements below it."""


@dataclass(frozen=True)
class Step:
    """A stored view to join with: its name, the variables of its key, the alias of its row, and the row as a factor of
    payloads. ``carrier`` is None if the payload is not multiplied in. ``unique``: sets of positions of the key; no two
    rows agree on all positions of a set. ``determined``: the number of variables that a row determines by keys of all
    views of the join, beside its own.

    ``given``: the given variables of an optional view, whose default row is seen where they are bound and no row has
    their values. ``negated``: the join goes on where the view has no row.
    """

    view: str
    key: tuple[str, ...]
    alias: str
    carrier: Carrier | None
    unique: tuple[frozenset[int], ...] = ()
    determined: int = 0
    given: tuple[str, ...] | None = None
    negated: bool = False

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables of the key."""
        return frozenset(self.key)

    @cached_property
    def unique_variables(self) -> tuple[frozenset[str], ...]:
        """The sets of ``unique``, as variables."""
        return tuple(frozenset(self.key[i] for i in positions) for positions in self.unique)

    def is_optional(self, bound: frozenset[str]) -> bool:
        """True if the default row can be seen. If another variable is bound as well, to a value that is not NULL, no
        default row has it."""
        return self.given is not None and self.variables & bound == frozenset(self.given)

    def is_one_row(self, bound: frozenset[str]) -> bool:
        """True if at most one row has the bound values."""
        return any(map(bound.issuperset, self.unique_variables))

    def can_be_looped_over(self, bound: frozenset[str]) -> bool:
        """False while the join could have default rows for values that are not bound yet."""
        if self.negated:
            return False
        return self.given is None or self.is_optional(bound) or not self.variables & bound <= {*self.given}


@dataclass(frozen=True)
class Pending:
    """Conditions, and (aggregate, Let, Value) of lifts across atoms, whose variables are not all bound yet."""

    conditions: tuple[Expr, ...] = ()
    lifts: tuple[tuple[str, Let, Value], ...] = ()

    @staticmethod
    def of(query: Query) -> Pending:
        """All conditions and lifts across atoms of a query."""
        return Pending(query.conditions, spanning_lifts(query))

    def where(self, test: Callable[[tuple[str, ...]], bool]) -> Pending:
        """The conditions and lifts whose variables pass a test."""
        lifts = tuple(lift for lift in self.lifts if test(columns_of(lift[1].expr)))
        return Pending(tuple(c for c in self.conditions if test(columns_of(c))), lifts)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions to be computed."""
        return (*self.conditions, *(let.expr for _, let, _ in self.lifts))

    def applied(self, state: S, go_on: Callable[[S], Body]) -> Body | None:
        """Statements that apply the expressions whose variables are all bound; None if there are none.

        ``state``: a dataclass with these expressions as ``pending``, the ``bound`` variables, and the ``carriers`` so
        far. ``go_on`` writes the statements that follow, for the state with the expressions still pending.
        """
        here: Any = state
        ready = [c for c in self.conditions if here.bound.issuperset(columns_of(c))]
        if ready:
            left = Pending(tuple(c for c in self.conditions if c not in ready), self.lifts)
            return under(ready, go_on(replace(here, pending=left)))
        lifts = self.where(here.bound.issuperset).lifts
        if not lifts:
            return None
        carrier = Carrier(None, frozenset(), tuple((name, value) for name, _, value in lifts))
        left = Pending(self.conditions, tuple(lift for lift in self.lifts if lift not in lifts))
        done = replace(here, pending=left, carriers=(*here.carriers, carrier))
        return (*(let for _, let, _ in lifts), *go_on(done))


@dataclass(frozen=True)
class Join:
    """The state of a nest: bound variables, carriers so far, views left to join, pending expressions. ``choices``: the
    most nested choices between two slices from here on."""

    bound: frozenset[str]
    carriers: tuple[Carrier, ...]
    steps: tuple[Step, ...]
    pending: Pending = field(default_factory=Pending)
    choices: int = CHOICES


Finish = Callable[[Join], Body]
Indexes = dict[str, set[tuple[int, ...]]]


def nest(join: Join, finish: Finish, indexes: Indexes, smaller: bool = True) -> Body:
    """Statements that join all steps, followed by those that ``finish`` writes for the completed Join.

    The indexes that loops need are added to ``indexes``, by view. ``smaller``: loop over the smaller of two slices.

    Every strategy joins stored views with bound variables. ``nest`` orders the views greedily:

    1. a view whose key is bound: a lookup, before any loop;
    2. a view with a bound declared key: a loop over at most one row;
    3. a view that shares a bound variable. Of several, the one whose rows determine most variables by keys comes first;
       in a tie, the one with the fewest unbound variables.

    If two views would bind the same variables, the program decides at run time: it loops over the smaller slice and
    probes the larger slice. At most ``CHOICES`` decisions are nested. Conditions and lifts across atoms are applied as
    soon as their variables are bound.
    """
    applied = join.pending.applied(join, lambda ready: nest(ready, finish, indexes, smaller))
    if applied is not None:
        return applied
    if not join.steps:
        return finish(join)
    for step in join.steps:
        if join.bound.issuperset(step.key):
            body = nest(_take(join, step), finish, indexes, smaller)
            if step.negated:
                return (Lookup(step.view, step.key, step.alias, (), body),)
            return (Lookup(step.view, step.key, step.alias, body, optional=step.is_optional(join.bound)),)
    step, twin = _choose(join)
    if twin is None or not smaller or not join.choices:
        return (_loop(join, step, finish, indexes, smaller),)
    join = replace(join, choices=join.choices - 1)
    return (Smaller(*(_loop(join, one, finish, indexes, smaller) for one in (step, twin))),)


def add_joined(join: Join, view: View, key: tuple[str, ...], total: str, indexes: Indexes) -> Body:
    """Statements that add the rows of a join to a view, under ``key``. Where loops find several rows for one key, their
    sum is added, whose alias is ``total``."""
    loops = any(not join.bound.issuperset(step.key) for step in join.steps)
    if not loops or not join.bound.issuperset(key):
        return nest(join, lambda done: (add_to(view, done.carriers, key=key),), indexes)
    body = nest(join, lambda done: (Into(total, product(view.components, done.carriers)),), indexes)
    return (Sum(total, view.components, body, (add_to(view, (row_carrier(total, view),), key=key),)),)


def _choose(join: Join) -> tuple[Step, Step | None]:
    """The view to loop over next, and one that binds the same variables, if there is one.

    A row that determines many variables is followed by few rows. Two views that determine little of each other would
    make a product.
    """
    bound = join.bound
    most = max(s.determined for s in join.steps)
    for step in join.steps:
        # Such a step always ranks first: returning early helps a join of 60 tables.
        ranks_first = step.determined == most and len(step.variables - bound) == 1
        touches = ranks_first and not bound.isdisjoint(step.key)
        if touches and step.is_one_row(bound) and step.can_be_looped_over(bound):
            return step, None
    steps = [s for s in join.steps if s.can_be_looped_over(bound)]
    if not steps:
        raise PlanError("an outer join cannot be looked up, because no other table has its join columns")
    touching = [s for s in steps if not bound.isdisjoint(s.key)] or steps
    step = min(touching, key=lambda s: (not s.is_one_row(bound), -s.determined, len(s.variables - bound)))
    if step.given is not None or step.is_one_row(bound):
        return step, None
    unbound = step.variables - bound
    twins = [s for s in touching if s is not step and s.given is None and s.variables - bound == unbound]
    twin = next((s for s in twins if not bound.isdisjoint(s.key)), None)
    return step, twin


def _take(join: Join, step: Step) -> Join:
    carriers = join.carriers if step.carrier is None else (*join.carriers, step.carrier)
    rest = tuple(s for s in join.steps if s is not step)
    return replace(join, bound=join.bound | step.variables, carriers=carriers, steps=rest)


def _loop(join: Join, step: Step, finish: Finish, indexes: Indexes, smaller: bool) -> Loop:
    bound = tuple(i for i, v in enumerate(step.key) if v in join.bound)
    if bound:
        indexes.setdefault(step.view, set()).add(bound)
    body = nest(_take(join, step), finish, indexes, smaller)
    return Loop(step.view, step.key, bound, step.alias, body, optional=step.is_optional(join.bound))
