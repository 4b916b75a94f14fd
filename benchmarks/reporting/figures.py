"""Figures of measurements: medians, ratios to freshviews, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.machine import median, spread
from benchmarks.running.results import Measured

Case = tuple[str, str]
"""A workload and one of its cases."""


def cases_of(measured: Iterable[Measured]) -> dict[Case, dict[str, list[Measured]]]:
    """Measurements by workload and case, then by strategy, in the order of the run."""
    found: dict[Case, dict[str, list[Measured]]] = {}
    for one in measured:
        found.setdefault((one["workload"], one["case"]), {}).setdefault(one["strategy"], []).append(one)
    return found


def title_of(workload: str, case: str) -> str:
    """The title of a case: that of its workload, and its own name."""
    title = str(module_of(workload).TITLE)
    return f"{title}, {case}" if case else title


def unit_of(workload: str) -> str:
    return str(module_of(workload).UNIT)


def values_of(found: Iterable[Measured]) -> list[float]:
    """The figure of each measurement that has one: rows per second of wall time, or the workload's own value."""
    return [one.get("value", one.get("rows_per_second")) for one in found if "value" in one or "rows_per_second" in one]


def ratio(ours: Sequence[float], theirs: Sequence[float], unit: str) -> float:
    """The speed of freshviews relative to another strategy, by medians. For a rate more is better, for other units
    less."""
    times = median(ours) / median(theirs)
    return times if unit.endswith("/s") else 1 / times


def noise(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Relative difference that is ignored: the larger spread, and at least a twentieth."""
    return max(spread(ours), spread(theirs), 0.05)


def quantity(value: float, unit: str) -> str:
    """A value with its unit."""
    return rate(value) if unit.endswith("/s") else f"{number(value)} {unit}"


def rate(value: float) -> str:
    return f"{value / 1e6:.2f} M/s" if value >= 1e5 else f"{value / 1e3:.2f} k/s" if value >= 100 else f"{value:.1f} /s"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
