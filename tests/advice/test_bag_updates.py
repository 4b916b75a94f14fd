"""What a stream of updates of tables changes of the rows of bags."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from freshviews.advice.bag_updates import updates_of
from freshviews.advice.enclosure import Spans, lives_of
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.plan.crown.free_connex_query import BagQuery, prepared
from freshviews.query.query import Atom
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary
from tests.plan.oracle import Relation, evaluate_query
from tests.plan.test_crown_bags import DUMBBELL, GUARDED
from tests.query.notation import query

pytestmark = pytest.mark.compiled(2)


def rows_now(bag: BagQuery, relations: dict[str, Relation]) -> Counter[tuple[int, ...]]:
    """The rows of a bag, from its definition."""
    for guard, source in bag.guards.items():
        kept = bag.query.atom(guard).variables
        places = [source.variables.index(v) for v in kept]
        there = {tuple(row[i] for i in places) for row in relations[source.relation].rows}
        relations[guard] = Relation(kept, Counter(dict.fromkeys(there, 1)))
    return Counter({row: p["count"] for row, p in evaluate_query(bag.query, relations).items()})


@pytest.mark.parametrize("text", [f"Q(c, d) = {DUMBBELL}", f"Q(a, f) = {GUARDED}"])
def test_the_changes_of_a_bag_add_up_to_its_rows_after_every_update(text: str) -> None:
    made = query(text)
    rng = random.Random(4)
    stream: list[tuple[str, tuple[int, ...], int]] = []
    here: dict[str, list[tuple[int, ...]]] = {atom.relation: [] for atom in made.atoms}
    for _ in range(150):
        atom = rng.choice(made.atoms)
        rows = here[atom.relation]
        if rows and rng.random() < 0.3:
            stream.append((atom.relation, rows.pop(rng.randrange(len(rows))), -1))
        else:
            rows.append(tuple(rng.randrange(2) for _ in atom.variables))
            stream.append((atom.relation, rows[-1], 1))
    stream = stream[15:]  # so that some are there from the first
    batches: dict[str, tuple[CodeBatch, Codes]] = {}
    first: dict[str, Relation] = {}
    tables = {}
    for atom in made.atoms:
        mine = [(i, row, m) for i, (name, row, m) in enumerate(stream) if name == atom.relation]
        columns = tuple(c.name for c in atom.columns)  # type: ignore[union-attr]
        words = {name: np.array([row[k] for _, row, _ in mine], np.int64) for k, name in enumerate(columns)}
        signs = np.array([m for _, _, m in mine], np.int64)
        batches[atom.relation] = CodeBatch(atom.relation, words, signs), np.array([i for i, _, _ in mine], np.int64)
        tables[atom.relation] = TableDef(atom.relation, tuple(ColumnDef(name, BIGINT) for name in columns))
        total, least = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
        for _, row, m in mine:
            total[row] += m
            least[row] = min(least[row], total[row])
        first[atom.relation] = Relation(columns, Counter({row: -m for row, m in least.items() if m}))

    def lives(source: Atom) -> tuple[Codes, Spans]:
        batch, times = batches[source.relation]
        return lives_of(np.column_stack(list(batch.columns.values())), batch.multiplicities, times)

    for name, bag in prepared(made).bags.items():
        found = updates_of(bag, batches, tables, lives, Dictionary())
        relations = {one: Relation(r.columns, Counter(r.rows)) for one, r in first.items()}

        rows = rows_now(bag, relations)
        for time, (relation, row, m) in enumerate(stream):
            relations[relation].add(row, m)
            now = rows_now(bag, relations)
            told = Counter[tuple[int, ...]]()
            at = found.times == time
            for change, amount in zip(found.rows[at].tolist(), found.multiplicities[at].tolist(), strict=True):
                told[tuple(change)] += amount
            rows.update(told)
            assert Counter({r: c for r, c in rows.items() if c}) == now, f"{name} at {time}"
