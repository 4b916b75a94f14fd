"""Converts SQL text to statements, by the stages of the front end.

::

    text --parse--> trees --bind--> SELECTs --block--> blocks of queries --> TableDef, ViewDefs, PlainView, drops
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from sqlglot import exp

from freshviews.catalog.catalog import (
    AlterTable,
    AlterView,
    Catalog,
    Comment,
    DropTable,
    DropView,
    Statement,
    ViewDefs,
    column_named,
    unknown,
)
from freshviews.catalog.clock import CLOCK
from freshviews.catalog.definitions import ColumnDef, PlainView, TableDef, ViewDef
from freshviews.catalog.functions import FunctionDef
from freshviews.catalog.known_functions import calling
from freshviews.catalog.nesting import TOO_DEEP, room
from freshviews.catalog.row_keys import KEY
from freshviews.catalog.timezone import UTC, SetTimeZone, in_time_zone
from freshviews.errors import NameProblem, hiding_secrets, short
from freshviews.expr.zones import is_time_zone
from freshviews.sql.blocks.bound import Bound, places_of_groups
from freshviews.sql.blocks.building.block_of_select import with_query_names
from freshviews.sql.blocks.building.narrowing import narrowed
from freshviews.sql.blocks.building.text_parts import with_parts
from freshviews.sql.blocks.limit import has_limit
from freshviews.sql.blocks.selects.query_expression import ViewBinder
from freshviews.sql.blocks.set_operation import blocks_of, typed, uniquely_named
from freshviews.sql.statements.ddl import (
    VIEW_PROPERTIES,
    altered_table,
    check_column_name,
    check_name,
    properties_in,
    properties_of,
    table_of,
)
from freshviews.sql.statements.functions import created_function, dropped_function
from freshviews.sql.text.clock import clock_calls, columns_in, read_clock
from freshviews.sql.text.fields import DATA, unknown_nodes
from freshviews.sql.text.parse import Node, SqlText, parse

_ACCEPTED = (
    "CREATE TABLE, CREATE [MATERIALIZED] VIEW, ALTER TABLE ... ADD COLUMNS, ALTER TABLE ... ALTER COLUMN ... TYPE, "
    "ALTER VIEW ... SET TBLPROPERTIES, COMMENT ON, CREATE FUNCTION, DROP TABLE, DROP [MATERIALIZED] VIEW and DROP "
    "FUNCTION are accepted"
)


@room()
@hiding_secrets
def parse_script(text: str, catalog: Catalog) -> list[Statement]:
    """The statements of a script, in order, without those that IF [NOT] EXISTS makes void.

    Raises SqlError, UnsupportedSql or NameProblem, each with line and column. Nothing is executed, and ``catalog`` does
    not change.
    """
    return statements_of(text, parse(SqlText(text)), catalog)


@room()
@hiding_secrets
def statements_of(text: str, nodes: Iterable[Node], catalog: Catalog) -> list[Statement]:
    """As ``parse_script``, of parsed statements of a script."""
    sql = SqlText(text)
    statements: list[Statement] = []
    for node in nodes:
        try:
            with calling(catalog.functions) as calls, in_time_zone(catalog.timezone):
                made = tuple(_calling(one, tuple(calls.called)) for one in _statements(sql, node, catalog))
        except RecursionError:
            raise sql.error(node, TOO_DEEP) from None
        if calls.called and any(isinstance(one, TableDef | AlterTable) and one != CLOCK for one in made):
            what = f"function {next(iter(calls.called))} in a DEFAULT"
            raise sql.unsupported(node, what, "write the value of the call as a constant")
        for one in unknown_nodes(node.walk()):
            kind = type(one).__name__.upper()
            raise sql.unsupported(one, f"{kind}, as in {sql.of(one)},", "leave this part out")
        for statement in (*made, *(_comments(node, made[-1]) if made else ())):
            statements.append(statement)
            catalog = catalog.after(statement)
    return statements


def _calling(statement: Statement, functions: tuple[str, ...]) -> Statement:
    """The statement with the functions of users that it calls."""
    if isinstance(statement, ViewDefs):
        return ViewDefs(tuple(replace(view, functions=functions) for view in statement.views))
    if isinstance(statement, PlainView):
        return replace(statement, functions=functions)
    if isinstance(statement, FunctionDef):
        return replace(statement, called=functions)
    return statement


def _statements(text: SqlText, node: Node, catalog: Catalog) -> tuple[Statement, ...]:
    """The statements for one SQL statement: none if IF [NOT] EXISTS makes it void, two for CREATE OR REPLACE."""
    if isinstance(node, exp.Create) and node.kind in ("TABLE", "VIEW"):
        return _create(text, node, catalog)
    if isinstance(node, exp.Drop) and node.kind in ("TABLE", "VIEW"):
        return _drop(text, node, catalog)
    if isinstance(node, exp.Create) and node.kind == "FUNCTION":
        return created_function(text, node, catalog)
    if isinstance(node, exp.Drop) and node.kind == "FUNCTION":
        return dropped_function(text, node, catalog)
    if isinstance(node, exp.Alter) and node.kind == "TABLE":
        return (altered_table(text, node, catalog),)
    if isinstance(node, exp.Alter) and node.kind == "VIEW":
        return (_alter(text, node, catalog),)
    if isinstance(node, exp.Set):
        return _time_zone(text, node, catalog)
    if isinstance(node, exp.Comment):
        return (_comment(text, node, catalog),)
    if isinstance(node, DATA):
        what = f"{type(node).__name__.upper().removesuffix('TABLE')} in a script of definitions"
        raise text.unsupported(
            node, what, "call Database.execute for a table; a streaming table gets its rows only from its source"
        )
    if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
        raise text.unsupported(node, "a query by itself", "write CREATE MATERIALIZED VIEW name AS SELECT ...")
    words = short(" ".join(text.of(node).split()[:2]))
    raise text.unsupported(node, f"the statement {words}", _ACCEPTED)


def _time_zone(text: SqlText, node: exp.Set, catalog: Catalog) -> tuple[Statement, ...]:
    """SET TIME ZONE; nothing if the catalog has this zone."""
    zone = node.expressions[0].name
    if not is_time_zone(zone):
        raise text.error(node, f"{zone!r} is not a time zone; a name such as 'Europe/Paris' or '+02:00' is accepted")
    if zone == catalog.timezone:
        return ()
    if catalog.names:
        what = f"the time zone is {catalog.timezone}, in which {catalog.names[0]} was created"
        raise text.error(node, f"{what}; SET TIME ZONE comes before tables and views")
    return (SetTimeZone(zone),)


def _create(text: SqlText, node: exp.Create, catalog: Catalog) -> tuple[Statement, ...]:
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    check_name(text, target)
    for part in _parts(node):
        if isinstance(part, exp.TemporaryProperty):
            raise text.unsupported(node, f"CREATE TEMPORARY {node.kind}", f"write CREATE {node.kind}")
    known = catalog.named(target.name)
    replaced: tuple[Statement, ...] = ()
    if node.args.get("replace"):
        if node.kind == "TABLE":
            raise text.unsupported(node, "CREATE OR REPLACE TABLE", "DROP it, then CREATE it")
        if node.args.get("exists"):
            raise text.error(node, "OR REPLACE and IF NOT EXISTS exclude each other; leave out one")
        if known is not None:
            replaced = (_dropped(text, target, known, catalog, "VIEW"),)
            catalog = catalog.after(replaced[0])
    elif known is not None:
        if node.args.get("exists"):
            return ()
        kind = "table" if isinstance(known, TableDef) else "view"
        advice = "DROP it or write IF NOT EXISTS" if node.kind == "TABLE" else "DROP it or write CREATE OR REPLACE"
        raise NameProblem(f"{kind} {known.name} exists already; {advice}", *text.at(target))
    if node.kind == "TABLE":
        return (table_of(text, node, catalog),)
    calls = [] if node.expression is None else clock_calls(node.expression, columns_in(catalog))
    if calls and catalog.timezone != UTC:
        what = f"{text.of(calls[0])} in the time zone {catalog.timezone}"
        raise text.unsupported(calls[0], what, "the clock is a TIMESTAMP in UTC: leave SET TIME ZONE out")
    if calls and catalog.table(CLOCK.name) is None:
        replaced = (*replaced, CLOCK)
        catalog = catalog.after(CLOCK)
    read_clock(calls)
    if any(isinstance(part, exp.MaterializedProperty) for part in _parts(node)):
        return (*replaced, _view(text, node, target, catalog))
    return (*replaced, _plain_view(text, node, target, catalog))


def _parts(node: exp.Create) -> list[Node]:
    clause = node.args.get("properties")
    return list(clause.expressions) if clause is not None else []


def _plain_view(text: SqlText, node: exp.Create, target: exp.Table, catalog: Catalog) -> PlainView:
    for name in properties_of(text, node, VIEW_PROPERTIES):
        if name.startswith("freshviews."):
            message = f"{name} is a property of maintained views; write CREATE MATERIALIZED VIEW, or leave it out"
            raise text.error(node, message)
    binder = ViewBinder(text, catalog, target.name)
    bound, columns = _bound(text, node, target, binder)
    blocks_of(bound, binder)
    tables = [table for name in binder.relations if (table := catalog.table(name)) is not None]
    widths = tuple((table.name, len(table.columns)) for table in tables)
    return PlainView(target.name, columns, text.whole(node).strip(), tuple(binder.relations), widths)


def _bound(
    text: SqlText, node: exp.Create, target: exp.Table, binder: ViewBinder
) -> tuple[Bound, tuple[ColumnDef, ...]]:
    """The query of a CREATE VIEW, and the columns of the view."""
    if node.expression is None:
        raise text.error(node, f"view {target.name} needs AS SELECT ...")
    bound = typed(binder.whole_query(node.expression), binder)
    columns = bound.columns
    if not columns:
        raise text.error(node.expression, f"view {target.name} has no columns; name at least one in its SELECT")
    if isinstance(node.this, exp.Schema):
        names = [one.name for one in node.this.expressions]
        if len(names) != len(columns):
            raise text.error(
                node.this, f"view {target.name} lists {len(names)} columns, but its query has {len(columns)}"
            )
        columns = tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
    seen: set[str] = set()
    for column in columns:
        check_column_name(text, node, column.name)
        if column.name.lower() in seen:
            raise text.error(
                node.expression,
                f"column {column.name} is given twice in view {target.name}; rename one with AS, or list the names of "
                f"all columns, as in {target.name} ({', '.join(c.name for c in uniquely_named(bound).columns)}) AS ...",
            )
        seen.add(column.name.lower())
    return bound, columns


def _view(text: SqlText, node: exp.Create, target: exp.Table, catalog: Catalog) -> ViewDefs:
    properties = properties_of(text, node, VIEW_PROPERTIES)
    key = properties.pop(KEY, None)
    own = any(name.startswith("freshviews.") for name in properties)
    binder = ViewBinder(text, catalog, target.name, own and node.expression is not None and has_limit(node.expression))
    bound, columns = _bound(text, node, target, binder)
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
        expanded=tuple(binder.plain),
        order=binder.order,
    )
    places = places_of_groups(bound)
    if places is not None:
        view = replace(view, group=tuple(columns[place].name for place in places))
    internal = binder.internal
    if own and binder.order is not None and binder.order.relation:
        # They also apply to the internal view that has the columns of ORDER BY.
        kept = tuple(one for one in view.properties if not one[0].startswith("freshviews."))
        wanted = binder.order.relation
        how = partial(replace, strategy=view.strategy, properties=view.properties)
        internal = [how(one) if one.name == wanted else one for one in internal]
        view = replace(view, strategy=None, properties=kept)
    if own and blocks[0].limit is not None:
        # The view's properties also apply to the internal views whose rows it orders.
        how = partial(replace, strategy=view.strategy, properties=view.properties)
        ordered = set(view.inputs)
        for one in reversed(internal):
            if one.name in ordered and one.blocks[0].limit is not None:
                ordered = ordered - {one.name} | set(one.inputs)
        internal = [how(one) if one.name in ordered else one for one in internal]
    if own and _has_texts(view, internal):
        # They also apply to the internal views that join the rows of the texts, and to the view of other aggregates.
        how = partial(replace, strategy=view.strategy, properties=view.properties)
        joining = set(view.inputs)
        for one in internal:
            gatherings = [block.gathering for block in one.blocks if block.gathering is not None]
            if one.name in joining and any(gathering.listed for gathering in gatherings):
                joining = joining - {one.name} | set(one.inputs)
        internal = [how(one) if one.name in joining else one for one in internal]
    if key is not None:
        view = replace(view, properties=(*view.properties, (KEY, _key_of(text, node, key, view))))
    return ViewDefs(with_parts(narrowed((*internal, view))))


def _key_of(text: SqlText, node: Node, value: str, view: ViewDef) -> str:
    """The value of ``'freshviews.key'`` in the spelling of the view's columns."""
    names = []
    for given in value.split(","):
        column = column_named(view.columns, given.strip())
        if column is None or column.name in names:
            reason = "is not a column" if column is None else "is given twice"
            listed = ", ".join(one.name for one in view.columns)
            raise text.error(node, f"{KEY} of view {view.name}: {given.strip()!r} {reason}; the columns are {listed}")
        names.append(column.name)
    return ", ".join(names)


def _has_texts(view: ViewDef, internal: Iterable[ViewDef]) -> bool:
    """True if a view reads an internal view of texts by group."""
    read = (block for one in internal if one.name in view.inputs for block in one.blocks)
    return any(block.gathering is not None for block in read)


def _alter(text: SqlText, node: exp.Alter, catalog: Catalog) -> AlterView:
    """Merge the given properties into the view's; the value '' removes a property."""
    actions = node.args.get("actions") or []
    clauses = [one for action in actions if isinstance(action, exp.AlterSet) for one in action.expressions]
    if len(actions) != 1 or len(clauses) != 1 or not isinstance(clauses[0], exp.Properties):
        raise text.unsupported(node, "this ALTER VIEW", "write ALTER VIEW name SET TBLPROPERTIES (...)")
    plain = catalog.plain_view(node.this.name)
    if plain is not None:
        message = f"view {plain.name} is not materialised, so it has no properties; CREATE OR REPLACE MATERIALIZED VIEW"
        raise text.error(node.this, message)
    view = catalog.view(node.this.name)
    if view is None or view.internal:
        raise NameProblem(unknown("view", node.this.name, catalog.names_of("VIEW")), *text.at(node.this))
    given = properties_in(text, clauses[0].expressions, VIEW_PROPERTIES)
    has = "an ORDER BY of columns that it does not show" if view.order is not None and view.order.relation else ""
    if _has_texts(view, catalog.views.values()):
        has = "a text of the rows of each group"
    if view.blocks and view.blocks[0].limit is not None:
        has = "a LIMIT"
    if given.get(KEY):
        given[KEY] = _key_of(text, node, given[KEY], view)
    if has and any(name.startswith("freshviews.") and name != KEY for name in given):
        what = f"another freshviews property for view {view.name}, which has {has},"
        raise text.unsupported(node, what, "DROP the view and CREATE it with the property")
    properties = dict(view.properties) | given
    kept = tuple((name, value) for name, value in properties.items() if value)
    return AlterView(replace(view, strategy=dict(kept).get("freshviews.strategy"), properties=kept))


def _comment(text: SqlText, node: exp.Comment, catalog: Catalog) -> Comment:
    """COMMENT ON. Raises NameProblem if what it names is not there."""
    kind, target = str(node.args["kind"]), node.this
    is_column = kind == "COLUMN"
    name = target.table if is_column else target.name
    if not name or target.args.get("db") is not None:
        raise text.error(target, "write COMMENT ON COLUMN table.column, or COMMENT ON TABLE or VIEW with one name")
    known = catalog.named(name)
    if known is None or (isinstance(known, ViewDef) and known.internal):
        names = catalog.names if is_column else catalog.names_of(kind)
        raise NameProblem(unknown("table or view" if is_column else kind.lower(), name, names), *text.at(target))
    if not is_column and isinstance(known, TableDef) != (kind == "TABLE"):
        right = "TABLE" if isinstance(known, TableDef) else "VIEW"
        raise NameProblem(f"{known.name} is not a {kind.lower()}; write COMMENT ON {right}", *text.at(target))
    said = None if isinstance(node.expression, exp.Null) else node.expression.name
    if not is_column:
        return Comment(known.name, None, said)
    column = column_named(known.columns, target.name)
    if column is None:
        known_names = (one.name for one in known.columns)
        raise text.error(target, unknown("column", target.name, known_names, known.name))
    return Comment(known.name, column.name, said)


def _comments(node: Node, made: Statement) -> Iterator[Comment]:
    """The comments inside CREATE and ALTER TABLE."""
    if not isinstance(made, TableDef | AlterTable | ViewDefs | PlainView):
        return
    name = made.view.name if isinstance(made, ViewDefs) else made.name
    for one in node.find_all(exp.SchemaCommentProperty):
        yield Comment(name, None, one.this.name)
    for column in node.find_all(exp.ColumnDef):
        for constraint in column.constraints:
            if isinstance(constraint.kind, exp.CommentColumnConstraint):
                yield Comment(name, column.name, constraint.kind.this.name)


def _drop(text: SqlText, node: exp.Drop, catalog: Catalog) -> tuple[Statement, ...]:
    targets = node.args.get("tables") or [node.this]
    if len(targets) != 1:
        raise text.unsupported(targets[1], "DROP of several names", "write one DROP per table or view")
    if node.args.get("cascade"):
        raise text.unsupported(node, "CASCADE", "DROP the views first")
    target = targets[0]
    kind = str(node.kind)
    known = catalog.named(target.name)
    if known is None or (isinstance(known, ViewDef) and known.internal):
        if node.args.get("exists"):
            return ()
        raise NameProblem(unknown(kind.lower(), target.name, catalog.names_of(kind)), *text.at(target))
    if isinstance(known, PlainView) and node.args.get("materialized"):
        raise NameProblem(f"{known.name} is not a materialized view; write DROP VIEW", *text.at(target))
    if isinstance(known, TableDef) != (kind == "TABLE") and node.args.get("exists"):
        return ()
    return (_dropped(text, target, known, catalog, kind),)


def _dropped(
    text: SqlText, target: Node, known: TableDef | ViewDef | PlainView, catalog: Catalog, kind: str
) -> DropTable | DropView:
    """The statement that drops a named relation. Raises NameProblem if it is not of this kind, or is still needed."""
    if isinstance(known, TableDef) != (kind == "TABLE"):
        right = {TableDef: "TABLE", ViewDef: "MATERIALIZED VIEW", PlainView: "VIEW"}[type(known)]
        raise NameProblem(f"{known.name} is not a {kind.lower()}; write DROP {right}", *text.at(target))
    users = [name for name in catalog.users_of(known.name) if name.lower() != known.name.lower()]
    if users:
        raise NameProblem(f"{known.name} is still needed by {', '.join(users)}; DROP them first", *text.at(target))
    if isinstance(known, TableDef):
        return DropTable(known.name)
    return DropView(known.name, catalog.internal_views_of(known.name))
