"""Attaches optional atoms (outer joins) and negated atoms (NOT EXISTS) to a join tree of the ordinary atoms.

In ``Q(x, k, y, z) = R(x, k), S?(k | y), T?(y | z), !U(x)``, S and T are optional: S is looked up by k, and T by y. The
tree is::

    R(x, k)
      !U(x)
      S?(k, y)
        T?(y, z)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from freshviews.errors import PlanError
from freshviews.expr.nodes import Call
from freshviews.plan.crown.free_connex_query import Prepared
from freshviews.query.acyclic import JoinTree, with_children
from freshviews.query.query import Atom, Query

Path = tuple[int, ...]
"""The positions of the children on the way from the root to a node."""


def placed(tree: JoinTree, made: Prepared, counted: bool) -> JoinTree:
    """The tree with the optional and negated atoms of the query. ``counted``: nodes have payloads; otherwise only the
    presence of rows counts. Raises PlanError, with the reason, if an atom finds no place.

    A negated atom is a child of a node that has all of its variables. An optional atom is a child of a node that has
    its given variables; this may be the node of another optional atom.

    If only some variables of an optional atom are needed, a projection on these variables, ``[k, y]?``, is inserted
    above it. A tree without a node that has the needed variables is refused with the reason. This happens to ``S?(k, l
    | y)`` if k and l are in different atoms.
    """
    for atom in made.query.negated:
        tree = _with_negated(tree, atom, made)
    for atom in _in_order(made.query):
        if counted or not made.free.isdisjoint(atom.opened):
            tree = _with_optional(tree, atom, made)
    return tree


def _in_order(query: Query) -> tuple[Atom, ...]:
    """The optional atoms, each after those that open its given variables. PlanError if a variable that one opens is
    shared in another way."""
    left = [atom for atom in query.atoms if atom.given is not None]
    opened = {v: atom for atom in left for v in atom.opened}
    for atom in query.atoms:
        for v in atom.variables:
            if v not in opened or opened[v] is atom:
                continue
            if v not in (atom.given or ()):
                raise _refusal(
                    query,
                    f"the join of {atom.name}, because column {v} is from {opened[v].name}, which may have no "
                    "matching row",
                )
            if _finds_null(atom, v):
                raise _refusal(
                    query,
                    f"the join of {atom.name}, because column {v} may be NULL in {atom.name} and in {opened[v].name}",
                )
    order: list[Atom] = []
    while left:
        known = [a for a in left if not any(opened.get(v) in left for v in a.given or ())]
        order += known
        left = [a for a in left if a not in known]
    return tuple(order)


def _finds_null(atom: Atom, variable: str) -> bool:
    """True if a row of the atom may have NULL in a variable."""
    column = atom.columns[atom.variables.index(variable)]
    checked = any(isinstance(f, Call) and f.op == "is_not_null" and f.args == (column,) for f in atom.filters)
    return column.nullable and not checked


def _with_negated(tree: JoinTree, atom: Atom, made: Prepared) -> JoinTree:
    wanted = frozenset(atom.variables)
    found = [path for path, node, free in _nodes(tree, made.free) if (free or node.name) and wanted <= node.variables]
    if not found:
        raise _refusal(
            made.query, f"NOT EXISTS over {atom.name}, because no node of the join tree has {_listed(wanted, made)}"
        )
    return _attached(tree, found[0], JoinTree(atom.name, wanted, mark="!"))


def _with_optional(tree: JoinTree, atom: Atom, made: Prepared) -> JoinTree:
    given, variables = frozenset(atom.given or ()), frozenset(atom.variables)
    own = JoinTree(atom.name, variables, mark="?")
    needed = variables & made.free
    if made.free.isdisjoint(atom.opened):
        places = [(not free, path) for path, node, free in _nodes(tree, made.free) if given <= node.variables]
        places = [(bound, path) for bound, path in places if not bound or _node(tree, path).name is not None]
        if places:
            return _attached(tree, min(places, key=lambda one: one[0])[1], own)
        raise _no_place(atom, given, made)
    if needed != variables:
        own = with_children(JoinTree(None, needed, mark="?"), [replace(own, mark="")])
    for path, node, free in _nodes(tree, made.free):
        if free and given <= node.variables:
            return _attached(tree, path, own)
    for path, node, free in _nodes(tree, made.free):
        kept = node.variables & made.free
        if not free and node.mark != "!" and given <= kept and _is_free(tree, path[:-1], made.free):
            # The projection on free variables that the node would get anyway, or one more.
            projection = with_children(JoinTree(None, kept, mark=node.mark), [replace(node, mark=""), own])
            return _replaced(tree, path, projection)
    raise _no_place(atom, given, made)


def _no_place(atom: Atom, given: frozenset[str], made: Prepared) -> PlanError:
    return _refusal(
        made.query, f"the outer join with {atom.name}, because no node of the join tree has {_listed(given, made)}"
    )


def _refusal(query: Query, what: str) -> PlanError:
    return PlanError(f"{query.name}: crown cannot maintain {what}; set first_order, or no strategy")


def _listed(variables: frozenset[str], made: Prepared) -> str:
    return ", ".join(v for v in made.query.variables if v in variables)


def _nodes(tree: JoinTree, free: frozenset[str], path: Path = (), above: bool = True) -> Iterator[
    tuple[Path, JoinTree, bool]
]:
    """The nodes that may have such children, parents first, those of ordinary atoms first: the path to each, and
    whether all variables of it and of the nodes above are in the output."""
    here = above and tree.variables <= free
    yield path, tree, here
    for optional in (False, True):
        for i, child in enumerate(tree.children):
            if child.mark != "!" and (child.mark == "?") == optional:
                yield from _nodes(child, free, (*path, i), here)


def _node(tree: JoinTree, path: Path) -> JoinTree:
    for i in path:
        tree = tree.children[i]
    return tree


def _is_free(tree: JoinTree, path: Path, free: frozenset[str]) -> bool:
    return all(_node(tree, path[:i]).variables <= free for i in range(len(path) + 1))


def _attached(tree: JoinTree, path: Path, child: JoinTree) -> JoinTree:
    node = _node(tree, path)
    return _replaced(tree, path, with_children(node, (*node.children, child)))


def _replaced(tree: JoinTree, path: Path, node: JoinTree) -> JoinTree:
    if not path:
        return node
    children = list(tree.children)
    children[path[0]] = _replaced(children[path[0]], path[1:], node)
    return with_children(tree, children)
