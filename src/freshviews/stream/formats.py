"""The change formats: the ways in which a row of a batch is marked as inserted or deleted.

============================  ====================================================================
format                        a row of the batch
============================  ====================================================================
``AppendOnly``                is inserted
``Multiplicities``            is inserted or deleted as often as its signed ``_multiplicity`` says
``OpColumn``                  is inserted or deleted as the word in a column says: insert, D, +, -U, ...
``DeltaFeed``                 is of a Delta change feed, with ``_change_type``
``DebeziumJson``              is a Debezium envelope: JSON with op, before and after
``Upserts``                   replaces the row that has its primary key, or removes it
``Snapshots``                 is of the table's whole current contents
============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from freshviews.catalog.definitions import TableDef
from freshviews.errors import FreshviewsError
from freshviews.stream.connect import Unit
from freshviews.types.columns import MULTIPLICITY

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


class FormatError(FreshviewsError):
    """A change format is unknown, or needs something the table does not have (a primary key)."""


@dataclass(frozen=True)
class AppendOnly:
    """Every row is inserted."""


@dataclass(frozen=True)
class Multiplicities:
    """Signed rows: an integer column ``_multiplicity`` says how often a row is inserted (or deleted, if negative)."""

    column: str = MULTIPLICITY


@dataclass(frozen=True)
class OpColumn:
    """A column of words; ``freshviews.stream.words`` lists them.

    If the table has a primary key, update words are accepted too: the row replaces the row that has its key at that
    point in the order, which is in the same batch or is looked up. A delete whose columns are NULL, except those of the
    key, deletes the row that has its key.
    """

    column: str = "op"


@dataclass(frozen=True)
class DeltaFeed:
    """The change feed of a Delta table; rows are ordered by ``_commit_version`` if that is given."""

    column: str = CHANGE_TYPE


@dataclass(frozen=True)
class DebeziumJson:
    """Debezium envelopes as JSON text, bare or as the payload beside its schema; tombstones are ignored.

    ``column``: of the text. ``by_key``: the row to delete is looked up by primary key, and images before the change
    need only the key; otherwise they must be whole. A schema beside the payload takes precedence for its fields:
    ``timestamps`` is the unit ("ms", "us" or "ns") of numeric timestamps, ``decimals`` is the form of decimal strings:
    "text", or "base64" of its unscaled bytes at the column's scale.
    """

    column: str = "value"
    by_key: bool = False
    timestamps: Unit | None = None
    decimals: Literal["text", "base64"] = "text"

    def __post_init__(self) -> None:
        if self.timestamps not in (None, "ms", "us", "ns"):
            raise FormatError(f"timestamps={self.timestamps!r}: accepted are 'ms', 'us' and 'ns'")
        if self.decimals not in ("text", "base64"):
            raise FormatError(f"decimals={self.decimals!r}: accepted are 'text' and 'base64'")


@dataclass(frozen=True)
class Upserts:
    """Rows by primary key: the last row of a key in a batch counts, and the row it replaces is looked up.

    ``column``: of words, so that rows can also be removed by key. ``order``: a column of integers, decimals, dates or
    timestamps, of the table or not, that decides which row of a key is the last; ties are broken by position.
    """

    column: str | None = None
    order: str | None = None


@dataclass(frozen=True)
class Snapshots:
    """The whole contents each time; changes are computed against the previous contents."""


ChangeFormat = AppendOnly | Multiplicities | OpColumn | DeltaFeed | DebeziumJson | Upserts | Snapshots

_NAMED: dict[str, ChangeFormat] = {
    "append": AppendOnly(),
    "signed": Multiplicities(),
    MULTIPLICITY: Multiplicities(),
    "delta": DeltaFeed(),
    CHANGE_TYPE: DeltaFeed(),
    "debezium": DebeziumJson(),
    "debezium-upsert": DebeziumJson(by_key=True),
    "upsert": Upserts(),
    "snapshot": Snapshots(),
}


def format_for(changes: str | None = None, columns: Iterable[str] = ()) -> ChangeFormat:
    """The format with this name, or with this change column.

    Names, in any case: append, signed, delta, debezium, debezium-upsert, upsert, snapshot. ``_multiplicity`` and
    ``_change_type`` name the columns of signed rows and Delta change feeds; any other name is that of an op column.
    ``columns``: of the input, if known; None then detects the two columns, and is append-only if neither is there.
    Raises FormatError if a named column is missing.
    """
    there = {column.lower(): column for column in columns}
    if changes is None:
        found = [name for name in (MULTIPLICITY, CHANGE_TYPE) if name in there]
        if len(found) == 2:
            raise FormatError(f"the input has columns {MULTIPLICITY} and {CHANGE_TYPE}: name the one to use")
        return _NAMED[found[0]] if found else AppendOnly()
    word = changes.strip().lower()
    if not word:
        raise FormatError(f"the change format has no name; {_accepted(there.values())}")
    if word in _NAMED:
        return _NAMED[word]
    if there and word not in there:
        raise FormatError(f"change format {changes!r} is unknown; {_accepted(there.values())}")
    return OpColumn(there.get(word, changes.strip()))


def _accepted(columns: Iterable[str]) -> str:
    names = ", ".join(_NAMED)
    there = ", ".join(columns)
    return f"accepted are {names}, or the name of the op column" + (f", one of {there}" if there else "")


def own_columns(form: ChangeFormat) -> tuple[str, ...]:
    """The columns of the input that belong to the format; the others are the table's.

    The order column of Upserts may be either. A Debezium input has none of the table's columns.
    """
    match form:
        case Multiplicities() | OpColumn() | DebeziumJson():
            return (form.column,)
        case DeltaFeed():
            return (form.column, COMMIT_VERSION, COMMIT_TIMESTAMP)
        case Upserts():
            return () if form.column is None else (form.column,)
        case _:
            return ()


def looks_up(form: ChangeFormat, table: TableDef) -> bool:
    """True if changes of the table in this format may need the stored rows of their keys.

    A batch must then contain all changes of a key, and the stored rows must be of the version before it.
    """
    match form:
        case Upserts():
            return True
        case DebeziumJson():
            return form.by_key
        case OpColumn():
            return table.has_primary_key
        case _:
            return False


def deletes_keys(form: ChangeFormat, table: TableDef) -> bool:
    """True if a row in this format may delete the row of its key, and then need no other column."""
    if isinstance(form, Upserts):
        return form.column is not None
    return isinstance(form, OpColumn) and table.has_primary_key


def check_format(form: ChangeFormat, table: TableDef) -> None:
    """Raise FormatError if the table cannot take changes in this format."""
    if not table.has_primary_key and (isinstance(form, Upserts) or (isinstance(form, DebeziumJson) and form.by_key)):
        raise FormatError(
            f"table {table.name}: changes by key need a PRIMARY KEY, and the table has none; declare one, "
            "or use a format of whole rows (signed, delta, debezium, or an op column)"
        )
    if isinstance(form, DebeziumJson):
        return
    taken = {column.name.lower() for column in table.columns}
    for name in own_columns(form):
        if name.lower() in taken:
            raise FormatError(f"table {table.name}: column {name} is reserved by the change format; rename it")
