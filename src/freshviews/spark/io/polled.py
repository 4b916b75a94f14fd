"""Reads the rows of a polled database table that are in no version yet.

A column whose values grow shows which rows may be new. Digests of rows show which of them a version has already.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from freshviews.errors import SourceError
from freshviews.records import dataclass
from freshviews.spark.connectors.polls import Poll
from freshviews.spark.connectors.secrets import without_secrets
from freshviews.spark.io.columns import quoted
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.sources import Source
from freshviews.spark.state.bundle import Bundle, read_all
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.stores.store import Store
from freshviews.stream import Upserts

MOST_KNOWN = 1_000_000
"""Maximum number of rows within the lag that are known by their digests."""
_DIGEST, _KNOWN, _SAME, _COUNT = (f"_freshviews_{name}" for name in ("digest", "known", "same", "count"))


@dataclass(frozen=True)
class Taken:
    """Rows that are in no version yet. ``source``: with these rows as its DataFrame, which no longer changes.
    ``position``: that of the version with these rows."""

    source: Source
    position: dict[str, Any]


def take(store: Store, source: Source, position: Mapping[str, Any] | None, loaded: bool) -> Taken | None:
    """Read the rows that are in no version yet; None if there are none. ``position``: that of the last version, None
    before the first poll; ``loaded``: a version has rows of the table.

    Raises SourceError if the table cannot be read so, CheckpointError if the position is of another poll.

    A manifest has the poll's position: the value from which the next poll reads, and digests of the known rows with
    this value or a greater one. The next poll drops the known rows. So each row counts once, even if several rows have
    the same value. A row that is committed late is read if its value is within the lag. A row that was changed in place
    has a new digest, so it is read.
    """
    poll = source.spec.poll
    assert poll is not None
    column = polled_column(source)
    position = _next_position(store, source, column, position, loaded)
    try:
        return _new_rows(store, source, poll, column, position)
    except (PySparkException, Py4JJavaError) as error:
        reason = without_secrets(cause(error), source.spec.options)
        raise SourceError(f"table {source.table.name} cannot be polled: {reason}") from error


def _next_position(
    store: Store, source: Source, column: str, position: Mapping[str, Any] | None, loaded: bool
) -> Mapping[str, Any] | None:
    """The position to continue from. Without one, all rows are read once more, which has no effect if the table has a
    key.
    """
    there = {one.name: one.dataType.simpleString() for one in source.frame.schema}
    before = "read in another way"
    if position is not None:
        changed = [name for name, kind in position["columns"].items() if not _same_texts(kind, there.get(name))]
        if position["column"] == column and not changed:
            return position
        before = f"polled by {position['column']}"
        if changed:
            before += f", with a column {changed[0]} that was {position['columns'][changed[0]]}"
    if loaded and not isinstance(source.form, Upserts):
        raise CheckpointError(
            f"table {source.table.name} was {before} in {store.address}, so {column} does not show which rows are new; "
            "read the table as before, declare a PRIMARY KEY, or begin with a new checkpoint"
        )
    return None


_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def _same_texts(kind: str, now: str | None) -> bool:
    """True if values of two types of a column have the same texts."""
    return kind == now or (kind in _INTEGERS and now in _INTEGERS)


def _new_rows(
    store: Store, source: Source, poll: Poll, column: str, position: Mapping[str, Any] | None
) -> Taken | None:
    value = F.col(quoted(column))
    kind = source.frame.schema[column].dataType
    lag = _lag(source, poll, column)
    spark = source.frame.sparkSession
    # The columns that Spark reads, each name once.
    names = dict.fromkeys([*(name for name in source.columns if name not in source.absent), column])
    first = None if position is None else F.lit(position["from"]).cast(kind)
    # Rows are known by the columns that the table had then.
    before = [*names] if position is None else [*position["columns"]]
    rows = source.frame.select(*map(quoted, dict.fromkeys([*names, *before])))
    if first is not None:
        rows = rows.where(value.isNull() | (value >= _read_from(source.frame, kind, first)))
    rows = rows.withColumn(_DIGEST, _digest(source.frame, [*names])).withColumn(_KNOWN, _digest(source.frame, before))
    # A database may have other rows a moment later; a repeated task would read these.
    rows = rows.localCheckpoint()
    if first is not None:
        rows = rows.where(value.isNull() | (value >= first))
    found = rows.agg(_text(F.max(value), kind).alias("highest"), F.count_if(value.isNull()).alias("none")).first()
    assert found is not None
    if found["none"]:
        raise SourceError(
            f"table {source.table.name}: {found['none']:,} rows have NULL in {column}, so a poll by {column} would "
            f"miss their changes; declare {column} NOT NULL in the database, or poll a query without these rows"
        )
    if found["highest"] is None:
        return None
    fresh = rows
    if position is not None and position["known"]:
        known = read_all(store, [position["known"]])
        assert known is not None
        numbered = rows.withColumn(_SAME, F.expr(f"row_number() OVER (PARTITION BY {_KNOWN} ORDER BY {_KNOWN})"))
        listed = spark.createDataFrame(known.rename_columns([_KNOWN, _COUNT]))
        counted = numbered.join(F.broadcast(listed), _KNOWN, "left")
        fresh = counted.where(F.col(_SAME) > F.coalesce(F.col(_COUNT), F.lit(0)))
    fresh = fresh.select(*map(quoted, names))
    if fresh.isEmpty():
        return None
    try:
        lowest = lowered(found["highest"], kind, lag)
    except (ValueError, OverflowError) as error:
        raise SourceError(
            f"table {source.table.name}: all values of the polled column {column} are before the year 1; give one row "
            "a later time, or poll by another column"
        ) from error
    if position is not None:
        # Rows below are no longer known.
        lowest = max(lowest, position["from"], key=lambda text: _parsed(text, kind))
    columns = {name: source.frame.schema[name].dataType.simpleString() for name in names}
    known_now = _write_digests(store, source, rows.where(value >= F.lit(lowest).cast(kind)), lowest)
    return Taken(
        replace(source, frame=fresh), {"column": column, "columns": columns, "from": lowest, "known": known_now}
    )


def _digest(frame: DataFrame, names: Sequence[str]) -> Column:
    """A digest of some columns of a row."""
    return F.md5(F.to_json(F.array(*(_text(F.col(quoted(name)), frame.schema[name].dataType) for name in names))))


def _write_digests(store: Store, source: Source, rows: DataFrame, first: str) -> str:
    """Write the digests of rows, with the number of each; returns the section. If there are too many, but a key
    identifies rows, nothing is written."""
    counted = rows.groupBy(_DIGEST).agg(F.count("*").alias(_COUNT))
    known = counted.limit(MOST_KNOWN + 1).toArrow()
    if known.num_rows > MOST_KNOWN:
        if isinstance(source.form, Upserts):
            return ""
        raise SourceError(
            f"table {source.table.name}: poll_lag covers more than {MOST_KNOWN:,} rows (from {first} on), too many "
            "to compare; give a shorter poll_lag, or declare the PRIMARY KEY of the table"
        )
    bundle = Bundle(store, "polled")
    bundle.add("known", known.schema, known.to_batches())
    name: str = bundle.finish()["known"]
    return name


def polled_column(source: Source) -> str:
    """The column by which a table is polled, as the database spells it. Raises SourceError if the table cannot be
    polled by this column, or with this lag."""
    poll = source.spec.poll
    assert poll is not None
    name = next((one for one in source.frame.columns if one.lower() == poll.column.lower()), None)
    if name is None:
        have = ", ".join(source.frame.columns)
        raise SourceError(
            f"table {source.table.name}: the polled column {poll.column!r} is not in the source; the source has {have}"
        )
    _lag(source, poll, name)
    return str(name)


_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)
_BITS: Mapping[type, int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}


def _lag(source: Source, poll: Poll, column: str) -> int:
    """The lag by a column: in seconds by times, else in its unit. Raises SourceError."""
    kind = source.frame.schema[column].dataType
    times = isinstance(kind, _TIMES)
    if not times and not isinstance(kind, (*_BITS, T.DecimalType)):
        raise SourceError(
            f"table {source.table.name}: poll {column!r} has type {kind.simpleString()}; poll by a column of growing "
            "integers, decimals, dates or timestamps"
        )
    lag = poll.seconds if times else poll.numbers
    if lag is None:
        accepted = "a time, such as '5 minutes'" if times else "a number, such as '1000'"
        raise SourceError(
            f"table {source.table.name}: {column} is a {kind.simpleString()}, so poll_lag must be {accepted}"
        )
    return lag


def _text(value: Column, kind: T.DataType) -> Column:
    """A value as text, for any time zone of the session: an instant as its microseconds."""
    return (F.unix_micros(value) if isinstance(kind, T.TimestampType) else value).cast("string")


def lowered(text: str, kind: T.DataType, lag: int) -> str:
    """The value that is a lag lower than another one, or the lowest of its type, as a text to cast; dates by whole
    days. ``text``: as of ``_text``. Times above the year 9999 count as its end. Raises ValueError or OverflowError if
    the text is a time before the year 1, the lowest here."""
    if isinstance(kind, T.TimestampType):
        since = dt.timedelta(microseconds=int(text))
        return f"{_before(_EPOCH + min(since, dt.datetime.max - _EPOCH), lag)}+00:00"
    if isinstance(kind, T.DateType):
        day = (dt.date.max if _is_late(text) else dt.date.fromisoformat(text)).toordinal() + -lag // 86400
        return str(dt.date.fromordinal(max(1, day)))
    if isinstance(kind, T.TimestampNTZType):
        return str(_before(dt.datetime.max if _is_late(text) else dt.datetime.fromisoformat(text), lag))
    if isinstance(kind, T.DecimalType):
        least = Decimal((1, (9,) * kind.precision, -kind.scale))
        return str(max(_EXACT.subtract(Decimal(text), Decimal(lag)), least))
    lowest = -1 << (_BITS[type(kind)] - 1)
    return str(max(int(text) - lag, lowest))


_EPOCH = dt.datetime(1970, 1, 1)
_EXACT = Context(prec=100)


def _parsed(text: str, kind: T.DataType) -> Any:
    """A text of ``lowered`` as a value that can be compared."""
    if isinstance(kind, T.DateType):
        return dt.date.fromisoformat(text)
    return dt.datetime.fromisoformat(text) if isinstance(kind, _TIMES) else Decimal(text)


def _is_late(text: str) -> bool:
    """True if a time is above the year 9999; Spark writes such a time with a sign."""
    return text.startswith("+")


def _before(at: dt.datetime, seconds: int) -> dt.datetime:
    since = at - dt.datetime.min
    return at - (dt.timedelta(seconds=seconds) if seconds < since.total_seconds() else since)


def _read_from(frame: DataFrame, kind: T.DataType, first: Column) -> Column:
    """The value from which the database reads, in the time zone of Java. Spark writes a time in that zone, or in the
    session's under ``java8API``. In some zones an hour occurs twice, and another one never."""
    if not isinstance(kind, T.TimestampType):
        return first
    spark = frame.sparkSession
    zone = spark._jvm.java.util.TimeZone.getDefault()
    if spark.conf.get("spark.sql.datetime.java8API.enabled") == "true":
        there = F.from_utc_timestamp(first - F.expr("INTERVAL 2 HOURS"), zone.getID())
        return F.to_utc_timestamp(there, str(spark.conf.get("spark.sql.session.timeZone")))
    return first - F.expr("INTERVAL 1 HOUR") if zone.useDaylightTime() else first
