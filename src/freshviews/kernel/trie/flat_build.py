"""Builds a flat trie of the rows of a hash table, for any order of the key words."""

from __future__ import annotations

from freshviews.kernel.hash.pending import enter_pending
from freshviews.kernel.hash.row_order import rows_in_order
from freshviews.kernel.hash.table import FAILED, KEY, PAYLOAD, PENDING, row_at
from freshviews.kernel.memory.mem import allocate, jit, load, release, shift_right, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import bits_of
from freshviews.kernel.trie.flat import (
    CARRIED,
    CARRIED_BYTES,
    CHILDREN,
    DEPTH,
    FIRST_LEVEL,
    JUMP_COUNT,
    JUMPS,
    LEAST,
    LEVEL,
    NODES,
    SHIFT,
    VALUES,
    free_trie,
    level_word,
)


@jit
def set_level_word(trie: int, level: int, word: int, value: int) -> None:
    """Set a word of the header about a level."""
    store(trie, FIRST_LEVEL + LEVEL * level + word, value)


@jit
def first_difference(table: int, positions: int, depth: int, one: int, other: int) -> int:
    """The number of the first key word at ``positions`` in which two rows differ; ``depth`` if they are equal."""
    first, second = row_at(table, one), row_at(table, other)
    for i in range(depth):
        if load(first, load(positions, i)) != load(second, load(positions, i)):
            return i
    return depth


@jit
def has_equal(table: int, positions: int, depth: int, numbers: int, n: int) -> bool:
    """Whether two of the sorted rows have equal keys."""
    for i in range(1, n):
        if first_difference(table, positions, depth, load(numbers, i - 1), load(numbers, i)) == depth:
            return True
    return False


@jit
def copy_carried(trie: int, table: int, numbers: int, n: int) -> bool:
    """Copy the payloads; False without memory."""
    key, words = load(table, KEY), load(table, PAYLOAD)
    ones = words == 1
    if ones:
        for i in range(n):
            if load(row_at(table, load(numbers, i)), key) != 1:
                ones = False
                break
    carried = allocate(1 if ones else n * words)
    if carried == 0:
        return False
    store(trie, CARRIED, carried)
    if ones:
        store(carried, 0, 1)
        return True
    store(trie, CARRIED_BYTES, 8 * words)
    for i in range(n):
        row = row_at(table, load(numbers, i))
        for k in range(words):
            store(carried, i * words + k, load(row, key + k))
    return True


@jit
def make_jumps(trie: int) -> bool:
    """Build the table of jumps, with about as many words as the first level has values; False without memory."""
    n = level_word(trie, 0, NODES)
    if n == 0:
        return True
    values = level_word(trie, 0, VALUES)
    least = load(values, 0)
    shift = max(bits_of(load(values, n - 1) - least) - bits_of(n) - 1, 0)
    count = shift_right(load(values, n - 1) - least, shift) + 1
    jumps = allocate(count)
    if jumps == 0:
        return False
    store(trie, LEAST, least)
    store(trie, SHIFT, shift)
    store(trie, JUMPS, jumps)
    store(trie, JUMP_COUNT, count)
    jump = 0
    for i in range(n):
        mine = shift_right(load(values, i) - least, shift)
        while jump <= mine:
            store(jumps, jump, i)
            jump += 1
    return True


@jit
def fill_levels(trie: int, table: int, positions: int, depth: int, numbers: int, n: int) -> bool:
    """Write the nodes of all levels; False without memory."""
    sizes = allocate(depth)
    if sizes == 0:
        return False
    # A row starts a node at every level from the first word on in which it differs from the row before.
    for i in range(n):
        first = 0
        if i != 0:
            first = first_difference(table, positions, depth, load(numbers, i - 1), load(numbers, i))
        for level in range(first, depth):
            store(sizes, level, load(sizes, level) + 1)
    whole = True
    for level in range(depth):
        size = load(sizes, level)
        values = allocate(size)
        set_level_word(trie, level, VALUES, values)
        set_level_word(trie, level, NODES, size)
        whole = whole and values != 0
        if level < depth - 1:
            children = allocate(size + 1)
            set_level_word(trie, level, CHILDREN, children)
            whole = whole and children != 0
        store(sizes, level, 0)
    if whole:
        for i in range(n):
            row = row_at(table, load(numbers, i))
            first = 0
            if i != 0:
                first = first_difference(table, positions, depth, load(numbers, i - 1), load(numbers, i))
            for level in range(first, depth):
                node = load(sizes, level)
                store(sizes, level, node + 1)
                store(level_word(trie, level, VALUES), node, load(row, load(positions, level)))
                if level < depth - 1:
                    store(level_word(trie, level, CHILDREN), node, load(sizes, level + 1))
        for level in range(depth - 1):
            size = level_word(trie, level, NODES)
            store(level_word(trie, level, CHILDREN), size, level_word(trie, level + 1, NODES))
    release(sizes)
    return whole


@outside
def build_trie(table: int, positions: int, depth: int, status: int) -> int:
    """The flat trie of a table's rows by all of its ``depth`` > 0 key words, in the order of ``positions``.

    Deferred rows are flushed only if two rows have equal keys. Returns 0 without memory and sets FAILED of the table.
    """
    count = allocate(1)
    trie = allocate(FIRST_LEVEL + LEVEL * depth)
    numbers = 0
    whole = count != 0 and trie != 0
    if whole:
        store(trie, DEPTH, depth)
        numbers = rows_in_order(table, positions, depth, count)
        waiting = numbers != 0 and load(table, PENDING) != 0
        if waiting and has_equal(table, positions, depth, numbers, load(count, 0)):
            release(numbers)
            numbers = 0
            if enter_pending(table, status) >= 0:
                numbers = rows_in_order(table, positions, depth, count)
        whole = numbers != 0
    if whole:
        n = load(count, 0)
        whole = copy_carried(trie, table, numbers, n) and fill_levels(trie, table, positions, depth, numbers, n)
        whole = whole and make_jumps(trie)
    release(numbers)
    release(count)
    if not whole:
        free_trie(trie)
        store(table, FAILED, 1)
        return 0
    return trie
