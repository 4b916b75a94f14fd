"""Definitions of tables and views: what the SQL front end hands on.

A view is a UNION ALL of blocks (mostly one), or what its ``SetTerm`` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from freshviews.query.block import Block
from freshviews.types import SqlType


@dataclass(frozen=True)
class ColumnDef:
    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class ForeignKey:
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True)
class TableDef:
    """A base table. ``keys`` are PRIMARY KEY and UNIQUE column sets, the primary key first when
    ``has_primary_key``. ``trusted``: checks that need stored rows are skipped."""

    name: str
    columns: tuple[ColumnDef, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    has_primary_key: bool = False
    foreign_keys: tuple[ForeignKey, ...] = ()
    trusted: bool = False
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SetOperation:
    """How rows of blocks are put together. ``kind``: ``union``, ``except``, ``intersect``, of terms whose rows come
    once each; or ``all``, the rows of both, which stands above the others only."""

    kind: str
    left: SetTerm
    right: SetTerm

    def __str__(self) -> str:
        words = {"all": "UNION ALL"}.get(self.kind, self.kind.upper())
        left, right = (f"({t})" if isinstance(t, SetOperation) else str(t + 1) for t in (self.left, self.right))
        return f"{left} {words} {right}"


SetTerm = int | SetOperation
"""A block, by its position in the view, or an operation. A block under an operation on sets is a distinct one: of
kind ``groups``, all its free variables among its outputs."""


@dataclass(frozen=True)
class ViewDef:
    """A view, or an internal view (``internal``; its name has a ``#``) made for a nested SELECT. ``combined``: how the
    blocks make the rows; None: all rows of all blocks."""

    name: str
    columns: tuple[ColumnDef, ...]
    blocks: tuple[Block, ...]
    strategy: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    internal: bool = False
    sql: str = ""
    combined: SetOperation | None = field(default=None, repr=False)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tables and views it reads, each once."""
        queries = [q for b in self.blocks for q in (b.query, *(d.query for d in b.distinct))]
        return tuple(dict.fromkeys(a.relation for q in queries for a in (*q.atoms, *q.negated)))
