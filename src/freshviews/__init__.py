"""freshviews keeps SQL views exact while their base tables change.

::

    import freshviews as fv

    db = fv.Database()
    db.execute("CREATE TABLE items (part STRING, qty INT); "
               "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
    db.insert("items", [("bolt", 3), ("nut", 5)])
    db.view("by_part")["bolt"]        # ("bolt", 3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from freshviews.kernel.memory.collection import no_collection

if TYPE_CHECKING:
    from freshviews.asking.answer import Answer
    from freshviews.display.explanation import Explanation
    from freshviews.display.statistics import Stats
    from freshviews.engine.change import Change, Subscription
    from freshviews.engine.commit.batch import Batch
    from freshviews.engine.commit.changes import Changes
    from freshviews.engine.commit.data.counts import RowCounts
    from freshviews.engine.database import Database
    from freshviews.engine.durable.recovery import Recovery
    from freshviews.engine.handles import Table, View
    from freshviews.engine.own_functions import register_aggregate, register_function
    from freshviews.engine.views.own_rings import register_ring
    from freshviews.errors import (
        ArgumentError,
        BatchError,
        CatalogError,
        EvaluationError,
        FreshviewsError,
        InterruptedAfterCommit,
        NoDuckDB,
        OutOfMemory,
        PlanError,
        QueueFull,
        RingDefinitionError,
        RuleError,
        SqlError,
        StoreError,
        SubscriberError,
        UnsupportedSql,
    )
    from freshviews.progress import Progress
    from freshviews.ring import UserRing

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "ArgumentError",
    "Batch",
    "BatchError",
    "CatalogError",
    "Change",
    "Changes",
    "Database",
    "EvaluationError",
    "Explanation",
    "FreshviewsError",
    "InterruptedAfterCommit",
    "NoDuckDB",
    "OutOfMemory",
    "PlanError",
    "Progress",
    "QueueFull",
    "Recovery",
    "RingDefinitionError",
    "RowCounts",
    "RuleError",
    "SqlError",
    "Stats",
    "StoreError",
    "SubscriberError",
    "Subscription",
    "Table",
    "UnsupportedSql",
    "UserRing",
    "View",
    "register_aggregate",
    "register_function",
    "register_ring",
]

_HOMES = {
    "Answer": "asking.answer",
    "Batch": "engine.commit.batch",
    "Change": "engine.change",
    "Changes": "engine.commit.changes",
    "Database": "engine.database",
    "Explanation": "display.explanation",
    "Progress": "progress",
    "Recovery": "engine.durable.recovery",
    "RowCounts": "engine.commit.data.counts",
    "Stats": "display.statistics",
    "Subscription": "engine.change",
    "Table": "engine.handles",
    "UserRing": "ring",
    "View": "engine.handles",
    "register_aggregate": "engine.own_functions",
    "register_function": "engine.own_functions",
    "register_ring": "engine.views.own_rings",
}

_PACKAGES = ("dbapi", "learn", "sql", "stream")
"""Packages that are imported where ``freshviews.name`` first names them."""


def __getattr__(name: str) -> Any:
    """A name of the package, imported where it is first used: the compiler alone takes longer than most programs that
    only ask for a version or an error class."""
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with no_collection():
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Complete names of tables and views; IPython calls it for ``%load_ext freshviews``."""
    from freshviews.display.completion import complete_names

    complete_names(shell)
