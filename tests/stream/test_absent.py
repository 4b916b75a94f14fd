"""Columns that a stream lacks get their DEFAULT; without a DEFAULT they are errors."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from freshviews.stream import (
    AppendOnly,
    BadChange,
    ChangeFormat,
    DebeziumJson,
    DeltaFeed,
    Multiplicities,
    OpColumn,
    Snapshots,
    Upserts,
    signed_rows,
)
from tests.stream.tables import Stored, batch, net, table

GREW = table(
    "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, s STRING NOT NULL DEFAULT 'new', d DECIMAL(9, 2) DEFAULT 1)"
)
NEW = ("new", 1)


@pytest.mark.parametrize(
    ("form", "more"),
    [
        (AppendOnly(), {}),
        (Multiplicities(), {"_multiplicity": [1, 1]}),
        (DeltaFeed(), {"_change_type": ["insert", "insert"]}),
        (OpColumn("op"), {"op": ["insert", "upsert"]}),
        (Upserts(), {}),
        (Upserts(column="op"), {"op": ["upsert", "upsert"]}),
        (Snapshots(), {}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_columns_missing_from_a_batch_get_their_defaults(form: ChangeFormat, more: dict[str, Any]) -> None:
    given = batch(id=[1, 2], a=[5, None], **more)
    signed = signed_rows(given, GREW, form, lookup=Stored(GREW), previous=pa.table({}))
    assert net(signed) == {(1, 5, *NEW): 1, (2, None, *NEW): 1}
    with pytest.raises(BadChange, match="the input has no column a"):
        signed_rows(given.drop_columns(["a"]), GREW, form, lookup=Stored(GREW), previous=pa.table({}))


def test_fields_missing_from_envelopes_get_their_defaults() -> None:
    old, new, null = {"id": 1, "a": 5}, {"id": 1, "a": 6, "s": "reported", "D": None}, {"id": 2, "a": 1, "s": None}
    envelopes = [{"op": "c", "after": old}, {"op": "u", "before": old, "after": new}, {"op": "c", "after": null}]
    given = batch(value=[json.dumps(one) for one in envelopes])
    signed = signed_rows(given, GREW, DebeziumJson(), set_aside=True)
    assert net(signed) == {(1, 6, "reported", None): 1}
    assert [(bad["row"], bad["column"]) for bad in signed.bad.to_pylist()] == [(2, "s")]
    keyed = signed_rows(given.slice(0, 2), GREW, DebeziumJson(by_key=True), lookup=Stored(GREW, (1, 4, *NEW)))
    assert net(keyed) == {(1, 4, *NEW): -1, (1, 6, "reported", None): 1}
