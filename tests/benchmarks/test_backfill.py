"""Every way in which ``benchmarks.timing.backfill`` initialises a view gives the same state."""

from __future__ import annotations

import pytest

import freshviews as fv
from benchmarks.timing import backfill
from benchmarks.workloads.graphs import chung_lu
from freshviews.engine.blocks import at_once
from freshviews.engine.tables.table_state import TableState

pytestmark = pytest.mark.compiled(2)

CASES = {
    ("triangle count", "first_order"): ["as they lie", "joined"],
    ("3-hop count", "view_tree"): ["as they lie", "in passes"],
    ("2-hop, listed", "incremental_trie_join"): ["as they lie", "joined"],
}


@pytest.mark.parametrize("case", CASES)
def test_every_way_of_backfilling_is_measured(case: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "WORTH", 0.0)
    monkeypatch.setattr(backfill, "ROWS", 40)
    query, strategy = case
    with fv.Database() as db:
        db.execute(backfill.TABLE)
        db.insert("e", [tuple(edge) for edge in chung_lu(30, 100, 2.5).tolist()])
        source = db._relations.get("e")
        assert isinstance(source, TableState)
        found = backfill.measure(source, backfill.QUERIES[query], strategy)
    assert found is not None
    seconds, rows = found
    assert list(seconds) == CASES[case] and all(one is not None for one in seconds.values())
    assert rows >= 100


def test_no_backfill_is_measured_for_a_strategy_that_refuses_the_view() -> None:
    with fv.Database() as db:
        db.execute(backfill.TABLE)
        source = db._relations.get("e")
        assert isinstance(source, TableState)
        assert backfill.measure(source, backfill.QUERIES["dumbbell count"], "ivm_eps") is None
