"""Lifts that are elements: columns have the words of an element of any ring. Generated code, the interpreter and the
ring agree, also on elements that are multiplied along a join."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from freshviews.codegen.compiled_block import compile_block
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.expr.nodes import WORDS, Call, Column
from freshviews.plan import STRATEGIES
from freshviews.program.printer import print_program
from freshviews.program.reference.interpreter import State
from freshviews.query.block import Block, Output, Result
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.ring import REAL, Cofactor, CofactorRing, Real, Ring
from freshviews.types import BIGINT, NULL
from freshviews.types.dictionary import Dictionary
from tests.ring.user_rings import AGGREGATES

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

INTEGERS, DOUBLES = (CofactorRing(number, (0, 1)) for number in ("integer", "double"))
GAUSS, MODULO = (AGGREGATES[name].ring.over((0, 1)) for name in ("gauss", "modulo"))
ELEMENTS: dict[str, tuple[Ring[Any], list[Any]]] = {
    # The double 8192 has a word equal to the least int64, the code of NULL.
    "real": (REAL, [Real(Fraction(8192)), Real(Fraction(-1, 3 * 2**9) * 3, nans=1), Real(Fraction(2**900), 0, 2, -1)]),
    "cofactor.integer": (INTEGERS, [Cofactor(2, ((0, 5),), (((0, 1), -7),)), Cofactor(-1), INTEGERS.zero]),
    "cofactor.double": (DOUBLES, [Cofactor(1, ((1, 2**63),), (((0, 0), 2**127 + 1),)), Cofactor(3, ((0, -(2**90)),))]),
    "gauss": (GAUSS, [(3, -4), (0, 2**40), (-1, 0)]),
    "modulo": (MODULO, [(1_000_002,), (5,), (0,)]),
}


def query_of(ring: Ring[Any], joined: bool) -> Query:
    words = tuple(Column(f"w{i}", BIGINT) for i in range(ring.words))
    lift = Lift("t", Call(WORDS, words, BIGINT, False))
    other = Lift("t", Call(WORDS, tuple(Column(f"x{i}", BIGINT) for i in range(ring.words)), BIGINT, False))
    aggregates = (
        Aggregate("count", "integer"),
        Aggregate("e", ring.name, (lift,)),
        Aggregate("n", "integer", (Lift("t", Column("n", BIGINT, False)),)),
        Aggregate("f", ring.name, (other,)),
    )
    t = Atom("t", "t", ("k",), (Column("k", BIGINT, False),))
    u = Atom("u", "u", ("k", "h"), (Column("k", BIGINT, False), Column("h", BIGINT, False)))
    return Query("v", ("h",) if joined else ("k",), (t, u) if joined else (t,), aggregates)


def test_a_word_of_a_ring_element_may_equal_the_code_of_null() -> None:
    ring, elements = ELEMENTS["real"]
    assert NULL in ring.to_words(elements[0])


def test_the_words_of_a_ring_element_are_abbreviated_when_printed() -> None:
    text = print_program(STRATEGIES["view_tree"].of_query(query_of(REAL, False)))
    assert "let e_of_t = words(w0 .. w36)" in text
    assert "Q[k] += (count: m, e: m * e_of_t, n: m * n_of_t, f: m * f_of_t)" in text


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("strategy", ["first_order", "change_propagation", "higher_order", "view_tree"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_ring_elements_are_added_and_multiplied_along_joins(kind: str, strategy: str, joined: bool) -> None:
    ring, elements = ELEMENTS[kind]
    query = query_of(ring, joined)
    program = STRATEGIES[strategy].of_query(query)
    words = [(name, i) for name in ("e", "f") for i in range(ring.words)]
    results = (
        Result("total", "count", ("n",), BIGINT, BIGINT, False),
        *(Result(f"{name}{i}", "word", (name,), BIGINT, BIGINT, True, (i,)) for name, i in words),
    )
    free = query.free[0]
    outputs = (Output(free, Column(free, BIGINT)), *(Output(r.name, Column(r.name, BIGINT)) for r in results))
    block = compile_block(program, Block("groups", query, outputs, results), (), (), None)
    engine, state = BlockState(program, block, 2 + len(results), Dictionary()), State(program)
    engine.want_changes(True)
    rng = random.Random(kind)
    stored: dict[str, list[tuple[Any, ...]]] = {"t": [], "u": []}
    columns = {
        "t": ["k", "n", *(f"w{i}" for i in range(ring.words)), *(f"x{i}" for i in range(ring.words))],
        "u": ["k", "h"],
    }
    found: Counter[tuple[int, ...]] = Counter()
    for step in range(12):
        relation = rng.choice("tu") if joined else "t"
        batch: list[tuple[tuple[Any, ...], int]] = []
        if step == 11:
            relation = "t"
            batch = [(row, -1) for row in stored["t"]]
        elif stored[relation] and step % 3 == 2:
            batch = [(row, -1) for row in rng.sample(stored[relation], len(stored[relation]) // 2)]
        else:
            for _ in range(rng.randrange(1, 6)):
                drawn = (rng.randrange(3), rng.randrange(9), rng.choice(elements), rng.choice(elements))
                batch.append((drawn if relation == "t" else (rng.randrange(3), rng.randrange(2)), 1))
        for row, m in batch:
            stored[relation].append(row) if m > 0 else stored[relation].remove(row)
        coded = [
            ((row[0], row[1], *ring.to_words(row[2]), *ring.to_words(row[3])) if relation == "t" else row, m)
            for row, m in batch
        ]
        state.apply(relation, [(dict(zip(columns[relation], row, strict=True)), m) for row, m in coded])
        if coded:
            arrays = {c: np.array([row[i] for row, _ in coded]) for i, c in enumerate(columns[relation])}
            amounts = np.array([m for _, m in coded])
            places = {name: address_of(column) for name, column in arrays.items()}
            engine.run(relation, places, address_of(amounts), len(amounts))
        for *row, multiplicity in engine.take_changes().tolist():
            found[tuple(row)] += multiplicity
        expected = totals(ring, stored, joined)
        assert {k: payload[1:] for (k,), payload in state.output().items()} == expected
        assert {row: n for row, n in found.items() if n} == {
            (k, n, *ring.to_words(e), *ring.to_words(f)): 1 for k, (e, n, f) in expected.items()
        }
    engine.close()


def totals(ring: Ring[Any], stored: dict[str, list[tuple[Any, ...]]], joined: bool) -> dict[int, tuple[Any, int, Any]]:
    found: dict[int, tuple[Any, int, Any]] = {}
    for k, n, e, f in stored["t"]:
        for group in [h for key, h in stored["u"] if key == k] if joined else [k]:
            before = found.get(group, (ring.zero, 0, ring.zero))
            found[group] = ring.add(before[0], e), before[1] + n, ring.add(before[2], f)
    return found
