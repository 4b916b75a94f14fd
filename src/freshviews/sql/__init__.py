"""Converts SQL text to tables, views and their queries. ``parse_script`` is the entry.

::

    text ── parse ──> trees        every node has its position in the text    text.parse, text.refuse
         ── bind ───> SELECTs      names, types and clauses resolved          names.scope, blocks.selects,
                                                                              blocks.joins, blocks.subqueries,
                                                                              blocks.aggregates, blocks.grouping_sets
                      expressions  scalar SQL, typed                          expressions
         ── block ──> queries      predicates sent to tables or joins, SUMs   blocks.building
                                   split into factors, join variables made
         ────────────> statements  TableDef, ViewDefs, PlainView, drops        statements.sql_script, statements.ddl
"""

from freshviews.catalog.catalog import (
    AlterTable,
    AlterView,
    Catalog,
    DropTable,
    DropView,
    Statement,
    ViewDefs,
)
from freshviews.catalog.definitions import PlainView
from freshviews.sql.expressions.functions import FUNCTION_NAMES
from freshviews.sql.statements.sql_script import parse_script

__all__ = [
    "FUNCTION_NAMES",
    "AlterTable",
    "AlterView",
    "Catalog",
    "DropTable",
    "DropView",
    "PlainView",
    "Statement",
    "ViewDefs",
    "blocks",
    "expressions",
    "names",
    "parse_script",
    "statements",
    "text",
]
