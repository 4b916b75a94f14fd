"""Adds payloads of any rings, by a layout that describes them as runs of elements of one kind.

A *layout* has a word for a status that nothing reads, the number of runs, then two words per run: its kind and its
size. The size counts words (INTEGERS), sums (REALS) or the variables of one cofactor element of doubles (WIDE).
Integers add modulo 2^64, and no overflow is reported here.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_wrapping, jit, load, mul_wrapping, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.cofactor import PRODUCT_SIZE, SUM_SIZE, wide_cofactor_add_scaled
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_scaled

INTEGERS = 0
REALS = 1
WIDE = 2

RUNS = 1
FIRST_RUN = 2


@outside
def add_elements(target: int, source: int, layout: int, k: int) -> None:
    """Add ``k`` times a payload to another one."""
    for run in range(load(layout, RUNS)):
        kind = load(layout, FIRST_RUN + 2 * run)
        size = load(layout, FIRST_RUN + 2 * run + 1)
        if kind == INTEGERS:
            words = size
            for i in range(size):
                store(target, i, add_wrapping(load(target, i), mul_wrapping(load(source, i), k)))
        elif kind == REALS:
            words = size * REAL_WORDS
            for i in range(size):
                real_add_scaled(target + 8 * i * REAL_WORDS, source + 8 * i * REAL_WORDS, k)
        else:
            words = 1 + SUM_SIZE * size + PRODUCT_SIZE * (size * (size + 1) // 2)
            wide_cofactor_add_scaled(target, source, size, k, layout)
        target += 8 * words
        source += 8 * words


@jit
def words_are_zero(address: int, words: int) -> bool:
    """Whether an element is zero: all of its words are."""
    i = 0
    while i < words and load(address, i) == 0:
        i += 1
    return i == words
