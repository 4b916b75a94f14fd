"""Finds all free-connex generalised join trees of a query, and the tree with the least update cost.

A node in brackets is a projection of a child. For ``Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)`` the two cheapest trees
are::

    [b]              [c]
      R(a, b)          T(c, d)
      S(b, c)          S(b, c)
        T(c, d)          R(a, b)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from itertools import islice, product

from freshviews.query.acyclic import JoinTree, with_children
from freshviews.query.free_connex import free_connex_trees, is_free_connex
from freshviews.query.hypergraph import Edge, Hypergraph, connected, union
from freshviews.records import dataclass

LIMIT = 1000
"""Maximum number of trees that are listed."""

MOST_CHOICES = 20_000
"""Maximum number of roots of components that are compared. Beyond it, the tree is the best of the few that
``freshviews.query.free_connex`` makes from one join tree."""

_MOST_CANDIDATES = 400
"""Maximum number of variable sets of generalised relations that are tried."""

Edges = frozenset[Edge]


@dataclass(frozen=True)
class _Component:
    """A component that needs a root.

    It has its edges, the variables shared with the node above, whether that node is a generalised relation or missing,
    and its variables. ``closed``: the root must have a bound variable.
    """

    edges: Edges
    shared: frozenset[str]
    general: bool
    above: frozenset[str] | None
    closed: bool = False


@dataclass(frozen=True)
class _Choice:
    """A root for a component, and the components below it; ``deeper``: the components one level further down."""

    node: JoinTree
    places: tuple[_Component, ...]
    deeper: tuple[bool, ...]


class _TooMany(Exception):
    """Raised for more than ``MOST_CHOICES`` roots to compare."""


@dataclass
class _Grower:
    graph: Hypergraph
    updates: Mapping[str, float]
    mixed: bool
    best: dict[_Component, tuple[float, int, JoinTree] | None] = field(default_factory=dict)
    compared: int = 0

    @cached_property
    def candidates(self) -> tuple[frozenset[str], ...]:
        """The variables of generalised relations to try."""
        return _intersections(self.graph)

    def start(self) -> _Component:
        return _Component(frozenset(self.graph.edges), frozenset(), True, None)

    def choices(self, place: _Component) -> Iterator[_Choice]:
        """Every root that a component may have."""
        below = union(place.edges)
        order = [edge for edge in self.graph.edges if edge in place.edges]
        if place.general:
            for variables in self.candidates:
                if place.shared <= variables <= below and variables != place.above:
                    yield from self._generalised(place, variables, below)
        for edge in order:
            self._count()
            if place.shared <= edge.variables and self._may_stand(place, edge.variables, below):
                parts = self._parts(place.edges - {edge}, edge.variables)
                places = tuple(_Component(p, union(p) & edge.variables, False, edge.variables) for p in parts)
                yield _Choice(JoinTree(edge.name, edge.variables), places, (True,) * len(places))

    def _count(self) -> None:
        self.compared += 1
        if self.compared > MOST_CHOICES:
            raise _TooMany

    def _generalised(self, place: _Component, variables: frozenset[str], below: frozenset[str]) -> Iterator[_Choice]:
        self._count()
        if not self._may_stand(place, variables, below):
            return
        parts = self._parts(place.edges, variables)
        outside = tuple(not variables <= union(part) for part in parts)
        if all(outside) or (any(outside) and not (self.mixed and variables <= self.graph.free)):
            return
        # With one child, it is the projection of a non-free relation on its free variables.
        closed = len(parts) == 1
        if closed and not variables <= self.graph.free:
            return
        places = tuple(_Component(p, union(p) & variables, True, variables, closed) for p in parts)
        yield _Choice(JoinTree(None, variables), places, outside)

    def _may_stand(self, place: _Component, variables: frozenset[str], below: frozenset[str]) -> bool:
        """Definition 3.2: the root is free, and no free variable first occurs below a bound one."""
        free = self.graph.free
        if place.above is None:
            return variables <= free
        if place.closed and variables <= free:
            return False
        return variables <= free or below & free <= variables

    def _parts(self, edges: Edges, variables: frozenset[str]) -> tuple[Edges, ...]:
        """The components of edges, connected by other variables than these, in the order of the query."""
        found = connected((edge, edge.variables - variables) for edge in self.graph.edges if edge in edges)
        return tuple(map(frozenset, found))

    def cheapest(self, place: _Component) -> tuple[float, int, JoinTree] | None:
        """The least cost of a component, its height and its tree; None if it has no tree."""
        if place not in self.best:
            self.best[place] = None  # a component never occurs below itself with the same place above
            self.best[place] = self._cheapest(place)
        return self.best[place]

    def _cheapest(self, place: _Component) -> tuple[float, int, JoinTree] | None:
        found: tuple[float, int, JoinTree] | None = None
        for choice in self.choices(place):
            cost, children = 0.0, []
            for below, deeper in zip(choice.places, choice.deeper, strict=True):
                part = self.cheapest(below)
                if part is None:
                    break
                cost += part[0]
                cost += sum(self.updates.get(edge.name, 1.0) for edge in below.edges) if deeper else 0.0
                children.append(part[2])
            else:
                tree = with_children(choice.node, children)
                if found is None or (cost, tree.height) < found[:2]:
                    found = cost, tree.height, tree
        return found

    def trees(self, place: _Component) -> Iterator[JoinTree]:
        """Every tree of a component."""
        for choice in self.choices(place):
            below = [list(islice(self.trees(part), LIMIT)) for part in choice.places]
            for children in product(*below):
                yield with_children(choice.node, children)


def best_tree(graph: Hypergraph, updates: Mapping[str, float]) -> JoinTree | None:
    """The free-connex tree with the least sum of depth times updates, then the least height.

    ``updates``: by atom, 1 if not given. None if the query is not free-connex.
    """
    if not graph.edges or not is_free_connex(replace(graph, factors=())):
        return None
    found = _cheapest(graph, tuple(sorted(updates.items())))
    return found or min(free_connex_trees(graph), key=lambda tree: (cost(tree, updates), tree.height))


def compares_all(graph: Hypergraph) -> bool:
    """True if ``best_tree`` compares all trees of a free-connex query, False if it compares a few."""
    return _cheapest(graph, ()) is not None


@lru_cache(maxsize=16)
def _cheapest(graph: Hypergraph, updates: tuple[tuple[str, float], ...]) -> JoinTree | None:
    """The tree with the least cost; None if there are too many to compare."""
    try:
        for mixed in (False, True):
            grower = _Grower(graph, dict(updates), mixed)
            found = grower.cheapest(grower.start())
            if found is not None:
                return found[2]
    except _TooMany:
        pass
    return None


def all_trees(graph: Hypergraph, limit: int = LIMIT) -> tuple[JoinTree, ...]:
    """The free-connex trees of a query, each once; at most ``limit``.

    A tree is built from its root. The relations below a node split into components. Two relations are in one component
    if variables that the node lacks connect them. Each component is attached as high as possible, because a lower place
    costs more.
    """
    for mixed in (False, True):
        grower = _Grower(graph, {}, mixed)
        found = tuple(islice(dict.fromkeys(grower.trees(grower.start())), limit))
        if found:
            return found
    return ()


def cost(tree: JoinTree, updates: Mapping[str, float], depth: int = 0) -> float:
    """The sum over relations of depth times updates.

    The cost of a tree is the sum, over its relations, of depth times number of updates. The depth of a relation is the
    number of relations above it; generalised relations do not count. Source: "Query plan optimization" in section 6.3
    of Wang, Hu, Dai, Yi: Change Propagation Without Joins (PVLDB 16(5), 2023).
    """
    own = 0.0 if tree.name is None else depth * updates.get(tree.name, 1.0)
    total = own
    for child in tree.children:
        deeper = tree.name is not None or not tree.variables <= child.variables
        total += cost(child, updates, depth + deeper)
    return total


def _intersections(graph: Hypergraph) -> tuple[frozenset[str], ...]:
    """Candidates for generalised relations: intersections of relations, and their free parts, large first."""
    found = {edge.variables for edge in graph.edges}
    new = found
    while new and len(found) < _MOST_CANDIDATES:
        new = {one & other for one in new for other in found} - found
        found |= new
    found |= {variables & graph.free for variables in found} | {frozenset()}
    return tuple(sorted(found, key=lambda vs: (-len(vs), sorted(graph.places[v] for v in vs))))


_TOKEN = re.compile(r"\s*(\[[^\[\]]*\]|[^\s\[\](),]+|[(),])")


def parse_tree(text: str, graph: Hypergraph) -> JoinTree:
    """Parse a tree such as ``[b](R, S(T))``. Raises ValueError, with the reason, if it is not a free-connex tree."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens).replace(" ", "") != re.sub(r"\s", "", text):
        raise ValueError(f"'{text}' is not a join tree; write it like [b](R, S(T))")
    relations = {edge.name: edge for edge in graph.edges}

    def node(at: int) -> tuple[JoinTree, int]:
        label = tokens[at] if at < len(tokens) else ""
        if label.startswith("["):
            names = [name.strip() for name in label[1:-1].split(",") if name.strip()]
            unknown = [name for name in names if name not in graph.variables]
            if unknown:
                raise ValueError(f"there is no variable {unknown[0]}; the variables are {', '.join(graph.variables)}")
            made = JoinTree(None, frozenset(names))
        elif label in relations:
            made = JoinTree(label, relations[label].variables)
        else:
            raise ValueError(f"'{label}' is not a relation of the query; the relations are {', '.join(relations)}")
        at += 1
        children: list[JoinTree] = []
        if at < len(tokens) and tokens[at] == "(":
            while tokens[at] in ("(", ","):
                child, at = node(at + 1)
                children.append(child)
                if at == len(tokens):
                    raise ValueError(f"'{text}' lacks a closing bracket")
            at += 1
        return with_children(made, children), at

    tree, end = node(0)
    if end != len(tokens):
        raise ValueError(f"the join tree '{text}' is followed by further text: {' '.join(tokens[end:])}")
    check_tree(tree, graph)
    return tree


def check_tree(tree: JoinTree, graph: Hypergraph) -> None:
    """Raise ValueError if a tree violates Definition 3.1 or 3.2 (a generalised relation needs one child that contains
    it)."""
    names = [node.name for node in tree.nodes() if node.name is not None]
    if sorted(names) != sorted(edge.name for edge in graph.edges):
        raise ValueError(f"a join tree must name each of {', '.join(e.name for e in graph.edges)} once")
    if not tree.variables <= graph.free:
        raise ValueError("the root of the join tree may have only columns of the result")
    tops: dict[str, int] = {}
    for node in tree.nodes():
        parent_has = node.key
        for variable in sorted(node.variables - parent_has):
            if variable in tops:
                raise ValueError(f"the nodes with variable {variable} must be connected")
            tops[variable] = 1

    def walk(node: JoinTree, bound_above: bool, relation_above: bool) -> None:
        if node.name is None:
            if relation_above:
                raise ValueError(
                    f"the node [{', '.join(graph.ordered(node.variables))}] is below a relation; put it above all "
                    "relations"
                )
            if not any(node.variables <= child.variables for child in node.children):
                raise ValueError(
                    f"the node [{', '.join(graph.ordered(node.variables))}] needs a child with all of its variables"
                )
        if bound_above and node.variables - node.key & graph.free and (node.variables - node.key) & graph.free:
            raise ValueError(
                f"node {node.name} has a column of the result, but a node above has a variable outside the result; "
                f"put {node.name} higher"
            )
        for child in node.children:
            bound = bound_above or not node.variables <= graph.free
            walk(child, bound, relation_above or node.name is not None)

    walk(tree, False, False)
