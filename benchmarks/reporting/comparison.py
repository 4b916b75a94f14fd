"""Charts of freshviews and others: a row for each case of a part, and one overview of all parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measuring.strategies import PLANNED, is_peer
from benchmarks.reporting.charts import MARKS, ROW, WIDTH, dots, figure, reach, save
from benchmarks.reporting.figures import cases_of, ratio, title_of, unit_of, values_of
from benchmarks.running.results import Measured

Row = tuple[str, list[tuple[str, float]]]
"""A label, and the time of each strategy relative to freshviews."""
ACROSS = "time for the same work where freshviews takes 1, logarithmic; left of the line: faster than freshviews"
COUNTED = ("moves", "steps/update", "bytes/row")
"""Units other than time: not on these charts."""


def rows_of(measured: Sequence[Measured], *, own: bool = False) -> list[Row]:
    """A row for each case in which another strategy has a figure; the case with the worst ratio to a peer is on top.

    ``own``: with the strategies of freshviews that are not the planner's choice.
    """
    found: list[Row] = []
    for (workload, case), strategies in cases_of(measured).items():
        ours = values_of(strategies.get(PLANNED, []))
        beside = [
            (name, ratio(ours, values_of(taken), unit_of(workload)))
            for name, taken in strategies.items()
            if name != PLANNED and ours and values_of(taken) and (own or is_peer(name))
            if name in MARKS and unit_of(workload) not in COUNTED
        ]
        if beside:
            found.append((title_of(workload, case), beside))
    return sorted(found, key=_worst)


def _worst(row: Row) -> tuple[float, str]:
    label, beside = row
    return min(([times for name, times in beside if is_peer(name)]) or [times for _, times in beside]), label


def draw_part(measured: Sequence[Measured], file: Path, *, own: bool = False) -> bool:
    """Draw the cases of a part; False, without a file, if freshviews ran alone."""
    rows = rows_of(measured, own=own)
    if not rows:
        return False
    alike = len({label.partition(", ")[0] for label, _ in rows}) == 1 and all(", " in label for label, _ in rows)
    short = [(label.partition(", ")[2] if alike else label, beside) for label, beside in rows]
    with figure(WIDTH, 1.0 + ROW * len(rows)) as drawn:
        axes = drawn.subplots()
        dots(axes, short, reach(short))
        axes.set_xlabel(ACROSS, loc="right")
        drawn.legend(loc="outside upper center", ncols=5, handletextpad=0.1, columnspacing=1.2)
        save(drawn, file)
    return True


def summary_of(measured: Sequence[Measured]) -> dict[str, list[float]]:
    """By peer, the times of all cases of a part."""
    found: dict[str, list[float]] = {}
    for _, beside in rows_of(measured):
        for name, times in beside:
            found.setdefault(name, []).append(times)
    return {name: sorted(found[name]) for name in sorted(found, key=lambda name: middle(found[name]))}


def middle(times: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, times)) / len(times))


def draw_overview(parts: Mapping[str, Sequence[Measured]], file: Path) -> None:
    """Draw all parts below each other: a panel for each, a row for each peer, a dot for each case."""
    panels = [(title, summary_of(measured)) for title, measured in parts.items()]
    panels = [(title, peers) for title, peers in panels if peers]
    rows = [[(name, [(name, times) for times in found]) for name, found in peers.items()] for _, peers in panels]
    edges = reach([row for some in rows for row in some])
    heights = [len(some) + 1.4 for some in rows]
    with figure(WIDTH, 0.6 + 0.185 * sum(heights)) as drawn:
        every = drawn.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})
        for axes, (title, _), some in zip(every[:, 0], panels, rows, strict=True):
            dots(axes, some, edges, name_line=axes is every[0, 0])
            axes.set_title(title, loc="left", fontweight="bold")
            axes.tick_params(axis="x", labelbottom=axes is every[-1, 0], length=3 if axes is every[-1, 0] else 0)
            axes.spines["bottom"].set_visible(axes is every[-1, 0])
        every[-1, 0].set_xlabel(ACROSS, loc="right")
        save(drawn, file)
