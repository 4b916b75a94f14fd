"""Walks over a statement: finds the statements in its bodies, and the variables and views that it reads or changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from freshviews.expr.nodes import columns_of
from freshviews.program.payload import ComponentOf, Monomial, Value
from freshviews.program.roles import Often, Part, Role, mapped, walk
from freshviews.program.statements import Body, Loop, Statement
from freshviews.records import dataclass


@dataclass(frozen=True)
class Variable:
    """A variable that a statement reads."""

    name: str


@dataclass(frozen=True)
class Row:
    """A row that a statement refers to by its alias."""

    alias: str


Name = Variable | Row | ComponentOf
_Found = TypeVar("_Found")


def _cached(find: Callable[[Statement], _Found]) -> Callable[[Statement], _Found]:
    """Caches the results of a function on each statement: nested bodies are walked many times."""
    name = f"_{find.__name__}"

    def kept(statement: Statement) -> _Found:
        known = statement.__dict__
        if name not in known:
            object.__setattr__(statement, name, find(statement))
        found: _Found = known[name]
        return found

    kept.__doc__ = find.__doc__
    return kept


class Uses(NamedTuple):
    """The effects of a statement, without those of the statements in its bodies.

    ``reads``: the variables and rows that it reads, in order. ``binds``: the variables that it binds in its bodies;
    ``defines``: the variables that it binds in the rest of the enclosing body. ``rows``: the aliases of rows and sums
    that it binds in its bodies. ``views``: the views that it reads, ``changes``: the views that it changes.
    """

    reads: tuple[Name, ...] = ()
    binds: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


class Visit(NamedTuple):
    """A body of a statement: how often it runs, and the statement or the part of it that has the body."""

    often: Often
    owner: Any


class Slice(NamedTuple):
    """The rows of a view that a statement looks up, visits or adds to.

    ``key`` has a variable for each of the first columns, and ``bound`` the positions whose values are given. ``among``:
    the subset of the view. ``optional``: a default row is visited if there is no row. ``limited``: the column after
    ``bound`` lies in a range. ``alias``: the row in the bodies.
    """

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...]
    among: str
    optional: bool
    limited: bool
    alias: str

    @property
    def given(self) -> tuple[str, ...]:
        """The variables that have the values at ``bound``."""
        return tuple(self.key[i] for i in self.bound)


class Work(NamedTuple):
    """The steps of a statement itself, as the interpreter counts them: rows looked up, and changes of stored rows.
    ``walks``: each run of its first body is one more. ``into``: the sums that it adds to."""

    lookups: int
    writes: int
    walks: bool
    into: tuple[str, ...]


@_cached
def bodies(statement: Statement) -> tuple[Body, ...]:
    """The bodies of a statement. The bodies of a Smaller are its two loops, each a body of one statement."""
    parts = ((part, value) for part, value, _ in walk(statement) if part.runs is not None)
    return tuple((value,) if part.role is Role.SIDE else value for part, value in parts)


@_cached
def visits(statement: Statement) -> tuple[Visit, ...]:
    """How often each body of a statement runs."""
    return tuple(Visit(part.runs.often, owner) for part, _, owner in walk(statement) if part.runs is not None)


def values_of(statement: Statement, role: Role) -> list[Any]:
    """The values of the parts of a statement that have a role."""
    return [value for part, value, _ in walk(statement) if part.role is role]


@_cached
def slice_of(statement: Statement) -> Slice | None:
    """The rows of a view that a statement looks up, visits or adds to, by its first view; None without a view."""
    by_role = {part.role: value for part, value, _ in reversed(list(walk(statement)))}
    view = next((by_role[role] for role in _VIEWS if role in by_role), None)
    if view is None:
        return None
    named = {place: name for name, part, of, place in columns(statement) if part.role in _VIEWS and of == view}
    binds = uses(statement).binds
    key = tuple(named.get(i, "") for i in range(max(named, default=-1) + 1))
    bound = tuple(i for i, name in enumerate(key) if name and name not in binds)
    return Slice(
        view,
        key,
        bound,
        by_role.get(Role.AMONG, ""),
        getattr(statement, "optional", False),
        Role.RANGE in by_role,
        by_role.get(Role.ALIAS, ""),
    )


_VIEWS = (Role.CHANGED, Role.VIEW, Role.RANGE)


@_cached
def work(statement: Statement) -> Work:
    """The steps of a statement itself."""
    roles = [part.role for part, _, _ in walk(statement)]
    often = [visit.often for visit in visits(statement)]
    found = uses(statement)
    return Work(
        (Often.FOUND in often) + often.count(Often.SHORTER) + (Role.RANGE in roles),
        len(found.changes) + roles.count(Role.UPDATED),
        Often.EACH in often or Often.MOVED in often,
        tuple(values_of(statement, Role.SUM)),
    )


@_cached
def uses(statement: Statement) -> Uses:
    """The variables and views that a statement reads, binds and changes."""
    reads: list[Name] = []
    binds: dict[str, None] = {}
    defines: list[str] = []
    rows: list[str] = []
    views: list[str] = []
    changes: list[str] = []
    for part, value, owner in walk(statement):
        match part.role:
            case Role.VIEW | Role.RANGE:
                views.append(value)
            case Role.CHANGED:
                changes.append(value)
            case Role.SIDE:
                views.append(value.view)
            case Role.ROW | Role.UPDATED:
                reads.append(Row(value))
            case Role.ALIAS if value:
                rows.append(value)
            case Role.READS:
                reads += _variables((value,) if isinstance(value, str) else value)
            case Role.BINDS:
                binds.update(dict.fromkeys(_names(value)))
            case Role.DEFINES:
                defines.append(value)
            case Role.UNBOUND:
                reads += _variables(tuple(value[i] for i in owner.bound))
                binds.update((name, None) for i, name in enumerate(value) if i not in owner.bound)
            case Role.LAST:
                reads += _variables(value[:-1])
                binds[value[-1]] = None
            case Role.EXPRESSION:
                reads += _variables(columns_of(value))
            case Role.PAYLOAD:
                reads += _factors(value)
    return Uses(tuple(reads), tuple(binds), tuple(defines), tuple(rows), tuple(views), tuple(changes))


def _names(value: str | tuple[str | tuple[int, str], ...]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one if isinstance(one, str) else one[1] for one in value)


_NAMED = (*_VIEWS, Role.TRIE, Role.ROW, Role.UPDATED)


def columns(statement: Statement) -> Iterator[tuple[str, Part, str, int]]:
    """The variables of a statement that are columns, each with the part that names their owner, and its position."""
    named, of, next_column = None, "", 0
    for part, value, owner in walk(statement):
        if part.role in _NAMED:
            named, of = part, value
        if part.columns is None or named is None:
            continue
        first = next_column if part.columns.after else 0
        for i, one in enumerate((value,) if isinstance(value, str) else value):
            place = owner.bound[i] if part.columns.bound else first + i
            place, name = one if isinstance(one, tuple) else (place, one)
            yield name, named, of, place
            next_column = place + 1


_variable = lru_cache(maxsize=1 << 16)(Variable)
"""Cached: a key of a hundred variables is read by thousands of statements."""


def _variables(names: tuple[str, ...]) -> tuple[Variable, ...]:
    return tuple(map(_variable, names))


def _factors(payload: tuple[Monomial, ...]) -> tuple[Name, ...]:
    factors = (factor for monomial in payload for factor in monomial.factors)
    return tuple(Variable(f.name) if isinstance(f, Value) else f for f in factors)


def variables_read(statement: Statement) -> tuple[str, ...]:
    """The names of the variables that a statement itself reads."""
    return tuple([one.name for one in uses(statement).reads if isinstance(one, Variable)])


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
    """The statement with each body directly in it replaced by ``change`` of it; the statement itself if ``change``
    changes nothing. A Smaller needs a Loop on each side."""

    def changed(part: Part, value: Any) -> Any:
        if part.runs is None:
            return value
        if part.role is not Role.SIDE:
            return change(value)
        (side,) = change((value,))
        assert isinstance(side, Loop)
        return side

    found: Statement = mapped(statement, changed)
    return found
