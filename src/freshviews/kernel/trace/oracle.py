"""Computes the change oracle: the values of variables for which a rule must be evaluated again.

The modules ``surgery`` and ``oracle`` of ``program.reference.incremental_trie_join`` define the change oracle.
"""

from __future__ import annotations

from freshviews.kernel.btree.difference import delta_begin, delta_branch, delta_next, delta_shared, delta_word
from freshviews.kernel.btree.pages import KEY, ROOT, TOP, pin
from freshviews.kernel.memory.mem import jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import sort_rows
from freshviews.kernel.output.buffer import COUNT, ROWS, WIDTH, append, clear_buffer
from freshviews.kernel.trace.intervals import stab
from freshviews.kernel.trace.sensitivity import PAYLOAD, edit_rows, key_words
from freshviews.kernel.trace.variable_join import (
    ABOVE,
    ASKED,
    BESIDE,
    CARRIES,
    CONTRIBUTIONS,
    CURSOR_COUNT,
    DELTA,
    DEPTH,
    FOUND_RECORDS,
    HANDLE,
    INDEX,
    KEPT,
    LEAST,
    LEVEL_COUNT,
    LEVEL_NUMBER,
    MATCHED,
    NEGATES,
    NEW_ROOT,
    OLD_ROOT,
    OPERATED,
    OUT_OF_MEMORY,
    PLACES,
    POINTED,
    STACK,
    START,
    SURGERIES,
    TREE,
    TREE_COUNT,
    TURN,
    VERSION,
    add_to_counter,
    agreed_of,
    ahead_of,
    cursor_of,
    first_of,
    level_of,
    tree_of,
)

# Kinds of operations.
BRANCH = 0  # a branch inserted or erased below one that both versions have
TWIG = 1  # a branch inserted or erased together with the one above it
CARRY = 2  # a row whose payload changed

OPERATION_PATH = 2


@outside
def keep_version(r: int) -> int:
    """Pin the current state of all trees as the old version, before edits; 0 without memory."""
    for i in range(load(r, TREE_COUNT)):
        tree = tree_of(r, i)
        version = pin(load(tree, HANDLE))
        if version == 0:
            store(r, OUT_OF_MEMORY, 1)
            return 0
        store(tree, VERSION, version)
        store(tree, OLD_ROOT, load(version, TOP))
    return 1


@jit
def find_surgery(r: int, tree: int) -> None:
    """Write the operations that turn the trie of the old version into that of the new one.

    Lists the differences of two versions of a tree (``btree.difference``), one row per operation: length of the path,
    kind, path.
    """
    d = load(tree, DELTA)
    operated = load(tree, OPERATED)
    k = load(load(tree, HANDLE), KEY)
    clear_buffer(operated)
    delta_begin(d, load(tree, OLD_ROOT), load(tree, NEW_ROOT))
    sign = delta_next(d)
    while sign != 0:
        branch = delta_branch(d)
        if branch == k:
            if sign > 0:
                operation = append(operated)
                store(operation, 0, k)
                store(operation, 1, CARRY)
                for i in range(k):
                    store(operation, OPERATION_PATH + i, delta_word(d, i))
        else:
            shared = delta_shared(d)
            for depth in range(branch, k):
                operation = append(operated)
                store(operation, 0, depth + 1)
                store(operation, 1, BRANCH if depth == shared else TWIG)
                for i in range(k):
                    store(operation, OPERATION_PATH + i, delta_word(d, i))
        sign = delta_next(d)


@outside
def ask_oracle(r: int) -> None:
    """Compute the change oracle from the difference of the versions; removes matched records from the indices.

    The oracle has sorted *contributions* per level. A contribution names a binding and says that, below it, the level's
    join must run again from ``candidate`` up to ``high``: codes of the variables before, candidate, agreed, high,
    first, ahead, since. ``variable_join`` defines the last words. The codes at which payloads changed are stored
    separately.
    """
    for i in range(load(r, TREE_COUNT)):
        tree = tree_of(r, i)
        store(tree, NEW_ROOT, load(load(tree, HANDLE), ROOT))
        find_surgery(r, tree)
    for i in range(load(r, LEVEL_COUNT)):
        clear_buffer(load(level_of(r, i), ASKED))
        clear_buffer(load(level_of(r, i), CARRIES))
    for i in range(load(r, CURSOR_COUNT)):
        c = cursor_of(r, i)
        count_surgery(r, c)
        if load(c, KEPT) != 0:
            # Surgery deletes the records that it matches, so payload changes are matched before it.
            match_carries(r, c)
            match_surgery(r, c)
        if load(c, POINTED) != 0:
            note_points(r, c)
    for i in range(load(r, LEVEL_COUNT)):
        asked = load(level_of(r, i), ASKED)
        add_to_counter(r, CONTRIBUTIONS, load(asked, COUNT))
        done = sort_rows(load(asked, ROWS), load(asked, WIDTH), i + 6, load(asked, COUNT))
        carries = load(level_of(r, i), CARRIES)
        done &= sort_rows(load(carries, ROWS), load(carries, WIDTH), i + 1, load(carries, COUNT))
        if done == 0:
            store(r, OUT_OF_MEMORY, 1)


@jit
def count_surgery(r: int, c: int) -> None:
    """Count the operations at the depth of a cursor."""
    operated = load(tree_of(r, load(c, TREE)), OPERATED)
    width = load(operated, WIDTH)
    found = 0
    for i in range(load(operated, COUNT)):
        found += 1 if load(load(operated, ROWS) + 8 * width * i, 0) == load(c, DEPTH) + 1 else 0
    add_to_counter(r, SURGERIES, found)


@jit
def note_points(r: int, c: int) -> None:
    """Add, for a cursor, the branch of each operation itself as a contribution."""
    depth = load(c, DEPTH)
    level = level_of(r, load(c, LEVEL_NUMBER))
    operated = load(tree_of(r, load(c, TREE)), OPERATED)
    for i in range(load(operated, COUNT)):
        operation = load(operated, ROWS) + 8 * load(operated, WIDTH) * i
        if load(operation, 0) != depth + 1:
            continue
        path = operation + 8 * OPERATION_PATH
        kind = load(operation, 1)
        negates = load(c, NEGATES) != 0
        if kind == CARRY:
            # The payload of a row of a negated atom is irrelevant.
            if not negates:
                row = append(load(level, CARRIES))
                for j in range(depth + 1):
                    store(row, j, load(path, j))
        elif kind == BRANCH or negates:
            row = append(load(level, ASKED))
            for j in range(depth + 1):
                store(row, j, load(path, j))
            store(row, depth + 1, 0)
            store(row, depth + 2, load(path, depth))
            store(row, depth + 3, load(c, TURN))
            store(row, depth + 4, 0)
            store(row, depth + 5, LEAST)


@jit
def stab_index(r: int, c: int, path: int) -> None:
    """Find the records of a cursor that are sensitive to the last code of a path."""
    t = load(c, INDEX)
    k = key_words(c)
    above = load(c, ABOVE)
    stab(load(t, ROOT), above, k, k, k + PAYLOAD, path, load(c, FOUND_RECORDS), load(r, STACK))


@jit
def write_binding(c: int, record: int, row: int) -> None:
    """Write the codes of the variables before that of a cursor, from a record."""
    above = load(c, ABOVE)
    places = load(c, PLACES)
    for i in range(above):
        store(row, load(places, i), load(record, i))
    for i in range(above, above + load(c, BESIDE)):
        store(row, load(places, i), load(record, i + 1))


@jit
def match_carries(r: int, c: int) -> None:
    """Match payload changes with the index of a cursor."""
    if load(c, NEGATES) != 0:
        return
    depth = load(c, DEPTH)
    number = load(c, LEVEL_NUMBER)
    level = level_of(r, number)
    operated = load(tree_of(r, load(c, TREE)), OPERATED)
    found = load(c, FOUND_RECORDS)
    for i in range(load(operated, COUNT)):
        operation = load(operated, ROWS) + 8 * load(operated, WIDTH) * i
        if load(operation, 0) != depth + 1 or load(operation, 1) != CARRY:
            continue
        clear_buffer(found)
        path = operation + 8 * OPERATION_PATH
        stab_index(r, c, path)
        for j in range(load(found, COUNT)):
            row = append(load(level, CARRIES))
            write_binding(c, load(found, ROWS) + 8 * load(found, WIDTH) * j, row)
            store(row, number, load(path, depth))
            add_to_counter(r, MATCHED, 1)


@jit
def match_surgery(r: int, c: int) -> None:
    """Match operations with the index of a cursor, and remove the records found."""
    depth = load(c, DEPTH)
    number = load(c, LEVEL_NUMBER)
    level = level_of(r, number)
    operated = load(tree_of(r, load(c, TREE)), OPERATED)
    found = load(c, FOUND_RECORDS)
    clear_buffer(found)
    for i in range(load(operated, COUNT)):
        operation = load(operated, ROWS) + 8 * load(operated, WIDTH) * i
        if load(operation, 0) == depth + 1 and load(operation, 1) != CARRY:
            stab_index(r, c, operation + 8 * OPERATION_PATH)
    count = load(found, COUNT)
    k = key_words(c)
    width = load(found, WIDTH)
    if count == 0:
        return
    rows = load(found, ROWS)
    if sort_rows(rows, width, k, count) == 0:
        store(r, OUT_OF_MEMORY, 1)
        return
    above = load(c, ABOVE)
    for i in range(count):
        record = rows + 8 * width * i
        store(record, k + PAYLOAD, -1)
        same = 0
        if i > 0:
            while same < k and load(record, same) == load(record - 8 * width, same):
                same += 1
        if same == k:
            continue
        add_to_counter(r, MATCHED, 1)
        row = append(load(level, ASKED))
        write_binding(c, record, row)
        turn = load(record, k + 1)
        store(row, number, load(record, above))
        store(row, number + 1, agreed_of(turn))
        store(row, number + 2, load(record, k))
        store(row, number + 3, 0 if turn == START else first_of(turn))
        store(row, number + 4, 0 if turn == START else ahead_of(turn))
        store(row, number + 5, load(record, k + 2))
    edit_rows(r, load(c, INDEX), rows, width, count)
