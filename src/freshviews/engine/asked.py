"""Answers SELECTs over a database, and keeps columns that were read until their relation changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.functions import FunctionDef
from freshviews.engine.codes.decoding import repeated
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import CatalogError
from freshviews.types.columns import decode_array

if TYPE_CHECKING:
    from freshviews.asking import Answer, AskedRelation, Limits, Parameters, Question, Translation

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

    def columns(self, state: Relation, names: Sequence[str]) -> pa.Table:
        """Columns of a relation, in its order. The caller holds the lock.

        Raises CatalogError for a trusted table, EvaluationError if an output column cannot be computed.
        """
        if not state.is_stored:
            raise CatalogError(f"table {state.name}: a trusted table does not store its rows, so they cannot be read")
        mark = state.definition, state.decoder, state.updates
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


def answered(
    rows: AskedRows,
    lock: RLock,
    captured: Callable[[], tuple[Relations, int]],
    query: str | Question,
    parameters: Parameters = None,
    limits: Limits | None = None,
) -> Answer:
    """The answer of a SELECT, given as text or as a tree. ``captured``: the relations and the version; called with
    the lock, which is held while rows are read, not while the SELECT is translated or runs. ``limits``: what it may
    take."""
    # Imported here: it takes longer than all else that opening a database needs.
    from freshviews.asking import Answer, bound, functions_of, question_of, relations_of, run, translated

    question = question_of(query) if isinstance(query, str) else query

    def _asked(catalog: Catalog) -> tuple[tuple[AskedRelation, ...], tuple[FunctionDef, ...]]:
        found = relations_of(question, catalog)
        return found, functions_of(question, catalog, [one.name for one in found if one.plain])

    values, kinds = bound(question, parameters)
    with lock:
        relations, _ = captured()
        asked = _asked(relations.catalog)
    while True:
        # Without the lock: a long text takes long.
        translation = translated(question, asked[0], kinds, asked[1])
        with lock:
            relations, version = captured()
            now = _asked(relations.catalog)
            if now == asked:
                tables = _tables(rows, relations, translation)
                break
            asked = now
    return Answer(run(translation, tables, values, limits), version)


def _tables(rows: AskedRows, relations: Relations, translation: Translation) -> Mapping[str, pa.Table]:
    found = {}
    for name, relation, columns in translation.reads:
        state = relations.get(relation)
        assert state is not None
        found[name] = rows.columns(state, columns)
    return found
