"""The registry of strategies is the only dispatch: planner and engine name no strategy."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import freshviews.engine
from freshviews.plan import STRATEGIES, planner
from freshviews.plan.registry import NECESSITIES, PREFERENCES

NAMES = {*STRATEGIES, *(one.strategy.name for one in NECESSITIES)}
SOURCES = [Path(inspect.getfile(planner)), *Path(inspect.getfile(freshviews.engine)).parent.rglob("*.py")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_planner_and_the_engine_mention_no_single_strategy(path: Path) -> None:
    constants = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    assert NAMES.isdisjoint(value for value in constants if isinstance(value, str))


def test_every_strategy_has_its_own_name() -> None:
    assert all(name == one.name for name, one in STRATEGIES.items())


def test_every_preferred_strategy_is_registered() -> None:
    assert {one.strategy.name for one in PREFERENCES} <= set(STRATEGIES)


def test_every_condition_of_a_preference_has_a_docstring() -> None:
    for one in (*PREFERENCES, *NECESSITIES):
        assert one.condition.__doc__, one.condition


def test_no_two_strategies_own_the_same_property_of_views() -> None:
    owned = [name for one in STRATEGIES.values() for name in one.owns]
    assert len(set(owned)) == len(owned)
    assert all(one.owns <= one.properties for one in STRATEGIES.values())
