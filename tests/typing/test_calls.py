"""Type checkers accept every public call, and refuse wrong ones: mypy reads this file, and the tests run it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import freshviews as fv

pytestmark = pytest.mark.plain_python(only=True)

SCHEMA = """
CREATE TABLE items (id BIGINT PRIMARY KEY, part STRING, qty INT);
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;
"""


class Item(NamedTuple):
    """A row with names."""

    id: int
    part: str
    qty: int | None


def rows(start: int) -> Iterator[tuple[int, str, int]]:
    yield from ((start + i, "bolt", i) for i in range(2))


def test_rows_of_every_form_are_accepted() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    db: fv.Database = fv.Database(threads=1)
    db.execute(SCHEMA)
    version: int = db.insert("items", [(1, "bolt", 3)])
    db.insert("items", [[2, "nut", 5]])
    db.insert("items", [{"id": 3, "part": "pin"}])
    db.insert("items", [Item(4, "nut", None)])
    db.insert("items", rows(10))
    db.insert("items", ({"id": i} for i in range(20, 22)))
    mappings: list[Mapping[str, object]] = [{"id": 5, "part": "nut"}]
    db.insert("items", mappings)
    db.insert("items", pa.table({"id": [30]}))
    db.insert("items", pd.DataFrame({"id": [31]}))
    db.insert("items", pl.DataFrame({"id": [32]}))
    db.delete("items", ((1, "bolt", 3),))
    db.apply("items", [(40, "nut", 1, 1), (40, "nut", 1, -1)])
    db.apply("items", pa.table({"id": [41], "_multiplicity": [1]}))
    assert db.version > version
    db.create_table("copy", db.table("items"), key="id")
    db.create_table("sums", db.view("by_part"), key=[])
    db.create_table("frame", pl.DataFrame({"x": [1]}))


def test_mypy_accepts_every_call_of_a_database(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "shop", sync="interval", sync_seconds=0.5, snapshot_bytes=1 << 20) as db:
        db.execute(SCHEMA)
        db.rule("few(p) <- items(i, p, q), q < 4.", {"freshviews.strategy": "first_order"})
        names: tuple[str, ...] = db.tables + db.views + db.plain_views
        recovery: fv.Recovery | None = db.recovery
        with db.batch() as batch:
            batch.insert("items", [(1, "bolt", 3)])
            batch.delete("items", [(1, "bolt", 3)])
            batch.apply("items", rows_with_signs())
        made: int | None = batch.version
        replanned: bool = db.replan("by_part", strategies=True)
        numbers = [piece.num_rows for piece in db.apply_in_order("items", [(7, "nut", 1, 1)], "by_part", rows=10)]
        numbers += [piece.num_rows for piece in db.apply_net("items", [(8, "nut", 1, 1)], "by_part")]
        with db.at_one_version() as version:
            assert version == db.version
        stats: fv.Stats = db.stats()
        counted: int = stats["views"]["by_part"]["rows"] + db.bytes_of("items") + db.stored_rows
        db.snapshot()
        db.sync()
        db.write_image(tmp_path / "image", sync=False)
    assert names == ("items", "by_part", "few") and made == 1 and sum(numbers) > 0 and counted > 0
    assert recovery is not None and isinstance(replanned, bool) and stats.units["bytes"] == "bytes"


def rows_with_signs() -> list[tuple[int, str, int, int]]:
    return [(2, "bolt", 3, 1)]


def test_mypy_accepts_every_call_of_handles() -> None:
    db = fv.Database()
    db.execute(SCHEMA)
    view: fv.View = db.view("by_part")
    table: fv.Table = db.table("items")
    changes: list[fv.Change] = []
    subscription: fv.Subscription = view.subscribe(changes.append)
    db.insert("items", [(1, "bolt", 3)])
    subscription.unsubscribe()
    row: tuple[Any, ...] = view["bolt"]
    counts: int = len(view) + len(table) + len(changes[0]) + view.head(1).num_rows
    multiplicities: list[int] = [multiplicity for _, multiplicity in changes[0]]
    read: list[tuple[Any, ...]] = [*view, *table]
    explanation: fv.Explanation = view.explain(strategies=True)
    text: str = explanation + explanation.mermaid() + explanation.svg() + view.name + table.name + changes[0].view
    parts: dict[str, Any] = explanation.to_dict()
    table.check()
    assert table.lookup(table.to_arrow()).num_rows == view.to_arrow().num_rows == len(changes[0].to_pandas()) == 1
    assert view.to_polars().shape == (len(changes[0].to_polars()), 2)
    assert sum(piece.num_rows for piece in (*view.to_batches(10), *changes[0].to_batches(10))) == 2
    assert row == ("bolt", 3) and counts == 4 and multiplicities == [1] and len(read) == 2
    assert parts["view"] == "by_part" and text.startswith("view by_part") and not subscription.active


def test_wrong_calls_are_refused_by_mypy_and_at_run_time() -> None:
    db = fv.Database()
    db.execute(SCHEMA)
    with pytest.raises(fv.BatchError, match="rows are given as int"):
        db.insert("items", 5)  # type: ignore[arg-type]
    with pytest.raises(fv.BatchError, match=r"a row must be a tuple, a list, a dict, .* not int"):
        db.insert("items", [1, 2])  # type: ignore[list-item]
    with pytest.raises(fv.ArgumentError, match=r"delete needs whole rows or keys="):
        db.delete("items", None)
    with pytest.raises(fv.BatchError, match="a row must be a tuple"), db.batch() as batch:
        batch.apply("items", [dt.date(2026, 1, 5)])  # type: ignore[list-item]
    with pytest.raises(fv.ArgumentError, match=r"a pandas or polars DataFrame, .* is expected"):
        db.create_table("t", [(1, Decimal(1))])  # type: ignore[arg-type]
    with pytest.raises(fv.CatalogError, match="must be a str"):
        db.view(1)  # type: ignore[arg-type]
    with pytest.raises(fv.ArgumentError, match="head"):
        db.view("by_part").head("1")  # type: ignore[arg-type]
    with pytest.raises(fv.ArgumentError, match="sync must be"):
        fv.Database(sync="never")  # type: ignore[arg-type]


def test_completion_offers_only_the_public_names() -> None:
    assert dir(fv) == sorted(fv.__all__)
    assert all(getattr(fv, name) is not None for name in dir(fv))
