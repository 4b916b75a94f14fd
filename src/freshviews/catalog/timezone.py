"""Defines the time zone of a catalog, in which SQL reads and prints values of TIMESTAMP_LTZ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from freshviews.records import dataclass

UTC = "UTC"

_zone: ContextVar[str] = ContextVar("time zone", default=UTC)


@dataclass(frozen=True)
class SetTimeZone:
    """SET TIME ZONE, which comes before tables and views."""

    zone: str
    name: str = "TIME ZONE"


@contextmanager
def in_time_zone(zone: str) -> Iterator[None]:
    """The context for binding a statement of a catalog with this zone."""
    token = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(token)


def time_zone() -> str:
    """The zone of the statement that is bound."""
    return _zone.get()
