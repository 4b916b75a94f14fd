"""Orders to the compiling process: their contents, their order, and cancellations."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from freshviews.kernel.machine import beside
from freshviews.kernel.machine.beside import TakenRows, work_for
from freshviews.kernel.machine.compiling import Orders


class Asked:
    """A process that compiles when the test calls ``compile``."""

    def __init__(self) -> None:
        self._input, write = os.pipe()
        os.set_blocking(self._input, False)
        os.set_blocking(write, False)
        self.stdin = os.fdopen(write, "wb", buffering=0)
        read, write = os.pipe()
        self.stdout, self._answers = os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)
        self.answered: list[int] = []
        self.orders = Orders(self.answered.append)

    def poll(self) -> int:
        return 0

    def end(self) -> None:
        self._answers.close()

    def take(self) -> None:
        """Read the orders since the last call."""
        with suppress(BlockingIOError):
            while read := os.read(self._input, 1 << 16):
                self.orders.read(read)

    def queue(self) -> list[str]:
        """Names of the functions that are not compiled, in order."""
        self.take()
        return [order[2] for order in (*self.orders._first.values(), *self.orders._others.values())]

    def first(self) -> list[str]:
        """Names of the functions for which a call waits."""
        self.take()
        return [order[2] for order in self.orders._first.values()]

    def answer(self, number: int) -> None:
        self._answers.write(b"%d\n" % number)

    def compile(self, stored: set[str]) -> str:
        """Compile the next function; its name."""
        self.take()
        order = self.orders.next()
        assert order is not None
        stored.add(order[2])
        self.answer(order[0])
        return str(order[2])


class Named:
    """A function."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name


class Compiling:
    """A process and its compiler; ``here`` are the functions that this process had to compile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.process, self.started = Asked(), 0
        self.stored: set[str] = set()
        self.here: list[str] = []
        self.compiler = beside._Compiler()
        self._functions: dict[str, Any] = {}
        monkeypatch.setattr(beside, "_start_compiler", self._start)
        monkeypatch.setattr(beside, "_compiler", self.compiler)
        monkeypatch.setattr(beside, "loaded", lambda f, kinds: f if f.__qualname__ in self.stored else None)
        monkeypatch.setattr(beside, "_made_here", lambda f, kinds: self.here.append(f.__qualname__))

    def _start(self) -> Any:
        self.started += 1
        return self.process

    def function(self, name: str) -> Any:
        return self._functions.setdefault(name, Named(name))

    def order(self, taken: TakenRows | None, *names: str) -> None:
        """Call functions for a database."""
        if taken is None:
            beside._thread.taken = None
        else:
            work_for(taken)
        for name in names:
            self.compiler.made(self.function(name), "w")

    def wait(self, name: str) -> threading.Thread:
        """A thread that waits for a function, which is ordered first."""
        thread = threading.Thread(target=self.compiler.wait_for, args=(self.function(name), "w"), daemon=True)
        thread.start()
        _until(lambda: name in self.process.first())
        return thread


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiling]:
    yield Compiling(monkeypatch)
    beside._thread.taken = None


def _until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_compilations_that_a_closed_database_requested_are_cancelled(compiling: Compiling) -> None:
    first, second = TakenRows(), TakenRows()
    compiling.order(first, "add", "one")
    compiling.order(second, "add", "two")
    compiling.compiler.cancel_orders(first)
    assert compiling.process.queue() == ["add", "two"]
    compiling.compiler.cancel_orders(second)
    assert compiling.process.queue() == []
    assert compiling.process.answered == [1, 0, 2]


def test_a_garbage_collected_database_counts_as_closed(compiling: Compiling) -> None:
    taken = [TakenRows() for _ in range(700)]
    for number, one in enumerate(taken):
        compiling.order(one, "add", f"on_{number}")
    kept = TakenRows()
    compiling.order(kept, "kept")
    del one
    taken.clear()
    gc.collect()
    compiling.order(kept, "next")
    assert compiling.process.queue() == ["kept", "next"]
    assert compiling.started == 1


def test_compilations_requested_without_a_database_are_not_cancelled(compiling: Compiling) -> None:
    taken = TakenRows()
    compiling.order(taken, "lane", "one")
    compiling.order(None, "lane")
    compiling.compiler.cancel_orders(taken)
    assert compiling.process.queue() == ["lane"]


def test_a_cancelled_compilation_can_be_requested_again(compiling: Compiling) -> None:
    first, second = TakenRows(), TakenRows()
    compiling.order(first, "one", "two")
    compiling.process.take()
    begun = compiling.process.orders.next()
    compiling.compiler.cancel_orders(first)
    compiling.order(second, "one")
    assert begun is not None and begun[2] == "one" and compiling.process.queue() == ["one"]
    compiling.process.answer(begun[0])  # The answer to the cancelled order.
    compiling.order(second, "three")
    assert compiling.compiler._ordered.keys() == {(compiling.function(name), "w") for name in ("one", "three")}


def test_a_function_that_a_call_waits_for_is_compiled_first(compiling: Compiling) -> None:
    taken = TakenRows()
    compiling.order(taken, *(f"f{number}" for number in range(1000)))
    thread = compiling.wait("f700")
    assert compiling.process.queue()[:3] == ["f700", "f0", "f1"]
    assert compiling.process.compile(compiling.stored) == "f700"
    thread.join(60)
    assert not thread.is_alive() and len(compiling.compiler._ordered) == 999 and not compiling.here


def test_each_thread_waits_for_its_own_function(compiling: Compiling) -> None:
    compiling.order(TakenRows(), "a", "b", "c")
    waiting = {name: compiling.wait(name) for name in ("c", "b")}
    for name in ("c", "b"):
        assert compiling.process.compile(compiling.stored) == name
        waiting[name].join(60)
        assert not waiting[name].is_alive()
    assert compiling.process.queue() == ["a"] and not compiling.here


def test_this_process_compiles_the_functions_of_a_dead_compiling_process(compiling: Compiling) -> None:
    compiling.order(TakenRows(), "a", "b")
    thread = compiling.wait("b")
    compiling.process.end()
    thread.join(60)
    assert not thread.is_alive() and compiling.compiler.process is None
    compiling.order(TakenRows(), "a", "c")
    assert compiling.here == ["a", "c"] and compiling.started == 1


def test_ctrl_c_ends_a_wait_but_not_the_compilation(compiling: Compiling) -> None:
    compiling.order(TakenRows(), "a", "b")
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        compiling.compiler.wait_for(compiling.function("b"), "w")
    assert compiling.process.queue() == ["b", "a"]
    compiling.process.compile(compiling.stored)
    compiling.compiler.wait_for(compiling.function("b"), "w")


def test_a_full_pipe_delays_requests_for_compilations(compiling: Compiling) -> None:
    taken = TakenRows()
    names = [f"{number:0200}" for number in range(2000)]
    compiling.order(taken, *names)
    found = []
    while compiling.compiler._ordered:
        found.append(compiling.process.compile(compiling.stored))
        compiling.compiler._load_compiled()
    assert found == names and compiling.compiler.process is None


BATCH = """
import json, os, sys, threading, time
import freshviews
from freshviews.kernel.machine import beside
sys.path.insert(0, os.getcwd())
from tests.kernel.test_beside import Asked

asked = Asked()
beside._start_compiler = lambda: asked
others = [freshviews.Database() for _ in range(3)]
for number, other in enumerate(others):
    other.execute(f"CREATE TABLE o (a BIGINT PRIMARY KEY, b DOUBLE); "
                  f"CREATE MATERIALIZED VIEW v AS SELECT b, SUM(a + {number}) AS s FROM o GROUP BY b")
    other.insert("o", [(1, 1.0)])
others.pop().close()
db = freshviews.Database()
db.execute('''CREATE TABLE z (a BIGINT); CREATE TABLE y (a BIGINT, b BIGINT); CREATE TABLE x (a BIGINT, b BIGINT);
CREATE MATERIALIZED VIEW w AS SELECT a, MAX(b) AS b FROM y GROUP BY a; CREATE MATERIALIZED VIEW v AS SELECT a FROM z;
CREATE MATERIALIZED VIEW u AS SELECT a, COUNT(*) + 1 AS n, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM x
GROUP BY a, b''')
if sys.argv[1] == "x":
    db.view("u").subscribe(print)
rows = [(i, i)[:len(sys.argv[1:])] for i in range(1001)]
threading.Thread(target=db.insert, args=(sys.argv[1], rows), daemon=True).start()
ends = time.monotonic() + 60
while not (first := asked.orders._first):
    assert time.monotonic() < ends
    asked.take()
generated = "freshviews_generated"
print(*(order[2].rsplit("_", 1)[0] if order[1].startswith(generated) else order[2] for order in first.values()))
os._exit(0)
"""


WAITED = {
    ("z",): "on_0 any_failed shrink_tables",
    ("x", "two columns"): "on_0 any_failed shrink_tables append_rows consolidate clear_buffer read_change on_0 "
    "end_version read_change on_0",
}


def test_before_its_first_change_a_batch_waits_for_all_functions_that_it_calls_and_no_others(
    tmp_path: Path
) -> None:
    """It does not wait for functions of other databases or other views. ``x`` has a view whose change is read."""
    environment = {name: value for name, value in os.environ.items() if name != "FRESHVIEWS_PURE_PYTHON"}
    environment |= {"FRESHVIEWS_CACHE_DIR": str(tmp_path), "FRESHVIEWS_COMPILE": "beside"}
    for table, functions in WAITED.items():
        command = [sys.executable, "-c", BATCH, *table]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        assert found == f"add_rows settle_base missing undo_base {functions}\n"


@pytest.mark.skipif(os.name != "posix", reason="no process compiles for another one")
def test_answers_can_be_read_from_file_descriptors_with_large_numbers(compiling: Compiling) -> None:
    """A server with many connections has such files."""
    import fcntl
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most[1] != resource.RLIM_INFINITY and most[1] < 2000:
        pytest.skip("the system limits the open files of this process to fewer than the test opens")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most[0], 2000), most[1]))
    try:
        with compiling.process.stdout as read:
            compiling.process.stdout = os.fdopen(fcntl.fcntl(read, fcntl.F_DUPFD, 1500), "rb", buffering=0)
        compiling.order(TakenRows(), "add")
        assert not compiling.compiler._answers(0)
        compiling.process.answer(0)
        assert compiling.compiler._answers(60)
        compiling.process.stdout.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_a_long_call_in_plain_python_never_stops_midway_to_wait_for_the_compiler(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call of the database waits for the compiler, before it changes anything."""
    monkeypatch.setattr(beside, "_TOO_LONG", -1.0)
    monkeypatch.setattr(beside, "_switched_on", True)
    taken = TakenRows()
    work_for(taken)
    assert beside._run_plain(lambda: 5) == 5 and beside.may_stand_in()
    with beside.take_in(taken, 1):
        assert not beside.may_stand_in()
    assert not beside.may_stand_in()
    beside._thread.taken = None
