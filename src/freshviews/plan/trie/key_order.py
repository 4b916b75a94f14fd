"""The key order of a leapfrog triejoin: in which order its variables are bound, by estimated cost.

Any order is worst-case optimal for a join of which all is listed. Orders differ by what they bind in vain, by what
sums below a point depend on, and by how early groups are complete. The cost of an order is, added up over its
variables, the estimated number of times that a value of the variable is come to, which is the size of the join over
the variables on which that depends, and that what is remembered of it is asked for.

Sizes are estimated from numbers of rows and of distinct values, as if columns were independent. Where nothing is known
of a column, it has as many values as lies between the least, N^(1/k) for N rows of k variables, and N, by exponents.
All orders of a few variables are compared, by dynamic programming over sets of those that come first; of more, a
greedy one is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from math import prod

from freshviews.errors import PlanError
from freshviews.expr.nodes import Call, Expr, columns_of
from freshviews.plan.strategy import Request
from freshviews.query.dependencies import FD, closure
from freshviews.query.query import Atom, Query

PROPERTY = "freshviews.key_order"
"""The property that names a key order."""
ROWS = 1_000_000
"""Rows of a relation of which nothing is told."""
KEPT_BY_FILTER = 0.25
ADDING = 4
"""What adding to a group costs, in values come to."""
EXHAUSTIVE = 8
"""Variables of which all orders are compared."""


class Estimates:
    """Sizes of joins of parts of a query's atoms. ``sizes``: rows by relation."""

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
        """The join of all atoms projected on the variables; of an atom on those that are ``seen``, by its name."""
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
    groups: list[frozenset[str]] = []
    for variable in variables:
        mine = frozenset({variable}).union(*(edge for edge in edges if variable in edge))
        touched = [group for group in groups if group & mine]
        groups = [group for group in groups if not group & mine] + [mine.union(*touched)]
    found = [tuple(v for v in variables if v in group) for group in groups]
    return sorted(found, key=lambda part: variables.index(part[0]))


def edges_of(query: Query) -> list[frozenset[str]]:
    """What connects variables: atoms, and conditions and lifts that span atoms."""
    spanning: list[Expr] = [*query.conditions]
    spanning += [lift.expr for a in query.aggregates for lift in a.lifts if lift.atom is None]
    return [*(frozenset(a.variables) for a in query.atoms), *(frozenset(columns_of(e)) for e in spanning)]


def named_order(request: Request, query: Query) -> tuple[str, ...] | None:
    """The key order that a view names; a query of its distinct aggregates has its own variables last."""
    view, main, text = request.view, request.query, request.options.get(PROPERTY)
    if text is None:
        return None
    named = [name.strip() for name in text.split(",")]
    known = {v for block in view.blocks for v in block.query.variables}
    all_of = f"'{PROPERTY}' takes all of {', '.join(main.variables)}"
    for name in named:
        if name not in known:
            raise PlanError(f"view {view.name}: there is no variable '{name}'; {all_of}, in the order to be bound")
        if named.count(name) > 1:
            raise PlanError(f"view {view.name}: '{name}' stands twice in '{PROPERTY}'; name it once")
    missing = [v for v in main.variables if v not in named]
    if missing:
        raise PlanError(f"view {view.name}: '{missing[0]}' is not in its key order; {all_of}, in the order to be bound")
    return (*(v for v in named if v in query.variables), *(v for v in query.variables if v not in named))


def best_key_order(
    query: Query, dependencies: tuple[FD, ...] = (), sizes: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """The order of least estimated cost; of equal ones, that which is nearest to the order of FROM."""
    estimates = Estimates(query, dependencies, sizes or {})
    edges = edges_of(query)
    everything = query.variables
    free = frozenset(query.free)

    @cache
    def part_of(variable: str, before: frozenset[str]) -> frozenset[str]:
        """What a variable is in one part with after those."""
        rest = tuple(v for v in everything if v not in before)
        return frozenset(next(p for p in parts(rest, [edge - before for edge in edges]) if variable in p))

    size = cache(estimates.size)

    def cost(order: tuple[str, ...], variable: str) -> float:
        """Of binding a variable after those."""
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
                    # Sums of floats in another order are not another cost.
                    if known is None or total < known[0] * (1 - 1e-9):
                        longer[before | {variable}] = (total, (*order, variable))
        best = longer
    ((_, order),) = best.values()
    return order
