"""Defines ``Failure``, the reason why a view refuses a batch or a read. The exception ``Failed`` has a failure."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.expr.nodes import Call, Expr, columns_of
from freshviews.expr.printer import print_expression
from freshviews.query.block import Block
from freshviews.records import dataclass


@dataclass(frozen=True)
class Failure:
    """Why a batch or a read is refused.

    ``kind`` is "evaluation", "memory", or "narrow" if narrow sums of doubles cannot take the batch. ``row`` is a
    position in the batch, None if unknown.
    """

    kind: str
    message: str
    row: int | None = None


class Failed(Exception):
    """A view could not be computed; the status word of its blocks is reset."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def counted_in(block: Block) -> str:
    """The message of the error COUNTED: the expressions that may have failed, each with the name of its source."""
    query = block.query
    of_atoms = [(atom.name, expr) for atom in query.atoms for expr in (*atom.columns, *atom.filters)]
    of_lifts = [(lift.atom or "", lift.expr) for one in query.aggregates for lift in one.lifts]
    late = [("", expr) for expr in (*query.conditions, *([] if block.having is None else [block.having]))]
    found = [(name, part) for name, expr in (*of_atoms, *of_lifts, *late) for part in _failing(expr)]
    texts = dict.fromkeys(f"{print_expression(part)}{f' of {name}' if name else ''}" for name, part in found)
    return f"{' or '.join(texts)} fails for a row of the group; TRY_CAST and nullif(divisor, 0) give NULL instead"


def _failing(expr: Expr) -> Iterator[Expr]:
    """The expressions whose failures are counted."""
    if isinstance(expr, Call):
        if expr.op == "failed":
            yield expr.args[0]
        for arg in expr.args:
            yield from _failing(arg)


def failures_of(block: Block) -> frozenset[str]:
    """The results and variables of a block that count failures."""
    having = block.having
    if isinstance(having, Call) and having.op == "unless_counted":
        return frozenset(columns_of(having.args[1]))
    return frozenset()
