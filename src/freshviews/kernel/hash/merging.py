"""Adds the rows of one hash table to another.

If several threads share a batch, each thread fills tables of its own, and these are merged afterwards.
"""

from __future__ import annotations

from freshviews.kernel.hash.entries import prefetch_entry
from freshviews.kernel.hash.pending import enter_slots, note_large
from freshviews.kernel.hash.renew import clear_words, forget_entries
from freshviews.kernel.hash.slots import first_with, hash_words
from freshviews.kernel.hash.table import (
    FAILED,
    KEY,
    LARGE,
    LINKED,
    MASK,
    SLOTS,
    USED,
    find_words,
    insert_row,
    is_zero,
    link_row,
    row_at,
    settle,
    touch,
)
from freshviews.kernel.memory.mem import allocate, copy_words, inlined, jit, load, prefetch, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.elements import FIRST_RUN, INTEGERS, RUNS, add_elements, words_of_run
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import SUM_OVERFLOW

AHEAD = 64
"""Rows whose slots, and then whose rows, are prefetched together."""


@jit
def check_integers(target: int, source: int, layout: int) -> None:
    """Report SUM_OVERFLOW, at the layout's status, if an integer of two payloads is so large that a sum of two such may
    overflow: then rows that were added one by one might have overflowed."""
    at = 0
    for run in range(load(layout, RUNS)):
        kind = load(layout, FIRST_RUN + 2 * run)
        size = load(layout, FIRST_RUN + 2 * run + 1)
        if kind == INTEGERS:
            for i in range(at, at + size):
                one, other = load(target, i), load(source, i)
                if one >= LARGE or one <= -LARGE or other >= LARGE or other <= -LARGE:
                    fail(layout, SUM_OVERFLOW)
        at += words_of_run(kind, size)


@inlined
def merge_row(t: int, source: int, h: int, layout: int) -> None:
    """Add a row of another table, which hashes to ``h``. Without memory, ``t`` has the flag FAILED."""
    key = load(t, KEY)
    row = find_words(t, source, key, h)
    if row == 0:
        number = insert_row(t, h)
        if number < 0:
            store(t, FAILED, 1)
            return
        row = row_at(t, number)
        copy_words(row, source, key)
        if load(t, LINKED) != 0:
            link_row(t, number)
    touch(t, row)
    check_integers(row + 8 * key, source + 8 * key, layout)
    add_elements(row + 8 * key, source + 8 * key, layout, 1)
    note_large(t, row)
    if is_zero(t, row):
        settle(t, row)


@outside
def merge_table(t: int, other: int, layout: int) -> None:
    """Add the rows of another table, with the same key and payload but without indexes, and empty it.

    ``layout``: of the payload (``kernel.rings.elements``); errors of sums are stored at its status. Without memory,
    ``t`` has the flag FAILED.
    """
    hashes = allocate(AHEAD)
    if hashes == 0 or load(other, FAILED) != 0 or enter_slots(t, layout) < 0:
        store(t, FAILED, 1)
        store(other, USED, 0)
    key = load(t, KEY)
    for start in range(0, load(other, USED), AHEAD):
        block = min(AHEAD, load(other, USED) - start)
        for r in range(block):
            h = hash_words(row_at(other, start + r), key)
            store(hashes, r, h)
            prefetch(load(t, SLOTS) + 8 * (h & load(t, MASK)))
        for r in range(block):
            number = first_with(load(t, SLOTS), load(t, MASK), load(hashes, r))
            if number >= 0:
                prefetch_entry(t, number)
        for r in range(block):
            source = row_at(other, start + r)
            if load(t, FAILED) == 0 and not is_zero(other, source):
                merge_row(t, source, load(hashes, r), layout)
    release(hashes)
    clear_words(load(other, SLOTS), load(other, MASK) + 1)
    forget_entries(other)
    store(other, FAILED, 0)
