"""What the SQL front end hands on: tables, and views made of blocks.

A view is a UNION ALL of blocks (mostly one), or what a ``SetTerm`` says. A block is a main Query, the distinct
aggregates that hang on it, and the expressions that make the output columns. Three kinds:

- ``bag``: no grouping; the multiplicity of an output row is the count of its derivations
- ``groups``: GROUP BY or DISTINCT; a row per group with count > 0
- ``global``: aggregates without GROUP BY; always exactly one row (before HAVING)
"""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.expr.nodes import Column, Expr
from freshviews.query.query import Query
from freshviews.types import BIGINT, SqlType

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
