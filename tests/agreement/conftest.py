"""Lowers the sizes at which large batches and tables are treated specially, so that agreement tests reach them."""

from __future__ import annotations

import pytest

from freshviews.codegen.writing import ahead
from freshviews.kernel.hash import table


@pytest.fixture(autouse=True)
def small_batches_are_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables created from now on look at their first rows early."""
    monkeypatch.setattr(table, "LEAST_BATCH", 3)
    monkeypatch.setattr(table, "MOST_PENDING", 8)
    monkeypatch.setattr(table, "FIRST_LOOK", 24)


@pytest.fixture(autouse=True)
def small_tables_are_looked_up_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "CACHED", 0)
