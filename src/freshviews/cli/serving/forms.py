"""Encodes the rows of an answer as JSON, CSV or an Arrow IPC stream."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import csv

from freshviews.records import dataclass

_BATCH = 10_000
MOST_BYTES = 64 << 20
"""Most bytes of an answer."""


class TooLong(Exception):
    """The answer would have more than ``MOST_BYTES``."""


@dataclass(frozen=True)
class Part:
    """Rows of a result, from position ``offset`` of ``total``. ``of``: the view or the SELECT, for the answer."""

    version: int
    of: Mapping[str, str]
    rows: pa.Table
    offset: int
    total: int


def as_json(part: Part) -> bytes:
    """An object with the version, the columns and an object per row. Raises TooLong.

    DECIMAL, DATE and TIMESTAMP are strings, as in ``freshviews query --json``; so are NaN and infinities, which JSON
    lacks.
    """
    head = {
        "version": part.version,
        **part.of,
        "columns": [{"name": one.name, "type": str(one.type)} for one in part.rows.schema],
        "total": part.total,
        "offset": part.offset,
    }
    pieces = [json.dumps(head, ensure_ascii=False)[:-1].encode(), b', "rows": [']
    size = 0
    for batch in part.rows.to_batches(max_chunksize=_BATCH):
        lines = ",\n".join(json.dumps(_plain(row), default=str, ensure_ascii=False) for row in batch.to_pylist())
        if lines:
            pieces.append((",\n" if size else "\n").encode() + lines.encode())
            size += len(pieces[-1])
            _check(size)
    return b"".join([*pieces, b"]}\n"])


def as_csv(part: Part) -> bytes:
    """Lines with a header; strings are quoted, and NULL is an empty field without quotes. Raises TooLong."""
    out = pa.BufferOutputStream()
    with csv.CSVWriter(out, part.rows.schema) as writer:
        for batch in part.rows.to_batches(max_chunksize=_BATCH):
            writer.write_batch(batch)
            _check(out.tell())
    return bytes(out.getvalue())


def as_arrow(part: Part) -> bytes:
    """An IPC stream; the metadata of its schema has ``freshviews.version``. Raises TooLong."""
    _check(part.rows.nbytes)
    rows = part.rows.replace_schema_metadata({"freshviews.version": str(part.version)})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(out.getvalue())


FORMS: Mapping[str, tuple[str, Callable[[Part], bytes]]] = {
    "json": ("application/json", as_json),
    "csv": ("text/csv; charset=utf-8", as_csv),
    "arrow": ("application/vnd.apache.arrow.stream", as_arrow),
}
"""The media type and the writer of each form."""


def _check(size: int) -> None:
    if size > MOST_BYTES:
        raise TooLong


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
