from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from freshviews.stream import BadChange, DebeziumJson, signed_rows
from tests.stream.tables import BAG, ORDERS, Stored, batch, net, table

EVENTS = table("CREATE TABLE events (id BIGINT PRIMARY KEY, at TIMESTAMP, amount DECIMAL(12, 2), ok BOOLEAN, x DOUBLE)")


def envelope(op, before=None, after=None):
    return {"op": op, "before": before, "after": after, "source": {"table": "t", "id": 7}, "ts_ms": 1}


def row(id, part):
    return {"id": id, "part": part}


def texts(*messages):
    return batch(
        value=pa.array([m if m is None or isinstance(m, str) else json.dumps(m) for m in messages], pa.string())
    )


MESSAGES = (
    envelope("r", None, row(1, "a")),
    envelope("c", None, row(2, "b")),
    None,
    envelope("u", row(2, "b"), row(2, "c")),
    envelope("d", row(1, "a"), None),
    "null",
    "  ",
    envelope("m"),
)


def test_envelopes_become_signed_rows_and_tombstones_are_skipped():
    signed = signed_rows(texts(*MESSAGES), BAG, DebeziumJson())
    assert signed.rows.to_pylist() == [
        {"id": 1, "part": "a", "_multiplicity": 1},
        {"id": 2, "part": "b", "_multiplicity": 1},
        {"id": 2, "part": "b", "_multiplicity": -1},
        {"id": 2, "part": "c", "_multiplicity": 1},
        {"id": 1, "part": "a", "_multiplicity": -1},
    ]
    assert signed.positions.tolist() == [0, 1, 3, 3, 4]


@pytest.mark.parametrize("order", ["schema first", "payload first"])
def test_a_payload_is_read_the_same_with_and_without_its_schema(order):
    def wrapped(message):
        parts = [("schema", {"type": "struct", "fields": []}), ("payload", message)]
        return dict(parts if order == "schema first" else reversed(parts))

    messages = [m if m is None or isinstance(m, str) else wrapped(m) for m in MESSAGES]
    messages.append({"schema": None, "payload": None})
    assert (
        signed_rows(texts(*messages), BAG, DebeziumJson()).rows
        == signed_rows(texts(*MESSAGES), BAG, DebeziumJson()).rows
    )


def test_a_debezium_message_may_be_a_column_of_bytes():
    given = batch(key=[b"1"], value=[json.dumps(envelope("c", None, row(1, "ü"))).encode()], offset=[5])
    assert net(signed_rows(given, BAG, DebeziumJson())) == {(1, "ü"): 1}


def test_a_column_may_be_called_payload():
    payloads = table("CREATE TABLE p (payload STRING)")
    given = texts(envelope("c", None, {"payload": "x"}))
    assert net(signed_rows(given, payloads, DebeziumJson())) == {("x",): 1}


def test_field_names_are_case_insensitive():
    given = texts(envelope("c", None, {"ID": 1, "PART": "a", "more": 1}), envelope("c", None, {"id": 2, "Part": "b"}))
    assert net(signed_rows(given, BAG, DebeziumJson())) == {(1, "a"): 1, (2, "b"): 1}


def test_changes_by_key_ignore_the_before_image():
    stored = Stored(EVENTS, (1, None, Decimal("1.00"), True, 0.5), (2, None, None, None, None))
    after = {"id": 1, "at": None, "amount": "2", "ok": False, "x": 1}
    signed = signed_rows(
        texts(envelope("u", None, after), envelope("d", {"id": 2})), EVENTS, DebeziumJson(by_key=True), lookup=stored
    )
    assert net(signed) == {
        (1, None, Decimal("1.00"), True, 0.5): -1,
        (1, None, Decimal("2.00"), False, 1.0): 1,
        (2, None, None, None, None): -1,
    }


def test_an_update_of_a_key_removes_the_old_row():
    keyed = table("CREATE TABLE k (id BIGINT PRIMARY KEY, part STRING)")
    stored = Stored(keyed, (1, "a"))
    signed = signed_rows(
        texts(envelope("u", row(1, "?"), row(9, "a"))), keyed, DebeziumJson(by_key=True), lookup=stored
    )
    assert net(signed) == {(1, "a"): -1, (9, "a"): 1}


def test_repeated_messages_of_changes_by_key_change_nothing():
    keyed = table("CREATE TABLE k (id BIGINT PRIMARY KEY, part STRING)")
    stored = Stored(keyed, (1, "b"))
    again = texts(envelope("r", None, row(1, "a")), envelope("u", row(1, "a"), row(1, "b")), envelope("d", {"id": 2}))
    assert net(signed_rows(again, keyed, DebeziumJson(by_key=True), lookup=stored)) == {}


def schema_of(*fields):
    image = [{"type": "struct", "field": side, "fields": list(fields)} for side in ("before", "after")]
    return {"type": "struct", "name": "Envelope", "fields": [*image, {"type": "string", "field": "op"}]}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("io.debezium.time.Timestamp", 1_700_000_000_123),
        ("org.apache.kafka.connect.data.Timestamp", 1_700_000_000_123),
        ("io.debezium.time.MicroTimestamp", 1_700_000_000_123_000),
        ("io.debezium.time.NanoTimestamp", 1_700_000_000_123_000_000),
        ("io.debezium.time.ZonedTimestamp", "2023-11-14T22:13:20.123Z"),
    ],
)
def test_units_of_times_and_scales_of_decimals_are_read_from_the_schema(kind, value):
    schema = schema_of(
        {"type": "int64", "field": "id"},
        {"type": "int64", "name": kind, "field": "at"},
        {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "1"},
            "field": "amount",
        },
    )
    amount = base64.b64encode((-125).to_bytes(2, "big", signed=True)).decode()
    after = {"id": 1, "at": value, "amount": amount, "ok": 1, "x": "NaN"}
    given = texts({"schema": schema, "payload": envelope("c", None, after)})
    (found,) = signed_rows(given, EVENTS, DebeziumJson()).rows.to_pylist()
    assert found["at"] == dt.datetime(2023, 11, 14, 22, 13, 20, 123_000)
    assert found["amount"] == Decimal("-12.50")
    assert found["ok"] is True and found["x"] != found["x"]


def test_messages_of_several_schemas_keep_their_order():
    def wrapped(kind, id, at):
        schema = schema_of({"type": "int64", "name": kind, "field": "at"})
        after = {"id": id, "at": at, "amount": None, "ok": None, "x": None}
        return {"schema": schema, "payload": envelope("c", None, after)}

    ms, us = "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp"
    given = texts(wrapped(ms, 1, 1000), wrapped(us, 2, 2_000_000), wrapped(ms, 3, 3000))
    signed = signed_rows(given, EVENTS, DebeziumJson())
    assert signed.rows.column("id").to_pylist() == [1, 2, 3]
    assert [at.second for at in signed.rows.column("at").to_pylist()] == [1, 2, 3]


def test_without_a_schema_the_unit_of_timestamps_must_be_given():
    after = {"id": 1, "at": 1000, "amount": None, "ok": None, "x": None}
    given = texts(envelope("c", None, after))
    with pytest.raises(BadChange, match="row 0, column at: 1000: the unit of this timestamp is not known; set"):
        signed_rows(given, EVENTS, DebeziumJson())
    (found,) = signed_rows(given, EVENTS, DebeziumJson(timestamps="ms")).rows.to_pylist()
    assert found["at"] == dt.datetime(1970, 1, 1, 0, 0, 1)


@pytest.mark.parametrize(
    ("amount", "options", "expected"),
    [
        ("12.3", {}, "12.30"),
        (12, {}, "12.00"),
        (12.34, {}, "12.34"),
        ("BNI=", {"decimals": "base64"}, "12.34"),
        ({"scale": 3, "value": "MDQ="}, {}, "12.340"),
    ],
)
def test_decimals_are_read_from_texts_numbers_and_bytes(amount, options, expected):
    after = {"id": 1, "at": None, "amount": amount, "ok": None, "x": None}
    (found,) = signed_rows(texts(envelope("c", None, after)), EVENTS, DebeziumJson(**options)).rows.to_pylist()
    assert found["amount"] == Decimal(expected)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("amount", "BNI=", "is not a decimal number; if the connector writes decimals as bytes"),
        ("amount", 12345678901234.5, "needs strings; have the source write strings"),
        ("amount", 1.234, "digits after the point"),
        ("id", "x", "is not an integer"),
        ("id", 1.5, "BIGINT accepts int, not float"),
        ("id", True, "BIGINT does not accept a JSON boolean"),
        ("id", None, "NULL in a column declared NOT NULL"),
        ("id", 2**70, "BIGINT accepts int"),
        ("ok", 2, "BOOLEAN does not accept a JSON number"),
        ("x", [1], "DOUBLE accepts"),
        ("x", 2**53 + 1, "DOUBLE cannot store this integer exactly"),
    ],
)
def test_the_error_of_a_value_of_the_wrong_type_names_the_field(field, value, reason):
    after = {"id": 1, "at": None, "amount": None, "ok": None, "x": None}
    good = envelope("c", None, after)
    given = texts(*[good] * 40, envelope("c", None, after | {field: value}), good)
    with pytest.raises(BadChange) as raised:
        signed_rows(given, EVENTS, DebeziumJson())
    assert (raised.value.row, raised.value.column) == (40, field)
    assert reason in raised.value.reason


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("{", "it is not JSON: "),
        ('{"schema":{},"payload":{"op":"c"', "it is not JSON: "),
        ("[1]", "it has no field op"),
        ({"id": 1}, "it has no field op"),
        (envelope("t"), "op t truncates the table"),
        (envelope("x"), "op 'x' is unknown; accepted: c, u, d and r"),
        (envelope([1]), "op [1] is unknown"),
        (envelope("c"), "op c has no row in after"),
        (envelope("u", None, row(1, "a")), "op u has no row in before; have the source write whole rows"),
        (envelope("d"), "op d has no row in before"),
        (envelope("c", None, {"id": 1}), "the row has no field part; its fields are id"),
        (envelope("c", None, row(1, 5)), "STRING accepts a JSON string, not number"),
        (envelope("c", None, row(1, "__debezium_unavailable_value")), "the database did not send this value"),
    ],
)
def test_a_bad_message_is_set_aside_with_its_reason(message, reason):
    given = texts(envelope("c", None, row(1, "a")), message, envelope("c", None, row(2, "b")))
    signed = signed_rows(given, BAG, DebeziumJson(), set_aside=True)
    assert net(signed) == {(1, "a"): 1, (2, "b"): 1}
    (bad,) = signed.bad.to_pylist()
    assert bad["row"] == 1 and bad["reason"].startswith(reason)
    assert json.loads(bad["input"])["value"] == (message if isinstance(message, str) else json.dumps(message))


def test_a_debezium_update_with_one_bad_image_is_set_aside_as_a_whole():
    given = texts(envelope("u", row(1, 5), row(1, "b")))
    assert net(signed_rows(given, BAG, DebeziumJson(), set_aside=True)) == {}


def test_a_message_that_is_not_utf_8_is_a_bad_row():
    good = json.dumps(envelope("c", None, row(1, "a"))).encode()
    signed = signed_rows(batch(value=[good, b"\xff\xfe"]), BAG, DebeziumJson(), set_aside=True)
    assert net(signed) == {(1, "a"): 1}
    assert signed.bad.column("reason").to_pylist()[0].startswith("it is not UTF-8")


def test_thousands_of_messages_are_read_like_single_messages():
    given = texts(*(envelope("c", None, row(i, None if i % 3 else "x")) for i in range(2500)))
    signed = signed_rows(given, BAG, DebeziumJson())
    assert signed.rows.column("id").to_pylist() == list(range(2500))
    assert signed.rows.column("part").null_count == 2500 - 834


def test_empty_batches_and_tombstones_give_no_rows():
    assert signed_rows(texts(), ORDERS, DebeziumJson()).rows.num_rows == 0
    assert signed_rows(texts(None), ORDERS, DebeziumJson()).rows.schema.names[-1] == "_multiplicity"
