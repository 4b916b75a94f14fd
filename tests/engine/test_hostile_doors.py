"""Rows and keys of any kind are taken, or an error of freshviews refuses them and nothing is applied."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import make_dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freshviews as fv

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """CREATE TABLE t (id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(6, 2), x DOUBLE,
  PRIMARY KEY (id, name));
CREATE TABLE d (k DOUBLE PRIMARY KEY, day DATE DEFAULT '2026-01-01', flag BOOLEAN);
CREATE MATERIALIZED VIEW v AS SELECT name, COUNT(*) AS n, SUM(price) AS price FROM t GROUP BY name;
CREATE MATERIALIZED VIEW w TBLPROPERTIES ('freshviews.key' = 'day') AS SELECT day, flag FROM d WHERE flag"""
COLUMNS = {"t": ("id", "name", "at", "price", "x"), "d": ("k", "day", "flag")}

VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 2**63 - 1, -(2**63), 2**200, True, False, 0.0, -0.0, 1.5, float("nan"), float("inf"), 1e300, "",
    "x", "é\0", "\ud800", "2026-01-31", "2026-01-31 12:00:00", "x" * 1000, b"x", Decimal("1.25"), Decimal("NaN"),
    Decimal("1E+50"),
    dt.date(2026, 1, 1), dt.date.min, dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.time(1),
    dt.timedelta(1), np.int64(3), np.float32(1.5), np.datetime64("NaT"), np.datetime64("2026-01-01"), np.str_("n"),
    np.bool_(True), pd.NaT, pd.NA, pd.Timestamp("2026-01-01", tz="Asia/Tokyo"), pa.scalar(1), [], [1], (), (1, "x"), {},
    {"id": 1}, {1}, object(), int, len, complex(1, 2), slice(1, 2), range(2), np.array([1, 2]), Ellipsis,
)  # fmt: skip

Column = Callable[[list[Any]], Any]
FRAMES: tuple[Callable[[dict[str, list[Any]]], Any], ...] = (
    pd.DataFrame,
    lambda columns: pl.from_arrow(pa.table(columns)),
    pa.table,
    lambda columns: pd.DataFrame(columns).astype("category"),
    lambda columns: pa.table({name: pa.array(values).dictionary_encode() for name, values in columns.items()}),
    lambda columns: pa.table(columns).to_batches()[0],
    lambda columns: pa.table(columns).to_reader(),
)


def row_of(chosen: random.Random, table: str) -> Any:
    """A row in one of its forms; often a good one with a bad value, or a bad name."""
    good = {
        "t": {"id": chosen.randrange(3), "name": chosen.choice("ab"), "at": None, "price": Decimal("1.5"), "x": 0.5},
        "d": {"k": chosen.choice((0.0, 1.0, float("nan"))), "day": dt.date(2026, 1, 1), "flag": True},
    }[table]
    named = {name: chosen.choice(VALUES) if chosen.random() < 0.15 else value for name, value in good.items()}
    form = chosen.randrange(8)
    if form < 3:
        return tuple(named.values())[: chosen.choice((9, 9, 9, 1))]
    if form == 3:
        return list(named.values())
    if form == 4:
        return make_dataclass("Row", named)(**named)
    for name in chosen.sample(sorted(named), chosen.choice((0, 0, 1))):
        named[chosen.choice((name.upper(), name + "_", ""))] = named.pop(name)
    return named if form < 7 else chosen.choice(VALUES)


def rows_of(chosen: random.Random, table: str) -> Any:
    rows = [row_of(chosen, table) for _ in range(chosen.choice((0, 1, 1, 2, 20)))]
    form = chosen.randrange(6)
    if form == 0:
        return row_of(chosen, table)
    if form == 1:
        return iter(rows)
    if form == 2:
        names = chosen.sample(COLUMNS[table], chosen.randrange(1, len(COLUMNS[table]) + 1))
        columns = {name: [chosen.choice(VALUES)] * 3 for name in names}
        try:
            return chosen.choice(FRAMES)(columns)
        except (Exception, pl.exceptions.PanicException):  # The library itself refuses the values.
            return rows
    return rows


def key_of(chosen: random.Random) -> Any:
    return chosen.choice([chosen.choice(VALUES), (chosen.randrange(3), chosen.choice("ab")), {"id": 1, "name": "a"}])


def act(db: fv.Database | fv.Batch, chosen: random.Random) -> None:
    table = chosen.choice(("t", "t", "d"))
    method = chosen.choice(("insert", "upsert", "update", "delete", "apply", "keys"))
    if method == "keys":
        keys: Any = [key_of(chosen) for _ in range(chosen.randrange(4))]
        db.delete(table, keys=chosen.choice([keys, keys, iter(keys), key_of(chosen), rows_of(chosen, table)]))
    else:
        getattr(db, method)(table, rows_of(chosen, table))


def look(db: fv.Database, chosen: random.Random) -> None:
    key = key_of(chosen)
    for name in ("t", "d"):
        db.table(name).get(key)
    for name in ("v", "w"):
        db.view(name).get(key)
        db.view(name).scan(key)
    db.view("v").where(**{chosen.choice(("n", "NAME", "price", "none")): key})


@pytest.mark.seeds(40)
def test_random_rows_raise_only_errors_of_freshviews(seed: int) -> None:
    chosen = random.Random(seed)
    with fv.Database() as db:
        db.execute(SCRIPT)
        for _ in range(60):
            before = db.version, sorted(map(repr, db.table("t"))), sorted(map(repr, db.table("d")))
            try:
                if chosen.random() < 0.3:
                    with db.batch() as batch:
                        act(batch, chosen)
                        act(batch, chosen)
                else:
                    act(db, chosen)
            except fv.FreshviewsError as error:
                assert str(error) and len(str(error)) < 1500
                after = db.version, sorted(map(repr, db.table("t"))), sorted(map(repr, db.table("d")))
                assert after == before
            try:
                look(db, chosen)
            except fv.FreshviewsError as error:
                assert str(error)
            counts = {row[0]: row[1] for row in db.view("v")}
            assert sum(counts.values()) == len(db.table("t"))
