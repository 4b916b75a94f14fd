"""The compiled way of reading Arrow columns agrees with the general way, also as plain Python."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.errors import BatchError
from freshviews.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal,
)
from freshviews.types.dictionary import Dictionary

pytestmark = pytest.mark.plain_python

WIDE = [0, 1, -1, 127, -128, 128, 32767, -32768, 40000, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63) + 1, None]
DAYS = [dt.date(1970, 1, 1), dt.date(2026, 2, 28), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]
MOMENTS = [dt.datetime(2026, 1, 2, 3, 4, 5), dt.datetime(1969, 12, 31, 23), None]
TEXTS = ["", "a", "ab", "abc", "abcd", "abcdefg", "abcdefgh", "abcdefghijkl", "abcdefghijklm", "ä" * 20, "x" * 99, None]
FLOATS = [0.0, -0.0, 1.5, float("nan"), -float("nan"), float("inf"), -1e300, 5e-324, None]
PRICES = [Decimal("0.00"), Decimal("1.50"), Decimal("-12345.67"), None]

WAYS: list[tuple[SqlType, pa.DataType, list[Any]]] = [
    *((kind, given, WIDE) for kind in (TINYINT, SMALLINT, INT, BIGINT) for given in (pa.int64(),)),
    (BIGINT, pa.int8(), [0, -128, 127, None]),
    (BIGINT, pa.int16(), [0, -32768, 32767, 255, None]),
    (BIGINT, pa.int32(), [0, -(2**31), 2**31 - 1, None]),
    (BIGINT, pa.uint8(), [0, 255, 128, None]),
    (BIGINT, pa.uint16(), [0, 65535, 32768, None]),
    (BIGINT, pa.uint32(), [0, 2**32 - 1, 2**31, None]),
    (SMALLINT, pa.int32(), [0, 32767, -32768, None]),
    (decimal(8, 2), pa.int64(), [0, 999999, -999999, None]),
    (decimal(8, 2), pa.decimal128(8, 2), PRICES),
    (decimal(12, 4), pa.decimal128(8, 2), PRICES),
    (decimal(30, 2), pa.decimal128(30, 2), [*PRICES, Decimal(2**63 - 1) / 100]),
    (DOUBLE, pa.float64(), FLOATS),
    (BOOLEAN, pa.bool_(), [True, False, None]),
    (DATE, pa.date32(), DAYS),
    (TIMESTAMP, pa.date32(), [*DAYS]),
    *((TIMESTAMP, pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us")),
    *((STRING, given, TEXTS) for given in (pa.string(), pa.large_string(), pa.string_view())),
]
NAMES = [f"{kind} from {given}" for kind, given, _ in WAYS]


def encoder(kind: SqlType, nullable: bool = True) -> tuple[TableEncoder, Dictionary]:
    dictionary = Dictionary(["abc", "known before"])
    return TableEncoder(TableDef("t", (ColumnDef("x", kind, nullable),)), dictionary), dictionary


def both(kind: SqlType, array: pa.Array, nullable: bool = True) -> tuple[list[Any], list[Any]]:
    """The results of the compiled and the general way for a column: codes, texts for strings, or the error."""
    found = []
    for compiled in (True, False):
        made, dictionary = encoder(kind, nullable)
        batch = pa.record_batch({"x": array})
        assert made._planned(batch.schema, False) is not None
        try:
            way = made._arrow if compiled else made._general
            encoded = way(batch if compiled else pa.Table.from_batches([batch]), 1)
        except BatchError as error:
            found.append([str(error), error.row, error.value])
        else:
            codes = encoded.batch.columns["x"].tolist()
            found.append([c if c < 0 else dictionary.decode(c) for c in codes] if kind == STRING else codes)
    return found[0], found[1]


@pytest.mark.parametrize(("kind", "given", "values"), WAYS, ids=NAMES)
def test_compiled_and_general_encoding_give_equal_codes(
    kind: SqlType, given: pa.DataType, values: list[Any]
) -> None:
    fitting = [v for v in values if _fits(kind, given, v)]
    for whole in (fitting, [v for v in fitting if v is not None], [], fitting * 40):
        compiled, general = both(kind, pa.array(whole, given))
        assert compiled == general


@pytest.mark.parametrize(("kind", "given", "values"), WAYS, ids=NAMES)
def test_a_slice_of_an_arrow_array_is_encoded_from_its_offset(
    kind: SqlType, given: pa.DataType, values: list[Any]
) -> None:
    fitting = [v for v in values if _fits(kind, given, v)] * 3
    compiled, general = both(kind, pa.array(fitting, given).slice(3, len(fitting) - 4))
    assert compiled == general


@pytest.mark.parametrize(("kind", "given", "values"), WAYS, ids=NAMES)
def test_compiled_and_general_encoding_refuse_values_with_equal_errors(
    kind: SqlType, given: pa.DataType, values: list[Any]
) -> None:
    for value in values:
        if not _fits(kind, given, value) or value is None:
            good = next(v for v in values if v is not None and _fits(kind, given, v))
            compiled, general = both(kind, pa.array([good, value], given), nullable=False)
            assert compiled == general
            assert compiled[1] == 1


def _fits(kind: SqlType, given: pa.DataType, value: Any) -> bool:
    return value is None or not kind.is_integer or kind.bounds[0] <= value <= kind.bounds[1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_compiled_and_general_encoding_refuse_invalid_utf8_with_equal_errors(kind: pa.DataType) -> None:
    bad = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"ab\xff\xfe"))
    compiled, general = both(STRING, bad.cast(kind))
    assert compiled == general
    assert compiled[1:] == [1, b"\xff\xfe"] and "not valid UTF-8" in compiled[0]


@settings(max_examples=30)
@given(st.lists(st.lists(st.one_of(st.none(), st.text("a\0é漢🙂'", max_size=20)), max_size=8), max_size=8))
def test_strings_keep_their_codes_from_batch_to_batch(batches: list[list[str | None]]) -> None:
    made, dictionary = encoder(STRING)
    for texts in batches:
        codes = made._arrow(pa.record_batch({"x": pa.array(texts, pa.string())}), 1).batch.columns["x"]
        assert [None if c < 0 else dictionary.decode(c) for c in codes.tolist()] == texts
    entries = dictionary.entries()
    assert len(set(entries)) == len(entries)


def test_thousands_of_strings_get_the_same_codes_again() -> None:
    made, dictionary = encoder(STRING)
    texts = [f"number {i}" for i in range(5000)]
    first, again = (made._arrow(pa.table({"x": texts}), 1).batch.columns["x"] for _ in range(2))
    assert np.array_equal(first, again)
    assert len(dictionary) == 5002


def test_all_chunks_of_a_table_with_multiplicities_are_encoded() -> None:
    made, dictionary = encoder(STRING)
    part = pa.table({"x": ["a", None], "_multiplicity": [2, -1]})
    encoded = made._arrow(pa.concat_tables([part, part.slice(1)]), 0).batch
    assert encoded.multiplicities.tolist() == [2, -1, -1]
    assert dictionary.decode(int(encoded.columns["x"][0])) == "a"


def test_integers_for_a_double_column_use_the_general_encoding() -> None:
    made, _ = encoder(DOUBLE)
    assert made._planned(pa.schema({"x": pa.int64()}), False) is None
    assert made._arrow(pa.record_batch({"x": pa.array([1, 2])}), 1).batch.columns["x"].view(float).tolist() == [1, 2]
