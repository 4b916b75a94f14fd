"""The data by which EXPLAIN computes the cost of updates: samples of what a view reads, and rates of updates."""

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
"""Rows of a sample, at most."""
MOST_READ = 10_000_000
"""Rows of a relation from which a sample is taken, at most. Nothing is measured of a view over a larger one."""


class Measurements:
    """What is measured for a view: degrees of programs over its inputs, and updates of these by name."""

    def __init__(self, view: ViewDef, relations: Relations, dictionary: Dictionary) -> None:
        self._view, self._relations, self._dictionary = view, relations, dictionary

    @property
    def rates(self) -> dict[str, float]:
        """The updates that came in, by input."""
        sources = {name: self._relations.get(name) for name in self._view.inputs}
        return {name: float(one.updates) for name, one in sources.items() if one is not None}

    def degrees(self, program: Program) -> Measured | None:
        """The degrees of a program of the view. None where an input has no rows, does not store them, or has too
        many."""
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
    """Up to ``MOST_SAMPLED`` rows of a relation, drawn at random, the same ones each time; all of a small relation.
    None where it has too many rows or no columns, or where a row of a view cannot be computed."""
    try:
        return drawn(relation.batches(ROWS), zlib.crc32(relation.name.encode()))
    except EvaluationError:
        return None


def drawn(batches: Iterator[CodeBatch], seed: int) -> Sample | None:
    """The rows of batches that are drawn. Each row has a random number, and is in the sample if that is below the
    share, which is halved where the sample is too large."""
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
