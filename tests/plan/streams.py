"""Random databases and update streams for a query, and a database that follows a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from freshviews.expr.nodes import columns_of
from freshviews.query.query import Query
from tests.plan.oracle import Key, Relation


@dataclass
class Batch:
    """Updates of one relation: rows and their multiplicities."""

    relation: str
    columns: tuple[str, ...]
    updates: list[tuple[Key, int]]

    def rows(self) -> list[tuple[dict[str, int], int]]:
        """The updates, each row as a mapping from column to code."""
        return [(dict(zip(self.columns, row, strict=True)), m) for row, m in self.updates]

    def singles(self) -> list[Batch]:
        return [Batch(self.relation, self.columns, [update]) for update in self.updates]

    def negated(self) -> Batch:
        return Batch(self.relation, self.columns, [(row, -m) for row, m in self.updates])


def relations_of(*queries: Query) -> dict[str, Relation]:
    """Empty relations with the columns that queries use, in order of name."""
    columns: dict[str, set[str]] = {}
    for query in queries:
        for atom in (*query.atoms, *query.negated):
            lifts = [lift.expr for a in query.aggregates for lift in a.lifts if lift.atom == atom.name]
            used = (name for expr in (*atom.columns, *atom.filters, *lifts) for name in columns_of(expr))
            columns.setdefault(atom.relation, set()).update(used)
    return {name: Relation(tuple(sorted(used))) for name, used in columns.items()}


@dataclass
class Stream:
    """Random batches over relations of few values; most deletes remove existing rows. With ``signed``, multiplicities
    may become negative."""

    relations: dict[str, Relation]
    seed: int
    values: int = 0
    signed: bool = True
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        # Few enough that joins of many relations have results.
        self.values = self.values or (3 if len(self.relations) < 4 else 2)

    def batches(self, count: int, size: int = 4) -> Iterator[Batch]:
        """Batches of up to ``size`` updates: the first to each relation once, the last ones delete everything. A batch
        is applied to the relations before it is yielded."""
        names = sorted(self.relations)
        first = self.rng.sample(names, len(names))
        for i in range(count):
            name = first[i] if i < len(first) else self.rng.choice(names)
            relation = self.relations[name]
            batch = Batch(name, relation.columns, [])
            for _ in range(self.rng.randint(1, size)):
                batch.updates.append(self._update(relation))
                relation.add(*batch.updates[-1])
            yield batch
        for name, relation in self.relations.items():
            batch = Batch(name, relation.columns, [(row, -m) for row, m in relation.rows.items()])
            relation.rows.clear()
            yield batch

    def _update(self, relation: Relation) -> tuple[Key, int]:
        if self.rng.random() < len(relation.rows) / 12:
            row = self.rng.choice(list(relation.rows))
            here = relation.rows[row]
            return row, -here if self.signed else -self.rng.randint(1, here)
        row = tuple(self.rng.randrange(self.values) for _ in relation.columns)
        return row, self.rng.choice([1, 1, 1, 2, -1] if self.signed else [1, 1, 2])
