"""Defines the rings of payloads. A ring is a set of values with addition, multiplication and negation.

A payload is the value of a row of a view, such as a count or a sum. ``protocol`` lists the operations of a ring,
``laws`` the laws that they obey. ``RINGS`` and ``named`` find a ring by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from freshviews.ring.cofactor import Cofactor, CofactorRing, cofactor_named
from freshviews.ring.integer import INTEGER, IntegerRing
from freshviews.ring.product import ProductRing
from freshviews.ring.protocol import Ring, RingError
from freshviews.ring.real import NARROW, REAL, Real, RealRing
from freshviews.ring.user import RecordedRing, UserRing, check_form, family_named, know, recorded, user_ring_named

RINGS: Mapping[str, Ring[Any]] = MappingProxyType({ring.name: ring for ring in (INTEGER, REAL, NARROW)})


def named(name: str) -> Ring[Any]:
    """The ring with a name. Raises KeyError if there is none."""
    return cofactor_named(name) or user_ring_named(name) or RINGS[name]


def ring_over(family: str, places: Iterable[int]) -> str:
    """The name of the ring of a family over arguments with these numbers; for a family with one ring, the name of that.

    The families are ``cofactor.integer``, ``cofactor.double`` and those of users' rings. Over no arguments they are the
    integers: a count. The name of a ring over arguments is that ring's.
    """
    if family in RINGS or family.endswith(")"):
        return family
    ordered = tuple(sorted(set(places)))
    return f"{family}({' '.join(map(str, ordered))})" if ordered else "integer"


__all__ = [
    "INTEGER",
    "NARROW",
    "REAL",
    "RINGS",
    "Cofactor",
    "CofactorRing",
    "IntegerRing",
    "ProductRing",
    "Real",
    "RealRing",
    "RecordedRing",
    "Ring",
    "RingError",
    "UserRing",
    "check_form",
    "cofactor_named",
    "family_named",
    "formula",
    "know",
    "laws",
    "named",
    "protocol",
    "recorded",
    "ring_over",
    "user_ring_named",
]
