"""Which join tree would be cheaper for a view, by the updates that its tables have had.

Only views under ``crown`` over stored tables that declare no updates are considered.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.catalog.definitions import ViewDef
from freshviews.engine.relations import Relations
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.view_state import ViewState
from freshviews.plan.crown.tree_choice import NAMED, better_updates, may_be_measured
from freshviews.plan.planner import strategy_of

ADVISED_FROM = 10_000
"""Updates of a view's tables from which on ``advice`` says whether to replan."""

ADVISED_GAIN = 2.0
"""Least ratio of the costs of updates, before and after replanning, that is advised."""


def better_for(
    view: ViewDef, relations: Relations, gain: float, held: Mapping[str, tuple[int, int]] | None = None
) -> str | None:
    """The ``'freshviews.updates'`` by which the join tree of a view costs less than ``1 / gain`` of the tree it has
    now; None where there is none.

    ``held``: rows and bytes of what the view stores, by name. They give the numbers of rows of its bags.
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
    """The ``'freshviews.updates'`` to replan a view by, where that at least halves the cost of its updates."""
    if view.definition.internal or NAMED not in view.maintained.hints:
        return None
    if sum(table.updates for table in _tables_of(view.definition, relations).values()) < ADVISED_FROM:
        return None
    return better_for(view.definition, relations, ADVISED_GAIN, view.maintained.sizes())


def statement_of(view: str, updates: str) -> str:
    """The statement that names the updates of a view."""
    return f"ALTER VIEW `{view}` SET TBLPROPERTIES ('{NAMED}' = '{updates}');"


def _tables_of(view: ViewDef, relations: Relations) -> dict[str, TableState]:
    """The base tables among the inputs of a view, by name."""
    sources = {name: relations.get(name) for name in view.inputs}
    return {name: one for name, one in sources.items() if isinstance(one, TableState)}
