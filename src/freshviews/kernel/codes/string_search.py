"""Looks up the codes of an array of strings, without adding strings to the dictionary."""

from __future__ import annotations

from freshviews.kernel.codes.string_slots import code_of
from freshviews.kernel.memory.mem import jit, load, store


@jit
def search_codes(block: int, offsets: int, data: int, n: int, out: int) -> None:
    """Write the codes of ``n`` strings to ``out``, UNKNOWN for a string without one.

    String ``i`` is the bytes ``offsets[i]`` to ``offsets[i + 1]`` of ``data``.
    """
    for i in range(n):
        begin = load(offsets, i)
        store(out, i, code_of(block, data + begin, load(offsets, i + 1) - begin))
