"""Memory that is left: rows are refused before the machine swaps, or before the container of the process is killed.

A batch that runs out of memory while views change costs a backfill, and cannot be taken back where the rows of a table
are not stored. So a commit looks first, at most every ``EVERY`` seconds unless the batch is large: what is free on the
machine and in each control group of the process, as Linux counts it. Rows that only delete are always taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from freshviews.errors import OutOfMemory

EVERY = 0.02
"""Seconds between two looks: in these no more than some 50 MB are filled."""
ROW = 100
"""Bytes that a row of a batch takes at least, in its table and in views."""
LARGE = 10_000
"""Rows of a batch before which there is a look in any case."""
SPARED = 0.05
"""The part of memory that is left to others."""
MOST_SPARED = 2 << 30
GROWTH = 0.35
"""What the slots of all hash tables take at most when they double, as a part of what tables and views hold."""

_ROOT = Path("/")


@dataclass(frozen=True)
class Limit:
    """What can be filled: ``total`` bytes in all, of which ``left()`` are left."""

    what: str
    total: int
    left: Callable[[], int]

    @property
    def spared(self) -> int:
        """Bytes that have to stay free."""
        return min(int(self.total * SPARED), MOST_SPARED)


class Room:
    """Whether a database may take more rows. ``held``: the bytes of each of its tables and views, and of its strings.

    ``limit``: bytes that these may have together, None where the machine alone sets the limit.
    """

    def __init__(self, held: Callable[[], Mapping[str, int]], limit: int | None) -> None:
        own = [] if limit is None else [Limit("memory_limit", limit, lambda: limit - sum(held().values()))]
        self._held = held
        self._own = own
        self._limits: list[Limit] | None = None
        self._next = 0.0

    def lacking(self, rows: int = 0) -> str | None:
        """Why that many rows cannot be taken; None if they can."""
        now = time.perf_counter()
        if now < self._next and rows < LARGE:
            return None
        if self._limits is None:
            self._limits = [*self._own, *limits_of_process(_ROOT)]
        held = self._held()
        growth = int(GROWTH * sum(held.values()))
        for limit in self._limits:
            left, free = limit.left(), 0 if limit in self._own else limit.spared + growth
            if left - ROW * rows < free:
                self._next = 0.0
                return _reason(limit, left, free, held)
        self._next = now + EVERY
        return None

    def check(self, what: str, rows: int = 0) -> None:
        """Raises OutOfMemory where that many rows cannot be taken; ``what`` says what is refused."""
        reason = self.lacking(rows)
        if reason is not None:
            raise OutOfMemory(f"{reason}; {what}. Delete rows, drop a view, or give it more memory")


def _reason(limit: Limit, left: int, free: int, held: Mapping[str, int]) -> str:
    largest = sorted(held.items(), key=lambda one: -one[1])
    shown = ", ".join(f"{name} {_size(size)}" for name, size in largest[:3] if size)
    rest = f", and {_size(free)} have to stay free" if free else ""
    return (
        f"memory: of {_size(limit.total)} ({limit.what}) {_size(max(left, 0))} are left{rest}; "
        f"the database has {_size(sum(held.values()))}" + (f" ({shown})" if shown else "")
    )


def limits_of_process(root: Path) -> list[Limit]:
    """The limits of the machine and of the control groups of this process; none where there is no /proc. ``root``: the
    folder with ``proc`` and ``sys``."""
    machine = root / "proc/meminfo"
    total = _number(machine, "MemTotal:")
    if total is None:
        return []

    def free() -> int:
        return (_number(machine, "MemAvailable:") or 0) << 10

    return [Limit("the machine", total << 10, free), *_groups(root, total << 10)]


def _groups(root: Path, total: int) -> Iterator[Limit]:
    """The control groups with less memory than the machine, the group of this process and those above it."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if number == "0":
            mounted, files = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            mounted = root / "sys/fs/cgroup/memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        steps = [part for part in place.split("/") if part]
        # Inside of a container the group may be mounted as the root, whatever it is called outside.
        for depth in range(len(steps), -1, -1):
            group = mounted.joinpath(*steps[:depth])
            limit = _number(group / files[0])
            if limit is not None and limit < total:
                yield Limit("its control group", limit, _left(group, limit, *files[1:]))


def _left(group: Path, limit: int, usage: str, reclaimed: str) -> Callable[[], int]:
    def left() -> int:
        """Pages of files that are not in use are given up before a process is killed."""
        return limit - (_number(group / usage) or 0) + (_number(group / "memory.stat", reclaimed) or 0)

    return left


def _number(path: Path, name: str | None = None) -> int | None:
    """The number of a file, or of the line of it that begins with a name; None if there is none."""
    for line in _read(path).splitlines():
        words = line.split()
        if name is not None and words[:1] == [name]:
            words = words[1:]
        elif name is not None:
            continue
        return int(words[0]) if words and words[0].isdecimal() else None
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _size(size: int) -> str:
    """Bytes for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
