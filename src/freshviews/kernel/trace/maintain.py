"""Maintains a rule for one batch, by the recorded steps of its leapfrog triejoin. A rule is a join with conditions.

The caller calls ``keep_version``, edits the trees, and calls ``maintain``.
``program.reference.incremental_trie_join.maintenance`` describes the algorithm.
"""

from __future__ import annotations

from freshviews.kernel.btree.pages import FAILED as TREE_FAILED
from freshviews.kernel.btree.pages import unpin
from freshviews.kernel.memory.mem import jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.output.buffer import COUNT, FAILED, ROWS, WIDTH, append, clear_buffer
from freshviews.kernel.trace.filters import all_hold, is_there
from freshviews.kernel.trace.oracle import ask_oracle
from freshviews.kernel.trace.sensitivity import begin_binding, enter_records, high_of_record, settle_steps
from freshviews.kernel.trace.step import evaluate, step
from freshviews.kernel.trace.variable_join import (
    ASKED,
    ATOM_COUNT,
    ATOM_ITERATORS,
    ATOM_TREE,
    BINDING,
    CANDIDATE,
    CARRIES,
    CODE,
    CURSOR_COUNT,
    CURSORS,
    DERIVED,
    EMITTED,
    EMITTED_AT,
    FINISHED,
    FIRST_CURSOR,
    FORGET,
    FOUND_RECORDS,
    GOING,
    HANDLE,
    INDEX,
    KEPT,
    LEAST,
    LEVEL_COUNT,
    LIST,
    MOST,
    NEGATED,
    NEW,
    NEW_ROOT,
    OLD,
    OLD_ROOT,
    OPERATED,
    OPERATIONS,
    OUT_OF_MEMORY,
    PENDING,
    POINTED,
    RANGES,
    RECORD,
    STARTING,
    STATE,
    STEP_LIST,
    TREE_COUNT,
    VERSION,
    add_to_counter,
    are_met,
    atom_of,
    begin_walk,
    cursor_of,
    is_at_end,
    is_not_after,
    level_of,
    open_level,
    put_at,
    seek_all,
    seek_cursor,
    stands_at,
    tree_of,
    walk_of,
)
from freshviews.kernel.trie.iterator import iter_begin

SLACK = 4
"""Extra steps per cursor that a walk may take to meet the other."""

# Words of a range: the contributions and the payload changes of a level, below the binding of another level.
ASKED_FROM = 0
ASKED_TO = 1
CARRIES_FROM = 2
CARRIES_TO = 3
RANGE_WORDS = 4


@outside
def maintain(r: int) -> None:
    """Evaluate the rule where the old and the new version differ; the derivations are in DERIVED.

    If OUT_OF_MEMORY is set, derivations are missing and the caller must initialise the rule again.

    For a batch, the caller calls ``keep_version``, edits the trees, and calls ``maintain``, which computes the change
    oracle and walks the levels of the rule. A *contribution* of the oracle says where the leapfrog join of a level must
    resume (``oracle``). Below a binding that both versions have, ``maintain`` first resumes the join at every
    contribution. Then it visits codes of the level, from the least to the greatest. A code is visited if one of these
    is true:

    - only one version emits it;
    - the payload of a row with it has changed;
    - the oracle has contributions below it.
    """
    clear_buffer(load(r, DERIVED + OLD))
    clear_buffer(load(r, DERIVED + NEW))
    ask_oracle(r)
    for i in range(load(r, ATOM_COUNT)):
        atom = atom_of(r, i)
        tree = tree_of(r, load(atom, ATOM_TREE))
        iter_begin(load(atom, ATOM_ITERATORS + OLD), load(tree, OLD_ROOT))
        iter_begin(load(atom, ATOM_ITERATORS + NEW), load(tree, NEW_ROOT))
    if load(r, OUT_OF_MEMORY) == 0:
        walk_levels(r)
    for i in range(load(r, CURSOR_COUNT)):
        if load(cursor_of(r, i), KEPT) != 0:
            enter_records(r, cursor_of(r, i))
    for i in range(load(r, TREE_COUNT)):
        tree = tree_of(r, i)
        unpin(load(tree, HANDLE), load(tree, VERSION))
        store(tree, VERSION, 0)
    note_failures(r)


@jit
def note_failures(r: int) -> None:
    """Set OUT_OF_MEMORY if any part has run out of memory."""
    failed = load(load(r, DERIVED + OLD), FAILED) | load(load(r, DERIVED + NEW), FAILED)
    failed |= load(load(r, STEP_LIST + OLD), FAILED) | load(load(r, STEP_LIST + NEW), FAILED)
    for i in range(load(r, TREE_COUNT)):
        tree = tree_of(r, i)
        failed |= load(load(tree, HANDLE), TREE_FAILED) | load(load(tree, OPERATED), FAILED)
    for i in range(load(r, CURSOR_COUNT)):
        c = cursor_of(r, i)
        if load(c, KEPT) != 0:
            failed |= load(load(c, INDEX), TREE_FAILED) | load(load(c, PENDING), FAILED)
            failed |= load(load(c, FOUND_RECORDS), FAILED)
    for i in range(load(r, LEVEL_COUNT)):
        level = level_of(r, i)
        failed |= load(load(level, ASKED), FAILED) | load(load(level, CARRIES), FAILED)
        failed |= load(load(level, EMITTED), FAILED)
    if failed != 0:
        store(r, OUT_OF_MEMORY, 1)


@jit
def range_of(r: int, number: int, below: int) -> int:
    """The address of the range that a level holds for itself or for a level below."""
    return load(r, RANGES) + 8 * RANGE_WORDS * (number * load(r, LEVEL_COUNT) + below)


@jit
def oracle_row(r: int, number: int, word: int, i: int) -> int:
    """A row of the contributions to a level (ASKED), or of its payload changes (CARRIES)."""
    buffer = load(level_of(r, number), word)
    return load(buffer, ROWS) + 8 * load(buffer, WIDTH) * i


@jit
def walk_levels(r: int) -> None:
    """Apply the maintenance rule, from the first level down."""
    n = load(r, LEVEL_COUNT)
    for below in range(n):
        place = range_of(r, 0, below)
        store(place, ASKED_FROM, 0)
        store(place, ASKED_TO, load(load(level_of(r, below), ASKED), COUNT))
        store(place, CARRIES_FROM, 0)
        store(place, CARRIES_TO, load(load(level_of(r, below), CARRIES), COUNT))
    binding = load(r, BINDING)
    number = 0
    enter_level(r, 0)
    while number >= 0:
        code, any_left = next_code(r, number)
        if any_left == 0:
            number -= 1
            continue
        store(binding, number, code)
        sides = sides_of(r, number, code)
        carried = cut_carries(r, number, code)
        below = 0
        if number + 1 < n:
            below = cut_below(r, number, code)
        in_old = sides & 1
        in_new = sides & 2
        if in_old != 0 and (carried != 0 or in_new == 0):
            seek_all(r, number, OLD, code)
            evaluate(r, number + 1, OLD, FORGET)
        if in_new != 0 and (carried != 0 or in_old == 0):
            seek_all(r, number, NEW, code)
            evaluate(r, number + 1, NEW, RECORD)
        if sides == 3 and carried == 0 and below != 0:
            seek_all(r, number, OLD, code)
            seek_all(r, number, NEW, code)
            number += 1
            enter_level(r, number)


@jit
def enter_level(r: int, number: int) -> None:
    """Run the leapfrog join of a level at each contribution under the binding, and collect the emitted codes.

    Afterwards the iterators stand at their first code again.
    """
    level = level_of(r, number)
    clear_buffer(load(level, EMITTED))
    store(level, EMITTED_AT, 0)
    place = range_of(r, number, number)
    i = load(place, ASKED_FROM)
    end = load(place, ASKED_TO)
    open_level(r, number, OLD)
    open_level(r, number, NEW)
    if i == end:
        return
    first = load(level, FIRST_CURSOR)
    for c in range(first, first + load(level, CURSORS) + load(level, NEGATED)):
        if load(cursor_of(r, c), KEPT) != 0:
            begin_binding(cursor_of(r, c))
    while i < end:
        i = walk_both(r, number, i, end)
    open_level(r, number, OLD)
    open_level(r, number, NEW)


@jit
def walk_both(r: int, number: int, i: int, end: int) -> int:
    """Walk both versions from a contribution on until they meet; returns the first contribution not reached."""
    level = level_of(r, number)
    old = walk_of(r, number, OLD)
    new = walk_of(r, number, NEW)
    row = oracle_row(r, number, ASKED, i) + 8 * number
    begin_at_place(r, number, row)
    high = load(row, 2)
    i += 1
    slack = SLACK * load(level, CURSORS)
    emitted = load(level, EMITTED)
    from_here = load(emitted, COUNT)
    going = True
    while going:
        # Contributions that a walk has already reached only extend the end.
        while i < end and is_reached(old, new, load(oracle_row(r, number, ASKED, i), number)):
            other = load(oracle_row(r, number, ASKED, i), number + 2)
            high = other if other > high else high
            i += 1
        side = OLD if is_not_after(old, new) else NEW
        behind = old if side == OLD else new
        stepping = True
        finished = load(behind, STATE) == FINISHED
        if finished or (load(behind, STATE) != STARTING and load(behind, CANDIDATE) > high):
            # Until it reaches the candidate of the other walk, the walk behind makes steps of its own trace only.
            if are_met(old, new):
                going = False
                stepping = False
            elif at_one_candidate(old, new):
                slack -= 1
                if slack < 0:
                    while load(new, STATE) != FINISHED and load(new, CANDIDATE) <= load(old, CANDIDATE):
                        step(r, number, NEW, LIST)
                    going = False
                    stepping = False
        if stepping and step(r, number, side, LIST) != 0:
            note_emitted(emitted, from_here, load(level, CODE), side)
    settle_steps(r)
    # Codes after the end did not change.
    count = load(emitted, COUNT)
    while count > from_here and load(load(emitted, ROWS) + 16 * (count - 1), 0) > high:
        count -= 1
    store(emitted, COUNT, count)
    return i


@jit
def at_one_candidate(a: int, b: int) -> bool:
    """Whether two walks have the same candidate."""
    if load(a, STATE) != load(b, STATE):
        return False
    return load(a, STATE) != GOING or load(a, CANDIDATE) == load(b, CANDIDATE)


@jit
def is_reached(old: int, new: int, candidate: int) -> bool:
    """Whether one of two walks has reached or passed a candidate."""
    if load(old, STATE) == FINISHED or load(new, STATE) == FINISHED:
        return True
    return candidate <= load(old, CANDIDATE) or candidate <= load(new, CANDIDATE)


@jit
def note_emitted(emitted: int, start: int, code: int, side: int) -> None:
    """Record that the walk of a side emits a code; rows stay in order of codes."""
    bit = 1 if side == OLD else 2
    at = load(emitted, COUNT)
    rows = load(emitted, ROWS)
    while at > start and load(rows, 2 * at - 2) > code:
        at -= 1
    if at > start and load(rows, 2 * at - 2) == code:
        store(rows, 2 * at - 1, load(rows, 2 * at - 1) | bit)
        return
    append(emitted)
    rows = load(emitted, ROWS)
    i = load(emitted, COUNT) - 1
    while i > at:
        store(rows, 2 * i, load(rows, 2 * i - 2))
        store(rows, 2 * i + 1, load(rows, 2 * i - 1))
        i -= 1
    store(rows, 2 * at, code)
    store(rows, 2 * at + 1, bit)


@jit
def begin_at_place(r: int, number: int, row: int) -> None:
    """Start both walks at the place of a contribution, if the cursors that agreed on its candidate still do;

    otherwise at the candidate without an agreed cursor.
    """
    old = walk_of(r, number, OLD)
    new = walk_of(r, number, NEW)
    agreed = load(row, 1)
    if agreed < 0:
        begin_walk(old)
        begin_walk(new)
        return
    candidate = load(row, 0)
    first = load(row, 3)
    ahead = load(row, 4)
    since = load(row, 5)
    if not is_believed(r, number, candidate, agreed, first, ahead, since):
        agreed = 0
        ahead = 0
        since = LEAST
    put_at(old, candidate, agreed, first, ahead, since)
    put_at(new, candidate, agreed, first, ahead, since)


@jit
def is_believed(r: int, number: int, candidate: int, agreed: int, first: int, ahead: int, since: int) -> bool:
    """Whether all cursors that agreed on a candidate stand at it in the new version, and negated atoms lack it.

    An unmatched record proves it; a cursor without a record is read. In records the greatest word also stands for the
    end, so a record proves nothing about that code.
    """
    level = level_of(r, number)
    cursors = load(level, CURSORS)
    for i in range(agreed):
        turn = (first + i) % cursors if i < cursors else i
        c = cursor_of(r, load(level, FIRST_CURSOR) + turn)
        if load(c, POINTED) == 0 and candidate != MOST:
            low = candidate
            if i == 0:
                low = since
            elif i < cursors and (ahead >> turn) & 1 != 0:
                low = LEAST
            found, high = high_of_record(r, c, low)
            if found == 0 or high != candidate:
                return False
        elif i >= cursors:
            add_to_counter(r, OPERATIONS, 1)
            if is_there(r, c, NEW, candidate):
                return False
        else:
            add_to_counter(r, OPERATIONS, 1)
            seek_cursor(c, NEW, candidate)
            if is_at_end(c, NEW) or stands_at(c, NEW) != candidate:
                return False
    return True


@jit
def next_code(r: int, number: int) -> tuple[int, int]:
    """The least unvisited code under the binding that must be visited; and 1 if there is one."""
    level = level_of(r, number)
    code = MOST
    found = 0
    emitted = load(level, EMITTED)
    at = load(level, EMITTED_AT)
    if at < load(emitted, COUNT):
        code = load(load(emitted, ROWS), 2 * at)
        found = 1
    for below in range(number, load(r, LEVEL_COUNT)):
        place = range_of(r, number, below)
        if below > number and load(place, ASKED_FROM) < load(place, ASKED_TO):
            found = 1
            other = load(oracle_row(r, below, ASKED, load(place, ASKED_FROM)), number)
            code = other if other < code else code
        if load(place, CARRIES_FROM) < load(place, CARRIES_TO):
            found = 1
            other = load(oracle_row(r, below, CARRIES, load(place, CARRIES_FROM)), number)
            code = other if other < code else code
    return code, found


@jit
def sides_of(r: int, number: int, code: int) -> int:
    """The versions that emit a code: 1 the old one, 2 the new one, 3 both, 0 none.

    Without a contribution at the code, both or none emit it.
    """
    level = level_of(r, number)
    emitted = load(level, EMITTED)
    at = load(level, EMITTED_AT)
    if at < load(emitted, COUNT) and load(load(emitted, ROWS), 2 * at) == code:
        store(level, EMITTED_AT, at + 1)
        return load(load(emitted, ROWS), 2 * at + 1)
    first = load(level, FIRST_CURSOR)
    for i in range(first, first + load(level, CURSORS)):
        c = cursor_of(r, i)
        add_to_counter(r, OPERATIONS, 1)
        seek_cursor(c, NEW, code)
        if is_at_end(c, NEW) or stands_at(c, NEW) != code:
            return 0
    if not all_hold(r, number, code):
        return 0
    first += load(level, CURSORS)
    for i in range(first, first + load(level, NEGATED)):
        add_to_counter(r, OPERATIONS, 1)
        if is_there(r, cursor_of(r, i), NEW, code):
            return 0
    return 3


@jit
def cut_carries(r: int, number: int, code: int) -> int:
    """Skip the payload changes at a code of this variable; returns 1 if there are any."""
    place = range_of(r, number, number)
    i = load(place, CARRIES_FROM)
    start = i
    end = load(place, CARRIES_TO)
    while i < end and load(oracle_row(r, number, CARRIES, i), number) == code:
        i += 1
    store(place, CARRIES_FROM, i)
    return 1 if i > start else 0


@jit
def cut_below(r: int, number: int, code: int) -> int:
    """Set the next level's ranges below a code, and skip them here; returns 1 if one is not empty."""
    found = 0
    for below in range(number + 1, load(r, LEVEL_COUNT)):
        place = range_of(r, number, below)
        under = range_of(r, number + 1, below)
        i = load(place, ASKED_FROM)
        store(under, ASKED_FROM, i)
        end = load(place, ASKED_TO)
        while i < end and load(oracle_row(r, below, ASKED, i), number) == code:
            i += 1
        store(under, ASKED_TO, i)
        found = 1 if i > load(place, ASKED_FROM) else found
        store(place, ASKED_FROM, i)
        i = load(place, CARRIES_FROM)
        store(under, CARRIES_FROM, i)
        end = load(place, CARRIES_TO)
        while i < end and load(oracle_row(r, below, CARRIES, i), number) == code:
            i += 1
        store(under, CARRIES_TO, i)
        found = 1 if i > load(place, CARRIES_FROM) else found
        store(place, CARRIES_FROM, i)
    return found
