"""Runs the statements of a script in order. They define relations, change rows, or ask for rows.

If a statement fails, earlier commits of the script stay, and the exception says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import TableDef
from freshviews.catalog.known_functions import calling
from freshviews.catalog.nesting import TOO_DEEP, room
from freshviews.catalog.timezone import in_time_zone
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import keep_strings
from freshviews.engine.commit.batch import Parts
from freshviews.engine.commit.data.changes import NOTHING, Changes, Effect, Incoming, incoming
from freshviews.engine.commit.data.counts import RowCounts
from freshviews.engine.interrupts import after_commit
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import FreshviewsError, InterruptedAfterCommit, SqlError, hiding_secrets
from freshviews.records import dataclass
from freshviews.sql.statements.data import (
    Insert,
    change_of,
    check_found,
    insert_of,
    merge_of,
    source_of,
    target_of,
)
from freshviews.sql.statements.ddl import table_from_select
from freshviews.sql.statements.parameters import give, given_to
from freshviews.sql.statements.units import Unit, slice_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Doors:
    """The functions of the database that a script calls. Its lock is held."""

    catalog: Callable[[], Catalog]
    table: Callable[[str], TableState]
    dictionary: Dictionary
    version: Callable[[], int]
    define: Callable[[str, Sequence[Node], str], None]
    """Executes definitions of a script, and logs the text of these."""
    whole: Callable[[], AbstractContextManager[None]]
    """A step that no signal handler interrupts; Ctrl-C ends it where it looks, as it changes nothing."""
    commit: Callable[[Parts], int]
    answer: Callable[[SqlText, Node, Sequence[Any] | Mapping[str, Any]], pa.Table]
    """The rows of a SELECT, with values for its parameters."""
    create: Callable[[str, pa.Table], int]
    """Makes a table of rows, and returns the version."""
    ask: Callable[[SqlText, Node, Sequence[Any] | Mapping[str, Any]], Any]
    """The result of a question."""


@hiding_secrets
def run_script(
    script: str, units: Sequence[Unit], parameters: Sequence[Any] | Mapping[str, Any], doors: Doors
) -> Any:
    """The result of the last statement: ``RowCounts``, the answer to a question, or None."""
    text = SqlText(script)
    for unit in units:
        for node in unit.nodes if unit.kind == "definitions" else ():
            parameter = node.find(exp.Placeholder)
            if parameter is not None:
                raise text.unsupported(parameter, "a parameter in a definition", "write the value as a constant")
    give(text, [node for unit in units for node in unit.nodes], parameters)
    result: Any = None
    done, changes = 0, False  # The number of the last statement that took effect; whether any is more than a question.
    try:
        for unit in units:
            result = _unit(script, text, unit, doors, len(units) == 1)
            done, changes = unit.last, changes or unit.kind != "question"
    except FreshviewsError as error:
        if done:
            message = f"{error}; {_took_effect(done)}, so the version is {doors.version():,}"
            error.args = (message, *error.args[1:])
        raise
    except InterruptedAfterCommit as late:
        if len(units) > 1:
            late.add_note(_took_effect(unit.last))
        raise
    except KeyboardInterrupt as error:
        if changes:
            raise after_commit(error, doors.version(), _took_effect(done)) from None
        raise
    return result


def _took_effect(last: int) -> str:
    return f"{'statement 1' if last == 1 else f'statements 1 to {last}'} of the script took effect"


def _unit(script: str, text: SqlText, unit: Unit, doors: Doors, alone: bool) -> Any:
    if unit.kind == "definitions":
        doors.define(script, unit.nodes, script if alone else slice_of(script, unit.nodes))
        return None
    if unit.kind == "question":
        return doors.ask(text, unit.nodes[0], given_to(text, unit.nodes[0]))
    if unit.kind == "table":
        name = table_from_select(text, unit.nodes[0], doors.catalog())
        rows = doors.answer(text, unit.nodes[0].expression, given_to(text, unit.nodes[0]))
        return RowCounts(rows.num_rows, 0, 0, doors.create(name, rows))
    transaction = _Transaction(text, doors)
    for node in unit.nodes:
        transaction.add(node)
    return transaction.end(unit.commits)


class _Transaction:
    """The signed rows of statements that become one version."""

    def __init__(self, text: SqlText, doors: Doors) -> None:
        self._text = text
        self._doors = doors
        self._parts: dict[TableState, list[Encoded]] = {}
        self._found = doors.version()
        self._inserted = self._deleted = self._updated = 0

    def add(self, node: Node) -> None:
        """Add the effect of a statement."""
        try:
            catalog = self._doors.catalog()
            with room(), calling(catalog.functions), in_time_zone(catalog.timezone):
                self._add(node)
        except RecursionError:
            raise self._text.error(node, TOO_DEEP) from None
        except SqlError as error:
            if error.line:
                raise
            raise SqlError(str(error), *self._text.at(node)) from None

    def _add(self, node: Node) -> None:
        text, doors = self._text, self._doors
        definition = target_of(text, node, doors.catalog())
        table = doors.table(definition.name)
        if not isinstance(node, exp.Insert) or node.args.get("conflict") is not None:
            check_found(text, node, definition, table.has_window)
        effect: Callable[[Changes, Incoming], Effect]
        if isinstance(node, exp.Insert):
            insert = insert_of(text, node, definition)
            query, effect = insert.query, partial(_inserted, insert)
        elif isinstance(node, exp.Merge):
            query, effect = source_of(text, node), partial(_merged, text, node, definition)
        else:
            change = change_of(text, node, definition)
            query = change.query
            effect = lambda changes, found: (  # noqa: E731
                changes.of_change(change) if query is None else changes.of_old_and_new(change, found)
            )
        answer = None if query is None else self._answer(query, node)
        with doors.whole():
            changes = Changes(table, doors.dictionary, self._parts.get(table, ()))
            made = effect(changes, NOTHING if answer is None else incoming(answer, doors.dictionary))
            for piece in made.rows:
                if len(piece.batch):
                    self._parts.setdefault(table, []).append(piece)
                    keep_strings(piece.batch, doors.dictionary)
        self._inserted += made.inserted
        self._deleted += made.deleted
        self._updated += made.updated

    def end(self, commits: bool) -> RowCounts:
        """Make the version, or none if nothing changes or the transaction is rolled back."""
        doors = self._doors
        if not commits or not self._parts:
            return RowCounts(0, 0, 0, doors.version())
        if doors.version() != self._found:
            raise FreshviewsError(
                "a signal handler changed the database while the statement was computed, so the statement had no "
                "effect; execute it again"
            )
        version = doors.commit([*self._parts.items()])
        return RowCounts(self._inserted, self._deleted, self._updated, version)

    def _answer(self, query: Node, node: Node) -> pa.Table:
        """The rows of a SELECT inside a statement. Raises SqlError if it reads what the open transaction changed."""
        catalog = self._doors.catalog()
        read = [table for named in query.find_all(exp.Table) for table in _tables_of(named.name, catalog)]
        changed = next((table.name for table in self._parts if table.name.lower() in read), None)
        if changed is not None:
            message = f"this SELECT reads table {changed}, as it was before the transaction changed it; COMMIT first"
            raise self._text.error(node, message)
        return self._doors.answer(self._text, query, given_to(self._text, query))


def _inserted(insert: Insert, changes: Changes, found: Incoming) -> Effect:
    rows = changes.of_rows(insert) if insert.rows is not None else changes.of_answer(insert, found)
    if insert.merge is None:
        return Effect((rows,), inserted=len(rows.batch))
    return changes.of_conflict(insert, insert.merge, rows.batch)


def _merged(text: SqlText, node: exp.Merge, table: TableDef, changes: Changes, found: Incoming) -> Effect:
    merge = merge_of(text, node, table, found.columns)
    keys = [merge.source.column(column).name for column in merge.source.columns]
    return changes.of_merge(merge, dict(zip(keys, found.codes, strict=True)), found.rows)


def _tables_of(name: str, catalog: Catalog) -> list[str]:
    """The tables, in lower case, that a table or view reads."""
    found = catalog.named(name)
    if found is None or isinstance(found, TableDef):
        return [name.lower()]
    return [table for one in found.inputs for table in _tables_of(one, catalog)]
