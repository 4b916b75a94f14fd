"""Two kinds of charts as SVG: dots on a logarithmic axis, and lines with their names at their ends.

The background is transparent, text is of a middle grey, and colours are those of Okabe and Ito, so that a chart reads
on a light page and on a dark one, also for the colour-blind. Every series has a marker of its own, too. The same
figures give the same file, byte for byte, under one version of matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.strategies import BESIDE, PEERS, PLANNED

GREY = "#78818c"
"""Grey of text and axes: as far from white as from the background of a dark page."""
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
    "font.size": 9.0,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "savefig.transparent": True,
}
WIDTH = 9.0
"""Width of a chart in inches; an inch is 72 points of SVG."""
ROW = 0.17
"""Height of a row of dots in inches."""


@dataclass(frozen=True)
class Mark:
    """Colour and marker of a series; ``hollow`` for strategies of our own among peers."""

    colour: str
    marker: str
    hollow: bool = False


_COLOURS = (
    "#E69F00", "#0A84D0", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#A0785A", "#222222", "#B22222",
    "#117733", "#6A8D00", "#8C8C8C", "#5B5EA6", "#C2569B",
)  # fmt: skip
_MARKERS = "osD^vXP*d><phH"
MARKS = {
    PLANNED: Mark("#0A84D0", "o"),
    **{
        name: Mark(colour, marker)
        for name, colour, marker in zip((*PEERS, *BESIDE), _COLOURS, _MARKERS, strict=True)
    },
    "view_tree": Mark("#E69F00", "o", True),
    "higher_order": Mark("#CC79A7", "v", True),
    "change_propagation": Mark("#D55E00", "X", True),
    "first_order": Mark("#009E73", "^", True),
    "ivm_eps": Mark("#56B4E9", "s", True),
    "ivm_eps, eps = 0": Mark("#CC79A7", "v", True),
    "ivm_eps, eps = 1/2": Mark("#56B4E9", "s", True),
    "ivm_eps, eps = 1": Mark("#D55E00", "X", True),
    "ivm_eps_linear": Mark("#0A84D0", "o", True),
    "crown": Mark("#A0785A", "P", True),
    "trie_join": Mark("#E69F00", "D", True),
    "incremental_trie_join": Mark("#8C8C8C", "p", True),
}
"""The style of each strategy, the same in all charts."""
_REST = tuple(Mark(colour, marker) for colour, marker in zip(_COLOURS, _MARKERS, strict=True))


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes: points by the name of the line."""

    title: str
    across: str
    up: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    logarithmic: bool = True
    dashed: tuple[str, ...] = ()


@contextmanager
def figure(width: float, height: float) -> Iterator[Any]:
    """A figure in the common style; the size in inches."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, file: Path) -> None:
    """Write a figure as SVG, with identifiers that depend on the name of the file alone."""
    import matplotlib

    file.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": file.name}):
        drawn.savefig(file, format="svg", metadata={"Date": None})
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")


def dots(
    axes: Any,
    rows: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    edges: tuple[float, float],
    *,
    name_line: bool = True,
) -> None:
    """Dots of strategies per row, at their time relative to freshviews; the first row is on top.

    ``edges`` is the range of the axis, shared by panels below each other. ``name_line`` writes the name of
    freshviews above the line at 1.
    """
    for strategy, mark in MARKS.items():
        places = [(times, place) for place, (_, found) in enumerate(rows) for name, times in found if name == strategy]
        if places:
            across, up = zip(*places, strict=True)
            face = "none" if mark.hollow else mark.colour
            style = {"color": mark.colour, "markerfacecolor": face, "markersize": 5, "alpha": 0.9}
            axes.plot(across, up, mark.marker, label=strategy, **style)
    axes.set_xscale("log")
    axes.set_xlim(*edges)
    axes.axvline(1, color=GREY, linewidth=1.2)
    if name_line:
        above = axes.get_xaxis_transform()
        axes.annotate(PLANNED, (1, 1), xycoords=above, xytext=(0, 3), textcoords="offset points", ha="center", size=8)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.grid(axis="y", linewidth=0.4)
    axes.xaxis.set_major_formatter(lambda value, _: times_as_long(value))
    axes.minorticks_off()


def times_as_long(value: float) -> str:
    return f"{value:,.0f} ×" if value >= 1 else f"1/{1 / value:,.0f}"


def _ticks(span: float) -> tuple[float, ...]:
    """Multiples of powers of ten to mark on an axis whose ends have this ratio."""
    return (1, 1.5, 2, 3, 4, 6, 8) if span < 6 else (1, 2, 5) if span < 100 else (1,)


def plain(value: float) -> str:
    """A tick without a power of ten: 200, 50k, 3M."""
    if value < 1_000:
        return f"{value:g}"
    return f"{value / 1_000:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def reach(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> tuple[float, float]:
    """The range of an axis for all dots of the rows, and freshviews at 1."""
    every = [times for _, found in rows for _, times in found] + [1.0]
    return min(every) / 1.6, max(every) * 1.8


def lines(panels: Sequence[Panel], file: Path, height: float = 3.4) -> None:
    """Line charts, at most three beside each other, each line with its name at its right end."""
    from matplotlib.ticker import LogLocator

    rows = math.ceil(len(panels) / 3)
    with figure(WIDTH, rows * height) as drawn:
        for place, panel in enumerate(panels):
            axes = drawn.add_subplot(rows, math.ceil(len(panels) / rows), place + 1)
            ends = []
            for i, (name, points) in enumerate(panel.lines.items()):
                mark = MARKS.get(name, _REST[i % len(_REST)])
                across, up = zip(*sorted(points), strict=True)
                style = "--" if name in panel.dashed else "-"
                marker = "" if len(points) > 20 else mark.marker
                axes.plot(across, up, style, color=mark.colour, marker=marker, markersize=4, linewidth=1.3)
                ends.append((up[-1], name, mark.colour))
            if panel.logarithmic:
                axes.set(xscale="log", yscale="log")
            axes.set(xlabel=panel.across, ylabel=panel.up)
            axes.set_title(panel.title, loc="left", pad=9)
            for axis, values in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                if panel.logarithmic:
                    axis.set_major_locator(LogLocator(subs=_ticks(values[1] / values[0])))
                    axis.set_major_formatter(lambda value, _: plain(value))
            axes.minorticks_off()
            axes.grid()
            _name_at_ends(axes, ends)
        save(drawn, file)


def _name_at_ends(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write the names to the right of the axes, at the heights of the ends, moved apart where they would overlap."""
    axes.figure.draw_without_rendering()
    heights = [axes.transAxes.inverted().transform(axes.transData.transform((1, up)))[1] for up, _, _ in ends]
    gap = 11 / 72 / axes.get_window_extent().height * axes.figure.dpi
    order = sorted(range(len(ends)), key=lambda i: heights[i])
    placed: list[float] = []
    for i in order:
        placed.append(max(heights[i], placed[-1] + gap) if placed else heights[i])
    over = max(0.0, placed[-1] - 0.98) if placed else 0.0
    for i, height in zip(order, placed, strict=True):
        _, name, colour = ends[i]
        axes.annotate(
            name, (1, height - over), xycoords="axes fraction", xytext=(5, 0), textcoords="offset points",
            color=colour, fontsize=8, va="center", annotation_clip=False,
        )  # fmt: skip
