"""Computes which rows an INSERT, UPDATE, DELETE, TRUNCATE or MERGE inserts and deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from freshviews.catalog.catalog import column_named
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.defaults import default_code
from freshviews.engine.codes.encoding import Encoded, TableEncoder
from freshviews.engine.codes.frame_types import sql_type
from freshviews.engine.commit.data.evaluation import (
    Columns,
    Evaluation,
    Named,
    columns_of,
    fits,
    is_found_by_code,
    numbered,
    others,
    pairs_of,
    terms_of,
)
from freshviews.engine.commit.data.target import Target, rows_at
from freshviews.engine.failures import row_text
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import BatchError, SqlError
from freshviews.expr.host_evaluation import evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.nodes import columns_of as names_in
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.records import dataclass
from freshviews.sql.expressions.build import VOID, Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.names.scope import Source
from freshviews.sql.statements.data import Change, Clause, Insert, Merge, is_assignable
from freshviews.sql.statements.parameters import Given
from freshviews.types import NULL, STRING
from freshviews.types.dictionary import Dictionary
from freshviews.types.python_functions import reader_of
from freshviews.types.values import decode_value

_CHUNK = 1 << 20
"""Most pairs of rows that ON is computed for together."""


@dataclass(frozen=True)
class Effect:
    """The signed rows of a statement, and how many rows it inserts, deletes and updates."""

    rows: tuple[Encoded, ...]
    inserted: int = 0
    deleted: int = 0
    updated: int = 0


@dataclass(frozen=True)
class Incoming:
    """The rows that come to a table: their columns, and their codes by column, under unique names."""

    columns: tuple[ColumnDef, ...]
    codes: Sequence[Codes]
    rows: int


NOTHING = Incoming((), (), 0)
"""The rows of a statement without a query."""


def incoming(answer: pa.Table, dictionary: Dictionary) -> Incoming:
    """The rows of an answer as codes. Raises SqlError if a column has no SQL type."""
    columns = []
    voids = [pa.types.is_null(field.type) for field in answer.schema]
    for place, (field, is_void) in enumerate(zip(answer.schema, voids, strict=True)):
        kind = STRING if is_void else sql_type(field.type)
        if kind is None and pa.types.is_interval(field.type):
            raise SqlError(
                f"column {field.name} of the query is an INTERVAL, and a SELECT cannot return an INTERVAL; write the "
                "INTERVAL in VALUES or SET"
            )
        if kind is None:
            raise SqlError(
                f"column {field.name} of the query has type {field.type}, which is not an SQL type; CAST the column"
            )
        columns.append(ColumnDef(f"{place}", kind))
    names = [column.name for column in columns]
    encoder = TableEncoder(TableDef("of the query", tuple(columns)), dictionary)
    encoded = encoder.encode(answer.rename_columns(names), 1)
    named = [
        replace(one, name=field.name, type=VOID if is_void else one.type)
        for one, field, is_void in zip(columns, answer.schema, voids, strict=True)
    ]
    return Incoming(tuple(named), [encoded.batch.columns[name] for name in names], answer.num_rows)


class Changes:
    """Makes the effects of statements on one table. ``waiting``: signed rows of the open transaction."""

    def __init__(self, table: TableState, dictionary: Dictionary, waiting: Sequence[Encoded] = ()) -> None:
        self._table = table
        self._dictionary = dictionary
        self._target = Target(table, waiting)
        self._evaluation = Evaluation(table, dictionary)

    # INSERT

    def of_rows(self, insert: Insert) -> Encoded:
        """The rows of VALUES. Raises BatchError."""
        assert insert.rows is not None
        definition = self._table.definition
        places = {column.name: place for place, column in enumerate(definition.columns)}
        missing = [column for column in definition.columns if column not in insert.columns]
        encoder = self._table.encoder.whole()
        rows = []
        for number, cells in enumerate(insert.rows):
            INTERRUPTION.raise_if_unchanged()
            row: list[Any] = [None] * len(places)
            for column, cell in zip((*insert.columns, *missing), (*cells, *[None] * len(missing)), strict=True):
                row[places[column.name]] = self._default(column) if cell is None else self._constant(cell, number)
            rows.append(tuple(row))
        return encoder.encode(rows, 1)

    def of_answer(self, insert: Insert, found: Incoming) -> Encoded:
        """The rows of a query. Raises SqlError if its columns are not those of the INSERT, BatchError."""
        name = self._table.name
        if insert.by_name:
            columns, order = [], []
            for place, one in enumerate(found.columns):
                column = column_named(self._table.definition.columns, one.name)
                if column is None or column in columns:
                    raise SqlError(
                        f"BY NAME: the query has column {one.name} twice, or table {name} has no such column"
                    )
                columns.append(column)
                order.append(place)
        else:
            columns, order = [*insert.columns], [*range(len(found.columns))]
            if len(columns) != len(order):
                names = ", ".join(column.name for column in columns)
                raise SqlError(
                    f"the query of INSERT has {len(order)} columns, but {name} takes {len(columns)}: {names}"
                )
        source = Source("\x1dq", name, tuple(replace(c, name=f"{i}") for i, c in enumerate(found.columns)))
        keyed = {source.column(c).name: codes for c, codes in zip(source.columns, found.codes, strict=True)}
        values: dict[str, Expr | None] = {column.name: None for column in self._table.definition.columns}
        for column, place in zip(columns, order, strict=True):
            of = source.columns[place]
            if not is_assignable(of.type, column.type):
                raise SqlError(
                    f"column {name}.{column.name} is {column.type} and does not accept {of.type}; write "
                    f"CAST({found.columns[place].name} AS {column.type}) in the query"
                )
            try:
                values[column.name] = cast(source.column(of), column.type)
            except Fault as fault:
                raise SqlError(f"column {name}.{column.name}: {fault}") from None
        made = self._evaluation.new_rows(values, {}, keyed, found.rows, lambda row: f"row {row} of the query")
        return Encoded(CodeBatch(name, made, np.ones(found.rows, np.int64)))

    def _default(self, column: ColumnDef) -> Any:
        value = None if column.default is None else column.default.value
        if value is None and not column.nullable:
            message = f"NOT NULL column {column.name} is not given, and has no DEFAULT"
            raise BatchError(f"table {self._table.name}: {message}", table=self._table.name, column=column.name,
                             rule="NOT NULL")  # fmt: skip
        if value is None or column.type == STRING:
            return value
        return decode_value(column.type, default_code(column, self._dictionary), self._dictionary)

    def _constant(self, cell: Given | Expr, number: int) -> Any:
        if isinstance(cell, Given):
            return cell.value
        if not isinstance(cell, Literal):
            # An expression that may fail, as in CASE.
            one = {"": np.zeros(1, np.int64)}
            codes, failures = evaluator_for(cell, self._dictionary)(one)
            for row in failures:
                message = f"table {self._table.name}, row {number}: {failures[row].reason}"
                raise BatchError(message, table=self._table.name, row=number, rule=failures[row].reason)
            return decode_value(cell.type, int(codes[0]), self._dictionary)
        return reader_of(cell.type)(cell.value)

    # UPDATE, DELETE, TRUNCATE

    def of_change(self, change: Change) -> Effect:
        """The effect of a statement over one table. Raises EvaluationError, BatchError."""
        keys = self._evaluation.keys_in(change.condition, change.target)
        batches = self._target.batches() if keys is None else [self._target.with_keys(keys)]
        parts: list[tuple[CodeBatch, dict[str, Codes] | None]] = []
        for batch in batches:
            INTERRUPTION.raise_if_unchanged()
            columns = columns_of(change.target, batch)
            at = self._evaluation.holds(change.condition, columns, len(batch), self._named(batch))
            if not len(at):
                continue
            found = rows_at(batch, at)
            new = None
            if change.values is not None:
                here = columns_of(change.target, found)
                new = self._evaluation.new_rows(change.values, found.columns, here, len(found), self._named(found))
            parts.append((found, new))
        count = sum(int(found.multiplicities.sum()) for found, _ in parts)
        pieces = [self._signed(found, -1) for found, _ in parts]
        pieces += [self._signed(CodeBatch(found.relation, new, found.multiplicities), 1) for found, new in parts if new]
        if change.values is None:
            return Effect(tuple(pieces), deleted=count)
        return Effect(tuple(pieces), updated=count)

    def of_old_and_new(self, change: Change, found: Incoming) -> Effect:
        """The effect of an UPDATE or DELETE whose rows a query has found: the old rows, then the new values."""
        columns = self._table.definition.columns
        old = {column.name: codes for column, codes in zip(columns, found.codes, strict=False)}
        ones = np.ones(found.rows, np.int64)
        batch = CodeBatch(self._table.name, old, ones)
        if change.values is None:
            return Effect((self._signed(batch, -1),), deleted=found.rows)
        source = Source("\x1dq", self._table.name, tuple(replace(c, name=f"{i}") for i, c in enumerate(found.columns)))
        keyed = {source.column(c).name: codes for c, codes in zip(source.columns, found.codes, strict=True)}
        values: dict[str, Expr | None] = {}
        for name, of in zip(change.values, source.columns[len(columns) :], strict=True):
            column = column_named(columns, name)
            assert column is not None
            if not is_assignable(of.type, column.type):
                message = f"column {self._table.name}.{name} is {column.type} and does not accept {of.type}"
                raise SqlError(f"{message}; write CAST(... AS {column.type})")
            values[name] = cast(source.column(of), column.type)
        new = self._evaluation.new_rows(values, old, keyed, found.rows, self._named(batch))
        pieces = (self._signed(batch, -1), self._signed(CodeBatch(self._table.name, new, ones), 1))
        return Effect(pieces, updated=found.rows)

    # MERGE

    def of_merge(self, merge: Merge, source: Columns, rows: int) -> Effect:
        """The effect of MERGE, whose source has columns by their keys. Raises BatchError if a row of the table matches
        several rows of the source and changes."""
        target = self._target_of(merge, source)
        here = columns_of(merge.target, target)
        at, by = self._matching(merge, here, len(target), source, rows)
        of_kind = {kind: [c for c in merge.clauses if c.kind == kind] for kind in ("matched", "absent", "alone")}
        deletes_all = [(c.condition, c.values) for c in of_kind["matched"]] == [(None, None)]
        several = np.flatnonzero(np.bincount(at, minlength=len(target)) > 1)
        if len(several) and of_kind["matched"] and not deletes_all:
            self._refuse_several(target, int(several[0]))
        alone = others(at, len(target))
        matched_rows = others(alone, len(target)) if deletes_all else at
        found_by = np.zeros(len(matched_rows), np.int64) if deletes_all else by
        both = {name: codes[matched_rows] for name, codes in here.items()}
        if rows:
            both |= {name: codes[found_by] for name, codes in source.items()}
        made = _Made(self, target)
        made.act(of_kind["matched"], matched_rows, both)
        if of_kind["alone"]:
            made.act(of_kind["alone"], alone, {name: codes[alone] for name, codes in here.items()})
        absent = others(by, rows)
        for clause in of_kind["absent"]:
            columns = {name: codes[absent] for name, codes in source.items()}
            named = self._of_source(absent)
            taken = self._evaluation.holds(clause.condition, columns, len(absent), named)
            assert clause.values is not None
            if len(taken):
                some = {name: codes[taken] for name, codes in columns.items()}
                new = self._evaluation.new_rows(clause.values, {}, some, len(taken), self._of_source(absent[taken]))
                made.insert(new, len(taken))
            absent = np.delete(absent, taken)
        return made.effect()

    def of_conflict(self, insert: Insert, merge: Merge, new: CodeBatch) -> Effect:
        """The effect of INSERT ... ON CONFLICT: of several new rows with one key DO NOTHING takes the first, DO UPDATE
        none. Raises BatchError."""
        keys = [new.columns[name] for name in insert.key]
        unknown = np.logical_or.reduce([codes == NULL for codes in keys])
        # A key with a NULL is equal to no other.
        apart = np.where(unknown, np.arange(len(new)), -1)
        _, first = np.unique(numbered([*keys, apart]), return_index=True)
        again = others(first, len(new))
        if len(again) and any(clause.kind == "matched" for clause in merge.clauses):
            name, row, values = self._table.name, int(again[0]), self._named(new)(int(again[0]))
            rule = "a key is given once"
            what = "ON CONFLICT DO UPDATE: several new rows have the key of"
            message = f"table {name}, row {row}: {what} {values}; {rule}"
            raise BatchError(message, table=name, row=row, value=values, rule=rule)
        some = rows_at(new, np.sort(first))
        return self.of_merge(merge, columns_of(merge.source, some), len(some))

    def _target_of(self, merge: Merge, source: Columns) -> CodeBatch:
        """The rows of the table that may match, or all of them."""
        stored = self._table.stored
        if stored is not None and stored.primary_key is not None and all(c.kind != "alone" for c in merge.clauses):
            sides = {left.name: right for left, right in _equal(merge) if isinstance(left, Column)}
            columns = {column.name: column for column in merge.target.columns}
            key = [columns[name] for name in stored.primary_key.columns]
            given = [sides.get(merge.target.column(column).name) for column in key]
            plain = [source[one.name] for one in given if isinstance(one, Column)]
            if len(plain) == len(key) and all(is_found_by_code(column.type) for column in key):
                known = np.ones(len(plain[0]), np.bool_)
                for codes, column in zip(plain, key, strict=True):
                    known &= fits(codes, column.type)
                return self._target.with_keys([codes[known] for codes in plain])
        batches = [*self._target.batches()]
        names = [column.name for column in merge.target.columns]
        empty = np.empty(0, np.int64)
        joined = {name: np.concatenate([empty, *(one.columns[name] for one in batches)]) for name in names}
        counts = np.concatenate([empty, *(one.multiplicities for one in batches)])
        return CodeBatch(self._table.name, joined, counts)

    def _matching(
        self, merge: Merge, here: Columns, count: int, source: Columns, rows: int
    ) -> tuple[Codes, Codes]:
        """The pairs of rows for which ON holds."""
        if not count or not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        sides = _equal(merge)
        if not sides:
            return self._nested(merge, here, count, source, rows)
        nobody: Named = str
        left = [self._evaluation.codes(one, here, count, nobody) for one, _ in sides]
        right = [self._evaluation.codes(one, source, rows, nobody) for _, one in sides]
        at, by = pairs_of(left, right)
        return self._where(merge, here, source, at, by)

    def _where(self, merge: Merge, here: Columns, source: Columns, at: Codes, by: Codes) -> tuple[Codes, Codes]:
        pairs = {name: codes[at] for name, codes in here.items()} | {name: codes[by] for name, codes in source.items()}
        kept = self._evaluation.holds(merge.on, pairs, len(at), lambda row: f"row {int(by[row])} of the source")
        return at[kept], by[kept]

    def _nested(
        self, merge: Merge, here: Columns, count: int, source: Columns, rows: int
    ) -> tuple[Codes, Codes]:
        step = max(_CHUNK // count, 1)
        found = []
        for first in range(0, rows, step):
            some = np.arange(first, min(first + step, rows))
            at, by = np.tile(np.arange(count), len(some)), np.repeat(some, count)
            found.append(self._where(merge, here, source, at, by))
        return np.concatenate([at for at, _ in found]), np.concatenate([by for _, by in found])

    def _refuse_several(self, target: CodeBatch, row: int) -> None:
        name, values = self._table.name, self._named(target)(row)
        rule = "a row of the table matches one row of the source"
        what = "MERGE: several rows of the source match the row"
        advice = "make ON narrower, or the rows of the source distinct"
        raise BatchError(f"table {name}: {what} {values}; {advice}", table=name, value=values, rule=rule)

    def _named(self, batch: CodeBatch) -> Named:
        return lambda row: row_text(self._table, batch, row).removeprefix(" for ")

    def _of_source(self, rows: Codes) -> Named:
        return lambda row: f"row {int(rows[row])} of the source"

    def _signed(self, batch: CodeBatch, sign: int) -> Encoded:
        return Encoded(CodeBatch(batch.relation, batch.columns, batch.multiplicities * sign))

    def act(
        self, clause: Clause, target: CodeBatch, rows: Codes, columns: Columns
    ) -> tuple[Codes, Encoded | None, CodeBatch]:
        """The positions among ``rows`` of the table to which a clause applies, their new rows, and the old ones."""
        named = self._named(rows_at(target, rows))
        taken = self._evaluation.holds(clause.condition, columns, len(rows), named)
        old = rows_at(target, rows[taken])
        new = None
        if clause.values is not None and len(taken):
            some = {name: codes[taken] for name, codes in columns.items()}
            values = self._evaluation.new_rows(clause.values, old.columns, some, len(taken), self._named(old))
            new = self._signed(CodeBatch(self._table.name, values, old.multiplicities), 1)
        return taken, new, old


class _Made:
    """The signed rows of a MERGE while its clauses act."""

    def __init__(self, changes: Changes, target: CodeBatch) -> None:
        self._changes = changes
        self._target = target
        self._going: list[Encoded] = []
        self._coming: list[Encoded] = []
        self._inserted = self._deleted = self._updated = 0

    def act(self, clauses: Sequence[Clause], rows: Codes, columns: Columns) -> None:
        """Apply the first clause that holds to each of some rows of the table."""
        for clause in clauses:
            taken, new, old = self._changes.act(clause, self._target, rows, columns)
            if len(taken):
                count = int(old.multiplicities.sum())
                self._going.append(Encoded(old.negated()))
                if new is None:
                    self._deleted += count
                else:
                    self._coming.append(new)
                    self._updated += count
            rows = np.delete(rows, taken)
            columns = {name: np.delete(codes, taken) for name, codes in columns.items()}

    def insert(self, columns: Mapping[str, Codes], rows: int) -> None:
        self._coming.append(Encoded(CodeBatch(self._target.relation, dict(columns), np.ones(rows, np.int64))))
        self._inserted += rows

    def effect(self) -> Effect:
        return Effect((*self._going, *self._coming), self._inserted, self._deleted, self._updated)


def _equal(merge: Merge) -> list[tuple[Expr, Expr]]:
    """The equalities of ON, each as an expression over the table and one over the source."""
    here = {merge.target.column(column).name for column in merge.target.columns}
    found = []
    for term in terms_of(merge.on):
        if isinstance(term, Call) and term.op == "eq":
            for one, other in (term.args, term.args[::-1]):
                left, right = names_in(one), names_in(other)
                if left and right and here.issuperset(left) and here.isdisjoint(right):
                    found.append((one, other))
                    break
    return found
