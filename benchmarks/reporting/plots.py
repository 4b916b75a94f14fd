"""Pictures of a part of the page, as SVG: a bar for each strategy of each case, or a line over the size of a batch, of
a window (``benchmarks.reporting.curves``), or over the enclosureness of a stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import median
from benchmarks.measuring.strategies import OURS, PEERS
from benchmarks.reporting.curves import curves
from benchmarks.reporting.eps_curves import eps_curves
from benchmarks.running.results import Measured

CASES_IN_A_PLOT = 12
_OF_PEERS = ("black", "C7", "C8", "C9", "C6", "navy", "gold")
_OF_OURS = {name: f"C{i}" for i, name in enumerate(OURS)} | {"incremental_trie_join": "olive"}
COLOURS = {**_OF_OURS, **dict(zip(PEERS, _OF_PEERS, strict=True))}
"""A colour for each, none twice."""
SIZE = re.compile(r"(.*), batches of (\d+)$")


@dataclass(frozen=True)
class Plot:
    """A picture that was drawn."""

    file: Path
    title: str


def plots(group: str, measured: Sequence[Measured], folder: Path) -> list[Plot]:
    """Draw what a group has rates of; without matplotlib nothing is drawn. The same figures make the same files."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = group
    folder.mkdir(exist_ok=True)
    if group == "windows":
        return [Plot(file, title) for file, title in curves(measured, folder, COLOURS)]
    rates = [one for one in measured if "rows_per_second" in one]
    drawn = [Plot(file, title) for file, title in eps_curves(measured, folder)] if group == "eps" else []
    if not rates:
        return drawn
    if group == "batches":
        return _lines(group, rates, folder)
    cases = list(dict.fromkeys((one["workload"], one["case"]) for one in rates))
    for number, start in enumerate(range(0, len(cases), CASES_IN_A_PLOT)):
        some = cases[start : start + CASES_IN_A_PLOT]
        file = folder / f"{group}{f'-{number + 1}' if len(cases) > CASES_IN_A_PLOT else ''}.svg"
        drawn.append(_bars([one for one in rates if (one["workload"], one["case"]) in some], some, file))
    return drawn


def _bars(rates: Sequence[Measured], cases: Sequence[tuple[str, str]], file: Path) -> Plot:
    from matplotlib.figure import Figure

    strategies = [name for name in COLOURS if any(one["strategy"] == name for one in rates)]
    thickness = 0.8 / len(strategies)
    figure = Figure(figsize=(9, 1 + 0.16 * len(cases) * (len(strategies) + 1)), layout="constrained")
    axes: Any = figure.subplots()
    for i, strategy in enumerate(strategies):
        places, values = [], []
        for place, case in enumerate(cases):
            here = [m for m in rates if (m["workload"], m["case"]) == case and m["strategy"] == strategy]
            found = [m["rows_per_second"] for m in here]
            if found:
                places.append(place + (i - (len(strategies) - 1) / 2) * thickness)
                values.append(median(found))
        axes.barh(places, values, thickness * 0.9, label=strategy, color=COLOURS[strategy])
    axes.set_xscale("log")
    axes.set_yticks(range(len(cases)), [f"{workload}\n{case}" if case else workload for workload, case in cases])
    axes.invert_yaxis()
    axes.set_xlabel("updates a second")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(file, metadata={"Date": None})
    return Plot(file, "Updates a second by strategy, on a logarithmic scale")


def _lines(group: str, rates: Sequence[Measured], folder: Path) -> list[Plot]:
    from matplotlib.figure import Figure

    sized = [(one, match) for one in rates if (match := SIZE.match(one["case"]))]
    cases = list(dict.fromkeys(match[1] for _, match in sized))
    drawn = []
    for key, words in (("rows_per_second", "updates a second"), ("p50_ms", "milliseconds of the median batch")):
        figure = Figure(figsize=(4.5 * max(len(cases), 1), 3.6), layout="constrained")
        for place, case in enumerate(cases):
            axes: Any = figure.add_subplot(1, len(cases), place + 1)
            for strategy, colour in COLOURS.items():
                points: dict[int, list[float]] = {}
                for one, match in sized:
                    if match[1] == case and one["strategy"] == strategy and key in one:
                        points.setdefault(int(match[2]), []).append(one[key])
                if points:
                    sizes = sorted(points)
                    axes.plot(sizes, [median(points[n]) for n in sizes], "o-", label=strategy, color=colour)
            axes.set(xscale="log", yscale="log", title=case, xlabel="rows of a batch", ylabel=words)
            axes.grid(alpha=0.3)
            axes.legend(fontsize="small")
        file = folder / f"{group}-{key.removesuffix('_ms').replace('rows_per_second', 'rate')}.svg"
        figure.savefig(file, metadata={"Date": None})
        drawn.append(Plot(file, f"{words} by the size of a batch".capitalize()))
    return drawn
