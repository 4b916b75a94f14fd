"""Finds runs of consecutive codes at the last level of a trie.

A join with NOT EXISTS skips such a run, and goes on with the next code that the trie lacks.
"""

from __future__ import annotations

from freshviews.kernel.btree.balancing import child_slot
from freshviews.kernel.btree.pages import COUNT, LEVEL, child_at, column, first_not_less, word_at
from freshviews.kernel.memory.mem import inlined, jit, load
from freshviews.kernel.memory.outside import outside


@inlined
def in_run(page: int, i: int, k: int, key: int, distance: int) -> bool:
    """Whether an entry has the key's prefix and, as last word, the key's plus ``distance``."""
    for c in range(k - 1):
        if word_at(page, c, i) != load(key, c):
            return False
    return word_at(page, k - 1, i) - load(key, k - 1) == distance


@jit
def rows_before(root: int, k: int, key: int) -> int:
    """Number of rows of a tree whose key is less than the ``k`` words at ``key``."""
    rows = 0
    page = root
    while load(page, LEVEL) > 0:
        slot = child_slot(page, k, key)
        words = column(page, k + 1)
        for i in range(slot):
            rows += load(words, i)
        page = child_at(page, k, slot)
    return rows + first_not_less(page, k, key, 0, load(page, COUNT))


@outside
def run_length(root: int, k: int, key: int) -> int:
    """Length of the run of rows from the key on: rows with its prefix and consecutive last words.

    Reads O(log n) pages: one descent to the key; if the run continues after that leaf, one descent that counts the rows
    before it, and one to its end.

    Inner pages count the rows below each child. If the trie has as many rows in an interval as there are codes in it,
    the interval has no gap. So one descent finds the end of a run of consecutive codes.

    Source: Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013), section 3.1.2.
    """
    page = root
    while load(page, LEVEL) > 0:
        page = child_at(page, k, child_slot(page, k, key))
    count = load(page, COUNT)
    first = first_not_less(page, k, key, 0, count)
    slot = first
    while slot < count and in_run(page, slot, k, key, slot - first):
        slot += 1
    if slot == first or slot < count:
        return slot - first
    start = rows_before(root, k, key)
    page = root
    place = 0  # number of the first row below the page
    while True:
        # The entries of the run come first.
        count = load(page, COUNT)
        leaf = load(page, LEVEL) == 0
        words = column(page, k + 1)
        slot = 0
        at = place
        while slot < count and (at < start or in_run(page, slot, k, key, at - start)):
            at += 1 if leaf else load(words, slot)
            slot += 1
        if leaf:
            return at - start
        if slot > 0:
            slot -= 1
            at -= load(words, slot)
        page = child_at(page, k, slot)
        place = at
