"""Chooses the key order of a leapfrog triejoin: the order in which its variables are bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from math import prod

from freshviews.errors import PlanError
from freshviews.expr.nodes import Call, Expr, columns_of
from freshviews.plan.optional import with_given
from freshviews.plan.strategy import Request
from freshviews.query.dependencies import FD, closure
from freshviews.query.hypergraph import connected
from freshviews.query.query import Atom, Query

PROPERTY = "freshviews.key_order"
"""The property that names a key order."""
ROWS = 1_000_000
"""Assumed rows of a relation whose size is not declared."""
KEPT_BY_FILTER = 0.25
ADDING = 4
"""The cost of adding to a group, in visited values."""
EXHAUSTIVE = 8
"""Maximum number of variables for which all orders are compared."""


class Estimates:
    """Estimated sizes of joins of parts of the atoms of a query. ``sizes`` are rows by relation."""

    def __init__(self, query: Query, dependencies: tuple[FD, ...], sizes: Mapping[str, float]) -> None:
        self.query = query
        self._dependencies = dependencies
        self._sizes = sizes

    @cached_property
    def rows(self) -> dict[str, float]:
        """Rows of each atom after its filters."""
        return {
            atom.name: max(1.0, self._sizes.get(atom.relation, ROWS) * KEPT_BY_FILTER ** _filters(atom))
            for atom in self.query.atoms
        }

    @cached_property
    def values(self) -> dict[tuple[str, str], float]:
        """Distinct values of each variable in each atom."""
        found = {}
        for atom in self.query.atoms:
            own = [fd for fd in self._dependencies if fd.atom == atom.name]
            for variable in atom.variables:
                is_key = closure((variable,), own).issuperset(atom.variables)
                rows = self.rows[atom.name]
                found[atom.name, variable] = rows if is_key else rows ** ((1 + 1 / len(atom.variables)) / 2)
        return found

    def size(self, variables: frozenset[str], seen: Mapping[str, frozenset[str]] | None = None) -> float:
        """The size of the join of all atoms, projected on the variables. ``seen``: the variables of each atom, by its
        name, to which the atom is restricted."""
        if seen is None:
            seen = {atom.name: frozenset(atom.variables) for atom in self.query.atoms}
        total = 1.0
        for atom in self.query.atoms:
            part = [self.values[atom.name, v] for v in atom.variables if v in seen[atom.name] and v in variables]
            if part:
                total *= min(self.rows[atom.name], prod(part))
        for variable in variables:
            known = [self.values[a.name, variable] for a in self.query.atoms if variable in seen[a.name]]
            total *= min(known) / prod(known)
        return max(total, 1.0)


def _filters(atom: Atom) -> int:
    return sum(not (isinstance(one, Call) and one.op == "is_not_null") for one in atom.filters)


def parts(variables: tuple[str, ...], edges: list[frozenset[str]]) -> list[tuple[str, ...]]:
    """The variables in groups that no edge connects, each in the given order."""
    return connected((v, frozenset({v}).union(*(edge for edge in edges if v in edge))) for v in variables)


def edges_of(query: Query) -> list[frozenset[str]]:
    """The edges that connect variables: atoms, and conditions and lifts across atoms."""
    spanning: list[Expr] = [*query.conditions]
    spanning += [lift.expr for a in query.aggregates for lift in a.lifts if lift.atom is None]
    return [*(frozenset(a.variables) for a in query.atoms), *(frozenset(columns_of(e)) for e in spanning)]


def without_lookups(query: Query) -> Query:
    """The join of the ordinary atoms, whose rows are looked up in the others."""
    if query.is_inner:
        return query
    own = frozenset(query.joined)
    atoms = tuple(atom for atom in query.atoms if atom.given is None)
    names = {atom.name for atom in atoms}
    return replace(
        query,
        free=tuple(v for v in query.joined if v in with_given(query, query.free)),
        atoms=atoms,
        aggregates=tuple(
            a
            for a in query.aggregates
            if all(lift.atom in names if lift.atom else own.issuperset(columns_of(lift.expr)) for lift in a.lifts)
        ),
        conditions=tuple(c for c in query.conditions if own.issuperset(columns_of(c))),
        negated=(),
    )


def named_order(request: Request, query: Query) -> tuple[str, ...] | None:
    """The key order that the view names; None if it names none. Aggregates over distinct values have their own
    variables last. Raises PlanError if the order cannot be read."""
    view, main, text = request.view, request.query, request.options.get(PROPERTY)
    if text is None:
        return None
    named = [name.strip() for name in text.split(",")]
    known = {v for block in view.blocks for v in block.query.joined}
    all_of = f"list all of {', '.join(main.joined)} in '{PROPERTY}', in the order of binding"
    for name in named:
        if name not in known:
            raise PlanError(
                f"view {view.name}: there is no variable '{name}'; {all_of}"
            )
        if named.count(name) > 1:
            raise PlanError(f"view {view.name}: '{name}' is given twice in '{PROPERTY}'; name each variable once")
    missing = [v for v in main.joined if v not in named]
    if missing:
        raise PlanError(f"view {view.name}: variable '{missing[0]}' is missing; {all_of}")
    return (*(v for v in named if v in query.joined), *(v for v in query.joined if v not in named))


def best_key_order(
    query: Query, dependencies: tuple[FD, ...] = (), sizes: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """The order of least estimated cost. Ties go to the order nearest to FROM. It has the variables of the ordinary
    atoms, by which the others are looked up.

    Every order is worst-case optimal for a join whose rows are all listed. The orders differ in the number of bindings
    that lead to no row, and in the variables on which sums depend. The cost of an order is the sum, over the variables,
    of two estimates: the visited values, and the lookups of cached sums. The number of visited values of a variable is
    the size of a projection of the join: on the variable and the earlier variables that it depends on.

    Sizes are estimated from numbers of rows and of distinct values, as if columns were independent. An unknown number
    of distinct values, in N rows of k variables, is estimated as the geometric mean of N^(1/k) and N. For up to
    ``EXHAUSTIVE`` variables all orders are compared, by dynamic programming over sets of variables. For more variables
    the order is built greedily.
    """
    query = without_lookups(query)
    estimates = Estimates(query, dependencies, sizes or {})
    edges = edges_of(query)
    everything = query.variables
    free = frozenset(query.free)

    @cache
    def part_of(variable: str, before: frozenset[str]) -> frozenset[str]:
        """The variables that are connected with a variable once those of ``before`` are bound."""
        rest = tuple(v for v in everything if v not in before)
        return frozenset(next(p for p in parts(rest, [edge - before for edge in edges]) if variable in p))

    size = cache(estimates.size)

    def cost(order: tuple[str, ...], variable: str) -> float:
        """The cost of binding a variable after those of ``order``."""
        before = frozenset(order)
        part = part_of(variable, before)
        path = frozenset(v for i, v in enumerate(order) if v in part_of(variable, frozenset(order[:i])))
        depends = frozenset[str]().union(*(edge for edge in edges if not edge.isdisjoint(part))) & path
        if not free.isdisjoint(part):
            depends = path
        after = before | {variable}
        total = size(depends | {variable})
        if depends != path:
            total += size(path)
        if variable in free and free <= after:
            total += ADDING * size(after)
        return total

    if len(everything) > EXHAUSTIVE:
        chosen: tuple[str, ...] = ()
        while len(chosen) < len(everything):
            rest = [v for v in everything if v not in chosen]
            costs = [cost(chosen, v) for v in rest]
            chosen = (*chosen, rest[costs.index(min(costs))])
        return chosen
    best: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {frozenset(): (0.0, ())}
    for _ in everything:
        longer: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {}
        for before, (so_far, order) in best.items():
            for variable in everything:
                if variable not in before:
                    total = so_far + cost(order, variable)
                    known = longer.get(before | {variable})
                    # Floating-point sums in another order may differ slightly.
                    if known is None or total < known[0] * (1 - 1e-9):
                        longer[before | {variable}] = (total, (*order, variable))
        best = longer
    ((_, order),) = best.values()
    return order
