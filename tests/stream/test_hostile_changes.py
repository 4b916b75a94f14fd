"""Changes that no honest source writes are refused with row and column, or read exactly as written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshviews.stream import AppendOnly, BadChange, DebeziumJson, OpColumn, signed_rows
from tests.stream.tables import BAG, batch, table

WIDE = table(
    "CREATE TABLE wide (id BIGINT, s STRING, short VARCHAR(3), price DECIMAL(9, 2), big DECIMAL(38, 10), day DATE, "
    "at TIMESTAMP)"
)
EMPTY = {"id": "1", "s": "null", "short": "null", "price": "null", "big": "null", "day": "null", "at": "null"}


def envelope(schema: str = "", more: str = "", **fields: str) -> str:
    row = ",".join(f'"{name}":{value}' for name, value in {**EMPTY, **fields}.items()) + more
    text = f'{{"op":"c","after":{{{row}}}}}'
    return f'{{"schema":{schema},"payload":{text}}}' if schema else text


def read(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = signed_rows(
        batch(value=[text]), WIDE, DebeziumJson(timestamps="ns")
    ).rows.to_pylist()
    return rows


LEAST = -(2**63)
REFUSED: list[tuple[str, str, str]] = [
    (envelope(more=',"ID":2'), "id", "the row has field id twice; case does not matter in names of fields"),
    (envelope(at=str(LEAST)), "at", "TIMESTAMP accepts values that fit 64 bits"),
    (envelope(at=str(2**63)), "at", "TIMESTAMP accepts values that fit 64 bits"),
    (envelope(day=str(LEAST)), "day", "DATE accepts values that fit 64 bits"),
    (envelope(short='"ääää"'), "short", r"VARCHAR\(3\) accepts 3 characters, not 4"),
    (envelope(price='"' + "9" * 5000 + '"'), "price", r"accepts|does not fit"),
    (envelope(big='"' + "4" * 30 + '"'), "big", "accepts 28 digits before the point"),
    (envelope(price='{"scale":99999999999,"value":"AQ=="}'), "price", "a decimal in base64 must be"),
    (envelope(price='{"scale":"x","value":"AQ=="}'), "price", "a decimal in base64 must be"),
    (envelope(price='{"scale":2,"value":"é"}'), "price", "a decimal in base64 must be"),
    (envelope(s=r'"\ud800"'), "value", "it is not JSON: no low surrogate"),
    (envelope(id="1e999"), "value", "it is not JSON: number is infinity"),
    (envelope(id="NaN"), "value", "it is not JSON"),
    (envelope(s="[" * 100_000), "value", "it is not JSON"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED, ids=[reason for _, _, reason in REFUSED])
def test_a_hostile_envelope_is_refused_or_set_aside(text: str, column: str, reason: str) -> None:
    with pytest.raises(BadChange, match=f"(?s)table wide, row 0, column {column}: .*{reason}"):
        read(text)
    good = envelope()
    found = signed_rows(batch(value=[good, text, good]), WIDE, DebeziumJson(timestamps="ns"), set_aside=True)
    assert found.rows.num_rows == 2 and found.bad.column("row").to_pylist() == [1]
    assert found.bad.column("column").to_pylist() == [column]


def test_unknown_fields_may_have_names_that_differ_only_in_case() -> None:
    assert len(read(envelope(more=',"x":1,"X":2'))) == 1


@pytest.mark.parametrize("text", ["1e-41", "0." + "9" * 60, "9" * 43])
def test_a_decimal_with_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(BadChange, match="column price"):
        read(envelope(price=f'"{text}"'))


@pytest.mark.parametrize("text", ["12.5", "1.25e1", "12.5" + "0" * 60])
def test_a_decimal_in_text_is_read_exactly(text: str) -> None:
    assert read(envelope(price=f'"{text}"'))[0]["price"] == Decimal("12.5")


@pytest.mark.parametrize("scale", ['"1e9"', '"99999"', "7.5", "[]", "null"])
def test_an_invalid_scale_in_a_connect_schema_is_ignored(scale: str) -> None:
    name = "org.apache.kafka.connect.data.Decimal"
    field = f'{{"field":"price","name":"{name}","parameters":{{"scale":{scale}}}}}'
    schema = f'{{"fields":[{{"field":"after","fields":[{field}]}}]}}'
    assert read(envelope(schema, price='"AQ=="'))[0]["price"] == Decimal("0.01")


def _invalid(kind: pa.DataType) -> pa.Array:
    offsets = np.array([0, 2, 3, 5], np.int32)
    texts = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab\xffcd")])
    return texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)


KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("form", [AppendOnly(), OpColumn()])
def test_text_that_is_not_utf8_is_a_bad_row(kind: pa.DataType, form: Any) -> None:
    words = {} if form == AppendOnly() else {"op": ["insert"] * 3}
    given = batch(id=[1, 2, 3], part=_invalid(kind), **words)
    with pytest.raises(BadChange, match=r"table bag, row 1, column part: b'.xff': it is not valid UTF-8 text"):
        signed_rows(given, BAG, form)
    found = signed_rows(given, BAG, form, set_aside=True)
    assert found.rows.column("part").to_pylist() == ["ab", "cd"]
    assert found.bad.select(["row", "value"]).to_pylist() == [{"row": 1, "value": "\ufffd"}]


def test_an_envelope_or_op_word_that_is_not_utf8_is_a_bad_row() -> None:
    for kind in KINDS[:2]:
        with pytest.raises(BadChange, match=r"row 1, column value: b'.xff': it is not valid UTF-8 text"):
            signed_rows(batch(value=_invalid(kind)), BAG, DebeziumJson())
    with pytest.raises(BadChange, match=r"row 1, column op: b'.xff': it is not valid UTF-8 text"):
        signed_rows(batch(op=_invalid(pa.string()), id=[1, 2, 3], part=["a", "b", "c"]), BAG, OpColumn())


def test_a_column_that_is_not_read_may_hold_any_bytes() -> None:
    text = '{"op":"c","after":{"id":1,"part":"x"}}'
    found = signed_rows(batch(value=[text, "7", text], key=_invalid(pa.string())), BAG, DebeziumJson(), set_aside=True)
    assert found.rows.num_rows == 2 and "\ufffd" in found.bad.column("input")[0].as_py()
