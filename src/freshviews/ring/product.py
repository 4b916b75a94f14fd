"""Defines the product ring. Its elements are tuples, which have an element of another ring for each aggregate."""

from __future__ import annotations

from typing import Any

from freshviews.records import dataclass
from freshviews.ring.protocol import Ring

Element = tuple[Any, ...]


@dataclass(frozen=True)
class ProductRing:
    """Tuples of elements, one per named component, with every operation component by component."""

    names: tuple[str, ...]
    rings: tuple[Ring[Any], ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.rings) or len(set(self.names)) != len(self.names):
            raise ValueError(f"names {self.names} for {len(self.rings)} rings: give each ring its own name")

    @property
    def name(self) -> str:
        parts = zip(self.names, self.rings, strict=True)
        return "product(" + ", ".join(f"{name}: {ring.name}" for name, ring in parts) + ")"

    @property
    def words(self) -> int:
        return sum(ring.words for ring in self.rings)

    @property
    def zero(self) -> Element:
        return tuple(ring.zero for ring in self.rings)

    @property
    def one(self) -> Element:
        return tuple(ring.one for ring in self.rings)

    def position(self, name: str) -> int:
        """The position of the component with a name. Raises ValueError if there is none."""
        return self.names.index(name)

    def add(self, a: Element, b: Element) -> Element:
        return tuple(ring.add(x, y) for ring, x, y in zip(self.rings, a, b, strict=True))

    def negate(self, a: Element) -> Element:
        return tuple(ring.negate(x) for ring, x in zip(self.rings, a, strict=True))

    def multiply(self, a: Element, b: Element) -> Element:
        return tuple(ring.multiply(x, y) for ring, x, y in zip(self.rings, a, b, strict=True))

    def scale(self, a: Element, k: int) -> Element:
        return tuple(ring.scale(x, k) for ring, x in zip(self.rings, a, strict=True))

    def is_zero(self, a: Element) -> bool:
        return all(ring.is_zero(x) for ring, x in zip(self.rings, a, strict=True))

    def lift(self, code: int) -> Element:
        """One code lifted in every component."""
        return tuple(ring.lift(code) for ring in self.rings)

    def to_words(self, a: Element) -> tuple[int, ...]:
        """The words of the components, one component after the other, as in a row of a table."""
        return tuple(word for ring, x in zip(self.rings, a, strict=True) for word in ring.to_words(x))

    def from_words(self, words: tuple[int, ...]) -> Element:
        parts = []
        start = 0
        for ring in self.rings:
            parts.append(ring.from_words(words[start : start + ring.words]))
            start += ring.words
        return tuple(parts)
