"""Stored base tables against a Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.engine.base_table import BaseTable
from freshviews.engine.batch import CodeBatch
from freshviews.query.block import ColumnDef, TableDef
from freshviews.types import BIGINT, NULL

Row = tuple[int, int]
values = st.sampled_from([NULL, 0, 1, 2, 3])
updates = st.lists(st.tuples(st.tuples(values, values), st.integers(-2, 2).filter(bool)), max_size=12)


def table(*keys: tuple[str, ...], nullable: bool = True) -> BaseTable:
    columns = (ColumnDef("a", BIGINT, nullable), ColumnDef("b", BIGINT, nullable))
    return BaseTable(TableDef("t", columns, keys=keys))


def batch(changes: list[tuple[Row, int]]) -> CodeBatch:
    rows = np.array([[*row, m] for row, m in changes], np.int64).reshape(-1, 3)
    return CodeBatch("t", {"a": rows[:, 0], "b": rows[:, 1]}, rows[:, 2])


def contents(stored: BaseTable, rows: int = 3) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for part in stored.batches(rows):
        for a, b, m in zip(part.columns["a"], part.columns["b"], part.multiplicities, strict=True):
            found[int(a), int(b)] += int(m)
    return found


def present(model: Counter[Row]) -> Counter[Row]:
    return Counter({row: m for row, m in model.items() if m})


@settings(max_examples=60, deadline=None)
@given(st.lists(updates, max_size=8))
def test_batches_add_up_and_what_breaks_a_rule_is_undone_exactly(batches: list[list[tuple[Row, int]]]) -> None:
    stored = table(("a",))
    model: Counter[Row] = Counter()
    for changes in batches:
        after = model.copy()
        for row, m in changes:
            after[row] += m
        keys: Counter[int] = Counter()
        for row, m in after.items():
            if row[0] != NULL:
                keys[row[0]] += m
        assert stored.add(batch(changes)) is None
        missing = stored.missing()
        duplicate = stored.duplicate()
        assert (missing is not None) == any(m < 0 for m in after.values())
        if missing is None:
            assert (duplicate is not None) == any(m > 1 for m in keys.values())
        if missing is None and duplicate is None:
            net = stored.net()
            if net is not None:
                change = after.copy()
                change.subtract(model)
                found = Counter(
                    {
                        (int(a), int(b)): int(m)
                        for a, b, m in zip(net.columns["a"], net.columns["b"], net.multiplicities, strict=True)
                    }
                )
                assert found == present(change)
            stored.settle()
            model = present(after)
        else:
            stored.undo()
        assert contents(stored) == model
        assert stored.rows == len(model)


def test_null_in_a_unique_column_is_equal_to_nothing() -> None:
    stored = table(("a",), ("b",))
    stored.add(batch([((NULL, 1), 1), ((NULL, 2), 1)]))
    assert stored.duplicate() is None
    stored.add(batch([((5, 2), 1)]))
    assert stored.duplicate() == (1, (2,))


def test_a_key_of_all_columns_costs_no_second_table() -> None:
    stored = table(("b", "a"), nullable=False)
    stored.add(batch([((1, 2), 1), ((2, 1), 1)]))
    assert stored.duplicate() is None
    assert stored.bytes < table(("a",)).bytes + 500
    stored.add(batch([((1, 2), 1)]))
    assert stored.duplicate() == (0, (1, 2))


def test_a_multiplicity_that_leaves_int64_stops_the_batch_at_its_row() -> None:
    stored = table()
    stopped = stored.add(batch([((1, 1), 1), ((2, 2), 2**63 - 1), ((2, 2), 1)]))
    assert stopped is not None and stopped.row == 2 and not stopped.out_of_memory
    stored.undo()
    assert contents(stored) == Counter()


def test_rows_that_share_a_key_are_found_by_a_scan() -> None:
    stored = table(("a",))
    stored.add(batch([((1, 1), 1), ((2, 1), 1), ((1, 2), 1)]))
    assert set(stored.rows_with(stored.keys[0], (1,))) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_deleting_what_was_inserted_leaves_nothing(size: int) -> None:
    stored = table(("a",))
    every = batch([((i, i % 7), 1) for i in range(size)])
    stored.add(every)
    stored.settle()
    stored.add(every.negated())
    assert stored.missing() is None
    stored.settle()
    assert contents(stored) == Counter() and stored.rows == 0
