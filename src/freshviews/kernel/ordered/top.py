"""Finds how the change of one row moves other rows of its group, for ``ORDER BY ... LIMIT`` and window functions.

The caller calls ``top_start``, then calls one of these functions until it returns 0:

- ``top_next`` returns the rows whose copies entered or left the places from ``first`` up to ``last``.
- ``beside_next`` returns pairs of a row and the row ``shift`` places away: first the former pairs, then the new ones.
- ``frame_next`` returns pairs of a row and a row of its frame. A frame has the rows ``low`` to ``high`` places later.
"""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED, KEY, row_at, row_number
from freshviews.kernel.memory.mem import inlined, jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.kernel.ordered.index import TOP, compare_rows, prefix_of
from freshviews.kernel.ordered.places import MOST, copies_before, copies_of, row_at_place, words_of_group

# Words of the header, from TOP on.
OWN = 0  # row number + 1 of the changed row; when renumbering, 1 after the old places of the next row were returned
BEGIN = 1  # copies of all rows of earlier groups
BEFORE = 2  # the place of the row in its group
WAS = 3  # its copies before
NOW = 4  # its copies now
PHASE = 5  # the part of the report that comes next
AT = 6  # the next place of the report
MOVED = 7  # copies of the returned row that entered or, if negative, left
PLACE = 8  # the first of the returned places, from 1; of a frame, the next pair of the row
OTHER = 9  # the address of the row beside the returned one, or 0

_END = 3


@outside
def top_start(o: int, t: int, row: int, before: int) -> None:
    """Start after the count of the row at an address changed from ``before``.

    A row that appeared is in the index; a row that vanished is not, but is still in the table. Nothing is reported
    after memory ran out.

    The copies of a group's rows are a sequence, in the order of the index. Each copy has a place in the sequence
    (``places``). The caller has already changed the count of one row, in the table and in the tree. The old sequence is
    not stored: it differs from the new one only in the copies of that row. One descent finds the row at a place of the
    old or the new sequence.
    """
    was = min(max(before, 0), MOST)
    now = copies_of(t, row)
    store(o, TOP + OWN, row_number(t, row) + 1)
    store(o, TOP + WAS, was)
    store(o, TOP + NOW, now)
    store(o, TOP + AT, -1)
    store(o, TOP + PHASE, 0)
    if load(t, FAILED) != 0 or was == now:
        store(o, TOP + PHASE, _END)
        return
    words = words_of_group(o, t)
    begin = copies_before(o, t, row, words) if words > 0 else 0
    store(o, TOP + BEGIN, begin)
    store(o, TOP + BEFORE, copies_before(o, t, row, -1) - begin)


@inlined
def _next_phase(o: int) -> None:
    store(o, TOP + PHASE, load(o, TOP + PHASE) + 1)
    store(o, TOP + AT, -1)


@jit
def _row_now(o: int, t: int, place: int) -> int:
    """The row at a place of the group, as row number + 1; 0 if the group has no such place."""
    if place < 0:
        return 0
    found = row_at_place(o, t, load(o, TOP + BEGIN) + place)
    if found == 0:
        return 0
    own = row_at(t, load(o, TOP + OWN) - 1)
    return found if compare_prefix(own, row_at(t, found - 1), words_of_group(o, t)) == 0 else 0


@jit
def _row_before(o: int, t: int, place: int) -> int:
    """The row at a place of the group before the change."""
    if place < load(o, TOP + BEFORE):
        return _row_now(o, t, place)
    if place < load(o, TOP + BEFORE) + load(o, TOP + WAS):
        return load(o, TOP + OWN)
    return _row_now(o, t, place + load(o, TOP + NOW) - load(o, TOP + WAS))


@jit
def _place_of(o: int, t: int, child: int) -> int:
    """The place of the first copy of a row of the group."""
    if child == load(o, TOP + OWN):
        return load(o, TOP + BEFORE)
    return copies_before(o, t, row_at(t, child - 1), -1) - load(o, TOP + BEGIN)


@inlined
def _overlap(place: int, copies: int, first: int, last: int) -> int:
    """The number of ``copies`` copies from ``place`` on that are at places from ``first`` up to ``last``."""
    return max(min(place + copies, last) - max(place, first), 0)


@outside
def top_next(o: int, t: int, first: int, last: int) -> int:
    """The address of the next row whose copies entered or left the places from ``first`` up to ``last``, and their
    number in MOVED; 0 at the end."""
    place = load(o, TOP + BEFORE)
    was = load(o, TOP + WAS)
    now = load(o, TOP + NOW)
    while load(o, TOP + PHASE) < _END:
        phase = load(o, TOP + PHASE)
        found = 0
        moved = 0
        if phase == 0:
            found = load(o, TOP + OWN)
            moved = _overlap(place, now, first, last) - _overlap(place, was, first, last)
        else:
            # Rows after the changed one that have crossed the first or the last place.
            end = last if phase == 1 else first
            start = max(min(end, end + now - was), place + now, load(o, TOP + AT))
            until = max(end, end + now - was)
            found = _row_now(o, t, start) if start < until else 0
            if found != 0:
                after = min(_place_of(o, t, found) + copies_of(t, row_at(t, found - 1)), until)
                moved = after - start if (now < was) == (phase == 1) else start - after
                store(o, TOP + AT, after)
        if found == 0 or phase == 0:
            _next_phase(o)
        if moved != 0:
            store(o, TOP + MOVED, moved)
            return row_at(t, found - 1)
    return 0


@outside
def beside_next(o: int, t: int, shift: int) -> int:
    """The address of the next row for which the row ``shift`` places later has changed; OTHER has the address of that
    row, or 0. MOVED is -1 for a pair that vanished, and 1 for one that appeared. Returns 0 at the end."""
    while load(o, TOP + PHASE) < 2:
        past = load(o, TOP + PHASE) == 0
        place = load(o, TOP + BEFORE)
        at = load(o, TOP + AT)
        if at < 0:
            at = max(place - max(shift, 0), 0)
        copies = load(o, TOP + WAS) if past else load(o, TOP + NOW)
        found = 0
        if at < place + copies + max(-shift, 0):
            found = _row_before(o, t, at) if past else _row_now(o, t, at)
        if found == 0:
            _next_phase(o)
            continue
        other = _row_before(o, t, at + shift) if past else _row_now(o, t, at + shift)
        store(o, TOP + AT, at + 1)
        store(o, TOP + MOVED, -1 if past else 1)
        store(o, TOP + OTHER, 0 if other == 0 else row_at(t, other - 1))
        return row_at(t, found - 1)
    return 0


@inlined
def _without(place: int, x: int, copies: int) -> int:
    """The number of other rows before a place ``x`` of a group, if the changed row has ``copies`` copies."""
    return max(x if x <= place else max(place, x - copies), 0)


@outside
def frame_next(o: int, t: int, low: int, high: int) -> int:
    """The address of the next row whose frame, the rows from ``low`` to ``high`` places later, has changed; OTHER has
    the address of a row that has entered it or, if MOVED is negative, left it. Returns 0 at the end.

    The first part has the other rows of the group, by their places without the changed row; the next two have the
    frames of the changed row before and after the change.
    """
    place = load(o, TOP + BEFORE)
    was = load(o, TOP + WAS)
    now = load(o, TOP + NOW)
    while load(o, TOP + PHASE) < _END:
        phase = load(o, TOP + PHASE)
        if load(o, TOP + AT) < 0:
            store(o, TOP + AT, max(place - max(high, 0), 0) if phase == 0 else 0)
            store(o, TOP + PLACE, 0)
        at = load(o, TOP + AT)
        i = load(o, TOP + PLACE)
        found = 0
        other = 0
        moved = 0
        is_last = True
        if phase == 0:
            found = _row_now(o, t, at if at < place else at + now) if at < place + max(-low, 0) else 0
            if found != 0:
                before = at if at < place else at + was
                after = at if at < place else at + now
                end_before = _without(place, before + high + 1, was)
                end_after = _without(place, after + high + 1, now)
                begin_before = _without(place, before + low, was)
                begin_after = _without(place, after + low, now)
                ends = abs(end_after - end_before)
                is_last = i >= ends + abs(begin_after - begin_before)
                if i == 0:
                    moved = _overlap(place, now, after + low, after + high + 1)
                    moved -= _overlap(place, was, before + low, before + high + 1)
                    other = load(o, TOP + OWN)
                else:
                    grows = end_after > end_before
                    x = min(end_before, end_after) + i - 1
                    if i > ends:
                        grows = begin_after < begin_before
                        x = min(begin_before, begin_after) + i - ends - 1
                    moved = 1 if grows else -1
                    other = _row_now(o, t, x if x < place else x + now)
        elif at < (was if phase == 1 else now):
            found = load(o, TOP + OWN)
            moved = -1 if phase == 1 else 1
            x = max(place + at + low, 0) + i
            if x <= place + at + high:
                other = _row_before(o, t, x) if phase == 1 else _row_now(o, t, x)
            is_last = other == 0
        if found == 0:
            _next_phase(o)
            continue
        store(o, TOP + AT, at + 1 if is_last else at)
        store(o, TOP + PLACE, 0 if is_last else i + 1)
        if moved != 0 and other != 0:
            store(o, TOP + MOVED, moved)
            store(o, TOP + OTHER, row_at(t, other - 1))
            return row_at(t, found - 1)
    return 0


# Numbers are settled after all changes of a version. A row has three payload words: its count, then the number of its
# reported places, and the first of these.
HELD = 1
NUMBER = 2


@outside
def renumber_start(o: int, t: int) -> None:
    """Start at the place of the key in the header, whose row has changed or vanished.

    A change shifts the ROW_NUMBER of all later rows, so these numbers are updated only once per version. For each
    changed row, the caller calls ``renumber_start``, then ``renumber_next`` until it returns 0.
    """
    key = prefix_of(o)
    words = words_of_group(o, t)
    begin = copies_before(o, t, key, words) if words > 0 else 0
    store(o, TOP + BEGIN, begin)
    store(o, TOP + AT, copies_before(o, t, key, -1) - begin)
    store(o, TOP + OWN, 0)
    store(o, TOP + PHASE, 0 if load(t, FAILED) == 0 else _END)


@outside
def renumber_next(o: int, t: int, last: int, ranks: int) -> int:
    """The address of the next row whose reported places are wrong; 0 at the end.

    MOVED is -1 for its old places, then 1 for its new places: NOW places from PLACE on, counted from 1. With ``ranks``
    0, each copy has a place; with 1, a row has the place of its first copy. Places up to ``last`` are reported. If an
    unchanged row is right, so are the rows after it, up to the next changed row.
    """
    key = prefix_of(o)
    words = words_of_group(o, t)
    while load(o, TOP + PHASE) != _END:
        start = load(o, TOP + AT)
        found = row_at_place(o, t, load(o, TOP + BEGIN) + start)
        if found == 0 or compare_prefix(key, row_at(t, found - 1), words) != 0:
            break
        row = row_at(t, found - 1)
        copies = copies_of(t, row)
        payload = row + 8 * load(t, KEY)
        held = load(payload, HELD)
        number = load(payload, NUMBER)
        now = max(min(1 if ranks != 0 else copies, last - start), 0)
        place = start if now != 0 else 0
        right = held == now and number == place
        # The changed row itself may be right by chance.
        if right and load(o, TOP + OWN) == 0 and compare_rows(o, t, key, row) != 0:
            break
        if held != 0 and not right:
            store(payload, HELD, 0)
            store(payload, NUMBER, 0)
            store(o, TOP + OWN, 1)
            store(o, TOP + MOVED, -1)
            store(o, TOP + NOW, held)
            store(o, TOP + PLACE, number + 1)
            return row
        store(payload, HELD, now)
        store(payload, NUMBER, place)
        store(o, TOP + OWN, 0)
        store(o, TOP + AT, start + copies)
        if not right:
            store(o, TOP + MOVED, 1)
            store(o, TOP + NOW, now)
            store(o, TOP + PLACE, place + 1)
            return row
    return 0
