"""Stores the rows of a base table with their multiplicities. Counts rows by the values of keys, to check the keys."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from struct import Struct

import numpy as np

from freshviews.catalog.definitions import TableDef
from freshviews.codegen.module import compile_ahead
from freshviews.engine.codes.code_batch import CodeBatch, Codes, address_of
from freshviews.engine.codes.words import words_in
from freshviews.engine.tables.packing import Packing, packing_of, unpacked
from freshviews.kernel.hash import base_reads
from freshviews.kernel.hash import base_store as kernel
from freshviews.kernel.hash.table import ROWS, free_table, new_table
from freshviews.kernel.image import Mapping, array_count, take_image
from freshviews.kernel.machine.functions import direct
from freshviews.kernel.machine.interruption import INTERRUPTION, PIECE
from freshviews.kernel.memory.mapping import unmap
from freshviews.kernel.memory.mem import allocate, load, release
from freshviews.records import dataclass


@dataclass(frozen=True)
class Side:
    """Rows counted by the values of some columns; rows with a NULL there do not count."""

    columns: tuple[str, ...]
    handle: int
    positions: Codes
    words: int
    """Words of a key in the table ``handle``."""
    packing: Packing
    """How keys are packed there, as the first columns."""

    def codes_at(self, row: int) -> tuple[int, ...]:
        """The codes of the columns in a row of the table ``handle``, by its address."""
        return self.packing.codes_at(row, len(self.columns))


@dataclass(frozen=True)
class Stopped:
    """Why ``add`` stopped: the position of the row in its batch, and whether memory ran out there.

    Otherwise the multiplicity of the row left int64.
    """

    row: int
    out_of_memory: bool


class BaseTable:
    """The stored rows of a table, all columns, as codes.

    ``add`` adds a batch provisionally. ``settle`` makes it permanent; ``undo`` undoes all batches since the last
    ``settle``. ``missing`` and ``duplicate`` check deletes and keys after the whole batch is added, so they apply to
    its net effect.
    """

    def __init__(self, definition: TableDef) -> None:
        self.name = definition.name
        primary = definition.keys[0] if definition.has_primary_key else ()
        names = [column.name for column in definition.columns]
        self.columns = tuple(sorted(names, key=lambda name: name not in primary))
        """The columns in the order of a stored row: those of the primary key first."""
        self._order = [(name, self.columns.index(name)) for name in names]
        self._in_order = all(place == number for number, (_, place) in enumerate(self._order))
        words = len(self.columns)
        self._words = words
        by_name = {column.name: column for column in definition.columns}
        self.packing = packing_of([by_name[name] for name in self.columns], len(primary))
        self.calls: list[Callable[..., int | None]] = [kernel.add_rows, kernel.settle_base, base_reads.missing]
        """The kernels that batches call."""
        self.calls += [base_reads.duplicate] if definition.keys else []
        self.calls += [kernel.undo_base, *((base_reads.orphan, base_reads.deserted) if definition.foreign_keys else ())]
        compile_ahead(*self.calls)
        self._rows = new_table(self.packing.words, 1, 0, 0, 0)
        kernel.start_journal(self._rows)
        whole_rows = not any(column.nullable for column in definition.columns)
        counted: list[Side] = []
        keys: list[Side] = []
        for key in definition.keys:
            # The table of rows also serves as the side of the primary key, and of a key of all columns without NULLs.
            if key is primary or (whole_rows and set(key) == set(self.columns)):
                stored = self.packing.key_words if key is primary else self.packing.words
                positions = np.arange(len(key), dtype=np.int64)
                keys.append(Side(self.columns[: len(key)], self._rows, positions, stored, self.packing))
            else:
                keys.append(self._side(key, counted))
        self.keys = tuple(keys)
        self.primary_key = keys[0] if primary else None
        self.key_places = tuple(names.index(name) for name in self.columns[: len(primary)])
        """Positions of the primary key's columns in the table, in the order of ``primary_key``."""
        self.key_set = frozenset(self.key_places)
        if primary:
            kernel.hash_first(self._rows, self.packing.key_words)
        find = base_reads.row_of_key
        self._find: Callable[[int, int, int], int] = direct(find) if primary and compile_ahead(find) else find
        self.foreign = tuple(self._side(key.columns, counted) for key in definition.foreign_keys)
        if keys or counted:
            kernel.enter_at_once(self._rows)
        self._scratch = allocate(words + kernel.AHEAD * (words + self.packing.words + 2 + 2 * len(counted)))
        width = kernel.SIDE_POSITIONS + words
        spec = np.zeros(kernel.FIRST_SIDE + len(counted) * width, np.int64)
        spec[kernel.ROW_TABLE] = self._rows
        spec[kernel.COLUMNS] = words
        spec[kernel.SIDES] = len(counted)
        spec[kernel.SCRATCH] = self._scratch
        spec[kernel.PACKING] = self.packing.address
        for i, side in enumerate(counted):
            at = kernel.FIRST_SIDE + i * width
            spec[at + kernel.SIDE_TABLE] = side.handle
            spec[at + kernel.SIDE_COUNT] = len(side.positions)
            spec[at + kernel.SIDE_POSITIONS : at + kernel.SIDE_POSITIONS + len(side.positions)] = side.positions
        self._spec_words = spec
        self._spec = address_of(spec)[0]
        self._places = np.zeros(2 * words, np.int64)
        self._places_address = address_of(self._places)[0]
        around = np.zeros(4 * len(primary) + words, np.int64)
        self._room, self._room_address = memoryview(around.data), address_of(around)[0]
        """Where ``row_of`` has the key and finds the row."""
        self._read_row = partial(Struct(f"{words}q").unpack_from, self._room, 32 * len(primary))
        self.addresses = (self._spec, self._places_address)
        """Addresses of its spec and of the block of a batch: see ``kernel.direct``."""
        self.handles = (self._rows, *(side.handle for side in counted))
        """Its native tables; an image has all of them and nothing else."""
        self._mappings: list[Mapping] = []
        self._free = weakref.finalize(self, _free, self.handles, self._scratch, self._mappings)

    def _side(self, columns: tuple[str, ...], counted: list[Side]) -> Side:
        handle = new_table(len(columns), 1, 0, 0, 0)
        kernel.start_journal(handle)
        positions = np.array([self.columns.index(name) for name in columns], np.int64)
        side = Side(columns, handle, positions, len(columns), unpacked(len(columns)))
        counted.append(side)
        return side

    def add(self, batch: CodeBatch) -> Stopped | None:
        """Add a batch with every column of the table; after a ``Stopped``, ``undo`` must be called."""
        places: list[int] = []
        for name in self.columns:
            places += address_of(batch.columns[name])
        self._places[:] = places
        address, stride = address_of(batch.multiplicities)
        if len(batch) <= PIECE:
            result = kernel.add_rows(self._spec, self._places_address, address, stride, len(batch))
        else:
            result = self._add_pieces(batch.multiplicities)
        if result == 0:
            return None
        if result & kernel.STATUS == kernel.MISFIT:
            raise AssertionError(f"table {self.name}: the batch has a value outside the range of its column")
        return Stopped(result >> 2, result & kernel.STATUS == kernel.OUT_OF_MEMORY)

    def _add_pieces(self, multiplicities: Codes) -> int:
        """Add the batch whose columns are in place, a piece at a time; returns as ``kernel.add_rows``. Raises
        KeyboardInterrupt: ``undo`` must be called then."""
        address, stride = address_of(multiplicities)
        rows = len(multiplicities)
        # Of inserts and deletes, only one call sees whether they cancel out.
        most = PIECE if multiplicities.min() > 0 or multiplicities.max() < 0 else rows
        for start in range(0, rows, most):
            INTERRUPTION.raise_if_asked()
            count = min(most, rows - start)
            result: int = kernel.add_rows(self._spec, self._places_address, address, stride, count)
            if result != 0:
                return result + (start << 2)
            self._places[::2] += 8 * count * self._places[1::2]
            address += 8 * count * stride
        return 0

    def missing(self) -> tuple[int, ...] | None:
        """Codes of a row that was deleted more often than it was stored, or None."""
        row = base_reads.missing(self._spec)
        return self.packing.codes_at(row, self._words) if row else None

    def duplicate(self) -> tuple[int, tuple[int, ...]] | None:
        """Number of a key and values of it that several rows have now, or None."""
        for number, key in enumerate(self.keys):
            row = base_reads.duplicate(self._spec, key.handle, key.words)
            if row:
                return number, key.codes_at(row)
        return None

    def rows_with(self, side: Side, values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Codes of the rows with these values in the columns of a side; scans the table."""
        wanted = np.array(values, np.int64)
        number = -1
        while True:
            number = base_reads.matching_row(
                self._spec, address_of(side.positions)[0], len(values), address_of(wanted)[0], number + 1
            )
            if number < 0:
                return
            row = np.empty(self._words + 1, np.int64)
            base_reads.copy_rows(self._spec, number, number + 1, address_of(row)[0])
            yield tuple(row[:-1].tolist())

    def with_keys(self, keys: Sequence[Codes]) -> CodeBatch:
        """The rows that have one of the keys, each once. The table is settled and has a primary key.

        ``keys`` are codes of the columns of ``primary_key``, in its order. The cost grows with the keys only.
        """
        if self.primary_key is None:
            raise ValueError(f"table {self.name} has no primary key")
        places = np.sort(self._places_of(keys))
        return self._batch(self._rows_at(places[np.diff(places, prepend=0) > 0]))

    def rows_of(self, keys: Sequence[Codes]) -> tuple[Codes, CodeBatch]:
        """The numbers of the keys that a row has, and these rows, in the order of the keys. Else as ``with_keys``."""
        places = self._places_of(keys)
        found = np.flatnonzero(places)
        return found, self._batch(self._rows_at(places[found]))

    def _places_of(self, keys: Sequence[Codes]) -> Codes:
        """The place of the row that has each key, or 0."""
        if self.primary_key is None:
            raise ValueError(f"table {self.name} has no primary key")
        count = len(keys[0])
        where = np.array([address_of(column) for column in keys], np.int64)
        places = np.empty(count, np.int64)
        base_reads.places_of_keys(
            self._spec, len(keys), address_of(where.ravel())[0], count, self._scratch, address_of(places)[0]
        )
        return places

    def _rows_at(self, places: Codes) -> Codes:
        """Codes and counts of the rows at some places."""
        rows = np.empty((len(places), self._words + 1), np.int64)
        base_reads.copy_places(self._spec, address_of(places)[0], len(places), address_of(rows)[0])
        return rows

    def row_of(self, key: Sequence[int]) -> list[int] | None:
        """Codes of the row with a key, in the order of the table's columns. The table is settled and has a primary key.

        ``key`` has codes of the columns of ``primary_key``, in its order.
        """
        room = self._room
        for place, code in enumerate(key):
            room[place] = code
        return self._found(len(key))

    def row_like(self, row: Sequence[int]) -> list[int] | None:
        """As ``row_of``, with the key of a row, whose codes are in the order of the table's columns."""
        room, number = self._room, 0
        for place in self.key_places:
            room[number] = row[place]
            number += 1
        return self._found(number)

    def _found(self, words: int) -> list[int] | None:
        """The row with the key of ``words`` words in the room, or None."""
        if not self._find(self._spec, words, self._room_address):
            return None
        row = self._read_row()
        return [*row] if self._in_order else [row[place] for _, place in self._order]

    def net(self) -> CodeBatch | None:
        """The net effect of the batch; None if it has only inserts or only deletes, which cannot cancel."""
        if not self._spec_words[kernel.MIXED]:
            return None
        rows = np.empty((base_reads.journal_length(self._rows), self._words + 1), np.int64)
        return self._batch(rows[: base_reads.copy_net(self._spec, address_of(rows)[0])])

    def undo(self) -> None:
        """Undo all batches since the last ``settle``."""
        kernel.undo_base(self._spec)

    def settle(self) -> None:
        """Make all batches so far permanent."""
        kernel.settle_base(self._spec)

    def codes_between(self, first: int, end: int, columns: Sequence[str]) -> Iterator[Codes]:
        """The codes of each column, in the rows from number ``first`` to before ``end``."""
        width = self.packing.words + 1
        rows = words_in(load(self._rows, ROWS) + 8 * first * width, max(end - first, 0), width)
        rows = rows[rows[:, -1] != 0]
        for name in columns:
            yield self.packing.codes(rows, self.columns.index(name))

    def add_rows(self, rows: Codes, packing: Packing) -> Stopped | None:
        """As ``add``, for packed rows with their multiplicities, shape (n, ``packing.words`` + 1)."""
        columns = {name: packing.codes(rows, place) for name, place in self._order}
        return self.add(CodeBatch(self.name, columns, rows[:, packing.words]))

    def take_image(self, kept: Sequence[Sequence[int]], mapping: Mapping) -> None:
        """Take over the words and arrays of an image into the empty table; see ``kernel.image``. The table owns the
        mapping from now on.
        """
        self._mappings.append(mapping)
        places = iter(mapping.places)
        for handle, words in zip(self.handles, kept, strict=True):
            own = tuple(next(places) for _ in range(array_count(handle)))
            take_image(handle, words, replace(mapping, places=own))

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The contents, in batches of at most ``rows`` rows; the table must not change meanwhile.

        A repeated row may be returned in parts, whose multiplicities add up.
        """
        for start in range(0, base_reads.used_rows(self._rows), rows):
            buffer = np.empty((rows, self._words + 1), np.int64)
            count = base_reads.copy_rows(self._spec, start, start + rows, address_of(buffer)[0])
            if count:
                yield self._batch(buffer[:count])

    def _batch(self, rows: Codes) -> CodeBatch:
        columns = {name: rows[:, place] for name, place in self._order}
        return CodeBatch(self.name, columns, rows[:, self._words])

    @property
    def rows(self) -> int:
        """The number of stored rows of a settled table.

        A repeated row may be stored in several parts: see ``kernel.hash.base_store``.
        """
        return base_reads.live_rows(self._rows)

    @property
    def bytes(self) -> int:
        return kernel.base_bytes(self._spec)

    def close(self) -> None:
        """Free the memory; the table must not be used again."""
        self._free()


def _free(tables: Sequence[int], scratch: int, mappings: list[Mapping]) -> None:
    for handle in tables:
        free_table(handle)
    release(scratch)
    for mapping in mappings:
        unmap(mapping.low, mapping.high - mapping.low)
