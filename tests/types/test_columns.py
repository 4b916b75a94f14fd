"""Whole columns are encoded and decoded exactly as their values are, without needless copies."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshviews.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Dictionary,
    SqlType,
    decimal,
)
from freshviews.types.columns import arrow_type, decode_array, encode_arrow
from freshviews.types.values import BadValue, decode_value, encoder_for

MONEY = decimal(12, 2)
DAYS = [dt.date(2026, 1, 1), None, dt.date(1903, 2, 28)]
MIDNIGHTS = [day and dt.datetime(day.year, day.month, day.day) for day in DAYS]
MOMENTS = [dt.datetime(2026, 1, 1, 2, 3, 4, 5), None, dt.datetime(1903, 2, 28)]


def codes_of(kind: SqlType, values: list[Any], dictionary: Dictionary) -> list[int]:
    return list(map(encoder_for(kind, True, dictionary), values))


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (BOOLEAN, pa.array([True, None, False])),
        (TINYINT, pa.array([1, None, -128], pa.int64())),
        (SMALLINT, pa.array([1, None, 200], pa.uint8())),
        (INT, pa.array([1, None, 2**31 - 1], pa.uint64())),
        (BIGINT, pa.array([2**63 - 1, None, -(2**63) + 1])),
        (BIGINT, pa.array([None, None], pa.null())),
        (BIGINT, pa.array([3, None, 3]).dictionary_encode()),
        (DOUBLE, pa.array([-0.0, None, float("inf"), 1.5])),
        (DOUBLE, pa.array([0.5, None], pa.float32())),
        (DOUBLE, pa.array([2**53, None, 2**60])),
        (FLOAT, pa.array([0.1, None, -0.0])),
        (FLOAT, pa.array([2**24, None, 2**30])),
        (MONEY, pa.array([Decimal("12.30"), None, Decimal("-0.01")])),
        (MONEY, pa.array([Decimal("12.3"), None], pa.decimal128(5, 1))),
        (MONEY, pa.array([Decimal("12.3000"), None, Decimal("-7")], pa.decimal128(38, 4))),
        (MONEY, pa.array([Decimal("12.3000"), None], pa.decimal256(60, 4))),
        (MONEY, pa.array([Decimal(2), Decimal("12.3"), None], pa.decimal128(38, 25))),
        (MONEY, pa.array([Decimal("12.30"), None], pa.decimal64(12, 2))),
        (MONEY, pa.array([7, None, -(10**10) + 1])),
        (STRING, pa.array(["ada", None, "", "ada"])),
        (STRING, pa.array(["ada", None, "eve"], pa.large_string())),
        (STRING, pa.array(["ada", None, "a string of more than twelve bytes"], pa.string_view())),
        (STRING, pa.array(["ada", None, "ada"]).dictionary_encode()),
        (STRING, pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["x", None]))),
        (STRING, pa.array([None, None])),
        (DATE, pa.array(DAYS)),
        (DATE, pa.array(DAYS, pa.date64())),
        (DATE, pa.array(MIDNIGHTS, pa.timestamp("ns"))),
        (DATE, pa.array(MIDNIGHTS, pa.timestamp("s"))),
        (TIMESTAMP, pa.array(MOMENTS)),
        (TIMESTAMP, pa.array(MOMENTS, pa.timestamp("ns"))),
        (TIMESTAMP, pa.array(MIDNIGHTS, pa.timestamp("ms"))),
        (TIMESTAMP, pa.array(DAYS)),
    ],
    ids=str,
)
def test_encoding_a_column_equals_encoding_its_values(kind: SqlType, array: pa.Array) -> None:
    one, other = Dictionary(), Dictionary()
    expected = codes_of(kind, array.to_pylist(), one)
    codes = encode_arrow(kind, array, other)
    assert codes.dtype == np.int64 and codes.flags.c_contiguous
    assert codes.tolist() == expected
    assert encode_arrow(kind, array.slice(1), other).tolist() == expected[1:]
    chunked = pa.chunked_array([array, array.slice(0, 1)])
    assert encode_arrow(kind, chunked, other).tolist() == [*expected, expected[0]]
    assert encode_arrow(kind, chunked.slice(0, 0), other).tolist() == []
    assert encode_arrow(kind, array.slice(0, 0), other).tolist() == []


@pytest.mark.parametrize(
    ("kind", "array", "row", "reason"),
    [
        (INT, pa.array([1, None, 2**31]), 2, "INT accepts -2147483648 to 2147483647"),
        (BIGINT, pa.array([1, 2**63], pa.uint64()), 1, "BIGINT accepts"),
        (BIGINT, pa.array([None, -(2**63)]), 1, "stands for NULL"),
        (DOUBLE, pa.array([None, 2**53 + 1]), 1, "DOUBLE cannot store this integer exactly"),
        (FLOAT, pa.array([1.0, None, 1e300]), 2, "use DOUBLE"),
        (FLOAT, pa.array([2**24 + 1]), 0, "FLOAT cannot store this integer exactly"),
        (MONEY, pa.array([None, Decimal("12.345")]), 1, "2 digits after the point"),
        (MONEY, pa.array([Decimal(10**10)], pa.decimal128(20, 0)), 0, "10 digits before the point"),
        (MONEY, pa.array([None, 10**17], pa.int64()), 1, "10 digits before the point"),
        (MONEY, pa.array([Decimal(0), Decimal(10**30)], pa.decimal128(38, 2)), 1, "10 digits before"),
        (MONEY, pa.array([Decimal(-(10**30))], pa.decimal128(38, 4)), 0, "10 digits before the point"),
        (decimal(30, 20), pa.array([0, 1]), 1, "64 bits"),
        (DATE, pa.array(MOMENTS), 0, "no time of day"),
        (TIMESTAMP, pa.array([None, 1], pa.timestamp("ns")), 1, "whole microseconds"),
        (TIMESTAMP, pa.array([2**62], pa.timestamp("s")), 0, "64 bits"),
        (TIMESTAMP, pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), 0, "64 bits"),
        (TIMESTAMP, pa.array([-(2**63)], pa.timestamp("us")), 0, "64 bits"),
    ],
    ids=str,
)
def test_a_bad_row_is_reported_with_the_reason(kind: SqlType, array: pa.Array, row: int, reason: str) -> None:
    with pytest.raises(BadValue) as caught:
        encode_arrow(kind, array, Dictionary())
    assert caught.value.row == row
    assert reason in caught.value.reason
    chunked = pa.chunked_array([array.slice(0, 0), pa.nulls(4, array.type), array])
    with pytest.raises(BadValue) as caught:
        encode_arrow(kind, chunked, Dictionary())
    assert caught.value.row == row + 4


def test_invalid_utf8_is_refused_in_used_entries() -> None:
    bad = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 2, 3], np.int32)), pa.py_buffer(b"ab\xff"))
    for array in (bad, bad.dictionary_encode(), bad.cast(pa.large_string()), pa.chunked_array([["x"], bad])):
        with pytest.raises(BadValue, match="not valid UTF-8") as caught:
            encode_arrow(STRING, array, Dictionary())
        assert caught.value.row == len(array) - 1 and caught.value.value == b"\xff"
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0]), bad)
    assert encode_arrow(STRING, unused, Dictionary()).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (INT, pa.array([1.0])),
        (BIGINT, pa.array([True])),
        (BIGINT, pa.array(["1"])),
        (BOOLEAN, pa.array([1])),
        (DOUBLE, pa.array([Decimal("0.5")])),
        (MONEY, pa.array([0.5])),
        (STRING, pa.array([1])),
        (STRING, pa.array([b"x"])),
        (STRING, pa.array([1]).dictionary_encode()),
        (DATE, pa.array(["2026-01-01"])),
        (DATE, pa.array(MOMENTS, pa.timestamp("us", "UTC"))),
        (TIMESTAMP, pa.array([1])),
        (TIMESTAMP, pa.array([dt.time(1)])),
    ],
    ids=str,
)
def test_the_error_of_a_column_of_an_unsuitable_type_names_no_row(kind: SqlType, array: pa.Array) -> None:
    with pytest.raises(TypeError, match=f"{kind.name}.* accepts a column of"):
        encode_arrow(kind, array, Dictionary())


def test_a_null_in_a_not_null_column_is_reported_with_its_row() -> None:
    with pytest.raises(BadValue, match="NOT NULL") as caught:
        encode_arrow(INT, pa.chunked_array([[1, 2], [3, None]]), Dictionary(), nullable=False)
    assert (caught.value.row, caught.value.value) == (3, None)


def test_a_time_zone_does_not_change_the_instant() -> None:
    moments = [dt.datetime(2026, 7, 1, tzinfo=dt.UTC)]
    codes = encode_arrow(TIMESTAMP, pa.array(moments, pa.timestamp("us", "Europe/Berlin")), Dictionary())
    assert codes.tolist() == [encoder_for(TIMESTAMP, True, Dictionary())(moments[0])]


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (BIGINT, pa.array(range(100))),
        (DOUBLE, pa.array([i / 7 for i in range(100)])),
        (TIMESTAMP, pa.array(range(100), pa.timestamp("us"))),
    ],
    ids=str,
)
def test_columns_of_64_bit_words_are_not_copied(kind: SqlType, array: pa.Array) -> None:
    codes = encode_arrow(kind, array.slice(3), Dictionary())
    assert codes.__array_interface__["data"][0] == array.buffers()[1].address + 24
    back = decode_array(kind, codes)
    assert back.buffers()[1].address == codes.__array_interface__["data"][0]
    assert back.equals(array.slice(3))


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_decoding_the_codes_of_a_column_returns_the_column(data: st.DataObject) -> None:
    strategies: dict[SqlType, st.SearchStrategy[Any]] = {
        BOOLEAN: st.booleans(),
        TINYINT: st.integers(-128, 127),
        BIGINT: st.integers(-(2**63) + 1, 2**63 - 1),
        DOUBLE: st.floats(allow_nan=False),
        FLOAT: st.floats(width=32, allow_nan=False),
        decimal(38, 4): st.decimals(places=4, min_value=-(10**14), max_value=10**14),
        STRING: st.text(),
        DATE: st.dates(),
        TIMESTAMP: st.datetimes(),
    }
    kind = data.draw(st.sampled_from(list(strategies)))
    values = data.draw(st.lists(st.none() | strategies[kind]))
    array = pa.array(values, arrow_type(kind))
    dictionary = Dictionary()
    codes = encode_arrow(kind, array, dictionary)
    assert codes.tolist() == codes_of(kind, values, dictionary)
    back = decode_array(kind, codes, dictionary)
    back.validate(full=True)
    assert back.type == arrow_type(kind)
    assert back.to_pylist() == values
    assert [decode_value(kind, code, dictionary) for code in codes.tolist()] == values
    if None not in values:
        assert decode_array(kind, codes, dictionary, nullable=False).equals(back)
    # A strided view, such as one column of rows of a table.
    rows = np.repeat(codes, 3)
    assert decode_array(kind, rows[::3], dictionary).to_pylist() == values


def test_every_nan_in_a_column_has_the_same_code() -> None:
    strange = np.array([0x7FF8000000000123, -1], np.int64).view(np.float64)
    assert encode_arrow(DOUBLE, pa.array(strange), Dictionary()).tolist() == [0x7FF8000000000000] * 2


def test_the_code_of_null_is_decoded_as_null() -> None:
    assert decode_array(BIGINT, np.array([NULL, 1])).to_pylist() == [None, 1]
