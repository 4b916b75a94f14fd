# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Every public call, as a user writes it. mypy and pyright read this file in strict mode; nothing runs it.

Where ``type: ignore`` stands, both must refuse the call.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import freshviews as fv


@dataclass
class Item:
    id: int
    part: str


class Named(NamedTuple):
    id: int
    part: str


class Model:
    """A pydantic model, as a type checker sees it."""

    id: int = 1

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        return {"id": self.id, "mode": mode}


def functions(db: fv.Database) -> str:
    @db.function(takes=["DOUBLE", "DOUBLE"], returns="STRING")
    def cell(x: float, y: float) -> str:
        return f"{x:.1f},{y:.1f}"

    @fv.register_function("twice", takes=["BIGINT"], returns="BIGINT", nulls=True)
    def double(x: int | None) -> int | None:
        return None if x is None else 2 * x

    @db.aggregate(takes=["INT"], returns="INT")
    class Total:
        value = 0

        def add(self, x: int) -> None:
            self.value += x

        def output(self) -> int:
            return self.value

    fv.register_aggregate("total", takes=["INT"], returns="INT", zero=int, add=max, output=int, remove=min)
    Total().add(3)
    db.function("other", cell, takes=["DOUBLE", "DOUBLE"], returns="STRING", arrow=False)
    return cell(1.0, 2.0) + str(double(3))


def made(start: int) -> Iterator[tuple[int, str]]:
    yield start, "bolt"


def rows(db: fv.Database, table: fv.Table, view: fv.View, change: fv.Change) -> int:
    mappings: list[Mapping[str, object]] = [{"id": 1}]
    version: int = db.insert("items", [(1, "bolt")])
    db.insert("items", [[1, "bolt"]])
    db.insert("items", {"id": 1})
    db.insert("items", [{"id": 1}, {"id": 2}])
    db.insert("items", Item(1, "bolt"))
    db.insert("items", [Item(1, "bolt"), {"id": 2}, (3, "nut")])
    db.insert("items", Model())
    db.insert("items", [Model()])
    db.insert("items", [Named(1, "bolt")])
    db.insert("items", made(1))
    db.insert("items", mappings)
    db.insert("items", view)
    db.delete("items", [(1, "bolt")])
    db.delete("items", {"id": 1})
    db.delete("items", keys=[1, (2,), {"id": 3}])
    db.delete("items", keys=range(3))
    db.upsert("items", Item(1, "bolt"))
    db.upsert("items", [(1, "bolt")])
    db.update("items", {"id": 1, "part": "nut"})
    db.update("items", [{"id": 1}, Item(2, "nut")])
    db.apply("items", [(1, "bolt", -1)])
    db.apply("items", change)
    db.create_table("copy", table, key="id")
    db.create_table("copy", view, key=["id", "part"])
    with db.serve(0, writable=True) as server:
        print(server.uri)
    moment: dt.datetime | None = db.clock
    db.advance(moment)
    with db.batch() as batch:
        batch.insert("items", Item(1, "bolt"))
        batch.delete("items", [(1, "bolt")])
        batch.delete("items", keys=[1])
        batch.upsert("items", [(1, "bolt")])
        batch.update("items", {"id": 1, "part": "nut"})
        batch.apply("items", [(1, "bolt", 1)])
    return version + (batch.version or 0)


def refused(db: fv.Database, view: fv.View, table: fv.Table) -> None:
    db.insert("items", 5)  # type: ignore[arg-type]
    db.insert("items", [1, 2])  # type: ignore[list-item]
    db.insert("items", None)  # type: ignore[arg-type]
    db.upsert("items", 5)  # type: ignore[arg-type]
    db.update("items", [5])  # type: ignore[list-item]
    db.delete("items", keys=3)  # type: ignore[arg-type]
    db.insert(1, [(1, "bolt")])  # type: ignore[arg-type]
    db.create_table("t", [(1, 2)])  # type: ignore[arg-type]
    db.view(1)  # type: ignore[arg-type]
    db.view("by_part").subscribe(5)  # type: ignore[arg-type]
    view.changes("first")  # type: ignore[arg-type]
    view.changes(full="drop")  # type: ignore[arg-type]
    view.scan()  # type: ignore[call-arg]
    table.get()  # type: ignore[call-arg]
    table.where(id=1)  # type: ignore[attr-defined]
    fv.Database(sync="never")  # type: ignore[arg-type]


def definitions(path: Path) -> None:
    with fv.Database(path, sync="interval", sync_seconds=0.5, threads=2) as db:
        db.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, part STRING)")
        db.rule("few(p) <- items(i, p).", {"freshviews.strategy": "first_order"})
        names: tuple[str, ...] = db.tables + db.views + db.plain_views
        replanned: bool = db.replan("few", strategies=True)
        recovery: fv.Recovery | None = db.recovery
        stats: fv.Stats = db.stats()
        sizes: int = stats["bytes"] + db.bytes_of("items") + db.stored_rows + db.version
        unit: str = stats.units["bytes"]
        db.snapshot()
        db.sync()
        db.write_image(path / "image", sync=False)
        with db.at_one_version() as version:
            print(version + sizes, names, replanned, recovery, unit)
        db.close()


def reading(db: fv.Database) -> list[Any]:
    view, table = db.view("by_part"), db.table("items")
    row: tuple[Any, ...] = view["bolt"]
    one: tuple[Any, ...] = table[1]
    found: list[tuple[Any, ...]] = view.scan("bolt") + view.where(part="bolt", qty=None)
    counts: int = len(view) + len(table)
    there: bool = 3 in table
    names: str = view.name + table.name
    view.check()
    explanation: fv.Explanation = view.explain(strategies=True)
    text: str = explanation + explanation.mermaid() + explanation.svg()
    parts: dict[str, Any] = explanation.to_dict()
    frames: list[Any] = [view.to_pandas(), table.to_polars()]
    answer: fv.Answer = db.sql("SELECT part FROM by_part WHERE qty > ?", [3])
    first: tuple[Any, ...] | None = answer.fetchone()
    found += answer.fetchall() + db.sql("SELECT * FROM items WHERE id = :id", {"id": 3}).fetchmany(2)
    for values in view:
        found.append(values)
    return [row, one, first, counts, there, names, text, parts, frames, view.get("bolt"), table.get(1, "none")]


def following(view: fv.View) -> int:
    def note(change: fv.Change) -> None:
        pairs: list[tuple[tuple[Any, ...], int]] = list(change)
        print(change.view, change.version, len(change), change.is_snapshot, pairs)

    with view.subscribe(note) as subscription:
        active: bool = subscription.active
    subscription.close()
    view.keep_changes(100)
    changes: fv.Changes = view.changes("now", size=10, full="wait", timeout=1.0)
    taken: fv.Change | None = changes.take(0)
    with view.changes(3) as following:
        for change in following:
            return change.version
    changes.close()
    return int(active) + (0 if taken is None else len(taken))


async def awaiting(view: fv.View) -> int:
    async with view.changes() as changes:
        async for change in changes:
            return change.version
    return 0


def errors(db: fv.Database) -> str:
    try:
        db.insert("items", [(1, "bolt")])
    except fv.BatchError as error:
        return f"{error.table} {error.row} {error.column} {error.value} {error.rule}"
    except (fv.CatalogError, fv.QueueFull, fv.FreshviewsError) as error:
        return str(error)
    return ""
