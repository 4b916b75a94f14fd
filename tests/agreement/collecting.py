"""Collections of strings after nearly every commit, in the smallest steps: they reveal a code that is freed in use."""

from __future__ import annotations

from freshviews import Database
from freshviews.engine.commit.collection import Collection


def collecting(database: Database, least: int = 1) -> Database:
    """The database, which begins a collection after ``least`` new strings."""
    database._collection = Collection(database._dictionary, least)
    return database
