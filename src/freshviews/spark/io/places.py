"""Finds where an input row came from: file and row number, or for a message its topic, partition and offset.

Errors and the files of bad rows name this place.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from freshviews.spark.worker.rows import PLACE, FilePlace

_TIME, _FILE, _AT, _ID = PLACE


def numbered(frame: DataFrame, places: Iterable[FilePlace]) -> dict[FilePlace, int]:
    """The number in its file, from 1, of each row of ``frame`` that a place names. Reads those files again."""
    wanted = {place for place in places if not _tells_all(place)}
    if not wanted:
        return {}
    files = sorted({place[0] for place in wanted})
    rows = frame.where(F.col(_FILE).isin(*files)).select(_FILE, _AT, _ID).toArrow()
    by_file: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows.to_pylist():
        by_file[row[_FILE]].append((row[_AT], row[_ID]))
    found = {}
    for file, rest in by_file.items():
        for number, (at, row_id) in enumerate(sorted(rest), 1):
            if (file, at, row_id) in wanted:
                found[(file, at, row_id)] = number
    return found


def place_columns(names: Sequence[str], at: str) -> tuple[Column, Column]:
    """The place of a row by other columns of its source, such as topic and partition, and its number ``at`` there, such
    as its offset. The number is not part of the text, as rows are ordered by the number after the text."""
    columns = [F.col(name) for name in names]
    text = F.to_json(F.struct(*columns, F.lit(None).cast("bigint").alias(at)), {"ignoreNullFields": "false"})
    return text, F.col(at).cast("bigint")


def place_fields(place: FilePlace | None, numbers: Mapping[FilePlace, int]) -> dict[str, Any]:
    """``file`` and ``row``, or the columns that name the place; ``file`` and ``row`` are None for a row without a
    place."""
    if place is None:
        return {"file": None, "row": None}
    if _tells_all(place):
        return {name: place[1] if value is None else value for name, value in json.loads(place[0]).items()}
    return {"file": place[0], "row": numbers.get(place)}


def place_text(place: FilePlace | None, numbers: Mapping[FilePlace, int]) -> str:
    """``file, row n``, or ``topic t, partition p, offset n``; empty for a row without a place."""
    found = {name: value for name, value in place_fields(place, numbers).items() if value is not None}
    return ", ".join(str(value) if name == "file" else f"{name} {value}" for name, value in found.items())


def _tells_all(place: FilePlace) -> bool:
    """True if a place is from ``place_columns``; a file's address never begins so."""
    return place[0].startswith("{")
