"""Defines the payloads of rows in the trigger language. A payload has a count and a component per aggregate.

A statement adds a product, such as ``m * s.count``, to each component: m is the multiplicity of the change, and s a
row that it is joined with.
"""

from __future__ import annotations

from typing import TypeVar

from freshviews.records import dataclass

COUNT = "count"

T = TypeVar("T")


def hashed_once(node: type[T]) -> type[T]:
    """Makes a frozen dataclass whose objects cache their hash. Without the cache, hashing nested bodies would visit
    each body once per enclosing level, and hashing a view each of its components."""
    compute = node.__hash__

    def kept(self: T) -> int:
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = compute(self)
            object.__setattr__(self, "_hash", found)
        return found

    def state(self: T) -> dict[str, object]:
        # Names of cached values begin with _; they are dropped, as hashes of strings differ between processes.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    for name, method in (("__hash__", kept), ("__getstate__", state)):
        setattr(node, name, method)
    return node


@dataclass(frozen=True)
class Component:
    """A component of a payload: its name, that of an aggregate or ``count``, and its ring."""

    name: str
    ring: str


COUNTED = (Component(COUNT, "integer"),)
"""The components of rows whose payload is only their count."""


@dataclass(frozen=True)
class ComponentOf:
    """A component of the payload of the row known by ``alias``."""

    alias: str
    component: str


@dataclass(frozen=True)
class Value:
    """A variable as a ring element: the multiplicity ``m``, or a lift that a parameter or a Let computes.

    ``whole``: it holds the words of the element, and not a code that is lifted.
    """

    name: str
    ring: str = "integer"
    whole: bool = False


MULTIPLICITY = Value("@m")
"""The multiplicity of the update; printed ``m``. No column can have its name."""


@dataclass(frozen=True)
class Monomial:
    """``coefficient`` times the product of the factors. At most one of them is of ring ``real``, whose elements have no
    product with each other. A coefficient of 0 has no factors."""

    factors: tuple[ComponentOf | Value, ...]
    coefficient: int = 1


ZERO = Monomial((), 0)
