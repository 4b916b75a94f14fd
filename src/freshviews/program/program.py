"""Defines ``Program``: views, triggers that run for updates of relations, and how the result is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from freshviews.expr.nodes import Expr
from freshviews.program.heavy_light import Balancing
from freshviews.program.results import Result
from freshviews.program.statements import Body, Sum
from freshviews.program.structure import slice_of, uses, views_in, visit
from freshviews.program.upkeep import BY_TRIGGERS, Upkeep
from freshviews.program.views import View
from freshviews.records import dataclass
from freshviews.ring import named


@dataclass(frozen=True)
class Parameter:
    """A variable of a trigger, and its value: an expression over the columns of the relation."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Trigger:
    """The work for an update of a relation, for one atom over the relation or for all atoms that share a store.

    ``filters`` are over the relation's columns; the trigger runs for rows where all of them are TRUE. The triggers of
    one relation run one after the other, each over the whole batch.
    """

    relation: str
    parameters: tuple[Parameter, ...]
    filters: tuple[Expr, ...]
    body: Body


@dataclass(frozen=True)
class Keyed:
    """A lookup of rows of a result by a key: ``body`` emits those with given values of the free variables ``key``."""

    key: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class Program:
    """The program that a strategy makes of a query.

    ``free`` are the free variables, ``bounds`` pairs of a title and a text for EXPLAIN. ``balancing``: the heavy and
    light parts of views, or None.
    """

    name: str
    free: tuple[str, ...]
    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    result: Result
    strategy: str = ""
    bounds: tuple[tuple[str, str], ...] = ()
    balancing: Balancing | None = None
    upkeep: Upkeep = BY_TRIGGERS
    keyed: Keyed | None = field(default=None, repr=False)
    """The lookup by key of a bag whose rows have a key. Images do not depend on it."""

    @property
    def stores(self) -> tuple[View, ...]:
        """The views, and the scratch views of an evaluation."""
        return (*self.views, *self.upkeep.scratch)

    def view(self, name: str) -> View:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, View]:
        """The stores."""
        return {view.name: view for view in self.stores}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The position of each view."""
        return {view.name: i for i, view in enumerate(self.views)}

    @cached_property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the components of each store."""
        return {view.name: tuple(c.name for c in view.components) for view in self.stores}

    @cached_property
    def unchanged(self) -> frozenset[str]:
        """The views whose rows no trigger changes."""
        return frozenset(view.name for view in self.views) - self.changed

    @cached_property
    def long_sums(self) -> Mapping[tuple[str, str], int]:
        """The components with several words of a sum, by alias and name, with the largest number of words of each."""
        found: dict[tuple[str, str], int] = {}
        for statement in (s for body in self.bodies for s in visit(body) if isinstance(s, Sum)):
            for component in statement.components:
                words = named(component.ring).words
                if words > 1:
                    place = (statement.alias, component.name)
                    found[place] = max(words, found.get(place, 0))
        return found

    @cached_property
    def optional(self) -> tuple[str, ...]:
        """The views that are read with a default row, each once."""
        slices = (slice_of(s) for body in self.bodies for s in visit(body) if getattr(s, "optional", False))
        return tuple(dict.fromkeys(rows.view for rows in slices if rows is not None))

    @property
    def bodies(self) -> tuple[Body, ...]:
        """All its statements: those of triggers, of the result, of the upkeep and of rebalancing."""
        keyed = () if self.keyed is None else (self.keyed.body,)
        moves = () if self.balancing is None else self.balancing.bodies
        return (*(t.body for t in self.triggers), *self.result.bodies, *keyed, self.upkeep.statements, *moves)

    @cached_property
    def changed(self) -> frozenset[str]:
        """The views whose rows triggers change."""
        return frozenset(view for t in self.triggers for s in visit(t.body) for view in uses(s).changes)

    @cached_property
    def mentions(self) -> Mapping[str, Mapping[str, int]]:
        """By relation, how often its triggers read or change each view."""
        found: dict[str, Counter[str]] = {}
        for trigger in self.triggers:
            counts = found.setdefault(trigger.relation, Counter())
            counts.update(view for statement in visit(trigger.body) for view in views_in(statement))
        return found
