"""Searches sorted words in steps that double, then halve.

Leapfrog joins search flat tries and leaves of ordered trees in this way.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import inlined, load


@inlined
def gallop(words: int, low: int, high: int, value: int) -> int:
    """First of the rising words ``low`` to ``high`` that is greater than a value, or ``high``.

    Takes O(log d) steps, where d is the distance from ``low`` to the result: steps double until they are past it, then
    halve.
    """
    step = 1
    at = low
    while at < high and load(words, at) <= value:
        low = at + 1
        at += step
        step += step
    if at < high:
        high = at
    while low < high:
        middle = (low + high) >> 1
        if load(words, middle) <= value:
            low = middle + 1
        else:
            high = middle
    return low
