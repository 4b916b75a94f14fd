"""Solving by the values of a category equals solving the whole system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from freshviews.learn.least_squares import Values, solution

pytestmark = pytest.mark.plain_python(only=True)


def some_rows(seed: int, others: int, values: int) -> Any:
    """Variables and a target; the last variables are 0 or 1, one for each value of a category except its first."""
    random = np.random.default_rng(seed)
    numbers = random.normal(3, 1, (200, others)) * 10.0 ** random.integers(-3, 4, others)
    chosen = np.concatenate([np.arange(values), random.integers(0, values, 200 - values)])
    x = np.column_stack([numbers, *(chosen == value for value in range(1, values))]).astype(float)
    return x, x.sum(axis=1) + random.normal(size=200)


@pytest.mark.parametrize("penalty", [0.0, 1e-6, 3.0])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("others", "values"), [(0, 2), (0, 40), (1, 2), (5, 40)])
def test_solving_by_the_values_of_a_category_equals_solving_the_whole_system(
    others: int, values: int, centred: bool, penalty: float
) -> None:
    x, y = some_rows(others + values, others, values)
    counts = x[:, others:].sum(axis=0)
    if centred:
        x, y = x - x.mean(axis=0), y - y.mean()
    # The values of the category are not at the end.
    order = np.random.default_rng(1).permutation(x.shape[1])
    places = [list(order).index(place) for place in range(others, x.shape[1])]
    gram, cross = x[:, order].T @ x[:, order], x[:, order].T @ y
    found = solution(gram, cross, penalty, Values(places, counts, len(x) if centred else None))
    np.testing.assert_allclose(found, solution(gram, cross, penalty, None), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram @ found + penalty * found, cross, rtol=1e-8, atol=1e-8 * np.abs(cross).max())


@pytest.mark.parametrize("centred", [True, False])
def test_features_that_depend_on_a_category_get_the_solution_of_least_norm(centred: bool) -> None:
    x, y = some_rows(3, 2, 30)
    x = np.column_stack([x, x[:, 10:20].sum(axis=1)])
    counts = x[:, 2:31].sum(axis=0)
    if centred:
        x, y = x - x.mean(axis=0), y - y.mean()
    found = solution(x.T @ x, x.T @ y, 0.0, Values(range(2, 31), counts, len(x) if centred else None))
    expected, _, rank, _ = np.linalg.lstsq(x, y)
    assert rank == x.shape[1] - 1
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
