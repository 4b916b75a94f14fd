"""What the SQL front end hands on: tables, and views made of blocks.

A view is a UNION ALL of blocks (mostly one), or what a ``SetTerm`` says. A block is a main Query, the distinct
aggregates that hang on it, and the expressions that make the output columns. Three kinds:

- ``bag``: no grouping; the multiplicity of an output row is the count of its derivations
- ``groups``: GROUP BY or DISTINCT; a row per group with count > 0
- ``global``: aggregates without GROUP BY; always exactly one row (before HAVING)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from freshviews.expr.nodes import Column, Expr
from freshviews.query.query import Query
from freshviews.types import BIGINT, SqlType


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


SET = "@set"
"""The variable that tells of which of its grouping sets, by position, a row of a block is. No column has its name."""

BY = ("min_by", "max_by")
FOLDED = ("bit_and", "bit_or")
SCANNED = ("min", "max", *BY, *FOLDED)
"""Aggregates in a semigroup: a value is not taken out again, so all are kept, in order, and scanned."""


@dataclass(frozen=True)
class DistinctAggregate:
    """An aggregate over the distinct values of an argument: MIN, MAX, COUNT(DISTINCT), SUM(DISTINCT).

    ``query`` counts derivations by group and argument: its free variables are the group's
    (``block.query.free``, same order and names) followed by the arguments; NULL arguments are filtered
    out. ``kind`` is one of SCANNED, count or sum (sum: of the one argument; ring as in Aggregate). MIN_BY and MAX_BY
    have two arguments, what is ordered ``by``, of this type, and the value, which may be NULL, of type ``type``: they
    are the value of the least and greatest pair.
    """

    name: str
    kind: str
    query: Query
    type: SqlType
    ring: str = "integer"
    by: SqlType | None = None

    @property
    def arguments(self) -> tuple[SqlType, ...]:
        """The types that the arguments of a scanned one are in order of."""
        return (self.type,) if self.by is None else (self.by, self.type)


@dataclass(frozen=True)
class Result:
    """The value of an aggregate for a group, made of payload components.

    ``function``: ``count`` (component), ``sum`` (sum, non-null count: NULL where that is 0), ``avg``
    (sum, non-null count), one of SCANNED (the distinct aggregate's name). ``argument`` is the type
    that was summed; ``type`` the type of the value, as Spark has it.
    """

    name: str
    function: str
    components: tuple[str, ...]
    argument: SqlType
    type: SqlType
    nullable: bool = True

    @property
    def may_fail(self) -> bool:
        """Whether a group may have no such value that can be stored."""
        return (self.function == "avg" and self.type.is_decimal) or (self.function == "bit_and" and self.type == BIGINT)


@dataclass(frozen=True)
class Output:
    name: str
    expr: Expr
    """Over free variables of the query and names of results."""


@dataclass(frozen=True)
class SortColumn:
    """A variable that rows are ordered by."""

    variable: str
    type: SqlType
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class Limit:
    """Of the rows in order, each as often as it counts, those after the first ``offset`` ones, ``limit`` of them.

    ``order`` has every free variable, so that no two rows are equal in it."""

    order: tuple[SortColumn, ...]
    limit: int
    offset: int = 0


@dataclass(frozen=True)
class Block:
    """``limit``: of a bag over one relation, the first rows alone are the block's. ``sets``, of ``groups`` alone: the
    block groups in several ways at once, as GROUPING SETS, ROLLUP and CUBE say. Each is the free variables of the query
    that it groups by, in their order; those it does not are NULL in its rows, and SET is its position."""

    kind: str
    query: Query
    outputs: tuple[Output, ...]
    results: tuple[Result, ...] = ()
    distinct: tuple[DistinctAggregate, ...] = ()
    having: Expr | None = None
    limit: Limit | None = None
    sets: tuple[tuple[str, ...], ...] = ()

    @property
    def free(self) -> tuple[str, ...]:
        """The variables that tell rows of the result apart."""
        return (SET, *self.query.free) if self.sets else self.query.free

    @property
    def found_by_row(self) -> bool:
        """Whether the output tells the free variables: each is an output as it is."""
        return {o.expr.name for o in self.outputs if isinstance(o.expr, Column)}.issuperset(self.free)


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


@dataclass(frozen=True)
class Script:
    """Statements of a script in order: tables, and views with their internal views before them."""

    statements: tuple[TableDef | ViewDef, ...] = field(default=())
