"""The source of random choices of scenarios: Hypothesis, which can shrink them, or a seed.

A seed gives better variety and is faster: Hypothesis likes to repeat choices it has made before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@dataclass(frozen=True)
class Choices:
    """``between`` gives an integer of a closed range; all other choices are made of it."""

    between: Callable[[int, int], int]

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; shrinks to the first."""
        return options[self.between(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True with this probability; shrinks to False."""
        return self.between(0, 99) >= 100 - percent


def seeded(seed: int) -> Choices:
    return Choices(random.Random(seed).randint)


def drawn(draw: Callable[[st.SearchStrategy[int]], int]) -> Choices:
    """Choices of a ``hypothesis.strategies.composite``."""
    return Choices(lambda least, greatest: draw(st.integers(least, greatest)))
