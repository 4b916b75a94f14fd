"""Payloads in the trigger language: the components that a view declares, and the monomials that statements add."""

from __future__ import annotations

from dataclasses import dataclass

COUNT = "count"


@dataclass(frozen=True)
class Component:
    """A component of a payload: its name, that of an aggregate or ``count``, and its ring."""

    name: str
    ring: str


@dataclass(frozen=True)
class ComponentOf:
    """A component of the payload of the row known by ``alias``."""

    alias: str
    component: str


@dataclass(frozen=True)
class Value:
    """A variable as a ring element: the multiplicity ``m``, or a lift that a parameter or a Let computes."""

    name: str
    ring: str = "integer"


MULTIPLICITY = Value("@m")
"""The multiplicity of the update; printed ``m``. No column can have its name."""


@dataclass(frozen=True)
class Monomial:
    """``coefficient`` times the product of the factors; at most one of them is of ring ``real``. A coefficient of 0 has
    no factors."""

    factors: tuple[ComponentOf | Value, ...]
    coefficient: int = 1


ZERO = Monomial((), 0)
