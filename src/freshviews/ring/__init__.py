"""The rings of payloads, by the names that components of views use.

``protocol`` states the laws. The rings of ``RINGS`` have no parameters; each view combines them into a product ring of
its components.
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
