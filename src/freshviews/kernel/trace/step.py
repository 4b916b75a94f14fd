"""Runs one step of a leapfrog join, or all steps under given values of the first variables. Records each step."""

from __future__ import annotations

from freshviews.kernel.memory.mem import inlined, jit, load, store
from freshviews.kernel.trace.filters import all_hold, run_from
from freshviews.kernel.trace.sensitivity import report
from freshviews.kernel.trace.variable_join import (
    AGREED,
    AHEAD,
    BINDING,
    CANDIDATE,
    CODE,
    CONDITIONS,
    CURSORS,
    FINISHED,
    FIRST,
    FIRST_CURSOR,
    LEAST,
    LEVEL_COUNT,
    MOST,
    NEGATED,
    SINCE,
    START,
    STARTING,
    STATE,
    begin_walk,
    cursor_of,
    derive,
    go_behind,
    is_at_end,
    level_of,
    open_cursor,
    put_at,
    seek_cursor,
    stands_at,
    turn_of,
    walk_of,
)


@inlined
def agree(r: int, number: int, w: int) -> int:
    """Skip the cursors that already stand at the candidate.

    If all agree, and the conditions are true, emit the candidate in CODE and return 1. The walk continues after the
    candidate, also if a condition fails.
    """
    level = level_of(r, number)
    cursors = load(level, CURSORS)
    agreed = load(w, AGREED)
    ahead = load(w, AHEAD)
    if ahead != 0:
        first = load(w, FIRST)
        while agreed < cursors and (ahead >> ((first + agreed) % cursors)) & 1 != 0:
            agreed += 1
        store(w, AGREED, agreed)
    if agreed < cursors:
        return 0
    code = load(w, CANDIDATE)
    if agreed == cursors and load(level, CONDITIONS) != 0 and not all_hold(r, number, code):
        go_behind(w, code)
        return 0
    if agreed < cursors + load(level, NEGATED):
        return 0
    store(level, CODE, code)
    go_behind(w, code)
    return 1


@jit
def ask_negated(r: int, number: int, w: int, side: int, mode: int) -> int:
    """Seek the candidate in the complement of the next negated atom; returns 1 if the candidate is emitted.

    If the complement lacks it, the walk continues at the next gap.
    """
    code = load(w, CANDIDATE)
    agreed = load(w, AGREED)
    c = load(level_of(r, number), FIRST_CURSOR) + agreed
    run = run_from(r, cursor_of(r, c), side, code)
    turn = turn_of(agreed, load(w, FIRST), load(w, AHEAD))
    if run > 0:
        last = code + (run - 1)
        report(r, c, side, code, last + 1 if last < MOST else MOST, turn, load(w, SINCE), mode)
        go_behind(w, last)
        return 0
    report(r, c, side, code, code, turn, load(w, SINCE), mode)
    store(w, AGREED, agreed + 1)
    return agree(r, number, w)


@jit
def start(r: int, number: int, w: int, side: int, mode: int) -> int:
    """Open all iterators; returns 1 if a code is emitted."""
    level = level_of(r, number)
    first = load(level, FIRST_CURSOR)
    cursors = load(level, CURSORS)
    greatest = LEAST
    foremost = 0
    ended = False
    for i in range(cursors):
        c = cursor_of(r, first + i)
        open_cursor(c, side)
        code = stands_at(c, side)
        ended = ended or is_at_end(c, side)
        if code > greatest:
            greatest = code
            foremost = i
        report(r, first + i, side, LEAST, code, START, LEAST, mode)
    if ended:
        store(w, STATE, FINISHED)
        return 0
    ahead = 0
    for i in range(cursors):
        if i != foremost and stands_at(cursor_of(r, first + i), side) == greatest:
            ahead |= 1 << i
    put_at(w, greatest, 1, foremost, ahead, LEAST)
    return agree(r, number, w)


@jit
def step(r: int, number: int, side: int, mode: int) -> int:
    """Do one operation, or at the start one per iterator; returns 1 if a code is emitted, in CODE."""
    level = level_of(r, number)
    w = walk_of(r, number, side)
    if load(w, STATE) == STARTING:
        return start(r, number, w, side, mode)
    cursors = load(level, CURSORS)
    candidate = load(w, CANDIDATE)
    agreed = load(w, AGREED)
    if agreed >= cursors:
        return ask_negated(r, number, w, side, mode)
    turn = load(w, FIRST) + agreed
    if turn >= cursors:
        turn -= cursors
    c = load(level, FIRST_CURSOR) + turn
    cursor = cursor_of(r, c)
    seek_cursor(cursor, side, candidate)
    code = stands_at(cursor, side)
    report(r, c, side, candidate, code, turn_of(agreed, load(w, FIRST), load(w, AHEAD)), load(w, SINCE), mode)
    if is_at_end(cursor, side):
        store(w, STATE, FINISHED)
        return 0
    if code == candidate and agreed > 0:
        store(w, AGREED, agreed + 1)
    else:
        put_at(w, code, 1, turn, 0, candidate)
    return agree(r, number, w)


@jit
def evaluate(r: int, number: int, side: int, mode: int) -> None:
    """Run the leapfrog triejoin below the binding of the first ``number`` variables, and report every step."""
    n = load(r, LEVEL_COUNT)
    if number == n:
        derive(r, side)
        return
    binding = load(r, BINDING)
    top = number
    begin_walk(walk_of(r, number, side))
    while number >= top:
        if load(walk_of(r, number, side), STATE) == FINISHED:
            number -= 1
        elif step(r, number, side, mode) != 0:
            store(binding, number, load(level_of(r, number), CODE))
            if number + 1 == n:
                derive(r, side)
            else:
                number += 1
                begin_walk(walk_of(r, number, side))
