"""Refuses a SELECT that passes BINARY values to a function which DuckDB lacks, or computes differently from Spark."""

from __future__ import annotations

from sqlglot import exp

from freshviews.asking.meaning import NotAnswered
from freshviews.asking.moments import CHOSEN, COMPARED, keeps, kind_compared
from freshviews.asking.typing import is_void, kind_of, results_of
from freshviews.sql.text.parse import Node
from freshviews.types import BINARY


def check_bytes(tree: Node) -> None:
    """Refuse a BINARY in a typed tree, except where it is moved, counted, or compared with another BINARY, and in
    ``hex``. DuckDB casts a text with backslashes to other bytes than Spark. Raises NotAnswered."""
    for node in tree.walk():
        given = [one for one in node.iter_expressions() if kind_of(one) == BINARY]
        if given and not _answered(node, given):
            instead = "write hex(x), or compute it in a view"
            raise NotAnswered(node, f"a BINARY here is not supported in a SELECT; {instead}")


def _answered(node: Node, given: list[Node]) -> bool:
    if isinstance(node, exp.Cast):
        return len(given) == 2 or is_void(node.this) or isinstance(node.this, exp.Placeholder)
    if isinstance(node, exp.Tuple) and isinstance(node.parent, exp.Values):
        return True
    if isinstance(node, COMPARED):
        return all(kind_compared(one) == BINARY or is_void(one) for one in node.iter_expressions())
    if isinstance(node, CHOSEN):
        return kind_of(node) != BINARY or all(kind_of(one) == BINARY or is_void(one) for one in results_of(node))
    return isinstance(node, exp.Hex) or keeps(node, BINARY)
