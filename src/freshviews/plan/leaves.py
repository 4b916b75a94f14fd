"""Makes the views that store the rows of atoms. Writes the payloads (counts and aggregates) of joined rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from freshviews.expr.nodes import Expr, words_in
from freshviews.plan.naming import RESULT, lift_names
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, ZERO, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Parameter, Trigger
from freshviews.program.statements import Add, Body, If, Let
from freshviews.program.views import View
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.records import dataclass
from freshviews.ring import ring_over


@dataclass(frozen=True)
class Carrier:
    """A factor of a payload product: the row of a view, known by ``alias``, or the update (``alias`` None).

    ``components`` are the aggregates, besides the count, that the row stores. ``lifts`` are pairs of an aggregate and
    the variable that holds its lift, for the update and for lifts across atoms. A default row that appears or vanishes
    has a ``sign`` and ``zeros``, the aggregates that it makes 0.
    """

    alias: str | None
    components: frozenset[str] = frozenset()
    lifts: tuple[tuple[str, Value], ...] = ()
    sign: int = 1
    zeros: frozenset[str] = frozenset()


def components_over(query: Query, atoms: frozenset[str], spanning: frozenset[str] = frozenset()) -> tuple[
    Component, ...
]:
    """The payload of a view over a set of atoms: the count, then the aggregates with a lift inside them.

    ``spanning`` names aggregates whose lift across atoms has been applied below the view.
    """
    own = (
        (a, tuple(x for x in a.lifts if (a.name in spanning if x.atom is None else x.atom in atoms)))
        for a in query.aggregates
    )
    return (*COUNTED, *(_component(a, lifts) for a, lifts in own if lifts and a.name != COUNT))


def all_components(query: Query) -> tuple[Component, ...]:
    """The payload of the result: every aggregate of the query, the count first."""
    return tuple(_component(a, a.lifts) for a in query.aggregates)


def _component(aggregate: Aggregate, lifts: tuple[Lift, ...]) -> Component:
    """The component of an aggregate with these of its lifts."""
    return Component(aggregate.name, ring_over(aggregate.ring, (x.place for x in lifts if x.place is not None)))


def _ring_of(lift: Lift, aggregate: Aggregate) -> str:
    """The ring that a lift is an element of."""
    if words_in(lift.expr):
        return aggregate.ring
    if lift.place is None:
        return "integer" if aggregate.ring != "real" else "real"
    return ring_over(aggregate.ring, (lift.place,))


def product(components: tuple[Component, ...], carriers: tuple[Carrier, ...]) -> tuple[Monomial, ...]:
    """A monomial per component: the product of that component of each carrier, or of its count where the carrier lacks
    it."""
    sign = prod(carrier.sign for carrier in carriers)
    zeros = frozenset[str]().union(*(carrier.zeros for carrier in carriers))
    lifts = [_lifts_of(carrier) for carrier in carriers]
    return tuple(
        ZERO
        if component.name in zeros
        else Monomial(
            tuple(
                factor
                for carrier, of in zip(carriers, lifts, strict=True)
                for factor in _factors(component.name, carrier, of)
            ),
            sign,
        )
        for component in components
    )


def _lifts_of(carrier: Carrier) -> dict[str, list[Value]]:
    """The lifts of a carrier by aggregate, each in order."""
    found: dict[str, list[Value]] = {}
    for name, value in carrier.lifts:
        found.setdefault(name, []).append(value)
    return found


def _factors(component: str, carrier: Carrier, lifts: dict[str, list[Value]]) -> list[ComponentOf | Value]:
    own = lifts.get(component, [])
    if carrier.alias is None:
        return [*own]
    name = component if component in carrier.components else COUNT
    return [ComponentOf(carrier.alias, name), *own]


def update_carrier(query: Query, atom: Atom) -> Carrier:
    """The update of an atom as a carrier: ``m`` times the lifts among its parameters."""
    lifts = [
        (name, Value(variable, ring, bool(words_in(parameter.expr))))
        for name, variable, ring, parameter in _atom_lifts(query, atom)
    ]
    everywhere = [(a.name, MULTIPLICITY) for a in query.aggregates]
    return Carrier(None, frozenset(), (*everywhere, *lifts))


def sum_carrier(alias: str, components: tuple[Component, ...]) -> Carrier:
    """A sum with these components as a carrier."""
    return Carrier(alias, frozenset(c.name for c in components if c.name != COUNT))


def row_carrier(alias: str, view: View) -> Carrier:
    """A row of a view as a carrier."""
    return sum_carrier(alias, view.components)


def _atom_lifts(query: Query, atom: Atom) -> list[tuple[str, str, str, Parameter]]:
    """(aggregate, variable, ring, parameter) for every lift inside an atom. Equal lifts share a variable."""
    names = lift_names(query)
    found: list[tuple[str, str, str, Parameter]] = []
    for aggregate in query.aggregates:
        for lift in aggregate.lifts:
            if lift.atom == atom.name:
                variable = names[atom.name, lift.expr, aggregate.ring]
                found.append((aggregate.name, variable, _ring_of(lift, aggregate), Parameter(variable, lift.expr)))
    return found


def parameters_of(query: Query, atom: Atom) -> tuple[Parameter, ...]:
    """The parameters of the trigger of an atom: its variables, then its lifts."""
    variables = [Parameter(v, c) for v, c in zip(atom.variables, atom.columns, strict=True)]
    lifts = {parameter.name: parameter for *_, parameter in _atom_lifts(query, atom)}
    return (*variables, *lifts.values())


def leaf_view(query: Query, atom: Atom, name: str, indexes: tuple[tuple[int, ...], ...] = ()) -> View:
    """The view that stores the rows of an atom by its variables.

    The leaf view of an atom is keyed by the atom's variables. Its payload is the count, and a component for each
    aggregate that has a lift inside the atom. Without a lift in or below a view, the component would equal the count,
    so the view does not store it. In products of payloads, the count takes the place of the component.
    """
    components = components_over(query, frozenset({atom.name}))
    filters = "".join(f" where {f}" for f in atom.filters)
    return View(name, atom.variables, components, indexes, definition=f"{atom.relation}{filters}")


def result_view(query: Query) -> View:
    """The view that holds the result of a query."""
    return View(RESULT, query.free, all_components(query), journal=True, definition="the result")


def with_indexes(views: Iterable[View], indexes: Mapping[str, set[tuple[int, ...]]]) -> tuple[View, ...]:
    """The views with their indexes, which are given by view."""
    return tuple(replace(view, indexes=tuple(sorted(indexes.get(view.name, ())))) for view in views)


def add_to(view: View, carriers: tuple[Carrier, ...], sign: int = 1, key: tuple[str, ...] | None = None) -> Add:
    """Add the product of carriers, times ``sign``, to the row of a view with its own variables, or ``key``, bound."""
    payload = product(view.components, (*carriers, Carrier(None, sign=sign)))
    return Add(view.name, view.key if key is None else key, tuple(c.name for c in view.components), payload)


def add_count(view: View, sign: int, key: tuple[str, ...] | None = None) -> Add:
    """Add 1 or -1 to the count of a row, under the view's own variables or under ``key``."""
    return Add(view.name, view.key if key is None else key, (COUNT,), (Monomial((), sign),))


def under(conditions: Iterable[Expr], body: Body) -> Body:
    """The body under conditions, the first one outermost."""
    for condition in reversed(tuple(conditions)):
        body = (If(condition, body),)
    return body


def trigger(query: Query, atom: Atom, body: Body) -> Trigger:
    """The trigger of one occurrence of a relation."""
    return Trigger(atom.relation, parameters_of(query, atom), atom.filters, body)


def spanning_lifts(query: Query) -> tuple[tuple[str, Let, Value], ...]:
    """(aggregate, Let, Value) for every lift across atoms. The Let comes where its variables are bound."""
    names = lift_names(query)
    found = []
    for aggregate in query.aggregates:
        for i, lift in enumerate(lift for lift in aggregate.lifts if lift.atom is None):
            variable = names[aggregate.name, i]
            found.append((aggregate.name, Let(variable, lift.expr), Value(variable, _ring_of(lift, aggregate))))
    return tuple(found)

