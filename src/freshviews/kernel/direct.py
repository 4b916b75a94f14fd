"""Commits a small batch of one table in one call: checks and adds the rows, and runs the triggers.

Each table has a *plan*: a block of words that lists the work of a commit. A plan has entries of six kinds. Semicolons
separate the words of an entry:

========  =====================================================================================
watched   the address of a word: if that word is not 0, the batch is refused
columns   the address of a pair (address, stride) in the batch block; the number of the column
keys      the handle of a table that counts rows by key; how many words the key has. A count
          above 1 refuses the batch
calls     the code address of a trigger; the state of the trigger's program; the batch block;
          the number of the program in ``blocks``
blocks    the state of a program; its number of tables; its two output buffers
counters  the address of a word that counts updates
========  =====================================================================================
"""

from __future__ import annotations

from freshviews.kernel.hash.base_reads import duplicate, missing
from freshviews.kernel.hash.base_store import MIXED, add_rows, settle_base, undo_base
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.memory.mem import inlined, jit, load, store
from freshviews.kernel.memory.triggers import call_reader, call_trigger
from freshviews.kernel.output.buffer import FAILED
from freshviews.kernel.output.drain import any_failed

# Words of the header.
BASE = 0  # spec of the stored table (see ``hash.base_store``), or 0
PLACES = 1  # address of its batch block
VERSION = 2  # address of the word that counts versions
FIRST_TABLE = 3  # the position of the first table's word in a state
ENTRIES = 4  # address of the entries
WATCHED = 5  # the number of entries, by kind
COLUMNS = 6
KEYS = 7
CALLS = 8
BLOCKS = 9
COUNTERS = 10
RAN = 11  # the number of calls of the last batch
READS = 12  # address of entries of readers: entry, state, its output buffer
READ_COUNT = 13
DATA = 14  # column c of row r of the batch is the word at DATA + 8 * (c * COLUMN_STEP + r * ROW_STEP)
COLUMN_STEP = 15
ROW_STEP = 16
SIGN = 17  # the common multiplicity of the rows, 0 if each has its own
N = 18  # the number of rows
SIGNS = 19  # the multiplicity of row r is the word at SIGNS + 8 * r * SIGN_STEP
SIGN_STEP = 20  # 0 if SIGNS is the address of SIGN
HEADER = 21  # the codes of a few rows follow, and their multiplicities

COLUMN_WORDS = 2
KEY_WORDS = 2
CALL_WORDS = 4
BLOCK_WORDS = 4
READ_WORDS = 3

# Results.
DONE = 0
REFUSED = 1  # the state is as before
LOST = 2  # memory ran out in a view: its state is invalid, the stored table is as before
UNREAD = 3  # a change could not be read: the caller undoes the batch, and drops the changes


@inlined
def _keys(plan: int) -> int:
    """Address of the entries of keys."""
    return load(plan, ENTRIES) + 8 * (load(plan, WATCHED) + COLUMN_WORDS * load(plan, COLUMNS))


@inlined
def _calls(plan: int) -> int:
    """Address of the entries of calls."""
    return _keys(plan) + 8 * KEY_WORDS * load(plan, KEYS)


@inlined
def _blocks(plan: int) -> int:
    """Address of the entries of blocks."""
    return _calls(plan) + 8 * CALL_WORDS * load(plan, CALLS)


@inlined
def _status(block: int) -> int:
    """Address of the status words of a block's state."""
    return load(load(block, 0), 0)


@inlined
def _ran_out(plan: int, block: int) -> bool:
    """Whether memory ran out in the state of a block."""
    failed = any_failed(load(block, 0), load(plan, FIRST_TABLE), load(block, 1))
    return failed | load(load(block, 2), FAILED) | load(load(block, 3), FAILED) != 0


@inlined
def _broken(plan: int) -> bool:
    """Whether a row has a negative count, or a key has more than one row."""
    spec = load(plan, BASE)
    found = missing(spec)
    key = _keys(plan)
    for _ in range(load(plan, KEYS)):
        if found == 0:
            found = duplicate(spec, load(key, 0), load(key, 1))
        key += 8 * KEY_WORDS
    return found != 0


@jit
def _run(plan: int, first: int, end: int) -> int:
    """Run calls over the batch until one fails. Returns DONE, REFUSED or LOST; RAN is the end of the calls that ran."""
    blocks = _blocks(plan)
    result = DONE
    at = first
    while result == DONE and at < end:
        call = _calls(plan) + 8 * CALL_WORDS * at
        batch = load(call, 2)
        store(batch, 0, load(plan, SIGNS))
        store(batch, 1, load(plan, SIGN_STEP))
        call_trigger(load(call, 0), load(call, 1), batch, load(plan, N))
        block = blocks + 8 * BLOCK_WORDS * load(call, 3)
        if _ran_out(plan, block):
            result = LOST
        elif load(_status(block), 0) != 0:
            result = REFUSED
        at += 1
    store(plan, RAN, at)
    return result


@jit
def take_back(plan: int) -> int:
    """Undo the batch that ``apply_rows`` applied: returns REFUSED or LOST.

    All state is sums in rings, so adding the negated rows undoes the batch exactly.
    """
    signs, step = load(plan, SIGNS), load(plan, SIGN_STEP)
    for r in range(load(plan, N) if step != 0 else 1):
        store(signs, r * step, -load(signs, r * step))
    end = load(plan, RAN)
    result = DONE
    at = 0
    while result != LOST and at < end:
        # A trigger that failed fails again on the negated rows.
        result = _run(plan, at, at + 1)
        block = _blocks(plan) + 8 * BLOCK_WORDS * load(_calls(plan) + 8 * CALL_WORDS * at, 3)
        store(_status(block), 0, 0)
        store(_status(block), 1, -1)
        at += 1
    if load(plan, BASE) != 0:
        undo_base(load(plan, BASE))
    return LOST if result == LOST else REFUSED


@jit
def apply_rows(plan: int) -> int:
    """Apply a batch provisionally; returns DONE, or undoes it and returns REFUSED or LOST.

    ``apply_rows`` stops before the version is incremented, so that the caller can read changes and write a log.
    ``apply_and_read`` also reads the changes of views. The caller ends with ``settle_rows`` or ``take_back``.
    """
    entries = load(plan, ENTRIES)
    for i in range(load(plan, WATCHED)):
        if load(load(entries, i), 0) != 0:
            return REFUSED
    column = entries + 8 * load(plan, WATCHED)
    for _ in range(load(plan, COLUMNS)):
        store(load(column, 0), 0, load(plan, DATA) + 8 * load(plan, COLUMN_STEP) * load(column, 1))
        store(load(column, 0), 1, load(plan, ROW_STEP))
        column += 8 * COLUMN_WORDS
    base = load(plan, BASE)
    if base != 0:
        stopped = add_rows(base, load(plan, PLACES), load(plan, SIGNS), load(plan, SIGN_STEP), load(plan, N))
        # A row is inserted and deleted: triggers need the net effect, which the general way computes.
        if stopped != 0 or load(base, MIXED) != 0 or _broken(plan):
            undo_base(base)
            return REFUSED
    result = _run(plan, 0, load(plan, CALLS))
    if result == REFUSED:
        result = take_back(plan)
    elif result == LOST and base != 0:
        undo_base(base)
    return result


@jit
def apply_and_read(plan: int) -> int:
    """As ``apply_rows``; the readers also write changes to their buffers, or the result is UNREAD."""
    result = apply_rows(plan)
    if result == DONE:
        read = load(plan, READS)
        for _ in range(load(plan, READ_COUNT)):
            call_reader(load(read, 0), load(read, 1), load(read, 2))
            if load(load(read, 2), FAILED) != 0 or load(_status(read + 8), 0) != 0:
                result = UNREAD
            read += 8 * READ_WORDS
    return result


@jit
def settle_rows(plan: int) -> None:
    """Make the batch that ``apply_rows`` applied a version."""
    if load(plan, BASE) != 0:
        settle_base(load(plan, BASE))
    block = _blocks(plan)
    for _ in range(load(plan, BLOCKS)):
        shrink_tables(load(block, 0) + 8 * load(plan, FIRST_TABLE), load(block, 1))
        block += 8 * BLOCK_WORDS
    counters = _blocks(plan) + 8 * BLOCK_WORDS * load(plan, BLOCKS)
    for i in range(load(plan, COUNTERS)):
        store(load(counters, i), 0, load(load(counters, i), 0) + load(plan, N))
    store(load(plan, VERSION), 0, load(load(plan, VERSION), 0) + 1)


@jit
def commit_rows(plan: int) -> int:
    """Make a batch a version: DONE, REFUSED or LOST."""
    result = apply_rows(plan)
    if result == DONE:
        settle_rows(plan)
    return result
