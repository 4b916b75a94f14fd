"""Tests whether a query is free-connex, and makes its generalised join trees.

An acyclic query is free-connex if it stays acyclic with an added atom over its free variables. In a generalised join
tree, a node is an atom or a projection of a child. For ``Q(b) = R(a, b), S(b, c)``, the root [b] is a projection of R::

    [b]
      R(a, b)
      S(b, c)

Source: Wang, Hu, Dai, Yi, Change Propagation Without Joins (2023).
"""

from __future__ import annotations

from freshviews.query.acyclic import JoinTree, gyo, is_acyclic, join_tree, with_children
from freshviews.query.hierarchical import is_q_hierarchical
from freshviews.query.hypergraph import Edge, Hypergraph, components, union

# No atom has this name: SQL names do not begin with a blank.
_HEAD = " head"


def is_free_connex(graph: Hypergraph) -> bool:
    """True if the graph is acyclic with and without an edge over the free variables, and no factor spans atoms.

    The variables that such a factor compares are in no single relation, so no bound would follow.

    A query is free-connex if it is acyclic, and stays acyclic when an edge over its free variables is added. Then it
    has a generalised join tree whose root has only free variables. In this tree no free variable first occurs below a
    bound one (Definition 3.2).
    """
    with_head = (*graph.edges, Edge(_HEAD, graph.free))
    return not graph.spanning and is_acyclic(graph.edges) and is_acyclic(with_head)


def without_tree(graph: Hypergraph) -> tuple[str, ...]:
    """The bound variables left when GYO reduces an acyclic graph with an edge over its free variables: none if it is
    free-connex. Freeing all of them makes it free-connex; freeing other variables does not help."""
    left = gyo((*graph.edges, Edge(_HEAD, graph.free))).left
    return graph.ordered(union(left) - graph.free) if len(left) > 1 else ()


def free_connex_trees(graph: Hypergraph) -> list[JoinTree]:
    """Some free-connex join trees of a free-connex query: the flat one if it is q-hierarchical, otherwise those of the
    roots of one join tree.

    In Definition 3.1 of the paper, all children of a generalised node contain its variables. Here only the child that
    supplies its rows must. Otherwise Q(a, b, c, d) = R(a, b, u), S(b, c, v), T(c, d, w) would have no tree. An update
    of any other child can reach many rows of the node. So such a child raises the height of the tree, on which the time
    of an update depends (``plan.crown.bounds``).
    """
    if is_q_hierarchical(graph):
        return [_flat_tree(graph)]
    tree = join_tree((*graph.edges, Edge(_HEAD, graph.free)), _HEAD)
    assert tree is not None  # free-connex: the graph with the head is acyclic
    tops, below = _absorbed([(child, child.variables & graph.free) for child in tree.children])
    candidates: list[JoinTree] = []
    for top in tops:
        rooted = join_tree(tops, top.name)
        assert rooted is not None  # the restriction of an acyclic hypergraph is acyclic
        candidates.append(_filled(rooted, below))
        candidates.extend(_split(rooted, child, below) for child in rooted.children)
    return candidates


def _absorbed(children: list[tuple[JoinTree, frozenset[str]]]) -> tuple[list[Edge], dict[str, tuple[JoinTree, ...]]]:
    """The maximal sets of free variables among the head's children, each with its relations: first the one it is a
    projection of, then those whose free variables it contains."""
    tops: list[Edge] = []
    for child, free in sorted(children, key=lambda pair: (-len(pair[1]), pair[1] != pair[0].variables)):
        if not any(free <= top.variables for top in tops):
            tops.append(Edge(str(child.name), free))
    held: dict[str, tuple[JoinTree, ...]] = {top.name: () for top in tops}
    for child, free in sorted(children, key=lambda pair: pair[0].name not in held):
        name = next(top.name for top in tops if child.name == top.name or free <= top.variables)
        held[name] += (child,)
    return tops, held


def _is_full(top: JoinTree, below: dict[str, tuple[JoinTree, ...]]) -> bool:
    """True if the relations of this node and of its descendants have free variables only."""
    relation = below[str(top.name)][0]
    return top.variables == relation.variables and all(_is_full(child, below) for child in top.children)


def _filled(top: JoinTree, below: dict[str, tuple[JoinTree, ...]]) -> JoinTree:
    """Insert the relations into the tree over free variables.

    A relation with free variables only is its own node; any other becomes a child of its projection. Generalised nodes
    stay above relations.
    """
    relation, *others = below[str(top.name)]
    children = [_filled(child, below) for child in top.children]
    if _is_full(top, below):
        return with_children(relation, (*relation.children, *others, *children))
    return with_children(JoinTree(None, top.variables), (relation, *others, *children))


def _split(rooted: JoinTree, child: JoinTree, below: dict[str, tuple[JoinTree, ...]]) -> JoinTree:
    """Split the edge between the root and one child: the shared variables become the new root."""
    shared = JoinTree(None, rooted.variables & child.variables)
    rest = with_children(rooted, (c for c in rooted.children if c is not child))
    return with_children(shared, (_filled(rest, below), _filled(child, below)))


def _flat_tree(graph: Hypergraph) -> JoinTree:
    """The tree of height 1: the canonical order as generalised relations, with the relations as leaves."""

    def grow(variables: frozenset[str], path: frozenset[str]) -> list[JoinTree]:
        grown: list[JoinTree] = []
        for component in components(graph, variables):
            edges = graph.touching(component)
            shared = component.intersection(*(edge.variables for edge in edges))
            if len(edges) == 1 and (shared <= graph.free or not shared & graph.free):
                grown.append(JoinTree(edges[0].name, edges[0].variables))
                continue
            here = shared & graph.free or shared
            node = JoinTree(None, path | here)
            ended = [JoinTree(e.name, e.variables) for e in edges if e.variables <= path | here]
            grown.append(with_children(node, (*ended, *grow(component - here, path | here))))
        return grown

    trees = grow(frozenset(graph.variables), frozenset())
    trees += [JoinTree(edge.name, edge.variables) for edge in graph.edges if not edge.variables]
    if len(trees) == 1 and trees[0].variables <= graph.free:
        return trees[0]
    return with_children(JoinTree(None, frozenset()), trees)
