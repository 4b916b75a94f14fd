"""Answers the statements SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import re2
from sqlglot import exp

from freshviews.catalog.catalog import Catalog, ViewDefs, same, unknown
from freshviews.catalog.definitions import ColumnDef, PlainView, TableDef, ViewDef
from freshviews.catalog.widening import type_text
from freshviews.display.explanation import Explanation
from freshviews.display.graph import Node as Drawn
from freshviews.engine.codes.frame_types import quoted
from freshviews.errors import NameProblem, SqlError
from freshviews.expr.casts import date_to_string, timestamp_to_string
from freshviews.expr.intervals import interval_to_string
from freshviews.plan.explain import explain, parts, update_bound
from freshviews.plan.planner import plan_block
from freshviews.query.sharing import with_shared_sums
from freshviews.sql.statements.sql_script import statements_of
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node, SqlText, parse
from freshviews.types import TIMESTAMP_LTZ
from freshviews.types.sqltype import value_of_text
from freshviews.types.values import number_value

_NAME = r"(`(?:[^`]|``)+`|\w+)"
_SHOW = re.compile(
    rf"(?:(?P<list>TABLES|VIEWS)(?:\s+(?:LIKE\s+)?'(?P<like>[^']*)')?|COLUMNS\s+(?:IN|FROM)\s+{_NAME}"
    rf"|CREATE\s+(?:TABLE|(?:MATERIALIZED\s+)?VIEW)\s+{_NAME})",
    re.IGNORECASE,
)
_SHOWN = "SHOW TABLES [LIKE 'a*'], SHOW VIEWS, SHOW COLUMNS IN name and SHOW CREATE TABLE name are accepted"
_EXPLAINED = "EXPLAIN takes the name of a view, a SELECT or CREATE VIEW"


def shown(text: SqlText, node: Node, catalog: Catalog) -> pa.Table:
    """The rows of SHOW or DESCRIBE. Raises SqlError with the place."""
    if isinstance(node, exp.Describe):
        if not isinstance(node.this, exp.Table) or not isinstance(node.this.this, exp.Identifier):
            raise text.error(node, "DESCRIBE takes the name of a table or view")
        return _described(_named(text, node.this, node.this.name, catalog), catalog)
    found = _SHOW.fullmatch(_rest(node))
    if found is None:
        raise text.unsupported(node, text.of(node), _SHOWN)
    if found["list"] is None:
        columns, created = found[3], found[4]
        relation = _named(text, node, (columns or created).strip("`").replace("``", "`"), catalog)
        if created is not None:
            return _rows(("createtab_stmt",), [(_created(relation, catalog.comments),)])
        return _rows(("col_name",), [(column.name,) for column in relation.columns])
    names = catalog.names_of(found["list"].upper().removesuffix("S"))
    listed = [name for name in names if _is_like(name, found["like"])]
    said = [catalog.comments.get((name.lower(), "")) for name in listed]
    if found["list"].upper() == "TABLES":
        return _rows(("name", "comment"), [*zip(listed, said, strict=True)])
    kept = ["NO" if catalog.plain_view(name) is not None else "YES" for name in listed]
    return _rows(("name", "materialized", "comment"), [*zip(listed, kept, said, strict=True)])


def explained_query(
    text: SqlText, node: Node, catalog: Catalog, of_view: Callable[[str], Explanation]
) -> Explanation:
    """EXPLAIN of a view that is there, or of a SELECT or CREATE VIEW as a view that would be. Raises SqlError."""
    rest = _rest(node)
    if not rest:
        raise text.error(node, _EXPLAINED)
    name = re.fullmatch(rf"(?:(?:MATERIALIZED\s+)?VIEW\s+)?{_NAME}", rest, re.IGNORECASE)
    if name is not None:
        view = _named(text, node, name[1].strip("`").replace("``", "`"), catalog)
        if not isinstance(view, ViewDef):
            raise text.error(node, f"{view.name} is not a materialised view, so nothing maintains it; {_EXPLAINED}")
        return of_view(view.name)
    start, end = node.meta[SPAN]
    start = text.text.index(rest, start)
    trees = parse(SqlText(re.sub(r"[^\n]", " ", text.text[:start]) + text.text[start : end + 1]))
    tree = trees[0] if len(trees) == 1 else node
    if isinstance(tree, exp.Query):
        properties = exp.Properties(expressions=[exp.MaterializedProperty()])
        named = exp.Table(this=exp.to_identifier("the query"))
        tree = exp.Create(this=named, kind="VIEW", expression=tree, properties=properties)
    elif not isinstance(tree, exp.Create) or tree.kind != "VIEW":
        raise text.unsupported(node, f"EXPLAIN {rest.split()[0].upper()}", _EXPLAINED)
    return _planned(statements_of(text.text, [tree], catalog), catalog)


def _planned(statements: Sequence[object], catalog: Catalog) -> Explanation:
    """The plan of a view that does not exist, without data."""
    made: list[tuple[ViewDef, str, dict[str, object], Drawn]] = []
    for statement in statements:
        if isinstance(statement, PlainView):
            raise SqlError(f"{statement.name} is not materialised, so nothing maintains it; {_EXPLAINED}")
        if not isinstance(statement, ViewDefs):
            continue
        catalog = catalog.after(statement)
        for view in statement.views:
            inputs = {name: known for name in view.inputs if (known := catalog.relation(name)) is not None}
            plans = [plan_block(view, with_shared_sums(block), inputs) for block in view.blocks]
            of = (", ".join(dict.fromkeys(plan.strategy for plan in plans)), update_bound(view, plans))
            made.append((view, explain(view, plans, {}), parts(view, plans, {}), Drawn(view.name, of, view.inputs)))
    own = {view.name for view, *_ in made}
    read = dict.fromkeys(name for view, *_ in made for name in view.inputs if name not in own)
    inner = [part for _, _, part, _ in made[:-1]]
    texts = [one for _, one, _, _ in (made[-1], *made[:-1])]
    return Explanation("\n".join(texts), made[-1][2] | {"inner": inner}, [*map(Drawn, read), *(d for *_, d in made)])


def _created(relation: TableDef | ViewDef | PlainView, comments: Mapping[tuple[str, str], str]) -> str:
    """The statement that creates a table or view as it is now."""
    said = {column: f" COMMENT {_text(text)}" for (name, column), text in comments.items() if same(name, relation.name)}
    if not isinstance(relation, TableDef):
        return relation.sql
    lines = [
        f"{quoted(column.name)} {type_text(column)}{_default(column)}{said.get(column.name.lower(), '')}"
        for column in relation.columns
    ]
    for number, key in enumerate(relation.keys):
        word = "PRIMARY KEY" if relation.has_primary_key and number == 0 else "UNIQUE"
        lines.append(f"{word} ({_list(key)})")
    for foreign in relation.foreign_keys:
        lines.append(
            f"FOREIGN KEY ({_list(foreign.columns)}) REFERENCES {quoted(foreign.table)} ({_list(foreign.referenced)})"
        )
    made = f"CREATE TABLE {quoted(relation.name)} (\n  " + ",\n  ".join(lines) + "\n)" + said.get("", "")
    listed = [f"{_text(name)} = {_text(value)}" for name, value in relation.properties if name != "comment"]
    return f"{made} TBLPROPERTIES ({', '.join(listed)})" if listed else made


def _described(relation: TableDef | ViewDef | PlainView, catalog: Catalog) -> pa.Table:
    keys = relation.keys if isinstance(relation, TableDef) else ()
    primary = keys[0] if isinstance(relation, TableDef) and relation.has_primary_key else ()
    rows = []
    for column in relation.columns:
        key = "PRIMARY KEY" if column.name in primary else "UNIQUE" if (column.name,) in keys else None
        default = None if column.default is None else _constant(column)
        kind = type_text(replace(column, nullable=True))
        comment = catalog.comments.get((relation.name.lower(), column.name.lower()))
        rows.append((column.name, kind, "YES" if column.nullable else "NO", key, default, comment))
    return _rows(("col_name", "data_type", "nullable", "key", "default", "comment"), rows)


def _named(text: SqlText, node: Node, name: str, catalog: Catalog) -> TableDef | ViewDef | PlainView:
    found = catalog.named(name)
    if found is None or "#" in name:
        raise NameProblem(unknown("table or view", name, catalog.names), *text.at(node))
    return found


def _rest(node: Node) -> str:
    return str(node.expression.name).strip() if node.args.get("expression") is not None else ""


def _is_like(name: str, pattern: str | None) -> bool:
    """Whether a name is like a pattern of Spark: * is any text, | stands between patterns; case does not matter."""
    if pattern is None:
        return True
    each = (".*".join(map(re2.escape, one.split("*"))) for one in pattern.replace("%", "*").split("|"))
    return re2.fullmatch(f"(?is){'|'.join(each)}", name) is not None  # In time linear in the name.


def _rows(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})


def _default(column: ColumnDef) -> str:
    return "" if column.default is None else f" DEFAULT {_constant(column)}"


def _constant(column: ColumnDef) -> str:
    """The DEFAULT of a column as SQL."""
    assert column.default is not None
    value, kind = column.default.value, column.type
    if value is None:
        return "NULL"
    if isinstance(value, str) and not kind.wide:
        return _text(value)
    if isinstance(value, str):
        value = value_of_text(value)
    if kind.is_decimal and kind.scale:
        digits = f"{abs(value):0{kind.scale + 1}d}"
        return f"{'-' * (value < 0)}{digits[: -kind.scale]}.{digits[-kind.scale :]}"
    if kind.name == "DATE":
        return f"DATE '{date_to_string(value)}'"
    if kind.name == "TIMESTAMP":
        zoned = kind == TIMESTAMP_LTZ
        return f"{kind} '{timestamp_to_string(value)}{'Z' * zoned}'"
    if kind.is_interval:
        return interval_to_string(value, kind.precision, kind.scale)
    if kind.name == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    return f"CAST('{number_value(kind, value)}' AS {kind})" if kind.is_float else str(value)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
