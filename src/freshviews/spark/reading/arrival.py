"""Finds when input arrived, and which input files are still unread, from the files that Spark itself writes.

::

    <folder>/offsets/7      micro-batch 7: when it was planned, and its last entry of each source
    <folder>/sources/0/7    source 0, entry 7: files with their times; ``9.compact`` has all entries up to 9
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from freshviews.spark.definition import TableSpec
from freshviews.store.files import json_of, open_regular, read_regular

_TAIL = 1 << 20
"""Bytes read from the end of a compact log, which grows with all input; the last micro-batch's entries are there."""


def arrived(folder: Path, batch: int) -> float | None:
    """When the newest input of a micro-batch arrived, in seconds since 1970.

    That is the time of its newest file, or else the time when Spark planned it. None if Spark has no record.
    """
    lines = _offsets(folder, batch)
    if not lines:
        return None
    before = _offsets(folder, batch - 1)
    newest = [
        entry["timestamp"] / 1000
        for source, line in enumerate(lines[1:])
        for entry in _files(folder, source, _entry(before, source) + 1, _entry(lines, source))
        if "timestamp" in entry and line
    ]
    return max(newest, default=lines[0].get("batchTimestampMs", 0) / 1000 or None)


def files_of_batch(folder: Path, batch: int, source: int, sources: int) -> list[tuple[int, str]] | None:
    """The files of a source in a micro-batch, each with its time in milliseconds and its address, in the order in which
    Spark orders their rows. None if Spark's files do not have all of them. ``sources``: the number of sources."""
    lines = _offsets(folder, batch)
    before = _offsets(folder, batch - 1) if batch else [None] * len(lines)
    if not len(lines) == len(before) == sources + 1:
        return None
    first, last = _entry(before, source) + 1, _entry(lines, source)
    there = folder / "sources" / str(source)
    found = []
    for number in range(first, last + 1):
        path = there / str(number)
        if not path.exists():
            path = there / f"{number}.compact"
        own = [one for one in _lines(path, whole=True, having=f'"batchId":{number}}}') if one.get("batchId") == number]
        if not own:
            return None
        found += [(int(one["timestamp"]), str(one["path"])) for one in own]
    return sorted(found)


def paths_of_batch(folder: Path, batch: int, source: int, sources: int) -> list[str] | None:
    """The paths of the files of a source in a micro-batch; None if they are not known, or not on this machine."""
    listed = files_of_batch(folder, batch, source, sources)
    if listed is None or any(urlsplit(address).scheme not in ("", "file") for _, address in listed):
        return None
    return [_local(address) for _, address in listed]


def waiting(spark: Path, source: int, table: TableSpec) -> int | None:
    """Files in the source's folder that are in no planned micro-batch; None if the folder cannot be listed."""
    options = {name.lower(): value for name, value in table.options.items()}
    path = options.get("path", "")
    special = {"cleansource", "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"}
    if not path or "://" in path or any(char in path for char in "*?[{") or special & set(options):
        return None
    last = _last(spark / "sources" / str(source))
    known = {_local(entry["path"]) for entry in _files(spark, source, 0, last) if "path" in entry}
    try:
        return sum(
            one.is_file() and one.name[0] not in "._" and str(one) not in known for one in Path(path).iterdir()
        )
    except OSError:
        return None


def _offsets(folder: Path, batch: int) -> list[Any]:
    """The offsets of a micro-batch: its own numbers, then a position per source."""
    try:
        lines = read_regular(folder / "offsets" / str(batch)).decode().splitlines()[1:]
        return [None if line in ("", "-") else json_of(line) for line in lines]
    except (OSError, ValueError):
        return []


def _entry(lines: list[Any], source: int) -> int:
    """The last applied entry of a source's log; -1 if there is none, or if it is not a file source."""
    found = lines[source + 1] if source + 1 < len(lines) else None
    return int(found.get("logOffset", -1)) if isinstance(found, dict) else -1


def _last(folder: Path) -> int:
    """The number of the last entry of a log."""
    return max((int(one.name.partition(".")[0]) for one in folder.glob("[0-9]*")), default=-1)


def _files(spark: Path, source: int, first: int, last: int) -> Iterator[dict[str, Any]]:
    """The files of the entries of a source's log from ``first`` to ``last``."""
    folder = spark / "sources" / str(source)
    for number in range(last, first - 1, -1):
        compact = folder / f"{number}.compact"
        if compact.exists():
            yield from (one for one in _lines(compact, whole=first == 0) if first <= one.get("batchId", -1) <= last)
            return
        yield from _lines(folder / str(number), whole=True)


def _lines(path: Path, whole: bool, having: str = "") -> Iterator[dict[str, Any]]:
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            start = 0 if whole else max(0, size - _TAIL)
            file.seek(start)
            lines = file.read().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        if having.encode() not in line:
            continue
        try:
            found = json_of(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _local(address: str) -> str:
    return unquote(urlsplit(address).path)
