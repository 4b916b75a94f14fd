"""Strings that nothing names any more leave the dictionary, and their codes are used again.

A collection marks the codes in use, frees the others, and gives their memory back (``kernel.codes.string_heap``). It
begins when half as many strings were added, or rows deleted, as there are strings, and runs in steps after commits.
The work of a step is in proportion to what the commits since the last one added and deleted, so a commit waits for a
part of its own cost, and the collection ends before as many strings are added as began it.

A collection is *urgent* if there are twice as many strings as stored rows can name: after most rows were deleted. It
begins earlier, and a step does URGENT work at least, so that it ends even if few rows come and go from then on.

**What is marked.** All rows of stored tables and of the views of programs, in the columns that may hold strings
(``program.string_keys``); rows that Python holds (windows of trusted tables, recomputed views); constants, which are
pinned; and batches that are read or committed later (``engine.codes.marks.held``): open batches, what readers have
returned or taken into memory, changes that a subscriber keeps. A payload holds no other code: MIN and MAX repeat a key
of a stored row. Structures beside these compare codes as numbers, or follow the rows.

**Why no code in use is freed.** While a collection runs, every batch that a table or a view takes is marked, deletes
too, as is every string that a function returns. Let a row of some store hold a code when the marking ends. The code
comes from a row of an input of the view, or from a string function of one. If that row came or went since the marking
began, its batch was marked. Otherwise it was there all the time, and so was the stored row by which the program knows
it: only updates with the same values change a row that stores an input, as the program needs it for every later update.
That row was met: stores are scanned from their last row to their first, and what moves rows moves them to lower numbers
(``kernel.hash.pending``, ``renew``, ``shrink``), except for the rows of a batch. The same holds until the last code is
freed, as batches are marked until then. What is held was in a store, and thus marked, when it was read; what is held
when a collection begins is marked first. Strings that functions compute for a reader are in no store: so a reader that
may have some, not returned yet, takes its rows into memory before a collection begins.

**What remembers codes.** Results of string functions are remembered by code, and forgotten when codes are freed
(``Dictionary.freed``). The log has strings, no codes. An image has the dictionary with its free codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.marks import Marks, columns_of
from freshviews.engine.commit.string_keys import string_keys
from freshviews.engine.relations import Relations
from freshviews.kernel.hash.table import LIVE, PENDING, USED
from freshviews.kernel.memory.mem import load
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary

LEAST = 4096
"""Strings added, or rows deleted, before which no collection begins."""
ROWS_PER_STRING = 16
"""Stored rows for which one string more is awaited, as each row is marked."""
SLICE = 4096
"""Rows that are marked at a time."""
SWEPT = 4096
"""Codes that are looked at or freed at a time, at most."""
LOOKED_AT = 8
"""Codes that are looked at in about the time in which a row is marked."""
FREED = 16
"""Rows that are marked in about the time in which a code is freed, and its memory given back."""
PACKED = 8
"""Rows that are marked in about the time in which a string is moved."""
URGENT = 1 << 15
"""Least work of a step of an urgent collection, in rows marked: a fraction of a millisecond."""
LONGEST = 1 << 18
"""Most work of a step after a commit of few rows: some milliseconds. What is left is due in the next steps."""
LOOKS = 16
"""How often it is looked whether a collection is urgent, while as many strings come or rows go as there are strings."""

StringKeys = Mapping[str, tuple[int, ...]]
"""By view, the positions of its key that may hold strings."""


@dataclass(frozen=True)
class Scan:
    """A table to mark: its handle, which may change; how many columns may hold strings; the codes of each of these, in
    the rows from one number to before another."""

    handle: Callable[[], int]
    columns: int
    codes: Callable[[int, int], Iterator[Codes]]


class Collection:
    """The collections of one dictionary. Call ``step`` after each commit, with the lock held.

    ``least``: as LEAST; for tests, which want small steps as well.
    """

    def __init__(self, dictionary: Dictionary, least: int = LEAST) -> None:
        self._dictionary = dictionary
        self._least = self._awaited = least
        self._slice, self._swept = min(SLICE, least), min(SWEPT, least)
        self._known = self._deleted = self._unseen = 0
        self._due = self._rate = 0.0
        self._urgent = False
        self._work: Iterator[int] | None = None
        self._keys: dict[int, tuple[Program, StringKeys]] = {}
        """Where the views of a program have strings, by the identity of the program, which is kept with it."""
        self.paused = False
        """While rows of a batch are encoded and in no store: a signal handler may commit another batch meanwhile."""
        self.ended = 0
        """The number of collections that have ended."""

    def restart(self) -> None:
        """Begin again soon, as there are other tables and views."""
        self._work = self._dictionary.mark = None
        self._known = self._deleted = self._unseen = 0
        self._awaited = self._least
        self._keys = {}

    def is_due(self, deleted: int) -> bool:
        """Count a commit; whether ``step`` has work. ``deleted``: the number of rows that the commit deleted."""
        self._deleted += deleted
        return self._dictionary.strings() - self._known + self._deleted >= self._awaited

    def step(self, relations: Relations, deleted: int) -> None:
        """Go on after a commit. ``deleted``: the number of rows that it deleted."""
        if not self.is_due(deleted) or self.paused:
            return
        strings = self._dictionary.strings()
        if self._work is None and 2 * strings < self._least:
            # Too few, even if all are new and a delete counts for each.
            self._deleted = min(self._deleted, strings)
            self._awaited = self._least
            return
        try:
            if self._work is None:
                self._begin(relations)
            else:
                self._go_on(strings - self._known + self._deleted)
        except MemoryError:
            self._end()

    def _begin(self, relations: Relations) -> None:
        """Begin a collection if enough strings are new for all that there is to mark."""
        dictionary = self._dictionary
        strings = dictionary.strings()
        tables = list(self._tables(relations))
        rows = sum(load(table.handle(), USED) for table in tables)
        awaited = max(self._least, strings // 2, rows // ROWS_PER_STRING)
        if strings > self._least:
            named = len(dictionary.pinned) + sum(map(len, _held_columns(relations)))
            for table in tables:
                named += (load(table.handle(), LIVE) + load(table.handle(), PENDING)) * table.columns
            self._urgent = strings > 2 * named + self._least
            if self._urgent:
                awaited = max(self._least, strings // LOOKS)
                self._deleted += self._unseen
        # Deletes count for no more than the strings that may have gone with them.
        self._deleted = min(self._deleted, strings)
        activity = strings - self._known + self._deleted
        if activity < awaited:
            self._awaited = min(awaited, activity + self._look())
            return
        work = rows + len(dictionary) // LOOKED_AT + (FREED + PACKED) * strings
        self._rate = 2 * work / max(awaited, strings // 2) + 1
        self._due = 0.0
        self._deleted = self._unseen = 0
        for view in relations.views.values():
            if view.maintained.has_host_output:
                view.readers.drain()
        self._work = self._collect(relations, tables)
        self._go_on(0)

    def _go_on(self, activity: int) -> None:
        assert self._work is not None
        self._unseen += self._deleted
        self._due += max(activity * self._rate, URGENT if self._urgent else 0)
        # After a commit of many rows at least half of its own part: less would let strings come faster than they go.
        left = max(LONGEST, activity * self._rate / 2)
        while self._due >= 0 and left >= 0:
            done = next(self._work, 0)
            if done == 0:
                self._end()
                self.ended += 1
                return
            self._due -= done
            left -= done
        self._known, self._deleted = self._dictionary.strings(), 0
        self._awaited = 0 if self._urgent or self._due >= 0 else max(int(self._slice / self._rate), 1)

    def _end(self) -> None:
        self._work = self._dictionary.mark = None
        self._known, self._deleted = self._dictionary.strings(), 0
        # Of what was deleted meanwhile, strings were marked.
        self._awaited = self._look() if self._unseen < self._look() else 0

    def _look(self) -> int:
        """How many strings come or rows go before it is looked again whether a collection begins."""
        return max(self._least, self._dictionary.strings() // LOOKS)

    def _collect(self, relations: Relations, tables: list[Scan]) -> Iterator[int]:
        """One collection; it yields how much it has done since the last time, in rows marked."""
        dictionary = self._dictionary
        marks = Marks(dictionary)
        dictionary.mark = marks.words
        marks.words(np.array(list(dictionary.pinned), np.int64))
        for batch in list(dictionary.held):
            for column in batch.columns.values():
                marks.words(column)
        for column in _held_columns(relations):
            marks.words(column)
        yield 1
        for table in tables:
            end = load(table.handle(), USED)
            while end > 0:
                first = max(end - self._slice, 0)
                for codes in table.codes(first, min(end, load(table.handle(), USED))):
                    marks.words(codes)
                yield end - first
                end = first
        for first in range(0, marks.size, self._swept):
            yield 1 + self._swept // LOOKED_AT + FREED * marks.free(dictionary, first, first + self._swept)
        dictionary.mark = None
        while (moved := dictionary.give_back(self._swept)) > 0:
            yield 1 + PACKED * moved

    def _tables(self, relations: Relations) -> Iterator[Scan]:
        """The tables of words whose rows have strings."""
        for table in relations.tables.values():
            if table.stored is not None:
                strings = [column.name for column in table.definition.columns if column.type.name == "STRING"]
                if strings:
                    handle = partial(table.stored.handles.__getitem__, 0)
                    yield Scan(handle, len(strings), partial(table.stored.codes_between, columns=strings))
        for view in relations.views.values():
            for block in view.maintained.blocks:
                keys = self._keys_of(block.state.program)
                for number, one in enumerate(block.state.program.views):
                    if keys[one.name]:
                        handle = partial(block.state.tables.__getitem__, number)
                        places = keys[one.name]
                        yield Scan(handle, len(places), partial(_codes_between, handle, places))

    def _keys_of(self, program: Program) -> StringKeys:
        if id(program) not in self._keys:
            self._keys[id(program)] = program, string_keys(program)
        return self._keys[id(program)][1]


def _codes_between(table: Callable[[], int], positions: Sequence[int], first: int, end: int) -> Iterator[Codes]:
    return columns_of(table(), first, end, positions)


def _held_columns(relations: Relations) -> Iterator[Codes]:
    """Columns of strings of rows that Python holds."""
    for table in relations.tables.values():
        if table.held is not None and table.stored is None:
            for i, column in enumerate(table.definition.columns):
                if column.type.name == "STRING":
                    yield table.held.rows[:, i]
    for view in relations.views.values():
        yield from view.maintained.stored_strings()
