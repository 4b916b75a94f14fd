"""Updates an ordered index when a row of its table is inserted, removed or changed.

- After a row is inserted, call ``ordered_insert``.
- Before a row is removed, call ``ordered_remove``.
- After the payload of a row has changed, call ``ordered_update``.
"""

from __future__ import annotations

from freshviews.kernel.hash.index import ROWS_COUNT, slice_rows
from freshviews.kernel.hash.table import FAILED, row_at
from freshviews.kernel.memory.mem import jit, load, load32, store, store32
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.ordered.folds import fold_row
from freshviews.kernel.ordered.groups import OUTSIDE, SMALL, are_outside, group_of_row, is_outside
from freshviews.kernel.ordered.index import (
    FOLDS,
    ROOT,
    ROW_WORD,
    SUMS,
    compare_rows,
    left_link,
    right_link,
    tree_insert,
    tree_remove,
)
from freshviews.kernel.ordered.sums import add_payload, add_sum, clear_total, subtree_of, sum_at, sum_row, total_of


@outside
def ordered_insert(o: int, t: int, number: int) -> None:
    """Insert row ``number`` of table ``t``, which is not in the index."""
    if load(t, FAILED) != 0:
        return
    row = row_at(t, number)
    group = group_of_row(o, row)
    if are_outside(o, t, group, number):
        if load(group, ROWS_COUNT) <= SMALL:
            store(row, load(o, ROW_WORD), OUTSIDE)
            return
        rows = slice_rows(group)
        for i in range(load(group, ROWS_COUNT)):
            if is_outside(o, row_at(t, load32(rows, i))):
                _enter(o, t, load32(rows, i))
    _enter(o, t, number)


@outside
def ordered_remove(o: int, t: int, number: int) -> None:
    """Remove row ``number`` of table ``t``, before the table removes it; its payload is zero."""
    if load(t, FAILED) != 0:
        return
    row = row_at(t, number)
    if is_outside(o, row):
        store(row, load(o, ROW_WORD), 0)
        return
    own = number + 1
    below = o + 8 * ROOT
    if load(o, SUMS) != 0:
        _write_growth(o, t, own)
        below = _add_above(o, t, own)
    tree_remove(o, t, number)
    if load(o, SUMS) != 0 or load(o, FOLDS) != 0:
        # The search path of the row has all rows where its two subtrees were joined. Sums above are right.
        _recompute_path(o, t, own, load32(below, 0))


@outside
def ordered_update(o: int, t: int, number: int) -> None:
    """Bring sums and folds up to date after the payload of row ``number``, which is in the index, has changed."""
    row = row_at(t, number)
    if load(t, FAILED) != 0 or is_outside(o, row):
        return
    own = number + 1
    if load(o, FOLDS) != 0:
        _recompute_row(o, t, own)
        _recompute_path(o, t, own, load32(o + 8 * ROOT, 0))
        return
    _write_growth(o, t, own)
    _add_above(o, t, own)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        add_sum(at, subtree_of(at, row), total_of(o, at), 1)


@jit
def _enter(o: int, t: int, number: int) -> None:
    """Insert a row into the tree, and into folds and sums."""
    tree_insert(o, t, number)
    if load(o, FOLDS) == 0 and load(o, SUMS) == 0:
        return
    own = number + 1
    # The row has split a subtree, so its neighbours on both sides have changed.
    _recompute_path(o, t, own, load32(left_link(o, t, own), 0))
    _recompute_path(o, t, own, load32(right_link(o, t, own), 0))
    _recompute_row(o, t, own)
    if load(o, FOLDS) != 0:
        _recompute_path(o, t, own, load32(o + 8 * ROOT, 0))
        return
    row = row_at(t, number)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        clear_total(o, at)
        add_payload(at, total_of(o, at), row)
    _add_above(o, t, own)


@jit
def _recompute_row(o: int, t: int, child: int) -> None:
    """Recompute the folds and the sums of a row from those of its children."""
    fold_row(o, t, child)
    sum_row(o, t, child)


@jit
def _recompute_path(o: int, t: int, own: int, top: int) -> None:
    """Recompute the rows on the search path for row ``own`` from ``top`` on, the lowest one first.

    After a change, folds and sums are recomputed along one path of the tree: O(log n) rows, expected. The path needs no
    array. On the way down each link is reversed to point to the row above; on the way up it is restored (Schorr and
    Waite, CACM 1967). The sign of a reversed link says whether it led to the left or to the right child.
    """
    row = row_at(t, own - 1)
    child = top
    above = 0
    while child != 0 and child != own:
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        below = load32(link, 0)
        store32(link, 0, above)
        above = -child if before else child
        child = below
    while above != 0:
        at = -above if above < 0 else above
        link = left_link(o, t, at) if above < 0 else right_link(o, t, at)
        above = load32(link, 0)
        store32(link, 0, child)
        _recompute_row(o, t, at)
        child = at


@jit
def _write_growth(o: int, t: int, own: int) -> None:
    """Write the growth of a row's sums to the header: its payload now minus its payload at the last change."""
    row = row_at(t, own - 1)
    left = load32(left_link(o, t, own), 0)
    right = load32(right_link(o, t, own), 0)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        target = total_of(o, at)
        clear_total(o, at)
        add_payload(at, target, row)
        if left != 0:
            add_sum(at, target, subtree_of(at, row_at(t, left - 1)), 1)
        if right != 0:
            add_sum(at, target, subtree_of(at, row_at(t, right - 1)), 1)
        add_sum(at, target, subtree_of(at, row), -1)


@jit
def _add_above(o: int, t: int, own: int) -> int:
    """Add the totals in the header to the sums of all rows above a row; return the link to the row."""
    row = row_at(t, own - 1)
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != own and child != 0:
        above = row_at(t, child - 1)
        for f in range(load(o, SUMS)):
            at = sum_at(o, t, f)
            add_sum(at, subtree_of(at, above), total_of(o, at), 1)
        before = compare_rows(o, t, row, above) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    return link
