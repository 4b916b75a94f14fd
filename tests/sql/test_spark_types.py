"""Every expression has its type in Spark: spark_types.json has queries over TABLE with Spark's types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sql.printed import catalog, column_types, view

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

COLUMNS = {
    "a": "INT", "c": "BIGINT", "i8": "TINYINT", "i16": "SMALLINT", "x": "DOUBLE", "f": "FLOAT", "p": "DECIMAL(12, 2)",
    "m": "DECIMAL(18, 4)", "n": "DECIMAL(3, 0)", "s": "STRING", "d": "DATE", "ts": "TIMESTAMP", "t": "BOOLEAN",
}  # fmt: skip
TYPES: list[tuple[str, str]] = json.loads(Path(__file__).with_name("spark_types.json").read_text())


def test_a_query_has_the_same_types_as_in_spark() -> None:
    known = catalog(f"CREATE TABLE q ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())});")
    found = {query: column_types(view(query, known)) for query, _ in TYPES}
    plain = {query: text.partition(" ")[2].removesuffix(" NOT NULL") for query, text in found.items()}
    assert {query: text.lower().replace(", ", ",") for query, text in plain.items()} == dict(TYPES)
