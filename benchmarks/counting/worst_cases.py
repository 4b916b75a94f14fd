"""Rows on which joins of cyclic queries take longest, for worst-case optimal and for binary plans.

Half of the rows of a relation are a cube: all combinations of a number of values per column. Their join has as many
rows as the bound allows. The other half have one nonzero value, so a join of two relations has quadratically many
rows, most of which match nothing in the third relation.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from freshviews.engine.codes.code_batch import Codes

TRIANGLE = {"r": "ab", "s": "bc", "t": "ca"}
LOOMIS_WHITNEY = {"r": "abc", "s": "bcd", "t": "cda", "u": "dab"}


def worst_case(atoms: dict[str, str], rows: int) -> dict[str, Codes]:
    """About ``rows`` distinct rows for each relation of a query whose relations have the same number of columns."""
    columns = len(next(iter(atoms.values())))
    side = round((rows / 2) ** (1 / columns))
    arm = rows // 2 // columns
    cube = np.array(list(product(range(1, side + 1), repeat=columns)), np.int64)
    star = np.zeros((columns * arm + 1, columns), np.int64)
    for i in range(columns):
        star[i * arm : (i + 1) * arm, i] = np.arange(2 * side, 2 * side + arm)
    found = np.concatenate([cube, star])
    shuffled = np.random.default_rng(1).permutation(len(found))
    return dict.fromkeys(atoms, found[shuffled])


def slope(sizes: list[int], steps: list[int]) -> float:
    """The exponent with which steps grow in the size: least squares over logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(steps), 1)[0])
