"""Binds statements that change rows: INSERT, DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from freshviews.catalog.catalog import Catalog, column_named, same, unknown
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.errors import NameProblem
from freshviews.expr.nodes import Expr
from freshviews.records import dataclass
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import VOID, Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import Binder, is_subquery_value
from freshviews.sql.names.scope import Scope, Source, table_scope
from freshviews.sql.statements.parameters import Given, given, literal_of, text_literal
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import STRING, SqlType

Cell = Given | Expr | None
"""A value of VALUES: a parameter, a constant, or None for DEFAULT."""

EXCLUDED = "excluded"
_MOST_VALUES = "write INSERT INTO t VALUES (1, 'a'), (2, DEFAULT)"


@dataclass(frozen=True)
class Clause:
    """A WHEN of MERGE, which decides what becomes of a row.

    ``kind``: ``matched``, ``absent`` (a row of the source without a row of the table) or ``alone`` (the reverse).
    ``values``: by column of the table its new value, None for DEFAULT; no mapping: the row is deleted.
    """

    kind: str
    condition: Expr | None
    values: Mapping[str, Expr | None] | None


@dataclass(frozen=True)
class Insert:
    """``columns``: those that are given, in the order of the values. ``rows`` or ``query`` has the values.

    ``key``: the columns of ON CONFLICT, or empty.
    """

    table: TableDef
    columns: tuple[ColumnDef, ...]
    rows: tuple[tuple[Cell, ...], ...] | None
    query: Node | None
    by_name: bool = False
    key: tuple[str, ...] = ()
    merge: Merge | None = None


@dataclass(frozen=True)
class Change:
    """UPDATE, DELETE (``values`` None), or TRUNCATE (no condition either). ``query``: if a subquery is inside, a SELECT
    of the old rows, then of the new ``values`` in their order."""

    table: TableDef
    target: Source
    condition: Expr | None = None
    values: Mapping[str, Expr | None] | None = None
    query: Node | None = None


@dataclass(frozen=True)
class Merge:
    """``on`` holds for a row of ``target`` and a row of ``source``."""

    table: TableDef
    target: Source
    source: Source
    on: Expr
    clauses: tuple[Clause, ...] = field(default=())


@dataclass(frozen=True)
class _Reading:
    """Binds the expressions of one statement."""

    text: SqlText
    scope: Scope
    clause: str

    def value(self, node: Node) -> Expr:
        return self._binder().bind(node)

    def condition(self, node: Node) -> Expr:
        return self._binder().condition(node)

    def _binder(self) -> Binder:
        return Binder(self.text, self._column, self.clause, group=lambda node: literal_of(self.text, node))

    def _column(self, node: exp.Column) -> Expr:
        return self.scope.resolve(self.text, node)


def target_of(text: SqlText, node: Node, catalog: Catalog) -> TableDef:
    """The table that a statement changes. Raises NameProblem, also for a view."""
    target = node.expressions[0] if isinstance(node, exp.TruncateTable) else node.this
    target = target.this if isinstance(target, exp.Schema) else target
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        raise text.error(node, f"{_word(node)} needs the name of a table")
    if target.args.get("db") is not None:
        raise text.error(target, f"{text.of(target)}: write the name of the table or view without a schema")
    if target.args.get("joins"):
        raise text.unsupported(target, f"a join in {_word(node)}", "write MERGE INTO t USING s ON ...")
    table = catalog.table(target.name)
    if table is not None:
        return table
    known = catalog.named(target.name)
    if known is not None and "#" not in target.name:
        read = [one.name for one in catalog.tables.values() if one.name in getattr(known, "inputs", ())]
        what = f"change the tables of the view: {', '.join(read)}" if read else "change the tables of the view"
        raise NameProblem(f"{known.name} is a view and cannot be changed itself; {what}", *text.at(target))
    raise NameProblem(unknown("table", target.name, catalog.names_of("TABLE")), *text.at(target))


def insert_of(text: SqlText, node: exp.Insert, table: TableDef) -> Insert:
    """The INSERT of a tree. Raises SqlError with the place."""
    columns = table.columns
    if isinstance(node.this, exp.Schema):
        columns = tuple(_columns(text, table, node.this.expressions))
    query, by_name = node.expression, bool(node.args.get("by_name"))
    if isinstance(node.args.get("source"), exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node.args["source"].copy()))
    if by_name and isinstance(node.this, exp.Schema):
        raise text.error(node.this, "INSERT has a list of columns and BY NAME; leave out the list or BY NAME")
    rows: tuple[tuple[Cell, ...], ...] | None = None
    if node.args.get("default"):
        rows, query, columns = ((None,) * len(columns),), None, table.columns
    elif isinstance(query, exp.Values) and not by_name:
        if query.args.get("alias") is not None:
            raise text.error(query, f"VALUES of INSERT cannot have an alias; {_MOST_VALUES}")
        rows, query = tuple(_row(text, table, columns, one) for one in query.expressions), None
    elif not isinstance(query, exp.Query | exp.Values):
        raise text.error(node, f"INSERT needs VALUES or a SELECT; {_MOST_VALUES}")
    if query is not None and node.args.get("with_") is not None:
        if query.args.get("with_") is not None:
            raise text.error(node, "INSERT has two WITH, before INSERT and in the query; write only one WITH")
        query = query.copy()
        query.set("with_", node.args["with_"].copy())
    made = Insert(table, columns, rows, query, by_name)
    conflict = node.args.get("conflict")
    return made if conflict is None else _with_conflict(text, made, conflict)


def change_of(text: SqlText, node: Node, table: TableDef) -> Change:
    """The UPDATE, DELETE or TRUNCATE of a tree. Raises SqlError with the place."""
    if isinstance(node, exp.TruncateTable):
        if len(node.expressions) > 1:
            raise text.unsupported(node.expressions[1], "TRUNCATE of several tables", "write one TRUNCATE per table")
        return Change(table, Source(table.name, table.name, table.columns))
    alias = node.this.alias or table.name
    source = Source(alias, table.name, table.columns)
    if node.args.get("from_") is not None:
        raise text.unsupported(node.args["from_"], "FROM in UPDATE", "write MERGE INTO t USING s ON ...")
    where = node.args.get("where")
    sets = _assignments(text, table, node.expressions, (alias,)) if isinstance(node, exp.Update) else None
    parts = [*(value for value in (sets or {}).values() if value is not None), *([where.this] if where else [])]
    if any(_has_query(one) for one in parts):
        return Change(table, source, None, None if sets is None else dict.fromkeys(sets), _asking(node, source, sets))
    reading = _Reading(text, table_scope(source), "WHERE")
    condition = reading.condition(where.this) if where is not None else None
    values = None if sets is None else _assigned(reading, table, sets, "SET")
    return Change(table, source, condition, values)


def source_of(text: SqlText, node: exp.Merge) -> Node:
    """The SELECT of the rows of a MERGE's source."""
    using = node.args["using"]
    if isinstance(using, exp.Subquery) and not using.args.get("joins"):
        query: Node = using.this
        return query
    if not isinstance(using, exp.Table) or not isinstance(using.this, exp.Identifier) or using.args.get("joins"):
        accepted = "a table, a view or a query in parentheses is accepted"
        raise text.unsupported(using, f"USING {text.of(using)}", accepted)
    named = using.copy()
    named.set("alias", None)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=named))


def merge_of(text: SqlText, node: exp.Merge, table: TableDef, columns: Sequence[ColumnDef]) -> Merge:
    """The MERGE of a tree, whose source has these columns. Raises SqlError with the place."""
    using = node.args["using"]
    names = [one.name for one in alias.columns] if (alias := using.args.get("alias")) is not None else []
    if names:
        if len(names) != len(columns):
            raise text.error(using, f"{using.alias} lists {len(names)} columns, but its query has {len(columns)}")
        columns = [ColumnDef(name, one.type, one.nullable) for name, one in zip(names, columns, strict=True)]
    target = Source(node.this.alias or table.name, table.name, table.columns)
    source = Source(using.alias or using.name, using.name, tuple(columns))
    if same(target.alias, source.alias):
        raise text.error(using, f"table and source are both named {target.alias}; rename the source with AS")
    here, there = table_scope(target), table_scope(source)
    both = here.beside(there)
    for part in (node.args["on"], *node.args["whens"].expressions):
        found = next((one for one in part.walk() if is_subquery_value(one)), None)
        if found is not None:
            raise text.unsupported(found, "a subquery in ON or WHEN of MERGE", "put it into the query after USING")
    on = _Reading(text, both, "ON").condition(node.args["on"])
    clauses = [_clause(text, table, source, when, here, there, both) for when in node.args["whens"].expressions]
    for kind in ("matched", "absent", "alone"):
        of_kind = [(when, c) for when, c in zip(node.args["whens"].expressions, clauses, strict=True) if c.kind == kind]
        for when, clause in of_kind[:-1]:
            if clause.condition is None:
                raise text.error(
                    when,
                    "a WHEN without a condition must be the last WHEN of its kind; add AND condition, or move this "
                    "WHEN to the end",
                )
    return Merge(table, target, source, on, tuple(clauses))


def _clause(
    text: SqlText, table: TableDef, source: Source, when: exp.When, here: Scope, there: Scope, both: Scope
) -> Clause:
    matched, then = bool(when.args.get("matched")), when.args["then"]
    kind = "matched" if matched else "alone" if when.args.get("source") else "absent"
    reading = _Reading(text, {"matched": both, "alone": here, "absent": there}[kind], "WHEN")
    asked = when.args.get("condition")
    condition = None if asked is None else reading.condition(asked)
    if isinstance(then, exp.Insert) != (kind == "absent"):
        accepted = "INSERT" if kind == "absent" else "UPDATE SET or DELETE"
        raise text.error(then if isinstance(then, exp.Insert | exp.Update) else when, f"write {accepted} in this WHEN")
    if isinstance(then, exp.Insert):
        return Clause(kind, condition, _inserted(text, table, source, then, reading))
    if not isinstance(then, exp.Update):
        return Clause(kind, condition, None)
    if any(isinstance(one, exp.Star) for one in then.expressions):
        if kind == "alone" or len(then.expressions) > 1:
            reason = "has no source row in WHEN NOT MATCHED BY SOURCE" if kind == "alone" else "is the only assignment"
            raise text.error(then, f"SET * {reason}; write SET column = value for each column")
        return Clause(kind, condition, _of_source(text, table, source, then))
    aliases = tuple(dict.fromkeys(entry.alias for entry in here.entries))
    sets = _assignments(text, table, then.expressions, aliases)
    return Clause(kind, condition, _assigned(reading, table, sets, "SET"))


def _inserted(
    text: SqlText, table: TableDef, source: Source, then: exp.Insert, reading: _Reading
) -> Mapping[str, Expr | None]:
    if isinstance(then.this, exp.Star):
        return _of_source(text, table, source, then)
    columns = _columns(text, table, then.this.expressions)
    values = then.expression.expressions
    if len(values) != len(columns):
        raise text.error(then.expression, f"{_count(len(values), 'value')} for {_count(len(columns), 'column')}")
    sets = {c.name: None if _is_default(v) else v for c, v in zip(columns, values, strict=True)}
    given = _assigned(reading, table, sets, "INSERT")
    return {column.name: given.get(column.name) for column in table.columns}


def _of_source(text: SqlText, table: TableDef, source: Source, node: Node) -> Mapping[str, Expr | None]:
    """The values of ``*``: for each column that of the source with its name."""
    made: dict[str, Expr | None] = {}
    for column in table.columns:
        found = column_named(source.columns, column.name)
        if found is None:
            names = ", ".join(one.name for one in source.columns)
            raise text.error(
                node, f"* needs all columns of {table.name}; the source has no {column.name}, only {names}"
            )
        made[column.name] = assigned(text, node, source.column(found), column, table.name)
    return made


def _assignments(
    text: SqlText, table: TableDef, nodes: Iterable[Node], aliases: Sequence[str]
) -> dict[str, Node | None]:
    """The values of SET by column of the table, None for DEFAULT."""
    made: dict[str, Node | None] = {}
    for one in nodes:
        if not isinstance(one, exp.EQ) or not isinstance(one.this, exp.Column):
            raise text.error(one, "SET takes column = value, as in SET a = 1, b = DEFAULT")
        if one.this.table and not any(same(one.this.table, alias) for alias in aliases):
            raise text.error(one.this, f"SET changes columns of {aliases[0]}, not of {one.this.table}")
        (column,) = _columns(text, table, [one.this])
        if column.name in made:
            raise text.error(one.this, f"column {column.name} is set twice")
        made[column.name] = None if _is_default(one.expression) else one.expression
    return made


def _assigned(
    reading: _Reading, table: TableDef, sets: Mapping[str, Node | None], clause: str
) -> dict[str, Expr | None]:
    made: dict[str, Expr | None] = {}
    for name, node in sets.items():
        column = column_named(table.columns, name)
        assert column is not None
        found = given(node) if node is not None else None
        if node is None:
            made[name] = None
        elif found is not None and isinstance(found.value, str):
            # A parameter's text is read as `insert` reads it.
            made[name] = reading_of(reading.text, node, found.value, column, table.name)
        else:
            value = _Reading(reading.text, reading.scope, clause).value(node)
            made[name] = assigned(reading.text, node, value, column, table.name)
    return made


def reading_of(text: SqlText, node: Node, value: str, column: ColumnDef, table: str) -> Expr:
    """A text for a column: of a DATE or TIMESTAMP it is read."""
    try:
        literal = text_literal(value)
        if column.type.name in ("DATE", "TIMESTAMP"):
            return cast(literal, column.type)
    except Fault as fault:
        raise text.error(node, f"column {table}.{column.name}: {fault}") from None
    return assigned(text, node, literal, column, table)


def assigned(text: SqlText, node: Node, value: Expr, column: ColumnDef, table: str) -> Expr:
    """A value as one of a column. Raises SqlError if Spark's store assignment refuses it.

    A value is cast to the type of its column, as in Spark's ANSI store assignment: a number to a number, a date to a
    timestamp or the reverse, any type to STRING. All other pairs of types are refused.
    """
    of, to = value.type, column.type
    what = f"column {table}.{column.name}"
    if not is_assignable(of, to):
        written = text.of(node)
        raise text.error(node, f"{what} is {to} and does not accept {of}; write CAST({written} AS {to})")
    try:
        return cast(value, to)
    except Fault as fault:
        raise text.error(node, f"{what}: {text.of(node)}: {fault}") from None


def is_assignable(of: SqlType, to: SqlType) -> bool:
    """True if Spark assigns values of one type to columns of another."""
    times = ("DATE", "TIMESTAMP")
    return (
        of in (to, VOID)
        or to == STRING
        or (of.is_numeric and to.is_numeric)
        or (of.name in times and to.name in times)
        or (of.is_interval and to.is_interval and of.is_months == to.is_months)
    )


def _with_conflict(text: SqlText, made: Insert, node: exp.OnConflict) -> Insert:
    """INSERT ... ON CONFLICT, which is a MERGE by a key."""
    table = made.table
    if table.trusted:
        message = f"table {table.name} is trusted: no key is checked, so there are no conflicts; leave out ON CONFLICT"
        raise text.error(node, message)
    named = [one.this if isinstance(one, exp.Ordered) else one for one in node.args.get("conflict_keys") or []]
    key = tuple(column.name for column in _columns(text, table, named))
    keys = " and ".join(f"({', '.join(one)})" for one in table.keys)
    if not key and len(table.keys) == 1:
        key = table.keys[0]
    key = next((one for one in table.keys if set(one) == set(key)), ())
    if not key:
        has = f"the keys of {table.name} are {keys}" if keys else f"table {table.name} has no PRIMARY KEY"
        raise text.error(node, f"ON CONFLICT (columns) must name a key; {has}")
    target = Source(table.name, table.name, table.columns)
    source = Source(EXCLUDED, table.name, table.columns)
    if same(table.name, EXCLUDED):
        target = Source(f"{table.name}#", table.name, table.columns)
    here, there = table_scope(target), table_scope(source)
    scope = Scope((*here.entries, *there.entries), here.visible)
    by_name = {column.name: column for column in table.columns}
    on = logic.all_of(
        [logic.compare("=", target.column(by_name[name]), source.column(by_name[name])) for name in key]
    )
    clauses = [Clause("absent", None, {column.name: source.column(column) for column in table.columns})]
    if "UPDATE" in str(node.args["action"].name).upper():
        for one in (*node.expressions, *([node.args["where"]] if node.args.get("where") else [])):
            found = next((part for part in one.walk() if is_subquery_value(part)), None)
            if found is not None:
                raise text.unsupported(found, "a subquery in ON CONFLICT", "write MERGE INTO t USING (SELECT ...)")
        reading = _Reading(text, scope, "WHERE")
        where = node.args.get("where")
        condition = None if where is None else reading.condition(where.this)
        sets = _assignments(text, table, node.expressions, (table.name,))
        clauses.append(Clause("matched", condition, _assigned(reading, table, sets, "SET")))
    merge = Merge(table, target, source, on, tuple(clauses))
    return Insert(table, made.columns, made.rows, made.query, made.by_name, key, merge)


def _row(text: SqlText, table: TableDef, columns: Sequence[ColumnDef], node: Node) -> tuple[Cell, ...]:
    cells = node.expressions if isinstance(node, exp.Tuple) else [node]
    if len(cells) != len(columns):
        names = ", ".join(column.name for column in columns)
        wanted = f"{_count(len(columns), 'column')} of {table.name}: {names}"
        raise text.error(node, f"{_count(len(cells), 'value')} for {wanted}")
    return tuple(_cell(text, table, column, one) for column, one in zip(columns, cells, strict=True))


def _cell(text: SqlText, table: TableDef, column: ColumnDef, node: Node) -> Cell:
    if _is_default(node):
        return None
    found = given(node)
    if found is not None:
        return found

    def refused(named: exp.Column) -> Expr:
        raise text.error(
            named,
            f"{text.of(named)} is a column, and VALUES accepts only constants; write INSERT INTO t SELECT ... for "
            "columns",
        )

    binder = Binder(text, refused, "VALUES", group=lambda one: literal_of(text, one))
    return assigned(text, node, binder.bind(node), column, table.name)


def _columns(text: SqlText, table: TableDef, nodes: Iterable[Node]) -> list[ColumnDef]:
    found: list[ColumnDef] = []
    for node in nodes:
        column = column_named(table.columns, node.name)
        if column is None:
            raise text.error(node, unknown("column", node.name, (c.name for c in table.columns), table.name))
        if column in found:
            raise text.error(node, f"column {column.name} is given twice")
        found.append(column)
    return found


def _has_query(node: Node) -> bool:
    return any(is_subquery_value(one) for one in node.walk())


def _asking(node: Node, source: Source, sets: Mapping[str, Node | None] | None) -> exp.Select:
    """The SELECT of the old rows and of new values, for an UPDATE or DELETE with subqueries."""
    alias = exp.to_identifier(source.alias, quoted=True)
    old = [exp.Column(this=exp.to_identifier(c.name, quoted=True), table=alias.copy()) for c in source.columns]
    columns: list[Node] = [exp.alias_(one, f"old{i}", quoted=True) for i, one in enumerate(old)]
    values = [] if sets is None else [exp.Null() if value is None else value.copy() for value in sets.values()]
    columns += [exp.alias_(exp.Paren(this=value), f"new{i}", quoted=True) for i, value in enumerate(values)]
    made = exp.Select(expressions=columns, from_=exp.From(this=node.this.copy()))
    if node.args.get("where") is not None:
        made.set("where", node.args["where"].copy())
    return made


def _is_default(node: Node) -> bool:
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _word(node: Node) -> str:
    return "TRUNCATE" if isinstance(node, exp.TruncateTable) else type(node).__name__.upper()


def check_found(text: SqlText, node: Node, table: TableDef, windowed: bool) -> None:
    """Raise SqlError for a statement that must find rows of a table that stores none, or whose window deletes them."""
    if table.trusted:
        reason = "is trusted: its rows are not stored; INSERT and Database.delete of whole rows work"
    elif windowed:
        reason = "has a window, which deletes its rows itself; INSERT works"
    else:
        return
    conflict = " ... ON CONFLICT" if isinstance(node, exp.Insert) else ""
    raise text.error(node, f"{_word(node)}{conflict}: table {table.name} {reason}")
