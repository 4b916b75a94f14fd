from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash.table import KEY
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import top
from freshviews.kernel.ordered.index import (
    DESCENDING,
    DOUBLE_ORDER,
    INTEGER_ORDER,
    NULLS_LAST,
    STRING_ORDER,
    TOP,
    set_strings,
)
from freshviews.kernel.ordered.top import MOVED, top_next, top_start
from freshviews.types import NULL
from tests.kernel.relation import Key, Relation, relation
from tests.kernel.test_ordered import CODES, HEAP, rank
from tests.kernel.words import MANY, words_at

KINDS = st.tuples(
    st.sampled_from([INTEGER_ORDER, DOUBLE_ORDER, STRING_ORDER]),
    st.sampled_from([0, DESCENDING, NULLS_LAST, DESCENDING | NULLS_LAST]),
).map(sum)


def in_order(keys: list[Key], kinds: tuple[int, ...]) -> list[Key]:
    """Keys in order, by sorts that keep the order of equal ones."""
    for i in reversed(range(len(kinds))):
        by = rank(kinds[i] & 3)

        def place(key: Key, i: int = i, by: Any = by) -> Any:
            return by(key[i])

        keys = sorted(keys, key=place, reverse=bool(kinds[i] & DESCENDING))
        keys.sort(key=lambda key, i=i: (key[i] == NULL) == bool(kinds[i] & NULLS_LAST))  # type: ignore[misc]
    return keys


class First:
    """What ``kernel.ordered.top`` says of a relation, gathered, beside the definition."""

    def __init__(self, r: Relation, kinds: tuple[int, ...], first: int, last: int) -> None:
        self.r, self.kinds, self.first, self.last = r, kinds, first, last
        self.held: Counter[Key] = Counter()
        self.moves = 0

    def add(self, key: Key, m: int) -> None:
        t, o = self.r.t, self.r.ordered
        before = self.r.model.get(key, (0,))[0]

        def changed(row: int) -> None:
            top_start(o, t, row, before)
            while (moved := top_next(o, t, self.first, self.last)) != 0:
                assert load(o, TOP + MOVED) != 0
                self.held[words_at(moved, load(t, KEY))] += load(o, TOP + MOVED)
                self.moves += 1

        self.r.add(key, (m,), changed)

    def check(self) -> None:
        copies = [k for k in in_order(list(self.r.model), self.kinds) for _ in range(self.r.model[k][0])]
        expected = Counter(copies[self.first : self.last])
        assert {k: n for k, n in self.held.items() if n} == expected


@pytest.mark.parametrize("bag", ["sets", "bags", "over Z"])
@MANY
@given(st.lists(KINDS, min_size=1, max_size=3).map(tuple), st.integers(0, 4), st.integers(0, 5), st.data())
def test_the_first_rows_follow_inserts_and_deletes(
    bag: str, kinds: tuple[int, ...], first: int, limit: int, data: st.DataObject
) -> None:
    key = st.tuples(*(st.sampled_from(CODES[kind & 3][-4:]) for kind in kinds))
    with relation(len(kinds), 1, ordered=kinds) as r:
        set_strings(r.ordered, *HEAP)
        rows = First(r, kinds, first, first + limit)
        for one, m in data.draw(st.lists(st.tuples(key, st.sampled_from([1, 2, 3, -1, -2])), max_size=40)):
            there = r.model.get(one, (0,))[0]
            if bag == "sets":
                m = -1 if there else 1
            elif bag == "bags":
                m = max(m, -there) or 1
            rows.add(one, m)
            rows.check()
        for one in list(r.model):
            rows.add(one, -r.model[one][0])
            rows.check()
        assert not r.model and not any(rows.held.values())


def test_many_rows_and_copies_beyond_any_place() -> None:
    order = random.Random(5)
    with relation(2, 1, ordered=(INTEGER_ORDER | DESCENDING, INTEGER_ORDER)) as r:
        rows = First(r, (INTEGER_ORDER | DESCENDING, INTEGER_ORDER), 3, 40)
        for step in range(400):
            key = (order.randrange(30), order.randrange(3))
            there = r.model.get(key, (0,))[0]
            rows.add(key, -there if there and order.random() < 0.5 else order.choice((1, 5, 2**62 - there)))
            if step % 20 == 0:
                copies = {key: min(n, 50) for key, (n,) in r.model.items()}
                lined_up = [key for key in in_order(list(copies), rows.kinds) for _ in range(copies[key])]
                assert {k: n for k, n in rows.held.items() if n} == Counter(lined_up[3:40])


@pytest.mark.skipif(not PURE_PYTHON, reason="comparisons are counted in plain Python")
def test_an_update_takes_logarithmic_time_and_moves_as_many_rows_as_change(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [0]
    compare = ordered.compare_rows

    def counting(o: int, t: int, a: int, b: int) -> int:
        counted[0] += 1
        return compare(o, t, a, b)

    monkeypatch.setattr(ordered, "compare_rows", counting)
    monkeypatch.setattr(top, "compare_rows", counting)
    for n in (200, 2_000):
        order = random.Random(n)
        with relation(1, 1, ordered=(INTEGER_ORDER,)) as r:
            rows = First(r, (INTEGER_ORDER,), 10, 20)
            keys = order.sample(range(-n, 0), n)
            for key in keys:
                rows.add((key,), 1)
            rows.check()
            counted[0] = rows.moves = 0
            # The worst there is: always the first row goes or comes, so that each place is passed by one row.
            for key in sorted(keys)[: n // 4]:
                rows.add((key,), -1)
            for key in sorted(keys, reverse=True)[-n // 4 :]:
                rows.add((key,), 1)
            rows.check()
            updates = 2 * (n // 4)
            assert rows.moves <= 4 * updates
            assert counted[0] <= 8 * updates * math.log2(n)
