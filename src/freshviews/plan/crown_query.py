"""The query as change propagation without joins takes it: filters at the leaves, an acyclic query, an output for
which it is free-connex, and a join tree.

A condition on the variables of one atom becomes a filter of the atom. Where the query is cyclic, atoms are grouped
into *bags* so that the bags are acyclic: a generalised hypertree decomposition in which every atom is in one bag,
of least width (the most atoms it takes to cover a bag), found by trying all partitions of up to ten atoms; beyond,
all atoms are one bag. A bag is an atom of the query from then on; its rows are kept by a strategy of their own.
Where the query is not free-connex (Section 7), variables are added to the output until it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from freshviews.errors import PlanError
from freshviews.expr.nodes import Column, Expr, columns_of, substitute
from freshviews.query.acyclic import JoinTree, is_acyclic
from freshviews.query.edge_cover import edge_cover_number
from freshviews.query.hypergraph import Edge, Hypergraph, hypergraph
from freshviews.query.join_trees import best_tree, parse_tree
from freshviews.query.join_trees import cost as cost_of
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.types import BIGINT

_MOST_ADDED = 4
"""Beyond so many variables all are added to the output: the sets to choose from become too many."""

_MOST_ATOMS = 10
"""So many atoms are partitioned into bags in every way."""


@dataclass(frozen=True)
class Prepared:
    """``query`` is acyclic; ``bags`` are the queries behind some of its atoms, by name; ``free`` is the output."""

    query: Query
    bags: Mapping[str, Query]
    free: frozenset[str]


def prepared(query: Query) -> Prepared:
    """The query with filters at the leaves, bags where it is cyclic, and its output."""
    made = _filtered(query)
    bags: dict[str, Query] = {}
    if not is_acyclic(hypergraph(made).edges):
        made, bags = _bagged(made)
    return Prepared(made, bags, output_of(made))


def output_of(query: Query) -> frozenset[str]:
    """The free variables, those of conditions and lifts across atoms, and as few others as make an acyclic query
    free-connex."""
    graph = hypergraph(query)
    needed = graph.free.union(*graph.factors)
    rest = [v for v in graph.variables if v not in needed]
    for size in range(min(len(rest), _MOST_ADDED) + 1):
        found = []
        for more in combinations(rest, size):
            tree = best_tree(Hypergraph(graph.variables, needed.union(more), graph.edges), {})
            if tree is not None:
                found.append((cost_of(tree, {}), needed.union(more)))
        if found:
            return min(found, key=lambda pair: pair[0])[1]
    return frozenset(graph.variables)


def graph_of(query: Query, free: frozenset[str]) -> Hypergraph:
    """The hypergraph that join trees are made for."""
    return Hypergraph(query.variables, free, hypergraph(query).edges)


def tree_of(query: Query, free: frozenset[str], updates: Mapping[str, float], named: str | None) -> JoinTree:
    """The free-connex tree that is named, or the one whose updates cost least. PlanError where the named one is
    none."""
    graph = graph_of(query, free)
    if named is not None:
        try:
            return parse_tree(named, graph)
        except ValueError as error:
            raise PlanError(f"{query.name}: 'freshviews.join_tree' = '{named}': {error}") from None
    found = best_tree(graph, updates)
    assert found is not None  # the output was chosen so
    return found


def _filtered(query: Query) -> Query:
    """The query with conditions on one atom's variables as filters of the atom."""
    conditions: list[Expr] = []
    atoms = list(query.atoms)
    for condition in query.conditions:
        for i, atom in enumerate(atoms):
            if set(columns_of(condition)) <= set(atom.variables):
                columns = dict(zip(atom.variables, atom.columns, strict=True))
                atoms[i] = replace(atom, filters=(*atom.filters, substitute(condition, columns)))
                break
        else:
            conditions.append(condition)
    return replace(query, atoms=tuple(atoms), conditions=tuple(conditions))


def _bagged(query: Query) -> tuple[Query, dict[str, Query]]:
    """The query over bags, and the query of each bag of several atoms."""
    graph = hypergraph(query)
    groups = _decomposition(graph)
    atoms: list[Atom] = []
    bags: dict[str, Query] = {}
    home: dict[str, str] = {}
    for group in groups:
        if len(group) == 1:
            atoms.append(query.atom(group[0]))
            continue
        name = "_".join(group)
        members = tuple(query.atom(one) for one in group)
        variables = tuple(dict.fromkeys(v for atom in members for v in atom.variables))
        aggregates = tuple(
            Aggregate(a.name, a.ring, lifts)
            for a in query.aggregates
            if (lifts := tuple(lift for lift in a.lifts if lift.atom in group)) or a is query.aggregates[0]
        )
        bags[name] = Query(name, variables, members, aggregates)
        columns = tuple(Column(v, BIGINT) for v in variables)
        atoms.append(Atom(name, "", variables, columns))
        home |= dict.fromkeys(group, name)
    # What was lifted in an atom of a bag is lifted in the bag.
    moved = tuple(
        replace(a, lifts=tuple(Lift(home.get(lift.atom or "", lift.atom), lift.expr) for lift in a.lifts))
        for a in query.aggregates
    )
    return replace(query, atoms=tuple(atoms), aggregates=moved), bags


def _decomposition(graph: Hypergraph) -> tuple[tuple[str, ...], ...]:
    """Names of atoms by bag: the partition of least width whose bags are acyclic; of equals, the one whose bags
    together are smallest."""
    edges = graph.edges
    best: tuple[tuple[str, ...], ...] = (tuple(edge.name for edge in edges),)
    if len(edges) > _MOST_ATOMS:
        return best
    least = (_width(edges), _width(edges))
    for groups in _partitions(edges, ()):
        widths = [_width(group) for group in groups]
        found = max(widths), sum(widths, Fraction(0))
        if found < least and is_acyclic(_bag_edges(groups)):
            least = found
            best = tuple(tuple(edge.name for edge in group) for group in groups)
    return best


Groups = tuple[tuple[Edge, ...], ...]


def _partitions(left: tuple[Edge, ...], groups: Groups) -> Iterator[Groups]:
    """Every partition of edges, groups connected as they grow in the order of the query or of their variables."""
    if not left:
        yield groups
        return
    edge, *rest = left
    for i, group in enumerate(groups):
        yield from _partitions(tuple(rest), (*groups[:i], (*group, edge), *groups[i + 1 :]))
    yield from _partitions(tuple(rest), (*groups, (edge,)))


def _width(group: tuple[Edge, ...]) -> Fraction:
    variables = frozenset[str]().union(*(edge.variables for edge in group))
    return edge_cover_number(variables, (edge.variables for edge in group))


def _bag_edges(groups: Groups) -> tuple[Edge, ...]:
    return tuple(
        Edge("_".join(e.name for e in group), frozenset[str]().union(*(e.variables for e in group)))
        for group in groups
    )
