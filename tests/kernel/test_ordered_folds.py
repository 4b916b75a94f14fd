from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.kernel.btree import folds
from freshviews.kernel.hash.table import find, row_number
from freshviews.kernel.memory.mem import PURE_PYTHON, load32
from freshviews.kernel.ordered import folds as ordered_folds
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import index_updates as updates
from freshviews.kernel.ordered.folds import ordered_fold
from freshviews.kernel.ordered.index import DESCENDING, INTEGER_ORDER, ROOT, set_strings
from freshviews.types import NULL
from tests.kernel.relation import Relation, relation
from tests.kernel.test_ordered import BLOCK, CODES, rank
from tests.kernel.test_tree import COMPOSE_ADDRESS, PRIME, compose
from tests.kernel.words import MANY

FOLDS = ((folds.BIT_AND, 0), (folds.BIT_OR, 0), (folds.SUM, 0), (folds.OWN, COMPOSE_ADDRESS))
MEANINGS: tuple[Callable[[int, int], int], ...] = (
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a + b, compose
)  # fmt: skip


def affine(n: int) -> int:
    """A map for ``compose``."""
    return (n % (PRIME - 1) + 1) << 16 | n * 7919 % PRIME


def check(r: Relation) -> None:
    """Check that the fold of every prefix equals the fold of its rows in the model."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for *prefix, last in sorted(r.model, key=lambda key: (key[:-1], -key[-1])):
        groups.setdefault(tuple(prefix), []).append(last)
    for prefix, words in groups.items():
        for f, meaning in enumerate(MEANINGS):
            assert ordered_fold(r.ordered, r.t, prefix, f) == reduce(meaning, words)


@settings(MANY, max_examples=40)
@given(st.data())
def test_the_fold_of_a_prefix_equals_the_fold_of_its_rows_after_inserts_and_deletes(data: st.DataObject) -> None:
    one = st.tuples(st.integers(-1, 1), st.integers(0, 40).map(affine), st.booleans())
    with relation(2, 1, ((0,),), INTEGER_ORDER | DESCENDING, folds=FOLDS) as r:
        for group, last, end in data.draw(st.lists(one, max_size=40)):
            key = (group, last)
            r.add(key, (-r.model[key][0] if key in r.model else 2,))
            if end:
                check(r)
        check(r)
        assert ordered_fold(r.ordered, r.t, (2,), 0) == 0
        r.agree()


def test_folds_of_many_rows_stay_right_until_the_last_is_deleted() -> None:
    order = random.Random(5)
    with relation(1, 1, ordered=INTEGER_ORDER | DESCENDING, folds=FOLDS) as r:
        keys = [(affine(i),) for i in range(300)]
        order.shuffle(keys)
        for rising in (True, False):
            for i, key in enumerate(keys):
                r.add(key, (1 if rising else -1,))
                if i % 20 == 0:
                    check(r)
        assert load32(r.ordered + 8 * ROOT, 0) == 0
        r.add((5,), (1,))
        assert ordered_fold(r.ordered, r.t, (), 0) == 5


@pytest.mark.parametrize("kind", CODES)
@settings(MANY, max_examples=30)
@given(data=st.data())
def test_folds_find_the_least_and_greatest_word_of_every_prefix_in_every_order(
    kind: int, data: st.DataObject
) -> None:
    words = [word for word in CODES[kind] if word != NULL]
    one = st.tuples(st.integers(-1, 1), st.sampled_from((0, NULL)), st.sampled_from(words))
    with relation(3, 1, ordered=kind, folds=((folds.LEAST, 0), (folds.GREATEST, 0))) as r:
        set_strings(r.ordered, BLOCK)
        for key in data.draw(st.lists(one, max_size=40)):
            r.add(key, (-1 if key in r.model else 1,))
            for prefix in {key[:n] for key in r.model for n in range(3)}:
                below = sorted((row[-1] for row in r.model if row[: len(prefix)] == prefix), key=rank(kind))
                assert ordered_fold(r.ordered, r.t, prefix, 0) == below[0]
                assert ordered_fold(r.ordered, r.t, prefix, 1) == below[-1]
            assert ordered_fold(r.ordered, r.t, (2,), 0) == 0
        r.agree()


@pytest.mark.parametrize("prefix", [(), (0,), (0, 0)])
def test_an_update_of_a_large_group_compares_logarithmically_many_rows(
    prefix: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts compared rows in a delete or an insert and in the fold of one or several groups after it."""
    n = 1_000 if PURE_PYTHON else 100_000
    order = random.Random(n)
    values = order.sample(range(4 * n), n)
    counted = [0]

    def counting(function: Callable[..., int]) -> Callable[..., int]:
        def count(*args: int) -> int:
            counted[0] += 1
            return function(*args)

        return count

    with relation(3, 1, ordered=INTEGER_ORDER, folds=(FOLDS[0], (folds.LEAST, 0))) as r:
        for value in values:
            r.add((0, value % 2, value), (1,))
        # Runs the kernels as plain Python, over the memory of compiled ones.
        for module, names in (
            (updates, ("_enter", "_recompute_path", "_recompute_row", "tree_insert", "tree_remove", "fold_row")),
            (ordered_folds, ("_fold_of_prefix",)),
        ):
            for name in names:
                function = getattr(module, name)
                monkeypatch.setattr(module, name, getattr(function, "body", function))
        monkeypatch.setattr(updates, "fold_row", counting(updates.fold_row))
        for module in (updates, ordered):
            monkeypatch.setattr(module, "compare_rows", counting(ordered.compare_rows))
        monkeypatch.setattr(ordered_folds, "compare_prefix", counting(ordered.compare_prefix))
        insert, remove = (
            getattr(function, "__wrapped__", function)
            for function in (updates.ordered_insert, updates.ordered_remove)
        )
        most = []
        for value in order.sample(values, 50):
            number = row_number(r.t, find(r.t, (0, value % 2, value)))
            for change in (remove, insert):
                counted[0] = 0
                change(r.ordered, r.t, number)
                ordered_folds.write_key(ordered.prefix_of(r.ordered), prefix)
                ordered_folds._fold_of_prefix(r.ordered, r.t, 1, len(prefix))
                most.append(counted[0])
        # Two paths down and one up, usually twice as deep as the perfect tree, and two to the ends of the group.
        assert sum(most) / len(most) < 8 * math.log2(n)
        assert max(most) < 13 * math.log2(n)
