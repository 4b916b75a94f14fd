"""``python -m benchmarks``: measure, compare, print, write; ``install`` the peers; ``check`` ourselves."""

from __future__ import annotations

import argparse
import datetime as dt
import os

from benchmarks.measuring.environments import NAMES, install
from benchmarks.measuring.machine import machine
from benchmarks.reporting.report import pages, peers_about, summary
from benchmarks.running import check, schedule
from benchmarks.running.results import FOLDER, UNFINISHED, Unfinished
from benchmarks.running.run import Limits, measure, told_of_all
from benchmarks.running.schedule import Entry, merged


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("quick", "small sizes, a few minutes"), ("full", "everything, for the page")):
        _options(commands.add_parser(name, help=about), name)
    commands.add_parser("page", help="write docs/benchmarks.md anew from the latest results")
    installing = commands.add_parser("install", help="environments of the peers that have their own")
    installing.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)} (all)")
    checking = commands.add_parser("check", help="fail where we fell behind benchmarks/floor.json")
    checking.add_argument("--write", action="store_true", help="write the floor anew from this run")
    options = parser.parse_args()
    if options.command == "install":
        raise SystemExit(0 if install(tuple(options.names) or NAMES) else 1)
    if options.command == "check":
        raise SystemExit(check.run(write=options.write))
    if options.command == "page":
        pages()
        return
    run(options)


def _options(parser: argparse.ArgumentParser, name: str) -> None:
    full = name == "full"
    parser.add_argument("--only", nargs="+", help="workloads or groups to run, as tpch or graph")
    parser.add_argument("--cases", nargs="+", help="cases to run: those that contain one of these words")
    parser.add_argument("--strategies", nargs="+", help="strategies to run, beside the planner's choice")
    parser.add_argument("--repetitions", type=int, default=3 if full else 2, help="times that all is measured")
    parser.add_argument("--limit", type=float, default=10, help="seconds of one measurement")
    parser.add_argument("--memory", type=float, default=8, help="GiB of one process and its children")
    parser.add_argument("--minutes", type=float, default=60 if full else 10, help="minutes after which it stops")
    scaled = "sizes of pipeline_* and windowed_graph, in parts of the full ones"
    parser.add_argument("--scale", type=float, default=1.0, help=scaled)
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--no-page", action="store_true", help="leave docs/benchmarks.md as it is")


def run(options: argparse.Namespace) -> None:
    """Measure what the options say, and write results and page where all of it was reached."""
    os.environ["BENCHMARK_SCALE"] = str(options.scale)
    entries = chosen(options)
    about = {**machine(), "date": dt.date.today().isoformat(), "repetitions": options.repetitions}
    about |= {"mode": options.command, "limit": options.limit, **peers_about()}
    kept = Unfinished(UNFINISHED / f"unfinished-{options.command}.jsonl", about, go_on=options.go_on)
    # In quick runs what takes long is told of once.
    once = float("inf") if options.command == "full" else 10.0
    limits = Limits(options.limit, options.memory * 2**30, options.minutes, once)
    try:
        complete = measure(entries, options.repetitions, limits, kept)
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what was measured is in {kept.path}, and --continue goes on from there") from None
    print(summary(kept.measured))
    if not complete and not told_of_all(entries, kept.measured):
        raise SystemExit(1)
    whole = options.command == "full" and not (options.only or options.cases or options.strategies)
    groups = {entry.group for entry in entries}
    apart = groups.pop() if len(groups) == 1 and groups <= set(schedule.APART) else None
    date = str(kept.about["date"])
    if options.scale != 1 or not (whole or apart):
        path = kept.finish(UNFINISHED / f"{date}-{options.command}.json")
    else:
        path = kept.finish(FOLDER / f"{date}{f'-{apart}' if apart else ''}.json")
    print(f"written to {path}")
    if (whole or apart) and not options.no_page and options.scale == 1:
        pages()


def chosen(options: argparse.Namespace) -> list[Entry]:
    """The entries that the options leave; those of ``schedule.APART`` only where they are named."""
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
