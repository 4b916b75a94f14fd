from __future__ import annotations

import math

import pyarrow as pa
import pytest

from freshviews.stream import BadChange, Snapshots, signed_rows
from tests.stream.tables import BAG, batch, net, table

FLOATS = table("CREATE TABLE floats (x DOUBLE)")
EMPTY = pa.table({})


def test_the_first_snapshot_inserts_everything():
    assert net(signed_rows(batch(id=[1, 1], part=["a", "a"]), BAG, Snapshots(), previous=EMPTY)) == {(1, "a"): 2}


def test_rows_that_differ_are_inserted_and_deleted_once_each():
    before = batch(id=[1, 2, 2, 3, None], part=["a", "b", "b", "c", None])
    after = batch(id=[None, 2, 3, 3, 4], part=[None, "b", "c", "c", "d"])
    signed = signed_rows(after, BAG, Snapshots(), previous=before)
    assert net(signed) == {(1, "a"): -1, (2, "b"): -1, (3, "c"): 1, (4, "d"): 1}
    assert signed.rows.num_rows == 4
    positions = dict(zip(signed.rows.column("id").to_pylist(), signed.positions.tolist(), strict=True))
    assert positions == {1: -1, 2: 1, 3: 3, 4: 4}


def test_equal_snapshots_change_nothing():
    rows = batch(id=[1, 2], part=["a", None])
    assert signed_rows(rows, BAG, Snapshots(), previous=rows).rows.num_rows == 0
    assert net(signed_rows(rows.slice(0, 0), BAG, Snapshots(), previous=rows)) == {(1, "a"): -1, (2, None): -1}


def test_floats_are_compared_as_in_sql():
    before, after = batch(x=[0.0, math.nan, 1.0]), batch(x=[-0.0, -math.nan, 2.0])
    assert net(signed_rows(after, FLOATS, Snapshots(), previous=before)) == {(1.0,): -1, (2.0,): 1}


def test_a_snapshot_of_text_and_a_typed_snapshot_are_compared_by_value():
    assert net(signed_rows(batch(id=["01"], part=["a"]), BAG, Snapshots(), previous=batch(id=[1], part=["a"]))) == {}


def test_a_repeated_bad_row_is_set_aside_again():
    first = batch(id=["1", "x"], part=["a", "b"])
    signed = signed_rows(first, BAG, Snapshots(), previous=EMPTY, set_aside=True)
    assert net(signed) == {(1, "a"): 1}
    again = signed_rows(
        batch(id=["1", "x", "2"], part=["a", "b", "c"]), BAG, Snapshots(), previous=first, set_aside=True
    )
    assert net(again) == {(2, "c"): 1}
    assert again.bad.column("row").to_pylist() == [1]
    with pytest.raises(BadChange):
        signed_rows(first, BAG, Snapshots(), previous=EMPTY)


def test_snapshots_require_the_previous_contents():
    with pytest.raises(TypeError, match="previous="):
        signed_rows(batch(id=[1], part=["a"]), BAG, Snapshots())
