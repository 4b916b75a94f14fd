"""Adds features of degree 2: the products of all pairs of features, including squares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from freshviews.learn.moments import Vector

MOST = 2
"""The greatest degree. A model maintains sums of products of twice its degree."""

Term = tuple[int, ...]
"""The positions of the features that are multiplied."""


def terms_of(count: int, degree: int) -> list[Term]:
    """The terms over ``count`` features up to a degree, in the order of scikit-learn's PolynomialFeatures: for x and y,
    these are x, y, x * x, x * y, y * y."""
    return [term for n in range(1, degree + 1) for term in combinations_with_replacement(range(count), n)]


def named(features: Sequence[str], term: Term) -> str:
    """The name of a term: a feature, or a product."""
    return " * ".join(features[i] for i in term)


def expression(features: Sequence[str], term: Term) -> str:
    """A term in SQL. Products are of doubles: that of two INT columns need not fit an INT."""
    if len(term) == 1:
        return features[term[0]]
    return " * ".join(f"CAST({features[i]} AS DOUBLE)" for i in term)


def expanded(rows: Vector, terms: Sequence[Term]) -> Vector:
    """Rows of features, shape (rows, features), as rows of terms, shape (rows, terms)."""
    found: Vector = np.column_stack([rows[:, list(term)].prod(axis=1) for term in terms])
    return found
