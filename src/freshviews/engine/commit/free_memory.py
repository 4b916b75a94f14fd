"""Memory that is left: rows are refused before the machine swaps, or before the container of the process is killed.

A commit that runs out of memory while views change costs a backfill, and cannot be taken back where the rows of a table
are not stored. Besides, Linux grants memory that it does not have, and then kills a process. So a commit looks first at
what is left on the machine and in each control group of the process.

**What has to be left.** The rows themselves; what the hash tables take when they all double at once; and something for
others. A database that holds little is never the reason why memory is full, so this goes by what the database holds.

**When it looks.** The more is left, the longer it takes to fill it; until then nothing is read. Where Linux does not
say what is left, nothing is refused.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from freshviews.engine.relations import Relation
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import OutOfMemory
from freshviews.types.dictionary import Dictionary

ROW = 100
"""Bytes that a row of a batch takes, in the batch, in its table and in views."""
GROWTH = 0.35
"""What all hash tables take more when they double, as a part of what the database holds."""
SPARED = 0.05
"""The part of memory that is left to others."""
MOST_SPARED = 2 << 30
FASTEST = 2 << 30
"""Bytes that a machine can fill in a second."""
SHORTEST, LONGEST = 0.02, 1.0
"""Seconds between two looks."""

LARGEST = 1 << 16
"""Bytes of a file of Linux that are read; memory.stat has some thousand."""

_ROOT = Path("/")

Sizes = Mapping[str, int]
"""Bytes by what holds them."""


class FreeMemory:
    """Whether a database may take more rows. ``spared``: bytes that stay free; None chooses; 0: never look."""

    def __init__(self, spared: int | None) -> None:
        self._spared = spared
        self._next = 0.0
        self._slack = 0

    def lacking(self, rows: int, held: Callable[[], Sizes]) -> str | None:
        """Why so many rows more cannot be held; None if they can. ``held``: what the database holds."""
        if self._spared == 0 or (time.perf_counter() < self._next and rows * ROW <= self._slack):
            return None
        return self._look(rows * ROW, held())

    def check(self, rows: int, held: Callable[[], Sizes], what: str) -> None:
        """Raises OutOfMemory where so many rows more cannot be held; ``what`` says what is refused."""
        reason = self.lacking(rows, held)
        if reason is not None:
            raise beyond(reason, what)

    def _look(self, more: int, held: Sizes) -> str | None:
        everything = sum(held.values())
        slack = sys.maxsize
        for limit in limits_of_process(_ROOT):
            spared = min(int(SPARED * limit.total), MOST_SPARED, everything) if self._spared is None else self._spared
            free = spared + int(GROWTH * everything)
            slack = min(slack, limit.left - more - free)
            if slack < 0:
                self._next = 0.0
                return _reason(limit, free, held)
        self._slack = slack // 2
        # After the look, so that a slow one does not make every commit look.
        self._next = time.perf_counter() + min(max(slack / FASTEST, SHORTEST), LONGEST)
        return None


def beyond(reason: str, what: str) -> OutOfMemory:
    """The error of what lacks memory; ``what`` says what is refused."""
    return OutOfMemory(f"{reason}; {what}. Delete rows, drop a view, or give it more memory")


def held_by(relations: Iterable[Relation], dictionary: Dictionary) -> Sizes:
    """The bytes of tables, of views with their internal ones, and of the strings."""
    found = {"strings": dictionary.bytes}
    for one in relations:
        if isinstance(one, TableState):
            name, size = f"table {one.name}", one.bytes
        else:
            name, size = f"view {one.name.split('#')[0]}", one.maintained.bytes()
        found[name] = found.get(name, 0) + size
    return found


@dataclass(frozen=True)
class Limit:
    """What can be filled: ``total`` bytes, of which ``left`` are left."""

    what: str
    total: int
    left: int


def limits_of_process(root: Path) -> list[Limit]:
    """The machine and the control groups of this process, as far as Linux tells. ``root``: the folder that has ``proc``
    and ``sys``."""
    machine = _numbers(root / "proc/meminfo")
    total, left = machine.get("MemTotal:"), machine.get("MemAvailable:")
    if total is None or left is None:
        return []
    return [Limit("the machine", total << 10, left << 10), *_groups(root, total << 10)]


@dataclass(frozen=True)
class _Files:
    """What a version of control groups calls its files, and in ``memory.stat`` what it can take back."""

    limits: tuple[str, ...]
    used: str
    reclaimed: tuple[str, ...]


_FIRST = _Files(("memory.limit_in_bytes",), "memory.usage_in_bytes", ("total_inactive_file", "total_active_file"))
_SECOND = _Files(("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file", "slab_reclaimable"))


def _groups(root: Path, total: int) -> Iterator[Limit]:
    """The control groups with less memory than the machine: the group of this process and those above it."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if number == "0":
            mounted, files = root / "sys/fs/cgroup", _SECOND
        elif "memory" in kinds.split(","):
            mounted, files = root / "sys/fs/cgroup/memory", _FIRST
        else:
            continue
        steps = [part for part in place.split("/") if part]
        # In a container the group may be mounted as the root, whatever it is called outside.
        for depth in range(len(steps), -1, -1):
            group = mounted.joinpath(*steps[:depth])
            limits = [found for found in (_read(group / name) for name in files.limits) if found.isdecimal()]
            limit = min(map(int, limits), default=total)
            used = _read(group / files.used)
            if limit < total and used.isdecimal():
                reclaimed = _numbers(group / "memory.stat")
                free = limit - int(used) + sum(reclaimed.get(name, 0) for name in files.reclaimed)
                yield Limit("its control group", limit, free)


def _numbers(path: Path) -> dict[str, int]:
    """The lines of a file that have a name and a number."""
    lines = (line.split() for line in _read(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}


def _read(path: Path) -> str:
    """The text of a small file, without spaces around it; "" if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, LARGEST).decode().strip()
    except OSError:
        return ""
    finally:
        os.close(file)


def _reason(limit: Limit, free: int, held: Sizes) -> str:
    largest = sorted(held.items(), key=lambda one: -one[1])
    shown = ", ".join(f"{name} {_size(size)}" for name, size in largest[:3] if size)
    return (
        f"memory: of {_size(limit.total)} ({limit.what}) {_size(max(limit.left, 0))} are left, and {_size(free)} have "
        f"to stay free; the database holds {_size(sum(held.values()))}" + (f" ({shown})" if shown else "")
    )


def _size(size: int) -> str:
    """Bytes for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
