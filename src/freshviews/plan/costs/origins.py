"""Finds the origin of each column of a view: the trigger that writes the column, and the variable that it copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from freshviews.program.program import Program
from freshviews.program.roles import Role
from freshviews.program.statements import Add, Body, Statement
from freshviews.program.structure import bodies, columns, uses
from freshviews.records import dataclass

Path = tuple[tuple[Statement, int], ...]
"""Statements around a statement, outer ones first, each with the number of its body."""


class Origin(NamedTuple):
    """A parameter of a trigger, by the number of the trigger. ``row`` is the number of the row that binds it: 0 for the
    update, the depth of the loop for a row of a loop."""

    trigger: int
    variable: str
    row: int = 0


@dataclass(frozen=True)
class Place:
    """An Add in a trigger, and the ``path`` of bodies to it."""

    trigger: int
    add: Add
    path: Path


class Cover(NamedTuple):
    """A trigger that adds its own bindings to a view: the variable in each column of the key."""

    place: Place
    variables: tuple[str, ...]

    @property
    def trigger(self) -> int:
        return self.place.trigger


class Origins:
    """The origins of the columns of a program's views."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._columns: dict[str, tuple[Origin | None, ...]] = {}

    @cached_property
    def places(self) -> Mapping[str, list[Place]]:
        """By view, the statements that add to it in triggers."""
        found: dict[str, list[Place]] = {}
        for number, trigger in enumerate(self.program.triggers):
            for add, path in _adds(trigger.body, ()):
                found.setdefault(add.view, []).append(Place(number, add, path))
        return found

    @cached_property
    def _parameters(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(p.name for p in trigger.parameters) for trigger in self.program.triggers)

    @cached_property
    def covers(self) -> Mapping[str, list[Cover]]:
        """By view, the triggers whose parameters are all columns of its key, one place each, the outermost."""
        found: dict[str, list[Cover]] = {}
        for view, places in self.places.items():
            by_trigger: dict[int, Cover] = {}
            for place in sorted(places, key=lambda place: len(place.path)):
                if self._parameters[place.trigger].issuperset(place.add.key):
                    by_trigger.setdefault(place.trigger, Cover(place, place.add.key))
            found[view] = list(by_trigger.values())
        return found

    def columns(self, view: str) -> tuple[Origin | None, ...]:
        """The origin of each column of the key of a view; None for a computed value."""
        if view not in self._columns:
            width = len(self.program.view(view).key)
            self._columns[view] = (None,) * width  # while it is looked for
            covers = self.covers.get(view)
            if covers:
                self._columns[view] = tuple(Origin(covers[0].trigger, v) for v in covers[0].variables)
            else:
                tried = [self._of_key(place) for place in self.places.get(view, ())]
                self._columns[view] = min(tried, key=lambda one: one.count(None), default=(None,) * width)
        return self._columns[view]

    def _of_key(self, place: Place) -> tuple[Origin | None, ...]:
        known: dict[str, Origin | None] = dict(self.parameters(place.trigger))
        for depth, (statement, _) in enumerate(place.path):
            known |= self.bound_by(statement, depth + 1)
        return tuple(known.get(v) for v in place.add.key)

    def parameters(self, trigger: int) -> Mapping[str, Origin]:
        """The origins of the parameters of a trigger: themselves."""
        return {name: Origin(trigger, name) for name in self._parameters[trigger]}

    def bound_by(self, statement: Statement, row: int) -> Mapping[str, Origin | None]:
        """The origins of the variables that a statement binds in its bodies, as those of a row."""
        found: dict[str, Origin | None] = dict.fromkeys(uses(statement).binds)
        for name, part, of, place in columns(statement):
            if name in found and part.role in (Role.VIEW, Role.RANGE):
                found[name] = _as_row(self.columns(of)[place], row)
        return found


def _as_row(origin: Origin | None, row: int) -> Origin | None:
    return None if origin is None else Origin(origin.trigger, origin.variable, row)


def _adds(body: Body, path: Path) -> Iterator[tuple[Add, Path]]:
    for statement in body:
        if isinstance(statement, Add):
            yield statement, path
        for number, inner in enumerate(bodies(statement)):
            yield from _adds(inner, (*path, (statement, number)))
