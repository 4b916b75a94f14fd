"""Computes payloads in the interpreter. A payload is a tuple of ring elements, one per component."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any

from freshviews.program.payload import Component, ComponentOf, Monomial, Value
from freshviews.ring import ProductRing, named

Key = tuple[int, ...]
Payload = tuple[Any, ...]


@dataclass
class Scope:
    """The environment of a statement.

    ``variables`` holds codes by name, ``rows`` the components and payload of each row by alias, ``places`` the view and
    key of each row by alias. ``emit`` takes emitted rows; by default they are ignored. ``enough`` is the innermost sum
    that needs one addition only. ``elements`` holds words by name.
    """

    variables: dict[str, int] = field(default_factory=dict)
    rows: dict[str, tuple[tuple[Component, ...], Payload]] = field(default_factory=dict)
    emit: Callable[[Key, Payload], None] = lambda row, payload: None
    places: dict[str, tuple[str, Key]] = field(default_factory=dict)
    enough: str = ""
    elements: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def values(self, names: tuple[str, ...]) -> Key:
        """The codes of variables."""
        return tuple(self.variables[name] for name in names)


@cache
def ring_of(components: tuple[Component, ...]) -> ProductRing:
    """The ring of a view's payloads."""
    return ProductRing(tuple(c.name for c in components), tuple(named(c.ring) for c in components))


def value_of(monomial: Monomial, ring: str, scope: Scope) -> Any:
    """The ring element that a monomial denotes: the product of its integers, times its factor of another ring,
    if any."""
    target, times = named(ring), monomial.coefficient
    elements: list[tuple[str, Any]] = []
    for factor in monomial.factors:
        if isinstance(factor, ComponentOf):
            components, payload = scope.rows[factor.alias]
            position = [c.name for c in components].index(factor.component)
            kind, element = components[position].ring, payload[position]
        elif factor.whole:
            kind, element = factor.ring, named(factor.ring).from_words(scope.elements[factor.name])
        else:
            kind, element = factor.ring, scope.variables[factor.name]
        if kind == "integer":
            times *= element
        else:
            elements.append((kind if isinstance(factor, Value) and not factor.whole else "", element))
    if not times:
        # A row with multiplicity 0 may have a value without a lift.
        return target.zero
    lifted = [named(kind).lift(element) if kind else element for kind, element in elements]
    return target.scale(reduce(target.multiply, lifted) if lifted else target.one, times)
