"""Defines ``register_ring``. It checks a ring that a user wrote in Python, and makes the ring an aggregate of SQL."""

from __future__ import annotations

from freshviews.catalog.rings import register
from freshviews.errors import RingDefinitionError
from freshviews.ring import UserRing
from freshviews.sql import FUNCTION_NAMES


def register_ring(ring: UserRing) -> None:
    """Register a user's ring: its name is an aggregate function of SQL from now on, in this process.

    Its functions are recorded and the laws of rings are checked. A ring may be registered again under its name; views
    that are there keep the one that they were made with. A durable database needs its rings registered before it is
    opened.

    Parameters
    ----------
    ring
        The ring, and the aggregate of its name (docs/rings.md).

    Raises
    ------
    RingDefinitionError
        A function cannot be compiled, or a law does not hold, with elements for which it does not.

    Examples
    --------
    >>> ring = fv.UserRing("SUM_OF_SQUARES", ["BIGINT"], words=1, results="BIGINT", lift=lambda x: x * x)
    >>> fv.register_ring(ring)
    >>> db.execute("CREATE MATERIALIZED VIEW squares AS SELECT SUM_OF_SQUARES(qty) AS s FROM items")
    >>> list(db.view("squares"))
    [(34,)]
    """
    if not isinstance(ring, UserRing):
        raise RingDefinitionError(f"register_ring takes a freshviews.UserRing, not {type(ring).__name__}")
    if isinstance(ring.name, str) and ring.name.lower() in FUNCTION_NAMES:
        raise RingDefinitionError(f"ring {ring.name} has the name of an SQL function; give it another name")
    register(ring)
