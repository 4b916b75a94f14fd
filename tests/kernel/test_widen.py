"""A table whose narrow sums become reals equals a table that had reals from the beginning."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.hash.table import FAILED, WIDTH
from freshviews.kernel.memory.mem import PURE_PYTHON, load, store
from freshviews.kernel.ordered.index import INTEGER_ORDER
from freshviews.kernel.ordered.ranges import ordered_first, ordered_last
from freshviews.kernel.rings.narrow import NARROW_WORDS
from freshviews.kernel.scalar.real import REAL_WORDS
from freshviews.kernel.widen import widen_table
from freshviews.ring import NARROW, REAL, Real
from tests.kernel.relation import Payload, Relation, relation
from tests.kernel.words import block

STEPS = 100 if PURE_PYTHON else 1000
RUNS = (0, 1, 1, 2, 0, 2)
"""A count, two narrow sums, two words."""
WORDS = 1 + 2 * NARROW_WORDS + 2
WIDE_WORDS = 1 + 2 * REAL_WORDS + 2


def wide(payload: Payload) -> Payload:
    sums = [NARROW.from_words(payload[at : at + NARROW_WORDS]) for at in (1, 1 + NARROW_WORDS)]
    return (payload[0], *REAL.to_words(sums[0]), *REAL.to_words(sums[1]), *payload[-2:])


def widened(r: Relation) -> None:
    with block(RUNS) as runs:
        assert widen_table(r.t, WIDE_WORDS, runs, len(RUNS) // 2) == 1
    r.model = {key: wide(payload) for key, payload in r.model.items()}
    r.before = {key: wide(payload) for key, payload in r.before.items()}


def steps(order: random.Random, words: int, r: Relation, is_wide: bool, growing: bool) -> None:
    """Inserts, changes and deletes of rows."""
    for _ in range(STEPS):
        if r.model and order.random() < (0.2 if growing else 0.8):
            key = order.choice(list(r.model))
            r.add(key, tuple(-word if -word < 2**63 else word for word in r.model[key]))
            continue
        ring = REAL if is_wide else NARROW
        key = tuple(order.randrange(40) for _ in range(words))
        sums = [ring.to_words(Real(Fraction(order.randrange(-(2**100), 2**100), 2**114))) for _ in range(2)]
        r.add(key, (1, *sums[0], *sums[1], order.randrange(9), -1))


@pytest.mark.parametrize(
    "words, indexes, ordered, journal",
    [
        (1, (), None, False),
        (2, ((0,), (1,)), None, True),
        (3, ((2,), (0, 1), ()), INTEGER_ORDER, True),
        (3, ((0, 1),), INTEGER_ORDER, False),
        (0, (), None, True),
        (0, (), None, False),
    ],
)
@pytest.mark.parametrize("growing", [True, False])
def test_a_widened_table_has_the_same_rows_with_wider_payloads(
    words: int, indexes: tuple[tuple[int, ...], ...], ordered: int | None, journal: bool, growing: bool
) -> None:
    order = random.Random(words)
    with relation(words, WORDS, indexes, ordered, journal, digests=journal) as r:
        steps(order, words, r, False, True)
        if not growing:
            r.end_batch()
            if not journal and ordered is None:
                with block([r.t]) as tables:
                    shrink_tables(tables, 1)
            steps(order, words, r, False, False)
        widened(r)
        r.agree()
        for phase in range(4):
            steps(order, words, r, True, phase % 2 == 0)
            r.agree()
            r.end_batch()
            r.agree()
            if ordered is not None and r.model:
                for *prefix, _ in list(r.model)[:20]:
                    last = [key[-1] for key in r.model if list(key[:-1]) == prefix]
                    assert ordered_first(r.ordered, r.t, tuple(prefix)) == min(last)
                    assert ordered_last(r.ordered, r.t, tuple(prefix)) == max(last)


def test_an_empty_table_can_be_widened() -> None:
    with relation(1, WORDS, ((0,),), None, True) as r:
        widened(r)
        steps(random.Random(1), 1, r, True, True)
        r.agree()


def test_a_table_is_unchanged_if_widening_runs_out_of_memory() -> None:
    with relation(1, WORDS) as r:
        r.add((7,), (1, *(0,) * (WORDS - 1)))
        width = load(r.t, WIDTH)
        with block(RUNS) as runs:
            assert widen_table(r.t, 2**55, runs, len(RUNS) // 2) == 0
        assert (load(r.t, WIDTH), load(r.t, FAILED)) == (width, 1)
        store(r.t, FAILED, 0)
        r.agree()
