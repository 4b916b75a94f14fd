"""SQL text to tables, views and the queries they are made of.

::

    text ── parse ──> trees        every node knows its place           parse.py
         ── bind ───> SELECTs      names, types, clauses                query.py, from_clause.py, scope.py,
                                                                        aggregates.py, ddl.py, refuse.py
                      expressions  SQL's scalar language, typed         expression.py, arithmetic.py, logic.py,
                                                                        functions.py, dates.py, cast.py, coerce.py
         ── block ──> queries      predicates placed, variables named,  join.py, variables.py, lifts.py, block.py
                                   sums as products of lifts
         ────────────> statements  TableDef, ViewDefs, drops            script.py, catalog.py

``parse_script`` is the way in. Nothing here looks at data.
"""

from freshviews.sql.catalog import Catalog, DropTable, DropView, NameProblem, Statement, ViewDefs
from freshviews.sql.script import parse_script

__all__ = ["Catalog", "DropTable", "DropView", "NameProblem", "Statement", "ViewDefs", "parse_script"]
