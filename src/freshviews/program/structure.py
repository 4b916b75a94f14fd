"""What each statement of the trigger language contains, reads, binds and changes.

``bodies`` and ``uses`` say it once per kind of statement, for every walk over programs; ``with_bodies`` is the
counterpart of ``bodies`` for rewriting. Each has a case for every kind of statement, which the type checker verifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import is_
from typing import NamedTuple, assert_never

from freshviews.expr.nodes import columns_of
from freshviews.program.payload import ComponentOf, Monomial, Value
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Changed,
    Clear,
    Cross,
    Emit,
    Enter,
    Exists,
    Forget,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)


@dataclass(frozen=True)
class Variable:
    """A variable that a statement reads."""

    name: str


@dataclass(frozen=True)
class Row:
    """A row that a statement refers to by its alias."""

    alias: str


Name = Variable | Row | ComponentOf


class Uses(NamedTuple):
    """What a statement itself does, apart from the statements in its bodies.

    ``reads``: what it reads of variables and rows, in order. ``binds``: the variables that it binds in its bodies;
    ``defines``: those that it binds in the rest of the body around it. ``rows``: the aliases of rows and sums that it
    binds in its bodies. ``views``: the views that it reads, ``changes``: those that it changes.
    """

    reads: tuple[Name, ...] = ()
    binds: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def bodies(statement: Statement) -> tuple[Body, ...]:
    """The bodies of a statement. Those of a Smaller are its two loops, each a body of one statement.

    The statement keeps them: nested bodies are walked many times.
    """
    found: tuple[Body, ...] | None = statement.__dict__.get("_bodies")
    if found is None:
        found = _bodies(statement)
        object.__setattr__(statement, "_bodies", found)
    return found


def _bodies(statement: Statement) -> tuple[Body, ...]:
    match statement:
        case If() | Loop() | RangeLoop() | Changed() | Exists() | Tally() | Leap() | Top() | Cross():
            return (statement.body,)
        case Beside() | Forget() | Renumber():
            return (statement.body,)
        case Lookup(body=body, otherwise=otherwise):
            return (body, otherwise)
        case Enter(events=events) | Leave(events=events):
            return tuple(body for event in events for body in (event.alone, event.others))
        case Smaller(left=left, right=right):
            return ((left,), (right,))
        case Sum(body=body, then=then):
            return (body, then)
        case Add(appear=appear, vanish=vanish, stay=stay):
            return (appear, vanish, stay)
        case Let() | Into() | RangeSum() | Balance() | Perform() | Scan() | Clear() | Emit():
            return ()
        case _:
            assert_never(statement)


def uses(statement: Statement) -> Uses:
    """What a statement reads, binds and changes. The statement keeps it, as it keeps its bodies."""
    found: Uses | None = statement.__dict__.get("_uses")
    if found is None:
        found = _uses(statement)
        object.__setattr__(statement, "_uses", found)
    return found


def _uses(statement: Statement) -> Uses:
    match statement:
        case Let(variable, expr):
            return Uses(_variables(columns_of(expr)), defines=(variable,))
        case If(condition):
            return Uses(_variables(columns_of(condition)))
        case Lookup(view, key, alias):
            return Uses(_variables(key), rows=(alias,), views=(view,))
        case Loop(view, key, bound, alias):
            given = tuple(key[i] for i in bound)
            opened = tuple(v for i, v in enumerate(key) if i not in bound)
            return Uses(_variables(given), binds=opened, rows=(alias,), views=(view,))
        case RangeSum(rows=place):
            return Uses(_variables(place.variables), views=(place.view,))
        case RangeLoop(place, key, alias):
            return Uses(_variables(place.variables), binds=key, rows=(alias,), views=(place.view,))
        case Leap(cursors):
            given = tuple(v for cursor in cursors for v in cursor.key[:-1])
            rows = tuple(cursor.alias for cursor in cursors if cursor.alias)
            return Uses(_variables(given), binds=(statement.variable,), rows=rows)
        case Exists(view, key):
            return Uses(_variables(key), views=(view,))
        case Sum(alias=alias, remembered=remembered):
            return Uses(_variables(remembered), rows=(alias,))
        case Into(payload=payload):
            return Uses(_factors(payload))
        case Add(view, key, payload=payload, alias=alias):
            return Uses((*_variables(key), *_factors(payload)), rows=(alias,) if alias else (), changes=(view,))
        case Tally(alias) | Enter(alias) | Leave(alias):
            return Uses((Row(alias),))
        case Balance(view, key):
            return Uses(_variables(key), changes=(view,))
        case Perform(arguments=arguments):
            return Uses(_variables(arguments))
        case Scan(view, key, source=source, within=within):
            return Uses(_variables((*key, *within)), views=(source,), changes=(view,))
        case Top(alias=alias, grown=grown, key=key, change=change):
            return Uses((Row(alias), Variable(grown)), binds=(*key, change))
        case Forget(alias=alias, place=place):
            return Uses((Row(alias),), binds=(place,))
        case Renumber(places, start, key=key, place=place, change=change):
            return Uses(_variables(start), binds=(*key, place, change), changes=(places.view,))
        case Beside(alias=alias, grown=grown, key=key, other=other, there=there, change=change):
            return Uses((Row(alias), Variable(grown)), binds=(*key, *(name for _, name in other), there, change))
        case Cross(view, within, limit, point=point, change=change):
            return Uses(_variables((*within, limit)), binds=(point, change), changes=(view,))
        case Clear(view):
            return Uses(changes=(view,))
        case Emit(row, payload):
            return Uses((*_variables(row), *_factors(payload)))
        case Smaller(left, right):
            return Uses(views=(left.view, right.view))
        case Changed():
            return Uses()
        case _:
            assert_never(statement)


_variable = lru_cache(maxsize=1 << 16)(Variable)
"""A key of a hundred variables is read by thousands of statements."""


def _variables(names: tuple[str, ...]) -> tuple[Variable, ...]:
    return tuple(map(_variable, names))


def _factors(payload: tuple[Monomial, ...]) -> tuple[Name, ...]:
    factors = (factor for monomial in payload for factor in monomial.factors)
    return tuple(Variable(f.name) if isinstance(f, Value) else f for f in factors)


def variables_read(statement: Statement) -> tuple[str, ...]:
    """The names of the variables that a statement itself reads."""
    return tuple(one.name for one in uses(statement).reads if isinstance(one, Variable))


def views_in(statement: Statement) -> tuple[str, ...]:
    """The views that a statement itself reads or changes; of a Scan, the changed one first."""
    found = uses(statement)
    return (*found.changes, *found.views)


def visit(body: Body) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    queue = list(body[::-1])
    while queue:
        statement = queue.pop()
        yield statement
        for nested in reversed(bodies(statement)):
            queue += nested[::-1]


def with_bodies(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement, each body directly in it replaced by ``change`` of it; the statement itself where ``change``
    returns what it is given. A Smaller needs a Loop on each side."""
    own = bodies(statement)
    changed = tuple(map(change, own))
    if all(map(is_, own, changed)):
        return statement
    match statement:
        case If() | Loop() | RangeLoop() | Leap() | Changed() | Exists() | Tally() | Top() | Cross():
            return replace(statement, body=changed[0])
        case Beside() | Forget() | Renumber():
            return replace(statement, body=changed[0])
        case Lookup():
            return replace(statement, body=changed[0], otherwise=changed[1])
        case Enter(events=events) | Leave(events=events):
            pairs = zip(events, changed[::2], changed[1::2], strict=True)
            return replace(statement, events=tuple(replace(e, alone=one, others=more) for e, one, more in pairs))
        case Smaller():
            (left,), (right,) = changed
            assert isinstance(left, Loop) and isinstance(right, Loop)
            return Smaller(left, right)
        case Sum():
            return replace(statement, body=changed[0], then=changed[1])
        case Add():
            return replace(statement, appear=changed[0], vanish=changed[1], stay=changed[2])
        case Let() | Into() | RangeSum() | Balance() | Perform() | Scan() | Clear() | Emit():
            return statement
        case _:
            assert_never(statement)
