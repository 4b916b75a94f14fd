"""Writes the arrays of a hash table to a file, the *image* of the table, and restores a table from an image."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from freshviews.kernel.btree.folds import KIND
from freshviews.kernel.codes.string_heap import copy_between, free_strings, new_strings, sizes_between
from freshviews.kernel.hash import index, table
from freshviews.kernel.hash.index import (
    BLOCK,
    BLOCK_CAPACITY,
    GROUP_EXTRA,
    INLINE,
    ROWS_COUNT,
    slice_rows,
    words_of_block,
)
from freshviews.kernel.hash.pending import NEVER
from freshviews.kernel.memory.mem import allocate, copy_words, jit, load, release, store, store32
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered.folds import ordered_fold_at
from freshviews.kernel.ordered.sums import PLACE, SIZE, sum_at

_SHAPE = (table.WIDTH, table.KEY, table.PAYLOAD, table.INDEXES, table.ORDERED)
_KEPT = (table.USED, table.FREE, table.LIVE, table.MASK, table.EPOCH, table.JOURNAL_CAPACITY)
_PENDING_KEPT = (table.PENDING, table.ROOM, table.LOOK_AT, table.EAGER_BELOW)
_INDEX_SHAPE = (index.COUNT, index.ROW_WORD, index.DIGESTED)
_INDEX_KEPT = (index.MASK, index.CAPACITY, index.USED, index.FREE, index.LIVE)
_ORDERED_SHAPE = (ordered.KINDS, ordered.ROW_WORD)
_ORDERED_KEPT = (ordered.ROOT,)
_SUM_SHAPE = (PLACE, SIZE)
_TOP_KEPT = tuple(range(ordered.TOP, ordered.TOP + ordered.TOP_WORDS))

_MOST_ROWS = 2**31 - 1
_CHUNK = 1 << 17
"""Most words of blocks and groups that are gathered before a write."""


@dataclass(frozen=True)
class Array:
    """An array to write, of ``words`` words; in memory it gets room for ``room`` words.

    ``pieces`` yields its bytes in order; each piece is valid until the next is requested. Raises MemoryError.
    """

    words: int
    room: int
    pieces: Callable[[], Iterator[memoryview | bytes]]


@dataclass(frozen=True)
class TableImage:
    """The content of a table, which must not change before the arrays are written.

    A table takes only arrays of a table with an equal ``shape``. ``kept``: words of the headers that belong to the
    arrays.
    """

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    arrays: tuple[Array, ...]


@dataclass(frozen=True)
class Mapping:
    """Memory from ``low`` to ``high``, writable, with arrays at the addresses ``places``."""

    low: int
    high: int
    places: tuple[int, ...]


def shape_of(t: int) -> tuple[int, ...]:
    """The shape of a table: see ``TableImage``."""
    words = [load(t, word) for word in _SHAPE]
    for x in _indexes(t):
        words += [load(x, word) for word in _INDEX_SHAPE]
        words += [load(x, index.POSITIONS + i) for i in range(load(x, index.COUNT))]
    for o in _ordered(t):
        words += [load(o, word) for word in _ORDERED_SHAPE]
        words += [load(o, ordered.KINDS + i) for i in range(1, load(o, ordered.WORDS))]
        words += [load(ordered_fold_at(o, t, f), KIND) for f in range(load(o, ordered.FOLDS))]
        words += [load(sum_at(o, t, f), word) for f in range(load(o, ordered.SUMS)) for word in _SUM_SHAPE]
    return tuple(words)


def image_of(t: int) -> TableImage:
    """The image of a table whose journal is empty."""
    assert load(t, table.JOURNALED) == 0
    width, used = load(t, table.WIDTH), load(t, table.USED)
    # Reserved room takes no memory until it is used, and delays copying rows out of the mapping.
    capacity = max(load(t, table.CAPACITY), min(2 * used, _MOST_ROWS))
    kept = [capacity, *(load(t, word) for word in _KEPT)]
    arrays = [
        plain_array(load(t, table.ROWS), used * width, capacity * width),
        _slots(load(t, table.SLOTS), load(t, table.MASK)),
    ]
    for x in _indexes(t):
        blocks = _block_words(x)
        kept += [blocks, load(x, index.BLOCK_WORDS) + _array_words(x), *(load(x, word) for word in _INDEX_KEPT)]
        arrays += [_slots(load(x, index.SLOTS), load(x, index.MASK)), _slices(x, blocks)]
    for o in _ordered(t):
        kept += [load(o, word) for word in _ORDERED_KEPT]
    kept += [load(t, word) for word in _PENDING_KEPT]
    kept += [load(o, word) for o in _ordered(t) for word in _TOP_KEPT]
    kept.append(load(t, table.UNLINKED))
    return TableImage(shape_of(t), tuple(kept), tuple(arrays))


def array_count(t: int) -> int:
    """Number of arrays in an image of the table."""
    return 2 + 2 * load(t, table.INDEXES)


def take_image(t: int, kept: Sequence[int], mapping: Mapping) -> None:
    """Give a new, empty table the content of an image of the same shape: its kept words and arrays.

    The mapping must outlive the table's arrays. Whether the table keeps a journal does not change.

    A table has an array of rows and an array of slots. Each index has an array of slots, and an array of its blocks
    followed by its groups. Rows, groups and blocks refer to each other by number or distance. So an array can be mapped
    at any address. Only headers have addresses; an image stores the other words of the headers. Deferred inserts stay
    deferred.

    The journal is not stored: it is empty between batches, when images are taken.
    """
    words, places = iter(kept), iter(mapping.places)
    store(t, table.CAPACITY, next(words))
    for word in _KEPT:
        store(t, word, next(words))
    _put(t, table.ROWS, next(places))
    _put(t, table.SLOTS, next(places))
    # The journal's capacity counts in the table's bytes, so it is restored.
    room = load(t, table.JOURNAL_CAPACITY)
    _put(t, table.JOURNAL, allocate(room * (load(t, table.PAYLOAD) + 1)) if room else 0)
    store(t, table.JOURNAL_CAPACITY, room if load(t, table.JOURNAL) else 0)
    store(t, table.LOW, mapping.low)
    store(t, table.HIGH, mapping.high)
    for x in _indexes(t):
        blocks, held = next(words), next(words)
        for word in _INDEX_KEPT:
            store(x, word, next(words))
        store(x, index.BLOCK_WORDS, max(held - _array_words(x), 0))
        _put(x, index.SLOTS, next(places))
        _put(x, index.GROUPS, next(places) + 8 * blocks)
        store(x, index.LOW, mapping.low)
        store(x, index.HIGH, mapping.high)
    for o in _ordered(t):
        for word in _ORDERED_KEPT:
            store(o, word, next(words))
    rest = list(words)
    if not rest:
        # An older writer had no deferred inserts, so the magnitude of its components is unknown.
        store(t, table.EAGER_BELOW, NEVER)
    for word, value in zip(_PENDING_KEPT, rest, strict=False):
        store(t, word, value)
    # An older writer stored no words of first rows.
    firsts = [(o, word) for o in _ordered(t) for word in _TOP_KEPT]
    for (o, word), value in zip(firsts, rest[len(_PENDING_KEPT) :], strict=False):
        store(o, word, value)
    # An older writer had no unlinked rows.
    for value in rest[len(_PENDING_KEPT) + len(firsts) :]:
        store(t, table.UNLINKED, value)


@cache
def compile_writer() -> None:
    """Compile and load all functions that write an image, for a process that cannot do so later."""
    t = table.new_table(1, 1, 1, 0, 0)
    positions = (ctypes.c_int64 * 1)(0)
    table.add_index(t, ctypes.addressof(positions), 1)
    for array in image_of(t).arrays:
        for _ in array.pieces():
            pass
    x = _indexes(t)[0]
    progress = allocate(1)
    gather_blocks(x, 0, progress, 1, progress)
    copy_groups(x, 0, 0, 0, 0, progress)
    release(progress)
    table.free_table(t)
    strings = new_strings()
    sizes_between(strings, 0, 0, 0)
    copy_between(strings, 0, 0, 0, 0)
    free_strings(strings)


def plain_array(address: int, words: int, room: int) -> Array:
    """An array written as it lies in memory."""
    return Array(words, room, lambda: iter([_bytes_at(address, words)]))


def _slots(address: int, mask: int) -> Array:
    return plain_array(address, mask + 1, mask + 1)


def _slices(x: int, blocks: int) -> Array:
    """The blocks of an index, gathered, and the groups after them; groups have room for more."""
    width = load(x, index.COUNT) + GROUP_EXTRA
    words, room = load(x, index.USED) * width, load(x, index.CAPACITY) * width
    return Array(blocks + words, blocks + room, partial(_pieces_of_slices, x, blocks))


def _pieces_of_slices(x: int, blocks: int) -> Iterator[memoryview]:
    used = load(x, index.USED)
    width = load(x, index.COUNT) + GROUP_EXTRA
    room = max(_CHUNK, width, largest_block(x))
    out = allocate(room)
    progress = allocate(1)
    try:
        if out == 0 or progress == 0:
            raise MemoryError
        group = 0
        while group < used:
            group = gather_blocks(x, group, out, room, progress)
            yield _bytes_at(out, load(progress, 0))
        position = 0
        for first in range(0, used, room // width):
            end = min(first + room // width, used)
            position = copy_groups(x, first, end, position, blocks, out)
            yield _bytes_at(out, (end - first) * width)
    finally:
        release(out)
        release(progress)


def _block_words(x: int) -> int:
    found: int = block_words(x)
    return found


def _bytes_at(address: int, words: int) -> memoryview:
    return memoryview((ctypes.c_char * (8 * words)).from_address(address)).cast("B")


def _array_words(x: int) -> int:
    """Words of the slots and the groups of an index."""
    return load(x, index.MASK) + 1 + load(x, index.CAPACITY) * load(x, index.WIDTH)


def _put(header: int, word: int, address: int) -> None:
    """Replace a malloc'ed array of a header."""
    release(load(header, word))
    store(header, word, address)


def _indexes(t: int) -> list[int]:
    return [load(load(t, table.INDEX_LIST), i) for i in range(load(t, table.INDEXES))]


def _ordered(t: int) -> list[int]:
    return [load(load(t, table.ORDERED_LIST), i) for i in range(load(t, table.ORDERED))]


@jit
def block_words(x: int) -> int:
    """Number of words of all blocks of an index that lie outside their groups."""
    count = load(x, index.COUNT)
    total = 0
    for g in range(load(x, index.USED)):
        group = load(x, index.GROUPS) + 8 * (g * (count + GROUP_EXTRA) + count)
        capacity = load(group, BLOCK_CAPACITY)
        if capacity > INLINE:
            total += words_of_block(x, capacity)
    return total


@jit
def largest_block(x: int) -> int:
    """Number of words of the largest block of an index."""
    count = load(x, index.COUNT)
    largest = 0
    for g in range(load(x, index.USED)):
        group = load(x, index.GROUPS) + 8 * (g * (count + GROUP_EXTRA) + count)
        largest = max(largest, words_of_block(x, load(group, BLOCK_CAPACITY)))
    return largest


@jit
def copy_halves(source: int, target: int, used: int, capacity: int) -> None:
    """Copy ``used`` half words into a block of ``capacity``, an even number, and zero the rest."""
    filled = (used + 1) >> 1
    copy_words(target, source, filled)
    if used & 1 != 0:
        store32(target, used, 0)
    for i in range(filled, capacity >> 1):
        store(target, i, 0)


@jit
def gather_blocks(x: int, start: int, out: int, room: int, progress: int) -> int:
    """Copy the blocks of groups from ``start`` on to ``out``, as many as fit ``room`` words; returns the next group.

    Stores the number of words copied at ``progress``. Unused words of a block become zero.
    """
    count = load(x, index.COUNT)
    used = load(x, index.USED)
    at = 0
    g = start
    while g < used:
        group = load(x, index.GROUPS) + 8 * (g * (count + GROUP_EXTRA) + count)
        capacity = load(group, BLOCK_CAPACITY)
        if capacity > INLINE:
            words = words_of_block(x, capacity)
            if at + words > room:
                break
            for half in range(0, words, capacity >> 1):
                copy_halves(slice_rows(group) + 8 * half, out + 8 * (at + half), load(group, ROWS_COUNT), capacity)
            at += words
        g += 1
    store(progress, 0, at)
    return g


@jit
def copy_groups(x: int, start: int, end: int, position: int, blocks: int, out: int) -> int:
    """Copy groups to ``out``, with distances for a place after ``blocks`` words of blocks in the same order.

    ``position`` is the word at which the first block of these groups begins; returns that of the next groups.
    """
    count = load(x, index.COUNT)
    width = count + GROUP_EXTRA
    copy_words(out, load(x, index.GROUPS) + 8 * start * width, (end - start) * width)
    for g in range(start, end):
        group = out + 8 * ((g - start) * width + count)
        capacity = load(group, BLOCK_CAPACITY)
        if capacity > INLINE:
            store(group, BLOCK, 8 * (position - (blocks + g * width + count)))
            position += words_of_block(x, capacity)
    return position
