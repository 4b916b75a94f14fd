"""Maintains the rows of ``ORDER BY ... LIMIT`` over an ordered index, row by row.

The rows of the table in the order of the index, each repeated by its one payload word (not at all if negative), are a
sequence. The result is the part of it from place ``first`` up to ``last``: what the first ``last`` have and the first
``first`` have not. So the header of the index holds two *boundaries*. Each stores the last row before it, how many of
that row's copies come before it, and how many copies of all rows do.

When the weight of a row has changed, the caller calls ``top_start``, then ``top_next`` repeatedly, which returns the
rows whose copies entered or left the result: the row itself, then those that a boundary must pass to restore its number
of copies. Each call takes a search or two in the index, O(log n), and for each returned row a copy crosses a boundary.
"""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED, KEY, row_at, row_number
from freshviews.kernel.memory.mem import inlined, jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.ordered.index import TOP, compare_rows, ordered_neighbour

# Words, from TOP of the header on, of each boundary, the one at ``last`` first.
LAST = 0  # row number + 1 of the last row before it, or 0
TAKEN = 1  # how many of its copies come before
HELD = 2  # how many copies of all rows do
_BOUNDARY = 3
# Then, of the change that is being reported:
OWN = 6  # row number + 1 of the row whose weight has changed
WAS = 7  # its weight before
SIDE = 8  # twice the current boundary, plus 1 after the row itself was handled
MOVED = 9  # how many copies of the returned row entered, or, if negative, left

MOST = 1 << 40
"""Cap on the multiplicity of a row, above any LIMIT + OFFSET."""


@inlined
def _weight(count: int) -> int:
    return 0 if count < 0 else min(count, MOST)


@inlined
def _weight_of(t: int, child: int) -> int:
    return 0 if child == 0 else _weight(load(row_at(t, child - 1), load(t, KEY)))


@outside
def top_start(o: int, t: int, row: int, before: int) -> None:
    """Start after the count of the row at an address changed from ``before``.

    A row that appeared is in the index; one that vanished is not, but is still in the table. Nothing is reported after
    memory ran out.
    """
    store(o, TOP + OWN, row_number(t, row) + 1)
    store(o, TOP + WAS, _weight(before))
    store(o, TOP + SIDE, 0 if load(t, FAILED) == 0 else 4)


@outside
def top_next(o: int, t: int, first: int, last: int) -> int:
    """The address of the next row whose copies entered or left the result, and their number in MOVED; 0 at the end."""
    while load(o, TOP + SIDE) < (4 if first > 0 else 2):
        side = load(o, TOP + SIDE)
        b = o + 8 * (TOP + (side >> 1) * _BOUNDARY)
        place = last if side < 2 else first
        if side & 1 == 0:
            store(o, TOP + SIDE, side + 1)
            found = load(o, TOP + OWN)
            moved = _take_in(o, t, b, place)
        else:
            found = _passed(o, t, b, place)
            moved = load(o, TOP + MOVED)
            if found == 0:
                store(o, TOP + SIDE, side + 1)
        if found != 0 and moved != 0:
            store(o, TOP + MOVED, moved if side < 2 else -moved)
            return row_at(t, found - 1)
    return 0


@jit
def _take_in(o: int, t: int, b: int, place: int) -> int:
    """How many copies of the changed row enter before a boundary at its position, or leave if negative."""
    own = load(o, TOP + OWN)
    was = load(o, TOP + WAS)
    row = row_at(t, own - 1)
    now = _weight(load(row, load(t, KEY)))
    last = load(b, LAST)
    taken = load(b, TAKEN)
    # -1, 0 or 1: the row comes before the last row, is it, or comes after it.
    order = 1
    if last == own:
        order = 0
    elif last != 0:
        order = compare_rows(o, t, row, row_at(t, last - 1))
    moved = 0
    if now > was:
        if load(b, HELD) < place or order < 0:
            moved = now - was
            if order > 0:
                store(b, LAST, own)
                taken = 0
            if order >= 0:
                taken += moved
    elif order == 0:
        moved = min(taken, now) - taken
        taken += moved
    elif order < 0:
        moved = now - was
    store(b, TAKEN, taken)
    store(b, HELD, load(b, HELD) + moved)
    if last == own and load(row, load(t, KEY)) == 0:
        _step_back(o, t, b)
    return moved


@jit
def _step_back(o: int, t: int, b: int) -> None:
    """Move the last row behind the boundary; the row before it becomes the last."""
    last = ordered_neighbour(o, t, row_at(t, load(b, LAST) - 1), 0)
    store(b, LAST, last)
    store(b, TAKEN, _weight_of(t, last))


@jit
def _passed(o: int, t: int, b: int, place: int) -> int:
    """A row whose copies must cross a boundary, as row number + 1, and their number in MOVED; 0 if there is none."""
    while load(b, HELD) != place:
        last = load(b, LAST)
        taken = load(b, TAKEN)
        if load(b, HELD) > place:
            moved = -min(taken, load(b, HELD) - place)
        else:
            moved = min(_weight_of(t, last) - taken, place - load(b, HELD))
            if moved == 0:
                following = ordered_neighbour(o, t, 0 if last == 0 else row_at(t, last - 1), 1)
                if following == 0:
                    return 0
                store(b, LAST, following)
                store(b, TAKEN, 0)
                continue
        store(b, TAKEN, taken + moved)
        store(b, HELD, load(b, HELD) + moved)
        store(o, TOP + MOVED, moved)
        if taken + moved == 0:
            _step_back(o, t, b)
        if moved != 0:
            return last
    return 0
