"""Measure entries of the schedule in turns: every strategy of every case once, then all of them again."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.answers import Disagreement, compare_answers
from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.course import EXPECTED
from benchmarks.measuring.processes import measured
from benchmarks.running.results import Measured, Unfinished
from benchmarks.running.schedule import Entry

FINAL = ("cut", "missing", "refused", "failed", "wrong")
"""Outcomes that are reported once and not repeated."""


@dataclass(frozen=True)
class Limits:
    """Seconds of a measurement, bytes of its processes, minutes of the run, seconds above which none is repeated."""

    seconds: float
    memory: float
    minutes: float
    once_above: float = float("inf")


def measure(entries: Sequence[Entry], repetitions: int, limits: Limits, kept: Unfinished) -> bool:
    """Measure entries without a result; returns True if the minutes were enough."""
    start = time.perf_counter()
    prepared: set[str] = set()
    for repetition in range(repetitions):
        for entry in entries:
            if entry.workload not in prepared:
                prepared.add(entry.workload)
                getattr(module_of(entry.workload), "prepare", lambda: None)()
            for strategy in entry.strategies:
                before = [one for one in kept.measured if _same_case(one, entry)]
                mine = [one for one in before if one["strategy"] == strategy]
                if any(one["repetition"] == repetition for one in mine) or _settled(mine, limits):
                    continue
                if time.perf_counter() - start > 60 * limits.minutes:
                    print(f"{limits.minutes:g} minutes are over, in repetition {repetition + 1}", flush=True)
                    return False
                one = _measure(entry, strategy, repetition, limits, before)
                print(f"{repetition + 1}: {entry.workload} {entry.case}: {strategy}: {line_of(one)}", flush=True)
                kept.add(one)
    return True


def all_measured(entries: Sequence[Entry], measured_: Sequence[Measured]) -> bool:
    """True if every strategy of every case was measured at least once."""
    there = {(one["workload"], one["case"], one["strategy"]) for one in measured_}
    return all((e.workload, e.case, strategy) in there for e in entries for strategy in e.strategies)


def _same_case(one: Measured, entry: Entry) -> bool:
    return (one["workload"], one["case"]) == (entry.workload, entry.case)


def _settled(mine: Sequence[Measured], limits: Limits) -> bool:
    return any(any(key in one for key in FINAL) or one.get("seconds_in_all", 0) > limits.once_above for one in mine)


def _measure(
    entry: Entry, strategy: str, repetition: int, limits: Limits, before: Sequence[Measured]
) -> Measured:
    """One measurement, its answers compared with those of the others."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "expected.json"
        known: dict[str, Any] = {}
        for other in before:
            if "wrong" not in other:
                known |= other.get("answers", {})
        expected.write_text(json.dumps(known))
        module = module_of(entry.workload)
        one = measured(
            entry.workload,
            entry.case,
            strategy,
            # A workload without a stream states its own limit.
            limit=limits.seconds if hasattr(module, "stream") else getattr(module, "SECONDS", 3600.0),
            memory=limits.memory,
            environment={EXPECTED: str(expected)},
        )
    one |= {"group": entry.group, "workload": entry.workload, "case": entry.case, "strategy": strategy}
    one |= {"repetition": repetition, "seconds_in_all": round(time.perf_counter() - start, 3)}
    for other in before:
        if "wrong" in other:
            continue
        try:
            compare_answers(one, other)
        except Disagreement as error:
            # Its times do not count; the other strategies show whose answer is wrong.
            one = {key: one[key] for key in ("group", "workload", "case", "strategy", "repetition", "seconds_in_all")}
            one["wrong"] = str(error)
            break
    return one


def line_of(one: Measured) -> str:
    """A measurement in a few words."""
    for key in ("missing", "refused", "failed", "wrong"):
        if key in one:
            return f"{key}: {one[key]}"
    value = one.get("rows_per_second", one.get("value"))
    if value is None:
        return str(one.get("cut", "nothing"))
    return f"{value:,.6g}" + (f"; {one['cut']}" if "cut" in one else "")
