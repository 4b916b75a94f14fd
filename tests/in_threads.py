"""Runs every commit in threads, even the smallest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from freshviews.codegen.module import compile_ahead
from freshviews.engine import database
from freshviews.engine.blocks import lanes
from freshviews.engine.commit import threads


@contextmanager
def in_threads(monkeypatch: pytest.MonkeyPatch, count: int, *, views: bool = True) -> Iterator[None]:
    """Within this block databases have ``count`` threads by default, and use them for every batch that does not take
    the direct way, also as plain Python: for views, and for the lanes of a view that runs alone. Without ``views`` each
    view runs alone. The interpreter switches threads every few operations."""
    for module in (threads, database):
        monkeypatch.setattr(module, "MANY", 0)
    monkeypatch.setattr(threads, "LEAST", -1.0 if views else 1e9)
    monkeypatch.setattr(lanes, "LEAST", -1.0)
    monkeypatch.setattr(lanes, "WORTH", 0.0)
    monkeypatch.setattr(lanes, "CHUNK", 2)
    monkeypatch.setattr(lanes, "order", compile_ahead)
    monkeypatch.setattr(threads, "PURE_PYTHON", False)
    checked = database._thread_count
    monkeypatch.setattr(database, "_thread_count", lambda given: checked(count if given is None else given))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
