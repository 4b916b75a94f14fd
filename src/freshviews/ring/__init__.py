"""The rings of payloads, by the names that components of views use.

``protocol`` states the laws. The rings of ``RINGS`` have no parameters; a cofactor ring has the range of its variables
in its name. ``named`` finds either. Each view combines the rings of its components into a product ring.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from freshviews.ring.cofactor import Cofactor, CofactorRing, cofactor_named, ring_over
from freshviews.ring.integer import INTEGER, IntegerRing
from freshviews.ring.product import ProductRing
from freshviews.ring.protocol import Ring, RingError
from freshviews.ring.real import REAL, Real, RealRing

RINGS: Mapping[str, Ring[Any]] = MappingProxyType({ring.name: ring for ring in (INTEGER, REAL)})


def named(name: str) -> Ring[Any]:
    """The ring with a name. Raises KeyError if there is none."""
    return cofactor_named(name) or RINGS[name]


__all__ = [
    "INTEGER",
    "REAL",
    "RINGS",
    "Cofactor",
    "CofactorRing",
    "IntegerRing",
    "ProductRing",
    "Real",
    "RealRing",
    "Ring",
    "RingError",
    "cofactor_named",
    "named",
    "protocol",
    "ring_over",
]
