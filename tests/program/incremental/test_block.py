"""Join blocks of SQL, maintained by their trace, on the table of cases that all strategies run on."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from freshviews.query.query import Query
from freshviews.ring import Real
from tests.plan.cases import CASES, count
from tests.plan.oracle import Key, evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.program.incremental.block import BlockState

pytestmark = pytest.mark.compiled(4)


def expected(query: Query, stream: Stream) -> dict[Key, tuple[Any, ...]]:
    found = evaluate_query(query, stream.relations)
    payloads = {key: tuple(payload[a.name] for a in query.aggregates) for key, payload in found.items()}
    return {key: payload for key, payload in payloads.items() if set(payload) - {0, Real()}}


def last_negated(made: Query) -> Query:
    """The query with its last atom negated."""
    return replace(made, atoms=made.atoms[:-1], negated=made.atoms[-1:])


NEGATED = {
    "negated in a triangle": last_negated(CASES["triangles"]),
    "negated in a path of one relation": last_negated(count("Q(a, c) = R(a, b), R(b, c), R(c, a)")),
}


@pytest.mark.parametrize("name", [*CASES, *NEGATED])
def test_result_and_change_equal_a_full_evaluation(name: str) -> None:
    query = {**CASES, **NEGATED}[name]
    for seed in range(3):
        order = list(query.variables)
        random.Random(seed).shuffle(order)
        stream = Stream(relations_of(query), seed, signed=seed == 1)
        state = BlockState(query, tuple(order) if seed else ())
        before: dict[Key, tuple[Any, ...]] = {}
        for batch in stream.batches(12):
            state.apply(batch.relation, batch.rows())
            after = expected(query, stream)
            assert state.output() == after, f"after {batch}"
            zero = state.ring.zero
            grown = {
                key: state.ring.add(after.get(key, zero), state.ring.negate(before.get(key, zero)))
                for key in {**after, **before}
            }
            assert state.change() == {key: more for key, more in grown.items() if more != zero}
            before = after
