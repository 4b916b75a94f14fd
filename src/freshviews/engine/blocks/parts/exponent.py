"""Chooses the exponent eps of the threshold N^eps between heavy and light values (``'freshviews.epsilon' = 'auto'``).

It estimates how many steps an update takes with each exponent, from the number of rows that each value has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Degrees = NDArray[np.int64]
NEAR = 1.1


def price(degrees: Sequence[Degrees], threshold: float, reads: float) -> float:
    """Steps of an update, summed over the partitions. ``reads``: rows read through heavy values, per update.

    The best exponent of IVM^eps (Kara et al., ICDT 2019) depends on the degrees of the values that are updated. The
    cost of an exponent is the mean number of steps of an update of a random row, with the threshold N^eps. It has two
    parts:

    - a light value costs a loop over its rows: on average, the sum of the squares of the light degrees, divided by the
      number of all rows;
    - a heavy value costs a loop over the heavy values: on average, the fraction of rows with heavy values, times the
      number of heavy values.
    """
    total = 0.0
    for of_one in degrees:
        heavy = of_one >= threshold
        rows = max(int(of_one.sum()), 1)
        light = of_one[~heavy].astype(float)
        values = int(heavy.sum())
        total += float(light @ light) / rows + int(of_one[heavy].sum()) / rows * values + reads * values
    return total


def choose(
    degrees: Sequence[Degrees], base: int, choices: Sequence[float], now: float, reads: float = 0.0
) -> float:
    """The exponent for the degrees of values, by partition, and the threshold base; ``now`` is the current one.

    If reading also loops over heavy values, each row that is read costs one more step per heavy value. Updates and
    reads are counted from one major rebalancing to the next, which uses the exponent of least cost. If several
    exponents cost at most a tenth more, the rebalancing uses the one nearest to the current exponent, to avoid
    oscillation.
    """
    prices = {choice: price(degrees, float(base) ** choice, reads) for choice in choices}
    least = min(prices.values())
    near = [choice for choice in choices if prices[choice] <= NEAR * least]
    return min(near, key=lambda choice: abs(choice - now))
