"""Expressions with host operations, taken out of a program and computed before it runs.

Compiled code works on codes; string functions work on strings. Each subexpression whose root is a host
operation becomes a column ``#1``, ``#2``, ... of the relation, which is computed once per batch: by compiled code over
the strings where it is a function of one text (``expr.texts``), else in Python, once per distinct argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.text_columns import results_of
from freshviews.expr.host_evaluation import Evaluator, evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.expr.ops import OPS
from freshviews.expr.texts import TextFunction, text_function
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary


@dataclass
class HostColumns:
    """Host subexpressions found so far, by the name of the column that stands for them."""

    found: dict[str, Expr] = field(default_factory=dict)
    _names: dict[Expr, str] = field(default_factory=dict)

    def lift(self, expr: Expr) -> Expr:
        """The expression with its host subexpressions replaced by columns."""
        if not isinstance(expr, Call):
            return expr
        op = OPS.get(expr.op)
        if op is not None and op.host is not None:
            name = self._names.setdefault(expr, f"#{len(self.found) + 1}")
            self.found[name] = expr
            return Column(name, expr.type, expr.nullable)
        return replace(expr, args=tuple(self.lift(arg) for arg in expr.args))

    def columns(self, functions: bool = True) -> frozenset[str]:
        """Columns that the host subexpressions read, without those of ``functions`` if asked."""
        exprs = (expr for expr in self.found.values() if functions or text_function(expr) is None)
        return frozenset(c for expr in exprs for c in columns_of(expr))

    def functions(self) -> dict[str, TextFunction]:
        """The functions of one text, by the names that their results have in a batch."""
        made = ((column_name(expr), text_function(expr)) for expr in self.found.values())
        return {name: function for name, function in made if function is not None}

    def evaluators(self, dictionary: Dictionary) -> dict[str, Evaluator]:
        """What computes each column; they remember results per distinct argument."""
        found: dict[str, Evaluator] = {}
        for name, expr in self.found.items():
            function = text_function(expr)
            found[name] = evaluator_for(expr, dictionary) if function is None else results_of(function, dictionary)
        return found

    def evaluators_of_batches(self, dictionary: Dictionary) -> dict[str, tuple[str, Evaluator]]:
        """As ``evaluators``, each after what its results are called in a batch."""
        evaluators = self.evaluators(dictionary)
        return {name: (column_name(expr), evaluators[name]) for name, expr in self.found.items()}


def column_name(expr: Expr) -> str:
    """What the results of a host expression are called in every batch of a relation."""
    return f"#{expr!r}"


def evaluate_columns(evaluators: dict[str, tuple[str, Evaluator]], batch: CodeBatch) -> dict[str, Codes]:
    """The batch's columns and its host columns. Raises HostFailure for a row without an answer.

    ``evaluators``: those of ``HostColumns.evaluators_of_batches``.
    """
    found = dict(batch.columns)
    for name, (known, evaluate) in evaluators.items():
        codes = batch.columns.get(known)
        if codes is None:
            codes = batch.computed.get(known)
        if codes is None:
            codes = batch.computed[known] = evaluate(batch.columns)
        found[name] = codes
    return found


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
