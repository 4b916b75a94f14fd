"""Starts the processes that answer SELECTs, gives each SELECT to one of them, and ends them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import count
from threading import BoundedSemaphore, Lock
from typing import Protocol

import pyarrow as pa

from freshviews import errors
from freshviews.asking.apart.channel import Channel, Given, Late, Lost, Relations, Told, file_of_tables, tables_in
from freshviews.asking.apart.child import TOO_MUCH
from freshviews.asking.parameters import Parameters
from freshviews.asking.question import Question
from freshviews.asking.relations import Asked, Names
from freshviews.asking.running import Limits
from freshviews.errors import FreshviewsError, OutOfMemory
from freshviews.records import dataclass

MEMORY = 2 << 30
"""Most bytes of memory of a process, besides the relations that it reads."""
PROCESSES = 2
"""SELECTs that are answered at a time."""
KEPT_BYTES = 256 << 20
"""Most bytes of columns that a process keeps for later SELECTs."""
_START_SECONDS = 60.0
_EXIT_SECONDS = 1.0
_SLACK = 1 << 20
_START = """
import json, socket, sys
sys.path[:] = json.loads(sys.argv[1])
from freshviews.asking.apart.child import serve
serve(socket.socket(fileno=0), int(sys.argv[2]))
"""

Reads = Sequence[tuple[str, str, Sequence[str]]]
"""The name in the SELECT, the relation and the columns of what a SELECT reads."""


@dataclass(frozen=True)
class Reading:
    """The columns that a SELECT reads, by the name in the SELECT; the key of a table changes when its rows do."""

    version: int
    tables: Mapping[str, tuple[object, pa.Table]]


class Source(Protocol):
    """The relations that a SELECT reads. What its methods raise is raised for the SELECT."""

    def relations(self, names: Names) -> Relations:
        """Return the relations and functions of these names now, as ``relations_named`` does."""

    def read(self, names: Names, asked: Asked, reads: Reads) -> Reading | None:
        """Columns at one version; None if the names are those of other relations by now."""


class SelectProcesses:
    """Processes that answer SELECTs, the first from ``start`` on, the others when needed."""

    def __init__(self, most: int = PROCESSES, memory: int = MEMORY) -> None:
        """``most``: processes, so SELECTs at a time. ``memory``: most bytes of memory of each."""
        self._most, self._memory = most, memory
        self._free = BoundedSemaphore(most)
        self._changing = Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._is_closed = False

    def start(self) -> None:
        """Start a process, which is ready by the first question."""
        with self._changing:
            if not self._idle and not self._busy and not self._is_closed:
                with suppress(OSError):
                    self._idle.append(_Process(self._memory))

    def close(self) -> None:
        """End all processes; a SELECT that runs is stopped. May be called twice."""
        with self._changing:
            self._is_closed = True
            ended = [*self._idle, *self._busy]
            self._idle.clear()
        for process in ended:
            process.end()

    def answer(
        self, question: str | Question, parameters: Parameters, source: Source, limits: Limits
    ) -> tuple[pa.Table, int]:
        """The rows of a SELECT, given as text or as a tree, and their version.

        Raises FreshviewsError as ``asking.run``, and where ``limits`` or the memory do not suffice.
        """
        with self._process(limits) as process:
            return process.answer(question, parameters, source, limits)

    @contextmanager
    def _process(self, limits: Limits) -> Iterator[_Process]:
        """A process that nobody else uses. If it ends meanwhile, another one is started."""
        if not self._free.acquire(timeout=limits.seconds):
            others = "another SELECT is" if self._most == 1 else f"{self._most} other SELECTs are"
            raise FreshviewsError(f"{others} being answered; try again later")
        try:
            with self._changing:
                if self._is_closed:
                    raise FreshviewsError("the server is closed")
                process = self._idle.pop() if self._idle else None
                if process is None or not process.is_alive:
                    try:
                        process = _Process(self._memory)
                    except OSError as error:
                        raise FreshviewsError(f"no process can be started for a SELECT: {error.strerror}") from None
                self._busy.add(process)
            try:
                yield process
            finally:
                with self._changing:
                    self._busy.remove(process)
                    if process.is_alive and not self._is_closed:
                        self._idle.append(process)
                self.start()
        finally:
            self._free.release()


@dataclass
class _Kept:
    """Columns of a relation that a process keeps: the number and the bytes of each."""

    key: object
    columns: dict[str, tuple[int, int]] = field(default_factory=dict)


class _Process:
    """A process and its connection. ``_waits``: for the next question. ``_kept``: what it keeps by relation, in the
    order of use."""

    def __init__(self, memory: int) -> None:
        """Raises OSError if it cannot be started."""
        here, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path), str(memory)],
                stdin=there.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
                start_new_session=True,
            )
        self._memory = memory
        self._channel = Channel(here)
        self._is_ready = self._waits = False
        self._unused = count()
        self._kept: dict[str, _Kept] = {}
        self._told = Told()
        self.end = weakref.finalize(self, _end, self._process, here)
        self.end.atexit = False  # The process sees the end of its parent; in a forked child it is another's.

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and bool(self.end.alive)

    def answer(
        self, question: str | Question, parameters: Parameters, source: Source, limits: Limits
    ) -> tuple[pa.Table, int]:
        """As ``SelectProcesses.answer``."""
        content = pickle.dumps((question, parameters, limits.size))
        until = None
        try:
            if not self._is_ready:
                self._channel.receive(time.monotonic() + _START_SECONDS)
                self._is_ready = True
            until = None if limits.seconds is None else time.monotonic() + limits.seconds
            self._waits = False
            self._channel.send(content, until=until)
            return self._answered(source, until, limits.size)
        except Late:
            if until is None:
                raise FreshviewsError("the process for a SELECT does not start; try again later") from None
            raise FreshviewsError(
                f"the SELECT took more than {limits.seconds:g} s and was stopped; read fewer rows, or simplify the "
                "SELECT"
            ) from None
        except Lost:
            raise self._loss() from None
        finally:
            if not self._waits:
                self.end()

    def _loss(self) -> FreshviewsError:
        """Why the process ended in the middle of a SELECT, by its exit status.

        Where memory runs out at the limit, the process aborts by itself. A signal from outside is that of a user, or
        SIGKILL of a system that lacks memory.
        """
        if not self.end.alive:
            return FreshviewsError("the server is closed")
        status = None
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_EXIT_SECONDS)
        if status == -signal.SIGKILL:
            return FreshviewsError(
                "the process of the SELECT was killed from outside (SIGKILL), by the system where memory ran out "
                "or by a user; ask again, or read fewer rows"
            )
        if status in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP):
            return FreshviewsError(
                f"the process of the SELECT was ended from outside ({signal.Signals(-status).name}); ask again"
            )
        return OutOfMemory(f"the process of the SELECT ended: {TOO_MUCH.format(self._memory >> 20)}")

    def _answered(self, source: Source, until: float | None, size: int | None) -> tuple[pa.Table, int]:
        """Answer what the process asks, until it has sent the rows."""
        version = 0
        while True:
            content, file = self._channel.receive(until)
            kind, *message = json.loads(content)
            if kind == "error":
                # The memory that it has left may be in small pieces.
                self._waits = message[0] != OutOfMemory.__name__
                raise _error(*message)
            if kind == "rows":
                rows = _rows(file, size)
                self._waits = True
                return rows, version
            (tables, calls), reads = message
            names = tuple(tables), tuple(calls)
            began = time.monotonic()
            try:
                known = self._told.get(names)
                found = None if reads is None or known is None else source.read(names, known, reads)
                relations = source.relations(names) if found is None else Asked()
            except Exception:
                self._channel.send(pickle.dumps(None), until=until)
                self._waits = True
                raise
            if until is not None:
                until += time.monotonic() - began  # Reading is no work of the SELECT.
            if found is None:
                self._told.tell(names, relations)
                self._channel.send(pickle.dumps(relations), until=until)
            else:
                version = found.version
                self._give(found, reads, until)

    def _give(self, found: Reading, reads: Reads, until: float | None) -> None:
        """Send the columns that the process lacks, and let it forget the oldest and those of other versions."""
        forgotten: list[int] = []
        sent: list[list[int]] = []
        tables: list[pa.Table] = []
        numbers: dict[str, list[int]] = {}
        for name, relation, columns in reads:
            key, table = found.tables[name]
            kept = self._kept.pop(relation, None)
            if kept is None or kept.key != key:
                forgotten += _numbers(kept)
                kept = _Kept(key)
            self._kept[relation] = kept
            lacking = [column for column in columns if column not in kept.columns]
            if lacking:
                sent.append([next(self._unused) for _ in lacking])
                tables.append(table.select(lacking))
                for column, number in zip(lacking, sent[-1], strict=True):
                    kept.columns[column] = number, table.column(column).nbytes
            numbers[name] = [kept.columns[column][0] for column in columns]
        while sum(size for kept in self._kept.values() for _, size in kept.columns.values()) > KEPT_BYTES:
            forgotten += _numbers(self._kept.pop(next(iter(self._kept))))
        content = pickle.dumps(Given(numbers, sent, forgotten))
        self._channel.send(content, file_of_tables(tables) if tables else None, until)


def _end(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    process.kill()
    process.wait()
    connection.close()


def _rows(file: int | None, size: int | None) -> pa.Table:
    """The rows of an answer. Raises Lost if there are more than the process may send."""
    if file is None:
        raise Lost
    if size is not None and os.fstat(file).st_size > 2 * size + _SLACK:
        os.close(file)
        raise Lost
    return tables_in(file, 1)[0]


def _numbers(kept: _Kept | None) -> list[int]:
    return [] if kept is None else [number for number, _ in kept.columns.values()]


def _error(kind: str, message: str, places: Mapping[str, int]) -> FreshviewsError:
    """An error of the child."""
    known = getattr(errors, kind, None)
    if not kind or not isinstance(known, type) or not issubclass(known, FreshviewsError):
        return FreshviewsError(f"the SELECT cannot be answered: an error inside freshviews: {message}")
    made = known(message)
    vars(made).update(places)
    return made
