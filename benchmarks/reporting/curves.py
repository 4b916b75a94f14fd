"""Pictures of ``windows``: time and memory against the window, and time against the enclosureness of the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import median
from benchmarks.running.results import Measured

Points = dict[str, dict[float, list[float]]]
"""By name of the line, and by x, what was measured."""

WINDOWED = "3-hop, full"


def curves(measured: Sequence[Measured], folder: Path, colours: dict[str, str]) -> list[tuple[Path, str]]:
    """Draw what there are at least two points of; files and titles."""
    windows = [one for one in measured if one["workload"] == "windowed_graph" and "window" in one]
    sizes = [one for one in windows if one["case"] == WINDOWED or one["case"].startswith(f"{WINDOWED}, window")]
    enclosed = [one for one in measured if one["workload"] == "enclosure" and "lambda_t" in one]
    by_window: Callable[[Measured], float] = lambda one: one["window"]  # noqa: E731
    within: Callable[[Measured], float] = lambda one: float(one["case"].rpartition(", ")[2])  # noqa: E731
    drawn = []
    for file, title, points, labels in (
        (
            "windows-time.svg",
            "Seconds of 3-hop, full, against the edges of a window",
            _points(sizes, by_window, lambda one: one["value"]),
            ("edges in the window", "CPU seconds"),
        ),
        (
            "windows-memory.svg",
            "Memory of 3-hop, full, against the edges of a window",
            _points(sizes, by_window, lambda one: one["bytes per edge"] * one["window"] / 2**20),
            ("edges in the window", "MB that the view keeps"),
        ),
        (
            "windows-enclosure.svg",
            "An update against what a row of R encloses, over two join trees",
            _points(enclosed, within, lambda one: one["value"], True),
            ("rows of S within the life of a row of R", "CPU microseconds of an update"),
        ),
        (
            "windows-enclosure-memory.svg",
            "Memory against what a row of R encloses, over two join trees",
            _points(enclosed, within, lambda one: one["bytes"] / 1024, True),
            ("rows of S within the life of a row of R", "KB that the view keeps at most"),
        ),
    ):
        if any(len(line) > 1 for line in points.values()):
            _draw(points, labels, folder / file, colours)
            drawn.append((folder / file, title))
    return drawn


def _points(
    measured: Sequence[Measured], x: Callable[[Measured], float], y: Callable[[Measured], float], by_tree: bool = False
) -> Points:
    found: Points = {}
    for one in measured:
        line = one["case"].rpartition(", ")[0] if by_tree else one["strategy"]
        found.setdefault(line, {}).setdefault(x(one), []).append(y(one))
    return found


def _draw(points: Points, labels: tuple[str, str], file: Path, colours: dict[str, str]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes: Any = figure.subplots()
    for name, line in points.items():
        places = sorted(line)
        axes.plot(places, [median(line[place]) for place in places], "o-", label=name, color=colours.get(name))
    axes.set(xscale="log", yscale="log", xlabel=labels[0], ylabel=labels[1])
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(file, metadata={"Date": None})
