"""Enclosureness against its definition, and the classes of streams with their bounds."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import pytest

from freshviews.advice.enclosure import FOREVER, Spans, kind_of, lifespans, most_disjoint, of_stream, of_tree
from freshviews.query.acyclic import JoinTree
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import all_trees, parse_tree
from tests.query.notation import query

Update = tuple[str, tuple[int, ...], int]


def spans_of(updates: list[Update]) -> dict[str, Spans]:
    """Lifespans by relation; the time of an update is its position."""
    found = {}
    for name in {name for name, _, _ in updates}:
        own = [(row, m, i) for i, (relation, row, m) in enumerate(updates) if relation == name]
        rows, ms, times = zip(*own, strict=True)
        found[name] = lifespans(np.array(rows), np.array(ms), np.array(times))
    return found


def pairs(spans: Spans) -> list[tuple[int, int]]:
    return sorted(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))


def test_a_lifespan_lasts_from_an_insertion_to_its_deletion() -> None:
    updates: list[Update] = [
        ("R", (1,), 1), ("R", (2,), 1), ("R", (1,), 1), ("R", (1,), -2), ("R", (1,), 1), ("R", (3,), -1),
    ]  # fmt: skip
    assert pairs(spans_of(updates)["R"]) == [(-1, 5), (0, 3), (1, FOREVER), (4, FOREVER)]


def brute_force(inside: list[tuple[int, int]], start: int, end: int) -> int:
    within = [(s, e) for s, e in inside if s >= start and e <= end]
    for size in range(len(within), 0, -1):
        for chosen in combinations(sorted(within), size):
            if all(one[1] < other[0] for one, other in pairwise(chosen)):
                return size
    return 0


@pytest.mark.parametrize("seed", range(30))
def test_the_function_most_disjoint_agrees_with_an_exhaustive_search(seed: int) -> None:
    rng = random.Random(seed)
    inside = [(s, s + rng.randrange(8)) for s in (rng.randrange(20) for _ in range(9))]
    asked = [(s, s + rng.randrange(25)) for s in (rng.randrange(20) for _ in range(12))]
    spans = Spans(np.array([s for s, _ in inside]), np.array([e for _, e in inside]))
    found = most_disjoint(spans, np.array([s for s, _ in asked]), np.array([e for _, e in asked]))
    assert found.tolist() == [brute_force(inside, s, e) for s, e in asked]


FIGURE_2 = query("Q(x2) = R1(x1, x2), R2(x2, x3)")


def figure_2(text: str) -> JoinTree:
    return parse_tree(text, hypergraph(query("Q(x1, x2, x3) = R1(x1, x2), R2(x2, x3)")))


def long_and_short(n: int) -> list[Update]:
    """Figure 4: tuples of either relation that live long around n short lives, one after the other, of the other."""
    updates: list[Update] = []
    for long, short, base in (("R1", "R2", 0), ("R2", "R1", 10**6)):
        updates += [(long, (base + i, 0), 1) for i in range(n)]
        for i in range(n):
            updates += [(short, (0, base + i), 1), (short, (0, base + i), -1)]
        updates += [(long, (base + i, 0), -1) for i in range(n)]
    return updates


def test_the_stream_of_figure_4_has_the_same_enclosureness_as_in_the_paper() -> None:
    for n in (8, 64, 512):
        spans = spans_of(long_and_short(n))
        assert kind_of(spans) == "neither"
        assert n / 4 <= of_tree(figure_2("R2(R1)"), spans) <= n
        assert n / 4 <= of_tree(figure_2("R1(R2)"), spans) <= n
        assert of_tree(figure_2("[x2](R1, R2)"), spans) == 1
        assert of_stream(spans) >= n / 4


PATH = query("Q(a, b, c, d, e) = R(a, b), S(b, c), T(c, d), U(d, e)")


def arrivals(size: int, window: int | None) -> list[Update]:
    rng = random.Random(size)
    updates: list[Update] = []
    for i in range(size):
        if window is not None and i >= window:
            name, row, _ = updates[[k for k, u in enumerate(updates) if u[2] > 0][i - window]]
            updates.append((name, row, -1))
        updates.append((rng.choice("RSTU"), (i, rng.randrange(9)), 1))
    return updates


def test_insert_only_streams_have_enclosureness_1() -> None:
    spans = spans_of(arrivals(300, None))
    assert kind_of(spans) == "insert-only"
    assert {of_tree(tree, spans) for tree in all_trees(hypergraph(PATH))} == {1.0} == {of_stream(spans)}


def test_fifo_streams_have_enclosureness_at_most_2() -> None:
    spans = spans_of(arrivals(300, 40))
    assert kind_of(spans) == "first-in-first-out"
    low = [tree for tree in all_trees(hypergraph(PATH)) if tree.height <= 2]
    assert low and all(of_tree(tree, spans) <= 2 for tree in low)
    assert of_stream(spans) == 1


def test_disjoint_spans_of_a_million_updates_are_found_in_seconds() -> None:
    rng = np.random.default_rng(1)
    n = 500_000
    starts = np.sort(rng.integers(0, 10**7, n))
    spans = Spans(starts, starts + rng.integers(1, 1000, n))
    found = most_disjoint(spans, starts, starts + 5000)
    assert found.min() >= 1 and found.max() <= 5000
