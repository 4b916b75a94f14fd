"""``python -m benchmarks``: measure and compare, generate pages, install peers, check for regressions."""

from __future__ import annotations

import argparse
import datetime as dt
import os

from benchmarks.measuring.environments import NAMES, install, versions
from benchmarks.measuring.machine import machine
from benchmarks.measuring.programs import BUILT, build
from benchmarks.measuring.programs import versions as versions_built
from benchmarks.reporting.pages import write_pages
from benchmarks.reporting.tables import states, table
from benchmarks.reporting.verdicts import ahead
from benchmarks.running import check, schedule
from benchmarks.running.results import FOLDER, UNFINISHED, Unfinished
from benchmarks.running.run import Limits, all_measured, measure
from benchmarks.running.schedule import Entry, merged

INSTALLED = (*NAMES, *BUILT)
"""The names that ``install`` accepts."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("quick", "small sizes, a few minutes"), ("full", "everything, for the pages of docs/")):
        _options(commands.add_parser(name, help=about), name)
    commands.add_parser("page", help="generate the pages of docs/ and the table of README.md from the latest results")
    installing = commands.add_parser("install", help="make the environments of peers, build those that are compiled")
    installing.add_argument("names", nargs="*", help=f"of {', '.join(INSTALLED)} (all)")
    about = "fail where a ratio or a count of steps falls behind benchmarks/floor.json"
    checking = commands.add_parser("check", help=about)
    checking.add_argument("--write", action="store_true", help="write the floor from this run")
    options = parser.parse_args()
    if options.command == "install":
        raise SystemExit(0 if _installed(tuple(options.names) or INSTALLED) else 1)
    if options.command == "check":
        raise SystemExit(check.run(write=options.write))
    if options.command == "page":
        write_pages()
        return
    run(options)


def _installed(names: tuple[str, ...]) -> bool:
    """Install peers by name; returns True if all could be installed. Exits for an unknown name."""
    for name in names:
        if name not in INSTALLED:
            raise SystemExit(f"there is no {name} to install; there are {', '.join(INSTALLED)}")
    done = [build(name) if name in BUILT else install((name,)) for name in names]
    return all(done)


def _options(parser: argparse.ArgumentParser, name: str) -> None:
    full = name == "full"
    parser.add_argument("--only", nargs="+", help="workloads or parts to run, for example tpch or graph")
    parser.add_argument("--cases", nargs="+", help="run the cases that contain one of these words")
    parser.add_argument("--strategies", nargs="+", help="strategies to run beside the planner's choice")
    parser.add_argument("--repetitions", type=int, default=3 if full else 2, help="repetitions of each measurement")
    parser.add_argument("--limit", type=float, default=10, help="seconds after which a measurement is cut off")
    parser.add_argument("--memory", type=float, default=8, help="GiB of memory for a process and its children")
    parser.add_argument("--minutes", type=float, default=60 if full else 10, help="minutes after which the run stops")
    scaled = "factor of the sizes of pipeline_* and windowed_graph"
    parser.add_argument("--scale", type=float, default=1.0, help=scaled)
    parser.add_argument("--continue", dest="go_on", action="store_true", help="continue a run that was stopped")
    parser.add_argument("--no-page", action="store_true", help="do not generate pages")


def run(options: argparse.Namespace) -> None:
    """Measure the entries that the options choose; write results and pages if the run was complete."""
    os.environ["BENCHMARK_SCALE"] = str(options.scale)
    entries = chosen(options)
    about = {**machine(), "date": dt.date.today().isoformat(), "repetitions": options.repetitions}
    about |= {"mode": options.command, "limit": options.limit, **versions(), **versions_built()}
    kept = Unfinished(UNFINISHED / f"unfinished-{options.command}.jsonl", about, go_on=options.go_on)
    # A quick run repeats no long measurements.
    once = float("inf") if options.command == "full" else 10.0
    limits = Limits(options.limit, options.memory * 2**30, options.minutes, once)
    try:
        complete = measure(entries, options.repetitions, limits, kept)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; measurements so far are in {kept.path}; --continue resumes the run") from None
    print("\n\n".join([table(kept.measured), states(kept.measured), ahead(kept.measured)]))
    if not complete and not all_measured(entries, kept.measured):
        raise SystemExit(1)
    whole = options.command == "full" and not (options.only or options.cases or options.strategies)
    groups = {entry.group for entry in entries}
    # A part that was measured alone and completely has results of its own.
    part = options.command == "full" and options.only == [*groups] and not (options.cases or options.strategies)
    apart = groups.pop() if part else None
    date = str(kept.about["date"])
    if options.scale != 1 or not (whole or apart):
        path = kept.finish(UNFINISHED / f"{date}-{options.command}.json")
    else:
        path = kept.finish(FOLDER / f"{date}{f'-{apart}' if apart else ''}.json")
    print(f"written to {path}")
    if (whole or apart) and not options.no_page and options.scale == 1:
        write_pages()


def chosen(options: argparse.Namespace) -> list[Entry]:
    """The entries that the options choose. Those of ``schedule.APART`` run only if named."""
    entries = merged(schedule.full() if options.command == "full" else schedule.quick())
    if options.only:
        every = [*entries, *merged(schedule.apart())]
        known = {entry.workload for entry in every} | {entry.group for entry in every}
        for name in options.only:
            if name not in known:
                raise SystemExit(f"there is no {name}; there are {', '.join(sorted(known))}")
        entries = [entry for entry in every if entry.workload in options.only or entry.group in options.only]
    if options.cases:
        entries = [entry for entry in entries if any(case in entry.case for case in options.cases)]
    if options.strategies:
        wanted = {schedule.PLANNED, *options.strategies}
        entries = [
            Entry(e.group, e.workload, e.case, tuple(s for s in e.strategies if s in wanted)) for e in entries
        ]
    return entries


if __name__ == "__main__":
    main()
