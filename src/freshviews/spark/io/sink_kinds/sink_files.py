"""Writes files into the folders that are sinks. A reader sees a file whole or not at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from freshviews.spark.crash_points import reach
from freshviews.store.files import sync_directory

FORMATS = ("parquet", "json", "csv")


def publish(path: Path, data: bytes) -> None:
    """Publish a file, whole or not at all; readers ignore names that begin with a dot.

    The temporary file has a fixed name that the next try reuses, so a killed try leaves nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
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


def encoded(provider: str, rows: pa.Table, options: Mapping[str, str]) -> bytes:
    """Rows as the bytes of a file. ``options`` that apply: compression (parquet), header and sep (csv)."""
    out = io.BytesIO()
    if provider == "parquet":
        pa.parquet.write_table(rows, out, compression=options.get("compression", "snappy"))
    elif provider == "csv":
        header = options.get("header", "true").lower() == "true"
        style = pa.csv.WriteOptions(include_header=header, delimiter=options.get("sep", ","))
        pa.csv.write_csv(rows, out, style)
    else:
        for batch in rows.to_batches(65_536):
            out.write(_json_lines(batch))
    return out.getvalue()


def json_objects(rows: pa.RecordBatch, end: str = "") -> pa.Array:
    """A JSON object per row, as text, each followed by ``end``."""
    parts: list[pa.Array | str] = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        parts += [f"{', ' if parts else '{'}{json.dumps(name, ensure_ascii=False)}: ", _json(column)]
    if not parts:
        return pa.array(["{}" + end] * rows.num_rows, pa.string())
    return pc.binary_join_element_wise(*parts, "}" + end, "")


def _json_lines(rows: pa.RecordBatch) -> bytes:
    """A JSON object per row and line."""
    if rows.num_rows == 0:
        return b""
    lines = json_objects(rows, "\n").cast(pa.large_string())
    # Lines are contiguous in the array's buffer, which is therefore the file.
    _, offsets, data = lines.buffers()
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(data)[ends[lines.offset] : ends[lines.offset + len(lines)]])


def _json(values: pa.Array) -> pa.Array:
    """Each value as JSON. Decimals are text, because numbers would lose digits; so are dates, NaN and infinities."""
    if pa.types.is_boolean(values.type) or pa.types.is_integer(values.type):
        text = values.cast(pa.string())
    elif pa.types.is_floating(values.type):
        finite = pc.is_finite(values)
        named = pc.if_else(pc.is_nan(values), '"NaN"', pc.if_else(pc.greater(values, 0), '"Infinity"', '"-Infinity"'))
        text = pc.if_else(finite, values.cast(pa.string()), named)
    else:
        text = pc.binary_join_element_wise('"', _escaped(values.cast(pa.string())), '"', "")
    return pc.fill_null(text, "null")


def _escaped(texts: pa.Array) -> pa.Array:
    found = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(found, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            found = pc.replace_substring(found, chr(code), f"\\u{code:04x}")
    return found
