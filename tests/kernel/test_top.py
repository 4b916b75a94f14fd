from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash.table import KEY
from freshviews.kernel.memory.mem import PURE_PYTHON, load, write_key
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import places
from freshviews.kernel.ordered.index import (
    DESCENDING,
    DOUBLE_ORDER,
    INTEGER_ORDER,
    NULLS_LAST,
    STRING_ORDER,
    TOP,
    prefix_of,
    set_strings,
)
from freshviews.kernel.ordered.top import (
    MOVED,
    NOW,
    OTHER,
    PLACE,
    beside_next,
    frame_next,
    renumber_next,
    renumber_start,
    top_next,
    top_start,
)
from freshviews.types import NULL
from tests.kernel.relation import Key, Relation, relation
from tests.kernel.test_ordered import BLOCK, CODES, rank
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
    """The collected reports of ``kernel.ordered.top`` on a relation, and their definition: the first rows of each group
    by the first ``words`` words of the key, the rows with the row ``shift`` places after each, and with the rows of its
    ``frame``."""

    def __init__(self, r: Relation, kinds: tuple[int, ...], first: int, last: int, words: int = 0) -> None:
        self.r, self.kinds, self.first, self.last, self.words = r, kinds, first, last, words
        self.shift = 0
        self.frame: tuple[int, int] | None = None
        self.framed: Counter[tuple[Key, Key]] = Counter()
        self.held: Counter[Key] = Counter()
        self.pairs: Counter[tuple[Key, Key | None]] = Counter()
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
            if self.shift:
                top_start(o, t, row, before)
                while (moved := beside_next(o, t, self.shift)) != 0:
                    other = load(o, TOP + OTHER)
                    pair = words_at(moved, load(t, KEY)), words_at(other, load(t, KEY)) if other else None
                    self.pairs[pair] += load(o, TOP + MOVED)
            if self.frame:
                self.follow_frames(row, before)

        self.r.add(key, (m,), changed)

    def follow_frames(self, row: int, before: int) -> None:
        t, o = self.r.t, self.r.ordered
        assert self.frame is not None
        top_start(o, t, row, before)
        while (moved := frame_next(o, t, *self.frame)) != 0:
            assert load(o, TOP + MOVED) != 0
            pair = words_at(moved, load(t, KEY)), words_at(load(o, TOP + OTHER), load(t, KEY))
            self.framed[pair] += load(o, TOP + MOVED)

    def groups(self) -> list[list[Key]]:
        """The copies of each group, in order."""
        groups = [[key for key in self.r.model if key[: self.words] == one] for one in self.names()]
        kinds = ((INTEGER_ORDER,) * self.words) + self.kinds
        return [[k for k in in_order(keys, kinds) for _ in range(self.r.model[k][0])] for keys in groups]

    def names(self) -> set[Key]:
        return {key[: self.words] for key in self.r.model}

    def check(self) -> None:
        expected = Counter(key for copies in self.groups() for key in copies[self.first : self.last])
        assert {k: n for k, n in self.held.items() if n} == expected
        if self.shift:
            beside = Counter[tuple[Key, Key | None]]()
            for copies in self.groups():
                for i, key in enumerate(copies):
                    j = i + self.shift
                    beside[key, copies[j] if 0 <= j < len(copies) else None] += 1
            assert {k: n for k, n in self.pairs.items() if n} == beside
        if self.frame:
            low, high = self.frame
            framed = Counter[tuple[Key, Key]]()
            for copies in self.groups():
                for i, key in enumerate(copies):
                    framed.update((key, other) for other in copies[max(i + low, 0) : max(i + high + 1, 0)])
            assert {k: n for k, n in self.framed.items() if n} == framed


class Numbers:
    """The collected reports of the numbers of rows, and their definition."""

    def __init__(self, r: Relation, kinds: tuple[int, ...], last: int, ranks: bool, words: int) -> None:
        self.r, self.ranks = r, ranks
        self.definition = First(r, kinds, 0, last, words)
        self.held: Counter[tuple[Key, int]] = Counter()
        self.touched: set[Key] = set()

    def add(self, key: Key, m: int) -> None:
        """Like a trigger: retract the reported numbers of the row."""
        _, held, number = self.r.model.get(key, (0, 0, 0))
        for i in range(held):
            self.held[key, number + i + 1] -= 1
        # The row may have no copy now, or be removed.
        self.r.add(key, (m, -held, -number))
        self.touched.add(key)

    def settle(self) -> None:
        t, o, d = self.r.t, self.r.ordered, self.definition
        for key in self.touched:
            write_key(prefix_of(o), key)
            renumber_start(o, t)
            while (row := renumber_next(o, t, d.last, int(self.ranks))) != 0:
                for place in range(load(o, TOP + PLACE), load(o, TOP + PLACE) + load(o, TOP + NOW)):
                    self.held[words_at(row, load(t, KEY)), place] += load(o, TOP + MOVED)
        self.touched.clear()
        self.r.model = self.r.scan()

    def check(self) -> None:
        d = self.definition
        expected = Counter[tuple[Key, int]]()
        for copies in d.groups():
            for i, key in enumerate(copies[: d.last]):
                if not (self.ranks and i and copies[i - 1] == key):
                    expected[key, i + 1] += 1
        assert {k: n for k, n in self.held.items() if n} == expected


@pytest.mark.parametrize("bag", ["sets", "bags", "over Z"])
@MANY
@given(st.lists(KINDS, min_size=1, max_size=3).map(tuple), st.integers(0, 4), st.integers(0, 5), st.data())
def test_the_first_rows_follow_inserts_and_deletes(
    bag: str, kinds: tuple[int, ...], first: int, limit: int, data: st.DataObject
) -> None:
    words = data.draw(st.integers(0, 2))
    key = st.tuples(*(st.integers(0, 1) for _ in range(words)), *(st.sampled_from(CODES[k & 3][-4:]) for k in kinds))
    with relation(words + len(kinds), 1, ordered=kinds, placed=True) as r:
        set_strings(r.ordered, BLOCK)
        rows = First(r, kinds, first, first + limit, words)
        rows.shift = data.draw(st.integers(-3, 3))
        low = data.draw(st.integers(-4, 3))
        rows.frame = (low, low + data.draw(st.integers(0, 4)))
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


@pytest.mark.parametrize("ranks", [False, True])
@MANY
@given(st.integers(0, 2), st.sampled_from([0, 2, 4, 100]), st.data())
def test_row_numbers_follow_inserts_and_deletes(
    ranks: bool, words: int, last: int, data: st.DataObject
) -> None:
    kinds = (INTEGER_ORDER | DESCENDING, INTEGER_ORDER)
    key = st.tuples(*(st.integers(0, 1) for _ in range(words)), st.integers(0, 3), st.integers(0, 1))
    with relation(words + 2, 3, ordered=kinds, placed=True) as r:
        rows = Numbers(r, kinds, last, ranks, words)
        updates = data.draw(st.lists(st.tuples(key, st.sampled_from([1, 2, -1, -2]), st.booleans()), max_size=50))
        for one, m, settled in updates:
            rows.add(one, max(m, -r.model.get(one, (0,))[0]) or 1)
            if settled:
                rows.settle()
                rows.check()
        for one in list(r.model):
            rows.add(one, -r.model[one][0])
        rows.settle()
        assert not r.model and not any(rows.held.values())


def test_first_rows_are_right_if_a_row_has_more_copies_than_the_limit() -> None:
    order = random.Random(5)
    with relation(2, 1, ordered=(INTEGER_ORDER | DESCENDING, INTEGER_ORDER), placed=True) as r:
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
def test_an_update_takes_logarithmic_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [0]
    compare = ordered.compare_rows

    def counting(o: int, t: int, a: int, b: int) -> int:
        counted[0] += 1
        return compare(o, t, a, b)

    monkeypatch.setattr(ordered, "compare_rows", counting)
    monkeypatch.setattr(places, "compare_rows", counting)
    for n in (200, 2_000):
        order = random.Random(n)
        with relation(1, 1, ordered=(INTEGER_ORDER,), placed=True) as r:
            rows = First(r, (INTEGER_ORDER,), 10, 20)
            keys = order.sample(range(-n, 0), n)
            for key in keys:
                rows.add((key,), 1)
            rows.check()
            counted[0] = rows.moves = 0
            # The worst case: the first row is deleted or inserted, so that one row crosses each place.
            for key in sorted(keys)[: n // 4]:
                rows.add((key,), -1)
            for key in sorted(keys, reverse=True)[-n // 4 :]:
                rows.add((key,), 1)
            rows.check()
            updates = 2 * (n // 4)
            assert rows.moves <= 4 * updates
            assert counted[0] <= 8 * updates * math.log2(n)
