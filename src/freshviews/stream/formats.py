"""Defines the change formats. A change format says what each row of a batch does to the table.

============================  ====================================================================
format                        a row of the batch
============================  ====================================================================
``AppendOnly``                is inserted
``Multiplicities``            is inserted or deleted as often as its signed ``_multiplicity`` says
``OpColumn``                  is inserted or deleted as the word in a column says: insert, D, +, -U, ...
``DeltaFeed``                 is a row of a Delta change feed, with ``_change_type``
``DebeziumJson``              is a Debezium envelope: JSON with op, before and after
``Upserts``                   replaces the row that has its primary key, or removes it
``Snapshots``                 is one of all current rows of the table
============================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from freshviews.catalog.definitions import TableDef
from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.stream.connect import Unit
from freshviews.types.columns import MULTIPLICITY

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


class FormatError(FreshviewsError):
    """A change format is unknown, or needs something the table does not have (a primary key).

    Examples
    --------
    >>> stream.format_for("inserts", ["o_id", "qty", "op"])
    Traceback (most recent call last):
    freshviews.stream.formats.FormatError: change format 'inserts' is unknown; ...
    """


@dataclass(frozen=True)
class AppendOnly:
    """Every row is inserted.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [3], "qty": [9]})
    >>> stream.signed_rows(rows, orders, stream.AppendOnly()).rows["_multiplicity"].to_pylist()
    [1]
    """


@dataclass(frozen=True)
class Multiplicities:
    """Signed rows: a column of integers says how often a row is inserted, or deleted if negative.

    Parameters
    ----------
    column
        Name of the column, by default ``_multiplicity``.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [1], "qty": [5], "n": [-1]})
    >>> stream.signed_rows(rows, orders, stream.Multiplicities("n")).rows.to_pylist()
    [{'o_id': 1, 'qty': 5, '_multiplicity': -1}]
    """

    column: str = MULTIPLICITY


@dataclass(frozen=True)
class OpColumn:
    """Rows with a word that says what becomes of them; ``freshviews.stream.words`` lists the words.

    If the table has a primary key, update words are accepted too: the row replaces the row that has its key at that
    point in the order, which is in the same batch or is looked up. A delete whose columns are NULL, except those of the
    key, deletes the row that has its key.

    Parameters
    ----------
    column
        Name of the column of words, by default ``op``.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [1], "qty": [6], "kind": ["U"]})
    >>> stream.signed_rows(rows, orders, stream.OpColumn("kind"), lookup=db.table("orders").lookup).rows.num_rows
    2
    """

    column: str = "op"


@dataclass(frozen=True)
class DeltaFeed:
    """The change feed of a Delta table; rows are ordered by ``_commit_version`` if that is given.

    Parameters
    ----------
    column
        Name of the column of change types, by default ``_change_type``.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [1], "qty": [5], "_change_type": ["delete"]})
    >>> stream.signed_rows(rows, orders, stream.DeltaFeed()).rows["_multiplicity"].to_pylist()
    [-1]
    """

    column: str = CHANGE_TYPE


@dataclass(frozen=True)
class DebeziumJson:
    """Debezium envelopes as JSON text, bare or as the payload beside its schema; tombstones are ignored.

    A schema beside the payload takes precedence for its fields over ``timestamps`` and ``decimals``.

    Parameters
    ----------
    column
        Name of the column of text, by default ``value``.
    by_key
        True: the row to delete is looked up by primary key, and images before the change need only the key. False, the
        default: images must be whole.
    timestamps
        Unit of numeric timestamps: ``"ms"``, ``"us"`` or ``"ns"``. None, the default: they are refused without a
        schema.
    decimals
        Form of decimal strings: ``"text"``, the default, or ``"base64"`` of unscaled bytes at the scale of the column.

    Raises
    ------
    FormatError
        ``timestamps`` or ``decimals`` is another word.

    Examples
    --------
    >>> rows = pa.record_batch({"value": ['{"op": "c", "before": null, "after": {"o_id": 3, "qty": 9}}']})
    >>> stream.signed_rows(rows, orders, stream.DebeziumJson()).rows.to_pylist()
    [{'o_id': 3, 'qty': 9, '_multiplicity': 1}]
    """

    column: str = "value"
    by_key: bool = False
    timestamps: Unit | None = None
    decimals: Literal["text", "base64"] = "text"

    def __post_init__(self) -> None:
        if self.timestamps not in (None, "ms", "us", "ns"):
            raise FormatError(f"timestamps must be 'ms', 'us' or 'ns', not {self.timestamps!r}")
        if self.decimals not in ("text", "base64"):
            raise FormatError(f"decimals must be 'text' or 'base64', not {self.decimals!r}")


@dataclass(frozen=True)
class Upserts:
    """Rows by primary key: the last row of a key in a batch counts, and the row it replaces is looked up.

    Parameters
    ----------
    column
        Name of a column of words, so that rows can also be removed by key. None, the default: there is none.
    order
        Name of a column of integers, decimals, dates or timestamps, of the table or not, that decides which row of a
        key is the last; ties are broken by position. None, the default: position decides.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [1, 1], "qty": [8, 6], "at": [2, 1]})
    >>> form = stream.Upserts(order="at")
    >>> stream.signed_rows(rows, orders, form, lookup=db.table("orders").lookup).rows["qty"].to_pylist()
    [5, 8]
    """

    column: str | None = None
    order: str | None = None


@dataclass(frozen=True)
class Snapshots:
    """The whole contents each time; changes are computed against the previous contents.

    Examples
    --------
    >>> now = pa.table({"o_id": [1], "qty": [5]})
    >>> stream.signed_rows(now, orders, stream.Snapshots(), previous=pa.table({})).rows.num_rows
    1
    """


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
    """Find the change format with a name, or of a column.

    Parameters
    ----------
    changes
        In any case: append, signed, delta, debezium, debezium-upsert, upsert, snapshot. ``_multiplicity`` and
        ``_change_type`` name the columns of signed rows and Delta change feeds; any other name is that of an op column.
        None, the default, detects these two columns, and is append-only if neither is there.
    columns
        Columns of the input, if known.

    Returns
    -------
    ChangeFormat
        The format.

    Raises
    ------
    FormatError
        A named column is missing, or both columns are there and none is named.

    Examples
    --------
    >>> stream.format_for("upsert"), stream.format_for(None, ["o_id", "_multiplicity"])
    (Upserts(column=None, order=None), Multiplicities(column='_multiplicity'))
    """
    there = {column.lower(): column for column in columns}
    if changes is None:
        found = [name for name in (MULTIPLICITY, CHANGE_TYPE) if name in there]
        if len(found) == 2:
            raise FormatError(
                f"the input has columns {MULTIPLICITY} and {CHANGE_TYPE}; name one of them as the change format"
            )
        return _NAMED[found[0]] if found else AppendOnly()
    word = changes.strip().lower()
    if not word:
        raise FormatError(f"the name of the change format is empty; {_accepted(there.values())}")
    if word in _NAMED:
        return _NAMED[word]
    if there and word not in there:
        raise FormatError(f"change format {changes!r} is unknown; {_accepted(there.values())}")
    return OpColumn(there.get(word, changes.strip()))


def _accepted(columns: Iterable[str]) -> str:
    names = ", ".join(_NAMED)
    there = ", ".join(columns)
    return f"accepted: {names}, or the name of the op column" + (f", one of {there}" if there else "")


def own_columns(form: ChangeFormat) -> tuple[str, ...]:
    """List the columns of the input that belong to a format; the others are the table's.

    The order column of Upserts may be either. A Debezium input has none of the table's columns.

    Parameters
    ----------
    form
        The format.

    Returns
    -------
    tuple[str, ...]
        Names of the columns.

    Examples
    --------
    >>> stream.own_columns(stream.DeltaFeed())
    ('_change_type', '_commit_version', '_commit_timestamp')
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
    """Check whether changes in a format may need the stored rows of their keys.

    A batch must then contain all changes of a key, and the stored rows must be of the version before it.

    Parameters
    ----------
    form
        The format.
    table
        Definition of the table.

    Returns
    -------
    bool
        True if they may.

    Examples
    --------
    >>> stream.looks_up(stream.OpColumn(), orders), stream.looks_up(stream.AppendOnly(), orders)
    (True, False)
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
    """Check whether a row in a format may delete the row of its key, and then need no other column.

    Parameters
    ----------
    form
        The format.
    table
        Definition of the table.

    Returns
    -------
    bool
        True if it may.

    Examples
    --------
    >>> stream.deletes_keys(stream.Upserts(), orders), stream.deletes_keys(stream.Upserts(column="op"), orders)
    (False, True)
    """
    if isinstance(form, Upserts):
        return form.column is not None
    return isinstance(form, OpColumn) and table.has_primary_key


def check_format(form: ChangeFormat, table: TableDef) -> None:
    """Raise FormatError if the table cannot take changes in this format."""
    if not table.has_primary_key and (isinstance(form, Upserts) or (isinstance(form, DebeziumJson) and form.by_key)):
        raise FormatError(
            f"table {table.name}: changes by key need a PRIMARY KEY, but the table has none; declare one, or use a "
            "format of whole rows (signed, delta, debezium, or an op column)"
        )
    if isinstance(form, DebeziumJson):
        return
    taken = {column.name.lower() for column in table.columns}
    for name in own_columns(form):
        if name.lower() in taken:
            raise FormatError(f"table {table.name}: column {name} is reserved by the change format; rename it")
