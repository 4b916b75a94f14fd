from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash import table
from freshviews.kernel.hash.index import slice_of
from freshviews.kernel.hash.table import INDEX_LIST, KEY, LIVE, is_zero, remove_row, row_at, upsert
from freshviews.kernel.memory.mem import load, load32, store
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import threshold_tree
from freshviews.kernel.ordered.index import DESCENDING, INTEGER_ORDER, KINDS, TOP
from freshviews.kernel.ordered.threshold_tree import (
    BEFORE,
    ITSELF,
    NEGATED,
    NULLABLE,
    NUMBER,
    OVERFLOWN,
    ROOT_NOW,
    ROWS,
    SELECTED,
    THROUGH,
    TREE_WORDS,
    VALUE,
    WEIGHT,
    threshold_change,
    threshold_insert,
    threshold_next,
    threshold_remove,
    threshold_start,
)
from freshviews.types import NULL
from tests.kernel.words import MANY, block

Point = tuple[int, int]


class Points:
    """Points by group and place, in native memory, with a model of their payloads and of the selection."""

    def __init__(self, value: int, nullable: bool, descending: bool) -> None:
        self.value, self.nullable, self.descending = value, nullable, descending
        self.t = table.new_table(2, 4, 1, TREE_WORDS, 0)
        with block([0]) as positions:
            table.add_index(self.t, positions, 1)
        self.o = ordered.new_ordered(self.t, 1, TREE_WORDS - 1, 0)
        store(self.o, KINDS, INTEGER_ORDER | (DESCENDING if descending else 0))
        store(self.o, TOP + VALUE, value)
        store(self.o, TOP + NULLABLE, int(nullable))
        self.model: dict[Point, tuple[int, int, int]] = {}
        self.selected: Counter[Point] = Counter()

    def close(self) -> None:
        table.free_table(self.t)

    def _slice(self, group: int) -> int:
        return slice_of(load(load(self.t, INDEX_LIST), 0), (group,))

    def add(self, point: Point, rows: int, weight: int, number: int) -> None:
        row = upsert(self.t, point)
        absent = all(load(row, load(self.t, KEY) + i) == 0 for i in range(3))
        for i, more in enumerate((rows, weight, number)):
            store(row, load(self.t, KEY) + i, load(row, load(self.t, KEY) + i) + more)
        payload = tuple(load(row, load(self.t, KEY) + i) for i in range(3))
        if any(payload):
            self.model[point] = payload  # type: ignore[assignment]
            if absent:
                threshold_insert(self.o, self.t, row, self._slice(point[0]))
            else:
                threshold_change(self.o, self.t, row)
        else:
            self.model.pop(point, None)
            self.selected.pop(point, None)
            if not absent:
                threshold_remove(self.o, self.t, row)
            remove_row(self.t, row)

    def settle(self, group: int, limit: int | None, strict: bool) -> int:
        """The number of points that changed."""
        changed = 0
        start = (0, 0, 0) if limit is None else (limit, int(strict), 1)
        threshold_start(self.o, self.t, self._slice(group), *start)
        while (row := threshold_next(self.o, self.t)) != 0:
            point = load(row, 0), load(row, 1)
            assert point[0] == group
            self.selected[point] += 1 if load(row, load(self.t, KEY) + SELECTED) else -1
            changed += 1
        for point in [*self.selected]:
            assert self.selected[point] in (0, 1)
            if point[0] == group and (self.model[point][ROWS] == 0 or self.selected[point] == 0):
                del self.selected[point]
        return changed

    def expected(self, group: int, limit: int | None, strict: bool) -> set[Point]:
        places = sorted((p for p in self.model if p[0] == group), reverse=self.descending)
        weights = [self.model[p][WEIGHT] for p in places]
        numbers = [self.model[p][NUMBER] for p in places]
        through = [0, *accumulate(weights)], [0, *accumulate(numbers)]
        shift = 1 if self.value == THROUGH else 0
        found = set()
        for i, point in enumerate(places):
            value, number = through[0][i + shift], through[1][i + shift]
            if self.value in (ITSELF, NEGATED):
                value = point[1] if self.value == ITSELF else -point[1]
            if limit is None or (self.nullable and number <= 0) or self.model[point][ROWS] == 0:
                continue
            if value < limit or (value == limit and not strict):
                found.add(point)
        return found

    def depth(self) -> int:
        """The greatest number of nodes from a leaf to its root."""
        deepest = 0
        for number in range(load(self.t, table.USED)):
            child, depth = number + 1, 0
            while child:
                tree = row_at(self.t, child - 1) + 8 * load(self.o, ordered.ROW_WORD)
                child, depth = load32(tree + 8 * threshold_tree.PARENT, 0), depth + 1
            deepest = max(deepest, depth)
        return deepest


CHANGES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-6, 6), st.integers(0, 2), st.integers(-5, 9), st.integers(0, 2)),
    max_size=12,
)
BATCHES = st.lists(st.tuples(CHANGES, st.none() | st.integers(-12, 25), st.booleans()), max_size=8)


@pytest.mark.parametrize("value", [BEFORE, THROUGH, ITSELF, NEGATED])
@MANY
@given(st.booleans(), st.booleans(), BATCHES)
def test_points_selected_by_a_threshold_agree_with_the_definition(
    value: int, nullable: bool, descending: bool, batches: list[tuple[list[tuple[int, ...]], int | None, bool]]
) -> None:
    points = Points(value, nullable and value in (BEFORE, THROUGH), descending)
    try:
        for changes, limit, strict in batches:
            for group, place, rows, weight, number in changes:
                known = points.model.get((group, place))
                weight, number = (weight, number) if value in (BEFORE, THROUGH) else (0, 0)
                if known is not None and rows == 0 and place % 3 == 0:
                    # The point loses its whole payload, and may return in the same batch.
                    points.add((group, place), *(-one for one in known))
                else:
                    points.add((group, place), rows, weight if number else 0, number)
            for group in (0, 1):
                points.settle(group, limit, strict)
                assert {p for p in points.selected if p[0] == group} == points.expected(group, limit, strict)
                assert points.settle(group, limit, strict) == 0
    finally:
        points.close()


def test_only_points_that_change_are_visited() -> None:
    points = Points(BEFORE, False, True)
    try:
        for place in range(3000):
            points.add((0, place), 1, 2, 1)
        assert points.settle(0, 3000, False) == 1501
        assert points.settle(0, 3010, False) == 5
        points.add((0, 2999), 0, 4, 0)
        assert points.settle(0, 3010, False) == 2
        assert points.depth() < 4 * math.log2(3000)
    finally:
        points.close()


def test_an_overflowing_sum_can_be_undone() -> None:
    points = Points(BEFORE, True, False)
    try:
        for place in range(4):
            points.add((0, place), 1, 2**62, 1)
        points.settle(0, 5, False)
        assert load(points.o, TOP + OVERFLOWN) == 1
        for place in range(4):
            points.add((0, place), 0, 1 - 2**62, 0)
        points.settle(0, 2, False)
        assert load(points.o, TOP + OVERFLOWN) == 0
        assert set(points.selected) == points.expected(0, 2, False) == {(0, 1), (0, 2)}
    finally:
        points.close()


def test_a_point_without_rows_vanishes_and_is_not_reported() -> None:
    points = Points(BEFORE, False, False)
    try:
        points.add((0, 1), 2, 0, 0)
        points.add((0, 1), 0, 3, 1)
        points.add((0, 2), 1, 1, 1)
        assert points.settle(0, 10, False) == 2
        points.add((0, 1), -2, 0, 0)
        assert points.settle(0, 10, False) == 0
        assert load(points.t, LIVE) == 2
        assert load(points.o, TOP + ROOT_NOW) != 0
        points.add((0, 2), -1, -1, -1)
        points.add((0, 1), 0, -3, -1)
        assert points.settle(0, 10, False) == 0
        assert load(points.t, LIVE) == 0
        assert load(points.o, TOP + ROOT_NOW) == 0
        row = upsert(points.t, (0, NULL))
        assert is_zero(points.t, row)
    finally:
        points.close()
