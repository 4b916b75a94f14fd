"""Random batches over a parent and its children are accepted exactly if the rules hold afterwards."""

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
def test_a_batch_is_accepted_exactly_if_keys_and_foreign_keys_hold_afterwards(
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


narrow = st.sampled_from([-128, 0, 127])
wide = st.sampled_from([-(2**31), 5, 2**31 - 1])
places = st.tuples(st.just("place"), st.tuples(wide, narrow, st.sampled_from([None, True])))
visits = st.tuples(st.just("visit"), st.tuples(st.none() | narrow, st.none() | wide))
travels = st.lists(
    st.lists(st.tuples(st.one_of(places, visits), st.sampled_from([1, 1, -1])), min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)


def is_sound(model: dict[str, Counter[tuple[object, ...]]]) -> bool:
    if any(m < 0 for table in model.values() for m in table.values()):
        return False
    keys: Counter[tuple[object, ...]] = Counter()
    for (city, country, _), m in model["place"].items():
        keys[country, city] += m
    named = {row for row, m in model["visit"].items() if m and None not in row}
    return all(m <= 1 for m in keys.values()) and all(keys[row] for row in named)


@settings(max_examples=60, deadline=None)
@given(travels)
def test_keys_of_columns_that_share_a_word_are_checked(
    stream: list[list[tuple[tuple[str, tuple[object, ...]], int]]],
) -> None:
    with fv.Database() as db:
        db.execute(
            "CREATE TABLE place (city INT, country TINYINT, big BOOLEAN, PRIMARY KEY (country, city));"
            "CREATE TABLE visit (country TINYINT, city INT,"
            " FOREIGN KEY (city, country) REFERENCES place (city, country));"
        )
        model: dict[str, Counter[tuple[object, ...]]] = {"place": Counter(), "visit": Counter()}
        for changes in stream:
            after = {name: held.copy() for name, held in model.items()}
            for (name, row), sign in changes:
                after[name][row] += sign
            try:
                with db.batch() as batch:
                    for (name, row), sign in changes:
                        batch.apply(name, [(*row, sign)])
            except fv.BatchError:
                assert not is_sound(after)
            else:
                assert is_sound(after)
                model = {name: +held for name, held in after.items()}
        assert {name: Counter(db.table(name)) for name in model} == model
