"""Implements ``freshviews advise``, which compares the join trees of each view of a script by the cost of updates.

A join tree arranges the tables of a join, and its shape decides what an update costs. The updates are read from a
folder, which has a file ``<table>.csv`` or ``<table>.parquet`` for each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from freshviews.advice.bag_updates import updates_of
from freshviews.advice.enclosure import Spans, kind_of, lifespans, lives_of, of_stream, of_tree
from freshviews.catalog.definitions import TableDef
from freshviews.cli.planned_script import PlannedScript
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.errors import BatchError, FreshviewsError
from freshviews.expr.nodes import Column
from freshviews.plan.crown.free_connex_query import graph_of, prepared
from freshviews.program.reference.scalars import evaluate
from freshviews.query.acyclic import JoinTree
from freshviews.query.join_trees import LIMIT, all_trees, best_tree
from freshviews.query.query import Atom, Query
from freshviews.types import BIGINT
from freshviews.types.arrow_check import columns_of
from freshviews.types.columns import MULTIPLICITY, encode_arrow
from freshviews.types.dictionary import Dictionary

ORDER = "_order"


class StreamError(FreshviewsError):
    """A stream of updates cannot be read."""


def advise(script: PlannedScript, folder: str, trees: int) -> Iterator[str]:
    """Lines of advice, per view that reads only tables. At most ``trees`` join trees of each view are compared.

    A file has the table's columns, a signed ``_multiplicity`` (1 if missing), and ``_order``, the position of the
    update in the whole stream.
    """
    dictionary = Dictionary()
    tables = {table.name: table for table in script.tables}
    blocks = [block for one in script.views for block in one.view.blocks]
    needed = {atom.relation for block in blocks for atom in block.query.atoms if atom.relation in tables}
    batches = _batches({name: TableEncoder(tables[name], dictionary) for name in needed}, Path(folder))
    for one in script.views:
        for i, block in enumerate(one.view.blocks):
            number = f", block {i + 1}" if len(one.view.blocks) > 1 else ""
            yield f"view {one.view.name}{number}"
            if any(atom.relation not in tables for atom in block.query.atoms):
                yield "  the view reads other views, whose updates are not in the stream"
                continue
            if block.query.negated:
                yield "  the view has NOT EXISTS, which join trees do not support"
                continue
            yield from ("  " + line for line in _block(block.query, batches, tables, dictionary, trees))


def _block(
    query: Query,
    batches: Mapping[str, tuple[CodeBatch, Codes]],
    tables: Mapping[str, TableDef],
    dictionary: Dictionary,
    limit: int,
) -> Iterator[str]:
    made = prepared(query)
    spans: dict[str, Spans] = {}
    for atom in made.query.atoms:
        if atom.name not in made.bags:
            spans[atom.name] = lifespans(*_updates(atom, *batches[atom.relation], dictionary))
            continue
        bag = made.bags[atom.name]

        def lives(source: Atom) -> tuple[Codes, Spans]:
            return lives_of(*_updates(source, *batches[source.relation], dictionary))

        changes = updates_of(bag, batches, tables, lives, dictionary)
        spans[atom.name] = lifespans(changes.rows, changes.multiplicities, changes.times)
        of = ", ".join(dict.fromkeys(query.atom(one).relation for one in bag.members))
        changed = f"updates of {of} change {len(changes.rows):,} of its rows"
        yield f"{atom.name} is a bag: {changed}; each change is an update of {atom.name}"
    updates = {name: float(len(one)) for name, one in spans.items()}
    graph = graph_of(made.query, made.free)
    yield f"the stream is {_kind(spans)}; lambda {of_stream(spans):.2f}"
    found: list[tuple[float, JoinTree]] = [(of_tree(tree, spans), tree) for tree in all_trees(graph, limit)]
    least = min(value for value, _ in found)
    by_updates = best_tree(graph, updates)
    chosen = next((t for value, t in found if value == least and t == by_updates), None)
    chosen = chosen or min(found, key=lambda pair: (pair[0], pair[1].height))[1]
    for value, tree in sorted(found, key=lambda pair: pair[0]):
        mark = "  <- take this" if tree == chosen else ""
        yield f"lambda_T {value:10.2f}  height {tree.height}  {line_of(tree, made.query)}{mark}"
    bound = "O(1)" if chosen.height <= 1 else f"O(lambda_T), {least:.2f} on this stream"
    yield f"cost of an update over the chosen tree: {bound} on average"
    yield f"name the tree by TBLPROPERTIES ('freshviews.join_tree' = '{line_of(chosen, made.query)}')"


def line_of(tree: JoinTree, query: Query) -> str:
    """A tree on one line, in the syntax of ``freshviews.join_tree``."""
    names = ", ".join(v for v in query.variables if v in tree.variables)
    label = f"[{names}]" if tree.name is None else tree.name
    below = ", ".join(line_of(child, query) for child in tree.children)
    return f"{label}({below})" if below else label


def _kind(spans: Mapping[str, Spans]) -> str:
    kind = kind_of(spans)
    return "neither insert-only nor first-in-first-out" if kind == "neither" else kind


def _updates(
    atom: Atom, batch: CodeBatch, times: Codes, dictionary: Dictionary
) -> tuple[Codes, Codes, Codes]:
    """The updates of an atom: the variables of rows that pass its filters, the multiplicities, and the times."""
    if all(isinstance(c, Column) for c in atom.columns) and not atom.filters:
        columns = [batch.columns[c.name] for c in atom.columns if isinstance(c, Column)]
        rows = np.column_stack(columns) if columns else np.empty((len(batch), 0), np.int64)
        return rows, batch.multiplicities, times
    kept, values = [], []
    for i in range(len(batch)):
        row = {name: int(column[i]) for name, column in batch.columns.items()}
        if all(evaluate(f, row, dictionary) == 1 for f in atom.filters):
            kept.append(i)
            values.append([evaluate(c, row, dictionary) for c in atom.columns])
    found = np.array(values, np.int64).reshape(len(kept), len(atom.columns))
    return found, batch.multiplicities[kept], times[kept]


def _batches(encoders: Mapping[str, TableEncoder], folder: Path) -> dict[str, tuple[CodeBatch, Codes]]:
    """The updates of each table in order, with their times: positions in the whole stream."""
    encoded: dict[str, CodeBatch] = {}
    orders: dict[str, Codes] = {}
    for name, encoder in encoders.items():
        path, table = _read(folder, name)
        if ORDER not in table.column_names:
            raise StreamError(f"{path} needs a column {ORDER}, a BIGINT with the position of each update in the stream")
        try:
            orders[name] = encode_arrow(BIGINT, table[ORDER], Dictionary(), nullable=False)
        except (TypeError, ValueError) as error:
            raise StreamError(f"{path}, column {ORDER}: {error}; the position of an update must be a BIGINT") from None
        rows = table.drop_columns([ORDER])
        sign = 0 if MULTIPLICITY in rows.column_names else 1
        try:
            encoded[name] = encoder.encode(rows, sign).batch
        except BatchError as error:
            raise StreamError(f"{path}: {error}") from None
    everything = np.concatenate([np.empty(0, np.int64), *orders.values()])
    ranks = np.empty(len(everything), np.int64)
    ranks[np.argsort(everything, kind="stable")] = np.arange(len(everything))
    found = {}
    first = 0
    for name, order in orders.items():
        times = ranks[first : first + len(order)]
        first += len(order)
        by_time = np.argsort(times, kind="stable")
        batch = encoded[name]
        columns = {column: codes[by_time] for column, codes in batch.columns.items()}
        found[name] = CodeBatch(name, columns, batch.multiplicities[by_time]), times[by_time]
    return found


def _read(folder: Path, name: str) -> tuple[Path, pa.Table]:
    """The file with the updates of a table, and its rows."""
    for path in (folder / f"{name}.parquet", folder / f"{name}.csv"):
        if path.exists():
            try:
                found = pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
                columns_of(found)
                return path, found
            except (pa.ArrowException, OSError, ValueError) as error:
                kind = path.suffix[1:]
                reason = "it is a directory" if path.is_dir() else str(error).partition("\n")[0]
                columns = f"with {ORDER} and the columns of table {name}"
                raise StreamError(f"{path} cannot be read: {reason}; a {kind} file {columns} is accepted") from None
    raise StreamError(f"{folder} has no {name}.csv or {name}.parquet with the updates of table {name}")


MOST_TREES = LIMIT
"""Most join trees of a view that are compared."""
