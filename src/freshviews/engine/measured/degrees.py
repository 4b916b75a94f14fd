"""Estimates the degrees of values from samples of the tables. The degree of a value is how many rows have it.

``plan.costs`` computes the cost of updates from degrees.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.codes.code_batch import Codes
from freshviews.expr.nodes import Column, Expr
from freshviews.plan.costs.degrees import Asked, Probe
from freshviews.program.program import Program, Trigger
from freshviews.program.reference.scalars import ScalarError, evaluate
from freshviews.records import dataclass
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Rows of a relation: codes by column, each of shape (n,), and their share of all rows."""

    columns: Mapping[str, Codes]
    share: float = 1.0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


class Measured:
    """The ``Degrees`` of a program over samples of its relations, by name. Each number is computed once."""

    def __init__(self, program: Program, samples: Mapping[str, Sample], dictionary: Dictionary | None = None) -> None:
        self._program, self._samples, self._dictionary = program, samples, dictionary
        self._kept: dict[int, NDArray[np.bool_]] = {}
        self._columns: dict[tuple[int, str], Codes] = {}
        self._groups: dict[tuple[int, tuple[str, ...]], Codes] = {}
        self._found: dict[tuple[int, Probe], Numbers] = {}

    def passing(self, trigger: int) -> float:
        kept = self._passing(trigger)
        return float(kept.mean()) if len(kept) else 1.0

    def rows(self, trigger: int) -> float:
        return float(self._passing(trigger).sum()) / self._share(trigger)

    def values(self, trigger: int, variables: tuple[str, ...]) -> float:
        sizes = self._sizes(trigger, variables)
        share, seen = self._share(trigger), float(len(sizes))
        if share == 1.0 or not seen:
            return seen
        once, twice = float((sizes == 1).sum()), float((sizes == 2).sum())
        unseen = once * once / (2 * twice) if twice else once * (once - 1) / 2
        return min(seen + unseen, self.rows(trigger))

    def alone(self, trigger: int, variables: tuple[str, ...]) -> float:
        sizes = self._sizes(trigger, variables)
        if not len(sizes):
            return 1.0
        # If the other rows with a value are Poisson distributed, a sample misses all of them with this probability.
        once = float((sizes == 1).sum()) / float(sizes.sum())
        return float(once ** (1 / self._share(trigger)))

    def matches(self, trigger: int, probes: tuple[Probe, ...], around: tuple[Probe, ...] = ()) -> float:
        least = np.minimum.reduce([self._matches(trigger, probe) for probe in probes])
        return self._mean(trigger, least, around)

    def found(self, trigger: int, probe: Probe, around: tuple[Probe, ...] = ()) -> float:
        found = self._matches(trigger, probe)
        if self._share(probe.trigger) == 1.0:
            return self._mean(trigger, (found > 0).astype(np.float64), around)
        values = self.values(probe.trigger, probe.key)
        each = max(1.0, self.rows(probe.trigger) / values) if values else 1.0
        return min(1.0, self._mean(trigger, found, around) / each)

    def least(self, one: Asked, other: Asked) -> float:
        sides = [self._matches(side.trigger, side.probe) for side in (one, other)]
        points = np.unique(np.concatenate([np.zeros(1), *sides]))
        more = np.ones(len(points) - 1)
        for side, found in zip((one, other), sides, strict=True):
            # The share of bindings that find more than each point.
            weights = self._weights(side.trigger, len(found), side.around)
            at = np.bincount(np.searchsorted(points, found), weights, len(points))
            total = float(at.sum())
            more = more * (1.0 - np.cumsum(at)[:-1] / total if total else 0.0)
        return float((more * np.diff(points)).sum())

    def _mean(self, trigger: int, numbers: Numbers, around: tuple[Probe, ...]) -> float:
        """The mean over bindings, weighted by the results of the probes ``around``."""
        weights = self._weights(trigger, len(numbers), around)
        total = float(weights.sum())
        return float((numbers * weights).sum()) / total if total else 0.0

    def _weights(self, trigger: int, length: int, around: tuple[Probe, ...]) -> Numbers:
        weights = np.ones(length)
        for probe in around:
            weights = weights * self._matches(trigger, probe)
        return weights

    def above(self, trigger: int, probe: Probe, limit: float) -> float:
        found = self._matches(trigger, probe)
        return float((found >= limit).mean()) if len(found) else 0.0

    def _share(self, trigger: int) -> float:
        return self._sample(trigger).share

    def _sample(self, trigger: int) -> Sample:
        return self._samples[self._program.triggers[trigger].relation]

    def _passing(self, trigger: int) -> NDArray[np.bool_]:
        """The rows of the sample that pass the filters of a trigger."""
        if trigger not in self._kept:
            sample = self._sample(trigger)
            kept = np.ones(len(sample), np.bool_)
            for condition in self._program.triggers[trigger].filters:
                kept[kept] = self._evaluated(condition, sample, kept) == 1
            self._kept[trigger] = kept
        return self._kept[trigger]

    def _evaluated(self, expr: Expr, sample: Sample, kept: NDArray[np.bool_]) -> Codes:
        """The codes of an expression for the ``kept`` rows; NULL where it fails."""
        if isinstance(expr, Column):
            return np.asarray(sample.columns[expr.name][kept])
        names = list(sample.columns)
        found: list[int] = []
        for values in zip(*(sample.columns[name][kept].tolist() for name in names), strict=True):
            try:
                found.append(evaluate(expr, dict(zip(names, values, strict=True)), self._dictionary))
            except ScalarError:
                found.append(NULL)
        return np.array(found, np.int64)

    def _column(self, trigger: int, variable: str) -> Codes:
        """The values of a variable in the bindings of a trigger."""
        if (trigger, variable) not in self._columns:
            expr = _parameter(self._program.triggers[trigger], variable)
            self._columns[trigger, variable] = self._evaluated(expr, self._sample(trigger), self._passing(trigger))
        return self._columns[trigger, variable]

    def _sizes(self, trigger: int, variables: tuple[str, ...]) -> Codes:
        """The number of bindings of each combination of values."""
        if (trigger, variables) not in self._groups:
            columns = [self._column(trigger, v) for v in variables]
            number = _numbered(columns, int(self._passing(trigger).sum()))
            self._groups[trigger, variables] = np.bincount(number)
        return self._groups[trigger, variables]

    def _matches(self, trigger: int, probe: Probe) -> Numbers:
        """The result of a probe for each binding of a trigger."""
        if (trigger, probe) not in self._found:
            here = [self._column(trigger, v) for v in probe.given]
            there = [self._column(probe.trigger, v) for v in probe.key]
            length, other = int(self._passing(trigger).sum()), int(self._passing(probe.trigger).sum())
            share = self._share(probe.trigger)
            if probe.distinct and share == 1.0 and other:
                every = [self._column(probe.trigger, v) for v in dict.fromkeys((*probe.key, *probe.distinct))]
                first = np.unique(_numbered(every, other), return_index=True)[1]
                there, other = [column[first] for column in there], len(first)
            both = [np.concatenate(pair) for pair in zip(here, there, strict=True)]
            number = _numbered(both, length + other)
            sizes = np.bincount(number[length:], minlength=int(number.max(initial=-1)) + 1)
            self._found[trigger, probe] = sizes[number[:length]] / share
        return self._found[trigger, probe]


def _parameter(trigger: Trigger, variable: str) -> Expr:
    return next(p.expr for p in trigger.parameters if p.name == variable)


def _numbered(columns: list[Codes], length: int) -> Codes:
    """Numbers the distinct combinations of values from 0; returns the number of each row's combination."""
    if not columns:
        return np.zeros(length, np.int64)
    number, *others = (np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns)
    for places in others:
        both = number * (int(places.max(initial=0)) + 1) + places
        number = np.unique(both, return_inverse=True)[1].reshape(-1)
    return number
