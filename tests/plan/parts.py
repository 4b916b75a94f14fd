"""Checks of the definition of heavy and light parts (``program.heavy_light``) on the state of the interpreter."""

from __future__ import annotations

from collections import Counter
from typing import Any

from freshviews.program.heavy_light import Partition
from freshviews.program.reference.interpreter import State

Row = dict[str, int]


def check_parts(state: State) -> None:
    """Check size, heavy part, light part and domain partition of every store. AssertionError if one is violated."""
    balancing = state.program.balancing
    assert balancing is not None
    base = state.balances.base
    size = sum(len(state.views[name]) for name in balancing.stores)
    assert base // 4 <= size < base, f"{size} rows under the base {base}"
    for partition in balancing.partitions:
        threshold = base**partition.epsilon
        rows = state.views[partition.view]
        degrees = Counter(tuple(key[i] for i in partition.by) for key in rows)
        heavy = set(state.views[partition.heavy])
        assert heavy <= set(degrees), f"{heavy - set(degrees)} is heavy in {partition.view} without a row"
        for value, degree in degrees.items():
            if value in heavy:
                assert degree >= threshold / 2, f"{value} has {degree} rows, and is heavy at {threshold}"
            else:
                assert degree < 1.5 * threshold, f"{value} has {degree} rows, and is light at {threshold}"
        if partition.subset:
            expected = {key for key in rows if tuple(key[i] for i in partition.by) in heavy}
            assert state.members(partition.view, partition.subset) == expected


def is_heavy(state: State, partition: Partition, key: tuple[int, ...]) -> bool:
    return tuple(key[i] for i in partition.by) in state.views[partition.heavy]


Part = tuple[str, tuple[str, ...], Partition, bool]
"""A part of a view: its name, variables for its key, its partition, and whether it is the heavy part."""


def rows_of(state: State, part: Part) -> list[tuple[Row, int]]:
    """The rows of a part by variable, and their counts."""
    view, variables, partition, heavy = part
    return [
        (dict(zip(variables, key, strict=True)), payload[0])
        for key, payload in state.views[view].items()
        if is_heavy(state, partition, key) == heavy
    ]


def joined(state: State, one: Part, other: Part, key: tuple[str, ...]) -> Any:
    """The counts of a join of two parts, as the rows of a view with the key."""
    shared = [v for v in one[1] if v in other[1]]
    matches: dict[tuple[int, ...], list[tuple[Row, int]]] = {}
    for row, count in rows_of(state, other):
        matches.setdefault(tuple(row[v] for v in shared), []).append((row, count))
    found: Counter[tuple[int, ...]] = Counter()
    for row, count in rows_of(state, one):
        for match, times in matches.get(tuple(row[v] for v in shared), ()):
            values = {**row, **match}
            found[tuple(values[v] for v in key)] += count * times
    return {row: (count,) for row, count in found.items() if count}
