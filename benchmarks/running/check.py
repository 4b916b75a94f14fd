"""The guard: ratios of freshviews to plain Python and DuckDB, and counted steps, against benchmarks/floor.json.

A ratio is of rows per CPU second, of processes that took turns in this run, so that a busy machine slows both. The best
turn counts, as disturbance only makes a measurement slower; a workload below the floor gets more turns. Other busy
processes slow down code that works in the caches more than plain Python: 3-hop paths are 15 times as fast as plain
Python on a quiet machine, and 6 times on one with four other busy processes. The floor is the least ratio of several
runs on quiet and busy machines. Counted steps do not depend on the machine and must equal the floor.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import ROOT
from benchmarks.running.results import Measured, Unfinished
from benchmarks.running.run import FINAL, Limits, measure
from benchmarks.running.schedule import PLANNED, guard, merged

FLOOR = ROOT / "benchmarks" / "floor.json"
ALLOWED = 2 / 3
"""The smallest accepted part of the floor of a ratio."""
TURNS = 2
ROUNDS = 3
"""Maximum rounds of turns for a workload below the floor."""


def run(*, write: bool = False) -> int:
    """Measure and compare; returns the exit code, 1 if a figure is worse. ``write``: this run becomes the floor."""
    entries = merged(guard())
    with tempfile.TemporaryDirectory() as folder:
        kept = Unfinished(Path(folder) / "check.jsonl", {}, go_on=False)
        limits = Limits(10.0, 8 * 2**30, 10.0)
        measure([entry for entry in entries if entry.workload == "steps"], 1, limits, kept)
        timed = [entry for entry in entries if entry.workload != "steps"]
        floor = json.loads(FLOOR.read_text())
        for number in range(1, ROUNDS + 1):
            measure(timed, number * TURNS, limits, kept)
            found = figures(kept.measured)
            timed = [entry for entry in timed if any(entry.case in problem for problem in fallen(found, floor))]
            if write or not timed:
                break
    if write:
        FLOOR.write_text(json.dumps(found, indent=1) + "\n")
        print(f"written to {FLOOR}")
        floor = found
    problems = fallen(found, floor)
    for name, value in {**found["ratios"], **found["steps"]}.items():
        print(f"{name}: {value:g}")
    for problem in problems:
        print(f"FELL BEHIND: {problem}")
    return 1 if problems else 0


def figures(measured: Sequence[Measured]) -> dict[str, Any]:
    """Ratios to the peers, and counted steps, by name. Raises SystemExit if a measurement failed or was wrong."""
    rates: dict[str, dict[str, float]] = {}
    steps: dict[str, float] = {}
    for one in measured:
        name = f"{one['workload']}, {one['case']}"
        for key in FINAL:
            # A measurement that was cut off on a busy machine still has a rate.
            if key in one and not (key == "cut" and "rows_per_cpu_second" in one):
                raise SystemExit(f"{name}: {one['strategy']}: {key}: {one[key]}")
        if one["workload"] == "steps":
            steps[name] = one["value"]
            continue
        best = rates.setdefault(name, {})
        best[one["strategy"]] = max(best.get(one["strategy"], 0.0), one["rows_per_cpu_second"])
    ratios = {}
    for name, best in rates.items():
        (other,) = (strategy for strategy in best if strategy != PLANNED)
        ratios[f"{name}: times {other}"] = round(best[PLANNED] / best[other], 3)
    return {"ratios": ratios, "steps": steps}


def fallen(found: Mapping[str, Any], floor: Mapping[str, Any]) -> list[str]:
    """A sentence for each ratio too far below the floor, for each count that differs, and for each missing name."""
    problems = []
    for kind in ("ratios", "steps"):
        for name in sorted(found[kind].keys() ^ floor[kind].keys()):
            where = "the floor" if name in floor[kind] else "this run"
            problems.append(f"{name} is only in {where}; python -m benchmarks check --write makes a new floor")
    for name in found["ratios"].keys() & floor["ratios"].keys():
        value, least = found["ratios"][name], floor["ratios"][name] * ALLOWED
        if value < least:
            problems.append(f"{name} is {value:g}, less than two thirds of {floor['ratios'][name]:g}")
    for name in found["steps"].keys() & floor["steps"].keys():
        if found["steps"][name] != floor["steps"][name]:
            problems.append(f"{name} takes {found['steps'][name]:g} steps, not {floor['steps'][name]:g}")
    return sorted(problems)
