"""A small database for the engine's tests, and all of its readable state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import freshviews as fv

SCHEMA = """
CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT, day DATE, total DECIMAL(12, 2));
CREATE TABLE items (o_id BIGINT, part STRING, qty INT NOT NULL, FOREIGN KEY (o_id) REFERENCES orders (o_id));
CREATE MATERIALIZED VIEW by_part AS
  SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY part;
CREATE MATERIALIZED VIEW bought AS SELECT cust, part FROM orders JOIN items USING (o_id);
CREATE MATERIALIZED VIEW inverse AS SELECT 100 / qty AS share, COUNT(*) AS n FROM by_part GROUP BY 100 / qty;
"""


def shop(**options: Any) -> fv.Database:
    """The schema with a few rows: version 2."""
    db = fv.Database(**options)
    db.execute(SCHEMA)
    fill(db)
    return db


def fill(db: fv.Database) -> None:
    db.insert("orders", [(1, 7, None, None), (2, 8, None, None)])
    db.insert("items", [(1, "bolt", 3), (1, "bolt", 3), (2, "nut", 5), (None, "pin", 1)])


def seen(db: fv.Database) -> dict[str, Any]:
    """Every stored row of every table and view, and the version."""
    contents: dict[str, Any] = {name: Counter(db.view(name)) for name in db.views}
    for name in db.tables:
        if db.stats()["tables"][name]["rows"] is not None:
            contents[name] = Counter(db.table(name))
    contents["version"] = db.version
    return contents
