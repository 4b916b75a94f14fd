"""Runs a trigger over a large batch in lanes (``plan.costs.lanes``), each lane in a thread.

Lanes read the same columns and the same tables, and no lane reads a table that another one changes. Each lane has its
own copy of everything else that a trigger writes: the state block with its status, scratch room for sums, and shapes. A
trigger that reads deferred rows flushes them first, so all deferred rows are flushed before the lanes begin.

Lanes run only if they save time. To find out, the trigger is timed in one thread, then its lanes, one after the other
and at the same time. Another process compiles the functions of the lanes after large batches have taken some time.
Until they are compiled, and for all small batches, the trigger runs as a whole.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from freshviews.codegen.compiled_block import CompiledTrigger, compile_lanes
from freshviews.codegen.layout import STATUS, STATUS_ERROR, STATUS_ROW, STATUS_SHAPES, STATUS_STEPS, STATUS_WORDS
from freshviews.codegen.module import order
from freshviews.engine.blocks.calls import Call
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address
from freshviews.kernel.hash import pending
from freshviews.plan.costs.degrees import Assumed
from freshviews.plan.costs.lanes import lanes_of

LEAST = 0.0005
"""Seconds that lanes must save. Starting a thread and waiting for its end takes 0.1 to 0.2 ms."""

WORTH = 0.05
"""Seconds that a trigger takes over large batches before its lanes are made. Writing their source takes some
milliseconds, and compiling it, in another process, much longer: too much for a trigger of few large batches."""

REST = 16
"""Batches after which lanes that did not save time are tried again: perhaps the cores were busy."""

Keys = Mapping[str, tuple[tuple[str, ...], ...]]


class Lanes:
    """Runs the triggers of a state in lanes where that saves time. ``keys``: of the relations. ``ran``: whether a
    trigger ran in lanes since ``use`` set several threads; its error may differ from that of one thread."""

    def __init__(self, keys: Keys) -> None:
        self.ran = False
        self._keys = keys
        self._threads = 1
        self._calls: Sequence[Call] = ()
        self._divided: Sequence[Divided] = ()

    def use(self, state: BlockState, threads: int) -> None:
        """From now on run the triggers of a state, in at most this many threads; one runs them without lanes."""
        self._threads = threads
        state.runner = self.run if threads > 1 else None
        self.ran &= threads == 1

    def run(self, state: BlockState, call: Call, n: int) -> None:
        """Run a trigger over ``n`` rows of its block."""
        if self._calls is not state.calls:
            self._calls, self._divided = state.calls, [Divided(one, self._keys) for one in state.calls]
        self.ran |= self._divided[call.number].run(state, n, self._threads)


class Divided:
    """A trigger that runs as a whole or in lanes, by which is faster."""

    def __init__(self, call: Call, keys: Keys) -> None:
        self._call, self._keys = call, keys
        self._lanes: Sequence[_Lane] | None = None
        self._flushed: Sequence[int] = ()
        self._cost = 1.0
        self._pace = 0.0
        """Seconds per row of the whole trigger."""
        self._saved = math.inf
        """Seconds per row that lanes saved the last time."""
        self._spent = 0.0
        """Seconds that the whole trigger took over large batches, until lanes are made."""
        self._rest = REST

    def run(self, state: BlockState, n: int, threads: int) -> bool:
        """Run over ``n`` rows of the call's block; returns whether lanes ran."""
        state.compiled.source.written()  # Now the state has all that lanes copy.
        expected = self._pace * n
        gains = self._gains(state, n, expected)
        start = time.perf_counter()
        if not gains:
            self._call.run(state.state, self._call.place, n)
            taken = time.perf_counter() - start
            self._pace = taken / n
            # By the pace before, as the first run may load code.
            if min(expected, taken) >= 2 * LEAST:
                self._spent += taken
            return False
        assert self._lanes
        for number in self._flushed:
            if pending.enter_pending(state.tables[number], address(state.status)) < 0:
                return True  # Memory ran out; the table has the flag.
        for lane in self._lanes:
            lane.begin(state.words, self._call.block)
        # The longest first, so that all threads end at about the same time.
        run_together([partial(lane.run, n) for lane in sorted(self._lanes, key=lambda one: -one.seconds)], threads)
        for lane in self._lanes:
            lane.report(state.status)
        whole = sum(lane.seconds for lane in self._lanes) / self._cost
        self._pace = whole / n
        self._saved = (whole - (time.perf_counter() - start)) / n
        return True

    def _gains(self, state: BlockState, n: int, expected: float) -> bool:
        """Whether lanes are compiled and, as far as known, save time.

        ``expected``: seconds of the whole trigger.
        """
        if expected < 2 * LEAST or self._spent < WORTH:
            return False
        if self._lanes is None:
            self._lanes = self._compiled_lanes(state)
        if not self._lanes or not order(*(lane.function for lane in self._lanes)):
            return False
        if self._saved * n > LEAST:
            return True
        self._rest -= 1
        if self._rest:
            return False
        self._rest = REST
        return True

    def _compiled_lanes(self, state: BlockState) -> Sequence[_Lane]:
        """The lanes; none where the trigger cannot be divided."""
        program, call = state.program, self._call
        found = lanes_of(program, call.number, Assumed(program, self._keys))
        if found is None:
            return ()
        self._cost = found.cost
        compiled = compile_lanes(program, state.compiled.source, call.number, found.triggers)
        self._flushed = [program.places[view] for view in compiled.flushed]
        return [_Lane(one, call.columns, state.scratch, compiled.shapes) for one in compiled.triggers]


class _Lane:
    """A lane of a trigger, and the memory that it writes besides tables. ``columns``: of the whole trigger's block."""

    def __init__(
        self,
        trigger: CompiledTrigger,
        columns: Sequence[str],
        scratch: Mapping[int, Codes],
        shapes: Sequence[Sequence[int]],
    ) -> None:
        self.function = trigger.run
        self.seconds = 0.0
        """Seconds that it took the last time."""
        places = [0, *(1 + columns.index(column) for column in trigger.columns)]
        self._words = np.array([word for place in places for word in (2 * place, 2 * place + 1)])
        self._block = np.zeros(len(self._words), np.int64)
        self._scratch = {word: np.zeros_like(block) for word, block in scratch.items()}
        self._shapes = np.array([*chain.from_iterable(shapes)] or [0], np.int64)
        self._status = np.zeros(STATUS_WORDS, np.int64)
        self._state = np.zeros(0, np.int64)

    def begin(self, state: Codes, block: Codes) -> None:
        """Prepare a run over the columns in the whole trigger's block."""
        self._block[:] = block[self._words]
        self._state = state.copy()
        self._state[STATUS] = address(self._status)
        for word, own in self._scratch.items():
            self._state[word] = address(own)
        self._status[:] = 0
        self._status[STATUS_ROW] = -1
        self._status[STATUS_SHAPES] = address(self._shapes)

    def run(self, n: int) -> None:
        """Run over ``n`` rows."""
        start = time.perf_counter()
        self.function(address(self._state), address(self._block), n)
        self.seconds = time.perf_counter() - start

    def report(self, status: Codes) -> None:
        """Add the steps to those of the whole trigger, and report an error unless there is one."""
        status[STATUS_STEPS] += self._status[STATUS_STEPS]
        if status[STATUS_ERROR] == 0:
            status[[STATUS_ERROR, STATUS_ROW]] = self._status[[STATUS_ERROR, STATUS_ROW]]


def run_together(jobs: Sequence[Callable[[], None]], threads: int) -> None:
    """Run jobs, in order, in at most ``threads`` threads, the caller's included.

    Returns when all have ended, and raises the error of the first job that failed.
    """
    errors: list[BaseException | None] = [None] * len(jobs)
    waiting = deque(enumerate(jobs))
    started: list[threading.Thread] = []
    try:
        for _ in range(min(threads, len(jobs)) - 1):
            thread = threading.Thread(target=_run_waiting, args=(waiting, errors), name="freshviews")
            try:
                thread.start()
            except RuntimeError:  # No thread can be started, as when the interpreter ends.
                break
            started.append(thread)
        _run_waiting(waiting, errors)
    finally:
        for thread in started:
            thread.join()
    for error in errors:
        if error is not None:
            raise error


def _run_waiting(waiting: deque[tuple[int, Callable[[], None]]], errors: list[BaseException | None]) -> None:
    """Run the waiting jobs until none is left."""
    while True:
        try:
            number, job = waiting.popleft()
        except IndexError:
            return
        try:
            job()
        except BaseException as error:
            errors[number] = error
