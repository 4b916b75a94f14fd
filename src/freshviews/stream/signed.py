"""Converts a batch in any change format to signed rows, which ``Database.apply`` takes.

::

    table = TableDef("orders", (ColumnDef("o_id", BIGINT, False), ColumnDef("qty", INT)), (("o_id",),), True)
    signed = signed_rows(batch, table, format_for("op", batch.schema.names))
    db.apply("orders", signed.rows)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.defaults import default_array
from freshviews.records import dataclass
from freshviews.stream.conform import Mask, conformed
from freshviews.stream.debezium import envelope_events
from freshviews.stream.events import Events, Lookup, as_batch, primary_key, resolved, without_row
from freshviews.stream.formats import (
    COMMIT_VERSION,
    AppendOnly,
    ChangeFormat,
    DebeziumJson,
    DeltaFeed,
    Multiplicities,
    OpColumn,
    Snapshots,
    Upserts,
    check_format,
    own_columns,
)
from freshviews.stream.keys import key_numbers
from freshviews.stream.problems import BadChange, Positions, Problems
from freshviews.stream.snapshots import difference
from freshviews.stream.words import ALL_WORDS, DELETE, DELTA_WORDS, KEY_WORDS, REMOVE, REPLACE, ROW_WORDS, actions_of
from freshviews.types import BIGINT
from freshviews.types import arrow_compute as pc
from freshviews.types.arrow_check import cleaned, columns_of, flaw_of, sizes_fit
from freshviews.types.columns import MULTIPLICITY, arrow_type

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SignedRows:
    """Changes of a table as ``Database.apply`` takes them.

    Attributes
    ----------
    rows
        Columns of the table, of the Arrow types of their SQL types, and a BIGINT ``_multiplicity``. Rows may cancel;
        their sum counts.
    positions
        ``positions[i]`` is the input row that row i came from, shape (rows,); for a deleted stored row, the row that
        deletes it; -1 if the row is in no input any more. None if it is i itself.
    bad
        The rows set aside, with the columns of ``BAD_SCHEMA``; else empty.

    Examples
    --------
    >>> signed.rows["_multiplicity"].to_pylist(), signed.bad.num_rows
    ([1, 1, -1], 0)
    """

    rows: pa.RecordBatch
    positions: Positions | None
    bad: pa.RecordBatch


@dataclass(frozen=True)
class _Input:
    """A batch, by the lower-case names of its columns."""

    batch: pa.RecordBatch
    table: TableDef
    problems: Problems
    columns: dict[str, pa.Array]

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        found = self.columns.get(name.lower())
        if found is None:
            self.problems.refuse(name, f"the input has no column {name}; it has {', '.join(self.batch.schema.names)}")
        return found

    def conformed(self, column: ColumnDef, unused: Mask | None = None) -> pa.Array:
        """A column of the input as its SQL type; bad rows are added to ``problems``."""

        def report(row: int, value: object, reason: str) -> None:
            self.problems.add(row, column.name, value, reason)

        try:
            return conformed(column, self.column(column.name), report, unused)
        except TypeError as error:
            self.problems.refuse(column.name, str(error))

    def arrays(self, unused: Mask | None = None) -> tuple[pa.Array, ...]:
        """The table's columns; ``unused`` rows need only the primary key."""
        keys = primary_key(self.table)
        return tuple(
            default_array(column, len(self))
            if self.is_absent(column)
            else self.conformed(column)
            if place in keys
            else self._conformed_of(column, unused)
            for place, column in enumerate(self.table.columns)
        )

    def _conformed_of(self, column: ColumnDef, unused: Mask | None) -> pa.Array:
        """A column that ``unused`` rows do not need. If the input lacks it, the other rows are bad."""
        if column.name.lower() in self.columns or unused is None or not unused.any():
            return self.conformed(column, unused)
        for row in np.flatnonzero(~unused).tolist():
            reason = f"the input has no column {column.name}; only rows that delete their key may lack it"
            self.problems.add(row, column.name, None, reason)
        return pa.nulls(len(self), arrow_type(column.type))

    def of_key_alone(self) -> Mask | None:
        """The rows that have only values of the primary key; None if there are none, or if all columns are in the
        key."""
        keys = primary_key(self.table)
        others = [column.name.lower() for place, column in enumerate(self.table.columns) if place not in keys]
        given = [self.columns[name] for name in others if name in self.columns]
        if not keys or not others or not all(array.null_count for array in given):
            return None
        alone = np.ones(len(self), np.bool_)
        for array in given:
            alone &= array.is_null().to_numpy(zero_copy_only=False)
        return alone

    def is_absent(self, column: ColumnDef) -> bool:
        """True if the input lacks a column for which the table declares a value."""
        return column.default is not None and column.name.lower() not in self.columns


def signed_rows(
    batch: pa.RecordBatch | pa.Table,
    table: TableDef,
    form: ChangeFormat,
    *,
    lookup: Lookup | None = None,
    previous: pa.RecordBatch | pa.Table | None = None,
    set_aside: bool = False,
) -> SignedRows:
    """Turn a batch in a change format into signed rows.

    Parameters
    ----------
    batch
        Columns of the table by name, in any case and order, and those of the format, and no others; only one column of
        a Debezium batch is read. It may lack a column with a DEFAULT, and, in rows that delete their key, all columns
        except the key's.
    table
        Definition of the table.
    form
        The change format.
    lookup
        Function that returns the stored rows of keys, such as ``Table.lookup``; needed if ``looks_up`` is true.
    previous
        For Snapshots only: the batch before; the first time ``pa.table({})``.
    set_aside
        True: bad rows are returned with their reasons. False, the default: the first one is raised.

    Returns
    -------
    SignedRows

    Raises
    ------
    FormatError
        Table and format do not fit.
    BadChange
        A row is bad; with ``set_aside``, the whole batch is (a column is missing, unknown or of a type never accepted).
    TypeError
        ``lookup`` or ``previous`` is needed and not given.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [3, 4], "qty": [9, 8], "op": ["added", "insert"]})
    >>> signed = stream.signed_rows(rows, orders, stream.format_for("op"), set_aside=True)
    >>> signed.rows.num_rows, signed.bad["value"].to_pylist()
    (1, ['added'])
    """
    check_format(form, table)
    given = _input(batch, table, form, set_aside)
    if isinstance(form, Snapshots):
        if previous is None:
            raise TypeError("Snapshots need previous=, the preceding snapshot; pass pa.table({}) the first time")
        return _snapshot(given, _input(previous, table, form, set_aside))
    if isinstance(form, AppendOnly):
        return _to_signed_rows(given, given.arrays(), np.ones(len(given), np.int64), None)
    if isinstance(form, Multiplicities):
        signs = given.conformed(ColumnDef(form.column, BIGINT, nullable=False))
        return _to_signed_rows(given, given.arrays(), signs, None)
    if isinstance(form, DeltaFeed):
        return _delta(given, form)
    if isinstance(form, OpColumn):
        return _words(given, form, lookup)
    if isinstance(form, Upserts):
        return _upserts(given, form, lookup)
    texts = _texts(given, form)
    return _resolve(given, envelope_events(texts, form, table, given.problems), lookup)


def keys_of_envelopes(batch: pa.RecordBatch, table: TableDef, form: DebeziumJson) -> pa.StructArray:
    """Read the primary key of the row that each Debezium envelope changes.

    Parameters
    ----------
    batch
        Batch with the column of the format.
    table
        Definition of the table.
    form
        The format.

    Returns
    -------
    pyarrow.StructArray
        The columns of the key, shape (rows,); NULL if an envelope names none or is bad, which ``signed_rows``
        reports.

    Raises
    ------
    BadChange
        An envelope has another key before than after: its row would be in two places.

    Examples
    --------
    >>> rows = pa.record_batch({"value": ['{"op": "c", "before": null, "after": {"o_id": 3, "qty": 9}}']})
    >>> stream.keys_of_envelopes(rows, orders, stream.DebeziumJson()).to_pylist()
    [{'o_id': 3}]
    """
    places = primary_key(table)
    named = tuple(table.columns[place] for place in places)
    given = _input(batch, replace(table, columns=named, keys=table.keys[:1], foreign_keys=()), form, True)
    events = envelope_events(_texts(given, form), form, given.table, given.problems)
    good = given.problems.good(len(given))
    if good is not None:
        events = events.select_events(np.flatnonzero(good[events.positions]))
    first = np.unique(events.positions, return_index=True)[1]
    rows = np.full(len(given), -1, np.int64)
    rows[events.positions[first]] = first
    keys = pa.StructArray.from_arrays(list(events.arrays), names=[column.name for column in named])
    # Of two events of one envelope the second is the row after.
    second = np.setdiff1d(np.arange(len(events.positions)), first)
    numbers = key_numbers(named, events.arrays)
    for event in second[numbers[second] != numbers[second - 1]].tolist():
        row = int(events.positions[event])
        old, new = keys[event - 1].as_py(), keys[event].as_py()
        reason = f"the primary key is {old} before and {new} after; write a delete and an insert, or use one cell"
        raise BadChange(table.name, row, form.column, batch.column(0)[row].as_py(), reason)
    return keys.take(pa.array(rows, mask=rows < 0))


def _input(
    rows: pa.RecordBatch | pa.Table, table: TableDef, form: ChangeFormat, set_aside: bool
) -> _Input:
    problems = Problems(table.name, set_aside)
    batch = _readable(rows, problems)
    known = {column.name.lower() for column in table.columns} | {name.lower() for name in own_columns(form)}
    if isinstance(form, Upserts) and form.order is not None:
        known.add(form.order.lower())
    columns: dict[str, pa.Array] = {}
    if not batch.num_columns and not batch.num_rows:
        columns = {column.name.lower(): pa.nulls(0, arrow_type(column.type)) for column in table.columns}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name.lower() not in known and not isinstance(form, DebeziumJson):
            names = ", ".join([*(c.name for c in table.columns), *own_columns(form)])
            problems.refuse(name, f"the table has no column {name}; accepted: {names}")
        if name.lower() in columns:
            problems.refuse(name, f"column {name} is given twice")
        columns[name.lower()], invalid = cleaned(array)
        if not isinstance(form, DebeziumJson) or name.lower() == form.column.lower():
            for row, value in invalid.items():
                problems.add(row, name, value, "it is not valid UTF-8 text")
    batch = pa.RecordBatch.from_arrays([*columns.values()], names=batch.schema.names) if batch.num_columns else batch
    return _Input(batch, table, problems, columns)


def _readable(rows: pa.RecordBatch | pa.Table, problems: Problems) -> pa.RecordBatch:
    """The rows as one batch whose values can be read."""
    if isinstance(rows, pa.RecordBatch | pa.Table):
        try:
            columns = columns_of(rows)
        except ValueError as error:
            problems.refuse(None, str(error))
        for name, column in columns:
            flaw = flaw_of(column)
            if flaw is not None:
                raise BadChange(problems.table, flaw[0], name, None, flaw[1])
        if not sizes_fit(rows):
            problems.refuse(None, "the Arrow data is corrupt: not all columns have a value per row")
    return as_batch(rows)


def _delta(given: _Input, form: DeltaFeed) -> SignedRows:
    actions = actions_of(form.column, given.column(form.column), DELTA_WORDS, given.problems).astype(np.int64)
    arrays = given.arrays()
    if COMMIT_VERSION not in given.columns:
        return _to_signed_rows(given, arrays, actions, None)
    commits = given.conformed(ColumnDef(COMMIT_VERSION, BIGINT, nullable=False)).fill_null(0).to_numpy()
    if (commits[1:] >= commits[:-1]).all():
        return _to_signed_rows(given, arrays, actions, None)
    order = np.argsort(commits, kind="stable")
    indices = pa.array(order)
    return _to_signed_rows(given, tuple(array.take(indices) for array in arrays), actions[order], order)


def _words(given: _Input, form: OpColumn, lookup: Lookup | None) -> SignedRows:
    words = ALL_WORDS if given.table.has_primary_key else ROW_WORDS
    actions = actions_of(form.column, given.column(form.column), words, given.problems)
    alone = given.of_key_alone() if lookup is not None else None
    removed = None if alone is None else alone & (actions == DELETE)
    if removed is not None:
        actions = np.where(removed, np.int8(REMOVE), actions)
    arrays = given.arrays(unused=actions == REMOVE)
    if not (np.abs(actions) == REPLACE).any():
        return _to_signed_rows(given, arrays, actions.astype(np.int64), None)
    return _resolve(given, Events(arrays, actions, np.arange(len(given))), lookup, must_find=removed)


def _upserts(given: _Input, form: Upserts, lookup: Lookup | None) -> SignedRows:
    if form.column is None:
        actions = np.full(len(given), REPLACE, np.int8)
    else:
        actions = actions_of(form.column, given.column(form.column), KEY_WORDS, given.problems)
    arrays = given.arrays(unused=actions == REMOVE)
    events = Events(arrays, actions, np.arange(len(given)))
    if form.order is not None:
        events = events.select_events(_order(given, form.order))
    return _resolve(given, events, lookup)


def _order(given: _Input, name: str) -> Numbers:
    """The rows in the order of a column; rows where it is NULL are bad."""
    column = given.column(name)
    for definition in given.table.columns:
        if definition.name.lower() == name.lower():
            column = given.conformed(definition)
    kind = column.type
    if not (
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    ):
        given.problems.refuse(name, f"rows can be ordered by integers, decimals, dates or timestamps, not by {kind}")
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            given.problems.add(row, name, None, "the column orders the rows, so it cannot be NULL")
    order: Numbers = pc.array_sort_indices(column).to_numpy().astype(np.int64)
    return order


def _texts(given: _Input, form: DebeziumJson) -> pa.Array:
    column = given.column(form.column)
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:
            return _decoded(given, form.column, column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    given.problems.refuse(form.column, f"Debezium envelopes must be JSON text (strings or bytes), not {kind}")


def _decoded(given: _Input, name: str, column: pa.Array) -> pa.Array:
    texts: list[str | None] = []
    for row, value in enumerate(column.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            given.problems.add(row, name, value, f"it is not UTF-8: {error.reason}")
            texts.append(None)
    return pa.array(texts, pa.large_string())


def _snapshot(given: _Input, before: _Input) -> SignedRows:
    # Bad rows of the previous contents were set aside then, so they are not deleted now.
    old, new = _good(before, before.arrays(), None), _good(given, given.arrays(), np.arange(len(given)))
    assert new[1] is not None
    arrays, multiplicities, positions = difference(old[0], new[0], new[1])
    return _signed(given, tuple(arrays), multiplicities, positions)


def _resolve(given: _Input, events: Events, lookup: Lookup | None, must_find: Mask | None = None) -> SignedRows:
    """Resolve good events to signed rows. ``must_find``: the input rows that remove a key, and are bad if no row has
    it."""
    for place in primary_key(given.table):
        if events.arrays[place].null_count:
            nulls = events.arrays[place].is_null().to_numpy(zero_copy_only=False)
            for event in np.flatnonzero(nulls & (np.abs(events.actions) == REPLACE)).tolist():
                row, name = int(events.positions[event]), given.table.columns[place].name
                given.problems.add(row, name, None, "NULL in the primary key, which identifies the row to replace")
    good = given.problems.good(len(given))
    if good is not None:
        events = events.select_events(np.flatnonzero(good[events.positions]))
    arrays, signs, positions = resolved(events, given.table, lookup)
    if must_find is not None:
        missed = without_row(events, given.table, positions[signs < 0])
        for row in missed[must_find[missed]].tolist():
            names = [given.table.columns[place].name for place in primary_key(given.table)]
            key = {name: given.column(name)[row].as_py() for name in names}
            given.problems.add(row, names[0], key[names[0]], f"it deletes the key {key}, which no row has")
    return _signed(given, arrays, signs, positions)


def _good(
    given: _Input, arrays: tuple[pa.Array, ...], positions: Positions | None
) -> tuple[tuple[pa.Array, ...], Positions | None]:
    good = given.problems.good(len(given))
    if good is None:
        return arrays, positions
    kept = np.flatnonzero(good if positions is None else good[positions])
    indices = pa.array(kept)
    return tuple(a.take(indices) for a in arrays), kept if positions is None else positions[kept]


def _to_signed_rows(
    given: _Input, arrays: tuple[pa.Array, ...], multiplicities: pa.Array | Numbers, positions: Positions | None
) -> SignedRows:
    """One signed row per good row of the input."""
    if not isinstance(multiplicities, pa.Array):
        multiplicities = pa.array(multiplicities)
    (*columns, signs), positions = _good(given, (*arrays, multiplicities), positions)
    return _signed(given, tuple(columns), signs, positions)


def _signed(
    given: _Input, arrays: tuple[pa.Array, ...], multiplicities: pa.Array | Numbers, positions: Positions | None
) -> SignedRows:
    fields = [pa.field(c.name, arrow_type(c.type), c.nullable) for c in given.table.columns]
    schema = pa.schema([*fields, pa.field(MULTIPLICITY, pa.int64(), nullable=False)])
    signs = multiplicities if isinstance(multiplicities, pa.Array) else pa.array(multiplicities)
    rows = pa.RecordBatch.from_arrays([*arrays, signs], schema=schema)
    return SignedRows(rows, positions, given.problems.set_aside(given.batch))
