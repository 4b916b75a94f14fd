"""Heavy and light values: the slopes on the hard stream, by counting steps of compiled triggers, and the streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.counting import eps_steps
from benchmarks.measuring.stream import MULTIPLICITY
from benchmarks.reporting.curves import draw_curves
from benchmarks.workloads import eps

SIZES = (1_000, 6_000, 36_000)


def slopes(shape: str, strategy: str) -> tuple[float, float]:
    """The slopes of steps and of space."""
    found = [eps_steps.measure(f"{shape}, N = {n:,}", strategy) for n in SIZES]
    time, space = ([(one["rows"], one[key]) for one in found] for key in ("value", "stored"))
    return eps_steps.slope(time), eps_steps.slope(space)


@pytest.mark.full
@pytest.mark.parametrize("shape", eps_steps.SHAPES)
@pytest.mark.parametrize("name", ["ivm_eps, eps = 1/2", "ivm_eps_linear, eps = 1/2"])
def test_steps_grow_with_the_square_root_at_exponent_one_half(name: str, shape: str) -> None:
    time, space = slopes(shape, name)
    assert time <= 0.55
    assert space <= (1.05 if "linear" in name else 1.55)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["first_order", "view_tree"])
def test_first_order_and_view_trees_take_linear_time_on_the_hard_stream(name: str) -> None:
    assert slopes("wide", name)[0] >= 0.9


@pytest.mark.full
@pytest.mark.parametrize("shape", eps_steps.SHAPES)
@pytest.mark.parametrize("exponent", [1 / 4, 2 / 3])
def test_steps_and_space_keep_their_bounds_at_exponents_one_quarter_and_two_thirds(exponent: float, shape: str) -> None:
    time, space = slopes(shape, f"ivm_eps, eps = {'1/4' if exponent == 1 / 4 else '2/3'}")
    assert time <= max(exponent, 1 - exponent) + 0.05
    assert space <= 1 + min(exponent, 1 - exponent) + 0.05


def test_edges_of_hubs_are_distinct_and_have_one_hub_each() -> None:
    edges = eps.hubs(5_000, 400, 10)
    assert len(np.unique(edges, axis=0)) == 5_000
    assert ((edges < 10).sum(axis=1) == 1).all()
    assert np.bincount(np.where(edges[:, 0] < 10, edges[:, 0], edges[:, 1])).min() > 300


def test_every_edge_that_enters_the_window_is_deleted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eps, "epinions", lambda: np.arange(400).reshape(200, 2))
    steps = eps.stream(eps.EPINIONS).steps
    signs = np.concatenate([step.rows.column(MULTIPLICITY).to_numpy() for step in steps])
    assert len(signs) == 400 and signs.sum() == 0 and np.cumsum(signs).max() == 40


def test_a_chart_is_drawn_only_if_two_sizes_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra bench")
    measured = [
        {
            "workload": "eps_steps",
            "case": f"{shape}, N = {n}",
            "strategy": name,
            "rows": n,
            "value": n**0.5,
            "stored": n,
        }
        for shape in eps_steps.SHAPES
        for n in (1_000, 10_000)
        for name in ("ivm_eps, eps = 1/2", "ivm_eps_linear, eps = 2/3", "first_order")
    ]
    drawn = draw_curves("eps", measured, tmp_path)
    assert [file.name for file, _ in drawn] == ["eps-exponents.svg", "eps-steps.svg"]
    assert all(file.stat().st_size > 5_000 for file, _ in drawn)
    assert draw_curves("eps", measured[:1], tmp_path) == []
