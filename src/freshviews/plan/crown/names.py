"""Names in the program of a join tree: of rows of nodes, and all that are taken where a bag's program is hung in."""

from __future__ import annotations

from freshviews.plan.crown.nodes import Node
from freshviews.plan.leaves import parameters_of, spanning_lifts
from freshviews.query.query import Query

_ROWS = ("", "_sums", "_met", "_total")
"""What is added to the name of a node's row for its sums, for a row of it that is met, for what is summed up."""


def names_of(query: Query, root: Node) -> tuple[dict[int, str], set[str]]:
    """Names for the rows of nodes, by identity, which no variable and no other row has; and every name that there is,
    of views, variables and rows."""
    taken = {*query.variables, *(let.variable for _, let, _ in spanning_lifts(query))}
    taken.update(p.name for atom in query.atoms for p in parameters_of(query, atom))
    found = {}
    for node in root.nodes():
        view = node.rows or node.sums
        assert view is not None
        name = view.name.lower() + "_row"
        while not taken.isdisjoint(name + more for more in _ROWS):
            name += "_"
        taken.update(name + more for more in _ROWS)
        found[id(node)] = name
    taken.update(view.name for node in root.nodes() for view in (node.rows, node.sums) if view is not None)
    return found, taken
