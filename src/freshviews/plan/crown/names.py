"""Names of rows in the program of a join tree."""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.plan.crown.nodes import TreeNode
from freshviews.plan.naming import Namer


@dataclass(frozen=True)
class RowNames:
    """Names for the rows of nodes; they begin with the name of the node's view.

    ``row``: a row of the node. ``row_sums``: a row of the node's sums, read for its payload. ``row_met``: a row of the
    node, or of its sums, of which only the presence is read. ``row_total``: the sum that is added to the node's sums.
    """

    names: Namer

    def of(self, node: TreeNode, what: str = "row") -> str:
        view = node.rows or node.sums
        assert view is not None
        return self.names.of((node, what), f"{view.name.lower()}_{what}")
