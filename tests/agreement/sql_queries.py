"""Random scenarios: views made of joins and aggregates over random tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.agreement.choices import Choices, drawn
from tests.agreement.random_tables import TYPES, table, versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, Text
from tests.agreement.sql_aggregates import aggregate, extreme_of_sum, joined_texts
from tests.agreement.sql_cofactors import cofactor_item, sums_item
from tests.agreement.sql_expressions import KINDS, Expressions, Term, has_column, made, read
from tests.agreement.sql_from import Readable, from_clause
from tests.agreement.sql_grouping_sets import NOT_EMPTY, grouping_call, grouping_sets
from tests.agreement.sql_subqueries import subquery, subquery_value, window


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
        digits = column.type.removeprefix("DECIMAL(").removesuffix(")").split(", ") if kind == "decimal" else (0, 0)
        columns.append(Term(Text.same(column.name), kind, int(digits[0]), int(digits[1]), column=True))
    return Readable(Text.same(base.name), tuple(columns))


# Queries


def _query(
    choose: Choices, relations: Sequence[Readable], preferred: Sequence[Readable]
) -> tuple[Text, tuple[Term, ...]]:
    """A SELECT, or a set operation on two, perhaps over a WITH; returns its text and its columns."""
    if choose.chance(8) and all(r.text.spark != "w" for r in relations):
        inner, inside = _select(choose, relations, (), 2, None)
        text, columns = _query(choose, [*relations, Readable(Text.same("w"), inside, 1)], ())
        return Text(f"WITH w AS ({inner.spark}) {text.spark}", f"WITH w AS ({inner.duck}) {text.duck}"), columns
    text, columns = _select(choose, relations, preferred, 4, None)
    # A matrix has several columns; so have sums. The other side would need the same number.
    if choose.chance(12) and not any(word in text.spark for word in ("COFACTOR(", "_MATRIX(", " AS product0")):
        other, more = _select(choose, relations, preferred, 2, [c.kind for c in columns])
        union = choose.pick(("UNION ALL", "UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"))
        text = Text(f"{text.spark} {union} {other.spark}", f"{text.duck} {union} {other.duck}")
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
    """``kinds``: the kinds of the columns, if given."""
    count = min(most, choose.pick((1, 2, 2, 2, 3, 3, 4)))
    sources = [_source(choose, relations, preferred if i == 0 else ()) for i in range(count)]
    source, visible, conjuncts = from_clause(choose, sources)
    expressions = Expressions(choose, visible)
    if choose.chance(35):
        conjuncts.append(expressions.predicate(depth=choose.between(0, 2)))
    strings = [column for column in visible if column.kind == "string"]
    if strings and choose.chance(15):
        # Texts need no guard of their own if WHERE keeps only texts that are values.
        kind = choose.pick(("int", "int", "decimal", "date", "timestamp", "bool"))
        test, value = read(choose, kind, choose.pick(strings))
        conjuncts.append(test)
        expressions = Expressions(choose, [*visible, value, value])
    plain = [one for one in relations if one.depth == 0]
    if plain and choose.chance(15):
        # A column without a qualifier may be one of the subquery's own.
        asked = subquery(choose, plain, [c for c in visible if "." in c.text.spark])
        conjuncts += [] if asked is None else [asked]
    where = made("bool", " WHERE " + " AND ".join(f"{{{i}}}" for i in range(len(conjuncts))), *conjuncts)
    tail = where.text if conjuncts else Text.same("")
    shape = choose.pick(("groups", "groups", "groups", "bag", "bag", "global"))
    matrices: list[Term] = []
    if shape == "bag":
        items = _bag_items(choose, expressions, kinds)
        asked = subquery_value(choose, plain, visible) if plain and kinds is None and choose.chance(10) else None
        items += [] if asked is None else [asked]
        over = window(choose, visible) if kinds is None and choose.chance(10) else None
        items += [] if over is None else [over]
        head = "SELECT DISTINCT" if choose.chance(20) else "SELECT"
        after = Text.same("")
    else:
        groups = _groups(choose, expressions) if shape == "groups" else []
        several = bool(groups) and choose.chance(25)
        if several:
            groups = list({group.text.spark: group for group in groups}.values())
        items = _aggregated_items(choose, expressions, groups, kinds)
        matrices = [cofactor_item(choose, expressions)] if kinds is None and choose.chance(8) else []
        matrices += [sums_item(choose, expressions)] if kinds is None and choose.chance(4) else []
        if several and kinds is None and choose.chance(40):
            items.append(grouping_call(choose, groups))
        if kinds is None and choose.chance(10):
            items.append(joined_texts(choose, expressions))
        head = "SELECT DISTINCT" if choose.chance(6) else "SELECT"
        after = _after(choose, expressions, groups, tuple(items[: len(groups)]) == tuple(groups), several)
    columns = tuple(replace(item, text=Text.same(f"c{i}"), column=True) for i, item in enumerate(items, 1))
    # No expression reads the columns of a matrix, which come last, but joins find their names. Two relations have them
    # in common only if they have the first columns in common, which stand for the others.
    names = [*(f"c{len(items) + i}" for i in range(1, len(matrices) + 1)), "m0", "product0"] if matrices else []
    columns += tuple(Term(Text.same(name), "matrix") for name in names)
    items += matrices
    texts = [
        f"{head} {', '.join(f'{one} AS c{i}' for i, one in enumerate(which, 1))} FROM {_from}{where_}{after_}"
        for which, _from, where_, after_ in (
            ([i.text.spark for i in items], source.spark, tail.spark, after.spark),
            ([i.text.duck for i in items], source.duck, tail.duck, after.duck),
        )
    ]
    return Text(*texts), columns


def _source(choose: Choices, relations: Sequence[Readable], preferred: Sequence[Readable]) -> Readable:
    if preferred:
        return choose.pick(preferred)
    relation: Readable = choose.pick(relations)
    if choose.chance(12) and relation.depth == 0:
        text, columns = _select(choose, [relation, relations[0]], (), 2, None)
        return Readable(Text(f"({text.spark})", f"({text.duck})"), columns, 1)
    return relation


def _bag_items(choose: Choices, expressions: Expressions, kinds: Sequence[str] | None) -> list[Term]:
    if kinds is not None:
        return [expressions.any(kind, 1) for kind in kinds]
    items = []
    for _ in range(choose.between(1, 4)):
        if choose.chance(65):
            items.append(choose.pick(expressions.columns))
        else:
            kind = choose.pick([*(expressions.kinds(KINDS) or ["int"]), "ratio"])
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
    if choose.chance(8):
        return [*items, *(extreme_of_sum(choose, expressions) for _ in range(choose.between(1, 2)))]
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


def _after(choose: Choices, expressions: Expressions, groups: Sequence[Term], first: bool, several: bool) -> Text:
    """GROUP BY and HAVING. ``first``: the groups are the first items, so positions can stand for them; ``several``:
    several grouping sets."""
    by = Text(", ".join(g.text.spark for g in groups), ", ".join(g.text.duck for g in groups))
    if several:
        by = grouping_sets(choose, groups, first)
    elif first and choose.chance(10):
        by = Text("ALL", by.duck)
    elif first and choose.chance(15):
        by = Text.same(", ".join(str(i) for i in range(1, len(groups) + 1)))
    spark = f" GROUP BY {by.spark}" if by.spark else ""
    duck = f" GROUP BY {by.duck}" if by.duck else ""
    if choose.chance(20):
        kind = choose.pick(("int", "int", "decimal"))
        value = aggregate(choose, expressions, kind)
        test = made("bool", f" HAVING {{0}} {choose.pick(('>', '<=', '<>'))} 1", value)
        return Text(spark + test.text.spark, duck + test.text.duck + (f" AND {NOT_EMPTY}" if several else ""))
    return Text(spark, duck + (f" HAVING {NOT_EMPTY}" if several else ""))
