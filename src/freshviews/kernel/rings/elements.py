"""Adds one payload to another, where a payload may consist of elements of several rings."""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_wrapping, inlined, jit, load, mul_wrapping, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.cofactor import PRODUCT_SIZE, SUM_SIZE, wide_cofactor_add_scaled
from freshviews.kernel.rings.narrow import NARROW_WORDS, narrow_add_scaled
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_scaled

INTEGERS = 0
REALS = 1
WIDE = 2
NARROWS = 3

RUNS = 1
FIRST_RUN = 2


@inlined
def words_of_run(kind: int, size: int) -> int:
    """Words of a run of elements."""
    if kind == INTEGERS:
        return size
    if kind == REALS:
        return size * REAL_WORDS
    if kind == NARROWS:
        return size * NARROW_WORDS
    return 1 + SUM_SIZE * size + PRODUCT_SIZE * (size * (size + 1) // 2)


@outside
def add_elements(target: int, source: int, layout: int, k: int) -> None:
    """Add ``k`` times a payload to another one.

    A *layout* is a status word, the number of runs, and two words per run: its kind and its size. A run is one or more
    elements of the same kind. Its size counts words (INTEGERS), sums (REALS, NARROWS) or the variables of one cofactor
    element of doubles (WIDE). Integers add modulo 2^64; an overflow is not reported here.
    """
    for run in range(load(layout, RUNS)):
        kind = load(layout, FIRST_RUN + 2 * run)
        size = load(layout, FIRST_RUN + 2 * run + 1)
        if kind == INTEGERS:
            for i in range(size):
                store(target, i, add_wrapping(load(target, i), mul_wrapping(load(source, i), k)))
        elif kind == REALS:
            for i in range(size):
                real_add_scaled(target + 8 * i * REAL_WORDS, source + 8 * i * REAL_WORDS, k)
        elif kind == NARROWS:
            for i in range(size):
                narrow_add_scaled(target + 8 * i * NARROW_WORDS, source + 8 * i * NARROW_WORDS, k, layout)
        else:
            wide_cofactor_add_scaled(target, source, size, k, layout)
        words = words_of_run(kind, size)
        target += 8 * words
        source += 8 * words


@jit
def words_are_zero(address: int, words: int) -> bool:
    """Whether an element is zero: all of its words are."""
    i = 0
    while i < words and load(address, i) == 0:
        i += 1
    return i == words
