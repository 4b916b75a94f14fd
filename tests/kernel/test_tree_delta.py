from __future__ import annotations

import random

import numpy as np
import pytest

from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.btree.pages import LEVEL
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from tests.kernel.tree_model import SMALL_PAGES, Row, apply, columns_of, edited, random_rows
from tests.kernel.tree_versions import Difference, Differences, TreeVersion


def prefixes(rows: set[Row]) -> set[Row]:
    """The branches of a trie."""
    return {row[:end] for row in rows for end in range(1, len(row) + 1)}


@pytest.mark.parametrize("seed", range(6 if PURE_PYTHON else 40))
def test_comparing_versions_finds_inserted_and_erased_rows(seed: int) -> None:
    order = random.Random(seed)
    k = 1 + seed % 3
    values = order.choice([3, 10, 60])
    tree = OrderedTree(k, page_words=order.choice(SMALL_PAGES))
    model = set(random_rows(order, order.randrange(500), k, values))
    tree.load(columns_of(sorted(model), k))
    for _ in range(6):
        before, old = model, TreeVersion(tree)
        for _ in range(order.randrange(1, 4)):
            rows = random_rows(order, order.choice([1, 3, 40]), k, values)
            signs = [order.choice([1, -1]) for _ in rows]
            apply(tree, rows, signs)
            model = edited(model, rows, signs)
        new = TreeVersion(tree)
        found = list(Differences(old, new))
        wanted = [(row, -1) for row in before - model] + [(row, 1) for row in model - before]
        assert [(one.row, one.sign) for one in found] == sorted(wanted)
        branches = [(one.sign, one.row[: end + 1]) for one in found for end in range(one.depth, k)]
        went, came = prefixes(before) - prefixes(model), prefixes(model) - prefixes(before)
        assert sorted(branches) == sorted([(-1, p) for p in went] + [(1, p) for p in came])
        old.release()
        new.release()


def test_two_versions_differ_as_in_the_tree_surgery_example_of_the_paper() -> None:
    first = [(0, 30, 80), (0, 30, 81), (1, 35, 60), (1, 35, 61), (3, 40, 90), (3, 50, 91), (3, 50, 92)]
    second = [(0, 30, 80), (1, 35, 60), (1, 35, 61), (3, 50, 91), (4, 60, 71)]
    tree = OrderedTree(3)
    apply(tree, first)
    old = TreeVersion(tree)
    apply(tree, [*first, *second], [-1] * len(first) + [1] * len(second))
    found = list(Differences(old, TreeVersion(tree)))
    assert found == [
        Difference(-1, (0, 30, 81), 2),  # 0-30-81
        Difference(-1, (3, 40, 90), 1),  # 3-40 and 3-40-90
        Difference(-1, (3, 50, 92), 2),  # 3-50-92
        Difference(1, (4, 60, 71), 0),  # 4, 4-60 and 4-60-71
    ]


def test_a_changed_payload_is_reported_as_a_delete_and_an_insert() -> None:
    tree = OrderedTree(1, 1)
    apply(tree, [(1, 10), (2, 20), (3, 30)])
    with TreeVersion(tree) as old:
        apply(tree, [(2, 21)])
        with TreeVersion(tree) as new:
            assert list(Differences(old, new)) == [Difference(-1, (2, 20), 1), Difference(1, (2, 21), 1)]


@pytest.mark.parametrize("edits", [1, 10, 100])
def test_comparing_versions_opens_pages_in_proportion_to_edits(edits: int) -> None:
    opened = []
    for count in (1000, 10_000) if PURE_PYTHON else (10_000, 100_000, 1_000_000):
        order = random.Random(edits)
        tree = OrderedTree(1, page_words=64)
        tree.load([np.arange(0, 2 * count, 2, dtype=np.int64)])
        old = TreeVersion(tree)
        apply(tree, [(2 * order.randrange(count) + 1,) for _ in range(edits)])
        new = TreeVersion(tree)
        differences = Differences(old, new)
        assert len(list(differences)) <= edits
        levels = load(tree.root, LEVEL) + 1
        opened.append(differences.pages)
        # A leaf and its ancestors in each version, and, for the branch, those of the row before.
        assert differences.pages <= 4 * levels * edits
    assert opened[-1] <= 3 * opened[0] + 12 * edits


def test_equal_versions_are_recognised_by_their_root() -> None:
    tree = OrderedTree(1)
    apply(tree, [(1,)])
    with TreeVersion(tree) as old, TreeVersion(tree) as new:
        differences = Differences(old, new)
        assert list(differences) == []
        assert differences.pages == 0


@pytest.mark.parametrize("emptied", [True, False])
def test_one_of_two_compared_versions_may_be_empty(emptied: bool) -> None:
    rows = [(i, i) for i in range(300)]
    tree = OrderedTree(2, page_words=16)
    if emptied:
        apply(tree, rows)
    old = TreeVersion(tree)
    apply(tree, rows, [-1 if emptied else 1] * 300)
    found = list(Differences(old, TreeVersion(tree)))
    assert [one.row for one in found] == rows
    assert {(one.sign, one.depth) for one in found} == {(-1 if emptied else 1, 0)}
