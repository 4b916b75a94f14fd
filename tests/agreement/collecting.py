"""Databases that collect strings after nearly every commit, and views that are read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from freshviews import Database, View
from freshviews.engine.commit.collection import Collection


def collecting(database: Database, least: int = 1) -> Database:
    """The database, which begins a collection after ``least`` new strings."""
    database._collection = Collection(database._dictionary, least)
    return database


def rows_in_steps(view: View, rows: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a view, read some at a time."""
    for batch in view.to_batches(rows):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
