"""The exponent of heavy and light parts where it is left to the stream: ``'freshviews.epsilon' = 'auto'``.

The exponent of IVM^eps (Kara et al., ICDT 2019) is best chosen by the degrees that updates meet. After each major
rebalancing, each exponent that the program allows is priced by the mean steps of an update of a random row, with the
threshold N^eps:

- a light value has its rows gone through: the sum of the squares of the light degrees, by all rows;
- a heavy one has the heavy values gone through: the share of the rows that are heavy, times the heavy values.

Where reading goes through heavy values as well, so that its delay is not constant, a row that was read costs as many
steps as there are heavy values; updates and rows read are counted from one major rebalancing to the next. The cheapest
exponent is taken, and of those within a tenth of it the one nearest to that in use, so that it does not oscillate.
It takes effect at the next major rebalancing, which partitions all views again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Degrees = NDArray[np.int64]
NEAR = 1.1


def price(degrees: Sequence[Degrees], threshold: float, reads: float) -> float:
    """Steps of an update, summed over the partitions; ``reads``: rows read through heavy values, per update."""
    total = 0.0
    for of_one in degrees:
        heavy = of_one >= threshold
        rows = max(int(of_one.sum()), 1)
        light = of_one[~heavy].astype(float)
        values = int(heavy.sum())
        total += float(light @ light) / rows + int(of_one[heavy].sum()) / rows * values + reads * values
    return total


def chosen(
    degrees: Sequence[Degrees], base: int, choices: Sequence[float], now: float, reads: float = 0.0
) -> float:
    """The exponent for relations whose values have these degrees, by partition, under the threshold base."""
    prices = {choice: price(degrees, float(base) ** choice, reads) for choice in choices}
    least = min(prices.values())
    near = [choice for choice in choices if prices[choice] <= NEAR * least]
    return min(near, key=lambda choice: abs(choice - now))
