"""SQL text to tables, views and the queries they are made of.

::

    text ── parse ──> trees        every node knows its place          parse
         ── bind ───> SELECTs      names, types, clauses               query, from_clause, scope,
                                                                       aggregates, grouping_sets, star, ddl, refuse
                      expressions  SQL's scalar language, typed        expression, arithmetic, logic,
                                                                       functions, dates, cast, coerce
         ── block ──> queries      predicates placed, variables made,  join, variables, lifts, block
                                   sums as products of lifts
         ────────────> statements  TableDef, ViewDefs, drops           script, catalog

``parse_script`` is the way in. Nothing here looks at data.
"""

from freshviews.catalog.catalog import AlterView, Catalog, DropTable, DropView, NameProblem, Statement, ViewDefs
from freshviews.sql.statements.script import parse_script

__all__ = [
    "AlterView",
    "Catalog",
    "DropTable",
    "DropView",
    "NameProblem",
    "Statement",
    "ViewDefs",
    "blocks",
    "parse_script",
    "statements",
]
