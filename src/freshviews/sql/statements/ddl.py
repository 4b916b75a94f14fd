"""Converts CREATE TABLE and ALTER TABLE to ``TableDef``, and reads the properties of tables and views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from freshviews.catalog.catalog import AlterTable, Catalog, column_named, same, unknown
from freshviews.catalog.definitions import ColumnDef, Default, ForeignKey, TableDef
from freshviews.catalog.row_keys import KEY
from freshviews.catalog.watermark import LATE, watermark_of
from freshviews.catalog.watermark import PROPERTY as WATERMARKED
from freshviews.catalog.widening import holds, type_text
from freshviews.catalog.window import window_of, with_its_column
from freshviews.errors import NameProblem, SqlError
from freshviews.sql.statements.defaults import check_null, default_of
from freshviews.sql.text.parse import WATERMARK, Node, SqlText, parse
from freshviews.sql.text.typenames import column_type
from freshviews.types import DAY_TO_SECOND, SqlType
from freshviews.types.sqltype import text_of

TABLE_PROPERTIES = (
    *("freshviews.trusted", "freshviews.rows", "freshviews.update_rate", "freshviews.window"),
    *(WATERMARKED, LATE),
)
VIEW_PROPERTIES = (
    "freshviews.strategy",
    "freshviews.join_tree",
    "freshviews.bag_strategy",
    "freshviews.updates",
    "freshviews.epsilon",
    "freshviews.key_order",
    "freshviews.result",
    KEY,
)

_PROPERTY = "TBLPROPERTIES ('name' = 'value') is accepted"
_ADDING = "ALTER TABLE name ADD COLUMN name type [NOT NULL] [DEFAULT constant], or ADD COLUMNS (...)"
_WATERMARK = "WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES"
_CONSTRAINTS = "accepted: NOT NULL, DEFAULT, PRIMARY KEY, UNIQUE, REFERENCES, FOREIGN KEY, COMMENT and WATERMARK"


@dataclass
class _Table:
    """A CREATE TABLE whose parts are being read."""

    name: str
    columns: list[ColumnDef] = field(default_factory=list)
    primary: tuple[str, ...] | None = None
    unique: list[tuple[str, ...]] = field(default_factory=list)
    foreign: list[tuple[Node, tuple[str, ...], exp.Reference]] = field(default_factory=list)
    defaults: dict[str, Node] = field(default_factory=dict)
    """The expression after DEFAULT, by column."""
    watermark: Node | None = None


def table_from_select(text: SqlText, node: Node, catalog: Catalog) -> str:
    """The name of the table that a CREATE TABLE AS SELECT makes. Raises SqlError with the place."""
    extra = next((one for one in ("replace", "exists", "properties") if node.args.get(one)), None)
    if extra is not None or not isinstance(node.this, exp.Table):
        raise text.unsupported(
            node, "a clause of CREATE TABLE AS SELECT", "write CREATE TABLE t AS SELECT ... without other clauses"
        )
    check_name(text, node.this)
    name: str = node.this.name
    if catalog.named(name) is not None:
        raise NameProblem(f"{name} exists already; DROP {name}, or INSERT the rows into {name}", *text.at(node.this))
    return name


def table_of(text: SqlText, node: exp.Create, catalog: Catalog) -> TableDef:
    """The table that a CREATE TABLE defines. Raises SqlError with the place."""
    schema = node.this
    if node.expression is not None:
        raise text.unsupported(
            node.expression,
            "CREATE TABLE AS SELECT here",
            "write CREATE MATERIALIZED VIEW ... AS SELECT",
        )
    if not isinstance(schema, exp.Schema):
        raise text.error(node, f"table {node.this.name} needs a list of columns in parentheses")
    table = _Table(schema.this.name)
    check_name(text, schema.this)
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            _column(text, table, part)
        else:
            _constraint(text, table, part)
    if not table.columns:
        raise text.error(node, f"table {table.name} needs at least one column")
    properties = properties_of(text, node, TABLE_PROPERTIES)
    if table.watermark is not None:
        if WATERMARKED in properties:
            raise text.error(node, f"table {table.name} has a WATERMARK and {WATERMARKED}; write one of them")
        properties[WATERMARKED] = _watermark(text, table, table.watermark)
    keys = ([table.primary] if table.primary else []) + table.unique
    columns = [
        replace(column, nullable=column.nullable and not (table.primary and column.name in table.primary))
        for column in table.columns
    ]
    for column in columns:
        if column.name in table.defaults:
            check_null(text, table.defaults[column.name], column)
    made = TableDef(
        table.name,
        tuple(columns),
        tuple(dict.fromkeys(keys)),
        table.primary is not None,
        (),
        _flag(text, node, properties.get("freshviews.trusted", "false")),
        tuple(properties.items()),
    )
    _check_rows(text, node, properties.get("freshviews.rows", "0"))
    try:
        window_of(made)
    except ValueError as error:
        raise text.error(node, f"freshviews.window: {error}") from None
    try:
        watermark_of(made)
    except ValueError as error:
        raise text.error(table.watermark or node, str(error)) from None
    _check_rate(text, node, properties.get("freshviews.update_rate", "1"))
    foreign = tuple(_foreign_key(text, made, catalog, *one) for one in table.foreign)
    return replace(made, foreign_keys=foreign)


def altered_table(text: SqlText, node: exp.Alter, catalog: Catalog) -> AlterTable:
    """The table as an ALTER TABLE changes it. Raises SqlError with the place."""
    target = node.this
    table = catalog.table(target.name)
    if table is None:
        known = catalog.named(target.name)
        if known is not None:
            raise NameProblem(
                f"{known.name} is not a table; name a table in ALTER TABLE", *text.at(target)
            )
        raise NameProblem(unknown("table", target.name, catalog.names_of("TABLE")), *text.at(target))
    if node.args.get("exists"):
        raise text.unsupported(node, "IF EXISTS of ALTER TABLE", f"{_ADDING} of an existing table")
    actions = node.args.get("actions") or []
    if len(actions) == 1 and isinstance(actions[0], exp.AlterColumn):
        return AlterTable(_widened(text, node, actions[0], table, catalog), 0)
    made = _Table(table.name, list(table.columns))
    place = None
    for part in _added(text, node):
        _check_added(text, table, part)
        _column(text, made, part)
        column = made.columns[-1]
        if not column.may_be_absent:
            place = place or text.at(part.this)
        elif column.default is None:
            # Rows from before the change may still be arriving.
            made.columns[-1] = replace(column, default=Default(None))
        if part.name in made.defaults:
            check_null(text, made.defaults[part.name], made.columns[-1])
    grown = replace(with_its_column(table), columns=tuple(made.columns))
    return AlterTable(grown, len(made.columns) - len(table.columns), place)


def _widened(text: SqlText, node: Node, action: exp.AlterColumn, table: TableDef, catalog: Catalog) -> TableDef:
    """The table with a wider type for a column: one that has the values of the old type."""
    kind = action.args.get("dtype")
    if {name for name, value in action.args.items() if value} != {"this", "dtype"} or kind is None:
        raise text.unsupported(node, "this ALTER TABLE", f"{_ADDING}, or ALTER COLUMN name TYPE type, is accepted")
    column = column_named(table.columns, action.name)
    if column is None:
        raise text.error(action.this, unknown("column", action.name, (c.name for c in table.columns), table.name))
    of, length = _type_of_a_column(text, kind)
    made = replace(column, type=of, length=length)
    if of.wide and not column.type.wide and column.default is not None and isinstance(column.default.value, int):
        made = replace(made, default=Default(text_of(column.default.value)))
    what = f"column {column.name} is {type_text(column)}"
    if not holds(made, column) or (of.is_decimal and of.scale != column.type.scale):
        wider = "INT to BIGINT, FLOAT to DOUBLE, a DECIMAL with more digits before the point, a longer VARCHAR"
        wider += ", or more fields of an INTERVAL"
        raise text.error(kind, f"{what}, and {type_text(made)} does not hold its values unchanged; {wider} is accepted")
    keys = [key.columns for key in table.foreign_keys]
    for one in catalog.tables.values():
        keys += [key.referenced for key in one.foreign_keys if same(key.table, table.name)]
    if any(column.name in names for names in keys):
        message = f"{what}, and a foreign key compares it with a column of this type; keep the type"
        raise text.error(action.this, message)
    readers = catalog.readers_of(table, column)
    if readers:
        advice = "DROP them first and CREATE them again, which one script may do"
        pipeline = "for a pipeline, write the type in CREATE STREAMING TABLE"
        message = f"{what}, and {', '.join(readers)} may read it; {advice}, or, {pipeline}"
        raise NameProblem(message, *text.at(action.this))
    return replace(table, columns=tuple(made if one is column else one for one in table.columns))


def _type_of_a_column(text: SqlText, kind: Node) -> tuple[SqlType, int]:
    """The type and the limit of characters, read as in CREATE TABLE: elsewhere sqlglot drops a VARCHAR's length."""
    inner = SqlText(f"CREATE TABLE t (c {text.whole(kind)})")
    try:
        (column,) = parse(inner)[0].find_all(exp.ColumnDef)
    except SqlError:
        return column_type(text, kind)
    try:
        return column_type(inner, column.args["kind"])
    except SqlError as error:
        message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
        raise type(error)(message, *text.at(kind)) from None


def _added(text: SqlText, node: exp.Alter) -> list[exp.ColumnDef]:
    """The columns that ALTER TABLE adds."""
    actions = node.args.get("actions") or []
    parts = [part for one in actions for part in (one.expressions if isinstance(one, exp.Schema) else [one])]
    for part in parts:
        if not isinstance(part, exp.ColumnDef):
            raise text.unsupported(node, "this ALTER TABLE", f"{_ADDING} is accepted")
    if not parts:
        raise text.unsupported(node, "this ALTER TABLE", f"{_ADDING} is accepted")
    return parts


def _check_added(text: SqlText, table: TableDef, node: exp.ColumnDef) -> None:
    if column_named(table.columns, node.name) is not None:
        raise text.error(node.this, f"table {table.name} already has a column {node.name}; choose another name")
    if node.args.get("position") is not None:
        raise text.unsupported(node.this, "FIRST or AFTER", "leave FIRST or AFTER out: a new column is always the last")
    if node.args.get("exists"):
        raise text.unsupported(node.this, "IF NOT EXISTS of a column", "write ADD COLUMN without IF NOT EXISTS")
    for constraint in node.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint | exp.Reference):
            what = f"{text.of(constraint)} of an added column"
            raise text.unsupported(constraint, what, "NOT NULL, DEFAULT and COMMENT are accepted")


def check_name(text: SqlText, node: exp.Table) -> None:
    if node.args.get("db") is not None:
        raise text.error(node, f"{text.of(node)}: write the name of the table or view without a schema")
    if "#" in node.name:
        raise text.error(node, f"{node.name}: a # marks internal views; choose a name without it")


def check_column_name(text: SqlText, node: Node, name: str) -> None:
    if same(name, "_multiplicity"):
        raise text.error(node, "_multiplicity is the column of signed counts in changes; choose another name")


def _column(text: SqlText, table: _Table, node: exp.ColumnDef) -> None:
    name = node.name
    check_column_name(text, node.this, name)
    if column_named(table.columns, name) is not None:
        raise text.error(node.this, f"column {name} is given twice in table {table.name}; rename one of the columns")
    if node.kind is None:
        raise text.error(node, f"column {name} needs a type")
    nullable = True
    for constraint in node.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            _set_primary(text, table, constraint, (name,))
        elif isinstance(kind, exp.UniqueColumnConstraint):
            table.unique.append((name,))
        elif isinstance(kind, exp.Reference):
            table.foreign.append((constraint, (name,), kind))
        elif isinstance(kind, exp.DefaultColumnConstraint) and name not in table.defaults:
            table.defaults[name] = kind.this
        elif not isinstance(kind, exp.CommentColumnConstraint):
            raise text.unsupported(constraint, f"column constraint {text.of(constraint)}", _CONSTRAINTS)
    of, length = column_type(text, node.kind)
    column = ColumnDef(name, of, nullable, length)
    if name in table.defaults:
        column = replace(column, default=default_of(text, table.defaults[name], column))
    table.columns.append(column)


def _constraint(text: SqlText, table: _Table, node: Node) -> None:
    if isinstance(node, exp.Constraint):
        for part in node.expressions:
            _constraint(text, table, part)
        return
    if isinstance(node, exp.PrimaryKey):
        _set_primary(text, table, node, _own_columns(text, table, node.expressions))
    elif isinstance(node, exp.UniqueColumnConstraint) and isinstance(node.this, exp.Schema):
        table.unique.append(_own_columns(text, table, node.this.expressions))
    elif isinstance(node, exp.Anonymous) and node.name == WATERMARK:
        if table.watermark is not None:
            raise text.error(node, f"table {table.name} has two watermarks; leave out one")
        table.watermark = node
    elif isinstance(node, exp.ForeignKey):
        reference = node.args.get("reference")
        if not isinstance(reference, exp.Reference):
            raise text.error(node, "FOREIGN KEY needs REFERENCES table (columns)")
        table.foreign.append((node, _own_columns(text, table, node.expressions), reference))
    else:
        raise text.unsupported(node, f"constraint {text.of(node)}", _CONSTRAINTS)


def _watermark(text: SqlText, table: _Table, node: Node) -> str:
    """The property for WATERMARK FOR column AS column - interval."""
    column, by = node.expressions
    delay = by.expression if isinstance(by, exp.Sub) else None
    if not isinstance(column, exp.Column) or (by if delay is None else by.this) != column:
        what = f"WATERMARK FOR {text.of(column)} AS {text.of(by)}"
        raise text.unsupported(node, what, f"write {_WATERMARK}, with a constant interval")
    micros = 0
    if delay is not None:
        found = default_of(text, delay, ColumnDef("of the watermark", DAY_TO_SECOND), "the delay of the watermark")
        micros = -1 if found.value is None else int(found.value)
    if micros < 0:
        what = f"the delay of the watermark is {text.of(delay or by)}"
        raise text.error(by, f"{what}; write an interval of 0 or more")
    return f"{micros} microseconds on {column.name}"


def _set_primary(text: SqlText, table: _Table, node: Node, columns: tuple[str, ...]) -> None:
    if table.primary is not None:
        raise text.error(node, f"table {table.name} has two primary keys; name all columns in one, or use UNIQUE")
    table.primary = columns


def _own_columns(text: SqlText, table: _Table, nodes: Sequence[Node]) -> tuple[str, ...]:
    names = []
    for node in nodes:
        column = column_named(table.columns, node.name)
        if column is None:
            raise text.error(node, unknown("column", node.name, (c.name for c in table.columns)))
        names.append(column.name)
    return tuple(names)


def _foreign_key(
    text: SqlText,
    table: TableDef,
    catalog: Catalog,
    node: Node,
    columns: tuple[str, ...],
    reference: exp.Reference,
) -> ForeignKey:
    target = reference.this.this if isinstance(reference.this, exp.Schema) else reference.this
    named = reference.this.expressions if isinstance(reference.this, exp.Schema) else []
    if reference.args.get("options"):
        raise text.unsupported(reference, "ON DELETE and ON UPDATE of REFERENCES", "delete the referring rows first")
    other = table if same(target.name, table.name) else catalog.table(target.name)
    if other is None:
        names = (known.name for known in catalog.tables.values())
        raise NameProblem(unknown("table", target.name, names), *text.at(target))
    referenced: list[str] = []
    for one in named:
        column = column_named(other.columns, one.name)
        if column is None:
            raise text.error(one, unknown("column", one.name, (c.name for c in other.columns), other.name))
        referenced.append(column.name)
    if not named and other.has_primary_key:
        referenced = list(other.keys[0])
    if not any(set(referenced) == set(known) for known in other.keys):
        keys = " or ".join(f"({', '.join(known)})" for known in other.keys) or "none"
        raise text.error(
            target, f"a foreign key must refer to a PRIMARY KEY or UNIQUE columns; {other.name} has {keys}"
        )
    if len(referenced) != len(columns):
        raise text.error(node, f"the foreign key has {len(columns)} columns but refers to {len(referenced)}")
    for own, its in zip(columns, referenced, strict=True):
        types = [column_named(one.columns, name) for one, name in ((table, own), (other, its))]
        if types[0] is not None and types[1] is not None and types[0].type != types[1].type:
            raise text.error(
                node,
                f"column {own} is {types[0].type}, but {other.name}.{its} is {types[1].type}; declare both columns "
                "with one type",
            )
    return ForeignKey(columns, other.name, tuple(referenced))


def properties_of(text: SqlText, node: exp.Create, known: Sequence[str]) -> dict[str, str]:
    """TBLPROPERTIES as texts. An unknown freshviews property is refused; properties of other systems are kept."""
    clause = node.args.get("properties")
    return properties_in(text, clause.expressions if clause is not None else (), known)


def properties_in(text: SqlText, parts: Iterable[Node], known: Sequence[str]) -> dict[str, str]:
    """The items of TBLPROPERTIES as texts; see ``properties_of``."""
    found: dict[str, str] = {}
    for part in parts:
        if isinstance(part, exp.MaterializedProperty):
            continue
        if isinstance(part, exp.SchemaCommentProperty):
            found["comment"] = part.this.name
            continue
        if isinstance(part, list):
            place = text.at(part[0]) if part else (0, 0)
            raise SqlError(f"a TBLPROPERTIES clause is nested in another one; {_PROPERTY}", *place)
        if type(part) is not exp.Property:
            raise text.unsupported(part, text.of(part), _PROPERTY)
        name = part.this.name if isinstance(part.this, exp.Literal) else text.of(part.this)
        value = _property(text, name, part.args["value"])
        if name.lower().startswith("freshviews."):
            name = name.lower()
            if name not in known:
                raise text.error(part, f"unknown property {name}; known: {', '.join(known)}")
        if name in found:
            raise text.error(part, f"property {name} is given twice; leave out one")
        found[name] = value
    return found


def _property(text: SqlText, name: str, value: Node) -> str:
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    if not isinstance(value, exp.Literal):
        raise text.error(value, f"the value of property {name} is not a constant: {text.of(value)}; {_PROPERTY}")
    return value.name


def _check_rows(text: SqlText, node: Node, value: str) -> None:
    if not value.isdecimal():
        raise text.error(node, f"freshviews.rows must be the expected number of rows, not {value!r}")


def _check_rate(text: SqlText, node: Node, value: str) -> None:
    try:
        good = 0 <= float(value) < float("inf")
    except ValueError:
        good = False
    if not good:
        raise text.error(node, f"freshviews.update_rate must be a number of updates, 0 or more, not {value!r}")


def _flag(text: SqlText, node: Node, value: str) -> bool:
    flags: Mapping[str, bool] = {"true": True, "false": False}
    if value.lower() not in flags:
        raise text.error(node, f"freshviews.trusted must be 'true' or 'false', not {value!r}")
    return flags[value.lower()]
