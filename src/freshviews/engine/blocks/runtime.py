"""A compiled block and its native state: tables, buffers, the status word."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from freshviews.codegen.block import CompiledBlock
from freshviews.codegen.layout import (
    CONSTANTS,
    FIRST_TABLE,
    STATUS_SHAPES,
    STATUS_WORDS,
    balance_word,
    default_row,
    default_views,
    default_word,
    emitted_row,
    narrow_runs,
    payload_layout,
    row_layout,
    scratch_words,
)
from freshviews.codegen.module import Written, compile_ahead
from freshviews.codegen.reading import enumeration, listing
from freshviews.engine.blocks import exponent
from freshviews.engine.blocks.calls import Call, call_of
from freshviews.engine.blocks.lanes import Divided, Keys
from freshviews.engine.blocks.native import group_sizes, new_table
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.string_codes import codes_of
from freshviews.engine.codes.words import address, words_at, words_in
from freshviews.engine.traces.tracing import Tracing
from freshviews.kernel.hash import heavy_light as balances
from freshviews.kernel.hash import pending, renew, table
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.image import Mapping, array_count, take_image
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.mapping import unmap
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.output.drain import any_failed
from freshviews.kernel.widen import widen_table
from freshviews.plan.explain import BalanceSize, PartSize
from freshviews.program.heavy_light import HALVES, Partition
from freshviews.program.intersections import digested
from freshviews.program.program import Program
from freshviews.program.results import Enumerated, Listed
from freshviews.program.upkeep import Evaluated
from freshviews.types.dictionary import Dictionary

_SLICE = 1 << 12
"""Updates after which a change that is emitted may be merged."""

_MERGED = 1 << 18
"""Rows of a change from which on it is merged while a batch runs."""

_NO_KEYS: Keys = MappingProxyType({})


class BlockState:
    """The native state of one block, for ``heir`` if its tables go to another program's. All memory is given back when
    the object is collected. ``keys`` are those of the relations."""

    threads = 1
    """How many threads the lanes of a trigger may run in."""
    in_lanes = False
    """Whether a trigger of the last batch ran in lanes: then an error may not be the one that one thread finds."""

    def __init__(
        self,
        program: Program,
        compiled: CompiledBlock,
        width: int,
        dictionary: Dictionary,
        heir: Program | None = None,
        keys: Keys = _NO_KEYS,
    ) -> None:
        self.program = program
        self.compiled = compiled
        self.width = width
        self._dictionary = dictionary
        self._keys = keys
        words = FIRST_TABLE + len(program.views) + len(program.long_sums) + 1 + len(program.optional)
        self._state = np.zeros(words, np.int64)
        self.status = np.zeros(STATUS_WORDS, np.int64)
        self._emitted_layout = np.array(payload_layout(program.result.emitted), np.int64)
        self._strings_named = False
        self.orders_strings = any(o.type.name == "STRING" for view in program.views for o in view.ordered)
        self.state = address(self._state)
        self._state[0] = address(self.status)
        # Groups that are enumerated have their changes emitted as payloads, of which raw rows are made.
        self._grouped = compiled.enumerate is not None and compiled.read_change is not None
        layout = row_layout(emitted_row(program))
        self.changes = buffers.new_buffer(layout.key + layout.payload if self._grouped else width)
        self.raw = buffers.new_buffer(width) if self._grouped else self.changes
        # As memoryviews, whose words are Python ints at once.
        self._headers = [words_in(buffer, 1, buffers.HEADER)[0].data for buffer in (self.changes, self.raw)]
        self._drained_at, self._drained_room, self._drained = 0, 0, words_in(0, 0, width)
        self._state[1] = self.changes
        self._digested = digested(heir or program)
        self.tables = [new_table(view, self._digested.get(view.name, frozenset())) for view in program.views]
        self._state[FIRST_TABLE : FIRST_TABLE + len(self.tables)] = self.tables
        partitions = () if program.balancing is None else program.balancing.partitions
        words = balances.FIRST_PARTITION + len(partitions) * balances.PARTITION_WORDS
        self._balance = np.zeros(words, np.int64)
        self._state[balance_word(program)] = address(self._balance)
        self._updates = self._rows_read = 0
        self._reset_balance()
        self._choice: Sequence[int] | None = None
        self._take_up(program, compiled)
        self._tracing = Tracing(program.upkeep.joins, dictionary)
        self._asleep = True
        self._mappings: list[Mapping] = []
        self.chooses = program.balancing is not None and bool(program.balancing.choices)
        compile_ahead(shrink_tables)
        self._free = weakref.finalize(self, _free, self.tables, {self.changes, self.raw}, self._mappings)
        self.reset_status()

    def _take_up(self, program: Program, compiled: CompiledBlock) -> None:
        """Run the functions of a program from now on: give them room for sums, default rows, and what they read
        besides. Nothing is assigned before all of the memory is there."""
        scratch = {word: np.zeros(program.long_sums[at], np.int64) for at, word in scratch_words(program).items()}
        defaults = [np.array(default_row(program.view(name)), np.int64) for name in default_views(program)]
        calls = [call_of(trigger) for trigger in compiled.triggers]
        divided = {
            call.place: Divided(program, compiled.source, self._keys, number, call) for number, call in enumerate(calls)
        }
        outdated = np.zeros(1, np.int64)
        self.program, self.compiled = program, compiled
        self._scratch, self._defaults, self._calls, self._divided = scratch, defaults, calls, divided
        self.outdated: Codes = outdated
        """One word, which is not 0 once other functions have taken the place of these."""
        for word, block in scratch.items():
            self._state[word] = address(block)
        for name, row in zip(default_views(program), defaults, strict=True):
            self._state[default_word(program, name)] = address(row)
        compiled.source.when_written(partial(_hold_for, weakref.ref(self), compiled))
        self.choose(self._choice)

    def widen(self, program: Program, compiled: CompiledBlock) -> bool:
        """Go on with the program with reals in the place of narrow sums, on its compiled block; False without memory:
        the state must be cleared then. The change since the last call of ``take_changes`` stays."""
        for handle, before, after in zip(self.tables, self.program.views, program.views, strict=True):
            if before.components != after.components:
                runs = np.array(narrow_runs(before.components), np.int64)
                if widen_table(handle, row_layout(after).payload, address(runs), len(runs) // 2) == 0:
                    return False
        outdated = self.outdated
        try:
            self._take_up(program, compiled)
        except MemoryError:
            return False
        outdated[0] = 1
        return True

    def _hold(self, written: Written) -> None:
        """Hold what the functions read beside tables: codes of strings, and shapes."""
        self._constants = np.array([self._dictionary.pin(text) for text in written.constants] or [0], np.int64)
        self._shapes = np.array([*chain.from_iterable(written.shapes)] or [0], np.int64)
        self._state[CONSTANTS] = address(self._constants)
        self.status[STATUS_SHAPES] = address(self._shapes)

    def close(self) -> None:
        """Give all memory back; the state must not be used any more."""
        self._free()
        self._tracing.close()

    def choose(self, numbers: Iterable[int] | None = None) -> None:
        """Run these triggers of the program from now on, and no other; None: all."""
        self._choice = None if numbers is None else tuple(numbers)
        self._by_relation: dict[str, list[Call]] = {}
        for call in self._calls if self._choice is None else (self._calls[number] for number in self._choice):
            self._by_relation.setdefault(call.relation, []).append(call)

    def calls_of(self, relation: str) -> Sequence[Call]:
        """The triggers that run for updates of a relation, in order."""
        return self._by_relation.get(relation, ())

    def reset_status(self) -> None:
        self.status[0] = 0
        self.status[1] = -1

    def _reset_balance(self) -> None:
        """The balance of empty tables."""
        if self.program.balancing is None:
            return
        partitions = self.program.balancing.partitions
        self._balance[:] = 0
        for i, partition in enumerate(partitions):
            at = balances.FIRST_PARTITION + i * balances.PARTITION_WORDS
            self._balance[at + balances.EPSILON] = mem.bits(partition.epsilon)
        balances.set_base(address(self._balance), 1, len(partitions), *HALVES)
        self._looked = 0
        self._exponents = [partition.epsilon for partition in partitions]

    def look(self, updates: int) -> None:
        """After a batch with a major rebalancing: choose the exponent for the next one."""
        self._updates += updates
        balancing = self.program.balancing
        if balancing is None or self._balance[balances.MAJOR] == self._looked:
            return
        self._looked = int(self._balance[balances.MAJOR])
        self._exponents = [mem.f64(int(self._balance[at + balances.EPSILON])) for at in self._partition_words()]
        reads = self._rows_read / max(self._updates, 1) if balancing.reads_heavy else 0.0
        degrees = [self._degrees(partition) for partition in balancing.partitions if partition.by]
        base = int(self._balance[balances.BASE])
        best = exponent.chosen(degrees, base, balancing.choices, self._exponents[0], reads)
        for at in self._partition_words():
            self._balance[at + balances.EPSILON] = mem.bits(best)
        self._updates = self._rows_read = 0

    def _partition_words(self) -> list[int]:
        """Where the words of each partition begin in the balance."""
        return list(range(balances.FIRST_PARTITION, len(self._balance), balances.PARTITION_WORDS))

    def _degrees(self, partition: Partition) -> Codes:
        """The number of rows of each value of a partition, and zeros where an index has free groups."""
        view = self.program.view(partition.view)
        handle = self.tables[[v.name for v in self.program.views].index(partition.view)]
        return group_sizes(mem.load(mem.load(handle, table.INDEX_LIST), view.place_of_index(partition.by)))

    @property
    def balance(self) -> list[int]:
        """The words of the balance (``kernel.hash.heavy_light``), for an image."""
        return [int(word) for word in self._balance]

    def want_changes(self, wanted: bool) -> None:
        """Note the change of each batch from now on, or no longer."""
        self._state[2] = int(wanted)
        self._asleep = True
        for view, handle in zip(self.program.views, self.tables, strict=True):
            if view.journal:
                # The change of an evaluated result is the difference of its contents.
                mem.store(handle, table.JOURNALING, int(wanted and not isinstance(self.program.upkeep, Evaluated)))

    def run(self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int) -> None:
        """Run the relation's triggers over ``n`` rows; columns are (address, stride in words). ``walk`` must follow."""
        if self.orders_strings:
            self._name_strings()
        self.awake()
        self.in_lanes = False
        self._run_triggers(relation, columns, m, n)
        if self.chooses:
            self.look(n)

    def walk(self) -> None:
        """Maintain the traced joins, for all rows since the last call."""
        if self.program.upkeep.joins:
            self._tracing.run(self.status, self._by_view(), self._run_triggers)

    def _by_view(self) -> dict[str, int]:
        """Tables by the names of their views."""
        return dict(zip((view.name for view in self.program.views), self.tables, strict=True))

    def _run_triggers(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int
    ) -> None:
        size = _SLICE if self._state[2] and self.compiled.enumerate is not None else n
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
        if self.threads == 1:
            call.run(self.state, call.place, n)
        elif n:
            self.compiled.source.written()  # From now on the state holds what lanes copy.
            divided = self._divided[call.place]
            self.in_lanes |= divided.run(self._state, self._scratch, n, self.threads)

    def _run_slices(self, call: Call, n: int) -> None:
        """Run a trigger over ``n`` rows, a slice at a time. What it emits is merged meanwhile, so that it takes memory
        by the change of the batch and not by the changes of its updates, which may cancel out."""
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
        """Merge what was emitted, by group."""
        if self.compiled.merge_changes is not None:
            self.compiled.merge_changes(self.state)
        else:
            buffers.consolidate_payloads(self.changes, len(self.program.free), self._emitted_layout.ctypes.data)

    def each(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int, limit: int
    ) -> Iterator[tuple[Codes, Codes, int]]:
        """Run ``n`` updates one by one, each through all triggers of the relation before the next, and hand out raw
        rows of the changes in order wherever there are ``limit`` of them or more after an update, with the number of
        the update behind each, and how many updates have run.

        What is handed out must be used up before the next is asked for: it lies in native memory. Only where changes
        are wanted, and for a result that is enumerated. Updates that are not asked for do not run.
        """
        self.awake()
        calls = self._by_relation.get(relation, ())
        for call in calls:
            call.over(columns, m)
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
        """If changes are wanted now, bring up to date what triggers maintain only then."""
        if self._asleep and self._state[2]:
            if self.compiled.awake is not None:
                self.compiled.awake(self.state)
            self._asleep = False

    def give_back(self) -> None:
        """Give memory back after removals, in a bounded step; after a version, when no reader is open."""
        shrink_tables(self.state + 8 * FIRST_TABLE, len(self.tables))

    def failed(self) -> bool:
        """Whether memory ran out since the state was made."""
        changes, raw = self._headers
        if self._tracing.lost or changes[buffers.FAILED] or raw[buffers.FAILED]:
            return True
        return bool(any_failed(self.state, FIRST_TABLE, len(self.tables)))

    def has_changes(self) -> bool:
        """Whether something of the change was not taken."""
        journaled = any(mem.load(handle, table.JOURNALED) for handle in self.tables)
        gathered = self._delta is not None and mem.load(self._delta, table.LIVE) != 0
        return journaled or gathered or mem.load(self.changes, buffers.COUNT) != 0

    @property
    def _delta(self) -> int | None:
        """The table in which the change of a result that is listed is gathered."""
        if not isinstance(self.program.result, Listed):
            return None
        return self.tables[[view.name for view in self.program.views].index(self.program.result.delta)]

    def take_changes(self) -> Codes:
        """Raw rows of the change since the last call, shape (n, width)."""
        if isinstance(self.program.result, Listed):
            self.enter_pending()
        if self.compiled.read_change is not None:
            self.compiled.read_change(self.state, self.raw)
        return self.drain()

    def forget_changes(self) -> None:
        """Have the change begin here."""
        if self._grouped:
            buffers.clear_buffer(self.changes)
            buffers.clear_buffer(self.raw)
        elif self._delta is not None:
            renew.reset_table(self._delta)
        else:
            self.take_changes()

    def drain(self) -> Codes:
        """The raw rows in the buffer, which is empty then."""
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
        if self.compiled.enumerate is not None:
            self.enter_pending()
            yield from self._enumerated(limit)
            return
        if self.compiled.read_listed is not None:
            self.enter_pending()
            yield from self._listed(limit)
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
        """Flush all deferred rows to the indexes; see ``kernel.hash.pending``. MemoryError if memory runs out; no row
        is lost then."""
        for handle in self.tables:
            if pending.enter_pending(handle, address(self.status)) < 0:
                mem.store(handle, table.FAILED, 0)
                raise MemoryError("memory ran out while rows were entered")

    def _enumerated(self, limit: int) -> Iterator[Codes]:
        """As ``rows``, of a result that is not held; columns lie one after the other in memory, but of groups rows
        do. An overflow of a group's payload is in the status word then."""
        assert self.compiled.enumerate is not None and isinstance(self.program.result, Enumerated)
        frame = np.zeros(enumeration.frame_words(self.program, self.program.result), np.int64)
        going = True
        while going:
            out = np.empty((limit, self.width) if self._grouped else (self.width, limit), np.int64)
            found = self.compiled.enumerate(self.state, address(frame), limit, address(out))
            going = bool(frame[0])
            self._rows_read += found
            yield out[:found] if self._grouped else out[:, :found].T

    def _listed(self, limit: int) -> Iterator[Codes]:
        """As ``rows``, of a result that is listed."""
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
                self._rows_read += mem.load(out, buffers.COUNT)
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
        """Whether rows are found by a key."""
        return self.compiled.read_key is not None

    def by_key(self, key: tuple[int, ...]) -> Codes:
        """Raw rows with a key."""
        assert self.compiled.read_key is not None
        self.enter_pending()
        words = np.array(key, np.int64)
        self.compiled.read_key(self.state, address(words), self.raw)
        return self.drain()

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

    def evaluate(self) -> None:
        """Recompute the views that triggers do not maintain."""
        assert self.compiled.evaluate is not None
        assert isinstance(self.program.upkeep, Evaluated)
        for view in self.program.upkeep.recomputed:
            self._empty([v.name for v in self.program.views].index(view))
        if self.orders_strings:
            self._strings_named = False
            self._name_strings()
        self.compiled.evaluate(self.state)

    def settle(self) -> None:
        """Do what the triggers have left until the end of a version."""
        assert self.compiled.end_version is not None
        if self.orders_strings:
            self._name_strings()
        self.compiled.end_version(self.state)

    def _empty(self, number: int) -> None:
        """Empty one table."""
        handle = self.tables[number]
        journaling = mem.load(handle, table.JOURNALING)
        table.free_table(handle)
        view = self.program.views[number]
        self.tables[number] = new_table(view, self._digested.get(view.name, frozenset()))
        self._state[FIRST_TABLE + number] = self.tables[number]
        mem.store(self.tables[number], table.JOURNALING, journaling)

    def clear(self) -> None:
        """Empty every table."""
        for number in range(len(self.tables)):
            self._empty(number)
        self._tracing.clear()
        self._reset_balance()
        self._asleep = True
        _unmap(self._mappings)
        buffers.clear_buffer(self.changes)
        buffers.clear_buffer(self.raw)
        self.reset_status()
        self._strings_named = False

    def exchange(self, other: BlockState) -> None:
        """Give the tables to another state of the same views, none of which is mapped, and take its own."""
        self._strings_named = other._strings_named = False
        for i, (mine, its) in enumerate(zip(self.tables, other.tables, strict=True)):
            self.tables[i], other.tables[i] = its, mine
            for state, handle in ((self, its), (other, mine)):
                state._state[FIRST_TABLE + i] = handle

    def take_image(self, kept: Sequence[Sequence[int]], mapping: Mapping, balance: Sequence[int] = ()) -> None:
        """Take over the words and arrays of the tables, and the balance, of an image; see ``kernel.image``.

        The mapping becomes the state's own.
        """
        self.clear()
        self._mappings.append(mapping)
        places = iter(mapping.places)
        for handle, words in zip(self.tables, kept, strict=True):
            own = tuple(next(places) for _ in range(array_count(handle)))
            take_image(handle, words, replace(mapping, places=own))
        self._balance[: len(balance)] = balance
        self._looked = int(self._balance[balances.MAJOR])
        self._exponents = [mem.f64(int(self._balance[at + balances.EPSILON])) for at in self._partition_words()]
        self._tracing.fill(self._by_view())
        self._asleep = True

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes by view, deferred rows as stored."""
        found = {
            view.name: (mem.load(handle, table.LIVE) + mem.load(handle, table.PENDING), table.table_bytes(handle))
            for view, handle in zip(self.program.views, self.tables, strict=True)
        }
        return found | self._tracing.sizes()

    def traces(self) -> list[str]:
        """Lines of text about the traced joins, for EXPLAIN."""
        return self._tracing.described()

    def balance_size(self) -> BalanceSize | None:
        """The parts of the views, where there are any."""
        if self.program.balancing is None:
            return None
        handles = self._by_view()
        parts = []
        for i, one in enumerate(self.program.balancing.partitions):
            at = balances.FIRST_PARTITION + i * balances.PARTITION_WORDS
            store = handles[one.view]
            parts.append(
                PartSize(
                    one.heavy,
                    one.view,
                    self._exponents[i],
                    int(self._balance[at + balances.STRICT]),
                    mem.load(handles[one.heavy], table.LIVE),
                    self._heavy_rows(one),
                    mem.load(store, table.LIVE),
                )
            )
        base, _, major, minor = (int(word) for word in self._balance[: balances.FIRST_PARTITION])
        return BalanceSize(base, major, minor, tuple(parts))

    def _heavy_rows(self, partition: Partition) -> int:
        """The rows that heavy values have in the view of a partition."""
        handles = self._by_view()
        values, store = handles[partition.heavy], handles[partition.view]
        if not partition.by:
            return int(mem.load(store, table.LIVE) * mem.load(values, table.LIVE))
        view = self.program.view(partition.view)
        index = mem.load(mem.load(store, table.INDEX_LIST), view.place_of_index(partition.by))
        return int(balances.rows_of_values(index, values))

    def _name_strings(self) -> None:
        """Give ordered indexes over strings the dictionary, where they do not have it."""
        if self._strings_named:
            return
        self._strings_named = True
        block = codes_of(self._dictionary).address
        for view, handle in zip(self.program.views, self.tables, strict=True):
            if any(order.type.name == "STRING" for order in view.ordered):
                ordered.set_strings(mem.load(mem.load(handle, table.ORDERED_LIST), 0), block)


def _hold_for(state: weakref.ref[BlockState], compiled: CompiledBlock, written: Written) -> None:
    """Have a state hold what its functions read, if it still runs them."""
    there = state()
    if there is not None and there.compiled is compiled:
        there._hold(written)


def _free(tables: list[int], emitted: set[int], mappings: list[Mapping]) -> None:
    for handle in tables:
        table.free_table(handle)
    for handle in emitted:
        buffers.free_buffer(handle)
    _unmap(mappings)


def _unmap(mappings: list[Mapping]) -> None:
    for mapping in mappings:
        unmap(mapping.low, mapping.high - mapping.low)
    mappings.clear()
