"""Aggregates of an order that read the counts of rows: percentiles, and the row with the greatest count."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import PURE_PYTHON, bits
from freshviews.kernel.ordered.folds import MODE, MODE_LAST, ordered_mode
from freshviews.kernel.ordered.index import DOUBLE_ORDER, INTEGER_ORDER
from freshviews.kernel.ordered.percentiles import DESCENDING, DISCRETE, ordered_percentile
from freshviews.kernel.ordered.places import MOST
from tests.kernel.relation import Relation, relation
from tests.kernel.words import MANY

FRACTIONS = (0.0, 0.25, 0.3, 0.5, 0.99, 1.0)
CHANGES = st.lists(st.tuples(st.integers(-1, 1), st.integers(-9, 9), st.integers(-3, 4)), max_size=50)


def code(x: float) -> int:
    return 0 if x == 0 else bits(x)


def check_percentiles(r: Relation) -> None:
    status = np.zeros(1, np.int64)
    groups: dict[int, list[float]] = {2: []}
    for (group, last), (count,) in r.model.items():
        groups.setdefault(group, []).extend([float(np.int64(last).view(np.float64))] * max(count, 0))
    for group, values in groups.items():
        for descending in (0, DESCENDING):
            known = sorted(values, reverse=descending != 0)
            for fraction in FRACTIONS:
                asked = (r.ordered, r.t, (group,), bits(fraction))
                discrete = ordered_percentile(*asked, DISCRETE | descending, status.ctypes.data)
                if not known:
                    assert discrete == ordered_percentile(*asked, descending, status.ctypes.data) == 0
                    continue
                assert discrete == code(known[max(math.ceil(fraction * len(known)), 1) - 1])
                position = fraction * (len(known) - 1)
                low, high = math.floor(position), math.ceil(position)
                between = (high - position) * known[low] + (position - low) * known[high] if low < high else 0.0
                wanted = code(known[low] if known[low] == known[high] else between)
                assert ordered_percentile(*asked, descending, status.ctypes.data) == wanted
    assert status[0] == 0


@given(CHANGES)
@MANY
def test_percentiles_equal_those_of_the_sorted_values_of_a_group(changes: list[tuple[int, int, int]]) -> None:
    with relation(2, 1, (), DOUBLE_ORDER, placed=True) as r:
        for group, value, count in changes:
            if count:
                r.add((group, code(value / 2)), (count,))
        check_percentiles(r)


def test_a_percentile_over_more_copies_than_can_be_counted_is_an_error() -> None:
    status = np.zeros(1, np.int64)
    with relation(1, 1, (), INTEGER_ORDER, placed=True) as r:
        r.add((5,), (MOST - 1,))
        assert ordered_percentile(r.ordered, r.t, (), bits(0.5), DISCRETE, status.ctypes.data) == 5
        assert status[0] == 0
        r.add((5,), (2**40,))
        ordered_percentile(r.ordered, r.t, (), bits(0.5), DISCRETE, status.ctypes.data)
        assert status[0] != 0


@pytest.mark.parametrize("seed", range(3))
def test_a_mode_is_the_first_or_last_row_of_a_prefix_with_the_greatest_count(seed: int) -> None:
    source = random.Random(seed)
    with relation(2, 1, (), INTEGER_ORDER, folds=((MODE, 0), (MODE_LAST, 0))) as r:
        for step in range(120 if PURE_PYTHON else 1_000):
            key = (source.randrange(3), source.randrange(12))
            count = source.choice((1, 1, 2, -1, -2, -r.model.get(key, (0,))[0]))
            if count:
                r.add(key, (count,))
            if step % 7 == 0:
                for group in range(3):
                    rows = {x: max(n, 0) for (g, x), (n,) in r.model.items() if g == group}
                    most = [x for x, n in rows.items() if n == max(rows.values())]
                    found = [ordered_mode(r.ordered, r.t, (group,), f) for f in (0, 1)]
                    assert found == ([min(most), max(most)] if most else [0, 0])
