"""Runs the compiled program of one block on its native state: the tables of the program's views, and buffers.

Compiled code reports errors in a status word of the state.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.codegen.compiled_block import CompiledBlock
from freshviews.codegen.layout import (
    CONSTANTS,
    FIRST_TABLE,
    STATUS_SHAPES,
    STATUS_WORDS,
    default_row,
    default_word,
    emitted_row,
    payload_layout,
    row_layout,
    scratch_words,
)
from freshviews.codegen.module import Written, compile_ahead
from freshviews.codegen.reading import enumeration, listing
from freshviews.engine.blocks import parts
from freshviews.engine.blocks.calls import Call, call_of
from freshviews.engine.blocks.native import new_table
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.words import address, words_at, words_in
from freshviews.kernel.hash import pending, renew, table
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.image import Mapping as Arrays
from freshviews.kernel.image import array_count, take_image
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.mapping import unmap
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.output.drain import any_failed
from freshviews.program.intersections import digested
from freshviews.program.program import Program
from freshviews.program.results import Enumerated, Listed
from freshviews.program.upkeep import Evaluated
from freshviews.program.views import View
from freshviews.types.dictionary import Dictionary

_SLICE = 1 << 12
"""Updates after which an emitted change may be merged."""

_MERGED = 1 << 18
"""Least rows of a change that are merged while a batch runs."""


class BlockState:
    """The native state of one block; ``heir`` is the program that will take over its tables, if any. All memory is
    freed when the object is collected."""

    runner: Callable[[BlockState, Call, int], None] | None = None
    """Runs a trigger over some rows of its block instead of one call."""

    def __init__(
        self, program: Program, compiled: CompiledBlock, width: int, dictionary: Dictionary, heir: Program | None = None
    ) -> None:
        self.program = program
        self.compiled = compiled
        self.width = width
        self.dictionary = dictionary
        words = FIRST_TABLE + len(program.views) + len(program.long_sums) + 1 + len(program.optional)
        self.words = np.zeros(words, np.int64)
        self.status = np.zeros(STATUS_WORDS, np.int64)
        self._emitted_layout = np.array(payload_layout(program.result.emitted), np.int64)
        self.state = address(self.words)
        self.words[0] = address(self.status)
        # Changes of enumerated groups are emitted as payloads, and raw rows are made of these.
        self._grouped = compiled.enumerate is not None and compiled.read_change is not None
        layout = row_layout(emitted_row(program))
        self.changes = buffers.new_buffer(layout.key + layout.payload if self._grouped else width)
        self.raw = buffers.new_buffer(width) if self._grouped else self.changes
        # Memoryviews, because their words are Python ints.
        self._headers = [words_in(buffer, 1, buffers.HEADER)[0].data for buffer in (self.changes, self.raw)]
        self._drained_at, self._drained_room, self._drained = 0, 0, words_in(0, 0, width)
        self.words[1] = self.changes
        self._digested = digested(heir or program)
        self.tables = [self._new_table(view) for view in program.views]
        self.words[FIRST_TABLE : FIRST_TABLE + len(self.tables)] = self.tables
        self.rows_read = 0
        self._choice: Sequence[int] | None = None
        self._take_up(program, compiled)
        self.parts = tuple(part for made in parts.KINDS if (part := made(self)) is not None)
        self._asleep = True
        self._mappings: list[Arrays] = []
        compile_ahead(shrink_tables)
        self._free = weakref.finalize(self, _free, self.tables, {self.changes, self.raw}, self._mappings)
        self.reset_status()

    def _take_up(self, program: Program, compiled: CompiledBlock) -> None:
        """Run the functions of a program from now on: allocate their sums, default rows, and the other memory that they
        read. Nothing is assigned before everything is allocated."""
        scratch = {word: np.zeros(program.long_sums[at], np.int64) for at, word in scratch_words(program).items()}
        defaults = [np.array(default_row(program.view(name)), np.int64) for name in program.optional]
        calls = [*starmap(call_of, enumerate(compiled.triggers))]
        outdated = np.zeros(1, np.int64)
        self.program, self.compiled = program, compiled
        self.scratch, self._defaults, self.calls = scratch, defaults, calls
        self.outdated: Codes = outdated
        """One word, not 0 once other functions have replaced these."""
        for word, block in scratch.items():
            self.words[word] = address(block)
        for name, row in zip(program.optional, defaults, strict=True):
            self.words[default_word(program, name)] = address(row)
        compiled.source.when_written(partial(_hold_for, weakref.ref(self), compiled))
        self.choose(self._choice)

    def go_on(self, program: Program, compiled: CompiledBlock) -> bool:
        """Replace the program by another one over the same tables. False if memory runs out: the state must be cleared
        then. The change since the last call of ``take_changes`` stays."""
        outdated = self.outdated
        try:
            self._take_up(program, compiled)
        except MemoryError:
            return False
        outdated[0] = 1
        return True

    def _hold(self, written: Written) -> None:
        """Keep the memory that the functions read in addition to tables: codes of strings, and shapes."""
        self._constants = np.array([self.dictionary.pin(text) for text in written.constants] or [0], np.int64)
        self._shapes = np.array([*chain.from_iterable(written.shapes)] or [0], np.int64)
        self.words[CONSTANTS] = address(self._constants)
        self.status[STATUS_SHAPES] = address(self._shapes)

    def close(self) -> None:
        """Free all memory; the state must not be used any more."""
        self._free()
        for part in self.parts:
            part.close()

    def choose(self, numbers: Iterable[int] | None = None) -> None:
        """Run only these triggers of the program from now on; None: all."""
        self._choice = None if numbers is None else tuple(numbers)
        self._by_relation: dict[str, list[Call]] = {}
        for call in self.calls if self._choice is None else (self.calls[number] for number in self._choice):
            self._by_relation.setdefault(call.relation, []).append(call)

    def calls_of(self, relation: str) -> Sequence[Call]:
        """The triggers that run for updates of a relation, in order."""
        return self._by_relation.get(relation, ())

    def reset_status(self) -> None:
        self.status[0] = 0
        self.status[1] = -1

    def want_changes(self, wanted: bool) -> None:
        """Note the change of each batch from now on, or no longer."""
        self.words[2] = int(wanted)
        self._asleep = True
        for view, handle in zip(self.program.views, self.tables, strict=True):
            if view.journal:
                # An evaluated result has no journal: its change is the difference of its contents.
                mem.store(handle, table.JOURNALING, int(wanted and not isinstance(self.program.upkeep, Evaluated)))

    def run(self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int) -> None:
        """Run the relation's triggers over ``n`` rows; columns are (address, stride in words). ``end_version`` must
        follow."""
        self.awake()
        self.run_triggers(relation, columns, m, n)
        self.after(n)

    def after(self, n: int) -> None:
        """Call the parts after the triggers of a batch of ``n`` rows."""
        for part in self.parts:
            part.after(self, n)

    def end_version(self) -> None:
        """Call the parts after the last batch of a version."""
        for part in self.parts:
            part.end_version(self)

    def handles(self) -> dict[str, int]:
        """Tables by the names of their views."""
        return dict(zip((view.name for view in self.program.views), self.tables, strict=True))

    def run_triggers(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int
    ) -> None:
        """Run the triggers of a relation, a slice of the rows at a time where changes are emitted."""
        size = _SLICE if self.words[2] and self.compiled.enumerate is not None else n
        for call in self._by_relation.get(relation, ()):
            block = call.block
            block[0], block[1] = m
            at = 2
            for name in call.columns:
                block[at], block[at + 1] = columns[name]
                at += 2
            if n <= size:
                self._run_call(call, n)
            else:
                self._run_slices(call, n)

    def _run_call(self, call: Call, n: int) -> None:
        """Run a trigger over ``n`` rows of its block."""
        if self.runner is None:
            call.run(self.state, call.place, n)
        elif n:
            self.runner(self, call, n)

    def _run_slices(self, call: Call, n: int) -> None:
        """Run a trigger over ``n`` rows, a slice at a time, and merge the emitted rows in between. So memory is bounded
        by the change of the batch, not by the changes of its updates, which may cancel out."""
        most = _MERGED
        for start in range(0, n, _SLICE):
            failed = self.status[0] != 0
            self._run_call(call, min(_SLICE, n - start))
            if self.status[0] != 0 and not failed and self.status[1] >= 0:
                self.status[1] += start
            if mem.load(self.changes, buffers.COUNT) > most:
                self._merge_changes()
                most = max(_MERGED, 2 * mem.load(self.changes, buffers.COUNT))
            call.block[0::2] += 8 * _SLICE * call.block[1::2]

    def _merge_changes(self) -> None:
        """Merge the emitted rows by group."""
        if self.compiled.merge_changes is not None:
            self.compiled.merge_changes(self.state)
        else:
            buffers.consolidate_payloads(self.changes, len(self.program.free), self._emitted_layout.ctypes.data)

    def each(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int, limit: int
    ) -> Iterator[tuple[Codes, Codes, int]]:
        """Run ``n`` updates one by one, each through all triggers of the relation.

        Whenever ``limit`` or more raw rows of changes are there after an update, yield them in order, with the number
        of the update behind each, and how many updates have run. They lie in native memory: use them before asking for
        more. Updates run on demand. Only for an enumerated result whose changes are wanted.
        """
        self.awake()
        calls = self._by_relation.get(relation, ())
        for call in calls:
            call.set_columns(columns, m)
        blocks = np.array([call.place for call in calls], np.int64)
        ends = np.zeros(n, np.int64)
        at = 0
        while calls and at < n:
            first = at
            at = self.compiled.each[relation](self.state, address(blocks), address(ends), first, n, limit, self.raw)
            rows = mem.load(self.raw, buffers.COUNT)
            numbers = np.repeat(np.arange(first, at), np.diff(ends[first:at], prepend=0))
            yield words_in(mem.load(self.raw, buffers.ROWS), rows, self.width), numbers, at
            buffers.clear_buffer(self.raw)

    def awake(self) -> None:
        """If changes are wanted now, bring up to date the views that triggers maintain only for changes."""
        if self._asleep and self.words[2]:
            if self.compiled.awake is not None:
                self.compiled.awake(self.state)
            self._asleep = False

    def give_back(self) -> None:
        """Free memory after removals, in a bounded step. Call it after a version, when no reader is open."""
        shrink_tables(self.state + 8 * FIRST_TABLE, len(self.tables))

    def failed(self) -> bool:
        """Whether memory ran out since the state was made."""
        changes, raw = self._headers
        if changes[buffers.FAILED] or raw[buffers.FAILED]:
            return True
        return bool(any_failed(self.state, FIRST_TABLE, len(self.tables)))

    def has_changes(self) -> bool:
        """Whether a part of the change was not taken."""
        journaled = any(mem.load(handle, table.JOURNALED) for handle in self.tables)
        gathered = self._delta is not None and mem.load(self._delta, table.LIVE) != 0
        return journaled or gathered or mem.load(self.changes, buffers.COUNT) != 0

    @property
    def _delta(self) -> int | None:
        """The table that gathers the change of a listed result."""
        if not isinstance(self.program.result, Listed):
            return None
        return self.tables[self.program.places[self.program.result.delta]]

    def take_changes(self) -> Codes:
        """Raw rows of the change since the last call, shape (n, width)."""
        if isinstance(self.program.result, Listed):
            self.enter_pending()
        if self.compiled.read_change is not None:
            self.compiled.read_change(self.state, self.raw)
        return self.drain()

    def forget_changes(self) -> None:
        """Discard the change so far."""
        if self._grouped:
            buffers.clear_buffer(self.changes)
            buffers.clear_buffer(self.raw)
        elif self._delta is not None:
            renew.reset_table(self._delta)
        else:
            self.take_changes()

    def drain(self) -> Codes:
        """Remove and return the raw rows in the buffer."""
        header = self._headers[1]
        place, room = header[buffers.ROWS], header[buffers.CAPACITY]
        if place != self._drained_at or room != self._drained_room:
            self._drained_at, self._drained_room, self._drained = place, room, words_in(place, room, self.width)
        raw = self._drained[: header[buffers.COUNT]].copy()
        failed = header[buffers.FAILED]
        header[buffers.COUNT] = header[buffers.FAILED] = 0
        if failed:
            raise MemoryError("memory ran out while rows were read")
        return raw

    def rows(self, limit: int) -> Iterator[Codes]:
        """Raw rows of the contents, at most ``limit`` at a time; the state must not change meanwhile."""
        if self.compiled.read_rows is None:
            self.enter_pending()
            yield from self._listed(limit) if self.compiled.enumerate is None else self._enumerated(limit)
            return
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
        """Flush all deferred rows to the indexes; see ``kernel.hash.pending``. MemoryError if memory runs out; no row
        is lost then."""
        for handle in self.tables:
            if pending.enter_pending(handle, address(self.status)) < 0:
                mem.store(handle, table.FAILED, 0)
                raise MemoryError("memory ran out while deferred rows were indexed")

    def _enumerated(self, limit: int) -> Iterator[Codes]:
        """As ``rows``, for a result that is not held. Memory has columns one after the other, or rows for groups. An
        overflow of a group's payload is in the status word afterwards."""
        assert self.compiled.enumerate is not None and isinstance(self.program.result, Enumerated)
        frame = np.zeros(enumeration.frame_words(self.program, self.program.result), np.int64)
        going = True
        while going:
            out = np.empty((limit, self.width) if self._grouped else (self.width, limit), np.int64)
            found = self.compiled.enumerate(self.state, address(frame), limit, address(out))
            going = bool(frame[0])
            self.rows_read += found
            yield out[:found] if self._grouped else out[:, :found].T

    def _listed(self, limit: int) -> Iterator[Codes]:
        """As ``rows``, for a listed result."""
        assert self.compiled.read_listed is not None and self.compiled.close_listed is not None
        assert isinstance(self.program.result, Listed)
        frame = np.zeros(listing.frame_words(self.program.result), np.int64)
        out = buffers.new_buffer(self.width)
        try:
            going = True
            while going:
                buffers.clear_buffer(out)
                going = bool(self.compiled.read_listed(self.state, address(frame), limit, out))
                if mem.load(out, buffers.FAILED) or mem.load(self.changes, buffers.FAILED):
                    mem.store(self.changes, buffers.FAILED, 0)
                    raise MemoryError("memory ran out while rows were listed")
                self.rows_read += mem.load(out, buffers.COUNT)
                yield words_at(mem.load(out, buffers.ROWS), mem.load(out, buffers.COUNT), self.width)
        finally:
            self.compiled.close_listed(address(frame))
            buffers.free_buffer(out)

    def group(self, key: tuple[int, ...]) -> Codes:
        """Raw rows of one group: one row or none."""
        assert self.compiled.read_group is not None
        if isinstance(self.program.result, Listed):
            self.enter_pending()
        words = np.array(key or (0,), np.int64)
        self.compiled.read_group(self.state, address(words), self.raw)
        return self.drain()

    @property
    def has_key(self) -> bool:
        """Whether rows can be looked up by a key."""
        return self.compiled.read_key is not None

    def by_key(self, key: tuple[int, ...]) -> Codes:
        """Raw rows with a key."""
        assert self.compiled.read_key is not None
        self.enter_pending()
        words = np.array(key, np.int64)
        self.compiled.read_key(self.state, address(words), self.raw)
        return self.drain()

    def groups(self, keys: Sequence[Codes], n: int) -> tuple[NDArray[np.bool_], Codes]:
        """Which of ``n`` keys, given as columns, exist, and their raw rows."""
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

    def evaluate(self) -> None:
        """Recompute the views that triggers do not maintain."""
        assert self.compiled.evaluate is not None
        assert isinstance(self.program.upkeep, Evaluated)
        for view in self.program.upkeep.recomputed:
            self._empty(self.program.places[view])
        self.compiled.evaluate(self.state)

    def settle(self) -> None:
        """Run the statements that wait for the end of a version."""
        assert self.compiled.end_version is not None
        self.compiled.end_version(self.state)

    def _empty(self, number: int) -> None:
        """Empty one table."""
        handle = self.tables[number]
        journaling = mem.load(handle, table.JOURNALING)
        table.free_table(handle)
        self.tables[number] = self._new_table(self.program.views[number])
        self.words[FIRST_TABLE + number] = self.tables[number]
        mem.store(self.tables[number], table.JOURNALING, journaling)

    def _new_table(self, view: View) -> int:
        return new_table(view, self.dictionary, self._digested.get(view.name, frozenset()))

    def clear(self) -> None:
        """Empty every table."""
        for number in range(len(self.tables)):
            self._empty(number)
        for part in self.parts:
            part.clear()
        self._asleep = True
        _unmap(self._mappings)
        buffers.clear_buffer(self.changes)
        buffers.clear_buffer(self.raw)
        self.reset_status()

    def exchange(self, other: BlockState) -> None:
        """Swap tables with another state of the same views, none of them mapped."""
        for i, (mine, its) in enumerate(zip(self.tables, other.tables, strict=True)):
            self.tables[i], other.tables[i] = its, mine
            for state, handle in ((self, its), (other, mine)):
                state.words[FIRST_TABLE + i] = handle

    def take_image(self, kept: Sequence[Sequence[int]], mapping: Arrays, of_parts: Mapping[str, Any]) -> None:
        """Take over the words and arrays of tables, and the entries of parts, from an image; see ``kernel.image``.

        The state owns the mapping from now on.
        """
        self.clear()
        self._mappings.append(mapping)
        places = iter(mapping.places)
        for handle, words in zip(self.tables, kept, strict=True):
            own = tuple(next(places) for _ in range(array_count(handle)))
            take_image(handle, words, replace(mapping, places=own))
        for part in self.parts:
            part.restore(self, of_parts)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes by view, deferred rows as stored."""
        found = {
            view.name: (mem.load(handle, table.LIVE) + mem.load(handle, table.PENDING), table.table_bytes(handle))
            for view, handle in zip(self.program.views, self.tables, strict=True)
        }
        for part in self.parts:
            found |= part.sizes()
        return found


def _hold_for(state: weakref.ref[BlockState], compiled: CompiledBlock, written: Written) -> None:
    """Have a state keep the memory that its functions read, if it still runs them."""
    there = state()
    if there is not None and there.compiled is compiled:
        there._hold(written)


def _free(tables: list[int], emitted: set[int], mappings: list[Arrays]) -> None:
    for handle in tables:
        table.free_table(handle)
    for handle in emitted:
        buffers.free_buffer(handle)
    _unmap(mappings)


def _unmap(mappings: list[Arrays]) -> None:
    for mapping in mappings:
        unmap(mapping.low, mapping.high - mapping.low)
    mappings.clear()
