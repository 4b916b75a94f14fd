"""Tables of sums that are emptied repeatedly agree with dicts."""

from __future__ import annotations

import random

import pytest

from freshviews.kernel.hash.sum_table import (
    AREA,
    AREAS,
    COUNT,
    LOST,
    clear_sums,
    find_sum,
    free_sums,
    new_sums,
    sum_row,
)
from freshviews.kernel.memory.mem import PURE_PYTHON, jit, load, store

ROUNDS = 3 if PURE_PYTHON else 40


@jit
def add(table: int, key: int, amount: int) -> None:
    row = sum_row(table, (key,))
    store(row, 1, load(row, 1) + amount)
    store(row, 2, load(row, 2) + 2 * amount)


@jit
def found(table: int, key: int) -> int:
    row = find_sum(table, (key,))
    return -1 if row == 0 else load(row, 1)


@jit
def second(table: int, key: int) -> int:
    return load(find_sum(table, (key,)), 2)


@jit
def empty(table: int) -> None:
    clear_sums(table)


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_table_that_is_emptied_repeatedly_agrees_with_a_dict(seed: int) -> None:
    draw = random.Random(seed)
    table = new_sums(1, 2)
    for _ in range(ROUNDS):
        empty(table)
        sums: dict[int, int] = {}
        # Neighbouring keys, and keys that agree in their last bits.
        step, width = draw.choice([1, 1 << 20]), draw.choice([3, 700, 5_000])
        for _ in range(draw.choice([10, 1_000, 9_000])):
            key, amount = step * draw.randrange(-width, width), draw.randrange(1, 9)
            add(table, key, amount)
            sums[key] = sums.get(key, 0) + amount
        assert load(table, COUNT) == len(sums)
        for key in [*sums, *(step * (width + i) for i in range(20))]:
            assert found(table, key) == sums.get(key, -1)
            assert key not in sums or second(table, key) == 2 * sums[key]
    assert load(table, LOST) == 0
    free_sums(table)


def test_an_emptied_sum_table_starts_small_again() -> None:
    table = new_sums(1, 2)
    for key in range(3_000):
        add(table, key, 1)
    large = load(table, AREA)
    empty(table)
    add(table, 5, 1)
    assert large >= 1 and load(table, AREA) == 0
    assert found(table, 5) == 1 and found(table, 6) == -1
    free_sums(table)


def test_a_sum_table_that_runs_out_of_memory_reports_the_loss() -> None:
    table = new_sums(1, 2)
    store(table, AREA, AREAS - 1)
    for key in range(600):
        add(table, key, 1)
    assert load(table, LOST) == 1
    free_sums(table)
