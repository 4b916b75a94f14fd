"""Defines the plan of cells: which cells get the rows of each table, and which results of cells are merged.

A checkpoint stores the plan as JSON.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import field, fields
from decimal import Decimal
from math import prod
from typing import Any, Literal

from freshviews.records import dataclass

Value = Any
"""A column value in Python: int, str, float, bool, Decimal, date, datetime or None."""

FORMAT = 1
"""Version of the JSON format."""


@dataclass(frozen=True)
class Dim:
    """One dimension of a grid: ``share`` coordinates, ``stride`` cells apart.

    ``column``: the row's coordinate is ``hash(value cast to kind, seed) mod share``; None: all coordinates. ``kind``:
    bigint, ``decimal(38,s)``, double, string, date, timestamp or boolean. NULL is hashed too.
    """

    column: str | None
    kind: str
    seed: int
    share: int
    stride: int


@dataclass(frozen=True)
class Values:
    """A condition on the rows of a role: the column, cast to ``kind``, is one of the values (``inside``), or differs
    from all of them (NULL included)."""

    column: str
    kind: str
    values: tuple[Value, ...]
    inside: bool


@dataclass(frozen=True)
class Role:
    """How rows of a table are routed to cells. ``name``: the table's name in a cell; the first role has the table's own
    name.

    A row is taken if every condition of ``heavy`` holds. All shares of ``dims`` are above 1; without dims all rows go
    to the cell ``offset``.
    """

    name: str
    table: str
    cells: int
    dims: tuple[Dim, ...] = ()
    offset: int = 0
    heavy: tuple[Values, ...] = ()

    @property
    def span(self) -> int:
        """Number of cells of the grid."""
        return prod(dim.share for dim in self.dims)

    @property
    def copies(self) -> int:
        """Number of cells that a taken row is sent to."""
        return prod(dim.share for dim in self.dims if dim.column is None)

    @property
    def reached(self) -> tuple[int, ...]:
        """All cells that get rows."""
        return tuple((self.offset + i) % self.cells for i in range(self.span))

    def counted_in(self, cell: int) -> bool:
        """True if the cell counts its rows of this role: exactly one of the cells with a copy of a row counts it."""
        place = (cell - self.offset) % self.cells
        if place >= self.span:
            return False
        return all(dim.column is not None or place // dim.stride % dim.share == 0 for dim in self.dims)

    @property
    def routing(self) -> tuple[object, ...]:
        """A key on which roles that route the same rows to the same cells agree."""
        return self.table.lower(), self.dims, self.offset, self.heavy


Reads = tuple[tuple[str, str], ...]
"""Per atom of a block, the relation of the cell that it reads: a role, or a copy of a view."""


@dataclass(frozen=True)
class Copy:
    """A view that a cell maintains under another name for one part. ``reads``: per block."""

    name: str
    view: str
    reads: tuple[Reads, ...]


@dataclass(frozen=True)
class Part:
    """A computation on one grid of cells: a block of a view, for one pattern of heavy values.

    ``block``: the position of the block. ``shares``: variables, or ``atom.column``, with a share above 1. ``heavy``:
    per variable with heavy values, whether this part has them. ``merged``: a group may come from several cells.
    ``copies``: views that the block reads, in order.
    """

    view: str
    block: int
    reads: Reads
    shares: tuple[tuple[str, int], ...] = ()
    offset: int = 0
    heavy: tuple[tuple[str, bool], ...] = ()
    merged: bool = False
    copies: tuple[Copy, ...] = ()

    @property
    def roles(self) -> frozenset[str]:
        """Names of the roles that it reads, directly or through its copies."""
        copies = {copy.name for copy in self.copies}
        names = [name for reads in (self.reads, *(r for c in self.copies for r in c.reads)) for _, name in reads]
        return frozenset(names) - copies

    @property
    def span(self) -> int:
        """Number of cells of the grid."""
        return prod(share for _, share in self.shares)

    def in_cell(self, cell: int, cells: int) -> bool:
        """True if the cell computes a share of it."""
        return (cell - self.offset) % cells < self.span


@dataclass(frozen=True)
class Link:
    """A foreign key that cells check: its number in the table of the role ``child``, and the role of the referenced
    table."""

    child: str
    key: int
    parent: str


@dataclass(frozen=True)
class HeavyValues:
    """Values of a column that occur too often, with the expected rows of each."""

    table: str
    column: str
    kind: str
    values: tuple[Value, ...]
    rows: tuple[float, ...]


@dataclass(frozen=True)
class Output:
    """The source of the rows of a view. ``cells``: the bag union of the named cell views, over all cells that have
    them. ``merge``: the one named view of the second stage."""

    stage: Literal["cells", "merge"]
    views: tuple[str, ...]


@dataclass(frozen=True)
class CellPlan:
    """All that a checkpoint stores to resume its cells unchanged.

    ``numbers``: per table the greatest number that a role's name ever had, so that no name is used twice. ``links``:
    the roles that check each foreign key of an untrusted table.

    A *role* is one way to route the rows of a table to cells. In a cell each role is a table of its own. The cells of a
    role form a grid; its dimensions are called *dims*. A dim with a column sends a row to one coordinate, the hash of
    the value. A dim without a column copies the row to all coordinates. The number of a cell is the offset of the role
    plus the sum of coordinate * stride, modulo the number of cells.
    """

    cells: int
    roles: tuple[Role, ...] = ()
    parts: tuple[Part, ...] = ()
    heavy: tuple[HeavyValues, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    links: tuple[Link, ...] = ()

    def role(self, name: str) -> Role:
        return next(role for role in self.roles if role.name.lower() == name.lower())

    def roles_of(self, table: str) -> tuple[Role, ...]:
        return tuple(role for role in self.roles if role.table.lower() == table.lower())

    def parts_of(self, view: str) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.view.lower() == view.lower())

    def sources(self, table: str) -> tuple[Role, ...]:
        """Roles that together contain each row of the table once, counted in the cells of ``Role.counted_in``."""
        roles = self.roles_of(table)
        whole = next((role for role in roles if not role.heavy), None)
        if whole is not None:
            return (whole,)
        if not roles:
            return ()
        wanted = {(one.column, one.values) for one in roles[0].heavy}
        found: dict[tuple[Values, ...], Role] = {}
        for role in roles:
            if {(one.column, one.values) for one in role.heavy} == wanted:
                found.setdefault(role.heavy, role)
        return tuple(found.values())

    def to_json(self) -> str:
        """Return a text that ``from_json`` reads."""
        made = {
            "format": FORMAT,
            "cells": self.cells,
            "roles": [
                _plain(role) | {"dims": [_plain(d) for d in role.dims], "heavy": [_with_values(v) for v in role.heavy]}
                for role in self.roles
            ],
            "parts": [_plain(part) | {"copies": [_plain(copy) for copy in part.copies]} for part in self.parts],
            "heavy": [_with_values(one) for one in self.heavy],
            "numbers": dict(self.numbers),
            "links": [_plain(link) for link in self.links],
        }
        return json.dumps(made, indent=1)

    @staticmethod
    def from_json(text: str) -> CellPlan:
        """Read a plan. Raises ValueError if it has another format."""
        made = json.loads(text)
        if made.get("format") != FORMAT:
            raise ValueError(
                f"the plan of cells has format {made.get('format')}, but this release of freshviews reads format "
                f"{FORMAT}"
            )
        return CellPlan(
            made["cells"],
            tuple(map(_read_role, made["roles"])),
            tuple(map(_read_part, made["parts"])),
            tuple(_read(HeavyValues, one) for one in made["heavy"]),
            made["numbers"],
            # Plans of older versions have no links.
            tuple(Link(**link) for link in made.get("links", ())),
        )


def _plain(one: Any) -> dict[str, Any]:
    return {each.name: getattr(one, each.name) for each in fields(one)}


def _with_values(one: Values | HeavyValues) -> dict[str, Any]:
    return _plain(one) | {"values": [_written(value) for value in one.values]}


def _written(value: Value) -> Any:
    if isinstance(value, dt.date | Decimal):
        return str(value)
    return repr(value) if isinstance(value, float) else value


def _read(of: Any, made: dict[str, Any]) -> Any:
    values = tuple(_value(value, made["kind"]) for value in made["values"])
    rest = {"rows": tuple(made["rows"])} if "rows" in made else {}
    return of(**{**made, **rest, "values": values})


def _read_role(made: dict[str, Any]) -> Role:
    dims = tuple(Dim(**dim) for dim in made["dims"])
    return Role(**{**made, "dims": dims, "heavy": tuple(_read(Values, one) for one in made["heavy"])})


def _read_part(made: dict[str, Any]) -> Part:
    copies = tuple(Copy(c["name"], c["view"], tuple(map(_pairs, c["reads"]))) for c in made["copies"])
    pairs = {name: _pairs(made[name]) for name in ("reads", "shares", "heavy")}
    return Part(**{**made, **pairs, "copies": copies})


def _pairs(made: list[list[Any]]) -> tuple[Any, ...]:
    return tuple((a, b) for a, b in made)


def _value(written: Any, kind: str) -> Value:
    if kind == "date":
        return dt.date.fromisoformat(written)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(written)
    if kind.startswith("decimal"):
        return Decimal(written)
    return float(written) if kind == "double" else written
