"""Defines the statistics from which costs are computed: numbers of rows, and degrees of values.

The degree of a value is the number of rows that have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from freshviews.expr.nodes import Column
from freshviews.program.program import Program, Trigger
from freshviews.records import dataclass

ASSUMED_DEGREE = 10.0
"""Rows that agree on columns that contain no key, if nothing is measured."""
ASSUMED_ROWS = 1_000_000.0


class Probe(NamedTuple):
    """The bindings of ``trigger`` whose variables ``key`` equal the variables ``given`` of a binding at hand.

    ``distinct``: variables whose combinations of values count once each.
    """

    given: tuple[str, ...]
    trigger: int
    key: tuple[str, ...]
    distinct: tuple[str, ...]


class Asked(NamedTuple):
    """A probe for the bindings of a trigger, and the probes of the enclosing loops."""

    trigger: int
    probe: Probe
    around: tuple[Probe, ...]


class Degrees(Protocol):
    """Statistics of the bindings of a program's triggers, which are numbered as in the program.

    ``matches`` is the mean number of rows that a probe finds, over the bindings of a trigger; of several probes, the
    one that finds the fewest counts. ``found`` is the share of bindings for which a probe finds a row, ``above`` the
    share for which it finds at least ``limit``. A mean weights bindings by the rows that the probes ``around``, of
    enclosing loops, find for them. ``alone`` is the share of bindings whose values of some variables no other binding
    has.
    """

    def passing(self, trigger: int) -> float:
        """The share of the rows of its relation that pass the filters of a trigger."""

    def rows(self, trigger: int) -> float: ...

    def values(self, trigger: int, variables: tuple[str, ...]) -> float:
        """The number of distinct combinations of values of some variables."""

    def alone(self, trigger: int, variables: tuple[str, ...]) -> float: ...

    def matches(self, trigger: int, probes: tuple[Probe, ...], around: tuple[Probe, ...] = ()) -> float: ...

    def least(self, one: Asked, other: Asked) -> float:
        """The mean of the smaller result of two probes, for independent bindings."""

    def found(self, trigger: int, probe: Probe, around: tuple[Probe, ...] = ()) -> float: ...

    def above(self, trigger: int, probe: Probe, limit: float) -> float: ...


@dataclass(frozen=True)
class Assumed:
    """Degrees without data: ``ASSUMED_DEGREE`` rows agree on columns that contain no key.

    Filters pass all rows, probes find something, and no value is heavy. ``keys`` are the keys of relations.
    """

    program: Program
    keys: Mapping[str, tuple[tuple[str, ...], ...]]

    def passing(self, trigger: int) -> float:
        return 1.0

    def rows(self, trigger: int) -> float:
        return ASSUMED_ROWS

    def values(self, trigger: int, variables: tuple[str, ...]) -> float:
        if not variables:
            return 1.0
        return ASSUMED_ROWS if self._is_key(trigger, variables) else ASSUMED_ROWS / ASSUMED_DEGREE

    def alone(self, trigger: int, variables: tuple[str, ...]) -> float:
        return self.values(trigger, variables) / ASSUMED_ROWS

    def matches(self, trigger: int, probes: tuple[Probe, ...], around: tuple[Probe, ...] = ()) -> float:
        return min(map(self._degree, probes))

    def least(self, one: Asked, other: Asked) -> float:
        return min(self._degree(one.probe), self._degree(other.probe))

    def found(self, trigger: int, probe: Probe, around: tuple[Probe, ...] = ()) -> float:
        return 1.0

    def above(self, trigger: int, probe: Probe, limit: float) -> float:
        return 0.0

    def _degree(self, probe: Probe) -> float:
        if set(probe.key) >= set(probe.distinct) or self._is_key(probe.trigger, probe.key):
            return 1.0
        return ASSUMED_DEGREE if probe.key else ASSUMED_ROWS

    def _is_key(self, trigger: int, variables: tuple[str, ...]) -> bool:
        one = self.program.triggers[trigger]
        columns = columns_of_variables(one)
        named = {columns.get(v) for v in variables}
        keys = self.keys.get(one.relation, ())
        return any(named.issuperset(key) for key in keys) or (not keys and named.issuperset(columns.values()))


def columns_of_variables(trigger: Trigger) -> dict[str, str]:
    """The columns whose unchanged values the parameters of a trigger hold."""
    return {p.name: p.expr.name for p in trigger.parameters if isinstance(p.expr, Column)}
