from __future__ import annotations

import random

import pytest

from freshviews.kernel.hash import index, shrink
from freshviews.kernel.hash.entries import MASK, NEXT, NOT_PACKING, PACKED, REMOVED, TOUCHED, USED
from freshviews.kernel.hash.table import LIVE, table_bytes
from freshviews.kernel.image import block_words
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from tests.kernel.relation import Relation, relation

SIZE = 300 if PURE_PYTHON else 1500
INDEXES: list[tuple[tuple[int, ...], ...]] = [(), ((0,),), ((1,), (1, 0)), ((0,), ())]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain Python, steps are small, so that batches come between them."""
    if PURE_PYTHON:
        monkeypatch.setattr(shrink, "LEAST", 8)
        monkeypatch.setattr(shrink, "PIECE", 64)
        monkeypatch.setattr(shrink, "SPARE", 8)
        monkeypatch.setattr(index, "CUT_IN_PLACE", 16)


def keys(order: random.Random, n: int) -> list[tuple[int, int]]:
    found = {(order.randrange(n), order.randrange(n // 20 + 1)) for _ in range(n)}
    made = sorted(found)
    order.shuffle(made)
    return made


def remove(r: Relation, key: tuple[int, ...]) -> None:
    r.add(key, tuple(-word for word in r.model[key]))


def settle(r: Relation) -> None:
    """Take steps until nothing is left to do."""
    for _ in range(100_000):
        if load(r.t, REMOVED) == 0:
            return
        shrink.shrink(r.t)
    raise AssertionError("shrinking does not end")


@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("indexes", INDEXES)
@pytest.mark.parametrize("seed", range(3))
def test_a_shrinking_table_agrees_with_a_dict(
    indexes: tuple[tuple[int, ...], ...], journal: bool, digests: bool, seed: int
) -> None:
    order = random.Random(seed)
    with relation(2, 1, indexes, journal=journal, digests=digests) as r:
        for _ in range(2):
            for key in keys(order, SIZE):
                if key not in r.model:
                    r.add(key, (order.randrange(1, 4),))
            r.end_batch()
            there = list(r.model)
            order.shuffle(there)
            # Batches of removals with a few inserts, until few rows are left.
            while len(there) > SIZE // 50:
                for _ in range(order.choice((1, 7, SIZE // 20))):
                    if there:
                        remove(r, there.pop())
                    if order.random() < 0.2:
                        key = (order.randrange(10 * SIZE), order.randrange(9))
                        if key not in r.model:
                            r.add(key, (1,))
                            if order.random() < 0.5:
                                remove(r, key)
                r.end_batch()
                shrink.shrink(r.t)
                if order.random() < 0.1:
                    r.agree()
            r.agree()
            r.end_batch()


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("left", [0, SIZE // 10, SIZE // 3])
@pytest.mark.parametrize("indexes", INDEXES)
def test_a_shrunk_table_keeps_little_unused_memory(
    indexes: tuple[tuple[int, ...], ...], left: int, last_first: bool
) -> None:
    order = random.Random(left)
    with relation(2, 1, indexes) as r, relation(2, 1, indexes) as needed:
        made = keys(order, SIZE)
        for key in made:
            r.add(key, (1,))
        full = table_bytes(r.t)
        gone, kept = (made[left:], made[:left]) if last_first else (made[: len(made) - left], made[len(made) - left :])
        for number, key in enumerate(reversed(gone) if last_first else gone):
            remove(r, key)
            if number % 10 == 0:
                shrink.shrink(r.t)
        settle(r)
        r.agree()
        for key in kept:
            needed.add(key, (1,))
        assert table_bytes(r.t) < full
        for e, other in zip((r.t, *r.indexes), (needed.t, *needed.indexes), strict=True):
            assert load(e, MASK) < max(4 * (load(other, MASK) + 1), 4 * shrink.SPARE)
            assert load(e, PACKED) == NOT_PACKING and load(e, NEXT) == 0
            assert load(e, USED) <= 2 * load(e, LIVE) + shrink.SPARE
            assert load(e, TOUCHED) <= 17 / 16 * load(e, USED) + shrink.SPARE
        for x in r.indexes:
            assert load(x, index.BLOCK_WORDS) >= block_words(x)


@pytest.mark.parametrize("digests", [False, True])
def test_a_long_slice_shrinks_in_place(digests: bool) -> None:
    size = 600 if PURE_PYTHON else 80_000
    with relation(2, 1, ((0,),), digests=digests) as r:
        for number in range(size):
            r.add((7, number), (1,))
        full = load(r.indexes[0], index.BLOCK_WORDS)
        there = list(r.model)
        random.Random(1).shuffle(there)
        while len(there) > size // 40:
            remove(r, there.pop())
        assert load(r.indexes[0], index.BLOCK_WORDS) < full / 8
        settle(r)
        r.agree()
        while there:
            remove(r, there.pop())
        r.agree()
