"""Keeps the thresholds of a program: the numbers of rows from which values are heavy (``program.heavy_light``).

The thresholds are in one memory block::

    base | fewest rows | major | minor | per partition: epsilon, strict, rise, sink

The threshold of a partition is ``base`` to the power ``epsilon``. ``strict``, ``rise`` and ``sink`` are multiples of
the threshold. ``major`` and ``minor`` count rebalancings.
"""

from __future__ import annotations

import math

from freshviews.kernel.hash import index
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import find_words
from freshviews.kernel.memory.mem import f64, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside

BASE = 0
FEWEST = 1
MAJOR = 2
MINOR = 3
FIRST_PARTITION = 4

# Words of a partition.
EPSILON = 0
STRICT = 1
RISE = 2
SINK = 3
PARTITION_WORDS = 4


@outside
def set_base(balance: int, base: int, partitions: int, rise: int, sink: int) -> None:
    """Set the threshold base and compute the thresholds of all partitions. ``rise``, ``sink``: in halves."""
    store(balance, BASE, base)
    store(balance, FEWEST, base // 4)
    for i in range(partitions):
        at = balance + 8 * (FIRST_PARTITION + i * PARTITION_WORDS)
        threshold = float(base) ** f64(load(at, EPSILON))
        store(at, STRICT, math.ceil(threshold))
        store(at, RISE, math.ceil(rise * threshold / 2))
        store(at, SINK, math.ceil(sink * threshold / 2))


@jit
def expected_base(balance: int, rows: int, m: int, stride: int, n: int) -> int:
    """The base for a batch that only inserts and may more than double it, else 0.

    ``n`` is the number of updates, ``rows`` the number of stored rows; the multiplicities are at ``m``.
    """
    if n <= 1 or rows + n < 2 * load(balance, BASE):
        return 0
    for i in range(n):
        if load(m, i * stride) <= 0:
            return 0
    return 2 * (rows + n) + 1


@inlined
def is_balanced(balance: int, rows: int) -> bool:
    """Whether the base fits a number of rows."""
    return load(balance, FEWEST) <= rows < load(balance, BASE)


@inlined
def next_base(balance: int, rows: int) -> int:
    """The base after the present one, which does not fit ``rows``."""
    base = load(balance, BASE)
    if rows >= base:
        return 2 * base
    return max(base // 2 - 1, 1)


@jit
def rows_of_values(x: int, values: int) -> int:
    """Number of rows of a store, by its index ``x``, that have one of the keys of the table ``values``."""
    words = load(x, index.COUNT) + index.GROUP_EXTRA
    total = 0
    for g in range(load(x, index.USED)):
        group = load(x, index.GROUPS) + 8 * g * words
        rows = load(group + 8 * load(x, index.COUNT), index.ROWS_COUNT)
        if rows != 0:
            h = hash_words(group, load(x, index.COUNT))
            if find_words(values, group, load(x, index.COUNT), h) != 0:
                total += rows
    return total
