"""Computes how the bags of a cyclic query change when its tables change.

A bag is a group of relations that are joined first, so that the query over the bags has no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from freshviews.advice.enclosure import FOREVER, Spans
from freshviews.catalog.definitions import ColumnDef, TableDef, ViewDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.views.maintained import MaintainedView
from freshviews.expr.nodes import Column
from freshviews.plan.crown.free_connex_query import BagQuery
from freshviews.query.block import Block, Output
from freshviews.query.query import Aggregate, Atom
from freshviews.records import dataclass
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Updates:
    """Signed rows of one relation, shape (n, columns), in order, with the times of their updates."""

    rows: Codes
    multiplicities: Codes
    times: Codes


Lives = Callable[[Atom], tuple[Codes, Spans]]
"""Returns the rows of an atom and their lifespans."""


def updates_of(
    bag: BagQuery,
    batches: Mapping[str, tuple[CodeBatch, Codes]],
    tables: Mapping[str, TableDef],
    lives: Lives,
    dictionary: Dictionary,
) -> Updates:
    """The updates of a bag; ``batches``: updates by table, with their times.

    ``first_order`` maintains each bag while the stream is replayed, one update at a time. The rows of a guard are
    distinct, so most updates do not change a guard. For example, the guard with the values ``a`` of R(a, b) changes
    only when the first row with a value appears, or the last row with it vanishes.
    """
    query = replace(bag.query, aggregates=(Aggregate("count", "integer"),))
    columns = tuple(ColumnDef(v, BIGINT) for v in query.free)
    outputs = tuple(Output(v, Column(v, BIGINT)) for v in query.free)
    view = ViewDef(query.name, columns, (Block("bag", query, outputs),), "first_order")
    inputs: dict[str, TableDef] = {}
    found: dict[str, tuple[CodeBatch, Codes]] = {}
    for atom in query.atoms:
        if atom.name in bag.guards:
            inputs[atom.relation] = TableDef(atom.relation, tuple(ColumnDef(v, BIGINT) for v in atom.variables))
            found[atom.relation] = _projected(atom, bag.guards[atom.name], lives)
        else:
            inputs[atom.relation] = tables[atom.relation]
            found[atom.relation] = batches[atom.relation]
    maintained = MaintainedView(view, inputs, dictionary)
    maintained.prepare()
    try:
        return _run(maintained, found, len(columns))
    finally:
        maintained.close()


def _run(maintained: MaintainedView, found: Mapping[str, tuple[CodeBatch, Codes]], width: int) -> Updates:
    for batch, _ in found.values():
        maintained.apply(_from_the_first(batch))
    maintained.wants_change = True
    names = list(found)
    times = np.concatenate([found[name][1] for name in names])
    relation = np.repeat(np.arange(len(names)), [len(found[name][1]) for name in names])
    place = np.concatenate([np.arange(len(found[name][1])) for name in names])
    pieces = [np.empty((0, width + 1), np.int64)]
    when: list[Codes] = []
    for at in np.argsort(times, kind="stable").tolist():
        batch, i = found[names[relation[at]]][0], int(place[at])
        one = {name: column[i : i + 1] for name, column in batch.columns.items()}
        maintained.apply(CodeBatch(batch.relation, one, batch.multiplicities[i : i + 1]))
        change = maintained.take_change()
        if len(change):
            pieces.append(np.column_stack([*change.columns.values(), change.multiplicities]))
            when.append(np.full(len(change), times[at], np.int64))
    rows = np.concatenate(pieces)
    return Updates(rows[:, :-1], rows[:, -1], np.concatenate([np.empty(0, np.int64), *when]))


def _projected(guard: Atom, source: Atom, lives: Lives) -> tuple[CodeBatch, Codes]:
    """The updates of a guard: a row is inserted with the first source row that has its columns, and deleted with the
    last."""
    places = [source.variables.index(v) for v in guard.variables]
    rows, spans = lives(source)
    rows = rows[:, places]
    goes = spans.ends != FOREVER
    times = np.concatenate([spans.starts, spans.ends[goes]])
    every = np.concatenate([rows, rows[goes]])
    signs = np.concatenate([np.ones(len(rows), np.int64), -np.ones(int(goes.sum()), np.int64)])
    order = np.argsort(times, kind="stable")
    groups = np.unique(every, axis=0, return_inverse=True)[1].reshape(-1)[order]
    by_group = np.argsort(groups, kind="stable")
    after = np.cumsum(signs[order][by_group])
    first = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    offset = np.repeat(after[first] - signs[order][by_group][first], np.diff(first, append=len(after)))
    after = after - offset
    before = after - signs[order][by_group]
    changes = np.sort(by_group[(before == 0) != (after == 0)])
    kept = order[changes]
    columns = {v: np.ascontiguousarray(every[kept, i]) for i, v in enumerate(guard.variables)}
    return CodeBatch(guard.relation, columns, signs[kept]), times[kept]


def _from_the_first(batch: CodeBatch) -> CodeBatch:
    """Rows that existed before the first update: rows deleted more often than inserted."""
    if len(batch) == 0:
        return batch
    rows = np.column_stack(list(batch.columns.values()))
    groups = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(groups, kind="stable")
    total = np.cumsum(batch.multiplicities[order])
    first = np.flatnonzero(np.diff(groups[order], prepend=-1))
    before = total[first] - batch.multiplicities[order][first]
    least = np.minimum(np.minimum.reduceat(total, first) - before, 0)
    old = least < 0
    at = order[first[old]]
    return CodeBatch(batch.relation, {name: column[at] for name, column in batch.columns.items()}, -least[old])
