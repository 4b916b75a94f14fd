"""From measurements to the tables of docs/benchmarks.md, and to what stands above them: who else is ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.environments import NAMES, version_in
from benchmarks.measuring.machine import ROOT, median, spread
from benchmarks.measuring.strategies import PEERS, PLANNED
from benchmarks.reporting.plots import Plot, plots
from benchmarks.running.results import Measured, latest
from benchmarks.running.schedule import APART, GROUPS

PAGE = ROOT / "docs" / "benchmarks.md"
MARK = "<!-- measured, {}: {} -->"
TOP = "ahead"
"""The part of the page that says where somebody else is ahead."""
SILENT = ("missing", "refused", "failed", "wrong")
"""What is told of a strategy that has no figure."""

MEASURED_ELSEWHERE = {
    "star, in key order": "F-IVM 12.5 M/s, DBToaster 8.8 M/s row by row",
    "star, shuffled": "F-IVM 4.4 M/s",
    "tpch, q1": "DBToaster 4.1 M/s",
    "tpch, q3": "DBToaster 20 M/s",
    "tpch, q6": "DBToaster 71 M/s",
    "tpch, q10": "DBToaster 12 M/s",
    "tpch, q12": "DBToaster 14 M/s",
    "tpch, q14": "DBToaster 52 M/s",
    "triangle": "DBToaster (first-order) 2.1 M/s, F-IVM 0.7 M/s, Pathway 0.004 M/s, pg_ivm 0.003 M/s",
    "single rows": "Pathway 22 ms",
    "memory": "F-IVM about 51 bytes",
    "first use": "F-IVM 6 s with g++",
}
"""Measured earlier, on other hardware of two shared cores, as rows per CPU second of one thread: an orientation,
not a comparison. What is compared runs in the same run."""

Case = tuple[str, str]


def cases_of(measured: Sequence[Measured]) -> dict[Case, dict[str, list[Measured]]]:
    """Measurements by workload and case, then by strategy, in the order in which they came."""
    found: dict[Case, dict[str, list[Measured]]] = {}
    for one in measured:
        found.setdefault((one["workload"], one["case"]), {}).setdefault(one["strategy"], []).append(one)
    return found


def table(measured: Sequence[Measured]) -> str:
    """The table in Markdown: a line per workload, case and strategy."""
    lines = [
        "| workload | strategy | median | spread | freshviews is | a batch: p50, p99, p99.9 | memory | remarks |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (workload, case), strategies in cases_of(measured).items():
        module = module_of(workload)
        for strategy, found in strategies.items():
            lines.append(_line(module, case, strategy, found, strategies.get(PLANNED, []), measured))
    return "\n".join(lines)


def _line(
    module: Any, case: str, strategy: str, found: Sequence[Measured], ours: Sequence[Measured], all_: Sequence[Measured]
) -> str:
    values = values_of(found)
    remarks = list(dict.fromkeys(f"{key}: {one[key]}" for one in found for key in SILENT if key in one))
    remarks += dict.fromkeys(one[key] for one in found for key in ("cut", "note") if one.get(key))
    first = found[0]
    if strategy == PLANNED and values:
        remarks += [f"takes {first['strategy_taken']}"] if first.get("strategy_taken") else []
        remarks += _targets(module, case, found, all_)
    elif values and ours and values_of(ours):
        wanted = _wanted_times(module, case, strategy)
        times = ratio(values_of(ours), values, module.UNIT)
        if wanted is not None:
            remarks.append(f"target {wanted:g} times: {'reached' if times >= wanted else 'missed'}")
    for key, words in (("delta_rows_per_second", "delta rows/s"), ("read_rows_per_second", "rows/s read")):
        told = [one[key] for one in found if one.get(key, 0) and one.get("delta_rows", 2_001) > 2_000]
        if told and (key != "read_rows_per_second" or median(told) > 1e4):
            remarks.append(f"{_rate(median(told))} {words}")
    remarks += [f"{key} {number(median(_all(found, key)))}" for key in _EXTRA if key in first]
    cells = [
        title_of(module, case),
        strategy,
        quantity(median(values), module.UNIT) if values else "",
        f"{100 * spread(values):.0f}%" if len(values) > 1 else "",
        _beside(values, ours, module.UNIT) if strategy != PLANNED else "",
        _latency(found),
        f"{median(_all(found, 'peak_bytes')) / 2**20:,.0f} MB" if "peak_bytes" in first else "",
        "; ".join(remark.replace("|", "\\|").replace("\n", " ") for remark in remarks),
    ]
    return "| " + " | ".join(cells) + " |"


def _wanted_times(module: Any, case: str, strategy: str) -> float | None:
    """How many times as fast as a peer we want to be: in all cases, or in this one."""
    wanted = getattr(module, "TARGET_RATIOS", {}).get(strategy)
    return wanted.get(case) if isinstance(wanted, dict) else wanted


_EXTRA = ("p99", "accounted", "import", "cpu", "mean", "most")


def title_of(module: Any, case: str) -> str:
    return f"{module.TITLE}, {case}" if case else str(module.TITLE)


def values_of(found: Iterable[Measured]) -> list[float]:
    """The figure of each measurement that has one: rows a second by the wall clock, or what the workload's value is."""
    return [one.get("value", one.get("rows_per_second")) for one in found if "value" in one or "rows_per_second" in one]


def ratio(ours: Sequence[float], theirs: Sequence[float], unit: str) -> float:
    """How many times as fast freshviews is."""
    times = median(ours) / median(theirs)
    return times if unit.endswith("/s") else 1 / times


def _beside(values: Sequence[float], ours: Sequence[Measured], unit: str) -> str:
    if not values or not values_of(ours):
        return ""
    times = ratio(values_of(ours), values, unit)
    if max(times, 1 / times) <= 1 + _unsure(values_of(ours), values):
        return "as fast"
    return f"{number(times)} times as fast" if times >= 1 else f"**behind**: {number(1 / times)} times as slow"


def _unsure(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Up to which part a difference is none: the spread of either, or a twentieth."""
    return max(spread(ours), spread(theirs), 0.05)


def _targets(module: Any, case: str, found: Sequence[Measured], measured: Sequence[Measured]) -> list[str]:
    """Verdicts over what we want to reach. Rates are held against it by the CPU clock, as those of the C++ peers."""
    remarks = []
    values = [one.get("rows_per_cpu_second", one.get("value")) for one in found]
    target = getattr(module, "TARGETS", {}).get(case)
    if target is not None:
        value = median([v for v in values if v is not None])
        reached = value >= target if module.UNIT.endswith("/s") else value <= target
        clock = f" by CPU time, {quantity(value, module.UNIT)}" if "rows_per_cpu_second" in found[0] else ""
        remarks.append(f"target {quantity(target, module.UNIT)}{clock}: {'reached' if reached else 'missed'}")
    other, most = getattr(module, "LIKE", {}).get(case, (None, 0.0))
    workload = found[0]["workload"]
    beside = values_of(m for m in measured if (m["workload"], m["case"], m["strategy"]) == (workload, other, PLANNED))
    if beside:
        times = median(values_of(found)) / median(beside)
        verdict = "reached" if times <= most else "missed"
        remarks.append(f"at most {most:g} times that with {other}: {verdict}, {times:.2f}")
    name = title_of(module, case)
    elsewhere = MEASURED_ELSEWHERE.get(name, MEASURED_ELSEWHERE.get(module.TITLE))
    if elsewhere:
        remarks.append(f"measured elsewhere: {elsewhere}")
    return remarks


def _latency(found: Sequence[Measured]) -> str:
    texts = []
    for key in ("p50_ms", "p99_ms", "p999_ms"):
        told = [one[key] for one in found if key in one]
        if told:
            texts.append(number(median(told)))
    return f"{', '.join(texts)} ms" if texts else ""


def _all(found: Sequence[Measured], key: str) -> list[float]:
    return [one[key] for one in found if key in one]


def states(measured: Sequence[Measured]) -> str:
    """What our strategies keep, the most at any point of comparison, beside the bound that EXPLAIN states."""
    lines = [
        "| workload | strategy | rows in | rows kept | bytes kept | bytes a row | EXPLAIN: space | ready after |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (workload, case), strategies in cases_of(measured).items():
        module = module_of(workload)
        for strategy, taken in strategies.items():
            found = [one for one in taken if one.get("state_rows")]
            if found and strategy not in PEERS:
                one = found[-1]
                each = one["state_bytes"] / one["state_rows"]
                cells = [title_of(module, case), strategy, f"{one['rows']:,}", f"{one['state_rows']:,}"]
                cells += [f"{one['state_bytes']:,}", f"{each:,.0f}", one.get("space", "").replace("|", "\\|")]
                cells += [f"{median(_all(found, 'ready_seconds')):.2f} s"]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def ahead(measured: Sequence[Measured]) -> str:
    """A line for each case in which somebody is faster than the strategy that the planner takes: peers, and our own."""
    peers, own, alone = [], [], []
    for (workload, case), strategies in cases_of(measured).items():
        module = module_of(workload)
        ours = values_of(strategies.get(PLANNED, []))
        for strategy, found in strategies.items():
            values = values_of(found)
            if strategy == PLANNED or not values or any("cut" in one for one in found):
                continue
            if not ours:
                alone.append(f"- {title_of(module, case)}: {strategy}, {quantity(median(values), module.UNIT)}")
                continue
            times = 1 / ratio(ours, values, module.UNIT)
            if times - 1 > _unsure(ours, values):
                line = f"{title_of(module, case)}: {strategy}, {number(times)} times as fast as freshviews"
                (peers if strategy in PEERS else own).append((times, line))
    silent = [m for m in measured if m["strategy"] not in PEERS and "refused" in m]
    lines = ["Peers that are faster:", "", *(_listed(peers) or ["- none"])]
    if alone:
        lines += ["", "Who answers where freshviews, by the planner's choice, has no figure:", "", *alone]
    if own:
        lines += ["", "Strategies of our own, named, that are faster than the planner's choice:", "", *_listed(own)]
    if silent:
        lines += ["", "Views that freshviews refuses, with what it says:", ""]
        modules = {m["workload"]: module_of(m['workload']) for m in silent}
        told = dict.fromkeys(
            f"- {title_of(modules[m['workload']], m['case'])}"
            + (f" by {m['strategy']}" if m["strategy"] != PLANNED else "")
            + f": `{m['refused']}`"
            for m in silent
        )
        lines += told
    wrong = dict.fromkeys(f"- {m['wrong']}" for m in measured if "wrong" in m)
    if wrong:
        lines += ["", "Answers that differ, so that no time counts:", "", *wrong]
    return "\n".join(lines)


def _listed(found: list[tuple[float, str]]) -> list[str]:
    return [f"- {line}" for _, line in sorted(found, reverse=True)]


def quantity(value: float, unit: str) -> str:
    if unit.endswith("/s"):
        return _rate(value)
    return f"{number(value)} {unit}"


def _rate(value: float) -> str:
    return f"{value / 1e6:.2f} M/s" if value >= 1e5 else f"{value / 1e3:.2f} k/s" if value >= 100 else f"{value:.1f} /s"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def describe(machine: dict[str, Any]) -> str:
    """The machine in one paragraph."""
    names = ("python", "freshviews", "numba", "numpy", "pyarrow", "duckdb", "pyspark", *NAMES)
    versions = ", ".join(f"{name} {machine[name]}" for name in names if name in machine)
    load = " ".join(f"{x:g}" for x in machine["load"])
    return (
        f"Measured {machine['date']} on {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gib']} GiB, {machine['system']}; load before the run {load}; {versions}; "
        f"{machine['repetitions']} repetitions"
        + (f", each cut off after {machine['limit']:g} s." if "limit" in machine else ".")
    )


def peers_about() -> dict[str, str]:
    """Versions of the peers that have environments of their own."""
    return {name: version_in(name) for name in NAMES}


def summary(measured: Sequence[Measured]) -> str:
    """All tables, for the terminal."""
    return "\n\n".join([table(measured), states(measured), ahead(measured)])


def pages(page: Path = PAGE) -> None:
    """Write the page anew from the latest results: the engine's, and where there are any those of parts apart."""
    engine = latest("????-??-??")
    for group in GROUPS:
        results = latest(f"????-??-??-{group}") if group in APART else engine
        measured = [one for one in results["measured"] if one.get("group") == group] if results else []
        if results and measured:
            drawn = plots(group, measured, page.parent / "plots")
            texts = [describe(results["machine"]), *map(_picture, drawn), table(measured)]
            kept = states(measured)
            if kept:
                texts += ["What is kept, at most:", kept]
            write_page("\n\n".join(texts), group, page)
    if engine:
        write_page(ahead([one for one in engine["measured"] if "group" in one]), TOP, page)


def _picture(plot: Plot) -> str:
    return f"![{plot.title}](plots/{plot.file.name})"


def write_page(text: str, part: str, page: Path = PAGE) -> None:
    """Put the measured text of a part into the page, between its two marks."""
    begin, end = MARK.format(part, "begin"), MARK.format(part, "end")
    before, rest = page.read_text().split(begin, 1)
    _, after = rest.split(end, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
