"""Frees the codes of strings that no row refers to, in steps after commits.

``docs/architecture.md`` shows why no code in use is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.marks import Marks, columns_of
from freshviews.engine.commit.string_keys import string_keys
from freshviews.engine.relations import Relations
from freshviews.kernel.hash.table import LIVE, PENDING, USED
from freshviews.kernel.memory.mem import load
from freshviews.program.program import Program
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary

LEAST = 4096
"""Least strings added, or rows deleted, for a collection to begin."""
ROWS_PER_STRING = 16
"""Stored rows that postpone a collection by one added string, because each row must be marked."""
SLICE = 4096
"""Rows that are marked at a time."""
SWEPT = 4096
"""Most codes that are swept at a time."""
LOOKED_AT = 8
"""Codes swept in about the time of marking a row."""
FREED = 16
"""Rows marked in about the time of freeing a code and its memory."""
PACKED = 8
"""Rows marked in about the time of moving a string."""
URGENT = 1 << 15
"""Least work of a step of an urgent collection, in rows marked: a fraction of a millisecond."""
LONGEST = 1 << 18
"""Most work of a step after a commit of few rows: some milliseconds. The next steps do the rest."""
LOOKS = 16
"""Checks for an urgent collection while as many strings are added, or rows deleted, as there are strings."""

StringKeys = Mapping[str, tuple[int, ...]]
"""By view, the positions of its key columns that may hold strings."""


@dataclass(frozen=True)
class Scan:
    """A table to mark: its handle, which may change; the number of columns that may hold strings; and their codes, in a
    range of rows."""

    handle: Callable[[], int]
    columns: int
    codes: Callable[[int, int], Iterator[Codes]]


class Collection:
    """The collections of one dictionary. Call ``step`` after each commit, with the lock held.

    ``least``: as LEAST; tests use small values.

    A collection marks the codes in use, frees all other codes, and releases their memory
    (``kernel.codes.string_heap``). It begins when the number of strings added plus the number of rows deleted since the
    last collection is at least half the number of all strings. It runs in steps after commits. The work of a step is
    proportional to the strings and deletes of recent commits, so a collection ends before the next would begin.

    A collection is *urgent* if there are twice as many strings as stored rows can refer to, for example after most rows
    were deleted. An urgent collection begins earlier, and each of its steps does at least ``URGENT`` work.

    These codes are marked (`docs/architecture.md`, Codes, shows that no code in use is freed):

    - stored tables and views of programs: the columns that may hold strings (``engine.commit.string_keys``), but not
      payloads, because every code in a payload is also in a key;
    - rows that Python stores (windows of trusted tables, recomputed views), and constants, which are pinned;
    - batches in use (``engine.codes.marks.keep_strings``): open batches, batches in readers, changes that a subscriber
      keeps;
    - while the collection runs: every batch that a table or a view takes, and every string that a function returns.

    Strings that functions compute for a reader are in no store. So a reader of a view with string functions takes its
    remaining rows into memory before a collection begins. Memos of string functions are keyed by code, and cleared when
    codes are freed (``Dictionary.freed``).
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
        """The string keys of a program, by its identity; the program is stored too, to keep the identity unique."""
        self.paused = False
        """Set while encoded rows of a batch are in no store: a signal handler may commit another batch meanwhile."""
        self.ended = 0
        """The number of collections that have ended."""

    def restart(self) -> None:
        """Begin again soon, because tables or views have changed."""
        self._work = self._dictionary.mark = None
        self._known = self._deleted = self._unseen = 0
        self._awaited = self._least
        self._keys = {}

    def is_due(self, deleted: int) -> bool:
        """Count a commit with ``deleted`` deleted rows; returns whether ``step`` has work."""
        self._deleted += deleted
        return self._dictionary.strings() - self._known + self._deleted >= self._awaited

    def step(self, relations: Relations, deleted: int) -> None:
        """Do the work that is due after a commit; ``deleted``: its deleted rows."""
        if not self.is_due(deleted) or self.paused:
            return
        strings = self._dictionary.strings()
        if self._work is None and 2 * strings < self._least:
            # Too few strings, even if all are new and each counts a delete.
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
        """Begin a collection if enough strings are new, compared with the rows to mark."""
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
        # Deletes count at most as many as the strings that may have become unused with them.
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
        # After a commit of many rows do at least half of its part, or strings would be added faster than freed.
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
        # Strings of rows that were deleted meanwhile were marked.
        self._awaited = self._look() if self._unseen < self._look() else 0

    def _look(self) -> int:
        """Strings added, or rows deleted, until the next check whether a collection begins."""
        return max(self._least, self._dictionary.strings() // LOOKS)

    def _collect(self, relations: Relations, tables: list[Scan]) -> Iterator[int]:
        """One collection; yields the work done since the last time, in rows marked."""
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
        """The native tables whose rows have strings."""
        for table in relations.tables.values():
            if table.stored is not None:
                strings = [column.name for column in table.definition.columns if column.type.is_text]
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
    """The string columns of rows that Python stores."""
    for table in relations.tables.values():
        if table.held is not None and table.stored is None:
            for i, column in enumerate(table.definition.columns):
                if column.type.is_text:
                    yield table.held.rows[:, i]
    for view in relations.views.values():
        yield from view.maintained.stored_strings()
