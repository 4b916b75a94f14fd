"""Defines rings of exact sums of doubles. Infinities and NaN are only counted, so that deletes can cancel them.

An element of ``REAL`` can hold every sum. An element of ``NARROW`` has only four words, and holds sums in a limited
range.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from freshviews.records import dataclass
from freshviews.ring.protocol import RingError, signed_word

_NAN_CODE = 0x7FF8000000000000


@dataclass(frozen=True)
class Real:
    """An exact sum: its finite part, and the numbers of NaN, +inf and -inf in it, negative if more were deleted than
    inserted."""

    finite: Fraction = Fraction(0)
    nans: int = 0
    positive: int = 0
    negative: int = 0

    @property
    def integer(self) -> int | None:
        """The sum as an integer, or None if it is not one."""
        if self.nans or self.positive or self.negative or self.finite.denominator != 1:
            return None
        return self.finite.numerator


@dataclass(frozen=True)
class RealRing:
    """Exact sums of doubles as a module over Z; see the module's docstring.

    Sums of doubles are computed exactly, and rounded once, when they are read. So values that were inserted and deleted
    leave no rounding error.

    There are two such rings. An element of ``REAL`` can hold every sum. An element of ``NARROW`` has only four words:
    it holds sums of doubles that are below 2^78 in magnitude and multiples of 2^-114. ``kernel.rings.narrow`` says how
    kernels report doubles that do not fit.

    A SUM needs only products of a double and multiplicities. So ``multiply`` refuses two factors that are not integers:
    their exact product may need more bits than the kernels store. The product in ``SUM(x * y)`` over one table is an
    expression, which is rounded as SQL says before it is lifted.
    """

    name: str = "real"
    sum_words: int = 34
    first: int = 0
    """The unit of the words is 2^(64 * first - 1074). Only with 0, counts of NaN and infinities follow them."""
    zero: Real = Real()
    one: Real = Real(Fraction(1))

    @property
    def words(self) -> int:
        return self.sum_words if self.first else self.sum_words + 3

    def add(self, a: Real, b: Real) -> Real:
        return Real(a.finite + b.finite, a.nans + b.nans, a.positive + b.positive, a.negative + b.negative)

    def negate(self, a: Real) -> Real:
        return self.scale(a, -1)

    def multiply(self, a: Real, b: Real) -> Real:
        """The product, if a factor is an integer. Raises RingError otherwise."""
        if (k := b.integer) is not None:
            return self.scale(a, k)
        if (k := a.integer) is not None:
            return self.scale(b, k)
        raise RingError(f"{a} * {b}: one factor must be an integer")

    def scale(self, a: Real, k: int) -> Real:
        return Real(a.finite * k, a.nans * k, a.positive * k, a.negative * k)

    def is_zero(self, a: Real) -> bool:
        return a == self.zero

    def lift(self, code: int) -> Real:
        """The double with a code."""
        (x,) = struct.unpack("<d", struct.pack("<q", code))
        if math.isnan(x):
            return Real(nans=1)
        if math.isinf(x):
            return Real(positive=1) if x > 0 else Real(negative=1)
        return Real(Fraction(x))

    def value(self, a: Real) -> int:
        """Code of the double nearest to a sum, ties to even; infinite past the range of doubles.

        NaN if the sum has a NaN or both infinities, else the infinity that it has. A negative number of one infinity
        counts as the other infinity.
        """
        up = a.positive > 0 or a.negative < 0
        down = a.positive < 0 or a.negative > 0
        if a.nans or (up and down):
            return _NAN_CODE
        if up or down:
            x = math.inf if up else -math.inf
        else:
            try:
                x = float(a.finite)
            except OverflowError:
                x = math.inf if a.finite > 0 else -math.inf
        # A sum below half the least denormal rounds to 0.0, whose one code is 0.
        (code,) = struct.unpack("<q", struct.pack("<d", x or 0.0))
        return int(code)

    def to_words(self, a: Real) -> tuple[int, ...]:
        units = a.finite * 2 ** (1074 - 64 * self.first)
        bound = 2 ** (64 * self.sum_words - 1)
        if units.denominator != 1 or not -bound <= units < bound:
            raise RingError(f"the sum {a.finite} is outside the range that is stored")
        counts = (a.nans, a.positive, a.negative)
        if self.first and any(counts):
            raise RingError(f"{a} is not finite")
        sums = [signed_word(units.numerator >> 64 * i) for i in range(self.sum_words)]
        return tuple(sums) if self.first else (*sums, *counts)

    def from_words(self, words: tuple[int, ...]) -> Real:
        sums = words[: self.sum_words]
        units = sum((word & (2**64 - 1)) << 64 * i for i, word in enumerate(sums))
        if sums[-1] < 0:
            units -= 2 ** (64 * self.sum_words)
        return Real(Fraction(units, 2 ** (1074 - 64 * self.first)), *words[self.sum_words :])


REAL = RealRing()
NARROW = RealRing("real.narrow", 4, 15)
