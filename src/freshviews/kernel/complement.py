"""Walking what is not there, past intervals that are full: the paper, section 3.1.2.

An interval of keys is full where it has as many rows as it could have. As inner pages count the rows below each
child, the first place where a run of rows breaks is found by going down once, however long the run is.
"""

from __future__ import annotations

from freshviews.kernel.mem import allocate, inlined, jit, load, release, store
from freshviews.kernel.outside import outside
from freshviews.kernel.pages import COUNT, LEVEL, child_at, column, first_not_less, word_at
from freshviews.kernel.scan import rank
from freshviews.kernel.tree_balance import child_slot


@inlined
def in_run(page: int, i: int, k: int, key: int, distance: int) -> bool:
    """Whether an entry has the key's prefix, and a last word that is ``distance`` beyond the key's."""
    for c in range(k - 1):
        if word_at(page, c, i) != load(key, c):
            return False
    return word_at(page, k - 1, i) - load(key, k - 1) == distance


@outside
def run_length(root: int, k: int, key: int) -> int:
    """How many rows there are under the key's prefix with its last word, the next one, and so on up to the first gap.

    O(log n) pages: one descent to where the key belongs; where the run goes on behind that leaf, one by counts to the
    place of its first row, and one to where it breaks.
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
    start = rank(root, k, k, key, 0)
    page = root
    place = 0  # of the first row below the page
    while True:
        # The run holds for the entries up to some one, and for none after it.
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


@jit
def missing_before(all_page: int, i: int, place: int, part: int, k: int, key: int) -> int:
    """How many rows are missing from ``part`` before the least row of an entry, which is at a place of all."""
    for c in range(k):
        store(key, c, word_at(all_page, c, i))
    return place - rank(part, k, k, key, 0)


@outside
def next_missing(all_root: int, part: int, k: int, place: int) -> int:
    """The first place, not before a given one, of a row that is not in ``part``, a tree whose rows are all among
    these; the number of rows where there is none, and -1 where memory is out.

    The place is less than the number of rows. Bisection within the pages of one descent, O(log n) steps, each of
    which goes down ``part`` once.
    """
    key = allocate(k)
    if key == 0:
        return -1
    page = all_root
    before = 0  # rows before the page
    # First the number of missing rows before the place itself.
    while load(page, LEVEL) > 0:
        words = column(page, k + 1)
        slot = 0
        while before + load(words, slot) <= place:
            before += load(words, slot)
            slot += 1
        page = child_at(page, k, slot)
    known = missing_before(page, place - before, place, part, k, key)
    # Then the last row before which no more are missing: it is the first that is missing, if any is.
    page = all_root
    before = 0
    while True:
        count = load(page, COUNT)
        leaf = load(page, LEVEL) == 0
        words = column(page, k + 1)
        low = 0
        at = before
        while low + 1 < count and at + (1 if leaf else load(words, low)) <= place:
            at += 1 if leaf else load(words, low)
            low += 1
        high = count
        while low + 1 < high:
            middle = (low + high) >> 1
            there = at
            for i in range(low, middle):
                there += 1 if leaf else load(words, i)
            if missing_before(page, middle, there, part, k, key) == known:
                low = middle
                at = there
            else:
                high = middle
        before = at
        if leaf:
            break
        page = child_at(page, k, low)
    for c in range(k):
        store(key, c, word_at(page, c, low))
    absent = rank(part, k, k, key, 1) == rank(part, k, k, key, 0)
    release(key)
    return before if absent else before + 1
