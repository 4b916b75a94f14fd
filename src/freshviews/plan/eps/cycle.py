"""The cycle that IVM^eps sees in a query over three relations: what each is parted by, and what is stored of it.

With the relations in a cycle, each shares variables with the one before it and with the one after it. It is parted by
the former. Variables of all three belong to either side; those of one alone, which are summed over, are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshviews.errors import PlanError
from freshviews.plan.delta.first_order import Store
from freshviews.plan.leaves import leaf_view
from freshviews.plan.naming import Namer
from freshviews.query.query import Atom, Query


@dataclass(frozen=True)
class Role:
    """An atom in the cycle: it is parted by ``by``, which it shares with the one before it, and shares ``other``
    with the one after it; variables of all atoms are in both. ``epsilon`` is 0 where it is heavy as a whole, 1 where
    it is light, as it is where ``by`` are all its variables; ``given`` is what was asked for."""

    atom: Atom
    by: tuple[str, ...]
    other: tuple[str, ...]
    epsilon: float
    given: float

    @property
    def name(self) -> str:
        return self.atom.name

    @property
    def parted(self) -> bool:
        """Whether there is a heavy and a light part."""
        return 0 < self.epsilon < 1

    @property
    def places(self) -> tuple[int, ...]:
        """The positions of ``by`` in the atom."""
        return tuple(self.atom.variables.index(v) for v in self.by)


def cycle_of(query: Query, epsilon: float | Mapping[str, float]) -> tuple[Role, Role, Role]:
    """The roles of a query's atoms, in the order that lets most of them share a store; PlanError where a query has
    other than three atoms, or a variable of one atom that cannot be forgotten."""
    query = forgotten(query)
    if len(query.atoms) != 3:
        raise PlanError(
            f"{query.name}: ivm_eps keeps queries over three relations, and this one has {len(query.atoms)}; take "
            "'first_order' or 'view_tree'"
        )
    for atom in query.atoms:
        lonely = [v for v in atom.variables if sum(v in other.variables for other in query.atoms) == 1]
        if lonely:
            raise PlanError(
                f"{query.name}: ivm_eps cannot part {atom.name}, as {', '.join(lonely)} of it joins nothing and is "
                "grouped by, or compared with another relation; take 'first_order'"
            )
    one, two, three = query.atoms
    orders = ((one, two, three), (one, three, two))
    cycles = [_roles(query, order, epsilon) for order in orders]
    return min(cycles, key=lambda cycle: len({_kind(query, role, True) for role in cycle}))


def forgotten(query: Query) -> Query:
    """The query without the variables that one atom alone has and that nothing asks for."""
    asked = {*query.free, *(v for factor in query.factors for v in factor)}
    atoms = []
    for atom in query.atoms:
        others = {v for other in query.atoms if other is not atom for v in other.variables}
        kept = [i for i, v in enumerate(atom.variables) if v in others or v in asked]
        variables = tuple(atom.variables[i] for i in kept)
        atoms.append(replace(atom, variables=variables, columns=tuple(atom.columns[i] for i in kept)))
    return replace(query, atoms=tuple(atoms))


def _roles(
    query: Query, order: tuple[Atom, Atom, Atom], epsilon: float | Mapping[str, float]
) -> tuple[Role, Role, Role]:
    def role(at: int) -> Role:
        before, atom, after = order[at - 1], order[at], order[(at + 1) % 3]
        by = tuple(v for v in query.variables if v in atom.variables and v in before.variables)
        other = tuple(v for v in query.variables if v in atom.variables and v in after.variables)
        given = epsilon if isinstance(epsilon, float | int) else epsilon.get(atom.name, epsilon.get("", 0.5))
        # A value that is the whole key has one row.
        return Role(atom, by, other, 1.0 if set(by) == set(atom.variables) else float(given), float(given))

    return role(0), role(1), role(2)


def _kind(query: Query, role: Role, placed: bool) -> object:
    """What atoms that share a store have in common; lifts differ by occurrence."""
    lifted = any(lift.atom == role.name for a in query.aggregates for lift in a.lifts)
    if lifted:
        return role.name
    same = (role.atom.relation, role.atom.columns, frozenset(role.atom.filters), role.given)
    return (*same, role.places, role.epsilon) if placed else same


def stores_of(query: Query, cycle: tuple[Role, Role, Role], namer: Namer, placed: bool = True) -> tuple[Store, ...]:
    """What is stored: one view for all atoms that have the same rows and, if they are ``placed``, are parted by the
    same columns."""
    groups: dict[object, list[Atom]] = {}
    roles = {role.name: role for role in cycle}
    for atom in query.atoms:
        groups.setdefault(_kind(query, roles[atom.name], placed), []).append(atom)
    stores = []
    for atoms in groups.values():
        name = namer.view(atoms[0].name if len(atoms) == 1 else atoms[0].relation)
        stores.append(Store(leaf_view(query, atoms[0], name), tuple(atoms)))
    return tuple(stores)
