"""Slices of all lengths are intersected, in batches long enough for prefetching."""

from __future__ import annotations

import random

import pytest

import freshviews as fv
from freshviews.codegen.writing import ahead
from freshviews.kernel.hash.index import EIGHT, INLINE, SCANNED

pytestmark = pytest.mark.compiled(2)

LENGTHS = (SCANNED + 3 * EIGHT, EIGHT, INLINE + 1, 1)
"""Approximate rows of the slices of the values 0, 1, 2 and 3: from too many to scan down to slices inside the group."""
SCRIPT = """
CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT); CREATE TABLE t (c BIGINT, a BIGINT);
CREATE MATERIALIZED VIEW triangles TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS
  SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a;
"""


@pytest.mark.parametrize("cached", [0, ahead.CACHED])
def test_slices_are_intersected_correctly_as_they_grow_and_shrink(cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "CACHED", cached)
    order = random.Random(4)
    db = fv.Database()
    db.execute(SCRIPT)
    rows: dict[str, set[tuple[int, int]]] = {"r": set(), "s": set(), "t": set()}

    def toggle(table: str, some: list[tuple[int, int]]) -> None:
        db.apply(table, [(*row, -1 if row in rows[table] else 1) for row in some])
        rows[table] ^= set(some)

    pairs = [(a, b) for a in range(4) for b in range(4)]
    for round in range(4):
        for value, length in enumerate(LENGTHS):
            # First all rows are inserted; later some are deleted, or inserted again.
            here = [c for c in range(length) if round == 0 or order.random() < 0.4]
            toggle("s", [(value, c) for c in here])
            toggle("t", [(c, value) for c in here if order.random() < 0.9])
        toggle("r", order.sample(pairs, len(pairs)))
        toggle("r", order.sample(pairs, len(pairs) - 2))
        found = sum((b, c) in rows["s"] for a, b in rows["r"] for c, end in rows["t"] if end == a)
        assert db.view("triangles").to_arrow().to_pylist() == [{"n": found}]
