"""A compiled block and its native state: tables, buffers, the status word."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.codegen.block import CompiledBlock
from freshviews.codegen.enumeration import loops_in
from freshviews.codegen.layout import FIRST_TABLE, STATUS_WORDS, row_layout
from freshviews.codegen.triggers import real_scratch
from freshviews.engine.batch import Codes, address_of
from freshviews.kernel import buffer as buffers
from freshviews.kernel import mem, ordered, pending, table
from freshviews.kernel.image import Mapping, array_count, take_image
from freshviews.kernel.mapping import unmap
from freshviews.kernel.output import any_failed
from freshviews.kernel.real import REAL_WORDS
from freshviews.program.nodes import Program, View
from freshviews.types import SqlType
from freshviews.types.dictionary import Dictionary


def words_in(address: int, rows: int, width: int) -> Codes:
    """Rows of words as they lie in native memory, shape (rows, width)."""
    if rows == 0:
        return np.empty((0, width), np.int64)
    block: Any = (ctypes.c_int64 * (rows * width)).from_address(address)
    return np.frombuffer(block, np.int64).reshape(rows, width)


def words_at(address: int, rows: int, width: int) -> Codes:
    """A copy of rows of words that lie in native memory, shape (rows, width)."""
    return words_in(address, rows, width).copy()


def address(array: NDArray[Any]) -> int:
    """Address of an array's first word."""
    interface: dict[str, Any] = array.__array_interface__
    place: int = interface["data"][0]
    return place


_SLICE = 1 << 12
"""Updates after which a change that is emitted may be merged."""

_MERGED = 1 << 18
"""Rows of a change from which on it is merged while a batch runs."""


class BlockState:
    """The native state of one block. All memory is given back when the object is collected."""

    def __init__(self, program: Program, compiled: CompiledBlock, width: int, dictionary: Dictionary) -> None:
        self.program = program
        self.compiled = compiled
        self.width = width
        self._dictionary = dictionary
        scratch = len(set(real_scratch(program).values()))
        self._state = np.zeros(FIRST_TABLE + len(program.views) + scratch, np.int64)
        self.status = np.zeros(STATUS_WORDS, np.int64)
        self._constants = np.array([dictionary.encode(text) for text in compiled.constants] or [0], np.int64)
        self._scratch = np.zeros((max(scratch, 1), REAL_WORDS), np.int64)
        self._strings: tuple[Codes, NDArray[Any]] | None = None
        self._orders_strings = any(
            v.ordered is not None and v.ordered.name == "STRING" for v in program.views
        )
        self.state = address(self._state)
        self._state[0] = address(self.status)
        self.changes = buffers.new_buffer(width)
        self._state[1] = self.changes
        self._state[3] = address(self._constants)
        for i in range(scratch):
            self._state[FIRST_TABLE + len(program.views) + i] = address(self._scratch[i])
        self.tables = [_new_table(view) for view in program.views]
        self._state[FIRST_TABLE : FIRST_TABLE + len(self.tables)] = self.tables
        self._by_relation: dict[str, list[tuple[Any, Codes, int, tuple[str, ...]]]] = {}
        for trigger in compiled.triggers:
            block = np.zeros(2 + 2 * len(trigger.columns), np.int64)
            entry = (trigger.run, block, address(block), trigger.columns)
            self._by_relation.setdefault(trigger.relation, []).append(entry)
        self._asleep = True
        self._mappings: list[Mapping] = []
        self._free = weakref.finalize(self, _free, self.tables, self.changes, self._mappings)
        self.reset_status()

    def close(self) -> None:
        """Give all memory back; the state must not be used any more."""
        self._free()

    def reset_status(self) -> None:
        self.status[0] = 0
        self.status[1] = -1

    def want_changes(self, wanted: bool) -> None:
        """Keep the change of each batch from now on, or no longer."""
        self._state[2] = int(wanted)
        self._asleep = True
        for view, handle in zip(self.program.views, self.tables, strict=True):
            if view.journal:
                mem.store(handle, table.JOURNALING, int(wanted))

    def run(self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int) -> None:
        """Run the relation's triggers over ``n`` rows; columns are (address, stride in words)."""
        if self._orders_strings:
            self._refresh_strings()
        if self._asleep and self._state[2]:
            self._awake()
        size = _SLICE if self._state[2] and self.compiled.enumerate is not None else n
        for run, block, place, names in self._by_relation.get(relation, ()):
            block[0], block[1] = m
            at = 2
            for name in names:
                block[at], block[at + 1] = columns[name]
                at += 2
            if n <= size:
                run(self.state, place, n)
            else:
                self._run_slices(run, block, place, n)

    def _run_slices(self, run: Any, block: Codes, place: int, n: int) -> None:
        """Run a trigger over ``n`` rows, a slice at a time. What it emits is merged meanwhile, so that it takes memory
        by the change of the batch and not by the changes of its updates, which may cancel out."""
        most = _MERGED
        for start in range(0, n, _SLICE):
            failed = self.status[0] != 0
            run(self.state, place, min(_SLICE, n - start))
            if self.status[0] != 0 and not failed and self.status[1] >= 0:
                self.status[1] += start
            if mem.load(self.changes, buffers.COUNT) > most:
                buffers.consolidate(self.changes)
                most = max(_MERGED, 2 * mem.load(self.changes, buffers.COUNT))
            block[0::2] += 8 * _SLICE * block[1::2]

    def each(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int, limit: int
    ) -> Iterator[tuple[Codes, Codes, int]]:
        """Run ``n`` updates one by one, each through all triggers of the relation before the next, and hand out raw
        rows of the changes in order wherever there are ``limit`` of them or more after an update, with the number of
        the update behind each, and how many updates have run.

        What is handed out must be used up before the next is asked for: it lies in native memory. Only where changes
        are wanted, and for a result that is enumerated. Updates that are not asked for do not run.
        """
        if self._asleep:
            self._awake()
        entries = self._by_relation.get(relation, ())
        for _, block, _, names in entries:
            block[0], block[1] = m
            for i, name in enumerate(names):
                block[2 * i + 2], block[2 * i + 3] = columns[name]
        blocks = np.array([place for _, _, place, _ in entries], np.int64)
        ends = np.zeros(n, np.int64)
        at = 0
        while entries and at < n:
            first = at
            at = self.compiled.each[relation](self.state, address(blocks), address(ends), first, n, limit)
            rows = mem.load(self.changes, buffers.COUNT)
            numbers = np.repeat(np.arange(first, at), np.diff(ends[first:at], prepend=0))
            yield words_in(mem.load(self.changes, buffers.ROWS), rows, self.width), numbers, at
            buffers.clear_buffer(self.changes)

    def _awake(self) -> None:
        """Bring up to date what is kept only while changes are wanted."""
        if self.compiled.awake is not None:
            self.compiled.awake(self.state)
        self._asleep = False

    def failed(self) -> bool:
        """Whether memory ran out since the state was made."""
        if mem.load(self.changes, buffers.FAILED):
            return True
        return bool(any_failed(self.state, FIRST_TABLE, len(self.tables)))

    def has_changes(self) -> bool:
        """Whether something of the change was not taken."""
        journaled = any(mem.load(handle, table.JOURNALED) for handle in self.tables)
        return journaled or mem.load(self.changes, buffers.COUNT) != 0

    def take_changes(self) -> Codes:
        """Raw rows of the change since the last call, shape (n, width)."""
        if self.compiled.read_change is not None:
            self.compiled.read_change(self.state, self.changes)
        return self._drain()

    def _drain(self) -> Codes:
        rows = mem.load(self.changes, buffers.COUNT)
        raw = words_at(mem.load(self.changes, buffers.ROWS), rows, self.width)
        buffers.clear_buffer(self.changes)
        return raw

    def rows(self, limit: int) -> Iterator[Codes]:
        """Raw rows of the contents, at most ``limit`` at a time; the state must not change meanwhile."""
        if self.compiled.enumerate is not None:
            self.enter_pending()
            yield from self._enumerated(limit)
            return
        assert self.compiled.read_rows is not None
        out = buffers.new_buffer(self.width)
        try:
            start = 0
            while start >= 0:
                buffers.clear_buffer(out)
                start = self.compiled.read_rows(self.state, start, limit, out)
                yield words_at(mem.load(out, buffers.ROWS), mem.load(out, buffers.COUNT), self.width)
        finally:
            buffers.free_buffer(out)

    def enter_pending(self) -> None:
        """Enter all pending rows; see ``kernel.pending``. MemoryError where memory is out; nothing is lost then."""
        for handle in self.tables:
            if mem.load(handle, table.PENDING) and pending.enter_pending(handle, address(self.status)) < 0:
                mem.store(handle, table.FAILED, 0)
                raise MemoryError("memory ran out while rows were entered")

    def _enumerated(self, limit: int) -> Iterator[Codes]:
        """As ``rows``, of a result that is not held; columns lie one after the other in memory."""
        assert self.compiled.enumerate is not None
        frame = np.zeros(2 + loops_in(self.program), np.int64)
        going = True
        while going:
            out = np.empty((self.width, limit), np.int64)
            found = self.compiled.enumerate(self.state, address(frame), limit, address(out))
            going = bool(frame[0])
            yield out[:, :found].T

    def group(self, key: tuple[int, ...]) -> Codes:
        """Raw rows of one group: one row or none."""
        assert self.compiled.read_group is not None
        words = np.array(key or (0,), np.int64)
        self.compiled.read_group(self.state, address(words), self.changes)
        return self._drain()

    def groups(self, keys: Sequence[Codes], n: int) -> tuple[NDArray[np.bool_], Codes]:
        """Which of ``n`` keys, given as columns, there are, and the raw rows of these."""
        assert self.compiled.read_groups is not None
        self.enter_pending()
        columns = np.array([word for column in keys for word in address_of(column)] or [0], np.int64)
        key = np.empty(max(len(keys), 1), np.int64)
        found = np.empty(n, np.int64)
        out = buffers.new_buffer(self.width)
        try:
            self.compiled.read_groups(self.state, address(columns), n, address(key), address(found), out)
            if mem.load(out, buffers.FAILED):
                raise MemoryError("memory ran out while rows were looked up")
            return found > 0, words_at(mem.load(out, buffers.ROWS), mem.load(out, buffers.COUNT), self.width)
        finally:
            buffers.free_buffer(out)

    def clear(self) -> None:
        """Empty every table."""
        for i, (view, handle) in enumerate(zip(self.program.views, self.tables, strict=True)):
            journaling = mem.load(handle, table.JOURNALING)
            table.free_table(handle)
            self.tables[i] = _new_table(view)
            self._state[FIRST_TABLE + i] = self.tables[i]
            mem.store(self.tables[i], table.JOURNALING, journaling)
        self._asleep = True
        _unmap(self._mappings)
        buffers.clear_buffer(self.changes)
        self.reset_status()
        self._strings = None

    def take_image(self, kept: Sequence[Sequence[int]], mapping: Mapping) -> None:
        """Go on as the state whose tables' kept words and arrays these are; see ``kernel.image``.

        The mapping becomes the state's own.
        """
        self.clear()
        self._mappings.append(mapping)
        places = iter(mapping.places)
        for handle, words in zip(self.tables, kept, strict=True):
            own = tuple(next(places) for _ in range(array_count(handle)))
            take_image(handle, words, replace(mapping, places=own))
        self._asleep = True

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes by view, pending rows as they lie."""
        return {
            view.name: (mem.load(handle, table.LIVE) + mem.load(handle, table.PENDING), table.table_bytes(handle))
            for view, handle in zip(self.program.views, self.tables, strict=True)
        }

    def _refresh_strings(self) -> None:
        """Give ordered indexes over strings the texts of all codes, where they have moved."""
        offsets, data = self._dictionary.heap()
        if self._strings is not None and offsets is self._strings[0] and data is self._strings[1]:
            return
        self._strings = (offsets, data)
        for view, handle in zip(self.program.views, self.tables, strict=True):
            if view.ordered is not None and view.ordered.name == "STRING":
                index = mem.load(mem.load(handle, table.ORDERED_LIST), 0)
                ordered.set_strings(index, address(offsets), address(data))


def _kind(kind: SqlType) -> int:
    if kind.is_float:
        return ordered.DOUBLE_ORDER
    return ordered.STRING_ORDER if kind.name == "STRING" else ordered.INTEGER_ORDER


def _new_table(view: View) -> int:
    layout = row_layout(view)
    with_order = view.ordered is not None
    indexes = len(view.indexes) + sum(len(subset.indexes) for subset in view.subsets)
    handle: int = table.new_table(
        layout.key, layout.payload, indexes, int(with_order), int(view.journal)
    )
    for positions in view.indexes:
        words = np.array(positions, np.int64)
        table.add_index(handle, address(words), len(positions))
    for subset in view.subsets:
        for positions in subset.indexes:
            words = np.array(positions or (0,), np.int64)
            table.add_subset_index(handle, address(words), len(positions))
    if view.ordered is not None:
        ordered.new_ordered(handle, _kind(view.ordered))
    return handle


def _free(tables: list[int], changes: int, mappings: list[Mapping]) -> None:
    for handle in tables:
        table.free_table(handle)
    buffers.free_buffer(changes)
    _unmap(mappings)


def _unmap(mappings: list[Mapping]) -> None:
    for mapping in mappings:
        unmap(mapping.low, mapping.high - mapping.low)
    mappings.clear()
