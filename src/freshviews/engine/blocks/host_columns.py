"""Expressions with host operations, taken out of a program and computed before it runs.

Compiled code works on codes; string functions work on strings. Each subexpression whose root is a host
operation becomes a column ``#1``, ``#2``, ... of the relation, which is computed per batch, once per distinct
argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.expr.host_evaluation import Evaluator, evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.expr.ops import OPS
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary


@dataclass
class HostColumns:
    """Host subexpressions found so far, by the name of the column that stands for them."""

    found: dict[str, Expr] = field(default_factory=dict)

    def lift(self, expr: Expr) -> Expr:
        """The expression with its host subexpressions replaced by columns."""
        if not isinstance(expr, Call):
            return expr
        op = OPS.get(expr.op)
        if op is not None and op.host is not None:
            for name, known in self.found.items():
                if known == expr:
                    return Column(name, expr.type, expr.nullable)
            name = f"#{len(self.found) + 1}"
            self.found[name] = expr
            return Column(name, expr.type, expr.nullable)
        return replace(expr, args=tuple(self.lift(arg) for arg in expr.args))

    def columns(self) -> frozenset[str]:
        """Columns that the host subexpressions read."""
        return frozenset(c for expr in self.found.values() for c in columns_of(expr))

    def evaluators(self, dictionary: Dictionary) -> dict[str, Evaluator]:
        """What computes each column; they remember results per distinct argument."""
        return {name: evaluator_for(expr, dictionary) for name, expr in self.found.items()}


def evaluate_columns(evaluators: dict[str, Evaluator], batch: CodeBatch) -> dict[str, Codes]:
    """The batch's columns and its host columns. Raises HostFailure for a row without an answer."""
    return batch.columns | {name: evaluate(batch.columns) for name, evaluate in evaluators.items()}


def lift_program(program: Program) -> tuple[Program, dict[str, HostColumns]]:
    """The program over relations that have the host columns, and those columns by relation."""
    by_relation: dict[str, HostColumns] = {}
    triggers = []
    for trigger in program.triggers:
        host = by_relation.setdefault(trigger.relation, HostColumns())
        triggers.append(
            replace(
                trigger,
                parameters=tuple(replace(p, expr=host.lift(p.expr)) for p in trigger.parameters),
                filters=tuple(host.lift(f) for f in trigger.filters),
            )
        )
    return replace(program, triggers=tuple(triggers)), by_relation
