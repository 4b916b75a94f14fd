"""Defines tables and views as dataclasses, which the SQL front end makes."""

from __future__ import annotations

from dataclasses import field

from freshviews.catalog.rings import rings_of
from freshviews.expr.nodes import Column, columns_of
from freshviews.query.block import Block
from freshviews.records import dataclass
from freshviews.ring import RecordedRing
from freshviews.types import SqlType


@dataclass(frozen=True)
class Default:
    """The constant of a DEFAULT: its code, of a STRING the text; None for NULL."""

    value: int | str | None


@dataclass(frozen=True)
class ColumnDef:
    """A column of a base table. ``length``: the limit of a VARCHAR(n), whose type is STRING; 0 for no limit.

    ``default``: the value in rows that omit the column. Without a DEFAULT, rows given by name get NULL, and a source
    must have the column. Stored rows do not depend on it, so the repr, by which images are compared, omits it.
    """

    name: str
    type: SqlType
    nullable: bool = True
    length: int = 0
    default: Default | None = field(default=None, repr=False)

    @property
    def may_be_absent(self) -> bool:
        """True if a row that is given by name may omit it."""
        return self.nullable or self.default is not None


@dataclass(frozen=True)
class ForeignKey:
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True)
class TableDef:
    """A base table.

    ``keys``: PRIMARY KEY and UNIQUE column sets; the primary key is first if ``has_primary_key``. ``trusted``: skip the
    checks that read stored rows. ``internal``: users neither name nor change it, as the table of the clock.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    has_primary_key: bool = False
    foreign_keys: tuple[ForeignKey, ...] = ()
    trusted: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    internal: bool = False

    @property
    def checked_keys(self) -> tuple[tuple[str, ...], ...]:
        """The keys that commits check: none for a trusted table."""
        return () if self.trusted else self.keys


@dataclass(frozen=True)
class SetOperation:
    """The operation that combines the rows of two terms.

    ``kind``: ``union``, ``except`` and ``intersect`` read and make distinct rows; the others count equal rows: ``all``
    (UNION ALL, l + r), ``except_all`` (max(0, l - r)), ``intersect_all`` (min(l, r)).
    """

    kind: str
    left: SetTerm
    right: SetTerm

    def __str__(self) -> str:
        words = "UNION ALL" if self.kind == "all" else self.kind.upper().replace("_", " ")
        left, right = (f"({t})" if isinstance(t, SetOperation) else str(t + 1) for t in (self.left, self.right))
        return f"{left} {words} {right}"


SetTerm = int | SetOperation
"""A block, by its position in the view, or an operation.

A block below an operation other than UNION ALL has distinct rows: its kind is ``groups`` and all its free variables are
outputs. If its rows are counted (``looked_up_blocks``), its first result is the number of copies of each row, by
default 1.
"""


def looked_up_blocks(term: SetTerm) -> dict[int, bool]:
    """The blocks below an operation other than UNION ALL, whose rows are looked up; True if rows are counted."""
    found: dict[int, bool] = {}
    left: list[tuple[SetTerm, bool, bool]] = [(term, False, True)]
    while left:
        term, inside, counted = left.pop()
        if isinstance(term, SetOperation):
            if term.kind in ("union", "except", "intersect"):
                counted = False
            elif term.kind == "except_all":
                counted = True
            inside = inside or term.kind != "all"
            left += [(term.right, inside, counted), (term.left, inside, counted)]
        elif inside:
            found[term] = counted
    return found


@dataclass(frozen=True)
class SortPlace:
    """A column of ORDER BY: its position in the list, and the direction."""

    column: int
    descending: bool
    nulls_last: bool


@dataclass(frozen=True)
class ReadOrder:
    """The order in which the rows of a view are read; ties are in the order of all columns.

    ``places``: None for the order of the view's LIMIT. ``relation``: an internal view with the view's columns, followed
    by the columns of ORDER BY that the view does not show.
    """

    places: tuple[SortPlace, ...] | None
    relation: str = ""


ConstantRow = tuple[str | int | float | bool | None, ...]
"""A row of constants, as values of ``expr.nodes.Literal``."""


@dataclass(frozen=True)
class ViewDef:
    """A view, or an internal view (``internal``; its name has a ``#``) made for a nested SELECT.

    ``combined``: how the blocks are combined; None means UNION ALL.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    blocks: tuple[Block, ...]
    strategy: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    internal: bool = False
    sql: str = ""
    combined: SetOperation | None = field(default=None, repr=False)
    expanded: tuple[str, ...] = field(default=(), repr=False)
    """The plain views that the query names; the query is stored with them expanded."""
    functions: tuple[str, ...] = field(default=(), repr=False)
    """The functions of users that the query and its plain views call, in lower case; their bodies are in the query."""
    order: ReadOrder | None = field(default=None, repr=False)
    constants: tuple[ConstantRow, ...] = ()
    """The rows of an internal view that never changes: of VALUES, or the one row of a SELECT without FROM. It has no
    blocks."""
    group: tuple[str, ...] | None = field(default=None, repr=False)
    """The columns of GROUP BY if the view joins internal views by group, so that its block is a bag."""
    rings: tuple[RecordedRing, ...] = field(default=(), init=False, repr=False, compare=False)
    """The users' rings of its aggregates; a process that receives the view knows the rings by them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rings", rings_of(self.blocks))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tables and views that it reads, each once."""
        queries = [q for b in self.blocks for q in (b.query, *(d.query for d in b.distinct))]
        return tuple(dict.fromkeys(a.relation for q in queries for a in (*q.atoms, *q.negated)))

    def reads(self, relation: str, column: str) -> bool:
        """True if its queries name a column of a relation; names must have the spelling of their definitions."""
        for query in (q for b in self.blocks for q in (b.query, *(d.query for d in b.distinct))):
            atoms = {atom.name: atom for atom in (*query.atoms, *query.negated) if atom.relation == relation}
            lifts = [lift.expr for one in query.aggregates for lift in one.lifts if lift.atom in atoms]
            exprs = [expr for atom in atoms.values() for expr in (*atom.columns, *atom.filters)]
            if any(column in columns_of(expr) for expr in (*exprs, *lifts)):
                return True
        return False

    @property
    def checked_keys(self) -> tuple[tuple[str, ...], ...]:
        """The groups of a view with one grouping, as a key; () for a view of one row."""
        if self.group is not None:
            return (self.group,)
        if len(self.blocks) != 1 or self.combined is not None:
            return ()
        (block,) = self.blocks
        if block.gathering is not None:
            return (tuple(column.name for column in self.columns[: block.gathering.groups]),)
        names = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
        if block.kind == "bag" or block.sets or not names.keys() >= set(block.free):
            return ()
        return (tuple(names[variable] for variable in block.free),)


@dataclass(frozen=True)
class PlainView:
    """A view that is not materialised: its query is bound again at each use.

    ``sql``: its CREATE VIEW. ``inputs``: the tables and views that the query names, directly or by other plain views,
    each once. ``widths``: the number of columns of each of these tables when the view was created. ``functions``: the
    functions of users that it calls, in lower case.
    """

    name: str
    columns: tuple[ColumnDef, ...]
    sql: str
    inputs: tuple[str, ...]
    widths: tuple[tuple[str, int], ...] = ()
    functions: tuple[str, ...] = ()
