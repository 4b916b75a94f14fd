"""Defines the forms of a program's result.

A *held* result is stored in a view. An *enumerated* result is read by loops over several views. A *listed* result is
read by loops over unions of sets. Such a loop visits each value once, even if several sets have it.
"""

from __future__ import annotations

from typing import ClassVar

from freshviews.program.payload import COUNTED, Component
from freshviews.program.statements import Body, Sum
from freshviews.records import dataclass


@dataclass(frozen=True)
class SliceSource:
    """Source of a listing: the rows of a view that agree on the ``bound`` positions of ``key``, as in Loop. They bind
    the other variables of ``key``."""

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...]
    among: str = ""


@dataclass(frozen=True)
class UnionSource:
    """Source of a listing: the union of several sets of values of ``variables``, without repetition.

    The sets are the rows ``light``, and one listing ``inner`` for each row of ``heavy``. ``has`` is a membership test:
    with those variables and the row of ``heavy`` bound, it emits a row if ``inner`` has the values. The union algorithm
    is that of Durand and Strozecki (CSL 2011), see ``freshviews.program.reference.listing``.
    """

    variables: tuple[str, ...]
    light: SliceSource | None
    heavy: SliceSource
    inner: tuple[Source, ...]
    has: Body


Source = SliceSource | UnionSource
"""Binds variables in a listing. A listing is the nested loop over its sources; none of them repeats values."""


@dataclass(frozen=True)
class Held:
    """The result is the view named ``view``, keyed by the free variables; it keeps a journal, from which its change is
    read. ``presence``: its counts only record that a row is present (set semantics)."""

    view: str
    presence: bool = False
    emitted: ClassVar[tuple[Component, ...]] = ()
    bodies: ClassVar[tuple[Body, ...]] = ()


@dataclass(frozen=True)
class Enumerated:
    """The result is not stored: ``rows`` emits its rows from the views, and triggers emit its change.

    ``member`` emits the row with given free variables, if there is one; it is empty if there is no such lookup.
    ``awake`` runs once when a subscriber first wants changes: it updates what triggers maintain only for subscribers.
    """

    rows: Body
    member: Body = ()
    awake: Body = ()
    emitted: tuple[Component, ...] = COUNTED

    @property
    def bodies(self) -> tuple[Body, ...]:
        return (self.rows, self.member, self.awake)


@dataclass(frozen=True)
class Listed:
    """The result is not stored: ``sources`` bind the free variables, each combination of values once, and ``member``
    emits the row of these values, with its payload. Its change is collected by group in the view ``delta``: while a
    subscriber wants changes, triggers add the changes of payloads to it."""

    sources: tuple[Source, ...]
    member: Sum
    delta: str
    emitted: tuple[Component, ...]

    @property
    def bodies(self) -> tuple[Body, ...]:
        return ((self.member,),)


Result = Held | Enumerated | Listed
