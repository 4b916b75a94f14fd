"""Records the changes that would alter a step of a trace: for each step, an interval of codes.

A cursor is an atom at one of its variables. The interval tree of a cursor has a row per step::

    codes of the atom ... | low | other codes ... || high | turn | since

A change of the atom at a code from ``low`` to ``high`` alters the step.
"""

from __future__ import annotations

from freshviews.kernel.btree.load import edit_in_order
from freshviews.kernel.btree.pages import LEAF_ROOM, ROOT
from freshviews.kernel.btree.tree import find_row
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.output.buffer import COUNT, ROWS, WIDTH, append, clear_buffer
from freshviews.kernel.trace.variable_join import (
    ABOVE,
    BESIDE,
    BINDING,
    EDITS,
    INDEX,
    KEPT,
    KEY_SCRATCH,
    LEAST,
    LIST,
    MARK,
    OPERATIONS,
    OUT_OF_MEMORY,
    PENDING,
    PLACES,
    POINTED,
    RECORD,
    RECORDED,
    REMOVED,
    START,
    STEP_CURSOR,
    STEP_HIGH,
    STEP_LIST,
    STEP_LOW,
    STEP_SINCE,
    STEP_TURN,
    TRACE,
    add_to_counter,
    cursor_of,
)

PAYLOAD = 3
"""Words of a record after its key: high, turn, since."""
MOST_PENDING = 1 << 16
"""Most collected records of a cursor."""
FEW = 32
"""Most collected records of one binding that are scanned; more are first applied to the index."""


@inlined
def key_words(c: int) -> int:
    """Number of key words of a record of a cursor."""
    return load(c, ABOVE) + 1 + load(c, BESIDE)


@inlined
def write_record_key(r: int, c: int, low: int, row: int) -> int:
    """Write the key of a record under the current binding; returns its number of words."""
    binding = load(r, BINDING)
    places = load(c, PLACES)
    above = load(c, ABOVE)
    k = above + 1 + load(c, BESIDE)
    for i in range(above):
        store(row, i, load(binding, load(places, i)))
    store(row, above, low)
    for i in range(above, k - 1):
        store(row, i + 1, load(binding, load(places, i)))
    return k


@jit
def note_record(r: int, c: int, low: int, high: int, turn: int, since: int, sign: int) -> None:
    """Collect a record to insert or delete.

    A change at a code from ``low`` to ``high`` alters the step. The words before ``||`` are the key. They identify a
    record, because under one binding a cursor seeks a code only once. The fold of the tree is the greatest ``high``
    (``intervals``). ``low``, ``turn`` and ``since`` are the place of the step in the leapfrog join.

    Records to insert and delete are first collected per cursor (PENDING), then applied to the index together, in order
    of keys.
    """
    pending = load(c, PENDING)
    if load(pending, COUNT) >= MOST_PENDING:
        enter_records(r, c)
    row = append(pending)
    k = write_record_key(r, c, low, row)
    store(row, k, high)
    store(row, k + 1, turn)
    store(row, k + 2, since)
    store(row, k + 3, sign)
    add_to_counter(r, RECORDED if sign > 0 else REMOVED, 1)


@outside
def enter_records(r: int, c: int) -> None:
    """Apply the collected records of a cursor to its index."""
    pending = load(c, PENDING)
    count = load(pending, COUNT)
    store(c, MARK, 0)
    if count == 0:
        return
    edit_rows(r, load(c, INDEX), load(pending, ROWS), load(pending, WIDTH), count)
    clear_buffer(pending)


@jit
def edit_rows(r: int, t: int, rows: int, width: int, count: int) -> None:
    """Edit a tree by contiguous rows of key, payload and sign."""
    batch = allocate(2 * width)
    done = 0
    if batch != 0:
        for c in range(width):
            store(batch, 2 * c, rows + 8 * c)
            store(batch, 2 * c + 1, width)
        done = edit_in_order(t, batch, count)
    release(batch)
    if done == 0:
        store(r, OUT_OF_MEMORY, 1)


@inlined
def is_recorded(c: int, low: int, high: int) -> bool:
    """Whether a step is recorded in an index. With POINTED, only runs of negated atoms are recorded."""
    return load(c, KEPT) != 0 and (load(c, POINTED) == 0 or low < high)


@inlined
def report(r: int, number: int, side: int, low: int, high: int, turn: int, since: int, mode: int) -> None:
    """Report a step: list, record or forget it, by ``mode``."""
    add_to_counter(r, OPERATIONS, 1)
    if mode == LIST:
        row = append(load(r, STEP_LIST + side))
        store(row, STEP_CURSOR, number)
        store(row, STEP_LOW, low)
        store(row, STEP_HIGH, high)
        store(row, STEP_TURN, turn)
        store(row, STEP_SINCE, since)
    else:
        add_to_counter(r, TRACE, 1 if mode == RECORD else -1)
        add_to_counter(r, EDITS, 1)
        c = cursor_of(r, number)
        if is_recorded(c, low, high):
            note_record(r, c, low, high, turn, since, mode)


@jit
def begin_binding(c: int) -> None:
    """Mark the start of the records of another binding."""
    store(c, MARK, load(load(c, PENDING), COUNT))


@jit
def high_of_record(r: int, c: int, low: int) -> tuple[int, int]:
    """Whether a record starting at ``low`` exists under the current binding, and its end."""
    pending = load(c, PENDING)
    if load(pending, COUNT) - load(c, MARK) > FEW:
        enter_records(r, c)
    key = load(r, KEY_SCRATCH)
    k = write_record_key(r, c, low, key)
    width = load(pending, WIDTH)
    i = load(pending, COUNT) - 1
    while i >= load(c, MARK):
        row = load(pending, ROWS) + 8 * width * i
        same = 0
        while same < k and load(row, same) == load(key, same):
            same += 1
        if same == k:
            return (1 if load(row, k + 3) > 0 else 0), load(row, k)
        i -= 1
    t = load(c, INDEX)
    row = find_row(load(t, ROOT), k, key)
    if row == 0:
        return 0, 0
    return 1, load(row, k * load(t, LEAF_ROOM))


@jit
def settle_steps(r: int) -> None:
    """After two walks were listed: forget the steps of the old one and record those of the new one.

    Steps are in the order of the sought codes. A step that both made stays in the trace.
    """
    olds = load(r, STEP_LIST)
    news = load(r, STEP_LIST + 1)
    width = load(olds, WIDTH)
    old_count = load(olds, COUNT)
    new_count = load(news, COUNT)
    common = 0
    begin = 0
    for i in range(old_count):
        step = load(olds, ROWS) + 8 * width * i
        low = load(step, STEP_LOW)
        high = load(step, STEP_HIGH)
        number = load(step, STEP_CURSOR)
        c = cursor_of(r, number)
        while begin < new_count and load(load(news, ROWS) + 8 * width * begin, STEP_LOW) < low:
            begin += 1
        j = begin
        again = 0
        while j < new_count and again == 0:
            other = load(news, ROWS) + 8 * width * j
            if load(other, STEP_LOW) != low:
                j = new_count
            elif load(other, STEP_CURSOR) == number:
                # The record of the new step replaces that of the old one.
                again = 2 if is_recorded(c, low, load(other, STEP_HIGH)) else 1
                common += 1 if load(other, STEP_HIGH) == high else 0
            else:
                j += 1
        if again < 2 and is_recorded(c, low, high):
            note_record(r, c, low, LEAST, START, LEAST, -1)
    for j in range(new_count):
        step = load(news, ROWS) + 8 * width * j
        c = cursor_of(r, load(step, STEP_CURSOR))
        low = load(step, STEP_LOW)
        high = load(step, STEP_HIGH)
        if is_recorded(c, low, high):
            note_record(r, c, low, high, load(step, STEP_TURN), load(step, STEP_SINCE), 1)
    add_to_counter(r, TRACE, new_count - old_count)
    add_to_counter(r, EDITS, new_count + old_count - 2 * common)
    clear_buffer(olds)
    clear_buffer(news)
