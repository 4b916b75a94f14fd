"""``python -m benchmarks``: measure, compare, print, write."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from importlib import import_module

from benchmarks.measuring import ROOT, in_own_process, machine
from benchmarks.report import Measured, compare_answers, describe, table, write_page

WORKLOADS = ("star", "tpch", "triangle", "single_rows", "memory", "first_use", "steps")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=WORKLOADS, help="workloads to run")
    parser.add_argument("--cases", nargs="+", help="cases to run, by their names in the table")
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of each strategy (5)")
    parser.add_argument("--no-page", action="store_true", help="leave docs/benchmarks.md as it is")
    options = parser.parse_args()

    today = dt.date.today().isoformat()
    about = {**machine(), "date": today, "repetitions": options.repetitions}
    measured: list[Measured] = []
    for workload in options.only:
        module = import_module(f"benchmarks.{workload}")
        getattr(module, "prepare", lambda: None)()
        for case in module.CASES:
            if not options.cases or case in options.cases:
                measured += measure_case(workload, case, module.STRATEGIES, options.repetitions)
    text = f"{describe(about)}\n\n{table(measured)}"
    print(text)
    for one in measured:
        one.pop("answers", None)
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{today}.json").write_text(json.dumps({"machine": about, "measured": measured}, indent=1) + "\n")
    if not options.no_page:
        write_page(text)


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
