"""Encodes and decodes single values, and refuses others with a message."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
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
    STRING,
    TIMESTAMP,
    TINYINT,
    Dictionary,
    SqlType,
    decimal,
)
from freshviews.types.values import (
    decode_value,
    encoder_for,
    literal_code,
    literal_value,
)

MONEY = decimal(12, 2)
WIDE = decimal(38, 2)
ALL = [BOOLEAN, TINYINT, INT, BIGINT, FLOAT, DOUBLE, MONEY, STRING, DATE, TIMESTAMP]
BERLIN = dt.timezone(dt.timedelta(hours=2))


def encode(kind: SqlType, value: Any) -> int:
    return encoder_for(kind, True, Dictionary(["ada", "bob"]))(value)


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        (BOOLEAN, True, 1),
        (BOOLEAN, np.False_, 0),
        (TINYINT, -128, -128),
        (INT, np.int8(7), 7),
        (BIGINT, 2**63 - 1, 2**63 - 1),
        (DOUBLE, -0.0, 0),
        (DOUBLE, -math.nan, 0x7FF8000000000000),
        (DOUBLE, 1, 0x3FF0000000000000),
        (DOUBLE, np.float32(0.5), 0x3FE0000000000000),
        (MONEY, Decimal("12.300"), 1230),
        (MONEY, Decimal("-1E+3"), -100000),
        (MONEY, 5, 500),
        (MONEY, Decimal("0E+100"), 0),
        (MONEY, Decimal("-0E+999999"), 0),
        (WIDE, Decimal("92233720368547758.07"), 2**63 - 1),
        (STRING, "bob", 1),
        (STRING, np.str_("bob"), 1),
        (STRING, "new", 2),
        (DATE, dt.date(1970, 1, 2), 1),
        (DATE, dt.date(1969, 12, 31), -1),
        (DATE, dt.datetime(1970, 1, 3), 2),
        (DATE, pd.Timestamp("1969-12-30"), -2),
        (DATE, np.datetime64("1970-02"), 31),
        (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        (TIMESTAMP, dt.datetime(1970, 1, 1, 2, tzinfo=BERLIN), 0),
        (TIMESTAMP, dt.date(1970, 1, 2), 86_400_000_000),
        (TIMESTAMP, pd.Timestamp("1970-01-01 00:00:00.000001"), 1),
        (TIMESTAMP, np.datetime64(3_000, "ns"), 3),
        (TIMESTAMP, np.datetime64(2, "h"), 7_200_000_000),
    ],
)
def test_each_value_has_the_expected_code(kind: SqlType, value: Any, code: int) -> None:
    assert encode(kind, value) == code


@pytest.mark.parametrize(
    ("kind", "value", "error", "reason"),
    [
        (BOOLEAN, 1, TypeError, "BOOLEAN accepts bool, not int"),
        (INT, True, TypeError, "INT accepts int, not bool"),
        (INT, 1.0, TypeError, "INT accepts int, not float"),
        (INT, "1", TypeError, "not str"),
        (INT, 2**31, OverflowError, "INT accepts -2147483648 to 2147483647"),
        (TINYINT, -129, OverflowError, "TINYINT accepts -128 to 127"),
        (BIGINT, -(2**63), OverflowError, "stands for NULL"),
        (BIGINT, 2**63, OverflowError, "BIGINT accepts"),
        (DOUBLE, 2**53 + 1, ValueError, "DOUBLE cannot store this integer exactly"),
        (DOUBLE, 10**400, OverflowError, "DOUBLE cannot hold it"),
        (DOUBLE, Decimal("0.5"), TypeError, "not Decimal"),
        (FLOAT, 1e300, OverflowError, "use DOUBLE"),
        (FLOAT, 2**24 + 1, ValueError, "FLOAT cannot store this integer exactly"),
        (MONEY, Decimal("12.345"), ValueError, "2 digits after the point"),
        (MONEY, Decimal("NaN"), ValueError, "finite"),
        (MONEY, Decimal("1E+99999"), OverflowError, "10 digits before the point"),
        (MONEY, 10**10, OverflowError, "10 digits before the point"),
        (MONEY, 0.5, TypeError, "decimal.Decimal(str(value))"),
        (WIDE, Decimal("92233720368547758.08"), OverflowError, "64 bits"),
        (STRING, 5, TypeError, "STRING accepts str, not int"),
        (STRING, b"x", TypeError, "not bytes"),
        (STRING, "\ud800", ValueError, "Unicode"),
        (DATE, "2026-01-01", TypeError, "datetime.date"),
        (DATE, dt.datetime(2026, 1, 1, 1), ValueError, "no time of day"),
        (DATE, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), ValueError, "without a zone"),
        (TIMESTAMP, pd.Timestamp("2026-01-01 00:00:00.000000001"), ValueError, "whole microseconds"),
        (TIMESTAMP, np.datetime64(1, "ns"), ValueError, "whole microseconds"),
        (TIMESTAMP, 17, TypeError, "datetime.datetime"),
    ],
)
def test_the_error_of_a_wrong_value_shows_the_accepted_values(
    kind: SqlType, value: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error) as caught:
        encode(kind, value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("kind", ALL, ids=str)
@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT, np.datetime64("NaT")], ids=repr)
def test_every_form_of_null_is_accepted(kind: SqlType, null: Any) -> None:
    assert encode(kind, null) == NULL
    assert decode_value(kind, NULL, Dictionary()) is None
    with pytest.raises(ValueError, match="NOT NULL"):
        encoder_for(kind, False, Dictionary())(null)


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_every_encoder_refuses_an_object_of_an_unknown_type(kind: SqlType) -> None:
    with pytest.raises(TypeError):
        encode(kind, [1])


VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    BIGINT: st.integers(-(2**63) + 1, 2**63 - 1),
    DOUBLE: st.floats(),
    FLOAT: st.floats(width=32),
    MONEY: st.decimals(places=2, min_value=-(10**10) + 1, max_value=10**10 - 1),
    STRING: st.text(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(),
}


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_decoding_the_code_of_a_value_returns_the_value(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    value = data.draw(VALUES[kind])
    dictionary = Dictionary()
    code = encoder_for(kind, True, dictionary)(value)
    assert -(2**63) < code < 2**63
    back = decode_value(kind, code, dictionary)
    assert back == value or (back != back and value != value)
    assert type(back) is type(value)
    assert literal_code(kind, literal_value(kind, code, dictionary), dictionary) == code


@pytest.mark.parametrize(
    ("kind", "code", "value"),
    [
        (DATE, 2_932_897, np.datetime64("10000-01-01")),
        (DATE, -719_163, np.datetime64("0000-12-31")),
        (DATE, 2**31 - 1, np.datetime64(2**31 - 1, "D")),
        (TIMESTAMP, 253_402_300_800_000_000, np.datetime64("10000-01-01T00:00:00.000000")),
        (TIMESTAMP, 2**63 - 1, np.datetime64(2**63 - 1, "us")),
    ],
)
def test_dates_outside_the_range_of_python_are_returned_as_numpy_dates(
    kind: SqlType, code: int, value: np.datetime64
) -> None:
    back = decode_value(kind, code, Dictionary())
    assert isinstance(back, np.datetime64) and back == value
    assert encode(kind, back) == code
