"""A table to which the rows of others are added is as if all changes had been made in it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from freshviews.engine.codes.words import address
from freshviews.kernel.hash import merging, table
from freshviews.kernel.memory.mem import load, store
from freshviews.kernel.rings.elements import INTEGERS
from freshviews.kernel.scalar.payload import SUM_OVERFLOW

pytestmark = pytest.mark.plain_python


def rows_of(t: int) -> dict[tuple[int, int], int]:
    """The rows with a payload."""
    rows = [table.row_at(t, number) for number in range(load(t, table.USED))]
    return {(load(row, 0), load(row, 1)): load(row, 2) for row in rows if load(row, 2)}


def add(t: int, key: tuple[int, int], change: int) -> None:
    row = table.upsert(t, key)
    table.touch(t, row)
    store(row, 2, load(row, 2) + change)
    if load(row, 2) == 0:
        table.settle(t, row)


@pytest.mark.parametrize("journal", [0, 1])
def test_a_merged_table_contains_the_sums_of_all_tables(journal: int) -> None:
    random = Random(journal)
    whole, own = table.new_table(2, 1, 1, 0, 1), table.new_table(2, 1, 0, 0, 0)
    positions = np.array([1], np.int64)
    table.add_index(whole, address(positions), 1)
    store(whole, table.JOURNALING, journal)
    layout = np.array([0, 1, INTEGERS, 1], np.int64)
    model: dict[tuple[int, int], int] = {}
    for _ in range(20):
        for t in (whole, own):
            for _ in range(random.randrange(150)):
                key, change = (random.randrange(20), random.randrange(9)), random.choice([-1, 1])
                add(t, key, change)
                model[key] = model.get(key, 0) + change
        merging.merge_table(whole, own, address(layout))
        expected = {key: count for key, count in model.items() if count}
        assert rows_of(whole) == expected and not rows_of(own)
        assert load(own, table.LIVE) == 0 and layout[0] == 0
        if journal:
            table.clear_journal(whole)
        assert load(whole, table.LIVE) == len(expected)
    table.free_table(whole)
    table.free_table(own)


@pytest.mark.parametrize(("one", "other"), [(2**62, 1), (1, -(2**62)), (2**63 - 1, 1)])
def test_a_sum_that_may_have_overflowed_is_reported(one: int, other: int) -> None:
    whole, own = (table.new_table(2, 1, 0, 0, 0) for _ in range(2))
    layout = np.array([0, 1, INTEGERS, 1], np.int64)
    add(whole, (1, 1), one)
    add(own, (1, 1), other)
    merging.merge_table(whole, own, address(layout))
    assert layout[0] == SUM_OVERFLOW
    table.free_table(whole)
    table.free_table(own)
