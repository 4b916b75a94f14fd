"""freshviews keeps SQL views exact while their base tables change.

::

    import freshviews as fv

    db = fv.Database()
    db.execute("CREATE TABLE items (part STRING, qty INT); "
               "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
    db.insert("items", [("bolt", 3), ("nut", 5)])
    db.view("by_part")["bolt"]        # ("bolt", 3)

The life of one update: ``Database.insert`` encodes rows to 64-bit codes (``engine.codes.encoding``). Stored base
tables apply and check them (``engine.tables.constraints``). Every view that reads them runs its compiled trigger and
passes its change on (``engine.commit.commit``). The log is synced (``store.log``), the version is committed, and
subscribers are called (``engine.commit.notices``).
"""

from freshviews.engine.change import Change, Subscription
from freshviews.engine.commit.batch import Batch
from freshviews.engine.database import Database
from freshviews.engine.durable.recovery import Recovery
from freshviews.engine.handles import Table, View
from freshviews.errors import (
    BatchError,
    CatalogError,
    EvaluationError,
    FreshviewsError,
    OutOfMemory,
    PlanError,
    RuleError,
    SqlError,
    StoreError,
    SubscriberError,
    UnsupportedSql,
)

__all__ = [
    "Batch",
    "BatchError",
    "CatalogError",
    "Change",
    "Database",
    "EvaluationError",
    "FreshviewsError",
    "OutOfMemory",
    "PlanError",
    "Recovery",
    "RuleError",
    "SqlError",
    "StoreError",
    "SubscriberError",
    "Subscription",
    "Table",
    "UnsupportedSql",
    "View",
]
