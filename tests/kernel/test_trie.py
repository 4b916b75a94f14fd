from __future__ import annotations

import bisect
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.btree.pages import LEVEL, PAGES
from freshviews.kernel.memory.mem import PURE_PYTHON, load, release
from freshviews.kernel.trie.iterator import (
    ITER_PAGES,
    iter_at_end,
    iter_begin,
    iter_key,
    iter_next,
    iter_open,
    iter_row,
    iter_seek_lub,
    new_iterator,
)
from tests.kernel.tree_model import SMALL_PAGES, Row, columns_of, random_rows
from tests.kernel.tree_versions import TreeVersion


@contextmanager
def trie(k: int) -> Iterator[int]:
    it = new_iterator(k)
    try:
        yield it
    finally:
        release(it)


def loaded(rows: list[Row], k: int, page_words: int) -> OrderedTree:
    tree = OrderedTree(k, page_words=page_words)
    if rows:
        tree.load(columns_of(rows, k))
    return tree


def wander(it: int, depth: int, rows: list[Row], order: random.Random, beyond: int) -> None:
    """Walk a depth by nexts and seeks, sometimes one or two depths down, and compare with the sorted keys."""
    keys = sorted({row[depth] for row in rows})
    iter_open(it, depth)
    at = 0
    while not iter_at_end(it, depth):
        key = iter_key(it, depth)
        assert key == keys[at]
        below = [row for row in rows if row[depth] == key]
        assert load(iter_row(it, depth), 0) == below[0][0]
        if depth + 1 < len(below[0]):
            for _ in range(order.randrange(3)):
                wander(it, depth + 1, below, order, beyond)
        if order.random() < 0.5:
            iter_next(it, depth)
            at += 1
        else:
            value = order.randint(key - 1, beyond)
            iter_seek_lub(it, depth, value)
            at = max(at, bisect.bisect_left(keys, value))
    assert at >= len(keys)


@pytest.mark.parametrize("page_words", SMALL_PAGES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_trie_agrees_with_sorted_lists(page_words: int, k: int) -> None:
    order = random.Random(k)
    for _ in range(8 if PURE_PYTHON else 60):
        values = order.choice([3, 10, 60])
        rows = sorted(set(random_rows(order, order.randrange(400), k, values)))
        tree = loaded(rows, k, page_words)
        with trie(k) as it:
            iter_begin(it, tree.root)
            wander(it, 0, rows, order, values + 1)
        tree.close()


def test_the_least_and_the_greatest_word_may_be_keys() -> None:
    least, most = -(2**63), 2**63 - 1
    rows = [(a, b) for a in (least, 0, most) for b in (least, least + 1, most - 1, most)]
    tree = loaded(rows, 2, 16)
    with trie(2) as it:
        iter_begin(it, tree.root)
        iter_open(it, 0)
        for a in (least, 0, most):
            assert iter_key(it, 0) == a
            iter_open(it, 1)
            iter_seek_lub(it, 1, 0)
            assert iter_key(it, 1) == most - 1
            iter_seek_lub(it, 1, most)
            assert iter_key(it, 1) == most
            iter_next(it, 1)
            assert iter_at_end(it, 1)
            iter_next(it, 0)
        assert iter_at_end(it, 0)


def test_an_iterator_reads_a_version_while_the_tree_is_written() -> None:
    tree = loaded([(i,) for i in range(500)], 1, 16)
    with TreeVersion(tree) as version, trie(1) as it:
        iter_begin(it, version.root)
        iter_open(it, 0)
        for i in range(500):
            assert iter_key(it, 0) == i
            iter_next(it, 0)
            tree.apply(columns_of([(i,), (1000 + i,)], 1), np.array([-1, 1], np.int64))
        assert iter_at_end(it, 0)
    assert len(tree) == 500


@pytest.mark.parametrize("sought", [10, 100, 1000, 10_000])
def test_rising_seeks_read_logarithmically_many_pages(sought: int) -> None:
    """m seeks among N keys: O(m (1 + log(N / m))) pages, counted; a search anew each time would take m log N."""
    count = 20_000 if PURE_PYTHON else 200_000
    tree = loaded([(i,) for i in range(count)], 1, 64)
    room = 59 * 7 // 8
    step = count // sought
    with trie(1) as it:
        iter_begin(it, tree.root)
        iter_open(it, 0)
        top = load(it, ITER_PAGES)
        for i in range(1, sought):
            iter_seek_lub(it, 0, i * step)
            assert iter_key(it, 0) == i * step
        taken = load(it, ITER_PAGES) - top
    # A level up and down costs two pages, one more if the key is the first of the next leaf; inner pages end too.
    leaves = min(1.0, step / room)
    assert taken <= 1 + sought * leaves * 3.5 * (1 + max(0.0, math.log(max(step / room, 1), 19 * 7 / 8)))


def test_one_seek_reads_logarithmically_many_pages() -> None:
    seen = []
    for count in (100, 1000, 10_000) if PURE_PYTHON else (1000, 30_000, 1_000_000):
        tree = OrderedTree(1, page_words=64)
        tree.load([np.arange(count, dtype=np.int64)])
        with trie(1) as it:
            iter_begin(it, tree.root)
            iter_open(it, 0)
            before = load(it, ITER_PAGES)
            iter_seek_lub(it, 0, 2 * count // 3)
            seen.append(load(it, ITER_PAGES) - before)
            assert seen[-1] <= 2 * load(tree.root, LEVEL) + 1
    assert seen[-1] <= 2 * math.log(1_000_000, 16) + 1


def test_walking_all_keys_reads_each_leaf_once() -> None:
    count = 5000
    tree = loaded([(i // 10, i) for i in range(count)], 2, 64)
    with trie(2) as it:
        iter_begin(it, tree.root)
        iter_open(it, 0)
        keys = 0
        while not iter_at_end(it, 0):
            iter_open(it, 1)
            while not iter_at_end(it, 1):
                keys += 1
                iter_next(it, 1)
            iter_next(it, 0)
        assert keys == count
        # At both depths the walk goes through every leaf, with a step up and a step down between two.
        assert load(it, ITER_PAGES) <= 2 * 3.5 * load(tree.handle, PAGES)


@pytest.mark.parametrize("page_words", SMALL_PAGES)
def test_the_next_gap_in_a_tree_version_is_found_after_a_run_of_rows(page_words: int) -> None:
    order = random.Random(page_words)
    for k in (1, 2):
        tree = OrderedTree(k, page_words=page_words)
        rows = {
            (*prefix, value)
            for prefix in ([(p,) for p in range(3)] if k == 2 else [()])
            for value in range(-50, 300)
            if order.random() < 0.97
        }
        tree.load(columns_of(sorted(rows), k))
        with TreeVersion(tree) as version:
            for _ in range(60):
                key = [order.randrange(-1, 4) for _ in range(k - 1)] + [order.randrange(-60, 310)]
                expected = key[-1]
                while (*key[:-1], expected) in rows:
                    expected += 1
                assert version.gap(key) == expected
        tree.close()
