from __future__ import annotations

import random

import numpy as np
import pytest

from freshviews.kernel.btree.pages import LEVEL
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from tests.kernel.interval_tree import IntervalTree
from tests.kernel.tree_model import SMALL_PAGES, Row, apply, check_pages
from tests.kernel.tree_versions import TreeVersion

LEAST, MOST = -(2**63), 2**63 - 1


def interval(order: random.Random, prefix: int, context: int, spread: int) -> Row:
    start = order.choice([LEAST, *range(spread)])
    end = order.choice([MOST, *(max(start, 0) + i for i in range(order.choice([1, 3, spread])))])
    return (
        *(order.randrange(3) for _ in range(prefix)),
        start,
        end,
        *(order.randrange(3) for _ in range(context)),
    )


def contains(row: Row, question: Row) -> bool:
    p = len(question) - 1
    return row[:p] == question[:p] and row[p] <= question[p] <= row[p + 1]


@pytest.mark.parametrize("seed", range(6 if PURE_PYTHON else 40))
@pytest.mark.full
def test_stabs_find_and_remove_the_intervals_that_contain_a_value(seed: int) -> None:
    order = random.Random(seed)
    prefix, context = seed % 3, order.randrange(3)
    spread = order.choice([5, 100])
    tree = IntervalTree(prefix, context, page_words=order.choice(SMALL_PAGES))
    model: set[Row] = set()
    for _ in range(5):
        rows = [interval(order, prefix, context, spread) for _ in range(order.randrange(1, 120))]
        apply(tree, rows)
        model |= set(rows)
        for remove in (False, True):
            questions = [
                (*(order.randrange(3) for _ in range(prefix)), order.randrange(-1, spread + 3))
                for _ in range(order.randrange(1, 4))
            ]
            found = [tuple(row) for row in tree.stab(questions, remove=remove).tolist()]
            wanted = [row for q in questions for row in sorted(model) if contains(row, q)]
            if remove:
                wanted = sorted(set(wanted))
                model -= set(wanted)
            assert found == wanted
            assert len(tree) == len(model)
        check_pages(tree)
    tree.close()


def test_the_least_and_greatest_word_are_infinite_bounds_of_intervals() -> None:
    tree = IntervalTree()
    apply(tree, [(LEAST, 5), (7, MOST), (LEAST, MOST)])
    assert tree.stab([(5,)]).tolist() == [[LEAST, 5], [LEAST, MOST]]
    assert tree.stab([(6,)]).tolist() == [[LEAST, MOST]]
    assert tree.stab([(MOST,)]).tolist() == [[LEAST, MOST], [7, MOST]]
    assert tree.stab([(LEAST,)]).tolist() == [[LEAST, 5], [LEAST, MOST]]


@pytest.mark.parametrize("long_ones", [0, 3, 40])
def test_a_stab_reads_pages_in_proportion_to_levels_and_answers(long_ones: int) -> None:
    """A few long intervals, far apart among N short ones, are found without reading the intervals between."""
    count = 2000 if PURE_PYTHON else 100_000
    order = random.Random(long_ones)
    starts = np.arange(0, 10 * count, 10, dtype=np.int64)
    tree = IntervalTree(1, 1, page_words=64)
    tree.load([np.repeat(np.int64(0), count), starts, starts + 3, np.repeat(np.int64(0), count)])
    # All intervals under the next prefix are long, which must not matter here.
    apply(tree, [(1, i, MOST, 0) for i in range(200)])
    apply(tree, [(0, order.randrange(5 * count), MOST, 1) for _ in range(long_ones)])
    levels = load(tree.root, LEVEL) + 1
    for value in (7 * count, 10 * count - 5, 9 * count + 1):
        before = tree.pages_read
        found = tree.stab([(0, value)])
        assert tree.pages_read - before <= (len(found) + 2) * levels
        assert sum(row[3] for row in found.tolist()) == long_ones


def test_removed_intervals_stay_in_earlier_versions() -> None:
    tree = IntervalTree()
    apply(tree, [(i, i + 5) for i in range(50)])
    with TreeVersion(tree) as version:
        gone = tree.stab([(20,)], remove=True)
        assert len(gone) == 6
        assert len(tree) == 44
        assert len(version) == 50
    check_pages(tree)


def test_a_stab_with_a_wrong_number_of_words_is_refused() -> None:
    with pytest.raises(ValueError, match="1 words of prefix and a value, not 1 words"):
        IntervalTree(1).stab([(1,)])
