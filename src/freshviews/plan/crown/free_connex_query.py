"""Prepares a query for change propagation without joins. The prepared query is acyclic and free-connex.

- A condition on the variables of one atom becomes a filter of the atom.
- A cyclic query becomes an acyclic query of *bags*: atoms that are joined first (``freshviews.query.hypertree``).
- If the query is not free-connex, variables are added to its output until it is (section 7 of the CROWN paper).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import comb

from freshviews.expr.nodes import Column, Expr, columns_of, substitute
from freshviews.plan.naming import Namer
from freshviews.plan.optional import with_given
from freshviews.query.acyclic import is_acyclic
from freshviews.query.free_connex import without_tree
from freshviews.query.hypergraph import Hypergraph, hypergraph
from freshviews.query.hypertree import Bag, decomposition, searches_all
from freshviews.query.join_trees import best_tree
from freshviews.query.join_trees import cost as cost_of
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.records import dataclass
from freshviews.types import BIGINT

_MOST_ADDED = 4
"""Maximum number of variables that are added selectively. If more are needed, all that may help are added."""

_MOST_SETS = 300
"""Maximum number of sets of variables of one size that are compared."""


@dataclass(frozen=True)
class BagQuery:
    """The query of a bag. ``guards`` maps an atom of the query to the atom of another bag that it projects."""

    query: Query
    guards: Mapping[str, Atom]

    @property
    def members(self) -> tuple[str, ...]:
        """The atoms whose updates change the bag."""
        return tuple(self.guards.get(atom.name, atom).name for atom in self.query.atoms)


@dataclass(frozen=True)
class Prepared:
    """The prepared query. ``query`` is acyclic; ``bags`` are the queries of its atoms that are bags, by name; ``free``
    is the output; ``greedy``: the bags are not those of least width."""

    query: Query
    bags: Mapping[str, BagQuery]
    free: frozenset[str]
    greedy: bool = False


@lru_cache(maxsize=64)
def prepared(query: Query) -> Prepared:
    """The query with filters at the leaves, bags if it is cyclic, and its output.

    - A condition on the variables of one atom becomes a filter of the atom.
    - If the query is cyclic, atoms are grouped into the *bags* of a generalised hypertree decomposition of least width
      (``freshviews.query.hypertree``). A bag becomes an atom of the query: the join of its atoms, projected on the
      variables that other bags, conditions and the output need. Another strategy maintains its rows
      (``plan.crown.bags``).
    - A *guard* of a bag is an atom of another bag, or a projection of that atom. A guard only restricts the rows of the
      bag: the payload of the atom counts in the other bag.
    - If the query is not free-connex, variables are added to the output until it is (section 7 of the CROWN paper).
    """
    made, bags = with_bags(query)
    greedy = bool(bags) and not searches_all(hypergraph(required(_filtered(query))))
    return Prepared(made, bags, output_of(made), greedy)


@lru_cache(maxsize=64)
def with_bags(query: Query) -> tuple[Query, dict[str, BagQuery]]:
    """The query with filters at the leaves, over bags if it is cyclic, and the bags by name."""
    made = _filtered(query)
    return (made, {}) if is_acyclic(hypergraph(required(made)).edges) else _bagged(made)


def required(query: Query) -> Query:
    """The ordinary atoms alone, for which join trees are made: no other atom adds or removes a value of theirs. The
    free variables are those needed outside: in the output, by conditions and lifts across atoms, and above optional
    atoms that open such a variable."""
    needed = _needed(query)
    atoms = tuple(atom for atom in query.atoms if atom.given is None)
    return Query(query.name, tuple(v for v in query.joined if v in needed), atoms)


def _needed(query: Query) -> frozenset[str]:
    """The variables that an enumeration binds: those of the output, of conditions and lifts across atoms, and of all
    optional atoms above those that open one of these."""
    exprs = (*query.conditions, *(lift.expr for lift in _spanning(query)))
    return with_given(query, frozenset(query.free).union(*map(columns_of, exprs)))


def output_of(query: Query) -> frozenset[str]:
    """The output: the free variables, those of conditions and lifts across atoms, and the fewest others that make an
    acyclic query free-connex."""
    graph, all_needed = hypergraph(required(query)), _needed(query)
    rest = without_tree(graph)
    if not rest:
        return all_needed
    for size in range(1, min(len(rest), _MOST_ADDED) + 1):
        if comb(len(rest), size) > _MOST_SETS:
            break
        found = []
        for more in combinations(rest, size):
            larger = replace(graph, free=graph.free.union(more))
            if not without_tree(larger):
                tree = best_tree(larger, {})
                assert tree is not None  # it is free-connex
                found.append((cost_of(tree, {}), all_needed.union(more)))
        if found:
            return min(found, key=lambda pair: pair[0])[1]
    return all_needed.union(rest)


def graph_of(query: Query, free: frozenset[str]) -> Hypergraph:
    """The hypergraph for which join trees are made: that of the ordinary atoms."""
    graph = hypergraph(required(query))
    return Hypergraph(graph.variables, free.intersection(graph.variables), graph.edges)


def _filtered(query: Query) -> Query:
    """The query with conditions on one atom's variables as filters of the atom."""
    conditions: list[Expr] = []
    atoms = list(query.atoms)
    for condition in query.conditions:
        for i, atom in enumerate(atoms):
            if atom.given is None and set(columns_of(condition)) <= set(atom.variables):
                columns = dict(zip(atom.variables, atom.columns, strict=True))
                atoms[i] = replace(atom, filters=(*atom.filters, substitute(condition, columns)))
                break
        else:
            conditions.append(condition)
    return replace(query, atoms=tuple(atoms), conditions=tuple(conditions))


def _bagged(query: Query) -> tuple[Query, dict[str, BagQuery]]:
    """The query over bags, and the query of each bag of several atoms."""
    found = decomposition(hypergraph(required(query)))
    outside = {*query.free, *(v for lift in _spanning(query) for v in columns_of(lift.expr))}
    beside = tuple(atom for atom in query.atoms if atom.given is not None)
    outside.update(v for atom in (*beside, *query.negated) for v in atom.variables)
    joined = [bag for bag in found if len(bag.home) > 1 or bag.guards]
    spanning = [c for c in query.conditions if not any(bag.variables.issuperset(columns_of(c)) for bag in joined)]
    outside.update(v for c in spanning for v in columns_of(c))
    atoms: list[Atom] = []
    bags: dict[str, BagQuery] = {}
    home: dict[str, str] = {}
    names = _names_for(query)
    for bag in found:
        if bag not in joined:
            atoms.append(query.atom(bag.home[0]))
            continue
        # A condition restricts every bag that has its variables.
        inside = tuple(c for c in query.conditions if bag.variables.issuperset(columns_of(c)))
        needed = outside.union(*(b.variables for b in found if b is not bag))
        name = "_".join(bag.home if len(bag.home) > 1 else (*bag.home, *bag.guards))
        name = names.fresh(name)
        made = _bag_query(query, name, bag, needed, inside)
        bags[name] = made
        atoms.append(Atom(name, "", made.query.free, tuple(Column(v, BIGINT) for v in made.query.free)))
        home |= dict.fromkeys(bag.home, name)
    # A lift of an atom of a bag is a lift of the bag.
    moved = tuple(
        replace(a, lifts=tuple(replace(lift, atom=home.get(lift.atom or "", lift.atom)) for lift in a.lifts))
        for a in query.aggregates
    )
    return replace(query, atoms=(*atoms, *beside), aggregates=moved, conditions=tuple(spanning)), bags


def _bag_query(query: Query, name: str, bag: Bag, needed: set[str], conditions: tuple[Expr, ...]) -> BagQuery:
    """The query of a bag, and the atoms behind its guards. A bag has several atoms at home, or one with guards."""
    members = [query.atom(one) for one in bag.home]
    guards: dict[str, Atom] = {}
    names = _names_for(query)
    for one in bag.guards:
        source = query.atom(one)
        kept = tuple(v for v in source.variables if v in bag.variables)
        guard = names.fresh(f"{one}_guard")
        guards[guard] = source
        members.append(Atom(guard, guard, kept, tuple(Column(v, BIGINT) for v in kept)))
    aggregates = tuple(
        Aggregate(a.name, a.ring, lifts)
        for a in query.aggregates
        if (lifts := tuple(lift for lift in a.lifts if lift.atom in bag.home)) or a is query.aggregates[0]
    )
    free = tuple(v for v in dict.fromkeys(v for atom in members for v in atom.variables) if v in needed)
    return BagQuery(Query(name, free, tuple(members), aggregates, conditions), guards)


def _names_for(query: Query) -> Namer:
    """Names for bags and guards, which are atoms beside those of the query. A view may write them in any case."""
    taken = (name.lower() for atom in query.atoms for name in (atom.name, atom.relation))
    return Namer(query, taken, str.lower)


def _spanning(query: Query) -> tuple[Lift, ...]:
    return tuple(lift for a in query.aggregates for lift in a.lifts if lift.atom is None)
