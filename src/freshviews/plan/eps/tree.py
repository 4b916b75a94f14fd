"""Builds the canonical variable order of a hierarchical query, for ``plan.eps.hierarchical``.

Variable X is above variable Y if all atoms with Y also have X, and at least one other atom has X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from freshviews.expr.nodes import Expr, columns_of, substitute
from freshviews.expr.ops import may_fail
from freshviews.query.query import Aggregate, Atom, Query


@dataclass(frozen=True, eq=False)
class CanonicalNode:
    """A node of the order.

    ``variables``: variables with the same atoms. ``above``: those of the nodes on the way to the root. ``free``: True
    if the variables are free, and for a root without variables. ``atoms``: those whose variables are exactly these and
    those above.
    """

    variables: tuple[str, ...]
    above: tuple[str, ...]
    free: bool
    atoms: tuple[Atom, ...]
    children: tuple[CanonicalNode, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.above, *self.variables)

    @property
    def items(self) -> tuple[Item, ...]:
        return (*self.atoms, *self.children)

    @property
    def is_open(self) -> bool:
        return bool(self.free and self.variables) or any(child.is_open for child in self.children)

    @property
    def listed(self) -> tuple[str, ...]:
        """The free variables at the node and below."""
        own = self.variables if self.free else ()
        return (*own, *(v for child in self.children for v in child.listed))

    @property
    def is_violating(self) -> bool:
        """True for a bound node with free variables below. Such a query is not q-hierarchical."""
        return not self.free and self.is_open

    def nodes(self) -> Iterator[CanonicalNode]:
        """This node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def atoms_below(self) -> tuple[Atom, ...]:
        """The atoms at the node and below."""
        return tuple(atom for node in self.nodes() for atom in node.atoms)

    def path(self, atom: Atom) -> tuple[CanonicalNode, ...]:
        """The nodes from that of an atom up to this one."""
        if atom in self.atoms:
            return (self,)
        return (*next(c.path(atom) for c in self.children if atom in c.atoms_below()), self)


Item = Atom | CanonicalNode
"""A child of a node: an atom or another node."""


def tree_of(query: Query) -> CanonicalNode:
    """The root of the order: the node that has all atoms below it, or else a node without variables.

    In a hierarchical query, the sets of atoms of two variables are disjoint or nested. Variable X is above variable Y
    if the atoms of X properly contain the atoms of Y. Variables with the same atoms form a node. If some are free and
    others bound, they form two nodes, free above bound. An atom is a child of the node of its lowest variables. A node
    is *open* if a free variable is at the node or below. The rows of open nodes are enumerated; subtrees without free
    variables are summed up.
    """
    sets: dict[frozenset[str], list[str]] = {}
    for variable in query.variables:
        names = frozenset(atom.name for atom in query.atoms if variable in atom.variables)
        sets.setdefault(names, []).append(variable)

    def below(names: frozenset[str], above: tuple[str, ...]) -> tuple[tuple[Atom, ...], tuple[CanonicalNode, ...]]:
        """The children of a node: atoms, and the nodes of the largest sets within its own."""
        inside = [one for one in sets if one < names]
        largest = [one for one in inside if not any(one < other for other in inside)]
        atoms = tuple(a for a in query.atoms if a.name in names and not any(a.name in one for one in inside))
        return atoms, tuple(node for one in largest for node in made(one, above))

    def made(names: frozenset[str], above: tuple[str, ...]) -> tuple[CanonicalNode, ...]:
        free = tuple(v for v in sets[names] if v in query.free)
        bound = tuple(v for v in sets[names] if v not in query.free)
        atoms, children = below(names, (*above, *free, *bound))
        if bound:
            node = CanonicalNode(bound, (*above, *free), False, atoms, children)
            return (CanonicalNode(free, above, True, (), (node,)),) if free else (node,)
        return (CanonicalNode(free, above, True, atoms, children),)

    every = frozenset(atom.name for atom in query.atoms)
    if every in sets:
        return made(every, ())[0]
    atoms, children = below(every, ())
    return CanonicalNode((), (), True, atoms, children)


def settled(query: Query) -> Query:
    """The query with conditions and lifts over variables of one atom moved into the atom.

    Those that may fail stay: they must not be computed for rows that join nothing.
    """

    def home(expr: Expr) -> Atom | None:
        names = set(columns_of(expr))
        return None if may_fail(expr) else next((a for a in query.atoms if names and names <= {*a.variables}), None)

    def at(atom: Atom, expr: Expr) -> Expr:
        return substitute(expr, dict(zip(atom.variables, atom.columns, strict=True)))

    def placed(aggregate: Aggregate) -> Aggregate:
        lifts = []
        for lift in aggregate.lifts:
            atom = home(lift.expr) if lift.atom is None else None
            lifts.append(lift if atom is None else replace(lift, atom=atom.name, expr=at(atom, lift.expr)))
        return replace(aggregate, lifts=tuple(lifts))

    atoms = tuple(
        replace(a, filters=(*a.filters, *(at(a, c) for c in query.conditions if home(c) is a))) for a in query.atoms
    )
    left = tuple(c for c in query.conditions if home(c) is None)
    return replace(query, atoms=atoms, conditions=left, aggregates=tuple(map(placed, query.aggregates)))


def most_covering(node: CanonicalNode) -> int:
    """The least number of atoms that together have all free variables below a node."""
    wanted = set(node.listed)
    atoms = node.atoms_below()
    for count in range(len(atoms) + 1):
        for chosen in combinations(atoms, count):
            if wanted <= {v for atom in chosen for v in atom.variables}:
                return count
    raise AssertionError("a free variable is in no atom")
