"""Bad rows set aside: good rows are applied, bad ones are returned with their reasons."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from freshviews.stream import BAD_SCHEMA, AppendOnly, BadChange, Multiplicities, OpColumn, Upserts, signed_rows
from tests.stream.tables import BAG, ORDERS, Stored, batch, net, table

SMALL = table("CREATE TABLE small (id INT NOT NULL, qty TINYINT)")


def test_bad_rows_are_returned_with_the_reason():
    given = batch(
        op=["I", "X", "I", "I", "D"],
        id=["1", "2", "three", "4", "5"],
        part=["a", "b", "c", None, "e"],
        day=["2026-01-01", None, None, None, "2026-13-01"],
        total=["1", "1", "1", "1", "1"],
    )
    signed = signed_rows(given, ORDERS, OpColumn(), set_aside=True)
    assert [row[0] for row in net(signed)] == [1]
    assert signed.positions.tolist() == [0]
    assert signed.bad.schema == BAD_SCHEMA
    bad = signed.bad.to_pylist()
    assert [(b["row"], b["column"], b["value"]) for b in bad] == [
        (1, "op", "X"),
        (2, "id", "three"),
        (3, "part", None),
        (4, "day", "2026-13-01"),
    ]
    assert bad[2]["reason"] == "NULL in a column declared NOT NULL"
    assert json.loads(bad[1]["input"]) == {"op": "I", "id": "three", "part": "c", "day": None, "total": "1"}


def test_each_bad_value_among_many_is_found():
    rng = np.random.default_rng(7)
    ids = np.arange(20_000)
    wrong = rng.choice(20_000, 300, replace=False)
    ids[wrong] = 2**40
    signed = signed_rows(batch(id=ids, qty=ids % 100), SMALL, AppendOnly(), set_aside=True)
    # 2**40 % 100 fits TINYINT, so only the ids are wrong.
    assert signed.bad.column("row").to_pylist() == sorted(wrong.tolist())
    assert signed.rows.num_rows == 19_700
    assert set(signed.bad.column("reason").to_pylist()) == {"INT accepts -2147483648 to 2147483647"}


def test_the_first_bad_row_raises_an_error():
    with pytest.raises(BadChange) as raised:
        signed_rows(batch(id=[1, 2, 3], qty=[1, 300, 400]), SMALL, AppendOnly())
    error = raised.value
    assert (error.row, error.column, error.value) == (1, "qty", 300)
    assert str(error) == "table small, row 1, column qty: 300: TINYINT accepts -128 to 127"


def test_an_invalid_multiplicity_is_a_bad_row():
    given = batch(id=[1, 2, 3], part=["a", "b", "c"], _multiplicity=[1, None, -1])
    signed = signed_rows(given, BAG, Multiplicities(), set_aside=True)
    assert net(signed) == {(1, "a"): 1, (3, "c"): -1}
    wide = batch(id=[1, 2], part=["a", "b"], _multiplicity=pa.array([1, 2**63], pa.uint64()))
    assert signed_rows(wide, BAG, Multiplicities(), set_aside=True).bad.column("row").to_pylist() == [1]


def test_a_bad_upsert_does_not_change_the_row_of_its_key():
    items = table("CREATE TABLE items (id BIGINT PRIMARY KEY, qty TINYINT)")
    stored = Stored(items, (1, 10), (2, 20))
    given = batch(id=[1, 2, 2], qty=[300, 21, 300])
    signed = signed_rows(given, items, Upserts(), lookup=stored, set_aside=True)
    assert net(signed) == {(2, 20): -1, (2, 21): 1}
    assert stored.asked == [2]


def test_all_rows_of_a_batch_may_be_set_aside():
    signed = signed_rows(batch(id=["x", "y"], part=["a", "b"]), BAG, AppendOnly(), set_aside=True)
    assert (signed.rows.num_rows, signed.bad.num_rows) == (0, 2)


def test_dates_after_the_year_9999_are_ordinary_values():
    far = pa.array([10_000_000], pa.int32()).cast(pa.date32())
    days = table("CREATE TABLE days (day DATE, n TINYINT)")
    signed = signed_rows(batch(day=far, n=[1]), days, AppendOnly())
    assert signed.rows.column("day").cast(pa.int32()).to_pylist() == [10_000_000]
