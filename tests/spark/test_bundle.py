"""Changes written by several cells are read as one change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from freshviews.spark.state.bundle import Bundle, read_change
from freshviews.spark.state.stores.addresses import store_of


def test_a_row_that_moves_between_cells_is_not_a_change(tmp_path: Path) -> None:
    store = store_of(tmp_path)

    def write(rows: list[tuple[str | None, int, int]], nullable: bool) -> str:
        fields = [("name", pa.string()), ("n", pa.int64()), ("_multiplicity", pa.int64())]
        schema = pa.schema([pa.field(name, kind, nullable) for name, kind in fields])
        arrays = [pa.array([row[i] for row in rows], fields[i][1]) for i in range(3)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        bundle = Bundle(store, "changes")
        bundle.add("v", schema, [batch])
        return bundle.finish()["v"]

    files = [
        write([("moved", 1, -1), (None, 2, -1), ("stays", 3, 1)], True),
        write([("moved", 1, 1), ("stays", 3, 1), ("new", 4, 1)], False),
    ]
    found = read_change(store, files)
    assert found is not None
    assert found.schema.names == ["name", "n", "_multiplicity"]
    assert sorted(map(str, found.to_pylist())) == sorted(
        map(
            str,
            [
                {"name": None, "n": 2, "_multiplicity": -1},
                {"name": "stays", "n": 3, "_multiplicity": 2},
                {"name": "new", "n": 4, "_multiplicity": 1},
            ],
        )
    )
    only = read_change(store, files[:1])
    assert only is not None and only.num_rows == 3
    assert read_change(store, []) is None
