"""The thresholds of compiled programs are those that ``program.heavy_light`` defines."""

from __future__ import annotations

import numpy as np
import pytest

from freshviews.kernel.hash import heavy_light as balance
from freshviews.kernel.memory import mem
from freshviews.program.heavy_light import HALVES, thresholds


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1 / 3, 0.5, 2 / 3, 1.0])
def test_thresholds_of_heavy_values_agree_with_their_definition(epsilon: float) -> None:
    words = np.zeros(balance.FIRST_PARTITION + balance.PARTITION_WORDS, dtype=np.int64)
    at = balance.FIRST_PARTITION
    words[at + balance.EPSILON] = mem.bits(epsilon)
    for base in (1, 2, 7, 64, 1000, 999_983, 10**9):
        balance.set_base(words.ctypes.data, base, 1, *HALVES)
        assert (words[balance.BASE], words[balance.FEWEST]) == (base, base // 4)
        found = tuple(words[at + i] for i in (balance.STRICT, balance.RISE, balance.SINK))
        assert found == thresholds(base, epsilon)
