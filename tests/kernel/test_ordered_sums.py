from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.kernel.hash.table import KEY, find, row_at, row_number
from freshviews.kernel.memory.mem import PURE_PYTHON, allocate, load, load32, release, store
from freshviews.kernel.memory.mem import bits as bits_of
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import index_updates as updates
from freshviews.kernel.ordered import ranges
from freshviews.kernel.ordered.groups import SMALL
from freshviews.kernel.ordered.index import DOUBLE_ORDER, INTEGER_ORDER, ROOT, SLICES
from freshviews.kernel.ordered.ranges import (
    HAS_HIGH,
    HAS_LOW,
    HIGH_STRICT,
    LOW_STRICT,
    ordered_first,
    ordered_last,
    range_first,
    range_last,
    range_next,
    range_total,
    range_word,
    sum_range,
)
from freshviews.kernel.scalar.payload import SUM_OVERFLOW
from freshviews.kernel.scalar.real import REAL_WORDS
from freshviews.ring import REAL, Real
from freshviews.types import NULL
from tests.kernel.relation import Key, Relation, relation
from tests.kernel.test_ordered import CODES, rank
from tests.kernel.words import MANY, words_at

Bound = tuple[int, bool] | None


def inside(value: int, low: Bound, high: Bound, kind: int) -> bool:
    place = rank(kind)
    if value == NULL or NULL in (low and low[0], high and high[0]):
        return False
    above = low is None or place(low[0]) < place(value) or (value == low[0] and not low[1])
    return above and (high is None or place(value) < place(high[0]) or (value == high[0] and not high[1]))


def bits(low: Bound, high: Bound) -> tuple[int, int, int]:
    """The arguments of a range: low, high, and the bits of its bounds."""
    has = 0 if low is None else HAS_LOW | low[1] * LOW_STRICT
    has |= 0 if high is None else HAS_HIGH | high[1] * HIGH_STRICT
    return low[0] if low else 0, high[0] if high else 0, has


def expected(r: Relation, prefix: Key, low: Bound, high: Bound, kind: int) -> dict[Key, tuple[int, ...]]:
    """The rows of a range, in order."""
    n = len(prefix)
    rows = [key for key in r.model if key[:n] == prefix and inside(key[n], low, high, kind)]
    return {key: r.model[key] for key in sorted(rows, key=lambda key: (rank(kind)(key[n]), key[n + 1 :]))}


def walked(r: Relation, prefix: Key, low: Bound, high: Bound) -> list[Key]:
    """The rows that a loop over a range visits, sorted if they are outside the tree."""
    found = []
    child = range_first(r.ordered, r.t, prefix, *bits(low, high))
    last = range_last(r.ordered, r.t, prefix, *bits(low, high))
    while child != 0:
        found.append(words_at(row_at(r.t, child - 1), load(r.t, KEY)))
        child = range_next(r.ordered, r.t, child, last, *bits(low, high))
    return found if load(r.ordered, SLICES) == 0 else sorted(found)


@pytest.mark.parametrize(("kind", "small"), [(INTEGER_ORDER, False), (DOUBLE_ORDER, False), (INTEGER_ORDER, True)])
@settings(MANY, max_examples=40)
@given(data=st.data())
def test_the_sums_of_a_range_equal_the_sums_of_its_rows_after_updates(
    kind: int, small: bool, data: st.DataObject
) -> None:
    values = st.sampled_from(CODES[kind])
    key = st.tuples(st.integers(0, 1), values, st.integers(0, 1))
    change = st.tuples(key, st.integers(-2, 2), st.integers(-3, 3))
    bound = st.none() | st.tuples(values, st.booleans())
    status = allocate(1)
    with relation(3, 2, ((0,),), (kind, INTEGER_ORDER), sums=(1, 1), small=small) as r:
        for row, count, more in data.draw(st.lists(change, max_size=60)):
            if (count, more) != (0, 0):
                r.add(row, (count, more))
        for low, high in data.draw(st.lists(st.tuples(bound, bound), min_size=1, max_size=12)):
            for group in (0, 1, 2):
                rows = expected(r, (group,), low, high, kind)
                sum_range(r.ordered, r.t, (group,), *bits(low, high))
                assert range_word(r.ordered, r.t, 0, status) == sum(one for one, _ in rows.values())
                assert range_word(r.ordered, r.t, 1, status) == sum(other for _, other in rows.values())
                assert walked(r, (group,), low, high) == list(rows)
        assert load(status, 0) == 0
        r.agree()
    release(status)


def test_sums_of_many_rows_stay_right_until_the_last_is_deleted() -> None:
    order = random.Random(5)
    status = allocate(1)
    with relation(1, 1, ordered=INTEGER_ORDER, sums=(1,), journal=True) as r:
        for _ in range(2):
            keys = list(range(300))
            order.shuffle(keys)
            for sign in (1, 1, -2):
                for i, key in enumerate(keys):
                    r.add((key,), (sign * key if key else sign,))
                    if i % 20 == 0:
                        low, high = sorted((order.randrange(300), order.randrange(300)))
                        rows = expected(r, (), (low, True), (high, False), INTEGER_ORDER)
                        sum_range(r.ordered, r.t, (), *bits((low, True), (high, False)))
                        assert range_word(r.ordered, r.t, 0, status) == sum(one for (one,) in rows.values())
            r.end_batch()
        sum_range(r.ordered, r.t, (), 0, 0, 0)
        assert range_word(r.ordered, r.t, 0, status) == 0
    release(status)


def test_a_range_sum_beyond_64_bits_is_an_error() -> None:
    status = allocate(1)
    with relation(1, 1, ordered=INTEGER_ORDER, sums=(1,)) as r:
        for key in range(16):
            r.add((key,), ((2**63 - 1) * (-1 if key >= 8 else 1),))
        for low, high, total in ((0, 15, 0), (7, 8, 0), (7, 7, 2**63 - 1), (3, 11, 2**63 - 1)):
            sum_range(r.ordered, r.t, (), low, high, HAS_LOW | HAS_HIGH)
            assert range_word(r.ordered, r.t, 0, status) == total
            assert load(status, 0) == 0
        sum_range(r.ordered, r.t, (), 6, 7, HAS_LOW | HAS_HIGH)
        range_word(r.ordered, r.t, 0, status)
        assert load(status, 0) == SUM_OVERFLOW
    release(status)


def test_range_sums_of_reals_are_exact() -> None:
    order = random.Random(8)
    numbers = [0.1, -0.1, 1e300, -1e300, 5e-324, 3.25, math.inf, -math.inf, math.nan]
    status = allocate(1)
    with relation(2, 1 + REAL_WORDS, ordered=INTEGER_ORDER, sums=(1, REAL_WORDS)) as r:
        model: dict[Key, Real] = {}
        for _ in range(60):
            key = (order.randrange(2), order.randrange(10))
            code = _code_of(order.choice(numbers))
            before = model.get(key, REAL.zero)
            model[key] = REAL.add(before, REAL.lift(code))
            one = 1 if key not in r.model else 0
            after, old = REAL.to_words(model[key]), REAL.to_words(before)
            r.add(key, (one, *(_less(a, b) for a, b in zip(after, old, strict=True))))
            low, high = sorted((order.randrange(10), order.randrange(10)))
            for group in (0, 1):
                sum_range(r.ordered, r.t, (group,), low, high, HAS_LOW | HAS_HIGH)
                total = REAL.from_words(words_at(range_total(r.ordered, r.t, 1), REAL_WORDS))
                rows = expected(r, (group,), (low, False), (high, False), INTEGER_ORDER)
                whole = REAL.zero
                for row in rows:
                    whole = REAL.add(whole, model[row])
                assert total == whole
                assert range_word(r.ordered, r.t, 0, status) == len(rows)
    release(status)


def _code_of(x: float) -> int:
    return 0x7FF8000000000000 if math.isnan(x) else bits_of(x)


def _less(a: int, b: int) -> int:
    """a - b, modulo 2^64."""
    difference = (a - b) % 2**64
    return difference - 2**64 if difference >> 63 else difference


def test_an_update_and_a_range_sum_read_logarithmically_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1_000 if PURE_PYTHON else 100_000
    order = random.Random(n)
    values = order.sample(range(4 * n), n)
    counted = [0]

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: int) -> Any:
            counted[0] += 1
            return function(*args)

        return count

    with relation(2, 1, ordered=INTEGER_ORDER, sums=(1,)) as r:
        for value in values:
            r.add((0, value), (1,))
        # Runs the kernels as plain Python, over the memory of compiled ones.
        plain = {
            updates: ("_enter", "_recompute_path", "_recompute_row", "_add_above", "_write_growth", "sum_row"),
            ranges: ("_add_to_totals", "_place_in_range", "compare_prefix"),
        }
        for module, names in plain.items():
            for name in (*names, *(("tree_insert", "tree_remove") if module is updates else ())):
                function = getattr(module, name)
                monkeypatch.setattr(module, name, getattr(function, "body", function))
        for module, name in (
            (updates, "sum_row"), (updates, "compare_rows"), (ordered, "compare_rows"), (ranges, "_place_in_range")
        ):  # fmt: skip
            monkeypatch.setattr(module, name, counting(getattr(module, name)))
        update, insert, remove, total = (
            getattr(one, "__wrapped__", one)
            for one in (updates.ordered_update, updates.ordered_insert, updates.ordered_remove, ranges.sum_of_range)
        )
        for change in ("update", "move", "range"):
            most = []
            for value in order.sample(values, 50):
                row = find(r.t, (0, value))
                number = row_number(r.t, row)
                counted[0] = 0
                if change == "update":
                    store(row, 2, load(row, 2) + 1)
                    update(r.ordered, r.t, number)
                elif change == "move":
                    count = load(row, 2)
                    store(row, 2, 0)
                    remove(r.ordered, r.t, number)
                    store(row, 2, count)
                    insert(r.ordered, r.t, number)
                else:
                    total(r.ordered, r.t, 0, value, value + n, HAS_LOW | HAS_HIGH)
                most.append(counted[0])
            # One search to remove, one to insert, and two or three paths of sums.
            times = 3 if change == "move" else 1
            assert sum(most) / len(most) < 5 * times * math.log2(n)
            assert max(most) < 9 * times * math.log2(n)


@pytest.mark.parametrize("journal", [False, True])
def test_small_groups_are_scanned_outside_the_tree(journal: bool) -> None:
    order = random.Random(9)
    status = allocate(1)
    with relation(2, 1, ((0,),), INTEGER_ORDER, journal, sums=(1,), small=True) as r:

        def check() -> None:
            for group in range(3):
                low, high = sorted((order.randrange(-5, 200), order.randrange(-5, 200)))
                between = (low, True), (high, False)
                rows = expected(r, (group,), *between, INTEGER_ORDER)
                sum_range(r.ordered, r.t, (group,), *bits(*between))
                assert range_word(r.ordered, r.t, 0, status) == sum(one for (one,) in rows.values())
                assert walked(r, (group,), *between) == list(rows)
                values = [value for one, value in r.model if one == group]
                assert ordered_first(r.ordered, r.t, (group,)) == min(values, default=0)
                assert ordered_last(r.ordered, r.t, (group,)) == max(values, default=0)

        entered = set()
        for most in (SMALL, SMALL + 1, 20, 2 * SMALL, 0, SMALL + 1, 0):
            for group in range(2):
                while len(values := [key for key in r.model if key[0] == group]) != most:
                    key = order.choice(values) if len(values) > most else (group, order.randrange(1, 195))
                    r.add(key, (-r.model[key][0] if len(values) > most else 3,))
                    if order.random() < 0.1:
                        check()
                # A new row without a payload is briefly in the slice, and never inserted.
                r.add((group, 199), (0,))
                check()
            if journal:
                r.end_batch()
                check()
            entered.add((most, load32(r.ordered + 8 * ROOT, 0) != 0))
        # A small group is in the tree if it was larger before.
        assert entered == {(SMALL, False), (SMALL + 1, True), (20, True), (2 * SMALL, True), (0, False)}
        r.agree()
    release(status)
