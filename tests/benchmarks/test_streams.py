"""The streams of the benchmarks on Spark are what they are said to be."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from benchmarks.pipeline_graph import window_of, windowed
from benchmarks.pipeline_state import items


@pytest.mark.parametrize("count", [1, 2, 7, 10, 11, 53])
def test_edges_pass_a_window(count: int) -> None:
    window = window_of(count)
    there: deque[int] = deque()
    expected = []
    for edge in range(count):
        if len(there) == window:
            expected.append((there.popleft(), -1))
        there.append(edge)
        expected.append((edge, 1))
    expected += [(edge, -1) for edge in there]
    which, signs = windowed(count)
    assert list(zip(which.tolist(), signs.tolist(), strict=True)) == expected


def test_the_window_is_that_of_the_published_experiments() -> None:
    assert window_of(508_837) == 101_768


def test_a_row_that_is_deleted_is_the_one_that_was_inserted() -> None:
    inserted, deleted = items(0, 500, 100), items(40, 10, 100, -1)
    assert deleted.drop(["_multiplicity"]).equals(inserted.drop(["_multiplicity"]).slice(40, 10))
    assert set(deleted.column("_multiplicity").to_pylist()) == {-1}


def test_items_are_spread_over_all_orders() -> None:
    counts = np.bincount(items(0, 100_000, 100).column("o_id").to_numpy(), minlength=100)
    assert counts.min() > 800
