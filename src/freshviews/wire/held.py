"""Keeps results until a client fetches them, and prepared statements until a client closes them.

An object is dropped when it is too old. If there are too many objects, the oldest one is dropped.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

import pyarrow as pa

from freshviews.wire.served import RESULT_BYTES

RESULT_SECONDS = 120.0
STATEMENT_SECONDS = 3600.0
MOST_RESULTS = 256
MOST_STATEMENTS = 1024
_HANDLE_BYTES = 16
_VALUE_BYTES = 64

_Kept = TypeVar("_Kept")


class Gone(Exception):
    """A handle of something that is not held, or no longer."""


@dataclass
class Prepared:
    """A prepared statement, and the parameters that are bound to it: a tuple per execution."""

    sql: str
    parameters: int
    bound: list[tuple[object, ...]] = field(default_factory=list)
    bound_bytes: int = 0

    def bind(self, rows: list[tuple[object, ...]]) -> None:
        """Take parameters in the place of those before."""
        self.bound_bytes = sum(_VALUE_BYTES * (1 + len(row)) for row in rows)
        self.bound_bytes += sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
        self.bound = rows


class Held(Generic[_Kept]):
    """Things by handle. Used from several threads."""

    def __init__(self, seconds: float, most: int, most_bytes: int, size: Callable[[_Kept], int]) -> None:
        self._seconds, self._most, self._most_bytes, self._size = seconds, most, most_bytes, size
        self._kept: OrderedDict[bytes, tuple[float, _Kept]] = OrderedDict()
        self._changing = Lock()

    def add(self, thing: _Kept) -> bytes:
        """Hold a thing; returns its handle."""
        handle = secrets.token_bytes(_HANDLE_BYTES)
        with self._changing:
            self._kept[handle] = (time.monotonic() + self._seconds, thing)
            self._forget()
        return handle

    def get(self, handle: bytes) -> _Kept:
        """A thing, which is young again. Raises Gone."""
        with self._changing:
            self._forget()
            if handle not in self._kept:
                raise Gone
            _, thing = self._kept[handle]
            self._kept[handle] = (time.monotonic() + self._seconds, thing)
            self._kept.move_to_end(handle)
            return thing

    def take(self, handle: bytes) -> _Kept:
        """A thing, which is forgotten. Raises Gone."""
        with self._changing:
            self._forget()
            if handle not in self._kept:
                raise Gone
            return self._kept.pop(handle)[1]

    def clear(self) -> None:
        """Forget all."""
        with self._changing:
            self._kept.clear()

    def _forget(self) -> None:
        """Forget what is old, and the oldest while there is too much; the last one stays."""
        now = time.monotonic()
        while self._kept and next(iter(self._kept.values()))[0] < now:
            self._kept.popitem(last=False)
        size = sum(self._size(thing) for _, thing in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > self._most or size > self._most_bytes):
            _, (_, thing) = self._kept.popitem(last=False)
            size -= self._size(thing)


def held_results() -> Held[pa.Table]:
    """Results that wait to be fetched, each once."""
    return Held(RESULT_SECONDS, MOST_RESULTS, RESULT_BYTES, lambda table: int(table.nbytes))


def held_statements() -> Held[Prepared]:
    """Prepared statements."""
    return Held(STATEMENT_SECONDS, MOST_STATEMENTS, RESULT_BYTES, lambda one: len(one.sql) + one.bound_bytes)
