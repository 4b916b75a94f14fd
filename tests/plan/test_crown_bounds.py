"""Bounds of change propagation without joins, counted in steps over streams whose enclosureness is known.

Theorem 6.5: updates over a tree T take O(lambda_T) steps on average. Lemmas 6.7 to 6.9: lambda_T is 1 for trees of
height 1, for trees of height 2 if first in is first out, and for any tree if nothing is deleted. Streams are generated
for a given lambda; their lambda over a tree is computed from the stream (``freshviews.advice.enclosure``).
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.advice.enclosure import Spans, kind_of, lifespans, of_stream, of_tree
from freshviews.plan.crown import propagation as crown
from freshviews.program.printer import print_program
from freshviews.query.acyclic import JoinTree
from freshviews.query.free_connex import is_free_connex
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import all_trees, parse_tree
from freshviews.query.query import Query
from tests.plan.oracle import Key
from tests.plan.test_crown import steps_of
from tests.query.notation import query
from tests.query.random_queries import queries

Updates = list[tuple[str, Key, int]]


def spans_of(made: Query, updates: Updates) -> dict[str, Spans]:
    """The lifespans of the rows of each atom."""
    found = {}
    for atom in made.atoms:
        own = [(row, m, at) for at, (relation, row, m) in enumerate(updates) if relation == atom.relation]
        rows = np.array([row for row, _, _ in own], np.int64).reshape(len(own), len(atom.variables))
        signs, times = (np.array([one[i] for one in own], np.int64) for i in (1, 2))
        found[atom.name] = lifespans(rows, signs, times)
    return found


def by_the_paper(tree: JoinTree) -> bool:
    """Definition 3.1 as printed: every child contains a generalised relation above it."""
    return all(n.name is not None or all(n.variables <= c.variables for c in n.children) for n in tree.nodes())


def constant(made: Query) -> int:
    """Maximum steps per update and unit of enclosureness: each neighbour of an atom in the tree may be read for each
    slice that a row enters and leaves."""
    return 6 * len(made.atoms) + 6


def row(atom_width: int, number: int, rng: random.Random, few: int) -> Key:
    """A row that joins with many: one column is unique, the others have few values."""
    place = rng.randrange(atom_width)
    return tuple(number if i == place else rng.randrange(few) for i in range(atom_width))


def around(made: Query, lives: int, times: int, rng: random.Random) -> Updates:
    """Rows of some atoms that stay, and rows of the others that appear and vanish within their lifespans."""
    long = [atom for atom in made.atoms if rng.random() < 0.5]
    short = [atom for atom in made.atoms if atom not in long]
    few = rng.choice((1, 2))
    updates: Updates = []
    for i in range(lives):
        updates += [(a.relation, row(len(a.variables), i, rng, few), 1) for a in long]
    for i in range(times):
        some = [(a.relation, row(len(a.variables), i, rng, few)) for a in short]
        updates += [(relation, one, 1) for relation, one in some]
        updates += [(relation, one, -1) for relation, one in rng.sample(some, len(some))]
    return valid(updates)


def nested(made: Query, lives: int, within: int, rng: random.Random) -> Updates:
    """Nested lifespans: a row of a random atom, and a number of other rows, one after the other, within its
    lifespan."""
    updates: Updates = []
    numbers = iter(range(10**9))

    def live(depth: int) -> None:
        atom = rng.choice(made.atoms)
        own = (atom.relation, row(len(atom.variables), next(numbers), rng, 2))
        updates.append((*own, 1))
        for _ in range(within if depth else 0):
            live(depth - 1)
        updates.append((*own, -1))

    for _ in range(lives):
        live(2)
    return valid(updates)


def valid(updates: Updates) -> Updates:
    """The updates without insertions of existing rows and deletions of missing ones."""
    there: set[tuple[str, Key]] = set()
    kept: Updates = []
    for relation, one, m in updates:
        if ((relation, one) in there) == (m < 0):
            kept.append((relation, one, m))
            (there.discard if m < 0 else there.add)((relation, one))
    return kept


def first_in_first_out(made: Query, size: int, window: int | None, rng: random.Random) -> Updates:
    """Rows that are inserted once each; when a window is full, the oldest row is deleted."""
    rows: list[tuple[str, Key]] = []
    for i in range(size):
        atom = rng.choice(made.atoms)
        rows.append((atom.relation, row(len(atom.variables), i, rng, 3)))
    updates: Updates = []
    for i, one in enumerate(rows):
        if window is not None and i >= window:
            updates.append((*rows[i - window], -1))
        updates.append((*one, 1))
    return updates


def mean_steps(made: Query, tree: JoinTree, updates: Updates) -> float:
    taken = steps_of(crown.of_tree(made, tree, True), updates)
    return sum(taken) / max(len(taken), 1)


def trees_of(made: Query, rng: random.Random, count: int = 3) -> list[JoinTree]:
    found = [tree for tree in all_trees(hypergraph(made), 60) if by_the_paper(tree)]
    return rng.sample(found, min(len(found), count))


QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@QUICK
@given(queries(), st.sampled_from([around, nested]), st.integers(0, 10**6))
def test_steps_per_update_are_bounded_by_the_enclosureness(made: Query, shape: object, seed: int) -> None:
    assume(is_free_connex(hypergraph(made)))
    rng = random.Random(seed)
    for tree in trees_of(made, rng):
        for lives, within in ((4, 4), (8, 24), (24, 60)):
            updates = around(made, lives, within, rng) if shape is around else nested(made, 3, lives // 2, rng)
            lambda_t = of_tree(tree, spans_of(made, updates))
            assert mean_steps(made, tree, updates) <= constant(made) * lambda_t, print_program(
                crown.of_tree(made, tree, True)
            )


@QUICK
@given(queries(), st.integers(0, 10**6))
def test_insert_only_streams_take_constant_steps_over_any_tree(made: Query, seed: int) -> None:
    assume(is_free_connex(hypergraph(made)))
    rng = random.Random(seed)
    for tree in trees_of(made, rng):
        for size in (30, 300):
            updates = valid(first_in_first_out(made, size, None, rng))
            assert kind_of(spans_of(made, updates)) == "insert-only"
            assert of_tree(tree, spans_of(made, updates)) == 1
            assert mean_steps(made, tree, updates) <= constant(made)


@QUICK
@given(queries(), st.integers(0, 10**6))
def test_first_in_first_out_streams_take_constant_steps_over_trees_of_height_2(made: Query, seed: int) -> None:
    assume(is_free_connex(hypergraph(made)))
    assume(all(len(atom.variables) > 1 for atom in made.atoms))
    rng = random.Random(seed)
    for tree in (tree for tree in trees_of(made, rng, 60) if tree.height <= 2):
        for size, window in ((60, 10), (400, 80)):
            updates = first_in_first_out(made, size, window, rng)
            assume(len(set(updates)) == len(updates))
            spans = spans_of(made, updates)
            assert kind_of(spans) == "first-in-first-out"
            # Twice the paper's, at most: both effective lifespans of a tuple are counted.
            assert of_tree(tree, spans) <= 2
            assert mean_steps(made, tree, updates) <= constant(made)


def set_to(size: int, within: int, values: int = 1) -> Updates:
    """Figure 4 for a given lambda: as many rows of R as of S, in groups; each row of R encloses ``within`` rows of
    S."""
    updates: Updates = []
    for start in range(0, size, within):
        group = [("R", (i, i % values)) for i in range(start, start + within)]
        updates += [(*one, 1) for one in group]
        for i in range(start, start + within):
            updates += [("S", (i % values, i), 1), ("S", (i % values, i), -1)]
        updates += [(*one, -1) for one in group]
    return updates


@pytest.mark.parametrize("within", [1, 4, 16, 64])
def test_the_streams_of_this_module_have_the_intended_enclosureness(within: int) -> None:
    """Half of the rows enclose none; the least enclosureness is 1."""
    made = query("Q(a, b, c) = R(a, b), S(b, c)")
    flat, r_on_top, s_on_top = (parse_tree(text, hypergraph(made)) for text in ("[b](R, S)", "R(S)", "S(R)"))
    updates = set_to(256, within)
    spans = spans_of(made, updates)
    assert of_stream(spans) == of_tree(r_on_top, spans) == max(1, within / 2)
    assert of_tree(flat, spans) == of_tree(s_on_top, spans) == 1
    steps = {str(tree): mean_steps(made, tree, updates) for tree in (flat, r_on_top, s_on_top)}
    assert steps[str(flat)] <= 8 and steps[str(s_on_top)] <= constant(made)
    assert within / 4 <= steps[str(r_on_top)] <= constant(made) * max(1, within / 2)
