from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.codes.string_heap import HEAP_ROOM, enter_text, free_strings, new_strings
from freshviews.kernel.codes.string_slots import HEAP
from freshviews.kernel.hash.table import FAILED, SCRATCH, find, row_at, row_number
from freshviews.kernel.memory.mem import PURE_PYTHON, allocate, copy_words, load, load32, release, store
from freshviews.kernel.ordered.index import (
    DESCENDING,
    DOUBLE_ORDER,
    INTEGER_ORDER,
    NULLS_LAST,
    ROOT,
    ROW_WORD,
    SLICES,
    STRING_ORDER,
    compare_codes,
    set_strings,
)
from freshviews.kernel.ordered.index_updates import ordered_insert, ordered_remove
from freshviews.kernel.ordered.ranges import ordered_first, ordered_last
from freshviews.kernel.ordered.top import top_next, top_start
from freshviews.types import NULL
from tests.kernel.relation import Relation, relation
from tests.kernel.words import MANY, code, double

STRINGS = ["b", "", "a", "ab", "é", "z", "aa", "\U0001f600", "Z", "a\x00", "\uffff"]


def strings_block() -> int:
    """Address of the block of a dictionary with STRINGS."""
    block = new_strings()
    for text in STRINGS:
        data = text.encode()
        words = allocate(2)
        for i in range(0, len(data), 8):
            store(words, i // 8, int.from_bytes(data[i : i + 8], "little"))
        enter_text(block, words, len(data))
        release(words)
    return block


BLOCK = strings_block()


def nan_last(word: int) -> tuple[int, float]:
    x = double(word)
    return (1, 0.0) if math.isnan(x) else (0, x)


def rank(kind: int) -> Callable[[int], Any]:
    """A sort key of Python for the codes of a kind."""
    by: Callable[[int], Any] = {
        INTEGER_ORDER: lambda word: word,
        DOUBLE_ORDER: nan_last,
        STRING_ORDER: lambda word: STRINGS[word].encode(),
    }[kind]
    return lambda word: (0,) if word == NULL else (1, by(word))


DOUBLES = [
    code(x) for x in (0.0, 1.5, -1.5, -2.0, 1e300, -1e300, 5e-324, -5e-324, math.inf, -math.inf, math.nan)
]
INTEGERS = [0, 1, -1, 7, 2**63 - 1, -(2**63) + 1, 2**32, -(2**32)]
CODES = {
    INTEGER_ORDER: [*INTEGERS, NULL],
    DOUBLE_ORDER: [*DOUBLES, NULL],
    STRING_ORDER: [*range(len(STRINGS)), NULL],
}
kinds = st.sampled_from([INTEGER_ORDER, DOUBLE_ORDER, STRING_ORDER])


def prepared(r: Relation) -> Relation:
    set_strings(r.ordered, BLOCK)
    return r


def check(r: Relation, kind: int) -> None:
    """Check that the first and last of every prefix are the least and greatest of the model, or absent as there."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for *prefix, last in r.model:
        groups.setdefault(tuple(prefix), []).append(last)
    for prefix, codes in groups.items():
        assert ordered_first(r.ordered, r.t, prefix) == min(codes, key=rank(kind))
        assert ordered_last(r.ordered, r.t, prefix) == max(codes, key=rank(kind))
    if load(r.ordered, SLICES) == 0:
        check_treap(r, kind)


def check_treap(r: Relation, kind: int) -> int:
    """Check that the rows in the index, in order, are the model's keys; returns the depth."""
    keys: list[tuple[int, ...]] = []
    word = load(r.ordered, ROW_WORD)

    def walk(child: int, depth: int) -> int:
        if child == 0:
            return depth
        row = row_at(r.t, child - 1)
        left = walk(load32(row, 2 * word), depth + 1)
        keys.append(tuple(load(row, i) for i in range(width)))
        return max(left, walk(load32(row, 2 * word + 1), depth + 1))

    width = len(next(iter(r.model), ()))
    depth = walk(load32(r.ordered + 8 * ROOT, 0), 0)
    assert keys == sorted(r.model, key=lambda key: (key[:-1], rank(kind)(key[-1])))
    return depth


@pytest.mark.parametrize("kind", [INTEGER_ORDER, DOUBLE_ORDER, STRING_ORDER])
def test_codes_compare_like_their_values_with_null_first_or_last(kind: int) -> None:
    with relation(1, 1, ordered=kind) as r:
        prepared(r)
        for a in CODES[kind]:
            for b in CODES[kind]:
                x, y = rank(kind)(a), rank(kind)(b)
                order = (x > y) - (x < y)
                assert compare_codes(r.ordered, kind, a, b) == order
                nulls = -order if NULL in (a, b) else order
                assert compare_codes(r.ordered, kind | NULLS_LAST, a, b) == nulls
                assert compare_codes(r.ordered, kind | DESCENDING, a, b) == (order if NULL in (a, b) else -order)
                assert compare_codes(r.ordered, kind | DESCENDING | NULLS_LAST, a, b) == -order


@pytest.mark.parametrize(("journal", "small"), [(False, False), (True, False), (True, True)])
@MANY
@given(kinds, st.data())
def test_the_least_and_greatest_row_follow_inserts_and_deletes(
    journal: bool, small: bool, kind: int, data: st.DataObject
) -> None:
    one = st.tuples(st.integers(-1, 1), st.sampled_from(CODES[kind]), st.booleans())
    with relation(2, 1, ((0,),), kind, journal, small=small) as r:
        prepared(r)
        for group, last, end in data.draw(st.lists(one, max_size=50)):
            key = (group, last)
            r.add(key, (-r.model[key][0] if key in r.model else 2,))
            if end:
                check(r, kind)
                if journal:
                    r.end_batch()
        check(r, kind)
        r.agree()


@pytest.mark.parametrize("words", [1, 2, 3])
def test_rows_are_found_by_prefixes_of_every_length(words: int) -> None:
    order = random.Random(words)
    with relation(words, 1, ordered=INTEGER_ORDER) as r:
        for _ in range(200):
            key = tuple(order.randrange(-3, 4) for _ in range(words))
            r.add(key, (-r.model[key][0] if key in r.model else 1,))
        check(r, INTEGER_ORDER)


def test_a_prefix_without_rows_has_no_first_row() -> None:
    with relation(2, 1, ordered=INTEGER_ORDER) as r:
        assert ordered_first(r.ordered, r.t, (1,)) == 0
        r.add((0, 5), (1,))
        r.add((2, 5), (1,))
        assert ordered_first(r.ordered, r.t, (1,)) == 0
        assert ordered_last(r.ordered, r.t, (1,)) == 0
        r.add((0, 5), (-1,))
        assert ordered_last(r.ordered, r.t, (0,)) == 0


def test_a_row_kept_only_for_the_journal_is_not_found() -> None:
    with relation(2, 1, ordered=INTEGER_ORDER, journal=True) as r:
        r.add((1, 3), (1,))
        r.add((1, 4), (1,))
        r.end_batch()
        r.add((1, 3), (-1,))
        assert find(r.t, (1, 3)) != 0
        assert ordered_first(r.ordered, r.t, (1,)) == 4
        r.add((1, 3), (1,))
        assert ordered_first(r.ordered, r.t, (1,)) == 3


def test_a_repeated_insert_leaves_an_ordered_index_unchanged() -> None:
    with relation(1, 1, ordered=INTEGER_ORDER) as r:
        for i in range(20):
            r.add((i,), (1,))
        number = row_number(r.t, find(r.t, (13,)))
        ordered_insert(r.ordered, r.t, number)
        check(r, INTEGER_ORDER)
        ordered_remove(r.ordered, r.t, number)
        ordered_remove(r.ordered, r.t, number)
        del r.model[(13,)]
        check_treap(r, INTEGER_ORDER)


def test_a_table_that_ran_out_of_memory_never_indexes_its_scratch_row() -> None:
    with relation(1, 1, ordered=INTEGER_ORDER) as r:
        for i in range(20):
            r.add((i,), (1,))
        store(r.t, FAILED, 1)
        own = row_number(r.t, load(r.t, SCRATCH))
        ordered_insert(r.ordered, r.t, own)
        check_treap(r, INTEGER_ORDER)
        ordered_remove(r.ordered, r.t, own)
        top_start(r.ordered, r.t, load(r.t, SCRATCH), 0)
        assert top_next(r.ordered, r.t, 0, 5) == 0
        check_treap(r, INTEGER_ORDER)
        store(r.t, FAILED, 0)


@pytest.mark.parametrize("order", ["rising", "falling", "inside out"])
def test_the_depth_of_an_ordered_index_is_logarithmic(order: str) -> None:
    n = 500 if PURE_PYTHON else 20_000
    keys = {
        "rising": list(range(n)),
        "falling": list(range(n, 0, -1)),
        "inside out": [i // 2 if i % 2 else -i // 2 for i in range(n)],
    }[order]
    with relation(1, 1, ordered=INTEGER_ORDER) as r:
        for i in keys:
            r.add((i,), (1,))
        assert check_treap(r, INTEGER_ORDER) < 3.5 * math.log2(n)
        for i in keys[: 9 * n // 10]:
            r.add((i,), (-1,))
        assert check_treap(r, INTEGER_ORDER) < 4 * math.log2(n)


def test_strings_may_move_in_memory_between_changes_of_an_ordered_index() -> None:
    with relation(1, 1, ordered=STRING_ORDER) as r:
        prepared(r)
        r.add((STRINGS.index("b"),), (1,))
        block = strings_block()
        set_strings(r.ordered, block)
        moved = allocate(load(block, HEAP_ROOM))
        copy_words(moved, load(block, HEAP), load(block, HEAP_ROOM))
        release(load(block, HEAP))
        store(block, HEAP, moved)
        r.add((STRINGS.index("ab"),), (1,))
        assert STRINGS[ordered_first(r.ordered, r.t, ())] == "ab"
        free_strings(block)
