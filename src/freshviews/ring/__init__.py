"""The rings of payloads, by the names that components of views use.

``protocol`` has the laws. The rings of this table have no parameters; a product ring is made of them, per
view, from its components.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from freshviews.ring.integer import INTEGER, IntegerRing
from freshviews.ring.product import ProductRing
from freshviews.ring.protocol import Ring, RingError
from freshviews.ring.real import REAL, Real, RealRing

RINGS: Mapping[str, Ring[Any]] = MappingProxyType({ring.name: ring for ring in (INTEGER, REAL)})

__all__ = [
    "INTEGER",
    "REAL",
    "RINGS",
    "IntegerRing",
    "ProductRing",
    "Real",
    "RealRing",
    "Ring",
    "RingError",
    "protocol",
]
