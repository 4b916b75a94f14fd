"""Compiles functions in a process of its own. ``kernel.machine.beside`` orders them in the process of a database."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from typing import Any

from freshviews.kernel.machine.cache import GENERATED, load_generated
from freshviews.kernel.machine.functions import Function, compiler

MOST = 2
"""Most workers. Each has Numba in memory; a large function takes gigabytes."""

_LONGER = 60
"""Seconds for which this process continues after the requesting process has ended."""


class Orders:
    """The orders of another process that no worker has begun. An order has a number, a module, a name and kinds."""

    def __init__(self, answer: Callable[[int], None], drop: Callable[[int], None] = lambda number: None) -> None:
        """``answer`` is called with the number of each order that is cancelled before it begins, ``drop`` with that of
        another one that is cancelled."""
        self._answer = answer
        self._drop = drop
        self._first: dict[int, list[Any]] = {}
        self._others: dict[int, list[Any]] = {}
        self._unread = b""

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    @property
    def is_waited_for(self) -> bool:
        """Whether a call waits for one of the orders."""
        return bool(self._first)

    def read(self, written: bytes) -> None:
        """Read orders that another process has written."""
        *lines, self._unread = (self._unread + written).split(b"\n")
        for line in lines:
            self._note(*json.loads(line))

    def _note(self, what: str, about: list[Any]) -> None:
        if what == "order":
            self._others[about[0]] = about
            return
        for number in about:
            order = self._others.pop(number, None)
            if what == "first" and order is not None:
                self._first[number] = order
            elif what == "cancel":
                if order is not None or self._first.pop(number, None) is not None:
                    self._answer(number)
                else:
                    self._drop(number)

    def next(self) -> list[Any] | None:
        """The order to compile next, which is removed; None if there is none."""
        orders = self._first or self._others
        return orders.pop(next(iter(orders))) if orders else None

    def take(self, function: list[Any]) -> list[Any] | None:
        """The order of a function, given as an order without its number; it is removed. None if there is none."""
        for orders in (self._first, self._others):
            for number, order in orders.items():
                if order[1:] == function:
                    return orders.pop(number)
        return None


class _Worker:
    """A child that compiles one function at a time. ``order``: the one that it compiles; ``wanted``: a database needs
    it."""

    def __init__(self, others: Iterable[_Worker]) -> None:
        orders, self._orders = os.pipe()
        self.answers, answers = os.pipe()
        self.order: list[Any] | None = None
        self.wanted = False
        self._process = os.fork()
        if self._process == 0:
            # Whatever happens, the child must not go on as its parent.
            try:
                quiet = os.open(os.devnull, os.O_RDWR)
                os.dup2(quiet, 0)
                os.dup2(quiet, 1)
                for other in (self, *others):
                    os.close(other._orders)
                    os.close(other.answers)
                _compile(orders, answers)
            finally:
                os._exit(0)
        os.close(orders)
        os.close(answers)

    def begin(self, order: list[Any]) -> None:
        self.order, self.wanted = order, True
        with contextlib.suppress(OSError):  # It has ended, as ``answers`` says.
            os.write(self._orders, json.dumps(order).encode() + b"\n")

    def has_answered(self) -> bool:
        """Whether it still lives. Called when ``answers`` can be read."""
        return bool(os.read(self.answers, 1))

    def end(self) -> None:
        """End it, even while it compiles. The cache stays consistent, because complete files are renamed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._orders)
        os.close(self.answers)


def _compile(orders: int, answers: int) -> None:
    """Compile functions until no more orders come."""
    with os.fdopen(orders, "rb") as lines:
        for line in lines:
            _, module, name, kinds = json.loads(line)
            with contextlib.suppress(Exception):  # Then the requesting process compiles it, and raises the error.
                compiler().compile_and_store(_found(module, name), kinds)
            os.write(answers, b"\n")


class _Server:
    """Hands the orders of the process ``asking`` to workers."""

    def __init__(self, asking: int) -> None:
        self._asking = asking
        self._ends = float("inf")
        self._orders = Orders(_answer, self._drop)
        self._workers: list[_Worker] = []
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._cores = cores

    def run(self) -> None:
        """Compile until the requesting process ends its orders and all are done, or for a time after it has ended."""
        reading = [0]
        while reading or self._orders or any(worker.order for worker in self._workers):
            found, _, _ = select.select([*reading, *(worker.answers for worker in self._workers)], [], [], 1)
            for worker in [one for one in self._workers if one.answers in found]:
                self._finish(worker, worker.has_answered())
            if 0 in found:
                written = os.read(0, 1 << 16)
                self._orders.read(written)
                if not written:
                    reading.clear()
            self._hand_out()
            if os.getppid() != self._asking:
                self._ends = min(self._ends, time.monotonic() + _LONGER)
                if time.monotonic() >= self._ends:
                    break
        for worker in self._workers:
            worker.end()

    def _hand_out(self) -> None:
        """Give orders to workers that are free."""
        for worker in self._workers:
            if worker.order is not None and not worker.wanted:
                again = self._orders.take(worker.order[1:])
                if again is not None:
                    _answer(worker.order[0])
                    worker.order, worker.wanted = again, True
        while self._orders:
            free = next((worker for worker in self._workers if worker.order is None), None)
            if free is None and self._orders.is_waited_for:
                unwanted = next((worker for worker in self._workers if _is_useless(worker)), None)
                if unwanted is not None:
                    self._finish(unwanted, False)
            if free is None and self._may_start():
                free = _Worker(self._workers)
                self._workers.append(free)
            if free is None:
                return
            order = self._orders.next()
            assert order is not None
            free.begin(order)

    def _may_start(self) -> bool:
        """Whether another worker may start: the first one always."""
        running = len(self._workers)
        return running == 0 or (running < MOST and os.getloadavg()[0] < self._cores - running)

    def _finish(self, worker: _Worker, lives: bool) -> None:
        """Answer the order of a worker, and end the worker unless it lives."""
        if worker.order is not None:
            _answer(worker.order[0])
            worker.order = None
        if not lives:
            self._workers.remove(worker)
            worker.end()

    def _drop(self, number: int) -> None:
        """Note that no database needs a function, which may be compiled now."""
        for worker in self._workers:
            if worker.order is not None and worker.order[0] == number:
                worker.wanted = False


def _is_useless(worker: _Worker) -> bool:
    """Whether a worker compiles a generated function that no database needs; a kernel is of use to the next one."""
    return worker.order is not None and not worker.wanted and worker.order[1].startswith(GENERATED)


def serve(asking: int) -> None:
    """Compile the functions that the input names, and write the number of each, also of failures. ``asking``: the
    number of the requesting process.

    The process reads orders, and hands each to a worker, a child that compiles one function at a time. A second worker
    starts if a core is idle. Two workers use about 30 % more CPU time, because both compile the functions that their
    functions call. Functions for which a call waits come first. If a call waits, a worker whose function no database
    needs any more is ended.
    """
    with contextlib.suppress(Exception):
        compiler()  # Each worker has it from the beginning.
    _Server(asking).run()


def _answer(number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, b"%d\n" % number)


def _found(module: str, name: str) -> Function:
    """A kernel or a generated function."""
    if module.startswith(GENERATED):
        found: Function = getattr(load_generated(module.removeprefix(GENERATED)), name)
    else:
        found = getattr(importlib.import_module(module), name)
    return found
