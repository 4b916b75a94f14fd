"""Rows are left pending in agreement too, where batches are small: most of those with three updates or more."""

from __future__ import annotations

import pytest

from freshviews.kernel import table


@pytest.fixture(autouse=True)
def small_batches_are_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are made from now on have their first rows looked at soon."""
    monkeypatch.setattr(table, "LEAST_BATCH", 3)
    monkeypatch.setattr(table, "MOST_PENDING", 8)
    monkeypatch.setattr(table, "FIRST_LOOK", 24)
