"""Runs functions as plain Python while another process compiles them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import FrameType
from typing import Any
from weakref import WeakSet

from freshviews.kernel.machine.cache import GENERATED, cache_folder
from freshviews.kernel.machine.functions import Function, MachineCode, compiler, reached_from
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.kernel.machine.native import is_compiled, loaded
from freshviews.progress import Reporter, Task

FEW_ROWS = 1_000
"""Maximum number of rows of a batch whose functions may run as plain Python."""

LITTLE = 10_000
"""Maximum number of rows of a database whose functions may run as plain Python."""

_TOO_LONG = 1.0
"""Seconds that one function runs as plain Python after which the next calls of its database wait for the compiler."""

_LOOK = 0.1
"""Seconds after which a waiting thread checks again, because another thread may have read the answer."""

_PAUSE = 1.0
"""Seconds between two waits of a thread up to which they are reported as one."""

_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from freshviews.kernel.machine.compiling import serve
serve(int(sys.argv[2]))
"""


@dataclass(eq=False)
class TakenRows:
    """Counts the rows that a database has taken. Its orders stay wanted while this object exists. ``reporter``: where
    the database reports progress. ``version``: one word, the version of the database. ``late``: more rows, to be
    counted from the next call on, because plain Python took long: no call waits in its middle, where it cannot end."""

    rows: int = 0
    late: int = 0
    reporter: Reporter = field(default_factory=Reporter)
    version: memoryview | tuple[int] = (0,)


class _Thread(threading.local):
    """``taken``: the rows of the database that this thread works for. ``waits``: the number of enclosing blocks of
    ``compiled`` and of large batches. ``plain``: the thread is running a function as plain Python. ``wait``: its last
    wait for functions; ``waited``: seconds of all."""

    taken: TakenRows | None = None
    waits = 0
    plain = False
    wait: _Wait | None = None
    waited = 0.0


_thread = _Thread()


def work_for(taken: TakenRows) -> None:
    """Let functions that this thread calls from now on run as plain Python, while the database has few rows.

    Plain Python takes about a hundred times as long as machine code. So functions run as plain Python only while the
    database and the batch have few rows, and no call has taken long (``work_for``). Otherwise a call waits for the
    compiler.
    """
    taken.rows, taken.late = taken.rows + taken.late, 0
    _thread.taken = taken


@contextmanager
def take_in(taken: TakenRows, rows: int) -> Iterator[bool]:
    """A block in which this thread adds rows to a database: if they are many, functions are compiled before they run.
    Rows do not count if an exception ends the block before a version has them. Yields whether an uncompiled function
    waits for the other process."""
    work_for(taken)
    version = taken.version[0]
    taken.rows += rows
    _thread.waits += rows > FEW_ROWS
    try:
        yield _compiler.process is not None and not may_stand_in()
    except BaseException:
        if taken.version[0] == version:
            taken.rows -= rows
        raise
    finally:
        _thread.waits -= rows > FEW_ROWS


@contextmanager
def compiled() -> Iterator[None]:
    """A block in which functions are compiled before they run."""
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
    """Whether an uncompiled function that this thread calls now runs as plain Python."""
    taken = _thread.taken
    return _switched_on and taken is not None and not _thread.waits and taken.rows <= LITTLE


def called_first(function: Function, kinds: str) -> Callable[..., Any]:
    """The code that a call runs, by kinds of arguments, for a function that may not have machine code yet."""
    known = function.made.get(kinds)
    if known is not None:
        return known.call
    if _thread.plain:
        return function.body
    made = machine_code(function, kinds)
    return partial(_run_plain, function.body) if made is None else made.call


def _run_plain(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a Python body. As for compiled code, Ctrl-C takes effect before or after it: no word is half written."""
    with _without_sigint():
        _thread.plain, start = True, time.monotonic()
        try:
            return function(*arguments)
        finally:
            _thread.plain = False
            if _thread.taken is not None and time.monotonic() - start > _TOO_LONG:
                _thread.taken.late = LITTLE + 1


@contextmanager
def _without_sigint() -> Iterator[None]:
    """A block that SIGINT does not interrupt: the handler is called after it."""
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


def reporter() -> Reporter:
    """Where the database that this thread works for reports progress."""
    return _thread.taken.reporter if _thread.taken is not None else _UNASKED


def machine_code(function: Function, kinds: str) -> MachineCode | None:
    """The machine code of a function; None if plain Python may run until the ordered code exists."""
    known = function.made.get(kinds)
    if known is not None:
        return known
    if may_stand_in():
        return _compiler.made(function, kinds)
    with waiting_for([(function, kinds)]):
        _compiler.wait_for(function, kinds)
        return _made_here(function, kinds)


def ordered(function: Function, kinds: str) -> MachineCode | None:
    """The machine code of a function; None until the other process has compiled it.

    Functions for which a call waits are compiled first, all others in the order of requests. Functions that no open
    database needs any more are not compiled. After this process ends, the compiling process continues for at most a
    minute.
    """
    return function.made.get(kinds) or _compiler.made(function, kinds)


@contextmanager
def waiting_for(wanted: Sequence[tuple[Function, str]]) -> Iterator[None]:
    """A block in which this thread needs functions. If it waits for them, they are compiled next, in this order, and
    the wait is reported."""
    if may_stand_in():
        yield
        return
    missing = [one for one in wanted if one[1] not in one[0].made]
    if _compiler.process is not None:
        _compiler.order_first(missing)  # Loads what is compiled meanwhile, too.
    if not missing:
        yield
        return
    wait = _thread.wait
    if wait is None or wait.is_over:
        wait = _thread.wait = _Wait(reporter())
    with wait.for_functions(wanted):
        yield


class _Wait:
    """The functions that a thread waits for, with those that they call, and the task that reports this."""

    def __init__(self, reporter: Reporter) -> None:
        self._wanted: list[Function] = []
        self._left: set[Function] = set()
        self._seen: set[Function] = set()
        self._reporter = reporter
        self._task = Task(reporter, "compile", "", 0)
        self._blocks = 0
        self._ended = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the next wait is another one."""
        return not self._blocks and time.monotonic() - self._ended > _PAUSE

    @contextmanager
    def for_functions(self, wanted: Sequence[tuple[Function, str]]) -> Iterator[None]:
        """A block in which the thread waits for functions, perhaps within another one."""
        self._wanted += [function for function, _ in wanted]
        views = [self._reporter.subject, *(_view_of(function) for function, _ in wanted)]
        named = _listed([*dict.fromkeys(filter(None, views))])
        if named or not self._blocks:
            self._task.name = named
        self._blocks += 1
        start = time.monotonic()
        try:
            with self._task if self._blocks == 1 else nullcontext():
                yield
        finally:
            self._blocks -= 1
            self._ended = time.monotonic()
            if not self._blocks:
                _thread.waited += self._ended - start

    def step(self) -> None:
        """Report how many functions are compiled, if it is time."""
        if not self._blocks or not self._task.is_shown:
            return
        if self._wanted:
            reached = reached_from(self._wanted)
            self._left |= reached - self._seen
            self._seen |= reached
            self._wanted.clear()
            self._task.total = len(self._seen)
        self._left = {function for function in self._left if not is_compiled(function)}
        self._task.step(len(self._seen) - len(self._left))


def waited() -> float:
    """Seconds for which this thread has waited for machine code: it was compiled, or loaded from the cache."""
    return _thread.waited


def report_wait() -> None:
    """Report how far the compiler is, if this thread waits for it and it is time."""
    if _thread.wait is not None:
        _thread.wait.step()


def _view_of(function: Function) -> str:
    """The view for which a function was generated; empty for a kernel."""
    if not function.__module__.startswith(GENERATED):
        return ""
    program = (sys.modules[function.__module__].__doc__ or "").partition(":")[0]
    return program.partition("#")[0]


def _listed(names: Sequence[str]) -> str:
    """Names with commas between, at most three."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def cancel_orders(taken: TakenRows) -> None:
    """Cancel the orders of a database that is closed, except those that another database wants."""
    _compiler.cancel_orders(taken)


def _made_here(function: Function, kinds: str) -> MachineCode:
    """The machine code of a function; compiles it in this process if it is not stored."""
    with _without_sigint():
        made = loaded(function, kinds)
        if made is None:
            compiler().compile_and_store(function, kinds)
            made = loaded(function, kinds)
        assert made is not None, f"{function} was compiled, but is not in {cache_folder()}"
        return made


@dataclass
class _Order:
    """A function to compile. ``wanted_by``: databases; ``kept``: wanted even without a database. ``first``: a call
    waits for it."""

    number: int
    kept: bool = False
    first: bool = False
    wanted_by: WeakSet[TakenRows] = field(default_factory=WeakSet)


class _Compiler:
    """The compiling process and its orders: functions with their signatures, in order."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.process: subprocess.Popen[bytes] | None = None
        self._ordered: dict[tuple[Function, str], _Order] = {}
        self._numbers = count()
        self._unanswered: dict[int, tuple[Function, str]] = {}
        """Orders by number, cancelled ones included, because the process answers all."""
        self._unsent = self._unread = b""
        self._databases: WeakSet[TakenRows] = WeakSet()
        self._known = 0
        """The number of databases when orders were last checked."""
        self._given_up: set[tuple[Function, str]] = set()
        self._works = bool(sys.executable)

    def forget(self) -> None:
        """Call it in the child of a fork, because the process belongs to the parent."""
        if self.process is not None:
            self._close(self.process)
        self.__init__()  # type: ignore[misc]

    def made(self, function: Function, kinds: str) -> MachineCode | None:
        """The machine code if it is in the cache; otherwise orders it and returns None."""
        wanted = function, kinds
        with self._lock:
            if self._is_ordered(wanted) and not self._answers(0):
                return None
        with self._lock, _without_sigint():
            self._load_compiled()
            if self._is_ordered(wanted):
                return None
            made = loaded(function, kinds)
            if made is None and (wanted in self._given_up or not self._order(wanted)):
                return _made_here(function, kinds)
            return made

    def order_first(self, wanted: Iterable[tuple[Function, str]]) -> None:
        """Order functions that are not compiled, ahead of functions for which no call waits."""
        with self._lock, _without_sigint():
            self._load_compiled()
            numbers = []
            for one in wanted:
                if not self._is_ordered(one) and one not in self._given_up and loaded(*one) is None:
                    self._order(one)
                if one not in self._ordered:
                    continue
                order = self._ordered[one]
                if not order.first:
                    order.first = True
                    numbers.append(order.number)
            self._send("first", numbers)

    def wait_for(self, function: Function, kinds: str) -> None:
        """Wait until a function is compiled, or this process must compile it. Ctrl-C ends the wait, but not where a
        view has taken a part of a batch."""
        wanted = function, kinds
        INTERRUPTION.raise_if_allowed()
        if _switched_on or self.process is not None:
            self.order_first([wanted])
            while wanted in self._ordered:
                INTERRUPTION.raise_if_allowed()
                report_wait()
                self._answers(_LOOK)
                with self._lock, _without_sigint():
                    self._load_compiled()

    def cancel_orders(self, taken: TakenRows) -> None:
        """Cancel the orders that only this database wants."""
        with self._lock, _without_sigint():
            for order in self._ordered.values():
                order.wanted_by.discard(taken)
            self._databases.discard(taken)
            self._cancel_unwanted()

    def _is_ordered(self, wanted: tuple[Function, str]) -> bool:
        """Whether a function is ordered; if so, notes that this thread's database wants it."""
        self._cancel_unwanted()
        order = self._ordered.get(wanted)
        if order is not None:
            self._note_wanted(order)
        return order is not None

    def _note_wanted(self, order: _Order) -> None:
        taken = _thread.taken
        if taken is None:
            order.kept = True
            return
        order.wanted_by.add(taken)
        if taken not in self._databases:
            self._databases.add(taken)
            self._known += 1

    def _order(self, wanted: tuple[Function, str]) -> bool:
        """Order a function; returns False if no process can be started, or the process has ended without an answer."""
        if not self._works:
            return False
        if self.process is None:
            try:
                self.process = _start_compiler()
            except OSError:
                self._works = False
                return False
        function, kinds = wanted
        number = next(self._numbers)
        self._ordered[wanted] = _Order(number)
        self._unanswered[number] = wanted
        self._note_wanted(self._ordered[wanted])
        self._send("order", [number, function.__module__, function.__qualname__, kinds])
        return True

    def _cancel_unwanted(self) -> None:
        """Cancel orders that no database wants, if a database was closed."""
        if len(self._databases) == self._known:
            return
        self._known = len(self._databases)
        gone = {one: order.number for one, order in self._ordered.items() if not order.wanted_by and not order.kept}
        for one in gone:
            del self._ordered[one]
        self._send("cancel", [*gone.values()])

    def _send(self, what: str, about: list[Any]) -> None:
        """Write to the process as much as fits its pipe, because a write must not wait for a compiler."""
        if about:
            self._unsent += json.dumps([what, about]).encode() + b"\n"
        if self._unsent and self.process is not None:
            assert self.process.stdin is not None
            with suppress(OSError):  # The pipe is full, or the process has ended and will not answer.
                self._unsent = self._unsent[os.write(self.process.stdin.fileno(), self._unsent) :]

    def _load_compiled(self) -> None:
        """Load the functions that the process has compiled so far."""
        if self.process is None:
            return
        assert self.process.stdout is not None
        self._cancel_unwanted()
        self._send("", [])
        while self._unanswered and self._answers(0):
            answers = os.read(self.process.stdout.fileno(), 1 << 12)
            # This process compiles functions that the other one could not, or left when it ended.
            self._works = bool(answers)
            *lines, self._unread = (self._unread + answers).split(b"\n")
            for number in map(int, lines) if answers else [*self._unanswered]:
                one = self._unanswered.pop(number)
                order = self._ordered.get(one)
                if order is not None and order.number == number:
                    del self._ordered[one]
                    if loaded(*one) is None:
                        self._given_up.add(one)
        if not self._unanswered:
            self._end()

    def _answers(self, seconds: float) -> bool:
        """Whether the process answers, or ends, within these seconds."""
        process = self.process
        if process is None:
            return True
        assert process.stdout is not None
        answers = select.poll()  # select.select takes no file whose number is above 1023.
        try:
            answers.register(process.stdout, select.POLLIN)
        except (OSError, ValueError):  # Another thread has closed it.
            return True
        return bool(answers.poll(1000 * seconds))

    def _end(self) -> None:
        """Let the process end after its present orders."""
        if self.process is not None:
            self._close(self.process)
            _ended.append(self.process)
            self.process, self._unsent, self._unread = None, b"", b""
        _ended[:] = [process for process in _ended if process.poll() is None]

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()


def _start_compiler() -> subprocess.Popen[bytes]:
    """A process that compiles the functions written to its input. A signal to this one does not end it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "FRESHVIEWS_CACHE_DIR": str(cache_folder().parent)},
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    return process


_switched_on = os.environ.get("FRESHVIEWS_COMPILE", "beside") != "ahead" and os.name == "posix"
_compiler = _Compiler()
_UNASKED = Reporter()
_ended: list[subprocess.Popen[bytes]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compiler.forget)
