"""The primary keys of Debezium envelopes, by which they are routed to cells."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from freshviews.catalog.catalog import Catalog
from freshviews.sql import parse_script
from freshviews.stream import BadChange, DebeziumJson, keys_of_envelopes


def keys(columns: str, *envelopes: Any, by_key: bool = False) -> list[Any]:
    catalog = Catalog()
    for statement in parse_script(f"CREATE TABLE t ({columns})", catalog):
        catalog = catalog.after(statement)
    texts = [one if one is None or isinstance(one, str) else json.dumps(one) for one in envelopes]
    batch = pa.record_batch({"value": pa.array(texts, pa.string())})
    found: list[Any] = keys_of_envelopes(batch, catalog.tables["t"], DebeziumJson(by_key=by_key)).to_pylist()
    return found


def test_each_envelope_has_the_key_of_its_row() -> None:
    found = keys(
        "a INT, s STRING, n INT, PRIMARY KEY (s, a)",
        {"op": "c", "after": {"A": 1, "s": "x", "n": 1}},
        None,
        {"op": "u", "before": {"a": 2, "s": "y", "n": 1}, "after": {"a": 2, "s": "y", "n": 2}},
        "{",
        {"op": "d", "before": {"a": 3, "s": "z", "n": 0}},
        {"op": "c", "after": {"s": "x", "n": 1}},
    )
    assert found == [{"a": 1, "s": "x"}, None, {"a": 2, "s": "y"}, None, {"a": 3, "s": "z"}, None]


def test_an_envelope_that_changes_its_key_is_refused() -> None:
    same = {"op": "u", "before": {"d": "NaN"}, "after": {"d": "NaN"}}
    assert str(keys("d DOUBLE PRIMARY KEY", same)) == "[{'d': nan}]"
    moved = {"op": "u", "before": {"d": 1.5}, "after": {"d": 2.5}}
    with pytest.raises(BadChange, match=r"row 1, column value: .*'d': 1.5} before and {'d': 2.5} after; .* one cell"):
        keys("d DOUBLE PRIMARY KEY", same, moved)
