"""Defines the cofactor ring of m variables, whose elements have a count, sums, and sums of products.

An element is (c, s, Q): the number of rows, the sums of x_i, and the matrix of the sums of x_i * x_j::

    a + b = (ca + cb,  sa + sb,  Qa + Qb)
    a * b = (ca cb,  ca sb + cb sa,  ca Qb + cb Qa + sa sb' + sb sa')
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from functools import cached_property, lru_cache

from freshviews.records import dataclass
from freshviews.ring.protocol import RingError, signed_word

FRACTION_BITS = 64
"""A double is lifted to a multiple of 2^-64."""

_NAME = re.compile(r"cofactor\.(integer|double)\((\d+(?: \d+)*)\)")
_SIZES = {"integer": (1, 1), "double": (2, 4)}

Sums = tuple[tuple[int, int], ...]
Products = tuple[tuple[tuple[int, int], int], ...]


@dataclass(frozen=True)
class Cofactor:
    """An element: the count, the sums by variable, and the sums of products by pair i <= j. Zeros are left out, and
    the others are in order, so that equal elements are equal objects."""

    count: int = 0
    sums: Sums = ()
    products: Products = ()


@dataclass(frozen=True)
class CofactorRing:
    """The elements over a range of variables, in ascending order. ``number`` is ``integer`` or ``double``.

    The element of a join is the product of the elements of its parts. A ring has a *range*: the variables, by number,
    whose sums its elements store; all other sums are zero. The range of a view is the columns below it, so a product
    near a leaf is cheap. Elements of different ranges can be multiplied.

    For integers and decimals (``integer``) each sum is one word, and kernels report an overflow. Doubles (``double``)
    are fixed-point numbers: x is rounded once, to a multiple of 2^-64, when it is lifted. A double of magnitude 2^-12
    or more is such a multiple. Sums have two words in units of 2^-64; sums of products have four, in units of 2^-128.
    Nothing else is rounded before a result is read, so x + y - y is x.
    """

    number: str
    variables: tuple[int, ...]
    zero: Cofactor = Cofactor()
    one: Cofactor = Cofactor(1)

    @property
    def name(self) -> str:
        return f"cofactor.{self.number}({' '.join(map(str, self.variables))})"

    @property
    def words(self) -> int:
        m, (size, square) = len(self.variables), _SIZES[self.number]
        return 1 + m * size + m * (m + 1) // 2 * square

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs i <= j of the range, in the order of an element's words."""
        return tuple((x, y) for place, x in enumerate(self.variables) for y in self.variables[place:])

    def place(self, entry: tuple[int, ...]) -> int:
        """The first word of the sum of a variable, or of the products of two."""
        m, (size, square) = len(self.variables), _SIZES[self.number]
        if len(entry) == 1:
            return 1 + size * self.variables.index(entry[0])
        return 1 + size * m + square * self.pairs.index((min(entry), max(entry)))

    def add(self, a: Cofactor, b: Cofactor) -> Cofactor:
        return _element(a.count + b.count, (*a.sums, *b.sums), (*a.products, *b.products))

    def negate(self, a: Cofactor) -> Cofactor:
        return self.scale(a, -1)

    def scale(self, a: Cofactor, k: int) -> Cofactor:
        return _element(a.count * k, ((i, x * k) for i, x in a.sums), ((p, x * k) for p, x in a.products))

    def multiply(self, a: Cofactor, b: Cofactor) -> Cofactor:
        left, right = self.scale(a, b.count), self.scale(b, a.count)
        # s_i s_j is added for (i, j) and for (j, i): the diagonal gets it twice, as (x + y)^2 has 2xy.
        mixed = [((i, j), x * y * (1 + (i == j))) for i, x in a.sums for j, y in b.sums]
        products = (*left.products, *right.products, *(((min(p), max(p)), x) for p, x in mixed))
        return _element(a.count * b.count, (*left.sums, *right.sums), products)

    def is_zero(self, a: Cofactor) -> bool:
        return a == self.zero

    def lift(self, code: int) -> Cofactor:
        """(1, x, x^2) of the one variable of the range. Raises RingError for a double that has no fixed point."""
        (variable,) = self.variables
        x = code if self.number == "integer" else fixed(code)
        return _element(1, [(variable, x)], [((variable, variable), x * x)])

    def to_words(self, a: Cofactor) -> tuple[int, ...]:
        size, square = _SIZES[self.number]
        sums, products = dict(a.sums), dict(a.products)
        if not (sums.keys() <= set(self.variables) and products.keys() <= set(self.pairs)):
            raise RingError(f"{a} has a variable that {self.name} lacks")
        numbers = [(sums.get(i, 0), size) for i in self.variables]
        numbers += [(products.get(pair, 0), square) for pair in self.pairs]
        found: list[int] = []
        for x, words in [(a.count, 1), *numbers]:
            if not -(2 ** (64 * words - 1)) <= x < 2 ** (64 * words - 1):
                raise RingError(f"{x} does not fit {words} words of 64 bits")
            found += (signed_word(x >> 64 * i) for i in range(words))
        return tuple(found)

    def from_words(self, words: tuple[int, ...]) -> Cofactor:
        size, square = _SIZES[self.number]
        m, start = len(self.variables), 1
        numbers: list[int] = []
        for length in (*[size] * m, *[square] * len(self.pairs)):
            part = words[start : start + length]
            below = sum((w & (2**64 - 1)) << 64 * i for i, w in enumerate(part[:-1]))
            numbers.append(below + (part[-1] << 64 * (length - 1)))
            start += length
        sums, products = zip(self.variables, numbers[:m], strict=True), zip(self.pairs, numbers[m:], strict=True)
        return _element(words[0], sums, products)


def fixed(code: int) -> int:
    """The double with a code in units of 2^-64, to the nearest one, ties away from zero. Raises RingError if it is not
    finite, or 2^63 or more in magnitude."""
    x: float = struct.unpack("<d", struct.pack("<q", code))[0]
    if not math.isfinite(x) or abs(x) >= 2.0**63:
        raise RingError(f"{x} has no fixed-point form: COFACTOR takes finite numbers below 2^63 in magnitude")
    numerator, denominator = abs(x).as_integer_ratio()
    units: int = ((numerator << (FRACTION_BITS + 1)) + denominator) // (2 * denominator)
    return -units if x < 0 else units


@lru_cache(maxsize=4096)
def cofactor_named(name: str) -> CofactorRing | None:
    """The cofactor ring with a name, or None if the name is of another kind."""
    found = _NAME.fullmatch(name)
    return None if found is None else CofactorRing(found[1], tuple(map(int, found[2].split())))


def _element(count: int, sums: Iterable[tuple[int, int]], products: Iterable[tuple[tuple[int, int], int]]) -> Cofactor:
    by_variable: dict[int, int] = {}
    for variable, x in sums:
        by_variable[variable] = by_variable.get(variable, 0) + x
    by_pair: dict[tuple[int, int], int] = {}
    for pair, x in products:
        by_pair[pair] = by_pair.get(pair, 0) + x
    return Cofactor(
        count,
        tuple(sorted((i, x) for i, x in by_variable.items() if x)),
        tuple(sorted((pair, x) for pair, x in by_pair.items() if x)),
    )
