"""Widens the narrow sums of doubles in a table from 4 words to 37, in place."""

from __future__ import annotations

from freshviews.kernel.hash import entries, index
from freshviews.kernel.hash.table import (
    CAPACITY,
    FAILED,
    FIRST_CAPACITY,
    FREE,
    HIGH,
    INDEX_LIST,
    INDEXES,
    JOURNAL,
    JOURNAL_CAPACITY,
    JOURNALED,
    KEY,
    LOW,
    ORDERED,
    ORDERED_LIST,
    PAYLOAD,
    ROWS,
    SCRATCH,
    USED,
    WIDTH,
)
from freshviews.kernel.memory.mapping import release_block
from freshviews.kernel.memory.mem import allocate, copy_words, inlined, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.rings.narrow import widen_payload


@inlined
def _word_moved(header: int, word: int, by: int) -> None:
    """Shift a word number of an index back, because the row has got more words before it."""
    store(header, word, load(header, word) + by)


@jit
def _widen_row(target: int, source: int, t: int, runs: int, count: int, payload: int) -> None:
    key = load(t, KEY)
    copy_words(target, source, key)
    widen_payload(target + 8 * key, source + 8 * key, runs, count)
    place = key + load(t, PAYLOAD)
    copy_words(target + 8 * (key + payload), source + 8 * place, load(t, WIDTH) - place)


@outside
def widen_table(t: int, payload: int, runs: int, count: int) -> int:
    """Widen a table to ``payload`` words of payload; 0 without memory, and then the table is unchanged but FAILED.

    ``runs`` and ``count`` as of ``rings.narrow.widen_payload``. The table keeps no sums in the subtrees of an order.
    """
    more = payload - load(t, PAYLOAD)
    width = load(t, WIDTH) + more
    used = load(t, USED)
    capacity = max(used, FIRST_CAPACITY)
    entry = load(t, PAYLOAD) + 1
    rows = allocate(capacity * width)
    scratch = allocate(width)
    journal = allocate(max(load(t, JOURNAL_CAPACITY), 1) * (entry + more))
    if rows == 0 or scratch == 0 or journal == 0:
        release(rows)
        release(scratch)
        release(journal)
        store(t, FAILED, 1)
        return 0
    for number in range(used):
        source = load(t, ROWS) + 8 * number * load(t, WIDTH)
        _widen_row(rows + 8 * number * width, source, t, runs, count, payload)
    # Without a key, the chain of free rows uses a word of the payload.
    free = load(t, FREE)
    while free != 0:
        following = load(load(t, ROWS) + 8 * (free - 1) * load(t, WIDTH), 0)
        row = rows + 8 * (free - 1) * width
        for word in range(width):
            store(row, word, 0)
        store(row, 0, following)
        free = following
    for i in range(load(t, JOURNALED)):
        source = load(t, JOURNAL) + 8 * i * entry
        target = journal + 8 * i * (entry + more)
        store(target, 0, load(source, 0))
        widen_payload(target + 8, source + 8, runs, count)
    release_block(load(t, ROWS), load(t, LOW), load(t, HIGH))
    release(load(t, SCRATCH))
    release(load(t, JOURNAL))
    store(t, ROWS, rows)
    store(t, SCRATCH, scratch)
    store(t, JOURNAL, journal)
    store(t, JOURNAL_CAPACITY, max(load(t, JOURNAL_CAPACITY), 1))
    store(t, CAPACITY, capacity)
    store(t, WIDTH, width)
    store(t, PAYLOAD, payload)
    store(t, entries.TOUCHED, 0)
    for i in range(load(t, INDEXES)):
        _word_moved(load(load(t, INDEX_LIST), i), index.ROW_WORD, more)
    for i in range(load(t, ORDERED)):
        _word_moved(load(load(t, ORDERED_LIST), i), ordered.ROW_WORD, more)
    return 1
