"""Limits how deeply SQL and rules nest, and sets Python's recursion limit high enough for that depth."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DEPTH = 200
"""Maximum number of nested parentheses, calls, operators and subqueries; a chain of AND or OR is one level."""

FRAMES = 12_000
"""Nested Python calls that ``room`` allows: enough to read and plan DEPTH levels, and several times less than 8 MB of
stack hold."""

TOO_DEEP = f"more than {DEPTH} levels of nesting; put a part of it into a view, or into a query of WITH"

_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def room() -> Iterator[None]:
    """Allow FRAMES nested Python calls until the context ends; if contexts overlap, until the last one ends."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, FRAMES))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_before)
