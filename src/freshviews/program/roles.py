"""Defines the roles that fields of a statement can have, such as the name of a view that the statement reads.

The annotation of a field declares its role, as in this statement, which runs a body for each value of a column::

    @hashed_once
    @dataclass(frozen=True)
    class Values:
        view: Annotated[str, Role.VIEW]
        prefix: Annotated[tuple[str, ...], Role.READS, Columns()]
        value: Annotated[str, Role.BINDS, Columns(after=True)]
        body: Annotated[Body, Runs(Often.EACH)]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from operator import is_
from typing import Any, get_type_hints

from freshviews.records import dataclass


class Role(Enum):
    """The role of a field in its statement."""

    VIEW = "the name of a view that it reads"
    RANGE = "the name of an ordered view of which it looks up a range"
    CHANGED = "the name of a view that it changes"
    TRIE = "the name of a trie that it reads"
    ROW = "the alias of a row that is bound around it"
    UPDATED = "the alias of a row that is bound around it and that it changes in place"
    ALIAS = "the alias of a row or sum that it binds in its bodies; empty for none"
    SUM = "the alias of a sum around it that it adds to"
    READS = "variables that it reads"
    BINDS = "variables that it binds in its bodies, alone or after a position"
    DEFINES = "a variable that it binds in the rest of the body around it"
    UNBOUND = "variables: it reads those at the positions of its field ``bound``, and binds the others"
    LAST = "variables: it reads all but the last, and binds that"
    EXPRESSION = "an expression over variables that it reads"
    PAYLOAD = "monomials of the variables and components that it reads"
    SIDE = "a statement of its own that is a body, and whose view it reads"
    AMONG = "the name of a subset of its view; empty for all rows"


class Often(Enum):
    """How often a body runs, for one run of its statement."""

    ONCE = "once"
    SUMMED = "once; if its field ``once`` is set, until the first addition to its sum"
    EACH = "for each row of the slice"
    FOUND = "if the slice has a row"
    MISSING = "if the slice has no row"
    HOLDS = "if its ``condition`` holds"
    NONZERO = "if the sum is not zero"
    APPEARS = "if the row was absent before and is present after"
    VANISHES = "if the row was present before and is absent after"
    STAYS = "if the row was present before and after"
    ALONE = "if the slice has no other row"
    OTHERS = "if the slice has another row"
    FULL = "if the tally is full"
    MOVED = "for each row that enters or leaves the positions from its ``first`` to its ``last``"
    SHORTER = "if its slice is the shorter one"
    WANTED = "if a subscriber wants changes"


@dataclass(frozen=True)
class Runs:
    """A body, and how often it runs."""

    often: Often = Often.ONCE


@dataclass(frozen=True)
class Columns:
    """Declares the variables of a field as columns of the view, trie or row that the preceding field names.

    By default these are its first columns; with ``after``, the columns after those of the preceding field; with
    ``bound``, the columns at the positions of the field ``bound``.
    """

    after: bool = False
    bound: bool = False


@dataclass(frozen=True)
class Part:
    """A field of a statement, or of a part of one: its name, its role, how often it runs if it is a body, and its
    columns. ``nested``: its value is a dataclass, or a tuple of dataclasses, with parts of its own."""

    name: str
    role: Role | None
    runs: Runs | None
    columns: Columns | None
    nested: bool


@cache
def parts_of(kind: Hashable) -> tuple[Part, ...]:
    """The fields of a statement that are not constants, in order."""
    assert isinstance(kind, type)
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):
        marks = getattr(hints[field.name], "__metadata__", ())
        role = next((mark for mark in marks if isinstance(mark, Role)), None)
        runs = next((mark for mark in marks if isinstance(mark, Runs)), None)
        columns = next((mark for mark in marks if isinstance(mark, Columns)), None)
        part = Part(field.name, role, runs, columns, nested=role is None and runs is None)
        if not part.nested or _is_nested(hints[field.name]):
            found.append(part)
    return tuple(found)


def _is_nested(hint: Any) -> bool:
    if isinstance(hint, type) and is_dataclass(hint):
        return bool(parts_of(hint))
    return any(map(_is_nested, getattr(hint, "__args__", ())))


def walk(node: Any) -> Iterator[tuple[Part, Any, Any]]:
    """The parts of a statement with their values, those of nested parts included, in order; each with its owner."""
    for part in parts_of(node.__class__):
        value = getattr(node, part.name)
        if not part.nested:
            yield part, value, node
        elif isinstance(value, tuple):
            for one in value:
                yield from walk(one)
        elif value is not None:
            yield from walk(value)


def mapped(node: Any, change: Callable[[Part, Any], Any]) -> Any:
    """The statement with other values of its parts; the statement itself if all are the same."""
    changed: dict[str, Any] = {}
    for part in parts_of(node.__class__):
        before = getattr(node, part.name)
        if not part.nested:
            after = change(part, before)
        elif isinstance(before, tuple):
            after = tuple(mapped(one, change) for one in before)
            after = before if all(map(is_, before, after)) else after
        else:
            after = None if before is None else mapped(before, change)
        if after is not before:
            changed[part.name] = after
    return replace(node, **changed) if changed else node
