"""Names of rows in the program of a join tree."""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.plan.crown.nodes import TreeNode
from freshviews.plan.naming import Namer


@dataclass(frozen=True)
class RowNames:
    """Names for the rows of nodes, four for each node; they begin with the name of the node's view."""

    names: Namer

    def row(self, node: TreeNode) -> str:
        """A row of the node."""
        return self._of(node, "row")

    def sums(self, node: TreeNode) -> str:
        """A row of the node's sums, read for its payload."""
        return self._of(node, "row_sums")

    def met(self, node: TreeNode) -> str:
        """A row of the node, or of its sums; only its presence is read."""
        return self._of(node, "row_met")

    def total(self, node: TreeNode) -> str:
        """The sum that is added to the node's sums."""
        return self._of(node, "row_total")

    def _of(self, node: TreeNode, what: str) -> str:
        view = node.rows or node.sums
        assert view is not None
        return self.names.of((node, what), f"{view.name.lower()}_{what}")
