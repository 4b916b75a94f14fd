"""Functions that run as plain Python while another process compiles them.

A first view has 80 to 110 functions, and compiling them takes seconds. So a call of a function that is not compiled can
run its Python body, over the same memory (``kernel.memory.mem``); meanwhile another process compiles the function into
the cache on disk. When it is there, the next call loads it. There is nothing to change over: all state is words in
memory, and both forms of a function read and write the same words.

Plain Python takes some hundred times as long. So a function runs that way only for a database (``work_for``) that has
taken in few rows so far, for a batch of few rows, and until a call has taken long; else it waits for the compiler.

If this process ends before, the other one goes on for a minute at most: the next process finds more in the cache.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

from freshviews.kernel.machine.cache import GENERATED, cache_folder, load_generated
from freshviews.kernel.machine.functions import Function, MachineCode, compiler
from freshviews.kernel.machine.native import loaded

FEW_ROWS = 1_000
"""Rows of a batch up to which its functions may run as plain Python."""

LITTLE = 10_000
"""Rows that a database has taken in up to which its functions may run as plain Python."""

_TOO_LONG = 1.0
"""Seconds of one call as plain Python after which its database waits for the compiler."""

_SENT = 32
"""Most orders that are sent and not answered: they fit into the pipe, whatever their signatures."""

_LONGER = 60
"""Seconds that the other process goes on after the one that asked it has ended."""

_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from freshviews.kernel.machine.beside import serve
serve(int(sys.argv[2]))
"""


@dataclass
class Taken:
    """How many rows a database has taken in."""

    rows: int = 0


class _Thread(threading.local):
    """``taken``: the rows of the database that this thread works for. ``waits`` counts the blocks of ``compiled`` that
    it is in, or takes many rows in. ``plain``: it runs a function as plain Python."""

    taken: Taken | None = None
    waits = 0
    plain = False


_thread = _Thread()


def work_for(taken: Taken) -> None:
    """Let functions that this thread calls from now on run as plain Python, until these are many rows."""
    _thread.taken = taken


@contextmanager
def take_in(taken: Taken, rows: int) -> Iterator[None]:
    """Work for a database, and take rows in: within this block functions are compiled before they run, if the rows are
    more than a few."""
    _thread.taken = taken
    taken.rows += rows
    _thread.waits += rows > FEW_ROWS
    try:
        yield
    finally:
        _thread.waits -= rows > FEW_ROWS


@contextmanager
def compiled() -> Iterator[None]:
    """Within this block functions are compiled before they run."""
    _thread.waits += 1
    try:
        yield
    finally:
        _thread.waits -= 1


def wait_always() -> None:
    """Compile every function of this process before it runs."""
    global _switched_on
    _switched_on = False


def may_stand_in() -> bool:
    """Whether a function that this thread calls now, and that is not compiled, runs as plain Python."""
    taken = _thread.taken
    return _switched_on and taken is not None and not _thread.waits and taken.rows <= LITTLE


def called_first(function: Function, kinds: str) -> Callable[..., Any]:
    """What a call runs, with arguments of some kinds, of a function that may have no machine code for them yet."""
    known = function.made.get(kinds)
    if known is not None:
        return known.call
    if _thread.plain:
        return function.body
    made = machine_code(function, kinds)
    return partial(_run_plain, function.body) if made is None else made.call


def _run_plain(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a Python body. As in compiled code, Ctrl-C comes before it or after it: no words are left half written."""
    with _undisturbed():
        _thread.plain, start = True, time.monotonic()
        try:
            return function(*arguments)
        finally:
            _thread.plain = False
            if _thread.taken is not None and time.monotonic() - start > _TOO_LONG:
                _thread.taken.rows = LITTLE + 1


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A block that SIGINT does not end: the handler is called behind it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    put_off: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: put_off.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if put_off:
            before(*put_off[-1])


def machine_code(function: Function, kinds: str) -> MachineCode | None:
    """The machine code of a function. None where plain Python may run first: it is ordered."""
    known = function.made.get(kinds)
    if known is not None:
        return known
    if may_stand_in():
        return _compiler.made(function, kinds)
    _compiler.finish()
    return _made_here(function, kinds)


def ordered(function: Function, kinds: str) -> MachineCode | None:
    """The machine code of a function, for work that can wait for it. None until the other process has compiled it."""
    return function.made.get(kinds) or _compiler.made(function, kinds)


def _made_here(function: Function, kinds: str) -> MachineCode:
    """The machine code of a function, compiled in this process if it is not stored."""
    with _undisturbed():
        made = loaded(function, kinds)
        if made is None:
            compiler().compile_and_store(function, kinds)
            made = loaded(function, kinds)
        assert made is not None, f"{function} is compiled, and is not in {cache_folder()}"
        return made


class _Compiler:
    """The process beside this one, and what it was asked for: functions with their signatures, in order."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ordered: deque[tuple[Function, str]] = deque()
        self._sent = 0
        self._waiting: set[tuple[Function, str]] = set()
        self._given_up: set[tuple[Function, str]] = set()
        self._works = bool(sys.executable)

    def forget(self) -> None:
        """In the child of a fork: the process belongs to the parent."""
        if self._process is not None:
            self._close(self._process)
        self.__init__()  # type: ignore[misc]

    def made(self, function: Function, kinds: str) -> MachineCode | None:
        """The machine code if it is in the cache, else None, after ordering it."""
        with self._lock:
            if (function, kinds) in self._waiting and not self._answers(0):
                return None
        with self._lock, _undisturbed():
            self._take(wait=False)
            if (function, kinds) in self._waiting:
                return None
            made = loaded(function, kinds)
            if made is None and ((function, kinds) in self._given_up or not self._order(function, kinds)):
                return _made_here(function, kinds)
            return made

    def finish(self) -> None:
        """Wait for all that was ordered."""
        if self._ordered:
            with self._lock, _undisturbed():
                while self._ordered:
                    self._take(wait=True)

    def _order(self, function: Function, kinds: str) -> bool:
        """Ask for a function; False where no process can be had, or one has ended before it answered."""
        if not self._works:
            return False
        if self._process is None:
            try:
                self._process = _started()
            except OSError:
                self._works = False
                return False
        self._ordered.append((function, kinds))
        self._waiting.add((function, kinds))
        self._send()
        return True

    def _send(self) -> None:
        """Write orders to the process, no more than its pipe has room for: a write must not wait for a compiler."""
        assert self._process is not None and self._process.stdin is not None
        with suppress(OSError):  # If it has ended, no answer comes.
            while self._sent < min(len(self._ordered), _SENT):
                function, kinds = self._ordered[self._sent]
                order = (function.__module__, function.__qualname__, kinds)
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()
                self._sent += 1

    def _take(self, wait: bool) -> None:
        """Load what the process has compiled by now; ``wait`` for at least one."""
        if self._process is None:
            return
        assert self._process.stdout is not None
        while self._ordered and self._answers(None if wait else 0):
            answers = os.read(self._process.stdout.fileno(), 1 << 12)
            # If it has ended, all that is left is compiled here, as is what it could not compile.
            self._works = bool(answers)
            for _ in answers or list(self._ordered):
                ordered = self._ordered.popleft()
                self._sent -= 1
                self._waiting.discard(ordered)
                if loaded(*ordered) is None:
                    self._given_up.add(ordered)
            if answers:
                self._send()
            wait = False
        if not self._ordered:
            self._end()

    def _answers(self, seconds: float | None) -> bool:
        """Whether the process has answered, or ended, after these seconds at most; None: wait for it."""
        assert self._process is not None and self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def _end(self) -> None:
        """Let the process end when it has done what it was asked for."""
        if self._process is not None:
            self._close(self._process)
            _ended.append(self._process)
            self._process, self._sent = None, 0
        _ended[:] = [process for process in _ended if process.poll() is None]

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()


def _started() -> subprocess.Popen[bytes]:
    """A process that compiles what is written to its input. It outlives a signal to this one."""
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "FRESHVIEWS_CACHE_DIR": str(cache_folder().parent)},
        start_new_session=True,
    )


def serve(asking: int) -> None:
    """Compile what the input names, and write one byte for each, in order, whether it worked or not. ``asking``: the
    number of the process that asks."""
    threading.Thread(target=_end_after, args=(asking,), daemon=True).start()
    for line in sys.stdin.buffer:
        module, name, kinds = json.loads(line)
        with suppress(Exception):  # The process that asked compiles it then itself, and has the error.
            compiler().compile_and_store(_found(module, name), kinds)
        with suppress(BrokenPipeError):
            os.write(1, b".")


def _end_after(asking: int) -> None:
    """End this process, whatever it compiles, a minute after the one that asked it. A large function takes longer than
    that, and gigabytes of memory. The cache is whole at any moment: Numba renames what it has written."""
    while os.getppid() == asking:
        time.sleep(1)
    time.sleep(_LONGER)
    os._exit(0)


def _found(module: str, name: str) -> Function:
    """A kernel or a generated function."""
    if module.startswith(GENERATED):
        found: Function = getattr(load_generated(module.removeprefix(GENERATED)), name)
    else:
        found = getattr(importlib.import_module(module), name)
    return found


_switched_on = os.environ.get("FRESHVIEWS_COMPILE", "beside") != "ahead" and os.name == "posix"
_compiler = _Compiler()
_ended: list[subprocess.Popen[bytes]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compiler.forget)
