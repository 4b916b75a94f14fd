"""Tables of measurements in Markdown: a line per case and strategy, and the memory of our strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.machine import median, spread
from benchmarks.measuring.strategies import PLANNED, is_peer
from benchmarks.reporting.figures import cases_of, noise, number, quantity, rate, ratio, title_of, values_of
from benchmarks.running.results import Measured

SILENT = ("missing", "refused", "failed", "wrong")
"""Reasons why a strategy has no figure."""

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
"""Figures of other systems, measured earlier on other hardware with two shared cores, as rows per CPU second of one
thread. They are for orientation only; comparisons are within one run."""


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
    workload, values = found[0]["workload"], values_of(found)
    remarks = list(dict.fromkeys(f"{key}: {one[key]}" for one in found for key in SILENT if key in one))
    remarks += dict.fromkeys(one[key] for one in found for key in ("cut", "note") if one.get(key))
    first = found[0]
    if strategy == PLANNED and values:
        remarks += [f"strategy {first['strategy_taken']}"] if first.get("strategy_taken") else []
        remarks += _targets(module, case, found, all_)
    elif values and ours and values_of(ours):
        wanted = _wanted_times(module, case, strategy)
        times = ratio(values_of(ours), values, module.UNIT)
        if wanted is not None:
            remarks.append(f"target {wanted:g} times: {'reached' if times >= wanted else 'missed'}")
    for key, words in (("delta_rows_per_second", "delta rows/s"), ("read_rows_per_second", "rows/s read")):
        rates = [one[key] for one in found if one.get(key, 0) and one.get("delta_rows", 2_001) > 2_000]
        if rates and (key != "read_rows_per_second" or median(rates) > 1e4):
            remarks.append(f"{rate(median(rates))} {words}")
    remarks += [f"{key} {number(median(_all(found, key)))}" for key in _EXTRA if key in first]
    cells = [
        title_of(workload, case),
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
    """The target ratio to a peer, of all cases or of this one; None if there is no target."""
    wanted = getattr(module, "TARGET_RATIOS", {}).get(strategy)
    return wanted.get(case) if isinstance(wanted, dict) else wanted


_EXTRA = ("p99", "accounted", "import", "cpu", "mean", "most")


def _beside(values: Sequence[float], ours: Sequence[Measured], unit: str) -> str:
    if not values or not values_of(ours):
        return ""
    times = ratio(values_of(ours), values, unit)
    if max(times, 1 / times) <= 1 + noise(values_of(ours), values):
        return "as fast"
    return f"{number(times)} times as fast" if times >= 1 else f"**behind**: {number(1 / times)} times as slow"


def _targets(module: Any, case: str, found: Sequence[Measured], measured: Sequence[Measured]) -> list[str]:
    """Whether targets are reached. Rates count by CPU time, like those of the C++ systems."""
    remarks = []
    values = [one.get("rows_per_cpu_second", one.get("value")) for one in found]
    target = getattr(module, "TARGETS", {}).get(case)
    if target is not None:
        value = median([v for v in values if v is not None])
        reached = value >= target if module.UNIT.endswith("/s") else value <= target
        clock = f" by CPU time, {quantity(value, module.UNIT)}" if "rows_per_cpu_second" in found[0] else ""
        remarks.append(f"target {quantity(target, module.UNIT)}{clock}: {'reached' if reached else 'missed'}")
    other, bound = getattr(module, "LIKE", {}).get(case, (None, 0.0))
    workload = found[0]["workload"]
    others = [m for m in measured if (m["workload"], m["case"], m["strategy"]) == (workload, other, PLANNED)]
    beside = [one.get("rows_per_cpu_second", one.get("value")) for one in others]
    if beside:
        times = median([v for v in values if v is not None]) / median([v for v in beside if v is not None])
        rates = module.UNIT.endswith("/s")
        verdict = "reached" if (times >= bound if rates else times <= bound) else "missed"
        remarks.append(f"at {'least' if rates else 'most'} {bound:g} times that with {other}: {verdict}, {times:.2f}")
    name = title_of(workload, case)
    elsewhere = MEASURED_ELSEWHERE.get(name, MEASURED_ELSEWHERE.get(module.TITLE))
    if elsewhere:
        remarks.append(f"measured elsewhere: {elsewhere}")
    return remarks


def _latency(found: Sequence[Measured]) -> str:
    texts = []
    for key in ("p50_ms", "p99_ms", "p999_ms"):
        times = [one[key] for one in found if key in one]
        if times:
            texts.append(number(median(times)))
    return f"{', '.join(texts)} ms" if texts else ""


def _all(found: Sequence[Measured], key: str) -> list[float]:
    return [one[key] for one in found if key in one]


def states(measured: Sequence[Measured]) -> str:
    """State of our strategies, the maximum over all points of comparison, with the bound that EXPLAIN states."""
    lines = [
        "| workload | strategy | rows in | rows stored | bytes stored | bytes a row | EXPLAIN: space | ready after |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (workload, case), strategies in cases_of(measured).items():
        for strategy, taken in strategies.items():
            found = [one for one in taken if one.get("state_rows")]
            if found and not is_peer(strategy):
                one = found[-1]
                each = one["state_bytes"] / one["state_rows"]
                cells = [title_of(workload, case), strategy, f"{one['rows']:,}", f"{one['state_rows']:,}"]
                cells += [f"{one['state_bytes']:,}", f"{each:,.0f}", one.get("space", "").replace("|", "\\|")]
                cells += [f"{median(_all(found, 'ready_seconds')):.2f} s"]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""
