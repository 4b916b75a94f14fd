"""Has every commit run in threads, however small it is."""

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
    """Within this block databases have ``count`` threads by default, and use them for every batch of the general way,
    also as plain Python: for views, and for the lanes of a view that runs alone. Without ``views`` each runs alone. The
    interpreter changes threads every few operations."""
    for module in (threads, database):
        monkeypatch.setattr(module, "MANY", 0)
    monkeypatch.setattr(threads, "LEAST", -1.0 if views else 1e9)
    monkeypatch.setattr(lanes, "LEAST", -1.0)
    monkeypatch.setattr(lanes, "WORTH", 0.0)
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
