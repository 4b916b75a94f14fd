"""Refuses rows before the free memory of the machine runs out, so that Linux neither swaps nor kills the process.

The need of a batch is estimated. So a batch that is accepted may still need more memory than is left.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from freshviews.engine.relations import Relation
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import OutOfMemory
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary

ROW = 100
"""Least bytes of a row, in its batch, in its table and in views."""
WIDE = 1000
"""Bytes that are enough for most rows."""
WIDEST = 10_000
"""Most bytes assumed for a row."""
KNOWN = 10_000
"""Rows from which on the average size of a row counts."""
GROWTH = 0.35
"""Additional memory of all hash tables when they double, as a share of the database."""
SPARED = 0.05
"""The share of memory that is left to others."""
MOST_SPARED = 2 << 30
FASTEST = 2 << 30
"""Bytes that a machine can fill in a second."""
SHORTEST, LONGEST = 0.02, 1.0
"""Seconds between two looks."""
LARGEST = 1 << 16
"""Most bytes read of a file of Linux; memory.stat has a few thousand."""
VARIABLE = "FRESHVIEWS_SPARE_MEMORY"
"""The environment variable that sets the default of ``Database(spare_memory=...)``."""

_ROOT = Path("/")


@dataclass(frozen=True)
class Held:
    """The size of a database: bytes by name, rows by stored table, and the number of rows that trusted tables had."""

    sizes: Mapping[str, int]
    rows: Mapping[str, int]
    trusted: int

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def bytes_of_row(self) -> int:
        """Bytes per row, views included."""
        rows = sum(self.rows.values()) + self.trusted
        return min(max(ROW, self.bytes // rows), WIDEST) if rows > KNOWN else ROW


def held_by(relations: Collection[Relation], dictionary: Dictionary) -> Held:
    """The sizes of tables, of views with their internal ones, and of the strings."""
    sizes = {"strings": dictionary.bytes}
    rows = rows_by_table(relations)
    trusted = 0
    for one in relations:
        if isinstance(one, TableState):
            name, size = f"table {one.name}", one.bytes
            trusted += one.updates if one.stored is None else 0
        else:
            name, size = f"view {one.name.split('#')[0]}", one.maintained.bytes()
        sizes[name] = sizes.get(name, 0) + size
    return Held(sizes, rows, trusted)


def rows_by_table(relations: Iterable[Relation]) -> dict[str, int]:
    """The rows of each stored table."""
    return {one.name: one.stored.rows for one in relations if isinstance(one, TableState) and one.stored is not None}


class FreeMemory:
    """Decides whether a database may take more rows. ``spared``: bytes that stay free; None: a default; 0: never check.

    Linux grants memory that it does not have, and then kills a process. So a commit first reads how much memory the
    machine and each control group of the process have left. If a commit runs out of memory while views change, the
    views must be backfilled. A backfill is impossible if the rows of a table are not stored.

    **How much must be left.** Enough for the new rows, at the average size of a stored row, views included; enough for
    all hash tables to double at the same time; and a reserve for other uses. The reserve grows with the database.

    **Batches accepted with less.** A batch is accepted if it adds no more rows than it deletes, because new rows take
    the room of deleted rows. It is also accepted if no table gets more rows than it had when memory was first lacking.

    **When it checks.** The more memory is left, the later the next check. The size of the database is computed only if
    more than half of the memory is in use. If Linux does not report free memory, nothing is refused.
    """

    def __init__(self, spared: int | None) -> None:
        self._spared = spared
        self._row = ROW
        self._most: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Check again before the next rows, because memory was freed."""
        self._next = 0.0
        self._slack = -1
        self._reason: str | None = None

    def is_enough(self, rows: int) -> bool:
        """Whether ``rows`` more fit, by the last check alone."""
        return self._spared == 0 or (rows * self._row <= self._slack and time.perf_counter() < self._next)

    def lacking(self, rows: int, held: Callable[[], Held]) -> str | None:
        """Why ``rows`` more do not fit; None if they do. The caller defers interrupts."""
        if self.is_enough(rows):
            return None
        if self._reason is None or time.perf_counter() >= self._next:
            slack, self._reason = self._look(rows, held, 1.0)
            self._slack = slack // 2
            # The time after the check, so that a slow check does not make every commit check.
            self._next = time.perf_counter() + min(max(slack / FASTEST, SHORTEST), LONGEST)
        return self._reason

    def lacking_in_batch(self, rows: int, before: int, held: Callable[[], Held]) -> str | None:
        """As ``lacking``, for rows in an open batch, which has ``before`` rows. Its balance is known at its end, so
        they may use half of the memory that must stay free."""
        if self.lacking(rows, held) is None:
            return None
        _, reason = self._look(rows, held, 0.5, before)
        return reason

    def exceeds(self, added: Mapping[str, int], stored: Mapping[str, int]) -> bool:
        """Whether a table gets more rows than it had when memory was first lacking.

        By table, ``added``: rows added on balance; ``stored``: stored rows, without trusted tables.
        """
        return sum(added.values()) > 0 and any(
            rows > 0 and (name not in stored or stored[name] + rows > self._most.get(name, 0))
            for name, rows in added.items()
        )

    def _look(self, rows: int, held: Callable[[], Held], part: float, before: int = 0) -> tuple[int, str | None]:
        """Bytes left after ``rows`` and the ``part`` of the memory that must stay free; and, if negative, why.
        ``before``: rows of the open batch, which make the reserve larger, as those of tables do."""
        limits = limits_of_process(_ROOT)
        if all(self._most_free(limit) <= limit.left - rows * max(WIDE, self._row) for limit in limits):
            self._most.clear()
            return min((limit.left - self._most_free(limit) for limit in limits), default=sys.maxsize), None
        now = held()
        self._row = now.bytes_of_row
        slack = sys.maxsize
        for limit in limits:
            free = self._free(limit, now.bytes, before * ROW)
            slack = min(slack, int(limit.left - rows * self._row - part * free))
            if slack < 0:
                for name, count in now.rows.items():
                    self._most[name] = max(self._most.get(name, 0), count)
                return slack, _reason(limit, rows * self._row, int(part * free), now.sizes)
        if part == 1.0:
            self._most.clear()
        return slack, None

    def _free(self, limit: Limit, held: int, waiting: int = 0) -> int:
        """Bytes that must stay free for a database of ``held`` bytes, with an open batch of ``waiting`` bytes."""
        spared = min(int(SPARED * limit.total), MOST_SPARED, held + waiting) if self._spared is None else self._spared
        return spared + int(GROWTH * held)

    def _most_free(self, limit: Limit) -> int:
        """As ``_free``, for a database that uses all memory in use."""
        return self._free(limit, limit.total - limit.left)


def lacks_memory(reason: str, what: str) -> OutOfMemory:
    """The error for a lack of memory; ``what`` says what is refused."""
    return OutOfMemory(
        f"{reason}; {what}. Delete rows, drop a view in a script of its own, or give the process more memory"
    )


@dataclass(frozen=True)
class Limit:
    """A limit of memory, in bytes: ``total``, and ``left``."""

    what: str
    total: int
    left: int


def limits_of_process(root: Path) -> list[Limit]:
    """The limits of the machine and of the control groups of this process, as far as Linux reports them. ``root``: the
    folder that has ``proc`` and ``sys``."""
    machine = _numbers(root / "proc/meminfo")
    total, left = machine.get("MemTotal:"), machine.get("MemAvailable:")
    if total is None or left is None:
        return []
    return [Limit("the machine", total << 10, left << 10), *_groups(root, total << 10)]


@dataclass(frozen=True)
class _Files:
    """Names of the files of a version of control groups, and of reclaimable memory in ``memory.stat``."""

    limits: tuple[str, ...]
    used: str
    reclaimed: tuple[str, ...]


_FIRST = _Files(("memory.limit_in_bytes",), "memory.usage_in_bytes", ("total_inactive_file", "total_active_file"))
_SECOND = _Files(("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file", "slab_reclaimable"))


def _groups(root: Path, total: int) -> Iterator[Limit]:
    """The control groups with less memory than the machine, from the group of this process upwards."""
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
        # A container may mount its group as the root, under another name than outside.
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
    """The numbers in a file by name, from lines of a name and a number."""
    lines = (line.split() for line in _read(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}


def _read(path: Path) -> str:
    """The stripped text of a small file; "" if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(file, LARGEST)).strip()
    except OSError:
        return ""
    finally:
        os.close(file)


def _reason(limit: Limit, wanted: int, free: int, held: Mapping[str, int]) -> str:
    largest = sorted(held.items(), key=lambda one: -one[1])
    shown = ", ".join(f"{name} {_size(size)}" for name, size in largest[:3] if size)
    return (
        f"memory: {_size(max(limit.left, 0))} of {_size(limit.total)} ({limit.what}) are left, the rows may take "
        f"{_size(wanted)}, and {_size(free)} must stay free; "
        f"the database holds {_size(sum(held.values()))}" + (f" ({shown})" if shown else "")
    )


def _size(size: int) -> str:
    """A number of bytes as text."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
