"""Defines a block, one SELECT as the planner gets it.

A block has a main Query, aggregates over distinct values (MIN and others), and the expressions of its output columns.
"""

from __future__ import annotations

from dataclasses import field

from freshviews.expr.nodes import Column, Expr
from freshviews.query.query import Query
from freshviews.records import dataclass
from freshviews.types import BIGINT, SqlType

SET = "@set"
"""The variable that holds the number of a row's grouping set. No column has this name."""

BY = ("min_by", "max_by")
FOLDED = ("bit_and", "bit_or")
SCANNED = ("min", "max", *BY, *FOLDED)
"""Aggregates in a semigroup. They cannot subtract a value again, so all values are stored, in order, and scanned."""

CONTINUOUS, DISCRETE = "percentile_cont", "percentile_disc"


@dataclass(frozen=True)
class Percentile:
    """A percentile of values in order, each as often as it occurs.

    Of n values, at the positions 0 to n - 1, PERCENTILE_CONT interpolates linearly at ``fraction * (n - 1)``, and
    PERCENTILE_DISC takes value number ``ceil(fraction * n)``; if ``descending``, from the greatest value down.
    """

    function: str
    fraction: float
    descending: bool = False

    @property
    def kind(self) -> str:
        """The name of a scanned aggregate."""
        return f"{self.function} {self.fraction!r}{' desc' if self.descending else ''}"


def percentile_of(kind: str) -> Percentile | None:
    """The percentile that a scanned aggregate is, by its name."""
    function, *rest = kind.split()
    return Percentile(function, float(rest[0]), len(rest) > 1) if function in (CONTINUOUS, DISCRETE) else None


MODES = ("mode", "mode_last")
"""The most frequent value; of several, the least or the greatest one."""


def counts_values(kind: str) -> bool:
    """True for an aggregate that depends on how often a group has each value."""
    return kind in MODES or percentile_of(kind) is not None


COFACTORS = ("entry", "covariance", "correlation")
"""Results read from a cofactor: a number of it, the covariance of a sample, a correlation."""


RINGS = ("ring", "ring_value")
"""Results read from an element of a user's ring: a word of it, or a computed value, which may fail."""


def part(component: str, entry: tuple[int, ...]) -> str:
    """The name by which a result reads a sum, or a sum of products, of a cofactor of integers. No component has it."""
    return f"@{' '.join(map(str, entry))}:{component}"


def part_of(name: str) -> tuple[str, tuple[int, ...]]:
    """The component and the entry that a result reads; the entry is None if it reads the whole component."""
    if not name.startswith("@"):
        return name, ()
    entry, _, component = name[1:].partition(":")
    return component, tuple(map(int, entry.split()))


def argument_of_amount(place: int, of: SqlType) -> Column:
    """The name by which an amount reads an argument, which is not NULL. No column has it."""
    return Column(f"@argument{place}", of, False)


@dataclass(frozen=True)
class DistinctAggregate:
    """An aggregate over the distinct values of an argument: MIN, MAX, COUNT(DISTINCT), SUM(DISTINCT).

    ``query`` counts derivations by group and argument: its free variables are those of the group (``block.query.free``,
    same order and names) followed by the arguments. NULL arguments are filtered out. ``kind``: one of SCANNED or MODES,
    the kind of a Percentile, ``count`` or ``sum``; ``ring`` as in Aggregate. MIN_BY and MAX_BY have two arguments, the
    ordering value of type ``by`` and the value of type ``type``, which may be NULL; the result is the value of the
    least or greatest pair. ``amount``: what ``sum`` adds for distinct arguments, over names by ``argument_of_amount``;
    None for the one argument itself.
    """

    name: str
    kind: str
    query: Query
    type: SqlType
    ring: str = "integer"
    by: SqlType | None = None
    # An amount identifies an image in addition to the representation, which stays that of older versions.
    amount: Expr | None = field(default=None, repr=False)

    @property
    def arguments(self) -> tuple[SqlType, ...]:
        """The types of the arguments of a scanned aggregate, in the order in which they are compared."""
        return (self.type,) if self.by is None else (self.by, self.type)


@dataclass(frozen=True)
class Result:
    """The value of an aggregate for a group, computed from payload components.

    ``function``: ``count`` (component), ``sum`` (sum, non-null count: NULL if that is 0), ``avg`` (sum, non-null
    count), one of SCANNED or MODES or the kind of a Percentile (the distinct aggregate's name), one of RINGS (element,
    non-null count: NULL if that is 0), whose ``entry`` is the number of the value, ``word`` (a component): the word of
    its element that ``entry`` numbers, which as a code may be NULL, or one of COFACTORS (cofactor): the number of the
    component that ``entry`` names by its variables (the count, a sum or a sum of products), or the covariance or
    correlation of two variables. ``argument``: the type that was summed, of two variables that of their product.
    ``type``: the type of the value, as in Spark.
    """

    name: str
    function: str
    components: tuple[str, ...]
    argument: SqlType
    type: SqlType
    nullable: bool = True
    # A result's name is that of its entry; the representation stays that of images of older versions.
    entry: tuple[int, ...] = field(default=(), repr=False)

    @property
    def may_fail(self) -> bool:
        """True if the value of a group may not fit its type."""
        if self.function == "ring_value":
            return True
        exact = self.type.is_decimal or self.type.is_interval
        return (self.function == "avg" and exact) or (self.function == "bit_and" and self.type == BIGINT)


@dataclass(frozen=True)
class Output:
    name: str
    expr: Expr
    """Over free variables of the query and names of results."""


@dataclass(frozen=True)
class SortColumn:
    """A variable in ORDER BY."""

    variable: str
    type: SqlType
    descending: bool = False
    nulls_last: bool = False


EVERY = 2**31 - 1
"""A number of rows that stands for all rows."""


@dataclass(frozen=True)
class Neighbour:
    """The row ``shift`` places after each one in an order.

    ``columns``: pairs of a free variable and the variable that holds its value in that row. Without such a row this is
    NULL, and ``there`` is 0 instead of 1.
    """

    shift: int
    there: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Frame:
    """The rows from ``low`` to ``high`` places after each row in an order."""

    low: int
    high: int


@dataclass(frozen=True)
class Limit:
    """The first rows of an order: skip ``offset`` rows, counted with multiplicity, then take ``limit`` of them.

    ``order`` and ``groups``, which come first, are the free variables, so no two rows of a group are equal in the
    order. Each group has first rows of its own. ``number``: the variable that holds the place of each copy, from 1;
    empty for rows without places. ``ranks``: each row once, at the place of its first copy. With a number or ranks the
    offset is 0. ``beside``: every row, with a neighbour; or, for ``groups``, results over the frame of each row, whose
    rows are those of the second atom.
    """

    order: tuple[SortColumn, ...]
    limit: int = EVERY
    offset: int = 0
    groups: tuple[str, ...] = ()
    number: str = ""
    ranks: bool = False
    beside: Neighbour | Frame | None = None

    @property
    def added(self) -> tuple[str, ...]:
        """The variables that a row of the result has besides those of the query."""
        if isinstance(self.beside, Neighbour):
            return (self.beside.there, *(name for _, name in self.beside.columns))
        return (self.number,) if self.number else ()


@dataclass(frozen=True)
class Selection:
    """The rows of the atom ``rows`` whose value is below the limit of their group, or, unless ``strict``, equal to it.

    The atoms are not joined. ``rows`` and ``weights`` have the variables ``group`` and ``point``, ``limits`` has
    ``group`` and ``limit``, with at most one row per group. The value of a row is the sum of the aggregate ``weight``
    over the rows of ``weights`` in its group that come before its point (``before``), or not after it (``through``), in
    an order of type ``type``; or the point ``itself``. ``negated``: the value is multiplied by -1. If ``nullable``, a
    sum is NULL if the aggregate ``number`` is 0 or less; a NULL value or limit selects no row.
    """

    rows: str
    weights: str
    limits: str
    group: tuple[str, ...]
    point: str
    limit: str
    type: SqlType
    descending: bool
    value: str
    strict: bool
    negated: bool = False
    nullable: bool = True


@dataclass(frozen=True)
class GatheredColumn:
    """A column of the rows that a text is made of: its type, and its sort direction."""

    type: SqlType
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class Gathering:
    """Texts of all rows of a group: STRING_AGG, the provenance of the group, or relations of a cofactor.

    The block is a bag, whose outputs are ``groups`` columns of the group, and then ``columns``, by which its rows are
    ordered, the first one first. The rows of the view are the columns of the group and the texts, in most cases one.

    With a ``separator`` the text joins the values of the last column, a STRING, each as often as it occurs, or once if
    ``distinct``. It is NULL if all values are NULL. Without a separator the text is a JSON array with an object for
    each row. ``relations`` are the members of the object, in order: a name, and the number of columns in its array.
    ``whole``: there is one group, which has texts even without rows.

    With ``listed`` the rows are those of several relations, each once; the first column is the number of the relation.
    There are several texts, each a JSON array of the rows of one relation: ``listed`` has its number, and the positions
    of the columns in the array of a row.
    """

    columns: tuple[GatheredColumn, ...]
    separator: str | None = None
    distinct: bool = False
    relations: tuple[tuple[str, int], ...] = ()
    groups: int = 0
    whole: bool = False
    # The representation stays that of images of older versions.
    listed: tuple[tuple[int, tuple[int, ...]], ...] = field(default=(), repr=False)

    @property
    def texts(self) -> int:
        """The number of texts of a group."""
        return len(self.listed) or 1


@dataclass(frozen=True)
class Fold(Gathering):
    """Values of a user's aggregate of plain Python instead of texts.

    ``operation`` names the aggregate, whose result is of type ``returns`` (``types.python_aggregates``). The aggregate
    gets the columns of each row, in the order of the rows. If ``marked``, the first column is none of its arguments,
    and rows in which it is NULL are passed over, else rows in which an argument is NULL. Without other rows the value
    is NULL. ``removes``: a value is removed from the state of a group, which is not folded again. ``names``: what the
    groups are grouped by, for messages.
    """

    operation: str = ""
    returns: SqlType = BIGINT
    marked: bool = False
    removes: bool = field(default=False, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    types: tuple[SqlType, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Block:
    """A main query with its results and outputs.

    ``limit``: the block has only the first rows of a bag over one relation. ``selection``: it has only some rows of one
    relation, a bag, too. ``sets``: for ``groups`` only, the grouping sets of GROUPING SETS, ROLLUP and CUBE. Each set
    lists the free variables that it groups by, in the query's order; the others are NULL in its rows, and SET holds the
    set's position. ``gathering``: of a bag, the view has a text for each group of its rows.

    A block has a kind:

    - ``bag`` (of rows, as in SQL): no grouping; the multiplicity of an output row is the number of its derivations
    - ``groups``: GROUP BY or DISTINCT; a row per group with count > 0
    - ``global``: aggregates without GROUP BY; always exactly one row (before HAVING)
    """

    kind: str
    query: Query
    outputs: tuple[Output, ...]
    results: tuple[Result, ...] = ()
    distinct: tuple[DistinctAggregate, ...] = ()
    having: Expr | None = None
    limit: Limit | None = None
    sets: tuple[tuple[str, ...], ...] = ()
    selection: Selection | None = None
    # ``gathering`` identifies an image in addition to the representation, which stays that of older versions.
    gathering: Gathering | None = field(default=None, repr=False)

    @property
    def free(self) -> tuple[str, ...]:
        """The variables that identify a row of the result."""
        added = () if self.limit is None else self.limit.added
        return (SET, *self.query.free) if self.sets else (*self.query.free, *added)

    @property
    def found_by_row(self) -> bool:
        """True if an output row determines the free variables: each is an output by itself."""
        return {o.expr.name for o in self.outputs if isinstance(o.expr, Column)}.issuperset(self.free)
