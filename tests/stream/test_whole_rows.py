"""Formats whose rows say by themselves whether they are inserts or deletes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from freshviews.stream import AppendOnly, BadChange, DeltaFeed, Multiplicities, OpColumn, signed_rows
from tests.stream.tables import BAG, ORDERS, Stored, batch, net, table


def test_append_only_rows_are_inserted_once_each_without_a_copy():
    given = batch(id=[1, 1], part=["a", "a"])
    signed = signed_rows(given, BAG, AppendOnly())
    assert net(signed) == {(1, "a"): 2}
    assert signed.positions is None
    assert signed.rows.column("id").buffers()[1].address == given.column("id").buffers()[1].address


def test_signed_rows_keep_their_multiplicities():
    signed = signed_rows(batch(id=[1, 2, 3], part=["a", "b", "c"], _multiplicity=[2, -1, 0]), BAG, Multiplicities())
    assert net(signed) == {(1, "a"): 2, (2, "b"): -1}
    assert signed.rows.schema.field("_multiplicity").type == pa.int64()


@pytest.mark.parametrize(
    ("comes", "goes"),
    [("insert", "delete"), ("INSERT", "Delete"), ("I", "D"), ("+", "-"), ("+I", "-D"), ("+U", "-U"), ("c", "d"),
     (" r ", "d"), ("update_postimage", "update_preimage")],
)  # fmt: skip
def test_words_of_an_op_column_mean_inserts_and_deletes(comes, goes):
    given = batch(op=[comes, goes, comes], id=[1, 2, 3], part=["a", "b", None])
    assert net(signed_rows(given, BAG, OpColumn("op"))) == {(1, "a"): 1, (2, "b"): -1, (3, None): 1}


def test_op_words_may_be_dictionary_encoded():
    given = batch(op=pa.array(["I", "D"]).dictionary_encode(), id=[1, 2], part=["a", "b"])
    assert net(signed_rows(given, BAG, OpColumn())) == {(1, "a"): 1, (2, "b"): -1}


def test_inserts_and_deletes_of_one_row_cancel_out():
    given = batch(op=["+", "-", "+"], id=[1] * 3, part=["a"] * 3)
    assert net(signed_rows(given, BAG, OpColumn())) == {(1, "a"): 1}


@pytest.mark.parametrize("word", ["x", "", None, "insert!"])
def test_the_error_of_an_unknown_op_word_names_its_place_and_the_accepted_words(word):
    with pytest.raises(BadChange) as raised:
        signed_rows(batch(op=pa.array(["I", word]), id=[1, 2], part=["a", "b"]), BAG, OpColumn())
    error = raised.value
    assert (error.table, error.row, error.column, error.value) == ("bag", 1, "op", word)
    assert "accepted words are insert, i, +," in error.reason


def test_an_update_of_a_table_without_a_key_is_refused_and_the_error_names_a_primary_key():
    with pytest.raises(BadChange, match=r"row 0, column op: 'u': it replaces the row of its key, so .* PRIMARY"):
        signed_rows(batch(op=["u"], id=[1], part=["a"]), BAG, OpColumn())


def test_a_change_marked_update_replaces_the_current_row_of_its_key():
    stored = Stored(ORDERS, (3, "old", None, None), (4, "kept", None, None))
    none = [None] * 6
    given = batch(
        op=["c", "u", "u", "d", "r", "u"],
        id=[1, 1, 3, 2, 2, 2],
        part=["a", "b", "new", "gone", "back", "last"],
        day=pa.array(none, pa.date32()),
        total=pa.array(none, pa.int64()),
    )
    signed = signed_rows(given, ORDERS, OpColumn(), lookup=stored)
    assert stored.asked == [3]
    assert {row[:2]: sign for row, sign in net(signed).items()} == {
        (1, "b"): 1,
        (3, "old"): -1,
        (3, "new"): 1,
        (2, "gone"): -1,
        (2, "last"): 1,
    }


def test_a_delta_feed_is_applied_in_the_order_of_commits():
    given = batch(
        id=[1, 1, 1, 2],
        part=["b", "a", "a", "c"],
        _change_type=["update_postimage", "update_preimage", "insert", "delete"],
        _commit_version=[2, 2, 1, 1],
        _commit_timestamp=[0, 0, 0, 0],
    )
    signed = signed_rows(given, BAG, DeltaFeed())
    assert net(signed) == {(1, "b"): 1, (2, "c"): -1}
    assert signed.positions.tolist() == [2, 3, 0, 1]
    assert signed.rows.column("part").to_pylist() == ["a", "c", "b", "a"]


def test_a_delta_feed_accepts_only_its_own_words():
    with pytest.raises(BadChange, match="accepted words are insert, delete, update_preimage, update_postimage"):
        signed_rows(batch(id=[1], part=["a"], _change_type=["u"]), BAG, DeltaFeed())


def test_columns_are_found_by_name_in_any_order_and_case():
    assert net(signed_rows(batch(PART=["a"], Id=[1]), BAG, AppendOnly())) == {(1, "a"): 1}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1]}, "table bag, column part: the input has no column part; it has id"),
        ({"id": [1], "part": ["a"], "x": [1]}, "column x: the table has no column x; accepted: id, part"),
        ({"id": [1], "ID": [1], "part": ["a"]}, "column ID is given twice"),
        ({"id": [1.5], "part": ["a"]}, "column id: BIGINT accepts a column of integers, not of double"),
        ({"id": [1], "part": [1]}, "column part: STRING accepts a column of strings, not of int64"),
    ],
)
def test_a_batch_whose_columns_do_not_fit_the_table_is_refused_as_a_whole(columns, message):
    with pytest.raises(BadChange, match=message) as raised:
        signed_rows(batch(**columns), BAG, AppendOnly(), set_aside=True)
    assert raised.value.row is None


def test_text_is_converted_to_the_types_of_the_columns():
    given = batch(op=["I", "I"], id=["1", " 2"], part=["a", "b"], day=["2026-01-31", "2026-2-1"], total=["1.5", "1e2"])
    signed = signed_rows(given, ORDERS, OpColumn())
    assert net(signed) == {
        (1, "a", dt.date(2026, 1, 31), Decimal("1.50")): 1,
        (2, "b", dt.date(2026, 2, 1), Decimal("100.00")): 1,
    }


EVERY = table(
    "CREATE TABLE every_type (b BOOLEAN, t TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(6, 2), s STRING, "
    "day DATE, at TIMESTAMP)"
)
GOOD = {
    "b": ("true", "T", "0", "no"),
    "t": ("-128", "+127"),
    "i": ("2147483647", "007"),
    "l": ("-9223372036854775807",),
    "f": ("1.5", "NaN"),
    "d": ("1e300", "-inf", ".5"),
    "n": ("1234.56", "-1.5", "1.500"),
    "s": ("", "x"),
    "day": ("2026-01-31", "2026-01-31 00:00:00"),
    "at": ("2026-01-31", "2026-01-31T10", "2026-01-31 10:00:00.123456", "2026-01-31T12:00:00+02:00", "2026-1-1 1:2"),
}
BAD = {
    "b": ("2", "", "yess"),
    "t": ("128", "0x1F", "1.0"),
    "i": ("2147483648", "", "1 2"),
    "l": ("-9223372036854775808", "9" * 30),
    "f": ("1e39", "one"),
    "d": ("1_0", "0x10"),
    "n": ("12345.67", "1.234", "NaN", "1_0"),
    "day": ("2026-02-30", "2026-01-31 10:00", "tomorrow", ""),
    "at": ("10:00", "2026-01-31 25:00"),
}


@pytest.mark.parametrize("column", list(GOOD))
@pytest.mark.parametrize("rows", [1, 100])
def test_one_text_and_many_texts_convert_alike(column, rows):
    """A bad or unusual text is found by bisection among many good ones; alone it is read directly."""
    (definition,) = [c for c in EVERY.columns if c.name == column]
    alone = table(f"CREATE TABLE t ({column} {definition.type})")
    for text in GOOD[column]:
        texts = [GOOD[column][0]] * (rows - 1) + [text]
        signed = signed_rows(batch(**{column: texts}), alone, AppendOnly())
        assert signed.rows.column(column)[rows - 1].is_valid
    for text in BAD.get(column, ()):
        texts = [GOOD[column][0]] * (rows - 1) + [text]
        with pytest.raises(BadChange) as raised:
            signed_rows(batch(**{column: texts}), alone, AppendOnly())
        assert (raised.value.row, raised.value.value) == (rows - 1, text)


def test_an_arrow_table_of_several_chunks_is_one_batch():
    chunks = pa.table({"id": pa.chunked_array([[1], [2, 3]]), "part": pa.chunked_array([["a", "b"], ["c"]])})
    assert net(signed_rows(chunks, BAG, AppendOnly())) == {(1, "a"): 1, (2, "b"): 1, (3, "c"): 1}
    assert net(signed_rows(chunks.slice(0, 0), BAG, AppendOnly())) == {}
