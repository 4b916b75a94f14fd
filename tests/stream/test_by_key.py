"""Upserts: the replaced row is looked up by primary key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from freshviews.stream import BadChange, OpColumn, Upserts, signed_rows
from tests.stream.tables import Stored, batch, net, table

ITEMS = table("CREATE TABLE items (id BIGINT PRIMARY KEY, part STRING NOT NULL, at TIMESTAMP)")
PAIRS = table("CREATE TABLE pairs (a STRING, b INT, v INT, PRIMARY KEY (a, b))")


def items(ids, parts, **more):
    return batch(id=ids, part=pa.array(parts, pa.string()), at=pa.nulls(len(ids), pa.timestamp("us")), **more)


def test_a_row_replaces_the_stored_row_of_its_key():
    stored = Stored(ITEMS, (1, "old", None))
    signed = signed_rows(items([1, 2], ["new", "first"]), ITEMS, Upserts(), lookup=stored)
    assert net(signed) == {(1, "old", None): -1, (1, "new", None): 1, (2, "first", None): 1}
    assert signed.positions.tolist() == [0, 0, 1]


def test_the_last_of_several_upserts_of_a_key_wins():
    stored = Stored(ITEMS, (1, "old", None))
    signed = signed_rows(items([1, 2, 1, 1], ["a", "b", "c", "d"]), ITEMS, Upserts(), lookup=stored)
    assert net(signed) == {(1, "old", None): -1, (1, "d", None): 1, (2, "b", None): 1}
    assert stored.asked == [1, 2]
    assert signed.rows.num_rows == 3


def test_an_upsert_equal_to_the_stored_row_changes_nothing():
    stored = Stored(ITEMS, (1, "same", None))
    assert net(signed_rows(items([1], ["same"]), ITEMS, Upserts(), lookup=stored)) == {}


def test_an_order_column_decides_which_row_is_last():
    stored = Stored(ITEMS)
    given = items([1, 1, 1], ["third", "first", "second"], version=[3, 1, 2])
    assert net(signed_rows(given, ITEMS, Upserts(order="version"), lookup=stored)) == {(1, "third", None): 1}


def test_a_column_of_the_table_may_order_upserts():
    stored = Stored(ITEMS)
    given = batch(id=[1, 1, 1], part=["a", "b", "c"], at=["2026-01-02", "2026-01-02", "2026-01-01"])
    found = net(signed_rows(given, ITEMS, Upserts(order="at"), lookup=stored))
    assert [row[1] for row in found] == ["b"]


def test_an_order_column_with_text_or_null_is_refused():
    with pytest.raises(BadChange, match="ordered by integers, decimals, dates or timestamps, not by string"):
        signed_rows(items([1], ["a"], v=["10"]), ITEMS, Upserts(order="v"), lookup=Stored(ITEMS))
    with pytest.raises(BadChange, match="row 1, column v: the column orders the rows"):
        signed_rows(items([1, 1], ["a", "b"], v=[1, None]), ITEMS, Upserts(order="v"), lookup=Stored(ITEMS))


def test_a_delete_by_key_needs_only_the_key():
    stored = Stored(ITEMS, (1, "old", None), (2, "other", None))
    given = items([1, 3], [None, None], op=["D", "D"])
    assert net(signed_rows(given, ITEMS, Upserts("op"), lookup=stored)) == {(1, "old", None): -1}


@pytest.mark.parametrize(
    ("ops", "parts", "left"),
    [
        (["I", "D", "I"], ["a", None, "c"], "c"),
        (["D", "I", "D"], [None, "b", None], None),
        (["-U", "+U", "u"], ["x", "b", "c"], "c"),
    ],
)
def test_the_last_change_of_a_key_decides_the_row_of_the_key(ops, parts, left):
    stored = Stored(ITEMS, (1, "old", None))
    expected = {(1, "old", None): -1} | ({} if left is None else {(1, left, None): 1})
    assert net(signed_rows(items([1] * 3, parts, op=ops), ITEMS, Upserts("op"), lookup=stored)) == expected


def test_a_key_of_several_columns_is_compared_as_a_whole():
    asked = []

    def lookup(keys):
        asked.append(keys.to_pylist())
        return pa.table({"a": ["y"], "v": [7], "b": [1]})

    given = batch(a=["x", "y", "x", "y", "x"], b=[1, 1, 2, 1, 1], v=[1, 2, 3, 4, 5])
    signed = signed_rows(given, PAIRS, Upserts(), lookup=lookup)
    assert net(signed) == {("y", 1, 7): -1, ("x", 2, 3): 1, ("y", 1, 4): 1, ("x", 1, 5): 1}
    assert asked == [[{"a": "x", "b": 1}, {"a": "y", "b": 1}, {"a": "x", "b": 2}]]


def test_a_null_key_is_refused():
    with pytest.raises(BadChange, match="row 1, column id: NULL"):
        signed_rows(items([1, None], ["a", "b"]), ITEMS, Upserts(), lookup=Stored(ITEMS))


@pytest.mark.parametrize("rows", [[(1, "a", None), (1, "b", None)], [(0, "a", None)], [(5, "a", None)]])
def test_a_lookup_that_returns_rows_of_other_keys_is_an_error(rows):
    with pytest.raises(ValueError, match="returned a key twice, or a key that was not requested"):
        signed_rows(items([1, 2], ["a", "b"]), ITEMS, Upserts(), lookup=lambda keys: Stored(ITEMS).batch(rows))


def test_a_lookup_is_required_only_if_keys_are_looked_up():
    assert net(signed_rows(items([], []), ITEMS, Upserts())) == {}
    with pytest.raises(TypeError, match="changes by key need lookup="):
        signed_rows(items([1], ["a"]), ITEMS, Upserts())


def test_an_op_column_with_a_word_for_delete_needs_only_the_key():
    stored = Stored(ITEMS, (1, "old", None), (2, "other", None))
    given = items([1, 2, 3], [None, "two", "new"], op=["D", "U", "I"])
    signed = signed_rows(given, ITEMS, OpColumn("op"), lookup=stored)
    expected = {(1, "old", None): -1, (2, "other", None): -1, (2, "two", None): 1, (3, "new", None): 1}
    assert net(signed) == expected
    # The row is deleted as a whole: the database refuses it if the stored row differs.
    whole = items([1], ["another"], op=["D"])
    assert net(signed_rows(whole, ITEMS, OpColumn("op"), lookup=stored)) == {(1, "another", None): -1}


@pytest.mark.parametrize("form", [OpColumn("op"), Upserts("op")])
def test_deletes_by_key_may_omit_other_columns(form):
    stored = Stored(ITEMS, (1, "old", None), (2, "other", None))
    assert net(signed_rows(batch(id=[1, 2], op=["-", "d"]), ITEMS, form, lookup=stored)) == {
        (1, "old", None): -1,
        (2, "other", None): -1,
    }
    mixed = batch(id=[1, 3], op=["delete", "update"])
    with pytest.raises(BadChange, match="row 1, column part: the input has no column part; only rows that"):
        signed_rows(mixed, ITEMS, form, lookup=stored)
    signed = signed_rows(mixed, ITEMS, form, lookup=stored, set_aside=True)
    assert net(signed) == {(1, "old", None): -1} and signed.bad.column("row").to_pylist() == [1]
    with pytest.raises(BadChange, match="column part: the input has no column part; it has id, op"):
        signed_rows(batch(id=[3], op=["update"]), ITEMS, form, lookup=stored)
    with pytest.raises(BadChange, match="column id: NULL"):
        signed_rows(batch(id=pa.array([None], pa.int64()), op=["D"]), ITEMS, form, lookup=stored)


@pytest.mark.parametrize(
    ("ops", "parts", "left", "bad"),
    [
        (["I", "D"], ["a", None], {}, []),  # of the batch
        (["D", "I"], [None, "b"], {(1, "old", None): -1, (1, "b", None): 1}, []),
        (["D", "I", "D"], [None, "b", None], {(1, "old", None): -1}, []),
        (["D", "D"], [None, None], {(1, "old", None): -1}, [1]),
        (["u", "D", "D"], ["b", None, None], {(1, "old", None): -1}, [2]),
    ],
)
def test_a_delete_of_a_key_without_a_current_row_is_a_bad_row(ops, parts, left, bad):
    stored = Stored(ITEMS, (1, "old", None)) if ops[0] != "I" else Stored(ITEMS)
    given = items([1] * len(ops), parts, op=ops)
    signed = signed_rows(given, ITEMS, OpColumn("op"), lookup=stored, set_aside=True)
    assert net(signed) == left and signed.bad.column("row").to_pylist() == bad
    if bad:
        with pytest.raises(BadChange, match=rf"row {bad[0]}, column id: 1: it deletes the key .'id': 1., which no row"):
            signed_rows(given, ITEMS, OpColumn("op"), lookup=stored)


def test_a_delete_of_a_whole_row_needs_no_key():
    bag = table("CREATE TABLE bag (id BIGINT, part STRING)")
    keys = table("CREATE TABLE keys (a BIGINT PRIMARY KEY)")
    nulls = batch(id=[1], part=pa.nulls(1, pa.string()), op=["D"])
    assert net(signed_rows(nulls, bag, OpColumn("op"), lookup=Stored(bag))) == {(1, None): -1}
    assert net(signed_rows(batch(a=[1], op=["D"]), keys, OpColumn("op"), lookup=Stored(keys))) == {(1,): -1}


@pytest.mark.parametrize("form", [OpColumn("op"), Upserts("op")])
def test_a_change_marked_remove_deletes_the_row_of_its_key(form):
    stored = Stored(ITEMS, (1, "old", None), (2, "other", None))
    words = ["remove", "REMOVE", "remove", "remove", "insert"]
    given = items([1, 1, 9, 2, 2], ["x", None, None, None, "new"], op=words)
    found = net(signed_rows(given, ITEMS, form, lookup=stored))
    assert found == {(1, "old", None): -1, (2, "other", None): -1, (2, "new", None): 1}


def test_a_change_marked_remove_needs_a_primary_key():
    bare = table("CREATE TABLE bare (id BIGINT)")
    with pytest.raises(BadChange, match=r"'remove': it deletes the row of its key, so .* PRIMARY"):
        signed_rows(batch(id=[1], op=["remove"]), bare, OpColumn("op"))
