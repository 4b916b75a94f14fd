"""Samples the rows of the inputs of a view, and counts the updates of each input. EXPLAIN computes costs from both."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from freshviews.catalog.definitions import ViewDef
from freshviews.engine.backfill import ROWS
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.measured.degrees import Measured, Sample
from freshviews.engine.relations import Relation, Relations
from freshviews.errors import EvaluationError
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary

MOST_SAMPLED = 20_000
"""Most rows of a sample."""
MOST_READ = 10_000_000
"""Most rows of a relation that is sampled. A view over a larger relation is not measured."""


class Measurements:
    """Measurements for a view: degrees of programs over its inputs, and updates by input."""

    def __init__(self, view: ViewDef, relations: Relations, dictionary: Dictionary) -> None:
        self._view, self._relations, self._dictionary = view, relations, dictionary

    @property
    def rates(self) -> dict[str, float]:
        """The number of updates, by input."""
        sources = {name: self._relations.get(name) for name in self._view.inputs}
        return {name: float(one.updates) for name, one in sources.items() if one is not None}

    def degrees(self, program: Program) -> Measured | None:
        """The degrees of a program of the view. None if an input has no rows, does not store them, or has too many."""
        samples = self._samples
        if any(trigger.relation not in samples for trigger in program.triggers):
            return None
        return Measured(program, samples, self._dictionary)

    @cached_property
    def _samples(self) -> dict[str, Sample]:
        found = {}
        for name in self._view.inputs:
            source = self._relations.get(name)
            sample = sample_of(source) if source is not None and source.is_stored else None
            if sample is not None and len(sample):
                found[name] = sample
        return found


def sample_of(relation: Relation) -> Sample | None:
    """Up to ``MOST_SAMPLED`` random rows of a relation, the same ones each time; all rows of a small relation. None if
    it has too many rows or no columns, or if a row of a view cannot be computed."""
    try:
        return draw(relation.batches(ROWS), zlib.crc32(relation.name.encode()))
    except EvaluationError:
        return None


def draw(batches: Iterator[CodeBatch], seed: int) -> Sample | None:
    """Draws a sample from batches. Each row has a random number, and is in the sample if the number is below the share.
    If the sample gets too large, the share is halved."""
    random = np.random.default_rng(seed)
    share, read = 1.0, 0
    rows = numbers = None
    names: tuple[str, ...] = ()
    for batch in batches:
        read += len(batch)
        names = tuple(batch.columns)
        if read > MOST_READ or not names:
            return None
        number = random.random(len(batch))
        kept = (number < share) & (batch.multiplicities > 0)
        more = np.column_stack([batch.columns[name][kept] for name in names])
        rows = more if rows is None else np.concatenate([rows, more])
        numbers = number[kept] if numbers is None else np.concatenate([numbers, number[kept]])
        while len(rows) > MOST_SAMPLED:
            share /= 2
            rows, numbers = rows[numbers < share], numbers[numbers < share]
    if rows is None:
        return None
    return Sample({name: rows[:, i] for i, name in enumerate(names)}, share)
