"""The wording of the error COUNTED: which expressions of a block may have failed."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.expr.nodes import Call, Expr
from freshviews.expr.printer import print_expression
from freshviews.query.block import Block


def counted_in(block: Block) -> str:
    """What a group, or a row of a join, may have of which an expression fails, by the names of the sources."""
    query = block.query
    of_atoms = [(atom.name, expr) for atom in query.atoms for expr in (*atom.columns, *atom.filters)]
    of_lifts = [(lift.atom or "", lift.expr) for one in query.aggregates for lift in one.lifts]
    late = [("", expr) for expr in (*query.conditions, *([] if block.having is None else [block.having]))]
    found = [(name, part) for name, expr in (*of_atoms, *of_lifts, *late) for part in _failing(expr)]
    texts = dict.fromkeys(f"{print_expression(part)}{f' of {name}' if name else ''}" for name, part in found)
    return f"{' or '.join(texts)} fails for a row of it; TRY_CAST and nullif(divisor, 0) give NULL instead"


def _failing(expr: Expr) -> Iterator[Expr]:
    """The expressions whose failures are counted."""
    if isinstance(expr, Call):
        if expr.op == "failed":
            yield expr.args[0]
        for arg in expr.args:
            yield from _failing(arg)
