"""Blocks of words for tests, and the codes of doubles."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import settings

from freshviews.kernel.memory.mem import PURE_PYTHON, allocate, load, release, store

# No deadline, because the first example compiles.
MANY = settings(max_examples=100 if PURE_PYTHON else 200, deadline=None)


def code(x: float) -> int:
    """The code of a double: its bits, with one zero and one NaN."""
    if x != x:
        return 0x7FF8000000000000
    return int(struct.unpack("<q", struct.pack("<d", x or 0.0))[0])


def double(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", word))[0])


@contextmanager
def block(words: Sequence[int]) -> Iterator[int]:
    """Address of a block that holds the words."""
    address = allocate(len(words))
    for i, word in enumerate(words):
        store(address, i, word)
    try:
        yield address
    finally:
        release(address)


def words_at(address: int, count: int) -> tuple[int, ...]:
    return tuple(load(address, i) for i in range(count))
