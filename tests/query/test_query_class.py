from __future__ import annotations

import pytest

from freshviews.query.dependencies import FD
from freshviews.query.query_class import classify
from tests.query.notation import query

CASES = [
    (
        "Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)",
        "q-hierarchical (static width 1, dynamic width 0): the atoms of any two variables nest or are "
        "disjoint, and free variables dominate bound ones",
    ),
    (
        "Q(a) = R(a, b), S(b)",
        "delta_1-hierarchical, free-connex (static width 1, dynamic width 1): bound b dominates free a",
    ),
    (
        "Q() = R(a, b), S(b, c), T(c, a)",
        "cyclic (static width 3/2, dynamic width 1): no join tree: R(a, b), S(b, c), T(a, c) form a cycle",
    ),
    (
        "Q(a, d) = R(a, b), S(b, c), T(c, d)",
        "acyclic (static width 2, dynamic width 2): the free variables a, d are not connected in a join tree",
    ),
    (
        "Q() = R(a, b), S(b, c), T(c, d)",
        "free-connex (static width 1, dynamic width 1): the atoms of b and c overlap but do not nest",
    ),
    (
        "Q() = R(a), S(b), a < b",
        "acyclic (static width 2, dynamic width 1): a condition or lift over a, b spans atoms",
    ),
]


@pytest.mark.parametrize(("text", "line"), CASES)
def test_the_class_of_a_query_is_printed_as_one_line(text: str, line: str) -> None:
    assert str(classify(query(text))) == line


def test_keys_make_the_chain_query_q_hierarchical() -> None:
    chain = query("Q(w, x, y, z) = R(w, x), S(x, y), T(y, z)")
    found = classify(chain, (FD(("x",), ("y",), "S"), FD(("y",), ("z",), "T")))
    assert (found.q_hierarchical, found.q_hierarchical_under_keys) == (False, True)
    assert str(found) == (
        "q-hierarchical under its keys, free-connex (static width 1, dynamic width 0): under x -> y; y -> z "
        "it is maintained as R(w, x, y, z), S(x, y, z), T(y, z)"
    )


def test_one_dependency_does_not_make_a_query_q_hierarchical() -> None:
    of = query("Q(b, c, e) = R(e, c), S(b, e), T(c, e, b)")
    assert not classify(of, (FD(("e",), ("b",), "S"),)).q_hierarchical_under_keys
    assert classify(of, (FD(("e",), ("b",)),)).q_hierarchical_under_keys
