"""``python -m benchmarks``: measure, compare, print, write."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
from importlib import import_module
from typing import Any

from benchmarks.measuring import ROOT, in_own_process, machine
from benchmarks.report import Measured, compare_answers, describe, table, write_page

GROUPS = {
    "engine": ("star", "tpch", "triangle", "single_rows", "memory", "first_use", "steps"),
    "pipeline": ("pipeline_star", "pipeline_fixed", "pipeline_graph", "pipeline_restart", "pipeline_workers"),
}
"""Workloads, by the part of the page that has their table."""
WORKLOADS = tuple(name for names in GROUPS.values() for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", type=_names, help=f"workloads to run, of {', '.join(WORKLOADS)}")
    parser.add_argument("--cases", nargs="+", help="cases to run, by their names in the table")
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of each strategy (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="sizes of pipeline_*, in parts of the full ones (1)")
    parser.add_argument("--no-page", action="store_true", help="leave docs/benchmarks.md and the results as they are")
    options = parser.parse_args()
    only = [name for names in options.only or [WORKLOADS] for name in names]
    if options.scale != 1 and not options.no_page:
        parser.error("the page has full sizes; add --no-page")
    os.environ["BENCHMARK_SCALE"] = str(options.scale)

    today = dt.date.today().isoformat()
    about = {**machine(), "date": today, "repetitions": options.repetitions}
    for group, workloads in GROUPS.items():
        measured: list[Measured] = []
        for workload in (name for name in workloads if name in only):
            module = import_module(f"benchmarks.{workload}")
            getattr(module, "prepare", lambda: None)()
            for case in module.CASES:
                if not options.cases or case in options.cases:
                    measured += measure_case(workload, case, module.STRATEGIES, options.repetitions)
        if measured:
            tell(group, measured, about, keep=not options.no_page)


def _names(text: str) -> list[str]:
    """Names of workloads, with commas between them or alone."""
    names = text.split(",")
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(WORKLOADS)}")
    return names


def tell(group: str, measured: list[Measured], about: dict[str, Any], *, keep: bool) -> None:
    """Print the table of a group; ``keep``: also write it into the page, and every figure into the results."""
    text = f"{describe(about)}\n\n{table(measured)}"
    print(text)
    for one in measured:
        one.pop("answers", None)
    if not keep:
        return
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    name = about["date"] if group == "engine" else f"{about['date']}-{group}"
    (folder / f"{name}.json").write_text(json.dumps({"machine": about, "measured": measured}, indent=1) + "\n")
    write_page(text, group)


def measure_case(workload: str, case: str, strategies: tuple[str, ...], repetitions: int) -> list[Measured]:
    """Strategies in turn, each time in new processes; answers are compared before anything counts."""
    found: list[Measured] = []
    for repetition in range(repetitions):
        for strategy in strategies:
            print(f"{workload} {case}: {strategy}, {repetition + 1} of {repetitions}", flush=True)
            one = in_own_process(workload, case, strategy)
            one |= {"workload": workload, "case": case, "strategy": strategy, "repetition": repetition}
            for other in found[: len(strategies)]:
                compare_answers(one, other)
            found.append(one)
    return found


if __name__ == "__main__":
    main()
