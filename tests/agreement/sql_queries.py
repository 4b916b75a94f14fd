"""Random scenarios: tables, views made of joins and aggregates, and streams of versions.

Values come from small domains, so that joins hit, groups vanish and NULLs meet.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.agreement.scenario import (
    BaseTable,
    NamedView,
    Row,
    Scenario,
    TableColumn,
    Text,
    Update,
    Version,
)
from tests.agreement.sql_expressions import (
    DATES,
    STRINGS,
    SUMMABLE,
    Draw,
    Expressions,
    Term,
    chance,
    has_column,
    made,
    pick,
)

_TYPES = {"int": ("BIGINT", "BIGINT", "INT"), "decimal": ("DECIMAL(6, 2)",), "double": ("DOUBLE",), "string": ("STRING",), "date": ("DATE",), "bool": ("BOOLEAN",)}
_DOMAINS: dict[str, tuple[Any, ...]] = {
    "BIGINT": (0, 1, 0, 1, 2),
    "INT": (0, 1, 0, 1, -1),
    "DECIMAL(6, 2)": tuple(map(Decimal, ("0.50", "1.00", "-1.25"))),
    "DOUBLE": (0.5, 2.0, -1.5, 0.0),
    "STRING": STRINGS,
    "DATE": tuple(map(dt.date.fromisoformat, DATES)),
    "BOOLEAN": (True, False),
}
_WILD = (0.1, 0.7, 1e16, float("inf"), float("-inf"), float("nan"), -0.0)


@dataclass(frozen=True)
class Readable:
    """A relation that FROM can name: its columns are terms whose text is the bare name."""

    text: Text
    columns: tuple[Term, ...]
    depth: int = 0


@st.composite
def scenarios(draw: Draw) -> Scenario:
    edges = chance(draw, 40)
    tables = tuple(_table(draw, f"t{i}", edges) for i in range(1, draw(st.integers(2, 3)) + 1))
    relations = [_readable(table) for table in tables]
    views = []
    for i in range(1, 1 + (draw(st.integers(1, 3)) if chance(draw, 35) else 1)):
        # The query that a later view makes should read the views before it, mostly.
        preferred = relations[len(tables) :] if i > 1 and chance(draw, 80) else []
        text, columns = _query(draw, relations, preferred)
        views.append(NamedView(f"v{i}", text))
        relations.append(Readable(Text.same(f"v{i}"), columns, 1))
    wild = chance(draw, 10)
    return Scenario(tables, tuple(views), _versions(draw, tables, wild), duckdb=not wild)


def _table(draw: Draw, name: str, edges: bool) -> BaseTable:
    """With ``edges``, its first two columns join like those of a graph."""
    columns = [TableColumn("k", "BIGINT", chance(draw, 30))]
    for i in range(1, draw(st.integers(1, 3)) + 1):
        kind = pick(draw, ("int", "int", "int", "decimal", "double", "string", "date", "bool"))
        type_ = "BIGINT" if edges and i == 1 else pick(draw, _TYPES[kind])
        columns.append(TableColumn("abc"[i - 1], type_, chance(draw, 35)))
    key: tuple[str, ...] = ()
    if chance(draw, 35):
        key = tuple(c.name for c in columns[: draw(st.integers(1, 2))])
        columns = [replace(c, nullable=c.nullable and c.name not in key) for c in columns]
    return BaseTable(name, tuple(columns), key, chance(draw, 20))


def _readable(table: BaseTable) -> Readable:
    columns = []
    for column in table.columns:
        kind = next(k for k, types in _TYPES.items() if column.type in types)
        precision, scale = (6, 2) if kind == "decimal" else (0, 0)
        columns.append(Term(Text.same(column.name), kind, precision, scale, column=True))
    return Readable(Text.same(table.name), tuple(columns))


# Queries


def _query(draw: Draw, relations: Sequence[Readable], preferred: Sequence[Readable]) -> tuple[Text, tuple[Term, ...]]:
    """A SELECT or a UNION ALL of two; its text and its columns."""
    text, columns = _select(draw, relations, preferred, 4, None)
    if chance(draw, 12):
        other, more = _select(draw, relations, preferred, 2, [c.kind for c in columns])
        text = Text(f"{text.spark} UNION ALL {other.spark}", f"{text.duck} UNION ALL {other.duck}")
        digits = [
            (max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale))
            for a, b in zip(columns, more, strict=True)
        ]
        columns = tuple(
            replace(a, precision=whole + scale, scale=scale) if a.kind == "decimal" else a
            for a, (whole, scale) in zip(columns, digits, strict=True)
        )
    return text, columns


def _select(
    draw: Draw,
    relations: Sequence[Readable],
    preferred: Sequence[Readable],
    most: int,
    kinds: Sequence[str] | None,
) -> tuple[Text, tuple[Term, ...]]:
    """``kinds``: those of the columns, where they are given."""
    source, visible, conjuncts = _from(draw, relations, preferred, most)
    expressions = Expressions(draw, visible)
    if chance(draw, 35):
        conjuncts.append(expressions.predicate(depth=draw(st.integers(0, 2))))
    where = made("bool", " WHERE " + " AND ".join(f"{{{i}}}" for i in range(len(conjuncts))), *conjuncts)
    tail = where.text if conjuncts else Text.same("")
    shape = pick(draw, ("groups", "groups", "groups", "bag", "bag", "global"))
    if shape == "bag":
        items = _bag_items(draw, expressions, kinds)
        head = "SELECT DISTINCT" if chance(draw, 20) else "SELECT"
        after = Text.same("")
    else:
        groups = _groups(draw, expressions) if shape == "groups" else []
        items = _aggregated_items(draw, expressions, groups, kinds)
        head = "SELECT"
        after = _after(draw, expressions, groups)
    columns = tuple(replace(item, text=Text.same(f"c{i}"), column=True) for i, item in enumerate(items, 1))
    texts = [
        f"{head} {', '.join(f'{one} AS c{i}' for i, one in enumerate(which, 1))} FROM {_from}{where_}{after_}"
        for which, _from, where_, after_ in (
            ([i.text.spark for i in items], source.spark, tail.spark, after.spark),
            ([i.text.duck for i in items], source.duck, tail.duck, after.duck),
        )
    ]
    return Text(*texts), columns


def _from(
    draw: Draw, relations: Sequence[Readable], preferred: Sequence[Readable], most: int
) -> tuple[Text, list[Term], list[Term]]:
    """FROM's text, the columns it makes visible, and conjuncts that WHERE has to have."""
    count = min(most, pick(draw, (1, 2, 2, 2, 3, 3, 4)))
    visible: list[Term] = []
    by_name: dict[str, list[Term]] = {}
    conjuncts: list[Term] = []
    spark, duck = "", ""
    chain = count > 2 and chance(draw, 50)
    for i in range(count):
        alias = "pqrs"[i]
        relation = _source(draw, relations, preferred if i == 0 else ())
        own = [_qualified(alias, c) for c in relation.columns]
        here = Text(f"{relation.text.spark} AS {alias}", f"{relation.text.duck} AS {alias}")
        if i == 0:
            spark, duck = here.spark, here.duck
        else:
            way = pick(draw, ("on", "on", "using", "where", "cross"))
            shared = [c for c in relation.columns if len(by_name.get(c.text.spark, ())) == 1 and by_name[c.text.spark][0].kind == c.kind]
            if way == "using" and shared:
                name = pick(draw, shared).text.spark
                spark += f" JOIN {here.spark} USING ({name})"
                duck += f" JOIN {here.duck} USING ({name})"
                by_name = {n: [*terms, *([] if n == name else [c for c in own if _bare(c) == n])] for n, terms in by_name.items()}
                by_name |= {_bare(c): [c] for c in own if _bare(c) not in by_name}
                visible += own
                continue
            equal = _link(visible, own) if chain else None
            equal = equal or _equality(draw, visible, own)
            if way in ("on", "using") and equal is not None:
                also = _equality(draw, visible, own) if chance(draw, 20) else None
                on = equal if also is None else made("bool", "{0} AND {1}", equal, also)
                if chance(draw, 15):
                    on = made("bool", "{0} AND {1}", on, Expressions(draw, [*visible, *own]).predicate(depth=0))
                spark += f" JOIN {here.spark} ON {on.text.spark}"
                duck += f" JOIN {here.duck} ON {on.text.duck}"
            else:
                comma = pick(draw, (", ", " CROSS JOIN ")) if "JOIN" not in spark else " CROSS JOIN "
                spark, duck = f"{spark}{comma}{here.spark}", f"{duck}{comma}{here.duck}"
                if equal is not None and way != "cross":
                    conjuncts.append(equal)
        visible += own
        for c in own:
            by_name.setdefault(_bare(c), []).append(c)
    if count > 2 and chance(draw, 50):
        last = [c for c in visible if c.text.spark.startswith("pqrs"[count - 1])]
        first = [c for c in visible if c.text.spark.startswith("p.")]
        closing = _link(last, first) if chain else None
        closing = closing or _equality(draw, first, last)
        if closing is not None:
            conjuncts.append(closing)
    if count > 1 and chance(draw, 30):
        numbers = Expressions(draw, visible)
        kind = pick(draw, numbers.kinds(("int", "date", "string", "decimal", "double")) or ["int"])
        op = pick(draw, ("<>", "<", "<="))
        conjuncts.append(made("bool", f"{{0}} {op} {{1}}", numbers.leaf(kind), numbers.leaf(kind)))
    return Text(spark, duck), visible, conjuncts


def _source(draw: Draw, relations: Sequence[Readable], preferred: Sequence[Readable]) -> Readable:
    if preferred:
        return pick(draw, preferred)
    relation: Readable = pick(draw, relations)
    if chance(draw, 12) and relation.depth == 0:
        text, columns = _select(draw, [relation, relations[0]], (), 2, None)
        return Readable(Text(f"({text.spark})", f"({text.duck})"), columns, 1)
    return relation


def _qualified(alias: str, column: Term) -> Term:
    return replace(column, text=Text.same(f"{alias}.{column.text.spark}"))


def _bare(column: Term) -> str:
    return column.text.spark.split(".")[1]


def _equality(draw: Draw, left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """An equality of a column of each side, sometimes of an expression."""
    pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind != "bool"]
    integers = [(a, b) for a, b in pairs if a.kind == "int"]
    if not pairs:
        return None
    a, b = pick(draw, integers if integers and chance(draw, 80) else pairs)
    if a.kind == "int" and chance(draw, 8):
        return made("bool", "{0} + 1 = {1}", a, b)
    return made("bool", "{0} = {1}", a, b)


def _link(left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """The equality that makes a chain, or closes it to a cycle: the second int of the last relation on the left
    is the first of the one on the right."""
    alias = left[-1].text.spark.split(".")[0]
    ends = [c for c in left if c.kind == "int" and c.text.spark.startswith(alias)]
    starts = [c for c in right if c.kind == "int"]
    if len(ends) < 2 or len(starts) < 2:
        return None
    return made("bool", "{0} = {1}", ends[1], starts[0])


def _bag_items(draw: Draw, expressions: Expressions, kinds: Sequence[str] | None) -> list[Term]:
    if kinds is not None:
        return [expressions.any(kind, 1) for kind in kinds]
    items = []
    for _ in range(draw(st.integers(1, 4))):
        if chance(draw, 65):
            items.append(pick(draw, expressions.columns))
        else:
            kind = pick(draw, [*(expressions.kinds(("int", "decimal", "double", "string", "date", "bool")) or ["int"]), "ratio"])
            items.append(expressions.any(kind, draw(st.integers(1, 2))))
    return items


def _groups(draw: Draw, expressions: Expressions) -> list[Term]:
    groups: list[Term] = []
    for _ in range(pick(draw, (1, 1, 2, 3))):
        column = pick(draw, expressions.columns)
        group = column
        if chance(draw, 25):
            grown = expressions.any(column.kind, 1)
            # Constants would be read as positions of the select list.
            group = grown if has_column(grown) else column
        groups.append(group)
    return groups


def _aggregated_items(
    draw: Draw, expressions: Expressions, groups: Sequence[Term], kinds: Sequence[str] | None
) -> list[Term]:
    if kinds is not None:
        return [_item_of_kind(draw, expressions, groups, kind) for kind in kinds]
    items = [group for group in groups if chance(draw, 85)]
    for _ in range(draw(st.integers(0 if items else 1, 3))):
        item = aggregate(draw, expressions)
        if item.kind == "int" and chance(draw, 15):
            others = [g for g in groups if g.kind == "int"]
            other = pick(draw, others) if others else aggregate(draw, expressions, "int")
            item = made("int", "({0} + {1})", item, other)
        items.append(item)
    return items


def _item_of_kind(draw: Draw, expressions: Expressions, groups: Sequence[Term], kind: str) -> Term:
    found = [g for g in groups if g.kind == kind]
    if found and chance(draw, 50):
        return pick(draw, found)
    return aggregate(draw, expressions, kind)


def aggregate(draw: Draw, expressions: Expressions, kind: str | None = None) -> Term:
    """An aggregate, of a kind where one is given."""
    if kind is None:
        kind = pick(draw, ("int", "int", "decimal", "double", "ratio", "string", "date", "bool"))
    if kind == "ratio":
        return made("ratio", "AVG({0})", expressions.any(pick(draw, ("int", "double")), 1))
    functions = ["MIN", "MAX"]
    if kind == "int":
        functions += ["COUNT", "COUNT", "COUNT", "SUM", "SUM", "SUM", "PAIRS"]
    elif kind in SUMMABLE:
        functions += ["SUM", "SUM", "SUM", "AVG"] if kind == "decimal" else ["SUM", "SUM", "SUM"]
    function = pick(draw, functions)
    distinct = "DISTINCT " if chance(draw, 20) else ""
    if function == "COUNT":
        if chance(draw, 40):
            return made("int", "COUNT(*)")
        of = pick(draw, [c.kind for c in expressions.columns])
        return made("int", f"COUNT({distinct}{{0}})", expressions.any(of, 1))
    if function == "PAIRS":
        a, b = pick(draw, expressions.columns), pick(draw, expressions.columns)
        known = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN ({0}, {1}) END"
        return made("int", f"COUNT({distinct}{{0}}, {{1}})", a, b, duck=f"COUNT({distinct}{known})")
    argument = _factor(draw, expressions, kind) if function == "SUM" else expressions.any(kind, 1)
    if function in ("MIN", "MAX"):
        return replace(made(kind, f"{function}({{0}})", argument), precision=argument.precision, scale=argument.scale)
    if kind != "decimal":
        return made(kind, f"{function}({distinct}{{0}})", argument)
    if argument.precision > 18:
        return replace(made(kind, "MAX({0})", argument), precision=argument.precision, scale=argument.scale)
    if function == "SUM":
        precision = argument.precision + 10
        duck = f"CAST(SUM({distinct}{{0}}) AS DECIMAL({precision}, {argument.scale}))"
        return made(kind, f"SUM({distinct}{{0}})", argument, duck=duck, precision=precision, scale=argument.scale)
    return _average(argument, distinct)


def _average(argument: Term, distinct: str) -> Term:
    """AVG of a decimal: Spark's has four more digits, rounded HALF_UP, DuckDB's is a DOUBLE; so it is spelt out."""
    unscaled = f"CAST(SUM({distinct}CAST({{0}} * {10**argument.scale} AS BIGINT)) AS HUGEINT) * 10000"
    number = f"COUNT({distinct}{{0}})"
    rounded = f"sign({unscaled}) * ((2 * abs({unscaled}) + {number}) // (2 * nullif({number}, 0)))"
    scale = argument.scale + 4
    duck = f"(CAST(CAST({rounded} AS BIGINT) AS DECIMAL(18, 0)) * CAST(1E-{scale} AS DECIMAL({scale}, {scale})))"
    precision = argument.precision + 4
    return made("decimal", f"AVG({distinct}{{0}})", argument, duck=duck, precision=precision, scale=scale)


def _factor(draw: Draw, expressions: Expressions, kind: str) -> Term:
    """The argument of a SUM: often a product of columns, which may come from several tables."""
    if kind == "decimal" or chance(draw, 50):
        return expressions.any(kind, draw(st.integers(0, 2)))
    product = made(kind, "{0} * {1}", expressions.leaf(kind), expressions.leaf(kind))
    if chance(draw, 25):
        product = made(kind, "{0} * {1}", product, expressions.leaf(kind))
    return product


def _after(draw: Draw, expressions: Expressions, groups: Sequence[Term]) -> Text:
    """GROUP BY and HAVING."""
    spark = f" GROUP BY {', '.join(g.text.spark for g in groups)}" if groups else ""
    duck = f" GROUP BY {', '.join(g.text.duck for g in groups)}" if groups else ""
    if chance(draw, 20):
        kind = pick(draw, ("int", "int", "decimal"))
        value = aggregate(draw, expressions, kind)
        test = made("bool", f" HAVING {{0}} {pick(draw, ('>', '<=', '<>'))} 1", value)
        return Text(spark + test.text.spark, duck + test.text.duck)
    return Text(spark, duck)


# Streams


def _versions(draw: Draw, tables: Sequence[BaseTable], wild: bool) -> tuple[Version, ...]:
    present: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}
    versions = []
    for i in range(draw(st.integers(2, 7))):
        chosen = [table for table in tables if i == 0 or chance(draw, 40)] or [tables[-1]]
        version = []
        for table in chosen:
            updates: list[Update] = []
            for _ in range(draw(st.integers(2 if i == 0 else 1, 4))):
                updates += _updates(draw, table, present[table.name], wild)
            version.append((table.name, tuple(updates)))
        versions.append(tuple(version))
    return tuple(versions)


def _updates(draw: Draw, table: BaseTable, present: Counter[Row], wild: bool) -> list[Update]:
    """An insert, a delete, or the replacement of the row that has the key."""
    here = [row for row, m in present.items() if m]
    if here and chance(draw, 35):
        row = pick(draw, here)
        m = -present[row] if chance(draw, 70) or table.trusted else -1
        present[row] += m
        return [(row, m)]
    row = tuple(draw(_values(c, wild)) for c in table.columns)
    m = pick(draw, (1, 1, 2, -1)) if table.trusted else 1 if table.key else pick(draw, (1, 1, 2))
    updates = [(row, m)]
    if table.key_of(row) is not None:
        same = [one for one in here if table.key_of(one) == table.key_of(row)]
        updates = [*updates, *((one, -1) for one in same)]
        if chance(draw, 50):
            updates.reverse()
    for one, times in updates:
        present[one] += times
    return updates


def _values(column: TableColumn, wild: bool) -> st.SearchStrategy[Any]:
    domain = _DOMAINS[column.type] + (_WILD if wild and column.type == "DOUBLE" else ())
    # Every value twice, so that NULL is not the most frequent one.
    return st.sampled_from((*domain, *domain, None) if column.nullable else domain)
