"""Each way of upkeep agrees with a recomputation, with refused batches in between."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import freshviews as fv

TABLES = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (c BIGINT NOT NULL, a BIGINT NOT NULL);"""
VIEW = """CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{0}') AS
  SELECT r.a, r.b, s.c, {1} AS q FROM r JOIN s ON r.b = s.b JOIN t ON t.c = s.c AND t.a = r.a"""
Rows = dict[str, list[tuple[int, int]]]


def expected(rows: Rows) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for a, b in rows["r"]:
        for c in (c for other, c in rows["s"] if other == b):
            count = rows["t"].count((c, a))
            if count:
                found[a, b, c, int(100 / (a - 3))] += count
    return found


@pytest.mark.plain_python
@pytest.mark.parametrize("strategy", ["first_order", "trie_join", "incremental_trie_join", "recompute"])
def test_refused_batches_leave_views_unchanged(strategy: str) -> None:
    order = random.Random(5)
    with fv.Database() as db:
        db.execute(TABLES + VIEW.format(strategy, "CAST(100 / (r.a - 3) AS BIGINT)"))
        told: Counter[tuple[int, ...]] = Counter()
        db.view("v").subscribe(lambda change: told.update(dict(change)))
        rows: Rows = {name: [] for name in "rst"}
        refused = 0
        for _ in range(40):
            after: Rows = {name: list(rows[name]) for name in "rst"}
            try:
                with db.batch() as batch:
                    for name in order.sample("rst", order.randint(1, 3)):
                        come = [(order.randrange(5), order.randrange(5)) for _ in range(order.randint(1, 4))]
                        batch.insert(name, come)
                        after[name] += come
                        if order.random() < 0.4:
                            gone = order.choice(after[name])
                            batch.delete(name, [gone])
                            after[name].remove(gone)
                rows = after
            except fv.EvaluationError as error:
                assert "division by zero" in str(error)
                refused += 1
            assert Counter(db.view("v")) == +told == expected(rows)
        assert refused
        assert list(db.view("v"))


@pytest.mark.plain_python
@pytest.mark.parametrize("strategy", ["first_order", "recompute"])
def test_the_error_names_a_row_of_the_batch(strategy: str) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);")
        db.execute(
            f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS "
            "SELECT a, SUM(100 / b) AS q FROM r GROUP BY a"
        )
        db.insert("r", [(i, 1 + i) for i in range(20)])
        with pytest.raises(fv.EvaluationError, match="division by zero") as refusal:
            db.insert("r", [(50, 1), (60, 0), (70, 1)])
        assert refusal.value.row == 1
        assert len(db.view("v")) == 20
