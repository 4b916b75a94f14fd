"""From measurements to the table of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, median, spread
from benchmarks.peers import MEASURED_ELSEWHERE

PAGE = ROOT / "docs" / "benchmarks.md"
MARKS = {
    "engine": ("<!-- measured: begin -->", "<!-- measured: end -->"),
    "pipeline": ("<!-- measured on Spark: begin -->", "<!-- measured on Spark: end -->"),
}
"""Where the tables are in the page."""

Measured = dict[str, Any]
"""A measurement: ``workload``, ``case``, ``strategy``, ``repetition``, and what the worker found."""


class Disagreement(Exception):
    """Two strategies gave different answers, so that no time of theirs counts."""


def compare_answers(one: Measured, other: Measured) -> None:
    """Check that the answers of two measurements of one case are the same, at all steps both tell of."""
    for step, rows in one.get("answers", {}).items():
        others = other.get("answers", {}).get(step)
        if others is not None and not _same_rows(rows, others):
            raise Disagreement(
                f"{one['workload']} {one['case']}, after step {step}: {one['strategy']} has {rows[:3]}, "
                f"{other['strategy']} has {others[:3]}"
            )


def _same_rows(rows: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> bool:
    if len(rows) != len(others):
        return False
    return all(
        len(row) == len(other) and all(_same(a, b) for a, b in zip(row, other, strict=True))
        for row, other in zip(rows, others, strict=True)
    )


def _same(a: str, b: str) -> bool:
    """Equal; or as near as the last of six or more digits tells: DuckDB divides as doubles, Spark as decimals."""
    if a == b:
        return True
    try:
        x, y = Decimal(a), Decimal(b)
    except InvalidOperation:
        return False
    digits = min(-int(x.as_tuple().exponent), -int(y.as_tuple().exponent))
    last_digit = Decimal(1).scaleb(-digits) if digits >= 6 else Decimal(0)
    return abs(x - y) <= max(last_digit, Decimal("1e-9") * max(abs(x), abs(y)))


def table(measured: Sequence[Measured]) -> str:
    """The table in Markdown: a line per workload, case and strategy."""
    lines = [
        "| workload | strategy | median | spread | wall | freshviews is | target | measured elsewhere |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    cases = dict.fromkeys((m["workload"], m["case"]) for m in measured)
    for workload, case in cases:
        module = import_module(f"benchmarks.{workload}")
        found = [m for m in measured if (m["workload"], m["case"]) == (workload, case)]
        ours = [_value(m) for m in found if m["strategy"] == "freshviews"]
        for strategy in dict.fromkeys(m["strategy"] for m in found):
            here = [m for m in found if m["strategy"] == strategy]
            lines.append(_line(module, case, strategy, here, ours, _beside(module, case, measured)))
    return "\n".join(lines)


def _beside(module: Any, case: str, measured: Sequence[Measured]) -> float | None:
    """The median of the case that a case is to be held against, by ``LIKE`` of its module; None where none is."""
    other = getattr(module, "LIKE", {}).get(case, (None, 0.0))[0]
    workload = module.__name__.rpartition(".")[2]
    keys = ("workload", "case", "strategy")
    found = [_value(m) for m in measured if tuple(m[key] for key in keys) == (workload, other, "freshviews")]
    return median(found) if found else None


def _line(
    module: Any, case: str, strategy: str, found: Sequence[Measured], ours: Sequence[float], beside: float | None
) -> str:
    values = [_value(m) for m in found]
    name = f"{module.TITLE}, {case}" if case else module.TITLE
    wall = [m["rows_per_second"] for m in found if "rows_per_second" in m]
    target, ratio, elsewhere = "", "", ""
    if strategy == "freshviews":
        if case in module.TARGETS:
            target = _verdict(median(values), module.TARGETS[case], module.UNIT)
        if beside is not None:
            other, most = module.LIKE[case]
            times = median(values) / beside
            verdict = "reached" if times <= most else "missed"
            target += f"; at most {most:g} times that with {other}: {verdict}, {times:.2f}"
        elsewhere = MEASURED_ELSEWHERE.get(name.replace("tpch, ", "tpch "), MEASURED_ELSEWHERE.get(module.TITLE, ""))
    elif ours:
        times = median(ours) / median(values) if module.UNIT == "rows/s" else median(values) / median(ours)
        ratio = f"{_number(times)} times as fast"
        wanted = getattr(module, "TARGET_RATIOS", {}).get(strategy)
        if wanted is not None:
            target = f"{wanted:g} times: {'reached' if times >= wanted else 'missed'}"
    more = "".join(f"; {key} {_number(median([m[key] for m in found]))}" for key in _EXTRA if key in found[0])
    more += "".join(f"; {note}" for note in dict.fromkeys(m["note"] for m in found if m.get("note")))
    cells = [
        name,
        strategy,
        _quantity(median(values), module.UNIT) + more,
        f"{100 * spread(values):.0f}%",
        _quantity(median(wall), module.UNIT) if wall else "",
        ratio,
        target,
        elsewhere,
    ]
    return "| " + " | ".join(cells) + " |"


_EXTRA = ("p99", "accounted", "import", "cpu", "mean", "most")


def _value(measured: Measured) -> float:
    value: float = measured["value"] if "value" in measured else measured["rows_per_cpu_second"]
    return value


def _verdict(value: float, target: float, unit: str) -> str:
    reached = value >= target if unit == "rows/s" else value <= target
    return f"{_quantity(target, unit)}: {'reached' if reached else 'missed'}"


def _quantity(value: float, unit: str) -> str:
    if unit == "rows/s":
        return f"{value / 1e6:.2f} M/s" if value >= 1e5 else f"{value / 1e3:.2f} k/s"
    return f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def describe(machine: dict[str, Any]) -> str:
    """The machine in one paragraph."""
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("python", "freshviews", "numba", "numpy", "pyarrow", "duckdb", "pyspark")
    )
    load = " ".join(f"{x:g}" for x in machine["load"])
    return (
        f"Measured {machine['date']} on {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gib']} GiB, {machine['system']}; load before the run {load}; {versions}; "
        f"{machine['repetitions']} repetitions."
    )


def write_page(text: str, group: str, page: Path = PAGE) -> None:
    """Put the measured part of a group into the page, between its two marks."""
    begin, end = MARKS[group]
    old = page.read_text()
    before, rest = old.split(begin, 1)
    _, after = rest.split(end, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
