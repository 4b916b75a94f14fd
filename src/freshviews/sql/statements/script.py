"""From SQL text to statements: the pipeline of the front end.

::

    text --parse--> trees --bind--> SELECTs --block--> blocks of queries --> TableDef, ViewDefs, drops

Each statement is bound against the catalog as the statements before it leave it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from freshviews.catalog.catalog import (
    AlterView,
    Catalog,
    DropTable,
    DropView,
    NameProblem,
    Statement,
    ViewDefs,
    unknown,
)
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.sql.blocks.block import with_query_names
from freshviews.sql.blocks.limit import has_limit
from freshviews.sql.blocks.select import ViewBinder
from freshviews.sql.blocks.set_operation import blocks_of
from freshviews.sql.statements.ddl import (
    VIEW_PROPERTIES,
    check_column_name,
    check_name,
    properties_in,
    properties_of,
    table_of,
)
from freshviews.sql.text.parse import Node, SqlText, parse

_ACCEPTED = (
    "CREATE TABLE, CREATE MATERIALIZED VIEW, ALTER VIEW ... SET TBLPROPERTIES, DROP TABLE and DROP MATERIALIZED VIEW "
    "are accepted"
)


def parse_script(text: str, catalog: Catalog) -> list[Statement]:
    """Return the statements of a script, in order. A statement that IF [NOT] EXISTS makes void is left out.

    Raises SqlError, UnsupportedSql or NameProblem, each with line and column. Nothing is executed, and ``catalog`` does
    not change.
    """
    sql = SqlText(text)
    statements: list[Statement] = []
    for node in parse(sql):
        statement = _statement(sql, node, catalog)
        if statement is not None:
            statements.append(statement)
            catalog = catalog.after(statement)
    return statements


def _statement(text: SqlText, node: Node, catalog: Catalog) -> Statement | None:
    if isinstance(node, exp.Create) and node.kind in ("TABLE", "VIEW"):
        return _create(text, node, catalog)
    if isinstance(node, exp.Drop) and node.kind in ("TABLE", "VIEW"):
        return _drop(text, node, catalog)
    if isinstance(node, exp.Alter) and node.kind == "VIEW":
        return _alter(text, node, catalog)
    if isinstance(node, (exp.Insert, exp.Delete, exp.Update, exp.Merge)):
        what = type(node).__name__.upper()
        raise text.unsupported(node, what, "rows come and go by insert, delete and apply of the Database")
    if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
        raise text.unsupported(node, "a query by itself", "CREATE MATERIALIZED VIEW name AS SELECT ... is accepted")
    words = " ".join(text.of(node).split()[:2])
    raise text.unsupported(node, f"the statement {words}", _ACCEPTED)


def _create(text: SqlText, node: exp.Create, catalog: Catalog) -> TableDef | ViewDefs | None:
    if node.args.get("replace"):
        raise text.unsupported(node, "CREATE OR REPLACE", "DROP it, then CREATE it")
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    check_name(text, target)
    known = catalog.relation(target.name)
    if known is not None:
        if node.args.get("exists"):
            return None
        kind = "table" if isinstance(known, TableDef) else "view"
        raise NameProblem(f"{kind} {known.name} exists already; DROP it or write IF NOT EXISTS", *text.at(target))
    if node.kind == "TABLE":
        for part in _parts(node):
            if isinstance(part, exp.TemporaryProperty):
                raise text.unsupported(node, "CREATE TEMPORARY TABLE", "CREATE TABLE is accepted")
        return table_of(text, node, catalog)
    return _view(text, node, target, catalog)


def _parts(node: exp.Create) -> list[Node]:
    clause = node.args.get("properties")
    return list(clause.expressions) if clause is not None else []


def _view(text: SqlText, node: exp.Create, target: exp.Table, catalog: Catalog) -> ViewDefs:
    if not any(isinstance(part, exp.MaterializedProperty) for part in _parts(node)):
        raise text.unsupported(node, "CREATE VIEW", "CREATE MATERIALIZED VIEW is accepted")
    if node.expression is None:
        raise text.error(node, f"view {target.name} needs AS SELECT ...")
    properties = properties_of(text, node, VIEW_PROPERTIES)
    own = any(name.startswith("freshviews.") for name in properties)
    binder = ViewBinder(text, catalog, target.name, own and has_limit(node.expression))
    bound = binder.bind(node.expression)
    binder.check_types(bound, node.expression)
    columns = bound.columns
    if isinstance(node.this, exp.Schema):
        names = [one.name for one in node.this.expressions]
        if len(names) != len(columns):
            raise text.error(node.this, f"view {target.name} lists {len(names)} columns, its query {len(columns)}")
        columns = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
    seen: set[str] = set()
    for column in columns:
        check_column_name(text, node, column.name)
        if column.name.lower() in seen:
            raise text.error(
                node.expression,
                f"column {column.name} stands twice in view {target.name}; rename one with AS",
            )
        seen.add(column.name.lower())
    blocks = with_query_names(blocks_of(bound, binder), target.name)
    blocks = tuple(
        replace(b, outputs=tuple(replace(o, name=c.name) for o, c in zip(b.outputs, columns, strict=True)))
        for b in blocks
    )
    view = ViewDef(
        target.name,
        columns,
        blocks,
        properties.get("freshviews.strategy"),
        tuple(properties.items()),
        sql=text.whole(node).strip(),
        combined=bound.combined,
    )
    internal = binder.internal
    if own and blocks[0].limit is not None:
        # The view's properties also apply to the internal views whose rows it orders.
        how = partial(replace, strategy=view.strategy, properties=view.properties)
        ordered = set(view.inputs)
        for one in reversed(internal):
            if one.name in ordered and one.blocks[0].limit is not None:
                ordered = ordered - {one.name} | set(one.inputs)
        internal = [how(one) if one.name in ordered else one for one in internal]
    return ViewDefs((*internal, view))


def _alter(text: SqlText, node: exp.Alter, catalog: Catalog) -> AlterView:
    """Merge the given properties into the view's; the value '' removes a property."""
    actions = node.args.get("actions") or []
    clauses = [one for action in actions if isinstance(action, exp.AlterSet) for one in action.expressions]
    if len(actions) != 1 or len(clauses) != 1 or not isinstance(clauses[0], exp.Properties):
        raise text.unsupported(node, "this ALTER VIEW", "ALTER VIEW name SET TBLPROPERTIES (...) is accepted")
    view = catalog.view(node.this.name)
    if view is None or view.internal:
        raise NameProblem(unknown("view", node.this.name, catalog.names), *text.at(node.this))
    given = properties_in(text, clauses[0].expressions, VIEW_PROPERTIES)
    if view.blocks[0].limit is not None and any(name.startswith("freshviews.") for name in given):
        what = f"another freshviews property for view {view.name}, which has a LIMIT,"
        raise text.unsupported(node, what, "DROP the view and CREATE it with the property")
    properties = dict(view.properties) | given
    kept = tuple((name, value) for name, value in properties.items() if value)
    return AlterView(replace(view, strategy=dict(kept).get("freshviews.strategy"), properties=kept))


def _drop(text: SqlText, node: exp.Drop, catalog: Catalog) -> DropTable | DropView | None:
    targets = node.args.get("tables") or [node.this]
    if len(targets) != 1:
        raise text.unsupported(targets[1], "DROP of several", "one DROP per table or view")
    if node.args.get("cascade"):
        raise text.unsupported(node, "CASCADE", "DROP the views first")
    target = targets[0]
    kind = str(node.kind)
    view = catalog.view(target.name)
    table = catalog.table(target.name)
    wanted = table if kind == "TABLE" else view if view is not None and not view.internal else None
    if wanted is None:
        if node.args.get("exists"):
            return None
        other = view or table
        if other is not None:
            right = "DROP TABLE" if table is not None else "DROP MATERIALIZED VIEW"
            raise NameProblem(f"{other.name} is no {kind.lower()}; write {right}", *text.at(target))
        raise NameProblem(unknown(kind.lower(), target.name, catalog.names), *text.at(target))
    users = [name for name in catalog.users_of(wanted.name) if name.lower() != wanted.name.lower()]
    if users:
        raise NameProblem(f"{wanted.name} is still needed by {', '.join(users)}; DROP them first", *text.at(target))
    if isinstance(wanted, TableDef):
        return DropTable(wanted.name)
    return DropView(wanted.name, catalog.internal_views_of(wanted.name))
