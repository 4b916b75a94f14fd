"""Line charts of parts whose figures depend on a size: batches, windows, enclosureness, eps, variables and rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from operator import itemgetter
from pathlib import Path

from benchmarks.counting.eps_steps import SHAPES, slope
from benchmarks.measuring.machine import median
from benchmarks.reporting.charts import Panel, lines
from benchmarks.running.results import Measured

Points = dict[str, list[tuple[float, float]]]
"""By the name of a line, pairs of x and y, by x."""
SIZE = re.compile(r"(.*), batches of (\d+)$")
VARIABLES = re.compile(r"m = (\d+)(?:, (.*))?$")
WINDOWED = "3-hop, full"


def draw_curves(group: str, measured: Sequence[Measured], folder: Path) -> list[tuple[Path, str]]:
    """Draw the line charts of a part; files and titles. A chart needs two points of one line."""
    drawn = []
    for name, title, panels in _CHARTS.get(group, lambda _: [])(measured):
        panels = [panel for panel in panels if any(len(points) > 1 for points in panel.lines.values())]
        if panels:
            lines(panels, folder / name)
            drawn.append((folder / name, title))
    return drawn


def points_of(
    measured: Iterable[Measured],
    line: Callable[[Measured], str],
    across: Callable[[Measured], float],
    up: Callable[[Measured], float],
) -> Points:
    """The median of ``up`` at each ``across``, by line."""
    found: dict[str, dict[float, list[float]]] = {}
    for one in measured:
        found.setdefault(line(one), {}).setdefault(across(one), []).append(up(one))
    return {name: [(x, median(by_x[x])) for x in sorted(by_x)] for name, by_x in found.items()}


def strategy(one: Measured) -> str:
    return str(one["strategy"])


Charts = list[tuple[str, str, list[Panel]]]
"""Name of the file, title, panels."""


def _by_size(name: str, measured: Sequence[Measured]) -> Charts:
    sized = [(one, found) for one in measured if "rows_per_second" in one and (found := SIZE.match(one["case"]))]
    panels = []
    for case in dict.fromkeys(found[1] for _, found in sized):
        here = [{**one, "size": int(found[2])} for one, found in sized if found[1] == case]
        points = points_of(here, strategy, lambda one: one["size"], lambda one: one["rows_per_second"])
        panels.append(Panel(case, "rows of a batch", "updates per second", points))
    return [(name, "Updates per second by the size of a batch", panels)]


def _windows(measured: Sequence[Measured]) -> Charts:
    windows = [one for one in measured if one["workload"] == "windowed_graph" and "window" in one]
    sizes = [one for one in windows if one["case"] == WINDOWED or one["case"].startswith(f"{WINDOWED}, window")]
    within = [one for one in measured if one["workload"] == "enclosure" and "lambda_t" in one]

    def edges(one: Measured) -> float:
        return float(one["window"])

    def tree(one: Measured) -> str:
        return str(one["case"]).rpartition(", ")[0]

    def enclosed(one: Measured) -> float:
        return float(one["case"].rpartition(", ")[2])

    seconds = points_of(sizes, strategy, edges, lambda one: one["value"])
    memory = points_of(sizes, strategy, edges, lambda one: one["bytes per edge"] * one["window"] / 2**20)
    micros = points_of(within, tree, enclosed, lambda one: one["value"])
    kilobytes = points_of(within, tree, enclosed, lambda one: one["bytes"] / 1024)
    rows = "rows of S within the life of a row of R"
    return [
        (
            "windows-sizes.svg",
            f"Time and memory of {WINDOWED}, by the edges of a window",
            [
                Panel("CPU seconds", "edges in the window", "", seconds),
                Panel("MB of state", "edges in the window", "", memory),
            ],
        ),
        (
            "windows-enclosure.svg",
            "Time and memory by the rows that a row of R encloses, over two join trees",
            [
                Panel("CPU microseconds of an update", rows, "", micros),
                Panel("most KB of state", rows, "", kilobytes),
            ],
        ),
    ]


def _eps(measured: Sequence[Measured]) -> Charts:
    counted = [one for one in measured if one["workload"] == "eps_steps" and "stored" in one]

    def by_rows(shape: str, key: str) -> Points:
        here = [one for one in counted if one["case"].startswith(shape)]
        return points_of(here, strategy, lambda one: float(one["rows"]), lambda one: one[key])

    exponents = []
    grid = [i / 50 for i in range(51)]
    for key, words, bound in (
        ("value", "exponent of the steps of an update", lambda e: max(e, 1 - e)),
        ("stored", "exponent of the stored rows", lambda e: 1 + min(e, 1 - e)),
    ):
        found: Points = {"bound": [(e, bound(e)) for e in grid]}
        for name, points in by_rows("matched", key).items():
            kind, _, eps = name.partition(", eps = ")
            if eps and len(points) > 1:
                found.setdefault(kind, []).append((float(Fraction(eps)), slope(points)))
        exponents.append(Panel(words, "eps", "", {n: sorted(p) for n, p in found.items()}, False, ("bound",)))
    steps = [Panel(shape, "rows of the relations", "", _most_telling(by_rows(shape, "value"))) for shape in SHAPES]
    if all(set(panel.lines) == {"bound"} for panel in exponents):
        exponents = []
    return [
        ("eps-exponents.svg", "Exponents of steps and of space by eps, measured and by the bounds", exponents),
        ("eps-steps.svg", "Steps of an update by the rows of the relations, on the hard streams", steps),
    ]


def _learning(measured: Sequence[Measured]) -> Charts:
    def of(workload: str, key: str) -> list[tuple[Measured, re.Match[str]]]:
        here = [one for one in measured if one["workload"] == workload and key in one]
        return [(one, found) for one in here if (found := VARIABLES.match(one["case"]))]

    rates = [{**one, "m": float(found[1])} for one, found in of("cofactor", "rows_per_second") if not found[2]]
    ready = [{**one, "m": float(found[1]), "state": found[2]} for one, found in of("cofactor_ready", "value")]
    models = [one for one in measured if one["workload"] == "ridge" and "value" in one]
    by_m = points_of(rates, strategy, lambda one: one["m"], lambda one: one["rows_per_second"])
    states = points_of(ready, lambda one: str(one["state"]), lambda one: one["m"], lambda one: one["value"])
    states = {state: points for state, points in states.items() if len(points) > 1}
    by_rows = points_of(models, strategy, lambda one: float(one["rows"]), lambda one: one["value"])
    memory = points_of(models, strategy, lambda one: float(one["rows"]), lambda one: one["peak_bytes"] / 2**20)
    return [
        (
            "learning-variables.svg",
            "Cofactors by the number of variables",
            [
                Panel("rows per second", "variables", "", by_m),
                Panel("seconds until a view is ready", "variables", "", states),
            ],
        ),
        (
            "learning-rows.svg",
            "A ridge regression fresh after each batch of 1,000, by the rows of the join",
            [
                Panel("milliseconds of a batch", "rows of the join", "", by_rows),
                Panel("most MB of memory", "rows of the join", "", memory),
            ],
        ),
    ]


def _freshness(measured: Sequence[Measured]) -> Charts:
    found = [one for one in measured if one["workload"] == "pipeline_freshness" and "value" in one]
    panels = []
    for key, words in (("value", "seconds until the view is fresh"), ("cpu", "CPU seconds of a version")):
        for name in dict.fromkeys(one["case"].partition(", ")[0] for one in found):
            here = [one for one in found if one["case"].startswith(f"{name}, ")]
            points = points_of(here, strategy, lambda one: float(one["rows"]), itemgetter(key))
            panels.append(Panel(name, "rows of the facts", words, points))
    return [("freshness.svg", "Seconds until a view has 1,000 new rows, by the rows of its tables", panels)]


def _most_telling(points: Points) -> Points:
    """Of lines for many values of eps, the first, the last and one in the middle."""
    return {name: line for name, line in points.items() if ", eps = " not in name or name in _TELLING}


_TELLING = ("ivm_eps, eps = 0", "ivm_eps, eps = 1/2", "ivm_eps, eps = 1")
_CHARTS: dict[str, Callable[[Sequence[Measured]], Charts]] = {
    "batches": partial(_by_size, "batches.svg"),
    "compiled": partial(_by_size, "compiled.svg"),
    "windows": _windows,
    "eps": _eps,
    "learning": _learning,
    "pipeline": _freshness,
}
