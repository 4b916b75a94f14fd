"""Finds a cheaper join tree or strategy for a view, from the number of updates that each of its tables has had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freshviews.catalog.definitions import ViewDef
from freshviews.engine.relations import Relations
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.view_state import ViewState
from freshviews.plan.costs.comparison import Comparison
from freshviews.plan.crown.tree_choice import NAMED, better_updates, may_be_measured
from freshviews.plan.planner import strategy_of
from freshviews.plan.strategy import Plan

ADVISED_FROM = 10_000
"""Least updates of a view's tables for advice to replan."""

ADVISED_GAIN = 2.0
"""Least ratio of the costs of updates, before and after replanning, for advice to replan."""

STRATEGY_GAIN = 1.1
"""Least ratio of steps for another strategy, because computed steps are not exact."""


def better_for(
    view: ViewDef, relations: Relations, gain: float, held: Mapping[str, tuple[int, int]] | None = None
) -> str | None:
    """The ``'freshviews.updates'`` for a join tree that costs less than ``1 / gain`` of the current one; None if there
    is none.

    ``held``: rows and bytes of the view's stores, by name, which give the sizes of its bags.
    """
    tables = _tables_of(view, relations)
    definitions = {name: one.definition for name, one in tables.items()}
    if len(tables) < len(view.inputs) or not may_be_measured(view, definitions):
        return None
    counts = {name: one.updates for name, one in tables.items()}
    if not any(counts.values()):
        return None
    if all(NAMED not in strategy_of(view, block, definitions).hints for block in view.blocks):
        return None
    rows = {name: size for name, (size, _) in (held or {}).items()}
    rows |= {name: one.stored.rows for name, one in tables.items() if one.stored is not None}
    return better_updates(view, definitions, counts, gain, rows)


def advised(view: ViewState, relations: Relations) -> str | None:
    """The ``'freshviews.updates'`` with which replanning at least halves the cost of a view's updates; else None."""
    if view.definition.internal or NAMED not in view.maintained.hints:
        return None
    if sum(table.updates for table in _tables_of(view.definition, relations).values()) < ADVISED_FROM:
        return None
    return better_for(view.definition, relations, ADVISED_GAIN, view.maintained.sizes())


def cheaper_strategy(
    plans: Sequence[Plan], comparisons: Sequence[Comparison], gain: float
) -> tuple[str, float, float] | None:
    """The strategy with the fewest steps for an update, by measured degrees, its steps, and those of the current plan.

    None if it takes ``1 / gain`` of the current steps or more, if steps are not measured, and for a view of several
    blocks.
    """
    if len(plans) != 1 or len(comparisons) != 1 or not comparisons[0].measured:
        return None
    steps = comparisons[0].steps
    now = steps.get(plans[0].strategy, 0.0)
    best = next(iter(steps), "")
    return (best, steps[best], now) if best and now > gain * steps[best] else None


def naming(view: str, strategy: str) -> str:
    """The statement that names the strategy of a view."""
    return f"ALTER VIEW `{view}` SET TBLPROPERTIES ('freshviews.strategy' = '{strategy}');"


def statement_of(view: str, updates: str) -> str:
    """The statement that names the updates of a view."""
    return f"ALTER VIEW `{view}` SET TBLPROPERTIES ('{NAMED}' = '{updates}');"


def _tables_of(view: ViewDef, relations: Relations) -> dict[str, TableState]:
    """The base tables among the inputs of a view, by name."""
    sources = {name: relations.get(name) for name in view.inputs}
    return {name: one for name, one in sources.items() if isinstance(one, TableState)}
