"""Ordered trees compared with sorted Python lists, and checks of their pages."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.btree.folds import WORD, fold_at, fold_words
from freshviews.kernel.btree.pages import COUNT, DEAD, LEVEL, NEWEST, OLDER, PAGES, ROOM, TOP, child_at, column, word_at
from freshviews.kernel.memory.mem import load
from tests.kernel.tree_versions import TreeVersion

Row = tuple[int, ...]

SMALL_PAGES = (16, 64, 256)
"""Words of pages in tests: the least size makes trees of many levels from few rows."""


def columns_of(rows: Sequence[Row], width: int) -> list[Codes]:
    return [np.array([row[c] for row in rows], np.int64) for c in range(width)]


def rows_of(version: TreeVersion) -> list[Row]:
    return list(zip(*(column.tolist() for column in version.columns()), strict=True))


def random_rows(order: random.Random, count: int, width: int, values: int) -> list[Row]:
    return [tuple(order.randrange(values) for _ in range(width)) for _ in range(count)]


def apply(tree: OrderedTree, rows: Sequence[Row], signs: Sequence[int] | None = None) -> None:
    width = tree.key + tree.payload
    tree.apply(columns_of(rows, width), None if signs is None else np.array(signs, np.int64))


def reachable(root: int, k: int) -> set[int]:
    """Pages under and with a root."""
    found = {root}
    if load(root, LEVEL) > 0:
        for i in range(load(root, COUNT)):
            found |= reachable(child_at(root, k, i), k)
    return found


def roots_of(tree: OrderedTree) -> list[int]:
    """The root of a tree and those of all its versions."""
    found = [tree.root]
    version = load(tree.handle, NEWEST)
    while version:
        found.append(load(version, TOP))
        version = load(version, OLDER)
    return found


def check_pages(tree: OrderedTree) -> None:
    """Check that the tree counts exactly the pages that it and its versions reach, and check each page."""
    held: set[int] = set()
    for root in roots_of(tree):
        held |= reachable(root, tree.key)
    assert load(tree.handle, PAGES) == len(held)
    assert tree.bytes >= 8 * len(held)
    for root in roots_of(tree):
        check_page(tree, root, True)
    if load(tree.handle, NEWEST) == 0:
        return
    newest = load(tree.handle, NEWEST)
    assert (load(newest, DEAD) == 0) == (load(newest, TOP) == tree.root)


def check_page(tree: OrderedTree, page: int, top: bool) -> tuple[int, list[int]]:
    """Rows below a page and its folds, computed from the rows and compared with the entries."""
    t, k = tree.handle, tree.key
    count = load(page, COUNT)
    assert count <= load(page, ROOM)
    if not top:
        assert count >= load(page, ROOM) // 4
    keys = [tuple(word_at(page, c, i) for c in range(k)) for i in range(count)]
    assert keys == sorted(set(keys))
    folds = range(len(tree.folds))
    if load(page, LEVEL) == 0:
        if count == 0:
            return 0, []
        words = [column(page, load(fold_at(t, f), WORD)) for f in folds]
        return count, [fold_words(fold_at(t, f), words[f], 0, count) for f in folds]
    assert count >= 2
    rows = 0
    for i in range(count):
        child = child_at(page, k, i)
        assert load(child, LEVEL) == load(page, LEVEL) - 1
        assert tuple(word_at(child, c, 0) for c in range(k)) == keys[i]
        below, values = check_page(tree, child, False)
        assert word_at(page, k + 1, i) == below
        assert [word_at(page, k + 2 + f, i) for f in folds] == values
        rows += below
    return rows, [fold_words(fold_at(t, f), column(page, k + 2 + f), 0, count) for f in folds]


def edited(model: set[Row], rows: Iterable[Row], signs: Iterable[int]) -> set[Row]:
    """A set of rows after edits."""
    after = set(model)
    for row, sign in zip(rows, signs, strict=True):
        if sign > 0:
            after.add(row)
        else:
            after.discard(row)
    return after
