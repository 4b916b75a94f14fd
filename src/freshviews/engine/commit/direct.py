"""Commits a few rows of one table in one call of compiled code.

``engine.commit.commit.General`` commits all other batches, such as those of tables with foreign keys or windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from struct import Struct
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from freshviews.codegen.layout import FIRST_TABLE
from freshviews.codegen.module import compile_ahead
from freshviews.engine.codes.code_batch import CodeBatch, Codes, address_of
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import mark_columns
from freshviews.engine.codes.words import address
from freshviews.engine.commit.by_key import BY_KEY, ByKey
from freshviews.engine.commit.commit import Refused, ViewChanges, backfill_after_loss
from freshviews.engine.commit.records import are_words, record_of, words_record
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.change_reader import ChangeReader
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.view_state import ViewState
from freshviews.kernel import direct as kernel
from freshviews.kernel.machine.functions import direct
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.kernel.memory.triggers import entry_of
from freshviews.types import NULL, SqlType

FEW = 16
"""Most rows of Python values in a plan."""

SMALL = 4096
"""Most rows of a record batch that go the direct way: their changes need no slices."""

_AT = 8 * kernel.DATA
_HEAD = 7
"""Words between DATA and the codes."""

_KERNELS = (kernel.commit_rows, kernel.apply_rows, kernel.apply_and_read, kernel.settle_rows, kernel.take_back)


@cache
def _pack_of(words: int) -> Callable[..., None]:
    """A function that writes ``words`` words into a buffer at an offset."""
    return Struct(f"{words}q").pack_into


def _ends_of(types: Sequence[SqlType]) -> tuple[int, int]:
    """The least and the greatest integer that is its own code in every type; 1 and 0 if there is none."""
    if not all(kind.is_integer for kind in types):
        return 1, 0
    bounds = [kind.bounds for kind in types]
    return max(NULL + 1, *(least for least, _ in bounds)), min(greatest for _, greatest in bounds)


class Direct:
    """The direct way into one table: ``put`` a batch, then ``commit`` it in one call, or by the steps of
    ``engine.commit.commit.commit``.

    ``version``: the word that counts versions. ``compiled``: False if machine code is still missing, so that the way
    cannot be used.

    ``Direct`` prepares what a commit to one table needs: encoders, a block of words for a few rows, and the addresses
    for the call (``kernel.direct``). It commits the whole batch, or changes nothing and raises Refused. The general way
    (``engine.commit.commit``) then takes the refused batch, or raises the error.

    A batch takes the general way from the start if it needs anything besides row checks and triggers. Examples are
    windows, foreign keys, views of views, views that need work after the triggers (traced or recomputed), string
    functions, and multiplicities of 0.
    """

    def __init__(self, table: TableState, relations: Relations, version: Codes) -> None:
        self.table = table
        self.views = relations.downstream[table]
        self.seconds = 0.0
        self.outdated = False
        """Whether a view has got other functions, so that every batch is refused."""
        self._relations = relations
        self._dictionary = table.decoder.dictionary
        self._result = kernel.DONE
        """Why ``commit`` refused the batch, for ``add`` to raise."""
        self._encoders = table.encoder.encoders
        self._kept = [place for place, _ in table.encoder.kept]
        self._names = [name for _, name in table.encoder.kept]
        width = self._width = len(self._kept)
        self._whole = width == len(self._encoders)
        self._signed_encoders = [*self._encoders, table.encoder.multiplicity]
        self._signed_kept = [*self._kept, len(self._encoders)]
        self._ends = _ends_of([column.type for column in table.definition.columns]) if self._whole else (1, 0)
        """Integers between these two are codes of every column."""
        self._pack_row, self._pack_head = _pack_of(_HEAD + width), _pack_of(_HEAD)
        self._codes: Codes | None = None
        self._signs: Codes | None = None
        self._deleted = 0
        """The codes of a record batch and its multiplicities, if any; for tuples both lie in the plan."""
        self.strings = any(table.definition.columns[place].type.is_text for place in self._kept)
        self.one_call = not PURE_PYTHON
        """Whether one call of compiled code makes all changes of tables and views. Strings enter the dictionary before;
        if the batch is not committed, a collection removes them."""
        blocks = [block for view in self.views for block in view.maintained.blocks if table.name in block.needed]
        self._states = [block.state for block in blocks]
        self._outdated = [state.outdated for state in self._states]
        calls = [call.run for state in self._states for call in state.calls_of(table.name)]
        self.compiled = compile_ahead(*_KERNELS, *calls)
        if not self.compiled:
            return
        made = map(direct, _KERNELS)
        self._commit_rows, self._apply_rows, self._apply_and_read, self._settle_rows, self._take_back = made
        self._wanting = [False] * len(self.views)
        """By view, whether it wanted its change when the readers were made."""
        self._readers: list[tuple[ViewState, ChangeReader]] = []
        self._reads: Codes = np.zeros(0, np.int64)
        self._looks = [state.after for state in self._states if state.parts]
        self._plan = self._words(width, version)
        self._memory = memoryview(self._plan.data).cast("B")
        self._header = memoryview(self._plan.data)
        self._address = address(self._plan)
        self._room = self._address + 8 * kernel.HEADER
        self._sign = self._address + 8 * kernel.SIGN
        self._signs_at = self._room + 8 * width
        self.version = memoryview(version.data)

    def _words(self, width: int, version: Codes) -> Codes:
        """The plan; see ``kernel.direct``."""
        table = self.table
        places = {name: i for i, name in enumerate(self._names)}
        relations: list[Relation] = [table, *self.views]
        watched = [*(one.readers.word for one in relations), *map(address, self._outdated)]
        columns: list[tuple[int, int]] = []
        calls: list[tuple[int, int, int, int]] = []
        header = np.zeros(kernel.HEADER, np.int64)
        keys: list[tuple[int, int]] = []
        if table.stored is not None:
            header[kernel.BASE], header[kernel.PLACES] = table.stored.addresses
            columns += [
                (table.stored.addresses[1] + 16 * i, places[name]) for i, name in enumerate(table.stored.columns)
            ]
            keys = [(key.handle, key.words) for key in table.stored.keys]
        for number, state in enumerate(self._states):
            for call in state.calls_of(table.name):
                calls.append((entry_of(call.run), state.state, call.place, number))
                columns += [(call.place + 16 * i, places[name]) for i, name in enumerate(call.columns, 1)]
        blocks = [(state.state, len(state.tables), state.changes, state.raw) for state in self._states]
        counters = [address(one.counted) for one in relations]
        counts = (len(watched), len(columns), len(keys), len(calls), len(blocks), len(counters))
        header[kernel.WATCHED : kernel.COUNTERS + 1] = counts
        header[kernel.VERSION] = address(version)
        header[kernel.FIRST_TABLE] = FIRST_TABLE
        grouped: list[tuple[int, ...]] = [*columns, *keys, *calls, *blocks]
        entries = [*watched, *(word for entry in grouped for word in entry), *counters]
        plan = np.concatenate([header, np.zeros(FEW * (width + 1), np.int64), np.array(entries, np.int64)])
        plan[kernel.ENTRIES] = address(plan) + 8 * (kernel.HEADER + FEW * (width + 1))
        return plan

    def put(self, rows: list[Any] | pa.RecordBatch | ByKey, sign: int) -> bool:
        """Encode rows as the next batch, ``sign`` as of ``TableEncoder.encode``. False if the general way must take
        them."""
        if type(rows) is not list:
            return self._put_by_key(rows) if isinstance(rows, BY_KEY) else self._put_arrow(rows, sign)
        count = len(rows)
        width = self._width + (sign == 0)
        # Row after row; a multiplicity of its own follows the codes of a row.
        words = [self._room, 1, width, sign, count]
        words += (self._sign, 0) if sign else (self._signs_at, width)
        self._deleted = count if sign < 0 else 0
        try:
            if count == 1 and self._whole:
                if type(row := rows[0]) is not tuple:
                    row = self.table.encoder.as_tuple(0, row, sign)
                encoders = self._encoders if sign else self._signed_encoders
                if len(row) != len(encoders):
                    return False
                for encode, value in zip(encoders, row):  # noqa: B905  # strict takes longer than a row.
                    words.append(encode(value))
            else:
                words += self._integers(rows, width) or self._codes_of(rows, sign)
        except (TypeError, ValueError, OverflowError):
            return False
        if sign == 0:
            signs = words[_HEAD + self._width :: width]
            if 0 in signs:
                return False  # A multiplicity of 0 is no change.
            self._deleted = len([m for m in signs if m < 0])  # A generator takes twice as long.
        self._codes = self._signs = None
        (self._pack_row if sign and count == 1 else _pack_of(len(words)))(self._memory, _AT, *words)
        return True

    def _put_by_key(self, changes: ByKey) -> bool:
        """As ``put``, of changes by key."""
        try:
            words = changes.signed_words(self.table)
        except (TypeError, ValueError, OverflowError):
            return False
        if words is None:
            return False
        self._codes = self._signs = None
        width = self._width + 1
        self._deleted = words[self._width :: width].count(-1)
        head = (self._room, 1, width, 0, len(words) // width, self._signs_at, width)
        _pack_of(_HEAD + len(words))(self._memory, _AT, *head, *words)
        return True

    def _integers(self, rows: list[Any], width: int) -> list[int] | None:
        """The values of rows of integers, which are their own codes; None if one is not an integer, or a column not
        wanted."""
        least, greatest = self._ends
        if least > greatest or set(map(type, rows)) != {tuple} or set(map(len, rows)) != {width}:
            return None
        found = [*chain.from_iterable(rows)]
        if set(map(type, found)) != {int} or min(found) < least or max(found) > greatest:
            return None
        return found

    def _codes_of(self, rows: list[Any], sign: int) -> list[int]:
        """The codes of rows, one by one. Raises ValueError, BatchError."""
        encoders, kept = (self._encoders, self._kept) if sign else (self._signed_encoders, self._signed_kept)
        found: list[int] = []
        for number, row in enumerate(rows):
            if type(row) is not tuple:
                row = self.table.encoder.as_tuple(number, row, sign)
            codes = [encode(value) for encode, value in zip(encoders, row, strict=True)]
            found += [codes[place] for place in kept]
        return found

    def _put_arrow(self, rows: pa.RecordBatch, sign: int) -> bool:
        try:
            found = self.table.encoder.codes_of(rows, sign == 0)
        except MemoryError:
            found = None
        if found is None:
            return False
        codes, multiplicities = found
        count = codes.shape[1]
        signs, step = self._sign, 0
        if multiplicities is not None:
            if not multiplicities.all():
                return False
            signs, step = address_of(multiplicities)
        self._codes, self._signs = codes[: len(self._kept)], multiplicities
        self._deleted = count if sign < 0 else 0
        self._pack_head(self._memory, _AT, address_of(codes)[0], count, 1, sign, count, signs, step)
        return True

    @property
    def is_read(self) -> bool:
        """Whether the change of a view is read. (``any`` over a generator takes three times as long.)"""
        for view in self.views:  # noqa: SIM110
            if view.wants_change:
                return True
        return False

    def commit(self) -> int | None:
        """Take all steps in one call; returns the version, or None if the batch is refused: then ``add`` raises why."""
        start = time.perf_counter()
        result = self._commit_rows(self._address)
        self.seconds += time.perf_counter() - start
        if result != kernel.DONE:
            self._result = result
            return None
        for look in self._looks:
            look(self._header[kernel.N])
        return self.version[0]

    def add(self) -> None:
        if self._result != kernel.DONE:
            result, self._result = self._result, kernel.DONE
            self._refuse(result)
        if self._dictionary.mark is not None:
            mark_columns(self._batch(), self.table.decoder.strings, self._dictionary)
        self._start = time.perf_counter()
        self._reading = self._change_readers()
        if self._reading is None:
            for state in self._states:
                state.awake()
            result = self._apply_rows(self._address)
        else:
            result = self._apply_and_read(self._address)
        if result == kernel.UNREAD:
            result = self._undo()
        if result != kernel.DONE:
            self._refuse(result)

    def changes(self) -> ViewChanges:
        reported: ViewChanges = []
        if self._reading is None:
            for view in self.views:
                if view.wants_change:
                    change = view.maintained.take_change()
                    if len(change) and view.subscriptions:
                        reported.append((view, change))
        else:
            for view, reader in self._reading:
                rows = reader.rows()
                if len(rows) and view.subscriptions:
                    reported.append((view, view.maintained.batch_of(rows)))
        return reported

    def record(self) -> tuple[int, bytes]:
        multiplicities = self._multiplicities
        if are_words(self.table, len(multiplicities)):
            return words_record(self.table, self._columns(), multiplicities)
        return record_of(((self.table, Encoded(self._batch())),))

    def take_back(self, error: BaseException) -> None:
        result = self._undo()
        if result == kernel.LOST or isinstance(error, Failed | MemoryError):
            self._refuse(result)

    def settle(self) -> None:
        self._settle_rows(self._address)
        self.seconds += time.perf_counter() - self._start
        for look in self._looks:
            look(self._header[kernel.N])

    def _undo(self) -> int:
        """Undo the batch; returns REFUSED or LOST."""
        result: int = self._take_back(self._address)
        for view in self.views:
            view.maintained.discard_change()
        return result

    def _refuse(self, result: int) -> NoReturn:
        self.outdated = any(word[0] for word in self._outdated)
        raise backfill_after_loss(self.views, self._relations) if result == kernel.LOST else Refused

    def _change_readers(self) -> list[tuple[ViewState, ChangeReader]] | None:
        """The compiled readers of the changes that views want; None if one of these has no reader."""
        for view, wanted in zip(self.views, self._wanting, strict=True):
            if view.wants_change is not wanted:
                break
        else:
            return self._readers
        return self._readers if self._make_readers() else None

    def _make_readers(self) -> bool:
        """Make the readers of the changes that are wanted now; False if a view has no reader."""
        wanted = [view for view in self.views if view.wants_change]
        readers = [(view, reader) for view in wanted if (reader := view.maintained.change_reader()) is not None]
        if len(readers) < len(wanted):
            return False
        self._wanting, self._readers = [view.wants_change for view in self.views], readers
        self._reads = np.array([reader.entry for _, reader in readers], np.int64)
        self._header[kernel.READS], self._header[kernel.READ_COUNT] = address(self._reads), len(readers)
        return True

    @property
    def deleted(self) -> int:
        """The number of rows that the batch deletes."""
        if self._signs is not None:
            return int(np.count_nonzero(self._signs < 0))
        return self._deleted

    def _columns(self) -> list[list[int]]:
        """The codes of each wanted column of the batch."""
        if self._codes is not None:
            columns: list[list[int]] = self._codes.tolist()
            return columns
        first = range(kernel.HEADER, kernel.HEADER + self._width)
        return [self._strided(place) for place in first]

    @property
    def _multiplicities(self) -> list[int]:
        """The multiplicities of the batch."""
        if not self._header[kernel.SIGN_STEP]:
            return [self._header[kernel.SIGN]] * self._header[kernel.N]
        if self._signs is not None:
            found: list[int] = self._signs.tolist()
            return found
        return self._strided(kernel.HEADER + self._width)

    def _strided(self, first: int) -> list[int]:
        """One word of each row in the plan; ``first``: its place in the first row."""
        step = self._header[kernel.ROW_STEP]
        return self._header[first : first + step * self._header[kernel.N] : step].tolist()

    def _batch(self) -> CodeBatch:
        """A copy of the batch, with the wanted columns."""
        codes = self._codes
        if codes is None:
            codes = np.array(self._columns(), np.int64)
        columns = {name: codes[i] for i, name in enumerate(self._names)}
        signs = self._multiplicities if self._signs is None else self._signs
        return CodeBatch(self.table.name, columns, np.array(signs, np.int64))

    def share_seconds(self) -> None:
        """Add the seconds so far to the table and its views, in equal parts."""
        share, self.seconds = self.seconds / (1 + len(self.views)), 0.0
        self.table.seconds += share
        for view in self.views:
            view.seconds += share


def direct_of(table: TableState, relations: Relations, version: Codes) -> Direct | None:
    """The direct way into a table; None if every batch must take the general way."""
    views = relations.downstream[table]
    if table.follows_time or table.links or any(view.dependents for view in views):
        return None
    for view in views:
        blocks = view.maintained.blocks
        if view.maintained.may_be_spoiled:
            return None
        if not view.maintained.by_triggers or any(table.name in b.evaluators for b in blocks):
            return None
    return Direct(table, relations, version)
