"""Deltas of triangle counts by hash indexes and by tries: steps and CPU time.

``python -m benchmarks.counting.slice_intersections`` prints them. An update of one of ``r(a, b)``, ``s(b, c)``,
``t(c, a)`` changes the count of triangles by the intersection of two slices of the other two relations.
``first_order`` iterates over the smaller slice and probes the larger one. It is compared with a leapfrog join of the
same slices in ordered trees (``kernel.btree.tree``, ``kernel.trie.iterator``), two per relation, as there are two hash
indexes per relation; and with ``incremental_trie_join``, which stores such trees and a trace of all probes. The program
asserts that all counts are equal.

FRESHVIEWS_ROWS sets the rows of all relations together (300,000). ``ranges``: every ``b`` has a thousand ``c`` in one
range of values and every ``a`` a thousand in another, so that a leapfrog join finds the empty intersection at its
first step. Updates come in batches of 1,000, a quarter of them deletes; times are CPU times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.counting.cyclic_steps import TRIANGLE, edges_of, script_of
from benchmarks.counting.steps import compiled_state, run
from benchmarks.workloads.graphs import Edges
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.memory.mem import jit, load, release
from freshviews.kernel.trie.iterator import (
    iter_at_end,
    iter_begin,
    iter_key,
    iter_next,
    iter_open,
    iter_seek_lub,
    new_iterator,
)

BATCHES = 30
ROWS = 1000
HUB = 1000
"""Values of a hub of ``ranges``."""
STRATEGIES = ("first_order", "incremental_trie_join")
CASES = ("uniform", "skew 2.5", "ranges")
Update = tuple[str, Edges, int]


@jit
def _at(it: int, root: int, prefix: int) -> bool:
    """Move an iterator to the first value below a prefix; returns whether there is one."""
    iter_begin(it, root)
    iter_open(it, 0)
    if iter_at_end(it, 0):
        return False
    iter_seek_lub(it, 0, prefix)
    if iter_at_end(it, 0) or iter_key(it, 0) != prefix:
        return False
    iter_open(it, 1)
    return True


@jit
def in_common(one: int, other: int, roots: int, lefts: int, rights: int, rows: int) -> tuple[int, int]:
    """The number of common values of the slices ``left`` of one tree and ``right`` of another, over all pairs, and of
    the operations of iterators; ``roots``: addresses of both roots."""
    found = 0
    steps = 0
    for i in range(rows):
        steps += 2
        if not _at(one, load(roots, 0), load(lefts, i)) or not _at(other, load(roots, 1), load(rights, i)):
            continue
        while not iter_at_end(one, 1) and not iter_at_end(other, 1):
            x, y = iter_key(one, 1), iter_key(other, 1)
            steps += 1
            if x == y:
                found += 1
                iter_next(one, 1)
            elif x < y:
                iter_seek_lub(one, 1, y)
            else:
                iter_seek_lub(other, 1, x)
    return found, steps


def tables_of(case: str, rows: int) -> dict[str, Edges]:
    """Rows of each relation."""
    if case != "ranges":
        edges = edges_of(rows // 3, case == "uniform")
        return dict.fromkeys(TRIANGLE, edges)
    hubs = np.repeat(np.arange(rows // 3 // HUB), HUB)
    values = np.tile(np.arange(HUB), rows // 3 // HUB)
    pairs = np.random.default_rng(1).integers(0, hubs[-1] + 1, (rows // 3, 2))
    below, beyond = np.column_stack([hubs, values]), np.column_stack([HUB + values, hubs])
    return {"r": np.unique(pairs, axis=0), "s": below, "t": beyond}


def updates_of(tables: dict[str, Edges], case: str) -> Iterator[Update]:
    """Batches of new rows, and of existing rows; of ``ranges``, of ``r`` alone."""
    random = np.random.default_rng(2)
    there = {name: set(map(tuple, edges.tolist())) for name, edges in tables.items()}
    for i in range(BATCHES):
        name = "r" if case == "ranges" else list(tables)[i % 3]
        if i % 4 == 0:
            rows = np.array(sorted(there[name]))[random.permutation(len(there[name]))[:ROWS]]
            there[name].difference_update(map(tuple, rows.tolist()))
            yield name, rows, -1
            continue
        made = np.column_stack([random.choice(tables[name][:, side], ROWS) for side in (0, 1)])
        fresh = [row for row in dict.fromkeys(map(tuple, made.tolist())) if row not in there[name]]
        there[name].update(fresh)
        yield name, np.array(fresh, np.int64).reshape(-1, 2), 1


def by_strategy(strategy: str, tables: dict[str, Edges], case: str, counted: bool) -> tuple[int, float, float]:
    """By a strategy: triangles that the updates made, and seconds and steps of an update."""
    script = script_of("COUNT(*) AS n", TRIANGLE, strategy)
    state, read = compiled_state(script, "cyclic", counted=counted)

    def apply(name: str, rows: Edges, sign: int) -> None:
        columns = {v: np.ascontiguousarray(rows[:, i]) for i, v in enumerate(TRIANGLE[name])}
        run(state, name, {v: columns[v] for v in read[name]}, sign)

    for name, rows in tables.items():
        apply(name, rows, 1)
    state.enter_pending()
    first, steps, edits, seconds = _count(state), int(state.status[STATUS_STEPS]), 0, 0.0
    for name, rows, sign in updates_of(tables, case):
        start = time.process_time()
        apply(name, rows, sign)
        seconds += time.process_time() - start
        edits += len(rows)
    found = _count(state) - first, seconds / edits, (int(state.status[STATUS_STEPS]) - steps) / edits
    state.close()
    return found


def _count(state: BlockState) -> int:
    # A raw row is the payload and the multiplicity.
    return sum(int(rows[0, 0]) for rows in state.rows(1))


def by_tries(tables: dict[str, Edges], case: str) -> tuple[int, float, float, float]:
    """By tries: triangles that the updates made, seconds of an update in intersections and in edits of trees, and
    operations."""
    trees: dict[tuple[str, int], OrderedTree] = {}
    for name, rows in tables.items():
        for first in (0, 1):
            trees[name, first] = OrderedTree(2)
            trees[name, first].load([np.ascontiguousarray(rows[:, first]), np.ascontiguousarray(rows[:, 1 - first])])
    one, other = new_iterator(2), new_iterator(2)
    names = list(tables)
    found = operations = edits = 0
    joined = edited = 0.0
    for name, rows, sign in updates_of(tables, case):
        # r(a, b): the slice of s by its first column, b, and of t by its second one, a; likewise s and t.
        after, before = names[(names.index(name) + 1) % 3], names[(names.index(name) + 2) % 3]
        lefts, rights = np.ascontiguousarray(rows[:, 1]), np.ascontiguousarray(rows[:, 0])
        start = time.process_time()
        roots = np.array([trees[after, 0].root, trees[before, 1].root], np.int64)
        places = [address_of(column)[0] for column in (roots, lefts, rights)]
        matches, steps = in_common(one, other, *places, len(rows))
        middle = time.process_time()
        signs = np.full(len(rows), sign, np.int64)
        trees[name, 0].apply([rights, lefts], signs)
        trees[name, 1].apply([lefts, rights], signs)
        edited += time.process_time() - middle
        joined += middle - start
        found += sign * matches
        operations += steps
        edits += len(rows)
    for tree in trees.values():
        tree.close()
    release(one)
    release(other)
    return found, joined / edits, edited / edits, operations / edits


def main() -> None:
    rows = int(os.environ.get("FRESHVIEWS_ROWS", 300_000))
    for case in ("warm", *CASES):
        # The first call also compiles.
        tables = tables_of("uniform", 3000) if case == "warm" else tables_of(case, rows)
        count, joined, edited, operations = by_tries(tables, case)
        times = f"{joined * 1e6:.2f} us intersecting, {edited * 1e6:.2f} us editing"
        shown = [f"tries: {times}, {operations:,.1f} operations"]
        for strategy in STRATEGIES:
            same, seconds, _ = by_strategy(strategy, tables, case, counted=False)
            steps = by_strategy(strategy, tables, case, counted=True)[2]
            assert same == count, (case, strategy, same, count)
            shown.append(f"{strategy}: {seconds * 1e6:.2f} us, {steps:,.1f} steps")
        if case != "warm":
            print(f"{case}, an update: {'; '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
