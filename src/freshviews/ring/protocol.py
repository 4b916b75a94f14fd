"""Defines the operations of every ring, such as ``add`` and ``multiply``, and the form of its elements in a row."""

from __future__ import annotations

from typing import Protocol, TypeVar

E = TypeVar("E")


class Ring(Protocol[E]):
    """A commutative ring whose elements are immutable Python values.

    ``ring.laws`` has its laws. The integers act on every ring through ``scale``: a multiplicity, always an integer,
    multiplies a payload of any ring. A ring may refuse some products (``RingError``); the laws then hold if both sides
    are defined. ``scale`` is always defined.

    ``words`` is the number of 64-bit words an element takes in a row of a table. Zero is all words zero, because a row
    whose payload words are all zero is absent. ``lift`` turns the code of an argument into an element. The ring defines
    how, possibly by its parameters (a matrix-valued ring lifts a code at the position of its column).

    A ring of more than one word has kernels as well, which compute the same over memory. Kernels of users' rings are
    written from formulas; docs/rings.md says what to add for a ring with others. Elements of variable size, such as
    relations under union and join, are not supported: no allocator serves memory to which a word would refer.
    """

    @property
    def name(self) -> str:
        """The name by which a Component names the ring."""

    @property
    def words(self) -> int:
        """Words of an element in a row."""

    @property
    def zero(self) -> E: ...

    @property
    def one(self) -> E: ...

    def add(self, a: E, b: E, /) -> E: ...

    def negate(self, a: E, /) -> E: ...

    def multiply(self, a: E, b: E, /) -> E: ...

    def scale(self, a: E, k: int, /) -> E: ...

    def is_zero(self, a: E, /) -> bool: ...

    def lift(self, code: int, /) -> E:
        """The element for the code of an argument that is not NULL."""

    def to_words(self, a: E, /) -> tuple[int, ...]:
        """The element as ``words`` int64 words, the form of the kernels. Raises RingError if it does not fit."""

    def from_words(self, words: tuple[int, ...], /) -> E:
        """The element of these words."""


class RingError(ArithmeticError):
    """A ring refuses a product, or an element does not fit its words."""


def signed_word(value: int) -> int:
    """The int64 with the low 64 bits of an integer."""
    value &= 2**64 - 1
    return value - 2**64 if value >> 63 else value
