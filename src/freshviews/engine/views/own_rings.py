"""Registers rings of users, for views of all databases of the process."""

from __future__ import annotations

from freshviews.catalog.rings import register
from freshviews.errors import RingDefinitionError
from freshviews.ring import UserRing
from freshviews.sql import FUNCTION_NAMES


def register_ring(ring: UserRing) -> None:
    """Register a ring: its name is an aggregate function of SQL from now on, in this process.

    Its functions are recorded and the laws of rings are checked. A ring may be registered again under its name; views
    that are there keep the one that they were made with. A durable database needs its rings registered before it is
    opened. Raises RingDefinitionError, which names the function that cannot be compiled, or the law that does not hold
    with elements for which it does not.
    """
    if not isinstance(ring, UserRing):
        raise RingDefinitionError(f"register_ring takes a freshviews.UserRing, not {type(ring).__name__}")
    if isinstance(ring.name, str) and ring.name.lower() in FUNCTION_NAMES:
        raise RingDefinitionError(f"ring {ring.name} has the name of an SQL function; give it another name")
    register(ring)
