"""Selects the rows whose running sum is within a limit. Each group has a search tree whose nodes store subtree sums."""

from __future__ import annotations

from freshviews.kernel.hash.index import ROWS_COUNT, slice_rows
from freshviews.kernel.hash.table import FAILED, KEY, row_at, row_number
from freshviews.kernel.memory.mem import add_overflows, add_wrapping, inlined, jit, load, load32, store, store32
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.ordered.index import ROW_WORD, TOP, compare_rows, left_link, priority_of, right_link

# Words of the payload.
ROWS = 0
WEIGHT = 1
NUMBER = 2
SELECTED = 3

# Words of a row, from ROW_WORD of the index on. The first has the children.
PARENT = 1  # half words: row number + 1 of the parent, or 0; whether the words below are out of date
SUM = 2
KNOWN = 3  # number of weights in the subtree that are not NULL
MOST = 4  # the greatest F of its selected points, or NO_MOST
LEAST = 5  # the least F of its other points that have rows, or NO_LEAST
FIRST = 2  # offset of MOST and LEAST for the case that nothing comes before the subtree
TREE_WORDS = 8

# Words of the header, from TOP on.
VALUE = 0  # the definition of F
NULLABLE = 1  # 1 if F is NULL when nothing comes before
ROOT_NOW = 2  # row number + 1 of the root of the current group
LIMIT = 3
STRICT = 4  # 1 if F must be below the limit, 0 if it may equal it
OPEN = 5  # 0 if no point is within the limit
OVERFLOWN = 6  # 1 after a sum that does not fit

# Definitions of F.
BEFORE = 0
THROUGH = 1
ITSELF = 2
NEGATED = 3  # the last key word times -1

NO_MOST = -(2**63)
NO_LEAST = 2**63 - 1
BEYOND = 2**63 - 1
"""Stands for the greatest F if a selected point has F NULL."""


@inlined
def _tree(o: int, t: int, child: int) -> int:
    return row_at(t, child - 1) + 8 * load(o, ROW_WORD)


@inlined
def _parent(o: int, t: int, child: int) -> int:
    return load32(_tree(o, t, child) + 8 * PARENT, 0)


@inlined
def _set_parent(o: int, t: int, child: int, parent: int) -> None:
    store32(_tree(o, t, child) + 8 * PARENT, 0, parent)


@jit
def _plus(o: int, a: int, b: int) -> int:
    """a + b modulo 2^64; notes a sum that does not fit, or equals NO_MOST or NO_LEAST."""
    total = add_wrapping(a, b)
    if add_overflows(a, b) != 0 or total == NO_MOST or total == NO_LEAST:
        store(o, TOP + OVERFLOWN, 1)
    return total


@inlined
def _own(o: int, t: int, row: int, before: int, weight: int) -> int:
    """F of a point; ``before`` is the sum of the weights before it."""
    value = load(o, TOP + VALUE)
    if value == BEFORE:
        return before
    if value == THROUGH:
        return _plus(o, before, weight)
    code = load(row, load(t, KEY) - 1)
    return code if value == ITSELF else -code


@jit
def _fold(o: int, t: int, child: int) -> None:
    """Recompute a node's summary of its subtree from its children."""
    row = row_at(t, child - 1)
    tree = row + 8 * load(o, ROW_WORD)
    payload = row + 8 * load(t, KEY)
    left = load32(tree, 0)
    right = load32(tree, 1)
    total = 0
    known = 0
    most = NO_MOST
    least = NO_LEAST
    most_first = NO_MOST
    least_first = NO_LEAST
    if left != 0:
        below = _tree(o, t, left)
        total = load(below, SUM)
        known = load(below, KNOWN)
        most = load(below, MOST)
        least = load(below, LEAST)
        most_first = load(below, MOST + FIRST)
        least_first = load(below, LEAST + FIRST)
    weight = load(payload, WEIGHT)
    through = _plus(o, total, weight)
    after = known + load(payload, NUMBER)
    if load(payload, ROWS) == 0:
        store(payload, SELECTED, 0)
    else:
        value = _own(o, t, row, total, weight)
        something = after if load(o, TOP + VALUE) == THROUGH else known
        if load(payload, SELECTED) != 0:
            most = max(most, value)
            most_first = max(most_first, value if something > 0 else BEYOND)
        else:
            least = min(least, value)
            if something > 0:
                least_first = min(least_first, value)
    if right != 0:
        below = _tree(o, t, right)
        shift = FIRST if after <= 0 else 0
        most = max(most, _shifted(o, load(below, MOST), through))
        least = min(least, _shifted(o, load(below, LEAST), through))
        most_first = max(most_first, _shifted(o, load(below, MOST + shift), through))
        least_first = min(least_first, _shifted(o, load(below, LEAST + shift), through))
        through = _plus(o, through, load(below, SUM))
        after += load(below, KNOWN)
    store(tree, SUM, through)
    store(tree, KNOWN, after)
    store(tree, MOST, most)
    store(tree, LEAST, least)
    store(tree, MOST + FIRST, most_first)
    store(tree, LEAST + FIRST, least_first)


@inlined
def _shifted(o: int, extreme: int, before: int) -> int:
    """An extreme of a subtree, plus the sum before the subtree."""
    return extreme if extreme == NO_MOST or extreme == NO_LEAST else _plus(o, extreme, before)


@jit
def _mark(o: int, t: int, child: int) -> None:
    """Mark a node and all above it; stops at a marked node, above which all are marked."""
    while child != 0:
        place = _tree(o, t, child) + 8 * PARENT
        if load32(place, 1) != 0:
            return
        store32(place, 1, 1)
        child = load32(place, 0)


@jit
def _refold(o: int, t: int, root: int) -> None:
    """Recompute the marked nodes below a root, children first."""
    child = root
    while child != 0:
        tree = _tree(o, t, child)
        left = load32(tree, 0)
        right = load32(tree, 1)
        if left != 0 and load32(_tree(o, t, left) + 8 * PARENT, 1) != 0:
            child = left
        elif right != 0 and load32(_tree(o, t, right) + 8 * PARENT, 1) != 0:
            child = right
        else:
            if load32(tree + 8 * PARENT, 1) != 0:
                _fold(o, t, child)
                store32(tree + 8 * PARENT, 1, 0)
            child = 0 if child == root else load32(tree + 8 * PARENT, 0)


@jit
def _lift(o: int, t: int, child: int) -> None:
    """Rotate a node above its parent."""
    parent = _parent(o, t, child)
    above = _parent(o, t, parent)
    if load32(left_link(o, t, parent), 0) == child:
        inner = load32(right_link(o, t, child), 0)
        store32(left_link(o, t, parent), 0, inner)
        store32(right_link(o, t, child), 0, parent)
    else:
        inner = load32(left_link(o, t, child), 0)
        store32(right_link(o, t, parent), 0, inner)
        store32(left_link(o, t, child), 0, parent)
    if inner != 0:
        _set_parent(o, t, inner, parent)
    _set_parent(o, t, parent, child)
    _put_below(o, t, above, parent, child)


@jit
def _put_below(o: int, t: int, above: int, old: int, new: int) -> None:
    """Replace the child ``old`` of a node by ``new``, a node or 0."""
    if above != 0:
        link = left_link(o, t, above)
        store32(link if load32(link, 0) == old else right_link(o, t, above), 0, new)
    if new != 0:
        _set_parent(o, t, new, above)


@jit
def _root(o: int, t: int, group: int, but: int) -> int:
    """The root of the tree of a slice, as row number + 1; 0 if it has no row except row ``but``."""
    if group == 0:
        return 0
    block = slice_rows(group)
    child = load32(block, 0) + 1
    if child == but + 1:
        child = load32(block, 1) + 1 if load(group, ROWS_COUNT) > 1 else 0
    if child != 0:
        parent = _parent(o, t, child)
        while parent != 0:
            child = parent
            parent = _parent(o, t, child)
    return child


@outside
def threshold_insert(o: int, t: int, row: int, group: int) -> None:
    """Insert the point at an address, after its payload changed from zero. ``group`` is the slice of its group."""
    if load(t, FAILED) != 0:
        return
    own = row_number(t, row) + 1
    store32(_tree(o, t, own) + 8 * PARENT, 1, 1)
    child = _root(o, t, group, own - 1)
    if child == 0:
        return
    while True:
        link = left_link(o, t, child) if compare_rows(o, t, row, row_at(t, child - 1)) < 0 else right_link(o, t, child)
        following = load32(link, 0)
        if following == 0:
            break
        child = following
    store32(link, 0, own)
    _set_parent(o, t, own, child)
    _mark(o, t, child)
    while child != 0 and priority_of(child) < priority_of(own):
        _lift(o, t, own)
        child = _parent(o, t, own)


@outside
def threshold_remove(o: int, t: int, row: int) -> None:
    """Remove the point at an address, after its payload became zero and before the table removes the row."""
    if load(t, FAILED) != 0:
        return
    own = row_number(t, row) + 1
    _mark(o, t, own)
    left = load32(left_link(o, t, own), 0)
    right = load32(right_link(o, t, own), 0)
    while left != 0 and right != 0:
        child = left if priority_of(left) > priority_of(right) else right
        _lift(o, t, child)
        store32(_tree(o, t, child) + 8 * PARENT, 1, 1)
        left = load32(left_link(o, t, own), 0)
        right = load32(right_link(o, t, own), 0)
    _put_below(o, t, _parent(o, t, own), own, left | right)


@outside
def threshold_change(o: int, t: int, row: int) -> None:
    """Note that the payload of the point at an address changed."""
    if load(t, FAILED) == 0:
        _mark(o, t, row_number(t, row) + 1)


@outside
def threshold_start(o: int, t: int, group: int, limit: int, strict: int, is_open: int) -> None:
    """Start with a group, given by its slice or 0, and its limit.

    ``strict``: 1 if F must be below the limit. ``is_open``: 0 if no point is within the limit.

    The tree is a treap with links to parents. A change only marks the nodes above the changed point.
    ``threshold_start`` recomputes the marked nodes from the leaves up.
    """
    store(o, TOP + ROOT_NOW, 0)
    if load(t, FAILED) != 0:
        return
    root = _root(o, t, group, -1)
    store(o, TOP + OVERFLOWN, 0)
    if root != 0:
        _refold(o, t, root)
    store(o, TOP + ROOT_NOW, root)
    store(o, TOP + LIMIT, limit)
    store(o, TOP + STRICT, strict)
    store(o, TOP + OPEN, is_open)


@inlined
def _within(o: int, value: int) -> bool:
    limit = load(o, TOP + LIMIT)
    return value < limit or (value == limit and load(o, TOP + STRICT) == 0)


@jit
def _hits(o: int, extreme: int, leaving: int, before: int) -> bool:
    """Whether the point with an extreme F must leave, or enter; ``before`` is the sum before its subtree."""
    if leaving != 0:
        if extreme == NO_MOST:
            return False
        if extreme == BEYOND or load(o, TOP + OPEN) == 0:
            return True
        return not _within(o, _plus(o, extreme, before))
    if extreme == NO_LEAST or load(o, TOP + OPEN) == 0:
        return False
    return _within(o, _plus(o, extreme, before))


@outside
def threshold_next(o: int, t: int) -> int:
    """Change the next point that must change, and return its address, 0 at the end. Its SELECTED has the new state.

    A point is a row of the table, for example a price. Its payload has the number of ``rows`` of the query at this
    point, their ``weight``, the ``number`` of weights that are not NULL, and whether the point is ``selected``. The
    points of a group agree on all key words except the last. They form a tree in the order of the last word.

    Each point has a value F. The statement chooses F for all points: the sum of the weights before the point, that sum
    plus the point's own weight, or the point's last key word, perhaps negated. ``threshold_next`` selects each point
    that has rows and whose F is within the limit of its group. It unselects all other points. Weights may be negative,
    so F need not be monotone.

    A subtree stores the sum of its weights, the greatest F of its selected points, and the least F of its unselected
    points. In a subtree, F is relative to its first point. A selected point must change if its F is beyond the limit,
    an unselected point if its F is within the limit. A descent finds such a point in time proportional to the height of
    the tree.
    """
    root = load(o, TOP + ROOT_NOW)
    if root == 0:
        return 0
    shift = FIRST if load(o, TOP + NULLABLE) != 0 else 0
    tree = _tree(o, t, root)
    leaving = 1
    if not _hits(o, load(tree, MOST + shift), 1, 0):
        if not _hits(o, load(tree, LEAST + shift), 0, 0):
            return 0
        leaving = 0
    extreme = MOST if leaving != 0 else LEAST
    child = root
    before = 0
    known = 0
    while child != 0:
        row = row_at(t, child - 1)
        tree = row + 8 * load(o, ROW_WORD)
        payload = row + 8 * load(t, KEY)
        left = load32(tree, 0)
        if left != 0:
            below = _tree(o, t, left)
            if _hits(o, load(below, extreme + (shift if known <= 0 else 0)), leaving, before):
                child = left
                continue
            before = _plus(o, before, load(below, SUM))
            known += load(below, KNOWN)
        weight = load(payload, WEIGHT)
        after = known + load(payload, NUMBER)
        if load(payload, ROWS) != 0 and load(payload, SELECTED) == leaving:
            something = after if load(o, TOP + VALUE) == THROUGH else known
            value = _own(o, t, row, before, weight)
            if shift != 0 and something <= 0:
                value = BEYOND
            if _hits(o, value, leaving, 0):
                store(payload, SELECTED, 1 - leaving)
                above = child
                while above != 0:
                    _fold(o, t, above)
                    above = _parent(o, t, above)
                return row
        before = _plus(o, before, weight)
        known = after
        child = load32(tree, 1)
    return 0
