"""Row numbers in files, computed only for rows that are reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from freshviews.spark.worker.rows import PLACE, FilePlace

_TIME, _FILE, _AT, _ID = PLACE


def numbered(frame: DataFrame, places: Iterable[FilePlace]) -> dict[FilePlace, int]:
    """The number in its file, from 1, of each row that a place of ``frame`` names. Reads those files again."""
    wanted = set(places)
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


def place_text(place: FilePlace | None, numbers: dict[FilePlace, int]) -> str:
    """``file, row n``; nothing for a row of no file."""
    if place is None:
        return ""
    number = numbers.get(place)
    return place[0] if number is None else f"{place[0]}, row {number}"
