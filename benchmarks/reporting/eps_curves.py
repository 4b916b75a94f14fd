"""Pictures of ``eps_steps``: exponents of time and space against eps, as Figure 1 of the paper, and steps against N.

The exponents are those of the stream that is dearest for each eps (``matched``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.counting.eps_steps import SHAPES, slope
from benchmarks.measuring.machine import median
from benchmarks.running.results import Measured

Point = tuple[float, float]


def eps_curves(measured: Sequence[Measured], folder: Path) -> list[tuple[Path, str]]:
    """Draw what there are at least two sizes of; files and titles."""
    counted = [one for one in measured if one["workload"] == "eps_steps" and "stored" in one]
    drawn = []
    exponents = {
        key: {name: slope(points) for name, points in lines_of(counted, "matched", key).items() if len(points) > 1}
        for key in ("value", "stored")
    }
    if any(", eps = " in name for name in exponents["value"]):
        file = folder / "eps-exponents.svg"
        _draw_exponents(exponents, file)
        drawn.append((file, "Exponents of steps and of space against eps, measured, and those of the bounds"))
    shapes = [shape for shape in SHAPES if any(len(p) > 1 for p in lines_of(counted, shape, "value").values())]
    if shapes:
        file = folder / "eps-steps.svg"
        _draw_steps({shape: lines_of(counted, shape, "value") for shape in shapes}, file)
        drawn.append((file, "Steps of an update against the rows of the relations, on the hard streams"))
    return drawn


def lines_of(measured: Sequence[Measured], shape: str, key: str) -> dict[str, list[Point]]:
    """By strategy, pairs of the rows and what was measured, by size."""
    found: dict[str, dict[float, list[float]]] = {}
    for one in measured:
        if one["case"].startswith(shape):
            found.setdefault(one["strategy"], {}).setdefault(float(one["rows"]), []).append(one[key])
    return {name: [(n, median(sizes[n])) for n in sorted(sizes)] for name, sizes in found.items()}


def _draw_exponents(exponents: dict[str, dict[str, float]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    grid = [i / 50 for i in range(51)]
    for place, (key, words, bound) in enumerate(
        (
            ("value", "steps of an update", lambda e: max(e, 1 - e)),
            ("stored", "rows of all views", lambda e: 1 + min(e, 1 - e)),
        )
    ):
        axes: Any = figure.add_subplot(1, 2, place + 1)
        axes.plot(grid, [bound(e) for e in grid], "--", color="C7", label="bound of ivm_eps")
        for i, strategy in enumerate(("ivm_eps", "ivm_eps_linear")):
            points = sorted(
                (float(Fraction(name.rpartition(" = ")[2])), exponent)
                for name, exponent in exponents[key].items()
                if name.startswith(f"{strategy}, ")
            )
            if points:
                axes.plot(*zip(*points, strict=True), "ox"[i], color=f"C{i}", label=strategy)
        axes.set(xlabel="eps", ylabel="exponent of N", title=words)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(file, metadata={"Date": None})


def _draw_steps(shapes: dict[str, dict[str, list[Point]]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(shapes), 4), layout="constrained")
    for place, (shape, lines) in enumerate(shapes.items()):
        axes: Any = figure.add_subplot(1, len(shapes), place + 1)
        for i, (name, points) in enumerate(lines.items()):
            line = "-" if name.startswith("ivm_eps,") else "--"
            x, y = zip(*points, strict=True)
            label = f"{name}: {slope(points):.2f}" if len(points) > 1 else name
            axes.plot(x, y, f"o{line}", color=f"C{i % 10}", label=label, markersize=3)
        axes.set(xscale="log", yscale="log", title=shape, xlabel="N", ylabel="steps of an update")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")
    figure.savefig(file, metadata={"Date": None})
