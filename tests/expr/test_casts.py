"""CAST and date_format convert values to text and back as Spark does."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.expr.ops import OPS

INT = (-(2**31), 2**31 - 1)
NEW_YEAR = 20_454 * 86_400_000_000  # 2026-01-01


def call(op: str, *args: Any) -> Any:
    host = OPS[op].host
    assert host is not None
    return host(*args)


@pytest.mark.parametrize(
    ("op", "args", "result"),
    [
        ("int_to_string", (-5,), "-5"),
        ("bool_to_string", (True,), "true"),
        ("float_to_string", (0.0,), "0.0"),
        ("float_to_string", (100.0,), "100.0"),
        ("float_to_string", (-1234567.5,), "-1234567.5"),
        ("float_to_string", (1e7,), "1.0E7"),
        ("float_to_string", (1.5e300,), "1.5E300"),
        ("float_to_string", (0.001,), "0.001"),
        ("float_to_string", (0.0001,), "1.0E-4"),
        ("float_to_string", (-1.25e-5,), "-1.25E-5"),
        ("float_to_string", (0.1 + 0.2,), "0.30000000000000004"),
        ("float_to_string", (math.nan,), "NaN"),
        ("float_to_string", (-math.inf,), "-Infinity"),
        ("float32_to_string", (0.10000000149011612,), "0.1"),
        ("float32_to_string", (16777216.0,), "1.6777216E7"),
        ("decimal_to_string", (1230, 2), "12.30"),
        ("decimal_to_string", (-5, 2), "-0.05"),
        ("decimal_to_string", (7, 0), "7"),
        ("decimal_to_string", (0, 3), "0.000"),
        ("date_to_string", (0,), "1970-01-01"),
        ("date_to_string", (-719_529,), "-0001-12-31"),
        ("date_to_string", (2_932_897,), "+10000-01-01"),
        ("timestamp_to_string", (NEW_YEAR,), "2026-01-01 00:00:00"),
        ("timestamp_to_string", (-1,), "1969-12-31 23:59:59.999999"),
        ("timestamp_to_string", (250_000,), "1970-01-01 00:00:00.25"),
        ("date_format", (NEW_YEAR, "yyyy-MM-dd HH:mm:ss"), "2026-01-01 00:00:00"),
        ("date_format", (NEW_YEAR + 46_801_250_000, "h:m:s.SSS a"), "1:0:1.250 PM"),
        ("date_format", (NEW_YEAR, "EEE, d MMM yy"), "Thu, 1 Jan 26"),
        ("date_format", (NEW_YEAR, "EEEE MMMM hh D"), "Thursday January 12 1"),
        ("date_format", (NEW_YEAR, "yyyy'W''x'''"), "2026W'x'"),
        ("string_to_int", (" +12\n", *INT), 12),
        ("string_to_int", ("-2147483648", *INT), -(2**31)),
        ("string_to_int", ("0" * 5000 + "7", *INT), 7),
        ("string_to_float", (" 1.5e3 ",), 1500.0),
        ("string_to_float", (".5",), 0.5),
        ("string_to_float", ("-inFinity",), -math.inf),
        ("string_to_float", ("1e999",), math.inf),
        ("string_to_decimal", ("12.345", 12, 2), 1235),
        ("string_to_decimal", ("-12.345", 12, 2), -1235),
        ("string_to_decimal", ("1e3", 12, 2), 100_000),
        ("string_to_decimal", ("0.0049", 12, 2), 0),
        ("string_to_decimal", ("0.00499e-100000", 12, 2), 0),
        ("string_to_decimal", ("0e99999", 12, 2), 0),
        ("string_to_date", ("2026-01-01",), 20_454),
        ("string_to_date", (" 2026-1-1 ",), 20_454),
        ("string_to_date", ("2026",), 20_454),
        ("string_to_date", ("2026-01",), 20_454),
        ("string_to_date", ("2026-01-01T10:00",), 20_454),
        ("string_to_date", ("1969-12-31",), -1),
        ("string_to_timestamp", ("2026-01-01",), NEW_YEAR),
        ("string_to_timestamp", ("2026-01-01 00:00:01.5",), NEW_YEAR + 1_500_000),
        ("string_to_timestamp", ("2026-01-01T0:0:0.0000019",), NEW_YEAR + 1),
        ("string_to_timestamp", ("2026-01-01 02:00:00+02:00",), NEW_YEAR),
        ("string_to_timestamp", ("2026-01-01 00:00:00Z",), NEW_YEAR),
        ("string_to_timestamp", ("2025-12-31 16:30:00 -0730",), NEW_YEAR),
        ("string_to_bool", (" Yes",), True),
        ("string_to_bool", ("0",), False),
    ],
)
def test_a_cast_converts_a_value_as_spark_does(op: str, args: tuple[Any, ...], result: Any) -> None:
    assert call(op, *args) == result


@pytest.mark.parametrize(
    ("op", "args", "reason"),
    [
        ("string_to_int", ("12.5", *INT), "not an integer"),
        ("string_to_int", ("", *INT), "not an integer"),
        ("string_to_int", ("٣", *INT), "not an integer"),
        ("string_to_int", ("2147483648", *INT), "outside"),
        ("string_to_int", ("-" + "9" * 5000, *INT), "outside"),
        ("string_to_float", ("1,5",), "not a number"),
        ("string_to_float", ("1_000",), "not a number"),
        ("string_to_float", ("--inf",), "not a number"),
        # A pattern that goes back takes minutes: time quadratic in the length of the text.
        pytest.param("string_to_float", ("1" * 300_000 + "x",), "not a number", id="a long text"),
        ("string_to_decimal", ("abc", 12, 2), "not a decimal"),
        ("string_to_decimal", ("nan", 12, 2), "not a decimal"),
        ("string_to_decimal", ("10000000000", 12, 2), "does not fit"),
        ("string_to_decimal", ("9999999999.995", 12, 2), "does not fit"),
        ("string_to_decimal", ("1e999999999", 12, 2), "does not fit"),
        ("string_to_date", ("2026-02-29",), "not a date"),
        ("string_to_date", ("01/02/2026",), "not a date"),
        ("string_to_date", ("26-01-01",), "not a date"),
        ("string_to_timestamp", ("2026-01-01 25:00:00",), "23:59:59"),
        ("string_to_timestamp", ("2026-01-01 noon",), "not a timestamp"),
        ("string_to_timestamp", ("2026-01-01 00:00:00+19",), "offset"),
        ("string_to_timestamp", ("999999-01-01",), "outside the range of TIMESTAMP"),
        ("string_to_bool", ("maybe",), "not a boolean"),
        ("date_format", (0, "YYYY"), "'YYYY'.*not supported"),
        ("date_format", (0, "MMMMM"), "not supported"),
        ("date_format", (0, "yyyy'open"), "quote"),
    ],
)
def test_a_cast_refuses_a_value_with_a_reason(op: str, args: tuple[Any, ...], reason: str) -> None:
    assert OPS[op].fallible
    with pytest.raises(ValueError, match=reason):
        call(op, *args)


@given(st.floats(allow_nan=False))
def test_a_double_survives_conversion_to_text_and_back(value: float) -> None:
    assert call("string_to_float", call("float_to_string", value)) == value


@given(st.floats(allow_nan=False, width=32))
def test_a_float_survives_conversion_to_text_and_back(value: float) -> None:
    text = call("float32_to_string", value)
    with np.errstate(over="ignore"):
        assert float(np.float32(text.replace("Infinity", "inf"))) == value


@given(st.integers(-(10**17), 10**17), st.integers(0, 17))
def test_a_decimal_survives_conversion_to_text_and_back(unscaled: int, scale: int) -> None:
    text = call("decimal_to_string", unscaled, scale)
    assert call("string_to_decimal", text, 18, scale) == unscaled
    assert Decimal(text) == Decimal(unscaled).scaleb(-scale)


@given(st.dates())
def test_the_text_of_a_date_is_its_iso_form(value: dt.date) -> None:
    days = (value - dt.date(1970, 1, 1)).days
    assert call("date_to_string", days) == value.isoformat()
    assert call("string_to_date", value.isoformat()) == days


@given(st.datetimes())
def test_a_timestamp_survives_conversion_to_text_and_back(value: dt.datetime) -> None:
    micros = (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    text = call("timestamp_to_string", micros)
    assert call("string_to_timestamp", text) == micros
    assert call("string_to_timestamp", value.isoformat()) == micros
    assert call("date_format", micros, "yyyy-MM-dd HH:mm:ss.SSSSSS") == value.isoformat(" ", "microseconds")
