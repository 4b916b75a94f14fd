"""Random batches over a parent and its children: accepted exactly where the rules hold afterwards."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

import freshviews as fv
from tests.engine.shop import seen

Model = dict[str, Counter[tuple[int | None, ...]]]

keys = st.sampled_from([1, 2, 3])
parents = st.tuples(st.just("p"), st.tuples(keys, st.sampled_from([None, 1, 2, 3])))
children = st.tuples(st.just("c"), st.tuples(st.sampled_from([None, 1, 2]), keys))
update = st.tuples(st.one_of(parents, children), st.sampled_from([1, 1, -1]))
batches = st.lists(st.lists(update, min_size=1, max_size=6), min_size=1, max_size=12)


def holds(model: Model) -> bool:
    p, c = model["p"], model["c"]
    if any(m < 0 for table in model.values() for m in table.values()):
        return False
    ids = Counter({i: sum(m for row, m in p.items() if row[0] == i) for i in (1, 2, 3)})
    bosses = {boss for (_, boss), m in p.items() if m and boss is not None}
    parts = {parent for (parent, _), m in c.items() if m and parent is not None}
    return max(ids.values()) <= 1 and all(ids[i] for i in bosses | parts)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_a_batch_is_accepted_exactly_where_the_rules_hold_afterwards(
    stream: list[list[tuple[tuple[str, tuple[int | None, int]], int]]],
) -> None:
    with fv.Database() as db:
        db.execute(
            "CREATE TABLE p (id INT PRIMARY KEY, boss INT, FOREIGN KEY (boss) REFERENCES p (id));"
            "CREATE TABLE c (parent INT, x INT, FOREIGN KEY (parent) REFERENCES p (id));"
            "CREATE MATERIALIZED VIEW v AS SELECT id, COUNT(*) AS n FROM p JOIN c ON id = parent GROUP BY id"
        )
        model: Model = {"p": Counter(), "c": Counter()}
        for updates in stream:
            after = {name: rows.copy() for name, rows in model.items()}
            for (table, row), m in updates:
                after[table][row] += m
            before = seen(db)
            try:
                with db.batch() as batch:
                    for (table, row), m in updates:
                        (batch.insert if m > 0 else batch.delete)(table, [row])
            except fv.BatchError:
                assert not holds(after)
                assert seen(db) == before
            else:
                assert holds(after)
                model = {name: +rows for name, rows in after.items()}
            assert {"p": Counter(db.table("p")), "c": Counter(db.table("c"))} == model
            joined = Counter(parent for parent, _ in model["c"].elements() if parent is not None)
            assert Counter(db.view("v")) == Counter(joined.items())
