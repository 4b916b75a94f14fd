"""When input arrived and what waits, from Spark's own notes in a checkpoint.

::

    <checkpoint>/spark/offsets/7      planned at what time; up to which entry of each source's log
    <checkpoint>/spark/sources/0/7    the files of an entry with their times; ``9.compact`` holds all up to entry 9
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from freshviews.spark.definition import TableSpec

_TAIL = 1 << 20
"""A compact log grows with all input there ever was; the entries of the last micro-batch are at its end."""


def arrived(root: Path, batch: int) -> float | None:
    """When the newest input of a micro-batch came, in seconds since 1970: the time of its newest file; where it has
    none, the time Spark planned it. None where Spark left no note."""
    lines = _offsets(root, batch)
    if not lines:
        return None
    before = _offsets(root, batch - 1)
    newest = [
        entry["timestamp"] / 1000
        for source, line in enumerate(lines[1:])
        for entry in _files(root, source, _entry(before, source) + 1, _entry(lines, source))
        if "timestamp" in entry and line
    ]
    return max(newest, default=lines[0].get("batchTimestampMs", 0) / 1000 or None)


def waiting(root: Path, source: int, table: TableSpec) -> int | None:
    """Files in the folder of the source that no micro-batch has been planned with; None where that takes more than
    a look into a folder."""
    options = {name.lower(): value for name, value in table.options.items()}
    path = options.get("path", "")
    special = {"cleansource", "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"}
    if not path or "://" in path or any(char in path for char in "*?[{") or special & set(options):
        return None
    folder = root / "spark" / "sources" / str(source)
    known = {_local(entry["path"]) for entry in _files(root, source, 0, _last(folder)) if "path" in entry}
    try:
        return sum(
            one.is_file() and one.name[0] not in "._" and str(one) not in known for one in Path(path).iterdir()
        )
    except OSError:
        return None


def _offsets(root: Path, batch: int) -> list[Any]:
    """What is planned in a micro-batch: its own numbers, then a position for each source."""
    try:
        lines = (root / "spark" / "offsets" / str(batch)).read_text().splitlines()[1:]
        return [None if line in ("", "-") else json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []


def _entry(lines: list[Any], source: int) -> int:
    """The last entry of a source's log that is in; -1 where none is, or where it is no source of files."""
    found = lines[source + 1] if source + 1 < len(lines) else None
    return int(found.get("logOffset", -1)) if isinstance(found, dict) else -1


def _last(folder: Path) -> int:
    """The number of the last entry of a log."""
    return max((int(one.name.partition(".")[0]) for one in folder.glob("[0-9]*")), default=-1)


def _files(root: Path, source: int, first: int, last: int) -> Iterator[dict[str, Any]]:
    """The files of the entries of a source's log from ``first`` to ``last``."""
    folder = root / "spark" / "sources" / str(source)
    for number in range(last, first - 1, -1):
        compact = folder / f"{number}.compact"
        if compact.exists():
            yield from (one for one in _lines(compact, whole=first == 0) if first <= one.get("batchId", -1) <= last)
            return
        yield from _lines(folder / str(number), whole=True)


def _lines(path: Path, whole: bool) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = 0 if whole else max(0, size - _TAIL)
            file.seek(start)
            lines = file.read().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _local(address: str) -> str:
    return unquote(urlparse(address).path)
