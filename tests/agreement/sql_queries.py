"""Random scenarios: views made of joins and aggregates over random tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.agreement.choices import Choices, drawn
from tests.agreement.random_tables import TYPES, table, versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, Text
from tests.agreement.sql_expressions import SUMMABLE, Expressions, Term, has_column, made


@dataclass(frozen=True)
class Readable:
    """A relation that FROM can name: its columns are terms whose text is the bare name."""

    text: Text
    columns: tuple[Term, ...]
    depth: int = 0


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Scenarios that shrink."""
    return scenario(drawn(draw))


def scenario(choose: Choices) -> Scenario:
    """Two or three tables, one to three views, some versions."""
    edges = choose.chance(40)
    tables = tuple(table(choose, f"t{i}", edges) for i in range(1, choose.between(2, 3) + 1))
    relations = [_readable(one) for one in tables]
    views = []
    for i in range(1, 1 + (choose.between(1, 3) if choose.chance(35) else 1)):
        # A later view mostly reads those before it.
        preferred = relations[len(tables) :] if i > 1 and choose.chance(80) else []
        text, columns = _query(choose, relations, preferred)
        views.append(NamedView(f"v{i}", text))
        relations.append(Readable(Text.same(f"v{i}"), columns, 1))
    wild = choose.chance(10)
    return Scenario(tables, tuple(views), versions(choose, tables, wild), duckdb=not wild)


def _readable(base: BaseTable) -> Readable:
    columns = []
    for column in base.columns:
        kind = next(k for k, types in TYPES.items() if column.type in types)
        precision, scale = (6, 2) if kind == "decimal" else (0, 0)
        columns.append(Term(Text.same(column.name), kind, precision, scale, column=True))
    return Readable(Text.same(base.name), tuple(columns))


# Queries


def _query(
    choose: Choices, relations: Sequence[Readable], preferred: Sequence[Readable]
) -> tuple[Text, tuple[Term, ...]]:
    """A SELECT or a UNION ALL of two; its text and its columns."""
    text, columns = _select(choose, relations, preferred, 4, None)
    if choose.chance(12):
        other, more = _select(choose, relations, preferred, 2, [c.kind for c in columns])
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
    choose: Choices,
    relations: Sequence[Readable],
    preferred: Sequence[Readable],
    most: int,
    kinds: Sequence[str] | None,
) -> tuple[Text, tuple[Term, ...]]:
    """``kinds``: those of the columns, where they are given."""
    source, visible, conjuncts = _from(choose, relations, preferred, most)
    expressions = Expressions(choose, visible)
    if choose.chance(35):
        conjuncts.append(expressions.predicate(depth=choose.between(0, 2)))
    where = made("bool", " WHERE " + " AND ".join(f"{{{i}}}" for i in range(len(conjuncts))), *conjuncts)
    tail = where.text if conjuncts else Text.same("")
    shape = choose.pick(("groups", "groups", "groups", "bag", "bag", "global"))
    if shape == "bag":
        items = _bag_items(choose, expressions, kinds)
        head = "SELECT DISTINCT" if choose.chance(20) else "SELECT"
        after = Text.same("")
    else:
        groups = _groups(choose, expressions) if shape == "groups" else []
        items = _aggregated_items(choose, expressions, groups, kinds)
        head = "SELECT"
        after = _after(choose, expressions, groups)
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
    choose: Choices, relations: Sequence[Readable], preferred: Sequence[Readable], most: int
) -> tuple[Text, list[Term], list[Term]]:
    """FROM's text, the columns it makes visible, and conjuncts that WHERE has to have."""
    count = min(most, choose.pick((1, 2, 2, 2, 3, 3, 4)))
    visible: list[Term] = []
    by_name: dict[str, list[Term]] = {}
    conjuncts: list[Term] = []
    spark, duck = "", ""
    chain = count > 2 and choose.chance(50)
    # JOIN binds tighter than the comma, so the two are not mixed.
    listed = choose.chance(25)
    for i in range(count):
        alias = "pqrs"[i]
        relation = _source(choose, relations, preferred if i == 0 else ())
        own = [_qualified(alias, c) for c in relation.columns]
        here = Text(f"{relation.text.spark} AS {alias}", f"{relation.text.duck} AS {alias}")
        if i == 0:
            spark, duck = here.spark, here.duck
        else:
            way = "where" if listed else choose.pick(("on", "on", "on", "using", "using", "where", "where", "cross"))
            shared = [c for c in relation.columns if _joins(c, by_name.get(c.text.spark, ()))]
            if way == "using" and shared:
                name = choose.pick(shared).text.spark
                spark += f" JOIN {here.spark} USING ({name})"
                duck += f" JOIN {here.duck} USING ({name})"
                for c in own:
                    if _bare(c) != name:
                        by_name.setdefault(_bare(c), []).append(c)
                visible += own
                continue
            equal = _link(visible, own) if chain else None
            equal = equal or _equality(choose, visible, own)
            if way in ("on", "using") and equal is not None:
                also = _equality(choose, visible, own) if choose.chance(20) else None
                on = equal if also is None else made("bool", "{0} AND {1}", equal, also)
                if choose.chance(15):
                    on = made("bool", "{0} AND {1}", on, Expressions(choose, [*visible, *own]).predicate(depth=0))
                spark += f" JOIN {here.spark} ON {on.text.spark}"
                duck += f" JOIN {here.duck} ON {on.text.duck}"
            else:
                comma = ", " if listed else " CROSS JOIN "
                spark, duck = f"{spark}{comma}{here.spark}", f"{duck}{comma}{here.duck}"
                if equal is not None and way != "cross":
                    conjuncts.append(equal)
        visible += own
        for c in own:
            by_name.setdefault(_bare(c), []).append(c)
    if count > 2 and choose.chance(50):
        last = [c for c in visible if c.text.spark.startswith("pqrs"[count - 1])]
        first = [c for c in visible if c.text.spark.startswith("p.")]
        closing = _link(last, first) if chain else None
        closing = closing or _equality(choose, first, last)
        if closing is not None:
            conjuncts.append(closing)
    if count > 1 and choose.chance(30):
        numbers = Expressions(choose, visible)
        kind = choose.pick(numbers.kinds(("int", "date", "string", "decimal", "double")) or ["int"])
        op = choose.pick(("<>", "<", "<="))
        conjuncts.append(made("bool", f"{{0}} {op} {{1}}", *numbers.two(kind)))
    return Text(spark, duck), visible, conjuncts


def _source(choose: Choices, relations: Sequence[Readable], preferred: Sequence[Readable]) -> Readable:
    if preferred:
        return choose.pick(preferred)
    relation: Readable = choose.pick(relations)
    if choose.chance(12) and relation.depth == 0:
        text, columns = _select(choose, [relation, relations[0]], (), 2, None)
        return Readable(Text(f"({text.spark})", f"({text.duck})"), columns, 1)
    return relation


def _qualified(alias: str, column: Term) -> Term:
    return replace(column, text=Text.same(f"{alias}.{column.text.spark}"))


def _bare(column: Term) -> str:
    return column.text.spark.split(".")[1]


def _equality(choose: Choices, left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """An equality of a column of each side, sometimes of an expression."""
    pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind != "bool"]
    integers = [(a, b) for a, b in pairs if a.kind == "int"]
    if not pairs:
        return None
    a, b = choose.pick(integers if integers and choose.chance(80) else pairs)
    if a.kind == "int" and choose.chance(8):
        return made("bool", "{0} + 1 = {1}", a, b)
    return made("bool", "{0} = {1}", a, b)


def _joins(column: Term, before: Sequence[Term]) -> bool:
    """Whether USING can name the column: one column before it has its name, and its kind."""
    return len(before) == 1 and before[0].kind == column.kind


def _link(left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """The equality that makes a chain, or closes it to a cycle: the second int of the last relation on the left
    is the first of the one on the right."""
    alias = left[-1].text.spark.split(".")[0]
    ends = [c for c in left if c.kind == "int" and c.text.spark.startswith(alias)]
    starts = [c for c in right if c.kind == "int"]
    if len(ends) < 2 or len(starts) < 2:
        return None
    return made("bool", "{0} = {1}", ends[1], starts[0])


def _bag_items(choose: Choices, expressions: Expressions, kinds: Sequence[str] | None) -> list[Term]:
    if kinds is not None:
        return [expressions.any(kind, 1) for kind in kinds]
    items = []
    for _ in range(choose.between(1, 4)):
        if choose.chance(65):
            items.append(choose.pick(expressions.columns))
        else:
            kind = choose.pick(
                [
                    *(expressions.kinds(("int", "decimal", "double", "string", "date", "bool")) or ["int"]),
                    "ratio",
                ]
            )
            items.append(expressions.any(kind, choose.between(1, 2)))
    return items


def _groups(choose: Choices, expressions: Expressions) -> list[Term]:
    groups: list[Term] = []
    for _ in range(choose.pick((1, 1, 2, 3))):
        column = choose.pick(expressions.columns)
        group = column
        if choose.chance(25):
            grown = expressions.any(column.kind, 1)
            # Constants would be read as positions of the select list.
            group = grown if has_column(grown) else column
        groups.append(group)
    return groups


def _aggregated_items(
    choose: Choices, expressions: Expressions, groups: Sequence[Term], kinds: Sequence[str] | None
) -> list[Term]:
    if kinds is not None:
        return [_item_of_kind(choose, expressions, groups, kind) for kind in kinds]
    items = [group for group in groups if choose.chance(85)]
    for _ in range(choose.between(0 if items else 1, 3)):
        item = aggregate(choose, expressions)
        if item.kind == "int" and choose.chance(15):
            others = [g for g in groups if g.kind == "int"]
            other = choose.pick(others) if others else aggregate(choose, expressions, "int")
            item = made("int", "({0} + {1})", item, other)
        items.append(item)
    return items


def _item_of_kind(choose: Choices, expressions: Expressions, groups: Sequence[Term], kind: str) -> Term:
    found = [g for g in groups if g.kind == kind]
    if found and choose.chance(50):
        return choose.pick(found)
    return aggregate(choose, expressions, kind)


def aggregate(choose: Choices, expressions: Expressions, kind: str | None = None) -> Term:
    """An aggregate, of a kind where one is given."""
    if kind is None:
        kind = choose.pick(("int", "int", "decimal", "double", "ratio", "string", "date", "bool"))
    if kind == "ratio":
        return made("ratio", "AVG({0})", expressions.any(choose.pick(("int", "double")), 1))
    functions = ["MIN", "MAX"]
    if kind == "int":
        functions += ["COUNT", "COUNT", "COUNT", "SUM", "SUM", "SUM", "PAIRS"]
    elif kind in SUMMABLE:
        functions += ["SUM", "SUM", "SUM", "AVG"] if kind == "decimal" else ["SUM", "SUM", "SUM"]
    function = choose.pick(functions)
    distinct = "DISTINCT " if choose.chance(20) else ""
    if function == "COUNT":
        if choose.chance(40):
            return made("int", "COUNT(*)")
        of = choose.pick([c.kind for c in expressions.columns])
        return made("int", f"COUNT({distinct}{{0}})", expressions.any(of, 1))
    if function == "PAIRS":
        a, b = choose.pick(expressions.columns), choose.pick(expressions.columns)
        known = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN ({0}, {1}) END"
        return made("int", f"COUNT({distinct}{{0}}, {{1}})", a, b, duck=f"COUNT({distinct}{known})")
    argument = _factor(choose, expressions, kind) if function == "SUM" else expressions.any(kind, 1)
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


def _factor(choose: Choices, expressions: Expressions, kind: str) -> Term:
    """The argument of a SUM: often a product of columns, which may come from several tables."""
    if kind == "decimal" or choose.chance(50):
        return expressions.any(kind, choose.between(0, 2))
    product = made(kind, "{0} * {1}", expressions.leaf(kind), expressions.leaf(kind))
    if choose.chance(25):
        product = made(kind, "{0} * {1}", product, expressions.leaf(kind))
    return product


def _after(choose: Choices, expressions: Expressions, groups: Sequence[Term]) -> Text:
    """GROUP BY and HAVING."""
    spark = f" GROUP BY {', '.join(g.text.spark for g in groups)}" if groups else ""
    duck = f" GROUP BY {', '.join(g.text.duck for g in groups)}" if groups else ""
    if choose.chance(20):
        kind = choose.pick(("int", "int", "decimal"))
        value = aggregate(choose, expressions, kind)
        test = made("bool", f" HAVING {{0}} {choose.pick(('>', '<=', '<>'))} 1", value)
        return Text(spark + test.text.spark, duck + test.text.duck)
    return Text(spark, duck)
