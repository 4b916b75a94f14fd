"""Defines the ring of integers. Its elements are multiplicities, counts, and sums of integers and decimals."""

from __future__ import annotations

from freshviews.records import dataclass
from freshviews.ring.protocol import RingError


@dataclass(frozen=True)
class IntegerRing:
    """Z. Elements are unbounded Python ints. In a row an element is one word; kernels report an overflow."""

    name: str = "integer"
    words: int = 1
    zero: int = 0
    one: int = 1

    def add(self, a: int, b: int) -> int:
        return a + b

    def negate(self, a: int) -> int:
        return -a

    def multiply(self, a: int, b: int) -> int:
        return a * b

    def scale(self, a: int, k: int) -> int:
        return a * k

    def is_zero(self, a: int) -> bool:
        return a == 0

    def lift(self, code: int) -> int:
        """The code itself: of a decimal, the unscaled value."""
        return code

    def to_words(self, a: int) -> tuple[int, ...]:
        if not -(2**63) <= a < 2**63:
            raise RingError(f"{a} does not fit a word of 64 bits")
        return (a,)

    def from_words(self, words: tuple[int, ...]) -> int:
        (word,) = words
        return word


INTEGER = IntegerRing()
