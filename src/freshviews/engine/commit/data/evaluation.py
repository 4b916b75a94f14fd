"""Computes the expressions of an INSERT, UPDATE or similar statement for all rows at once, and checks the new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.defaults import default_code
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import BatchError, EvaluationError, shown
from freshviews.expr.host_evaluation import evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.kernel.machine.interruption import FEW, INTERRUPTION
from freshviews.records import dataclass
from freshviews.sql.names.scope import Source
from freshviews.types import NULL, SqlType
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import NULL_REFUSED, constant_code, number_code, too_long

_MOST_KEYS = 100_000
_FOUND = ("STRING", "DATE", "TIMESTAMP", "BOOLEAN")

Columns = Mapping[str, Codes]
"""Codes by the key of a column (``Source.column``)."""
Named = Callable[[int], str]
"""The words for a row in an error, by its position."""


def columns_of(source: Source, batch: CodeBatch) -> dict[str, Codes]:
    """The columns of a batch under the keys of a source."""
    return {source.column(column).name: batch.columns[column.name] for column in source.columns}


def terms_of(condition: Expr) -> Iterator[Expr]:
    """The terms of a conjunction."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from terms_of(part)
    else:
        yield condition


@dataclass(frozen=True)
class Evaluation:
    """Computes expressions for a statement that changes a table."""

    table: TableState
    dictionary: Dictionary

    def holds(self, condition: Expr | None, columns: Columns, rows: int, named: Named) -> Codes:
        """The positions of the rows for which a condition is true. Raises EvaluationError."""
        if condition is None:
            return np.arange(rows)
        return np.flatnonzero(self.codes(condition, columns, rows, named) == 1)

    def codes(self, expr: Expr, columns: Columns, rows: int, named: Named, column: str = "") -> Codes:
        """The codes of an expression, for a ``column``. Raises EvaluationError, which names the row and the column."""
        if isinstance(expr, Column):
            return columns[expr.name]
        if not rows:
            return np.empty(0, np.int64)
        if isinstance(expr, Literal):
            return np.full(rows, self._literal(expr), np.int64)
        evaluate, found = evaluator_for(expr, self.dictionary), []
        for at in range(0, rows, FEW):
            INTERRUPTION.raise_if_unchanged()
            codes, failures = evaluate({name: codes[at : at + FEW] for name, codes in columns.items()})
            found.append(codes)
            for row in failures:
                name, failure = self.table.name, failures[row]
                where = f", column {column}" if column else ""
                raise EvaluationError(
                    f"table {name}{where}: the statement cannot be computed for {named(at + row)}: {failure.reason}",
                    table=name,
                    column=column or None,
                    row=at + row,
                    rule=failure.reason,
                )
        return np.concatenate(found)

    def _literal(self, literal: Literal) -> int:
        return constant_code(literal.type, literal.value, self.dictionary)

    def new_rows(
        self, values: Mapping[str, Expr | None], old: Columns, columns: Columns, rows: int, named: Named
    ) -> dict[str, Codes]:
        """The new rows of the table: ``values`` by column, None for its DEFAULT, else the ``old`` code.

        Raises BatchError if a row does not fit.
        """
        made: dict[str, Codes] = {}
        for column in self.table.definition.columns:
            if column.name not in values:
                made[column.name] = old[column.name]
                continue
            value = values[column.name]
            if value is None:
                made[column.name] = np.full(rows, default_code(column, self.dictionary), np.int64)
            else:
                made[column.name] = self.codes(value, columns, rows, named, column.name)
            self._check(column, made[column.name], named)
        return made

    def _check(self, column: ColumnDef, codes: Codes, named: Named) -> None:
        if not column.nullable:
            absent = np.flatnonzero(codes == NULL)
            if len(absent):
                self._refuse(column, int(absent[0]), None, NULL_REFUSED, named)
        if column.length:
            kinds, first = np.unique(codes, return_index=True)
            for code, row in zip(kinds.tolist(), first.tolist(), strict=True):
                INTERRUPTION.raise_if_unchanged()
                text = "" if code == NULL else self.dictionary.decode(code)
                if len(text) > column.length:
                    self._refuse(column, row, text, too_long(column.length, len(text)), named)

    def _refuse(self, column: ColumnDef, row: int, value: object, reason: str, named: Named) -> None:
        name = self.table.name
        quoted = "" if value is None else f"{shown(value)}: "
        message = f"table {name}, column {column.name}, for {named(row)}: {quoted}{reason}"
        raise BatchError(message, table=name, row=row, column=column.name, value=value, rule=reason)

    # Keys

    def keys_in(self, condition: Expr | None, source: Source) -> list[Codes] | None:
        """The keys of the only rows for which a condition can hold, if it fixes the PRIMARY KEY; else None."""
        stored = self.table.stored
        if condition is None or stored is None or stored.primary_key is None:
            return None
        fixed: dict[str, list[int]] = {}
        for term in terms_of(condition):
            found = self._fixed(term)
            if found is not None:
                fixed.setdefault(found[0], found[1])
        by_name = {column.name: column for column in source.columns}
        lists: list[list[int]] = []
        for name in stored.primary_key.columns:
            values = fixed.get(source.column(by_name[name]).name)
            if values is None or not is_found_by_code(by_name[name].type):
                return None
            codes = np.array(values, np.int64)
            lists.append(codes[fits(codes, by_name[name].type)].tolist())
        if np.prod([float(len(one)) for one in lists]) > _MOST_KEYS:
            return None
        keys = [*product(*lists)]
        return [np.array([key[i] for key in keys], np.int64) for i in range(len(lists))]

    def _fixed(self, term: Expr) -> tuple[str, list[int]] | None:
        """The column that a term compares with constants, and their codes."""
        if not isinstance(term, Call):
            return None
        if term.op == "or":
            sides = [part for part in term.args if not isinstance(part, Literal) or part.value]
            found = [self._fixed(part) for part in sides]
            known = [one for one in found if one is not None]
            if not known or len(known) < len(found) or known[0][0] != known[-1][0]:
                return None
            return known[0][0], [code for _, codes in known for code in codes]
        if term.op != "eq":
            return None
        for one, other in (term.args, term.args[::-1]):
            if isinstance(one, Column) and isinstance(other, Literal):
                code = self.dictionary.find(other.value) if isinstance(other.value, str) else None
                if not isinstance(other.value, str):
                    code = number_code(other.type, other.value)
                return one.name, [] if code is None else [code]
        return None


def is_found_by_code(kind: SqlType) -> bool:
    """True for a type whose values a key is looked up by."""
    return kind.is_integer or kind.is_interval or kind.name in _FOUND


def fits(codes: Codes, kind: SqlType) -> NDArray[np.bool_]:
    """Which of some codes a column of a type can have, without NULL."""
    low, high = kind.bounds if kind.is_integer or kind.is_interval else (NULL + 1, -NULL - 1)
    found: NDArray[np.bool_] = (codes >= low) & (codes <= high) & (codes != NULL)
    return found


def others(places: Codes, count: int) -> Codes:
    """The numbers below ``count`` that are none of some, in order."""
    left = np.ones(count, np.bool_)
    left[places] = False
    return np.flatnonzero(left)


def numbered(columns: Sequence[Codes]) -> Codes:
    """A number for each row, in the order of its codes: equal rows have the same number. ``columns``: at least one."""
    _, found = np.unique(columns[0], return_inverse=True)
    for codes in columns[1:]:
        INTERRUPTION.raise_if_unchanged()
        kinds, places = np.unique(codes, return_inverse=True)
        _, found = np.unique(found * len(kinds) + places, return_inverse=True)
    INTERRUPTION.raise_if_unchanged()
    return found


def pairs_of(left: Sequence[Codes], right: Sequence[Codes]) -> tuple[Codes, Codes]:
    """The positions of equal rows of two tables, by columns of codes, at least one; NULL equals nothing."""
    both = [np.concatenate(pair) for pair in zip(left, right, strict=True)]
    ids = numbered(both)
    known = np.logical_and.reduce([codes != NULL for codes in both])
    count = len(left[0])
    here, there = np.flatnonzero(known[:count]), np.flatnonzero(known[count:])
    order = there[np.argsort(ids[count:][there], kind="stable")]
    sorted_ids = ids[count:][order]
    first = np.searchsorted(sorted_ids, ids[:count][here], "left")
    counts = np.searchsorted(sorted_ids, ids[:count][here], "right") - first
    starts = np.cumsum(counts) - counts
    inside = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    return np.repeat(here, counts), order[np.repeat(first, counts) + inside]
