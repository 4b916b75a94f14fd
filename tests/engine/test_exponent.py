"""The automatic exponent: chosen by degrees and rows read, and applied at the next rebalancing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from freshviews import Database
from freshviews.engine.blocks.parts.exponent import choose, price
from freshviews.errors import PlanError
from freshviews.plan.eps.ivm_eps import CHOICES

pytestmark = pytest.mark.compiled(3)

VIEW = """
    CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{}', 'freshviews.epsilon' = 'auto') AS
        SELECT COUNT(*) AS n FROM e r JOIN e s ON r.b = s.a JOIN e t ON s.b = t.a AND t.b = r.a;
"""


def test_the_estimated_cost_of_an_ivm_eps_exponent_adds_light_and_heavy_values() -> None:
    degrees = [np.array([1, 1, 2, 6], np.int64)]
    assert price(degrees, 7, 0) == pytest.approx((1 + 1 + 4 + 36) / 10)
    assert price(degrees, 6, 0) == pytest.approx((1 + 1 + 4) / 10 + 0.6 * 1)
    assert price(degrees, 2, 0.5) == pytest.approx(2 / 10 + 0.8 * 2 + 0.5 * 2)


def test_frequent_values_become_heavy_and_rare_values_light() -> None:
    n = 100_000
    hubs = [np.array([500] * 150 + [1] * 25_000, np.int64)]
    even = [np.array([60] * (n // 60), np.int64)]
    assert n ** choose(hubs, n, CHOICES, 0.75) <= 500, "the large ones are heavy"
    assert n ** choose(even, n, CHOICES, 0.25) > 60, "none is heavy"


def test_frequent_reads_of_heavy_values_raise_the_exponent() -> None:
    degrees = [np.concatenate([np.full(2000, 40), np.full(20, 2000)])]
    free, read = (choose(degrees, 150_000, CHOICES, 0.5, reads) for reads in (0.0, 100.0))
    assert read >= free
    assert (degrees[0] >= 150_000**read).sum() <= 20


def test_only_a_clearly_cheaper_exponent_is_chosen() -> None:
    nothing = [np.ones(1000, np.int64)]
    assert all(choose(nothing, 2000, CHOICES, used) == used for used in CHOICES)


def test_edges_from_few_nodes_lower_the_exponent() -> None:
    db = Database()
    db.execute(VIEW.format("ivm_eps"))
    assert "epsilon   auto, from 0.25 to 0.75" in db.view("v").explain()
    edges = [(i % 10, i // 10) for i in range(400)]
    for edge in edges:
        db.insert("e", [edge])
    shown = re.findall(r"N\^([\d.]+) = ", db.view("v").explain())
    assert set(shown) and all(float(eps) < 0.5 for eps in shown), shown
    there = set(edges)
    found = sum((b, c) in there and (c, a) in there for a, b in there for c in range(40))
    assert [row for batch in db.view("v").to_batches() for row in batch.to_pylist()] == [{"n": found}]
    db.close()


def test_the_exponent_auto_is_refused_for_a_single_table() -> None:
    db = Database()
    with pytest.raises(PlanError, match="must be 'auto', a number"):
        db.execute(VIEW.format("ivm_eps").replace("'auto'", "'r auto'"))
    db.close()
