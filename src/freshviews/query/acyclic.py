"""Tests whether a query is acyclic, by the reduction of Graham, Yu and Ozsoyoglu (GYO).

Makes the join tree of an acyclic query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from freshviews.query.hypergraph import Edge
from freshviews.records import dataclass


@dataclass(frozen=True)
class Step:
    """One rule applied: ``variable`` dropped from ``edge``, or ``edge`` removed because ``parent`` contains it."""

    edge: str
    variable: str | None = None
    parent: str | None = None

    def __str__(self) -> str:
        if self.parent is None:
            return f"{self.variable} is only in {self.edge}"
        return f"{self.edge} is in {self.parent}"


@dataclass(frozen=True)
class Reduction:
    """The steps of GYO and the edges that it could not remove: one if the query is acyclic."""

    steps: tuple[Step, ...]
    left: tuple[Edge, ...]

    @property
    def acyclic(self) -> bool:
        return len(self.left) <= 1

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))


@dataclass(frozen=True)
class JoinTree:
    """A node of a join tree: a relation, or a generalised relation if ``name`` is None.

    The nodes that contain a variable are connected. ``key``: the variables shared with the parent. ``mark``: ``?`` if
    the subtree is optional, so that it filters no row of the parent; ``!`` if it has the rows that exclude those of the
    parent.
    """

    name: str | None
    variables: frozenset[str]
    children: tuple[JoinTree, ...] = ()
    key: frozenset[str] = frozenset()
    mark: str = ""

    @property
    def height(self) -> int:
        """The most relations on a path from a leaf to the root.

        A generalised relation counts only if some child does not contain it.
        """
        counts = self.name is not None or any(not self.variables <= c.variables for c in self.children)
        return counts + max((child.height for child in self.children), default=0)

    def nodes(self) -> Iterator[JoinTree]:
        """The nodes, each before its children."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = ", ".join(sorted(self.variables))
        before, after = ("!", "") if self.mark == "!" else ("", self.mark)
        yield f"[{names}]{after}" if self.name is None else f"{before}{self.name}{after}({names})"
        for child in self.children:
            yield from ("  " + line for line in child._lines())


def gyo(edges: Iterable[Edge]) -> Reduction:
    """The GYO reduction. An edge's parent is the container with the most variables left, the last of equals, so that
    the join tree is shallow.

    Two rules are applied as long as possible. A variable that occurs in only one edge is dropped. An edge that is
    contained in another edge is removed, and becomes a child of that edge in the join tree. The query is acyclic if one
    edge remains. In ``R(a, b), S(b, c)``, a is dropped, R(b) is removed, and S remains. In the triangle ``R(a, b), S(b,
    c), T(c, a)`` no rule applies. So all edges are its cyclic core, which EXPLAIN shows.
    """
    left = dict(edges)
    steps: list[Step] = []
    while True:
        before = len(steps)
        times = Counter(chain.from_iterable(left.values()))
        for name in left:
            lonely = frozenset(variable for variable in left[name] if times[variable] == 1)
            steps += [Step(name, variable=variable) for variable in sorted(lonely)]
            left[name] -= lonely
        for name in tuple(left):
            holders = [other for other in left if other != name and left[name] <= left[other]]
            if holders:
                most = max(len(left[other]) for other in holders)
                parent = [other for other in holders if len(left[other]) == most][-1]
                steps.append(Step(name, parent=parent))
                del left[name]
        if len(steps) == before:
            return Reduction(tuple(steps), tuple(Edge(name, vs) for name, vs in left.items()))


def is_acyclic(edges: Iterable[Edge]) -> bool:
    return gyo(edges).acyclic


def join_tree(edges: Iterable[Edge], root: str | None = None) -> JoinTree | None:
    """A join tree of the edges with the edge named ``root`` as its root (by default the one GYO leaves last).

    None if the edges are cyclic or there are none. Components are connected by empty keys.
    """
    variables = dict(edges)
    reduction = gyo(Edge(*item) for item in variables.items())
    if not reduction.acyclic or not variables:
        return None
    links = [(step.edge, step.parent) for step in reduction.steps if step.parent is not None]

    def hang(name: str, above: str | None) -> JoinTree:
        ends = [a if b == name else b for a, b in links if name in (a, b)]
        # Children are in the order of the edges, whatever order GYO removed them in.
        below = [hang(end, name) for end in variables if end in ends and end != above]
        return with_children(JoinTree(name, variables[name]), below)

    return hang(reduction.left[0].name if root is None else root, None)


def with_children(node: JoinTree, children: Iterable[JoinTree]) -> JoinTree:
    """The node with these children, their keys set."""
    hung = tuple(replace(child, key=child.variables & node.variables) for child in children)
    return replace(node, children=hung)
