"""Compiled maintenance by trace does what the plain form does: derivations, trace, intervals held."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from freshviews.engine.traced import Edits, TracedRule
from freshviews.program.incremental.maintenance import Derivation, Maintained
from freshviews.program.incremental.rule import Rule
from freshviews.ring import INTEGER
from tests.program.incremental.rules import RULES, Relations, Row, rule, shuffled

KEPT = {name: one for name, one in RULES.items() if not one.conditions and not any(a.negated for a in one.atoms)}


def as_columns(edits: dict[str, dict[Row, int]]) -> Edits:
    found = {}
    for name, rows in edits.items():
        if rows:
            columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
            found[name] = (columns, np.array(list(rows.values()), np.int64))
    return found


def as_derivations(rows: np.ndarray) -> list[Derivation]:  # type: ignore[type-arg]
    return sorted((tuple(row[:-1]), row[-1]) for row in rows.tolist())


def compared(one: Rule, seed: int, codes: int, batches: int) -> None:
    """Both forms over the same batches."""
    choices = random.Random(f"{one} {seed}")
    plain, traced, relations = Maintained(one, INTEGER), TracedRule(one), Relations(one)
    for batch in range(batches):
        count = 40 if batch == 0 else choices.choice([0, 1, 1, 2, 9])
        edits = relations.some_edits(choices, codes, count, several=seed % 2 == 1)
        relations.apply(edits)
        delta = plain.apply(edits)
        erased, inserted = traced.apply(as_columns(edits))
        assert as_derivations(erased) == sorted(delta.erased), batch
        assert as_derivations(inserted) == sorted(delta.inserted), batch
        assert traced.held == plain.held, batch
        for name in ("operations", "surgeries", "matched", "trace", "edits"):
            assert getattr(traced.counters, name) == getattr(plain.counters, name), (name, batch)
    traced.close()


@pytest.mark.parametrize("name", KEPT)
def test_every_batch_does_what_the_plain_form_does(name: str) -> None:
    for seed in range(6):
        choices = random.Random(f"{name} {seed}")
        one = shuffled(KEPT[name], choices) if seed else KEPT[name]
        compared(replace(one, keep_all=seed % 3 == 2), seed, choices.choice([3, 5, 8, 30]), 14)


def test_codes_may_be_the_least_and_the_greatest_words() -> None:
    traced = TracedRule(rule("abc", "R ab", "S bc", "T ca"))
    ends = np.array([-(2**63), 2**63 - 1, 0], np.int64)
    a, b = (column.ravel() for column in np.meshgrid(ends, ends))
    every = ([a.copy(), b.copy()], np.ones(9, np.int64))
    erased, inserted = traced.apply({"R": every, "S": every, "T": every})
    assert len(erased) == 0 and len(inserted) == 27
    for _ in range(2):
        row = ([a[:1].copy(), b[:1].copy()], np.array([-1], np.int64))
        erased, inserted = traced.apply({"S": row})
        assert len(erased) == 3 and len(inserted) == 0
        erased, inserted = traced.apply({"S": ([a[:1].copy(), b[:1].copy()], np.array([1], np.int64))})
        assert len(erased) == 0 and len(inserted) == 3


@pytest.mark.parametrize("name", ["triangle of one relation", "two cycles", "Loomis-Whitney"])
def test_operations_are_bounded_by_the_edit_distance_and_the_changes(name: str) -> None:
    one = KEPT[name]
    choices = random.Random(name)
    relations, traced = Relations(one), TracedRule(one)
    edits = relations.some_edits(choices, 40 if name != "Loomis-Whitney" else 12, 3000)
    rows = relations.apply(edits)
    traced.apply(as_columns(edits))
    for _ in range(40):
        edits = relations.some_edits(choices, 40 if name != "Loomis-Whitney" else 12, choices.choice([1, 3, 20]))
        changes = relations.apply(edits)
        before = traced.counters
        traced.apply(as_columns(edits))
        after = traced.counters
        operations, distance = after.operations - before.operations, after.edits - before.edits
        assert operations <= 3 * math.log2(rows) * (distance + changes), edits
    assert sum(map(len, traced.indices.values())) == traced.held <= 1.25 * traced.counters.trace + 4
