"""Answers SELECTs over a database. It decodes the columns that a SELECT reads, and keeps the decoded columns until a
row of their relation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from freshviews.engine.codes.decoding import repeated
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import CatalogError
from freshviews.records import dataclass
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types.columns import decode_array

if TYPE_CHECKING:
    from freshviews.asking import (
        Answer,
        Asked,
        Limits,
        Names,
        Parameters,
        Question,
        Reading,
        Reads,
        SelectProcesses,
        UnknownRelation,
    )

ROWS = 1 << 16
"""Rows of a record batch."""
KEPT_BYTES = 256 << 20
"""Most bytes of columns that are kept; those of the relation that was first read go first."""


@dataclass
class _Kept:
    """Columns of a relation, by name, as of ``mark``."""

    mark: object
    columns: dict[str, pa.ChunkedArray] = field(default_factory=dict)


class AskedRows:
    """The columns that were read, by relation."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Relation, _Kept] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[Relation, int] = WeakKeyDictionary()
        self._unused = count()

    def key(self, state: Relation) -> object:
        """A value that changes when the rows of a relation do."""
        return self._numbers.setdefault(state, next(self._unused)), *_mark(state)

    def columns(self, state: Relation, names: Sequence[str]) -> pa.Table:
        """Columns of a relation, in its order. The caller holds the lock.

        Raises CatalogError for a trusted table, EvaluationError if an output column cannot be computed.
        """
        if not state.is_stored:
            raise CatalogError(f"table {state.name}: a trusted table does not store its rows, so they cannot be read")
        mark = _mark(state)
        kept = self._kept.get(state)
        if kept is None or kept.mark != mark:
            kept = self._kept[state] = _Kept(mark)
        lacking = [name for name in names if name not in kept.columns]
        if lacking:
            kept.columns.update(_read(state, lacking))
        found = pa.table([kept.columns[name] for name in names], names=list(names))
        if lacking:
            self._forget()
        return found

    def _forget(self) -> None:
        sizes = {one: sum(column.nbytes for column in kept.columns.values()) for one, kept in self._kept.items()}
        total = sum(sizes.values())
        for one, size in sizes.items():
            if total <= KEPT_BYTES:
                break
            del self._kept[one]
            total -= size


def _mark(state: Relation) -> tuple[object, ...]:
    return state.definition, state.decoder, state.updates


def _read(state: Relation, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Decode some columns of all rows."""
    decoder = state.decoder
    columns = [column for column in decoder.columns if column.name in names]
    arrays: dict[str, list[pa.Array]] = {column.name: [] for column in columns}
    source = state.ordered(ROWS) if isinstance(state, ViewState) else state.batches(ROWS)
    for batch in repeated(source, ROWS):
        for column in columns:
            values = decode_array(column.type, batch.columns[column.name], decoder.dictionary, column.nullable)
            arrays[column.name].append(values)
    return {name: pa.chunked_array(parts, decoder.schema.field(name).type) for name, parts in arrays.items()}


@dataclass(frozen=True)
class AskedDatabase:
    """The relations of a database, as a SELECT reads them. ``captured``: the relations and the version; called with the
    lock."""

    rows: AskedRows
    lock: RLock
    captured: Callable[[], tuple[Relations, int]]

    def relations(self, names: Names) -> Asked | UnknownRelation:
        """As ``asking.Source``."""
        from freshviews.asking import relations_named

        with self.lock:
            catalog = self.captured()[0].catalog
        return relations_named(names, catalog)

    def read(self, names: Names, asked: Asked, reads: Reads) -> Reading | None:
        """As ``asking.Source``. The lock is held while rows are read."""
        from freshviews.asking import Reading, relations_named

        with self.lock:
            now, version = self.captured()
            if relations_named(names, now.catalog) != asked:
                return None
            tables = {}
            for name, relation, columns in reads:
                state = now.get(relation)
                assert state is not None
                tables[name] = self.rows.key(state), self.rows.columns(state, columns)
            return Reading(version, tables)


def question_in(text: SqlText, query: Node, stored: bool = False) -> Question:
    """A SELECT that is parsed. ``stored``: a statement stores its rows."""
    from freshviews.asking import Question

    return Question(text, query, stored=stored)


def answered(
    database: AskedDatabase,
    query: str | Question,
    parameters: Parameters = None,
    limits: Limits | None = None,
    processes: SelectProcesses | None = None,
) -> Answer:
    """The answer of a SELECT, given as text or as a tree; it is translated and runs without the lock. ``limits``: what
    it may take. ``processes``: where it is computed; None: in this process."""
    # Imported here: it takes longer than all else that opening a database needs.
    from freshviews.asking import Answer, Limits, bound, known, names_of, question_of, run, translated

    if processes is not None:
        return Answer(*processes.answer(query, parameters, database, limits or Limits()))
    question = question_of(query) if isinstance(query, str) else query
    values, kinds = bound(question, parameters)
    names, found = names_of(question), None
    while found is None:
        asked = known(question, database.relations(names))
        translation = translated(question, asked, kinds)
        found = database.read(names, asked, translation.reads)
    tables = {name: table for name, (_, table) in found.tables.items()}
    return Answer(run(translation, tables, values, limits), found.version)
