"""Runs one trigger over a large batch in several threads.

A trigger is divided into lanes, which change different views (``plan.costs.lanes``). A thread runs one lane over all
rows of the batch. If a lane only adds to views that it does not read, several threads share the rows.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from freshviews.codegen.compiled_block import CompiledTrigger, compile_lanes
from freshviews.codegen.layout import (
    FIRST_TABLE,
    STATUS,
    STATUS_ERROR,
    STATUS_ROW,
    STATUS_SHAPES,
    STATUS_STEPS,
    STATUS_WORDS,
    addable,
    payload_layout,
    row_layout,
)
from freshviews.codegen.module import Function, order
from freshviews.engine.blocks.calls import Call
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address, words_at
from freshviews.kernel.hash import merging, pending, table
from freshviews.kernel.memory.mem import load, store
from freshviews.kernel.ordered import index as ordered
from freshviews.plan.costs.degrees import Assumed
from freshviews.plan.costs.lanes import lanes_of
from freshviews.program.views import View

LEAST = 0.0005
"""Seconds that lanes must save. Starting a thread and waiting for its end takes 0.1 to 0.2 ms."""

WORTH = 0.05
"""Seconds that a trigger takes over large batches before its lanes are made. Writing their source takes some
milliseconds, and compiling it, in another process, much longer: too much for a trigger of few large batches."""

REST = 16
"""Batches after which lanes that did not save time are tried again: perhaps the cores were busy."""

CHUNK = 256
"""Least rows that a thread takes at a time of a lane whose rows are shared."""

CHUNKS = 8
"""Most chunks for each thread, so that all threads end at about the same time."""

Keys = Mapping[str, tuple[tuple[str, ...], ...]]


class Lanes:
    """Runs the triggers of a state in lanes where that saves time. ``keys``: of the relations. ``ran``: whether a
    trigger ran in lanes since ``use`` set several threads; its error may differ from that of one thread.

    No lane reads a table that another lane changes. Each lane has its own copy of the words that a trigger writes
    besides tables: status, scratch room, shapes; and of the headers of ordered tables that it only reads, where a
    search keeps what it looks for. Deferred rows that a lane reads are flushed before the lanes begin.

    If a lane only adds to tables that it does not read, threads share its rows, a chunk at a time. Each thread adds to
    tables of its own, the *drafts*. In the end the drafts are added to the tables of the state. Results, images and
    logs are the same as with one thread.

    Another process compiles the lanes once large batches have taken some time. If the lanes saved no time when they
    last ran, the next batches run the trigger as a whole, and then lanes are tried again.
    """

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
        # The longest first, so that all threads end at about the same time; threads that are left share rows.
        lanes = sorted(self._lanes, key=lambda one: (bool(one.drafted), -one.seconds))
        jobs = [job for lane in lanes for job in lane.begin(state, self._call.block, n, threads)]
        try:
            run_together(jobs, threads)
        finally:
            merges = [merge for lane in lanes for merge in lane.end(state)]
            if merges:
                run_together(merges, threads)
        for lane in lanes:
            lane.report(state.status)
        whole = sum(lane.seconds for lane in lanes) / self._cost
        self._pace = whole / n
        self._saved = (whole - (time.perf_counter() - start)) / n
        return True

    def _gains(self, state: BlockState, n: int, expected: float) -> bool:
        """Whether lanes are compiled and, as far as known, save time.

        ``expected``: seconds of the whole trigger.
        """
        if expected < 2 * LEAST or self._spent < WORTH:
            return False
        if not all(part.changes_less(state, n) for part in state.parts):
            return False
        if self._lanes is None:
            self._lanes = self._compiled_lanes(state)
        if not self._lanes or not order(merging.merge_table, *(lane.function for lane in self._lanes)):
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
        added = [lane.added if all(addable(program.view(name)) for name in lane.added) else () for lane in found.lanes]
        searched = [lane.searched for lane in found.lanes]
        if len(added) == 1 and not added[0]:
            return ()
        self._cost = found.cost
        compiled = compile_lanes(program, state.compiled.source, call.number, [lane.trigger for lane in found.lanes])
        self._flushed = [program.places[view] for view in compiled.flushed]
        shapes = list(chain.from_iterable(compiled.shapes))
        triggers = zip(compiled.triggers, added, searched, strict=True)
        return [_Lane(one, shapes, names, others, call.columns, state) for one, names, others in triggers]


class _Lane:
    """A lane of a trigger, and the memory that it writes besides tables.

    ``drafted``: the places of the views to which it adds, if threads share its rows; ``searched``: those of the ordered
    views that it only reads. ``columns``: of the whole trigger's block.
    """

    def __init__(
        self,
        trigger: CompiledTrigger,
        shapes: Sequence[int],
        added: Sequence[str],
        searched: Sequence[str],
        columns: Sequence[str],
        state: BlockState,
    ) -> None:
        self.function = trigger.run
        self.seconds = 0.0
        """Seconds of all threads that it took the last time."""
        places = [0, *(1 + columns.index(column) for column in trigger.columns)]
        self._words = np.array([word for place in places for word in (2 * place, 2 * place + 1)])
        self._block = np.zeros(len(self._words), np.int64)
        self._shapes = shapes
        self._scratch = state.scratch
        self.drafted = [state.program.places[name] for name in added]
        self._searched = [state.program.places[name] for name in searched]
        self._views = [state.program.views[place] for place in self.drafted]
        self._layouts = [np.array(payload_layout(view.components), np.int64) for view in self._views]
        self._runs: list[_Run] = []
        self._parts: Sequence[_Run] = ()

    def begin(self, state: BlockState, block: Codes, n: int, threads: int) -> list[Callable[[], None]]:
        """Prepare a run over ``n`` rows of the whole trigger's block; returns the jobs that together are the run."""
        self._block[:] = block[self._words]
        for layout in self._layouts:
            layout[0] = 0
        count = min(threads, max(n // CHUNK, 1)) if self.drafted else 1
        while len(self._runs) < count:
            self._runs.append(_Run(self.function, self._shapes, self._scratch, self._views))
        self._parts = self._runs[:count]
        size = max(CHUNK, n // (CHUNKS * count)) if count > 1 else n
        waiting = deque((start, min(size, n - start)) for start in range(0, n, size))
        for part in self._parts:
            part.begin(state.words, self._block, self.drafted if count > 1 else (), self._searched)
        return [partial(part.run, waiting) for part in self._parts]

    def end(self, state: BlockState) -> list[Callable[[], None]]:
        """The jobs that add the drafts to the tables of the state, one for each table."""
        if len(self._parts) == 1:
            return []
        return [
            partial(self._merge, state.tables[place], layout, [part.drafts[i] for part in self._parts])
            for i, (place, layout) in enumerate(zip(self.drafted, self._layouts, strict=True))
        ]

    def _merge(self, handle: int, layout: Codes, drafts: Sequence[int]) -> None:
        for draft in drafts:
            merging.merge_table(handle, draft, address(layout))

    def report(self, status: Codes) -> None:
        """Add the steps to those of the whole trigger, and report the first error unless there is one."""
        self.seconds = sum(part.seconds for part in self._parts)
        for part in sorted(self._parts, key=lambda part: part.row):
            status[STATUS_STEPS] += part.status[STATUS_STEPS]
            if status[STATUS_ERROR] == 0:
                status[[STATUS_ERROR, STATUS_ROW]] = part.status[STATUS_ERROR], part.row
        for layout in self._layouts:
            if status[STATUS_ERROR] == 0:
                status[STATUS_ERROR] = layout[0]


class _Run:
    """The memory that a thread writes while it runs a lane, besides tables of the state. ``views``: of its drafts."""

    def __init__(
        self, function: Function, shapes: Sequence[int], scratch: Mapping[int, Codes], views: Sequence[View]
    ) -> None:
        self.seconds = 0.0
        self.row = -1
        self.status = np.zeros(STATUS_WORDS, np.int64)
        self._function = function
        self._scratch = {word: np.zeros_like(block) for word, block in scratch.items()}
        self._shapes = np.array(shapes or [0], np.int64)
        self._state = self._block = np.zeros(0, np.int64)
        self._views = views
        self._headers: list[Codes] = []
        """Headers of ordered tables, of its own."""
        self.drafts: list[int] = []
        """Tables of its own."""
        self._free = weakref.finalize(self, _free_tables, self.drafts)

    def begin(self, state: Codes, block: Codes, drafted: Sequence[int], searched: Sequence[int]) -> None:
        """Prepare a run over the columns of the lane's block. ``drafted``: the places of tables to replace by
        drafts; ``searched``: of those that get headers of their own."""
        self._block = block.copy()
        self._state = state.copy()
        self._state[STATUS] = address(self.status)
        for word, own in self._scratch.items():
            self._state[word] = address(own)
        if drafted and not self.drafts:
            self.drafts += map(_new_draft, self._views)
        for place, draft in zip(drafted, self.drafts, strict=False):
            self._state[FIRST_TABLE + place] = draft
        self._headers.clear()
        for place in searched:
            made = _own_headers(int(state[FIRST_TABLE + place]))
            self._headers += made
            self._state[FIRST_TABLE + place] = address(made[0])
        self.status[:] = 0
        self.status[STATUS_ROW] = -1
        self.status[STATUS_SHAPES] = address(self._shapes)
        self.seconds, self.row = 0.0, -1

    def run(self, waiting: deque[tuple[int, int]]) -> None:
        """Run over chunks of rows until none waits."""
        start = time.perf_counter()
        at = 0
        while True:
            try:
                first, n = waiting.popleft()
            except IndexError:
                break
            self._block[0::2] += 8 * (first - at) * self._block[1::2]
            at = first
            failed = self.status[STATUS_ERROR]
            self._function(address(self._state), address(self._block), n)
            if self.status[STATUS_ERROR] and not failed and self.status[STATUS_ROW] >= 0:
                self.row = first + int(self.status[STATUS_ROW])
        self.seconds = time.perf_counter() - start


def _new_draft(view: View) -> int:
    """The handle of a table for what a thread adds to a view: no indexes, no journal, no deferred rows."""
    layout = row_layout(view)
    handle: int = table.new_table(layout.key, layout.payload, 0, 0, 0)
    store(handle, table.EAGER_BELOW, pending.NEVER)
    return handle


def _own_headers(handle: int) -> list[Codes]:
    """A copy of the header of a table with an ordered index, the list of its ordered indexes, and their headers. It is
    valid while the table does not change."""
    made = words_at(handle, 1, table.HEADER)[0]
    orders = words_at(load(handle, table.ORDERED_LIST), 1, load(handle, table.ORDERED))[0]
    headers = []
    for i, one in enumerate(orders):
        words = load(int(one), ordered.BOUNDS) + 2 * load(int(one), ordered.WORDS)
        headers.append(words_at(int(one), 1, words)[0])
        orders[i] = address(headers[-1])
    made[table.ORDERED_LIST] = address(orders)
    return [made, orders, *headers]


def _free_tables(handles: Sequence[int]) -> None:
    for handle in handles:
        table.free_table(handle)


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
