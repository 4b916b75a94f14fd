"""Compares the cost of updates of a view under each strategy that accepts the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.errors import PlanError
from freshviews.plan.costs.cost import costs_of, mean_steps
from freshviews.plan.costs.degrees import Assumed, Degrees
from freshviews.plan.planner import plan_block
from freshviews.plan.registry import STRATEGIES
from freshviews.plan.strategy import Plan
from freshviews.program.program import Program
from freshviews.query.block import Block
from freshviews.records import dataclass

DegreesOf = Callable[[Program], Degrees | None]
"""Gives the measured degrees of a program; None without measurements."""


@dataclass(frozen=True)
class Comparison:
    """Steps of an update by strategy, the fewest first; whether these are computed from measured degrees."""

    steps: Mapping[str, float]
    measured: bool


def compare(
    view: ViewDef,
    block: Block,
    inputs: Mapping[str, TableDef | ViewDef],
    chosen: Plan,
    degrees_of: DegreesOf,
    rates: Mapping[str, float],
) -> Comparison:
    """Plan a block by every strategy that takes it and that triggers alone maintain, and compute the costs."""
    found: dict[str, float] = {}
    measured = True
    for name in STRATEGIES:
        try:
            plan = chosen if name == chosen.strategy else plan_block(replace(view, strategy=name), block, inputs)
        except PlanError:
            continue
        degrees = degrees_of(plan.program)
        costs = costs_of(plan.program, degrees or Assumed(plan.program, plan.expected))
        if costs is not None and plan.strategy == name:
            found[name] = mean_steps(costs, rates)
            measured = measured and degrees is not None
    return Comparison(dict(sorted(found.items(), key=lambda one: one[1])), measured)
