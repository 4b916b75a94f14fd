"""The change formats: how rows of a batch say whether they come or go.

============================  ====================================================================
format                        a row of the batch
============================  ====================================================================
``AppendOnly``                is inserted
``Multiplicities``            comes or goes as often as its signed ``_multiplicity`` says
``OpColumn``                  comes or goes as the word in a column says: insert, D, +, -U, ...
``DeltaFeed``                 is of a Delta change feed, with ``_change_type``
``DebeziumJson``              is a Debezium envelope: JSON with op, before and after
``Upserts``                   replaces the row that has its primary key, or removes it
``Snapshots``                 is of the table's whole contents, as they are now
============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from freshviews.catalog.definitions import TableDef
from freshviews.engine.codes.encoding import MULTIPLICITY
from freshviews.errors import FreshviewsError
from freshviews.stream.connect import Unit

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


class FormatError(FreshviewsError):
    """A change format is unknown, or asks for what the table does not have (a primary key)."""


@dataclass(frozen=True)
class AppendOnly:
    """Every row is inserted."""


@dataclass(frozen=True)
class Multiplicities:
    """Signed rows: an integer column ``_multiplicity`` says how often a row comes (or goes, if negative)."""

    column: str = MULTIPLICITY


@dataclass(frozen=True)
class OpColumn:
    """A column of words; ``freshviews.stream.words`` lists them.

    Where the table has a primary key, update words are accepted, too: the row replaces the one that has its
    key at that place in the order, which is of the same batch, or else is looked up.
    """

    column: str = "op"


@dataclass(frozen=True)
class DeltaFeed:
    """The change feed of a Delta table; rows come out in the order of ``_commit_version`` where that is given."""

    column: str = CHANGE_TYPE


@dataclass(frozen=True)
class DebeziumJson:
    """Debezium envelopes as JSON text, bare or as the payload beside its schema; tombstones are passed over.

    ``column``: of the text. ``by_key``: the row that goes is looked up by primary key, and images before the
    change need hold no more than the key; else they must be whole. What a schema beside the payload says of
    its fields goes before the rest: ``timestamps`` is the unit ("ms", "us" or "ns") of timestamps that are
    numbers, and ``decimals`` says what a decimal that is a string holds: "text", or "base64" of its unscaled
    bytes at the column's scale.
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
    """Rows by primary key: the last one of a key in a batch counts, and the row it replaces is looked up.

    ``column``: of words, where rows can also be removed by key. ``order``: a column of integers, decimals,
    dates or timestamps, of the table or not, that says which row of a key is the last; ties go by position.
    """

    column: str | None = None
    order: str | None = None


@dataclass(frozen=True)
class Snapshots:
    """The whole contents each time; what changed is found against the contents before."""


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
    """The format of a name, or of the name of a change column.

    Names, in any case: append, signed, delta, debezium, debezium-upsert, upsert, snapshot. ``_multiplicity``
    and ``_change_type`` name columns of signed rows and Delta change feeds; any other name is that of an op
    column. ``columns`` are those of the input, where they are known: None then finds the two columns itself,
    and is append-only where neither is there; and a column that is not there is a FormatError.
    """
    there = {column.lower(): column for column in columns}
    if changes is None:
        found = [name for name in (MULTIPLICITY, CHANGE_TYPE) if name in there]
        if len(found) == 2:
            raise FormatError(f"the input has columns {MULTIPLICITY} and {CHANGE_TYPE}: name the one that counts")
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

    The order of Upserts may be either. A Debezium input has none of the table's.
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
    """Whether changes of the table in this format may need the stored rows of their keys.

    If so, a batch must hold all changes of a key, and what is stored must be of the version before it.
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


def check_format(form: ChangeFormat, table: TableDef) -> None:
    """FormatError where the table cannot take changes in this format."""
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
            raise FormatError(f"table {table.name}: column {name} is the format's; the table cannot have it, too")
