"""Computes functions of strings once per batch, before the triggers run, because triggers see only codes of strings.

The triggers read the results as further columns of the batch, ``#1``, ``#2`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import count

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.text_columns import results_of
from freshviews.expr.host_evaluation import Evaluator, Failures, evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.expr.ops import OPS, may_fail
from freshviews.expr.texts import TextFunction, text_function
from freshviews.kernel.scalar.failure import COMPUTED
from freshviews.program.program import Program
from freshviews.records import dataclass
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary

_NO_ERROR = np.zeros(1, np.int64)


@dataclass(frozen=True)
class HostColumn:
    """The evaluator of a host expression, and the columns that it gives.

    ``known``: the name of the results in every batch of a relation. ``error``: the error of a row without a value; 0 if
    every row has one.
    """

    name: str
    known: str
    evaluate: Evaluator
    error: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns: of the values, and of the errors if there may be any."""
        return (self.name, _errors_of(self.name)) if self.error else (self.name,)

    def columns(self, codes: Codes, failures: Failures) -> tuple[Codes, ...]:
        """The columns of values that were computed."""
        if not self.error:
            return (codes,)
        errors = np.broadcast_to(_NO_ERROR, len(codes))
        if failures:
            errors = np.zeros(len(codes), np.int64)
            errors[list(failures)] = self.error
        return codes, errors


@dataclass
class HostColumns:
    """Host subexpressions found so far, by the name of the column that stands for them, and the error of each."""

    errors: Iterator[int] = field(default_factory=lambda: count(COMPUTED))
    found: dict[str, Expr] = field(default_factory=dict)
    error: dict[str, int] = field(default_factory=dict)
    _names: dict[Expr, str] = field(default_factory=dict)

    def lift(self, expr: Expr) -> Expr:
        """The expression with its host subexpressions replaced by columns."""
        if not isinstance(expr, Call):
            return expr
        op = OPS.get(expr.op)
        if op is None or op.host is None:
            return replace(expr, args=tuple(self.lift(arg) for arg in expr.args))
        alike = _nullable(expr)
        name = self._names.get(alike, "")
        if not name:
            name = self._names[alike] = f"#{len(self.found) + 1}"
            self.found[name] = alike
            fails = may_fail(expr) and text_function(expr) is None
            self.error[name] = next(self.errors) if fails else 0
        column = Column(name, expr.type, expr.nullable)
        if not self.error[name]:
            return column
        return Call("unless_failed", (column, Column(_errors_of(name), BIGINT, False)), expr.type, expr.nullable)

    def columns(self, functions: bool = True) -> frozenset[str]:
        """Columns that the host subexpressions read, without those of ``functions`` if asked."""
        exprs = (expr for expr in self.found.values() if functions or text_function(expr) is None)
        return frozenset(c for expr in exprs for c in columns_of(expr))

    def functions(self) -> dict[str, TextFunction]:
        """The functions of one text, by the names that their results have in a batch."""
        made = ((_name_of(expr), text_function(expr)) for expr in self.found.values())
        return {name: function for name, function in made if function is not None}

    def computed(self, dictionary: Dictionary) -> tuple[HostColumn, ...]:
        """The evaluators of the columns; each remembers results per distinct argument."""
        found = []
        for name, expr in self.found.items():
            function = text_function(expr)
            evaluate = evaluator_for(expr, dictionary) if function is None else results_of(function, dictionary)
            found.append(HostColumn(name, _name_of(expr), evaluate, self.error[name]))
        return tuple(found)


def _nullable(expr: Expr) -> Expr:
    """The expression with all columns nullable: expressions that differ only in this have the same values."""
    if isinstance(expr, Column):
        return replace(expr, nullable=True)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(map(_nullable, expr.args)), nullable=True)
    return expr


def _errors_of(name: str) -> str:
    return f"{name} error"


def _name_of(expr: Expr) -> str:
    """The name of the results of a host expression in every batch of a relation."""
    return f"#{expr!r}"


def evaluate_columns(
    host: tuple[HostColumn, ...], batch: CodeBatch
) -> tuple[Mapping[str, Codes], dict[int, Failures]]:
    """The batch's columns and host columns, and, by error, the rows without a value."""
    found = dict(batch.columns)
    failed: dict[int, Failures] = {}
    for one in host:
        codes = batch.columns.get(one.known)
        if codes is not None:
            found[one.name] = codes
            continue
        results = batch.computed.get(one.known)
        if results is None:
            results = batch.computed[one.known] = one.evaluate(batch.columns)
        found.update(zip(one.names, one.columns(*results), strict=True))
        if results[1]:
            failed[one.error] = results[1]
    return found, failed


def lift_program(program: Program) -> tuple[Program, dict[str, HostColumns]]:
    """The program over relations that have the host columns, and those columns by relation.

    A trigger gets the codes of strings, not the strings. So each subexpression whose root is a host operation becomes a
    column ``#1``, ``#2``, ... of the relation, computed once per batch before the triggers run. A kernel computes
    simple functions of one column from the bytes of its strings, such as LIKE with a constant pattern (``expr.texts``).
    Python computes all other functions, once per distinct list of arguments.

    A host expression that may fail has a second column with the error of each row, or 0. ``unless_failed`` reads both
    columns where the value is used. So a row that a filter excludes, or a branch that CASE does not take, raises no
    error.
    """
    by_relation: dict[str, HostColumns] = {}
    errors = count(COMPUTED)
    triggers = []
    for trigger in program.triggers:
        host = by_relation.setdefault(trigger.relation, HostColumns(errors))
        triggers.append(
            replace(
                trigger,
                parameters=tuple(replace(p, expr=host.lift(p.expr)) for p in trigger.parameters),
                filters=tuple(host.lift(f) for f in trigger.filters),
            )
        )
    return replace(program, triggers=tuple(triggers)), by_relation
