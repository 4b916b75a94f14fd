"""Leaves and payloads: what every strategy does with an atom before its own work begins.

An atom's leaf view is keyed by the atom's variables. Its payload is the count and, of the aggregates, only
those with a lift inside the atom: below a view that no lift has reached, an aggregate's component equals the
count, so it is not stored. A product of payloads takes, per aggregate, the component where a factor has it
and the count where not: the product ring, stored without repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.plan.naming import lift_names
from freshviews.program.payload import COUNT, MULTIPLICITY, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Parameter, Trigger
from freshviews.program.statements import Add, Let, Statement
from freshviews.program.views import View
from freshviews.query.query import Aggregate, Atom, Query


@dataclass(frozen=True)
class Carrier:
    """A factor of a payload product: an alias of a view's row, or the update itself (``alias`` None).

    ``components`` are the aggregates (besides the count) it carries; ``lifts`` maps an aggregate's name to
    the variable that holds its lift where the carrier is the update or a lift across atoms.
    """

    alias: str | None
    components: frozenset[str] = frozenset()
    lifts: tuple[tuple[str, Value], ...] = ()


def lifted_in(query: Query, atoms: frozenset[str]) -> tuple[Aggregate, ...]:
    """Aggregates, in order, that have a lift inside one of the atoms."""
    return tuple(
        a for a in query.aggregates if any(lift.atom in atoms for lift in a.lifts if lift.atom is not None)
    )


def components_over(query: Query, atoms: frozenset[str], spanning: frozenset[str] = frozenset()) -> tuple[
    Component, ...
]:
    """The payload of a view over a set of atoms: the count, then the aggregates lifted within them.

    ``spanning`` names aggregates whose lift across atoms has been applied below the view.
    """
    lifted = {a.name for a in lifted_in(query, atoms)} | spanning
    rest = tuple(Component(a.name, a.ring) for a in query.aggregates if a.name in lifted and a.name != COUNT)
    return (Component(COUNT, "integer"), *rest)


def all_components(query: Query) -> tuple[Component, ...]:
    """The payload of the result: every aggregate of the query, the count first."""
    return tuple(Component(a.name, a.ring) for a in query.aggregates)


def product(components: tuple[Component, ...], carriers: tuple[Carrier, ...]) -> tuple[Monomial, ...]:
    """A monomial per component: of each carrier the component where it has it, else its count."""
    return tuple(
        Monomial(tuple(f for carrier in carriers for f in _factors(component.name, carrier)))
        for component in components
    )


def _factors(component: str, carrier: Carrier) -> tuple[ComponentOf | Value, ...]:
    lifts = tuple(value for name, value in carrier.lifts if name == component)
    if carrier.alias is None:
        return lifts
    name = component if component in carrier.components else COUNT
    return (ComponentOf(carrier.alias, name), *lifts)


def update_carrier(query: Query, atom: Atom) -> Carrier:
    """The update of an atom as a carrier: ``m`` times the lifts its parameters compute."""
    lifts = [(name, Value(variable, ring)) for name, variable, ring, _ in _atom_lifts(query, atom)]
    everywhere = [(a.name, MULTIPLICITY) for a in query.aggregates]
    return Carrier(None, frozenset(), (*everywhere, *lifts))


def row_carrier(alias: str, view: View) -> Carrier:
    """A row of a view as a carrier."""
    return Carrier(alias, frozenset(c.name for c in view.components if c.name != COUNT))


def _atom_lifts(query: Query, atom: Atom) -> list[tuple[str, str, str, Parameter]]:
    """(aggregate, variable, ring, parameter) for every lift inside an atom; equal lifts share one variable."""
    names = lift_names(query)
    found: list[tuple[str, str, str, Parameter]] = []
    for aggregate in query.aggregates:
        for lift in aggregate.lifts:
            if lift.atom == atom.name:
                variable = names[atom.name, lift.expr, aggregate.ring]
                found.append((aggregate.name, variable, aggregate.ring, Parameter(variable, lift.expr)))
    return found


def parameters_of(query: Query, atom: Atom) -> tuple[Parameter, ...]:
    """The parameters of an atom's trigger: its variables, then its lifts."""
    variables = [Parameter(v, c) for v, c in zip(atom.variables, atom.columns, strict=True)]
    lifts = {parameter.name: parameter for *_, parameter in _atom_lifts(query, atom)}
    return (*variables, *lifts.values())


def leaf_view(query: Query, atom: Atom, name: str, indexes: tuple[tuple[int, ...], ...] = ()) -> View:
    """The view that stores an atom's rows by its variables."""
    components = components_over(query, frozenset({atom.name}))
    filters = "".join(f" where {f}" for f in atom.filters)
    return View(name, atom.variables, components, indexes, definition=f"{atom.relation}{filters}")


def add_to(view: View, carriers: tuple[Carrier, ...]) -> Add:
    """Add the product of carriers to the row of a view whose key is bound."""
    return Add(view.name, view.key, tuple(c.name for c in view.components), product(view.components, carriers))


def trigger(query: Query, atom: Atom, body: tuple[Statement, ...]) -> Trigger:
    """The trigger of one occurrence of a relation."""
    return Trigger(atom.relation, parameters_of(query, atom), atom.filters, body)


def spanning_lifts(query: Query) -> tuple[tuple[str, Let, Value], ...]:
    """(aggregate, Let, Value) for every lift across atoms, to be bound once its variables are."""
    names = lift_names(query)
    found = []
    for aggregate in query.aggregates:
        for i, lift in enumerate(lift for lift in aggregate.lifts if lift.atom is None):
            variable = names[aggregate.name, i]
            found.append((aggregate.name, Let(variable, lift.expr), Value(variable, aggregate.ring)))
    return tuple(found)

