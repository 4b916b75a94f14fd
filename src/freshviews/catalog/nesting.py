"""How deeply a text of SQL or of rules may nest, and the room on Python's stack that takes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DEPTH = 200
"""Most parentheses inside each other, and most calls, operators and subqueries; a chain of AND or OR is one level."""

FRAMES = 12_000
"""Calls of Python that may be inside each other in ``room``: what reading and planning DEPTH levels takes, and what
8 MB of stack hold several times."""

TOO_DEEP = f"more than {DEPTH} levels of nesting; put a part of it into a view, or into a query of WITH"

_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def room() -> Iterator[None]:
    """Allow FRAMES calls inside each other until the context ends; of several contexts, until the last one ends."""
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
