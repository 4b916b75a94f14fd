from __future__ import annotations

import ctypes
import random
from functools import reduce

import numpy as np
import pytest

from freshviews.engine.codes.code_batch import address_of
from freshviews.engine.traces.ordered_tree import Fold, OrderedTree
from freshviews.kernel.btree import folds
from freshviews.kernel.btree.pages import LEVEL
from freshviews.kernel.btree.scan import PAGES_SEEN, SCAN_WORDS, fold_interval
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from tests.kernel.tree_model import SMALL_PAGES, Row, apply, check_pages, columns_of, random_rows

PRIME = 65521


def compose(f: int, g: int) -> int:
    """Affine maps x -> a x + b modulo a prime, a in the high half: first ``f``, then ``g``. It does not commute."""
    a, b = f >> 16, f & 0xFFFF
    c, d = g >> 16, g & 0xFFFF
    return a * c % PRIME << 16 | (c * b + d) % PRIME


COMPOSE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(compose)
COMPOSE_ADDRESS = ctypes.cast(COMPOSE, ctypes.c_void_p).value or 0


def maps(order: random.Random, count: int) -> list[Row]:
    """Rows of two key words and a map."""
    keys = sorted(set(random_rows(order, count, 2, 20)))
    return [(*key, order.randrange(1, PRIME) << 16 | order.randrange(PRIME)) for key in keys]


@pytest.mark.parametrize("seed", range(4 if PURE_PYTHON else 24))
def test_any_interval_folds_to_what_its_rows_come_to(seed: int) -> None:
    order = random.Random(seed)
    kinds = (
        Fold(folds.SUM, 2),
        Fold(folds.LEAST, 2),
        Fold(folds.GREATEST, 1),
        Fold(folds.OWN, 2, COMPOSE_ADDRESS),
    )
    meaning = [
        lambda rows: sum(row[2] for row in rows),
        lambda rows: min(row[2] for row in rows),
        lambda rows: max(row[1] for row in rows),
        lambda rows: reduce(compose, (row[2] for row in rows)),
    ]
    tree = OrderedTree(2, 1, folds=kinds, page_words=order.choice((16, 64, 256)))
    model = {row[:2]: row for row in maps(order, 300)}
    tree.load(columns_of(list(model.values()), 3))
    for _ in range(3):
        changed = maps(order, 30)
        signs = [order.choice([1, -1]) for _ in changed]
        apply(tree, changed, signs)
        for row, sign in zip(changed, signs, strict=True):
            model.pop(row[:2], None)
            if sign > 0:
                model[row[:2]] = row
        check_pages(tree)
        with tree.version() as version:
            for _ in range(10):
                low = tuple(order.randrange(-1, 21) for _ in range(order.randrange(3)))
                high = tuple(order.randrange(-1, 21) for _ in range(order.randrange(3)))
                rows = [r for r in sorted(model.values()) if r[: len(low)] >= low and r[: len(high)] <= high]
                assert version.count(low, high) == len(rows)
                for f, of in enumerate(meaning):
                    assert version.fold(f, low, high) == (of(rows) if rows else None)
    tree.close()


def test_the_greatest_of_a_group_is_found_under_deletes() -> None:
    """The paper's example of scans: the maximum sales of any store in each region."""
    tree = OrderedTree(2, 1, folds=[Fold(folds.GREATEST, 2)])
    apply(tree, [(1, 1, 30), (2, 1, 50), (2, 2, 70), (2, 3, 60), (3, 1, 90)])
    with tree.version() as version:
        assert version.fold(0, (2,), (2,)) == 70
        assert version.fold(0) == 90
        assert version.fold(0, (4,), (4,)) is None
    apply(tree, [(2, 2, 0)], [-1])
    with tree.version() as version:
        assert version.fold(0, (2,), (2,)) == 60


def test_a_scan_looks_at_two_pages_a_level_whatever_the_interval() -> None:
    order = random.Random(3)
    count = 3000 if PURE_PYTHON else 300_000
    tree = OrderedTree(1, folds=[Fold(folds.SUM, 0)], page_words=64)
    tree.load([np.arange(count, dtype=np.int64)])
    levels = load(tree.root, LEVEL) + 1
    for _ in range(50):
        low, high = sorted(order.randrange(count) for _ in range(2))
        ends = np.array([low, high], np.int64)
        result = np.zeros(SCAN_WORDS, np.int64)
        at = address_of(ends)[0]
        assert fold_interval(tree.handle, tree.root, 1, 0, 1, at, 1, at + 8, address_of(result)[0]) == 1
        assert result[folds.VALUE] == (high - low + 1) * (low + high) // 2
        assert result[PAGES_SEEN] <= 2 * levels


def test_the_first_and_the_last_rows_of_a_group() -> None:
    order = random.Random(1)
    rows = sorted(set(random_rows(order, 500, 2, 30)))
    tree = OrderedTree(2, page_words=16)
    tree.load(columns_of(rows, 2))
    with tree.version() as version:
        for prefix in [(), (0,), (7,), (29,), (99,)]:
            group = [row for row in rows if row[: len(prefix)] == prefix]
            for n in (0, 1, 5, 1000):
                first, last = version.first(n, prefix), version.last(n, prefix)
                assert list(zip(*map(list, first), strict=True)) == group[:n]
                assert list(zip(*map(list, last), strict=True)) == group[max(len(group) - n, 0) :]


@pytest.mark.parametrize("page_words", SMALL_PAGES)
def test_gaps_are_found_past_full_intervals(page_words: int) -> None:
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
        with tree.version() as version:
            for _ in range(60):
                key = [order.randrange(-1, 4) for _ in range(k - 1)] + [order.randrange(-60, 310)]
                expected = key[-1]
                while (*key[:-1], expected) in rows:
                    expected += 1
                assert version.gap(key) == expected
        tree.close()
