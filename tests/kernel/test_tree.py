from __future__ import annotations

import ctypes
import random
import threading
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.engine.traces.ordered_tree import Fold, OrderedTree
from freshviews.kernel.btree import folds
from freshviews.kernel.btree.pages import COPIED, LEVEL, NEWEST, PAGES
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from freshviews.kernel.memory.row_sort import sort_rows
from tests.kernel.tree_model import (
    SMALL_PAGES,
    Row,
    apply,
    check_page,
    check_pages,
    columns_of,
    edited,
    random_rows,
    rows_of,
)
from tests.kernel.tree_versions import TreeVersion
from tests.kernel.words import block, words_at

SOME = settings(max_examples=30 if PURE_PYTHON else 100, deadline=None)
WORDS = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, -(2**40), 2**40]))


@pytest.mark.parametrize("seed", range(4 if PURE_PYTHON else 24))
def test_versions_stay_right_under_any_interleaving_of_readers_and_writers(seed: int) -> None:
    order = random.Random(seed)
    k = 1 + seed % 3
    values = order.choice([3, 10, 100])
    parts = (Fold(folds.GREATEST, k - 1), Fold(folds.SUM, 0))
    tree = OrderedTree(k, folds=parts, page_words=order.choice(SMALL_PAGES))
    model: set[Row] = set()
    if seed % 2:
        model = set(random_rows(order, 300, k, values))
        tree.load(columns_of(sorted(model), k))
    held = []
    for _ in range(60):
        act = order.random()
        if act < 0.2:
            held.append((TreeVersion(tree), sorted(model)))
        elif act < 0.4 and held:
            version, rows = held.pop(order.randrange(len(held)))
            assert rows_of(version) == rows
            version.release()
        elif act < 0.45 and held and held[-1][0].handle == newest(tree):
            held[-1][0].revert()
            model = set(held[-1][1])
        else:
            rows = random_rows(order, order.choice([1, 1, 2, 5, 50, 300]), k, values)
            inserting = order.random()
            signs = [1 if order.random() < inserting else -1 for _ in rows]
            apply(tree, rows, signs)
            model = edited(model, rows, signs)
        assert len(tree) == len(model)
    check_pages(tree)
    for version, rows in held:
        assert rows_of(version) == rows
        version.release()
    check_pages(tree)
    with TreeVersion(tree) as last:
        assert rows_of(last) == sorted(model)
    rows = sorted(model)
    apply(tree, rows, [-1] * len(rows))
    assert (len(tree), load(tree.handle, PAGES)) == (0, 1)
    tree.close()


def newest(tree: OrderedTree) -> int:
    return load(tree.handle, NEWEST)


@SOME
@given(st.lists(st.tuples(WORDS, WORDS, st.sampled_from([1, -1])), max_size=80), st.integers(1, 9))
def test_edits_one_by_one_and_in_batches_make_equal_trees(edits: list[Row], size: int) -> None:
    single, batched = OrderedTree(2, page_words=16), OrderedTree(2, page_words=16)
    model: set[Row] = set()
    for start in range(0, len(edits), size):
        part = edits[start : start + size]
        rows, signs = [edit[:2] for edit in part], [edit[2] for edit in part]
        apply(batched, rows, signs)
        for row, sign in zip(rows, signs, strict=True):
            apply(single, [row], [sign])
        model = edited(model, rows, signs)
    for tree in (single, batched):
        check_pages(tree)
        with TreeVersion(tree) as version:
            assert rows_of(version) == sorted(model)
        tree.close()


@SOME
@given(
    st.lists(st.tuples(WORDS, WORDS, st.integers(-2, 2)), max_size=150),
    st.sampled_from(["given", "sorted", "once"]),
)
def test_loading_rows_in_any_order_makes_the_same_tree_as_inserting_the_rows(rows: list[Row], how: str) -> None:
    if how != "given":
        rows = sorted(rows)
    if how == "once":
        rows = list({row[:2]: row for row in rows}.values())
    for summed in (False, True):
        loaded = OrderedTree(2, 1, summed=summed, page_words=32)
        inserted = OrderedTree(2, 1, summed=summed, page_words=32)
        loaded.load(columns_of(rows, 3))
        apply(inserted, rows)
        check_pages(loaded)
        model: dict[Row, int] = {}
        for a, b, n in rows:
            model[a, b] = model.get((a, b), 0) + n if summed else n
        wanted = [(*key, n) for key, n in sorted(model.items()) if n or not summed]
        for tree in (loaded, inserted):
            with TreeVersion(tree) as version:
                assert rows_of(version) == wanted
            tree.close()


def test_payloads_are_replaced_or_summed_and_zero_rows_vanish() -> None:
    replaced, summed = OrderedTree(1, 2), OrderedTree(1, 2, summed=True)
    for tree in (replaced, summed):
        apply(tree, [(1, 5, 7), (2, 1, 0), (1, -5, 0)])
        apply(tree, [(2, -1, 0)])
    with TreeVersion(replaced) as a, TreeVersion(summed) as b:
        assert rows_of(a) == [(1, -5, 0), (2, -1, 0)]
        assert rows_of(b) == [(1, 0, 7)]


@pytest.mark.parametrize("seed", range(3 if PURE_PYTHON else 10))
def test_rows_are_sorted_stably_by_their_first_words(seed: int) -> None:
    order = random.Random(seed)
    spread = order.choice([1, 200, 2**33, 2**63 - 1])
    count = order.choice([0, 1, 20, 100, 3000])
    rows = [
        (order.randint(-spread, spread), order.choice([-(2**63), 0, 2**63 - 1]), number) for number in range(count)
    ]
    with block([word for row in rows for word in row] or [0]) as address:
        assert sort_rows(address, 3, 2, count) == 1
        flat = words_at(address, 3 * count)
    assert [flat[i : i + 3] for i in range(0, 3 * count, 3)] == sorted(rows)


def test_edits_that_change_nothing_copy_no_page() -> None:
    tree = OrderedTree(1, page_words=16)
    tree.load([np.arange(100, dtype=np.int64)])
    with TreeVersion(tree) as version:
        apply(tree, [(5,), (6,), (200,)], [1, 1, -1])
        assert tree.root == version.root
        assert load(tree.handle, COPIED) == 0


def test_an_edit_copies_one_page_per_level() -> None:
    tree = OrderedTree(2, page_words=32)
    tree.load([np.arange(3000, dtype=np.int64) * 2, np.zeros(3000, np.int64)])
    levels = load(tree.root, LEVEL) + 1
    pages = load(tree.handle, PAGES)
    with TreeVersion(tree) as version:
        apply(tree, [(2, 0)], [-1])
        assert load(tree.handle, COPIED) == levels
        assert load(tree.handle, PAGES) == pages + levels
        assert len(version) == 3000
    assert load(tree.handle, PAGES) == pages
    # No version has the pages any more, so the next edit copies nothing.
    apply(tree, [(6, 0)], [-1])
    assert load(tree.handle, COPIED) == levels
    check_pages(tree)


@pytest.mark.parametrize("first", ["oldest", "newest", "middle"])
def test_versions_may_be_released_in_any_order(first: str) -> None:
    order = random.Random(first)
    tree = OrderedTree(1, page_words=16)
    held = []
    model: set[Row] = set()
    for _ in range(30):
        rows = random_rows(order, 10, 1, 100)
        signs = [order.choice([1, -1]) for _ in rows]
        apply(tree, rows, signs)
        model = edited(model, rows, signs)
        held.append((TreeVersion(tree), sorted(model)))
    while held:
        at = {"oldest": 0, "newest": len(held) - 1, "middle": len(held) // 2}[first]
        held.pop(at)[0].release()
        check_pages(tree)
        for version, expected in held:
            assert rows_of(version) == expected


def test_all_readers_of_a_version_share_one_handle() -> None:
    tree = OrderedTree(1)
    apply(tree, [(1,)])
    first, second = TreeVersion(tree), TreeVersion(tree)
    assert first.handle == second.handle
    assert first.readers == 2
    first.release()
    first.release()
    apply(tree, [(2,)])
    assert rows_of(second) == [(1,)]
    second.release()
    assert load(tree.handle, PAGES) == 1


@pytest.mark.skipif(PURE_PYTHON, reason="takes a lock for each word")
def test_readers_on_other_threads_see_their_version_while_the_tree_is_written() -> None:
    order = random.Random(5)
    tree = OrderedTree(2, page_words=64)
    model = set(random_rows(order, 5000, 2, 100))
    tree.load(columns_of(sorted(model), 2))
    wrong: list[str] = []
    stopped = threading.Event()
    versions = [TreeVersion(tree), TreeVersion(tree)]

    def read(number: int) -> None:
        wanted = columns_of(sorted(model), 2)
        while not stopped.is_set():
            seen = versions[number].columns()
            if any((a != b).any() for a, b in zip(seen, wanted, strict=True)):
                wrong.append("another version")

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        rows = random_rows(order, 200, 2, 100)
        apply(tree, rows, [order.choice([1, -1]) for _ in rows])
        TreeVersion(tree).release()
    stopped.set()
    for thread in threads:
        thread.join()
    assert not wrong
    for version in versions:
        version.release()
    check_pages(tree)


@pytest.mark.parametrize("arrival", ["rising", "falling", "random"])
def test_a_row_of_an_ordered_tree_takes_less_than_34_bytes(arrival: str) -> None:
    count = 4000 if PURE_PYTHON else 100_000
    order = random.Random(1)
    keys = list(range(count))
    if arrival == "falling":
        keys.reverse()
    if arrival == "random":
        order.shuffle(keys)
    tree = OrderedTree(2)
    for start in range(0, count, 1000):
        part = np.array(keys[start : start + 1000], np.int64)
        tree.apply([part, part * 7])
    taken = tree.bytes / count - 8 * 256 * 64 / count
    assert taken < {"rising": 24, "falling": 34, "random": 27}[arrival]


def test_a_loaded_tree_takes_less_than_24_bytes_per_row() -> None:
    count = 20_000 if PURE_PYTHON else 1_000_000
    tree = OrderedTree(2)
    tree.load([np.arange(count, dtype=np.int64), np.arange(count, dtype=np.int64)])
    assert tree.bytes / count < 24


def test_an_ordered_tree_refuses_batches_with_wrong_columns() -> None:
    tree = OrderedTree(2)
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="1 columns given, but the tree has 2"):
        tree.apply([one])
    with pytest.raises(ValueError, match="different lengths"):
        tree.apply([one, np.zeros(2, np.int64)])
    with pytest.raises(ValueError, match="int64"):
        tree.apply([one, np.zeros(1)])
    with pytest.raises(ValueError, match="int64"):
        tree.apply([one, one], np.ones(1, np.int8))
    version = TreeVersion(tree)
    with pytest.raises(ValueError, match="rows can be loaded only into an empty tree"):
        tree.load([one, one])
    version.release()


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


@pytest.mark.parametrize("seed", range(4 if PURE_PYTHON else 12))
def test_each_fold_combines_all_rows_in_order(seed: int) -> None:
    order = random.Random(seed)
    kinds = (
        Fold(folds.SUM, 2),
        Fold(folds.LEAST, 2),
        Fold(folds.GREATEST, 1),
        Fold(folds.OWN, 2, COMPOSE_ADDRESS),
    )
    tree = OrderedTree(2, 1, folds=kinds, page_words=order.choice(SMALL_PAGES))
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
        rows = sorted(model.values())
        wanted = [
            sum(row[2] for row in rows),
            min(row[2] for row in rows),
            max(row[1] for row in rows),
            reduce(compose, (row[2] for row in rows)),
        ]
        assert check_page(tree, tree.root, True) == (len(rows), wanted)
    tree.close()
