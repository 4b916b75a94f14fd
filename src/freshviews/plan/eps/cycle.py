"""Makes the program of a query over three relations in a cycle. Updates have cases for heavy and light values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.errors import PlanError
from freshviews.plan.delta.first_order import Store, shared_stores
from freshviews.plan.eps.cases import Auxiliary, Case, Cases, Part, Table, Where
from freshviews.plan.naming import Namer, joined_name
from freshviews.program.program import Program
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass


@dataclass(frozen=True)
class Role:
    """An atom in the cycle.

    ``by``: the variables that it shares with the atom before it; it is partitioned by these. ``other``: those that it
    shares with the atom after it. ``given``: the exponent of its threshold.
    """

    atom: Atom
    by: tuple[str, ...]
    other: tuple[str, ...]
    given: float

    @property
    def name(self) -> str:
        return self.atom.name


    def part(self, key: tuple[str, ...]) -> Part:
        return Part(key, (self.name,))


Cycle = tuple[Role, Role, Role]
Sums = Callable[[Role, Role, str], tuple[Where, tuple[Case, ...]]]
"""Makes the cases for the two roles after an updated one, given the name of the view of their join: the cases of the
view, and those of what the update adds to the result."""


def plan(query: Query, epsilon: float | Mapping[str, float], sums: Sums, placed: bool) -> Program:
    """The program of a query over three relations, with its result stored.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom. ``placed``: atoms share a store only if they
    are partitioned by the same columns. PlanError for other queries.
    """
    cycle = cycle_of(query, epsilon)
    roles = {role.name: role for role in cycle}
    query = replace(query, atoms=tuple(roles[atom.name].atom for atom in query.atoms))
    auxiliaries: list[Auxiliary] = []
    result: dict[str, tuple[Case, ...]] = {}
    slow, space = [], 1.0
    for role in cycle:
        if not is_aware(query, cycle, role):
            slow.append(role.name)
            continue
        first, second = after(cycle, role)
        both = (first.name, second.name)
        name = f"V_{joined_name(both)}"
        joined, cases = sums(first, second, name)
        where = _simplified(joined, roles)
        if where is None:
            result[role.name] = (Case({}, both),)
            continue
        summed = set(first.other) - set(role.atom.variables)
        key = dict.fromkeys(v for v in (*first.atom.variables, *second.atom.variables) if v not in summed)
        auxiliaries.append(Auxiliary(name, tuple(key), both, (where,)))
        left = [(_simplified(case.where, roles), case.factors) for case in cases]
        result[role.name] = tuple(Case(where, factors) for where, factors in left if where is not None)
        space = max(space, _space(joined, roles))
    namer, given = Namer(query), {role.name: role.given for role in cycle}
    stores = _stores(query, cycle, namer, placed)
    made = Cases(query, Table(tuple(auxiliaries), result), given, namer, stores)
    update = "O(N)"
    if made.partitions:
        update = f"O(N^{max(max(p.epsilon, 1 - p.epsilon) for p in made.partitions):g}) amortised"
        update += f"; O(N) of {', '.join(slow)}, for as many groups may change" if slow else ""
    shown = "O(N)" if space == 1 else f"O(N^{space:g})"
    return made.held((("update", update), ("delay", "O(1)"), ("space", shown)))


def _exponent(part: Part, roles: Mapping[str, Role]) -> float:
    """1 if all values are light, 0 if all are heavy. Values of all variables of an atom have one row each."""
    role = roles[part.atoms[0]]
    return 1.0 if set(part.key) == set(role.atom.variables) else role.given


def _simplified(where: Where, roles: Mapping[str, Role]) -> Where | None:
    """A case without the parts in which all values are heavy or all are light; None if the case has no row."""
    if any(_exponent(part, roles) == (1 if heavy else 0) for part, heavy in where.items()):
        return None
    return {part: heavy for part, heavy in where.items() if 0 < _exponent(part, roles) < 1}


def _space(where: Where, roles: Mapping[str, Role]) -> float:
    """The exponent of the number of rows of a view.

    Two heavy sides: all pairs of heavy values. A heavy and a light one: for each stored row, the heavy values on the
    one side or the rows of a light value on the other.
    """
    (first, _), (second, heavy) = ((_exponent(part, roles), heavy) for part, heavy in where.items())
    return 2 - first - second if heavy else 1 + min(1 - first, second)


def after(cycle: Cycle, role: Role) -> tuple[Role, Role]:
    """The first and the second role after a role."""
    at = cycle.index(role)
    return cycle[(at + 1) % 3], cycle[(at + 2) % 3]


def is_aware(query: Query, cycle: Cycle, role: Role) -> bool:
    """True if an update of an atom uses the parts of the two others: it binds the groups, and the two others share a
    variable that it does not bind."""
    first, _ = after(cycle, role)
    return set(role.atom.variables).issuperset(query.free) and not set(first.other) <= set(role.atom.variables)


def cycle_of(query: Query, epsilon: float | Mapping[str, float]) -> Cycle:
    """The roles of a query's atoms, in the order in which most of them share a store.

    PlanError if the query has other than three atoms, or a variable of one atom that cannot be dropped.

    In a cycle, each relation shares variables with the relation before it and with the one after it. A variable that
    occurs in all three relations is shared with both neighbours. A variable that occurs in only one relation is summed
    out if nothing reads it.
    """
    query = forgotten(query)
    if len(query.atoms) != 3:
        raise PlanError(
            f"{query.name}: ivm_eps maintains queries over three relations, not {len(query.atoms)}; set 'first_order' "
            "or 'view_tree'"
        )
    for atom in query.atoms:
        lonely = [v for v in atom.variables if sum(v in other.variables for other in query.atoms) == 1]
        if lonely:
            raise PlanError(
                f"{query.name}: ivm_eps cannot maintain {atom.name}, because no join uses its {', '.join(lonely)}; set "
                "'first_order'"
            )
    one, two, three = query.atoms
    orders = ((one, two, three), (one, three, two))
    cycles = [_roles(query, order, epsilon) for order in orders]
    return min(cycles, key=lambda cycle: len(_stores(query, cycle, Namer(query), True)))


def forgotten(query: Query) -> Query:
    """The query without the variables that only one atom has and that nothing asks for."""
    asked = {*query.free, *(v for factor in query.factors for v in factor)}
    atoms = []
    for atom in query.atoms:
        others = {v for other in query.atoms if other is not atom for v in other.variables}
        kept = [i for i, v in enumerate(atom.variables) if v in others or v in asked]
        variables = tuple(atom.variables[i] for i in kept)
        atoms.append(replace(atom, variables=variables, columns=tuple(atom.columns[i] for i in kept)))
    return replace(query, atoms=tuple(atoms))


def exponent(epsilon: float | Mapping[str, float], atom: Atom, default: float) -> float:
    """The exponent of an atom: the one for all atoms, or that under its name, or else under the empty name."""
    if isinstance(epsilon, float | int):
        return float(epsilon)
    return float(epsilon.get(atom.name, epsilon.get("", default)))


def _roles(query: Query, order: tuple[Atom, Atom, Atom], epsilon: float | Mapping[str, float]) -> Cycle:
    def role(at: int) -> Role:
        before, atom, behind = order[at - 1], order[at], order[(at + 1) % 3]
        by = tuple(v for v in query.variables if v in atom.variables and v in before.variables)
        other = tuple(v for v in query.variables if v in atom.variables and v in behind.variables)
        return Role(atom, by, other, exponent(epsilon, atom, 0.5))

    return role(0), role(1), role(2)


def _stores(query: Query, cycle: Cycle, namer: Namer, placed: bool) -> tuple[Store, ...]:
    """The stores: one for all atoms that have the same rows and, if ``placed``, are parted by the same columns."""
    roles = {role.name: role for role in cycle}

    def kind(atom: Atom) -> object:
        role = roles[atom.name]
        return role.given, tuple(role.atom.variables.index(v) for v in role.by) if placed else ()

    return tuple(shared_stores(replace(query, negated=()), namer, kind))
