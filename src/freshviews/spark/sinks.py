"""Sinks: the change of a view at a version, or its contents, delivered once.

A version is delivered after it is committed and before the next one is. What a version delivers was fixed when it was
committed, and a file is named by its version; so to deliver again after a crash writes the same file again.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from freshviews.spark.definition import ViewSpec
from freshviews.spark.steps import reach
from freshviews.store.files import sync_directory, write_whole

VERSION = "_version"
FILE_SINKS = ("parquet", "json", "csv")

Receiver = Callable[[DataFrame, int], object]
"""A user's function, called as one of foreachBatch: it gets the rows and the version. After a crash it may be called
again with the version it was last called with."""


def deliver(spark: SparkSession, view: ViewSpec, rows: pa.Table, version: int, receiver: Receiver | None) -> None:
    """Deliver the rows of a version to the sink of a view."""
    if view.output == "changes":
        rows = rows.append_column(pa.field(VERSION, pa.int64()), pa.array([version] * rows.num_rows, pa.int64()))
    if receiver is not None:
        receiver(spark.createDataFrame(rows), version)
    elif view.provider in FILE_SINKS:
        folder = Path(view.options["path"])
        stem = "contents" if view.output == "complete" else f"version-{version:012d}"
        _publish(folder / f"{stem}.{view.provider}", _encoded(str(view.provider), rows, view.options))
    elif view.provider == "console":
        _print(view, rows, version)
    elif view.provider is not None:
        frame = spark.createDataFrame(rows)
        mode = "overwrite" if view.output == "complete" else "append"
        frame.write.format(view.provider).options(**view.options).mode(mode).save()
    reach("sink written")


def _publish(path: Path, data: bytes) -> None:
    """Put a file in place, whole or not at all; readers pass over names that begin with a dot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with aside.open("wb") as file:
            file.write(data[: len(data) // 2])
            reach("sink half written")
            file.write(data[len(data) // 2 :])
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    sync_directory(path.parent)


def publish_bad(source: Path, folder: Path, table: str, version: int) -> None:
    """Put the rows that a version set aside where the user wants them."""
    _publish(folder / f"{table}-{version:012d}.json", source.read_bytes())


def _encoded(provider: str, rows: pa.Table, options: dict[str, str]) -> bytes:
    out = io.BytesIO()
    if provider == "parquet":
        pa.parquet.write_table(rows, out, compression=options.get("compression", "snappy"))
    elif provider == "csv":
        header = options.get("header", "true").lower() == "true"
        style = pa.csv.WriteOptions(include_header=header, delimiter=options.get("sep", ","))
        pa.csv.write_csv(rows, out, style)
    else:
        for row in rows.to_pylist():
            text = {name: _json(value) for name, value in row.items()}
            out.write(json.dumps(text, ensure_ascii=False).encode() + b"\n")
    return out.getvalue()


def _json(value: Any) -> Any:
    """As Spark writes it: decimals as numbers would lose digits, so they are text, as are dates."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _print(view: ViewSpec, rows: pa.Table, version: int) -> None:
    most = int(view.options.get("numRows", "20"))
    print(f"-- {view.name}, version {version}: {rows.num_rows} rows", flush=True)
    for row in rows.slice(0, most).to_pylist():
        print("   " + ", ".join(f"{name}={value}" for name, value in row.items()), flush=True)
    if rows.num_rows > most:
        print(f"   and {rows.num_rows - most} more", flush=True)


class Delivered:
    """The mark of the last version that was delivered."""

    def __init__(self, root: Path) -> None:
        self._path = root / "delivered"

    def version(self) -> int:
        """The last version noted; 0 before the first."""
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return 0

    def note(self, version: int) -> None:
        write_whole(self._path, str(version).encode())
        reach("delivery noted")
