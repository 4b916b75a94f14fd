"""Random subqueries: IN, EXISTS, ANY, ALL, each also with NOT, aggregates as values; most name a column of the
enclosing query, by an equality or another comparison, in WHERE, in the list, in HAVING or in a subquery of FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term, made
from tests.agreement.sql_from import Readable

_TERMS = ("in", "not in", "exists", "absent", "value", "any", "all")
_VALUES = ("in", "nulls", "exists", "count", "aggregate", "any", "all")


def subquery(choose: Choices, relations: Sequence[Readable], visible: Sequence[Term]) -> Term | None:
    """A term of WHERE; None if no column of a relation can be compared with a visible one."""
    if choose.chance(15):
        found = _threshold(choose, relations, visible)
    else:
        found = _subquery(choose, relations, visible, (*_TERMS, "having", "union", "row"))
    if found is None or choose.chance(60):
        return found
    if choose.chance(40):
        return made("bool", "NOT ({0})", found)
    return made("bool", "({0} OR {1})", found, Expressions(choose, list(visible)).predicate(depth=0))


def subquery_value(choose: Choices, relations: Sequence[Readable], visible: Sequence[Term]) -> Term | None:
    """An item of a SELECT list; None if no column can be compared."""
    return _subquery(choose, relations, visible, (*_VALUES, "listed", "nested", "having"))


def _threshold(choose: Choices, relations: Sequence[Readable], visible: Sequence[Term]) -> Term | None:
    """A sum over a range, or a column, compared with a limit; None if no column can be compared."""

    def columns(relation: Readable, alias: str) -> tuple[Term, list[Term]]:
        own = [replace(c, text=Text.same(f"{alias}.{c.text.spark}")) for c in relation.columns]
        return Term(Text(f"{relation.text.spark} AS {alias}", f"{relation.text.duck} AS {alias}"), ""), own

    def equal(own: Sequence[Term]) -> Term:
        pairs = [(a, b) for a in visible for b in own if a.kind == b.kind and a.kind != "bool"]
        if not pairs or not choose.chance(40):
            return made("", "")
        return made("", " AND {0} = {1}", *choose.pick(pairs)[::-1])

    def total(own: Sequence[Term]) -> Term | None:
        exact = [c for c in own if c.kind in ("int", "decimal")]
        form = choose.pick(("SUM({0})", "SUM({0})", "COALESCE(SUM({0}), 0)", "COUNT({0})", "COUNT(*)"))
        return made("", form, choose.pick(exact)) if exact else None

    source, own = columns(choose.pick(relations), "u")
    other, others = columns(choose.pick(relations), "w")
    pairs = [(a, b) for a in visible for b in own if a.kind == b.kind and a.kind != "bool"]
    summed, whole = total(own), total(others)
    if not pairs or summed is None or whole is None:
        return None
    point, place = choose.pick(pairs)
    sign = choose.pick(("<", "<=", ">", ">="))
    tie = equal(own)
    value = made("", f"(SELECT {{0}} FROM {{1}} WHERE {{2}} {sign} {{3}}{{4}})", summed, source, place, point, tie)
    limit = made("", str(choose.pick((0, 1, 3, 10))))
    if choose.chance(70):
        factor = choose.pick(("", "2 * ", "-1 * "))
        # The same equality makes the limit one of the same groups.
        same = replace(tie, text=Text(*(t.replace("u.", "w.") for t in (tie.text.spark, tie.text.duck))))
        tied = choose.chance(50) and other.text.spark.split(" AS ")[0] == source.text.spark.split(" AS ")[0]
        if not tied:
            same = made("", "")
        limit = made("", f"{factor}(SELECT {{0}} FROM {{1}} WHERE TRUE{{2}})", whole, other, same)
    exact = [c for c in visible if c.kind in ("int", "decimal")]
    if exact and choose.chance(30):
        value = choose.pick(exact)
    sides = (value, limit) if choose.chance(50) else (limit, value)
    return made("bool", f"{{0}} {choose.pick(('<', '<=', '>', '>='))} {{1}}", *sides)


def window(choose: Choices, visible: Sequence[Term]) -> Term | None:
    """A window function as an item of a SELECT list; None if no column can be compared."""
    ordered = [one for one in visible if one.kind in ("int", "date", "string")]
    if not ordered:
        return None
    by, at = choose.pick(ordered), choose.pick(ordered)
    order = choose.pick(("ORDER BY {1} NULLS FIRST", "ORDER BY {1} DESC NULLS LAST"))
    over = choose.pick(("()", "(PARTITION BY {0})", f"(PARTITION BY {{0}} {order})", f"({order})"))
    called = choose.pick(("COUNT({1})", "COUNT(*)", "MAX({1})"))
    if "ORDER" in over:
        called = choose.pick((called, "RANK()", "DENSE_RANK()"))
    return made(at.kind if called == "MAX({1})" else "int", f"{called} OVER {over}", by, at)


def _subquery(
    choose: Choices, relations: Sequence[Readable], visible: Sequence[Term], forms: tuple[str, ...]
) -> Term | None:
    inner: Readable = choose.pick(relations)
    own = [replace(c, text=Text.same(f"u.{c.text.spark}")) for c in inner.columns]
    pairs = [(a, b) for a in visible for b in own if a.kind == b.kind and a.kind != "bool"]
    if not pairs:
        return None
    outer, column = choose.pick(pairs)
    source = Term(Text(f"{inner.text.spark} AS u", f"{inner.text.duck} AS u"), "")
    tests = []
    if choose.chance(60):
        for _ in range(choose.pick((1, 1, 1, 2))):
            sign = choose.pick(("=", "=", "=", "=", "<>", "<", ">="))
            tests.append(made("bool", f"{{0}} {sign} {{1}}", *reversed(choose.pick(pairs))))
        if choose.chance(10):
            tests.append(Expressions(choose, list(visible)).predicate(depth=0))
    if choose.chance(40):
        tests.append(Expressions(choose, own).predicate(depth=0))
    where = made("", " WHERE " + " AND ".join(f"{{{i}}}" for i in range(len(tests))), *tests) if tests else made("", "")
    rest = made("", "".join(f" AND {{{i}}}" for i in range(len(tests))), *tests) if tests else made("", "")
    form = choose.pick(forms)
    if form == "in":
        return made("bool", "{0} IN (SELECT {1} FROM {2}{3})", outer, column, source, where)
    if form == "not in":
        there = made("bool", "{0} IS NOT NULL", column)
        where = "{0} IS NOT NULL AND {0} NOT IN (SELECT {1} FROM {2} WHERE {3}{4})"
        return made("bool", where, outer, column, source, there, rest)
    if form == "absent":
        both = made("bool", "{0} = {1}", column, outer)
        return made("bool", "NOT EXISTS (SELECT 1 FROM {0} WHERE {1}{2})", source, both, rest)
    if form in ("any", "all"):
        sign = choose.pick(("=", "<>", "<", ">="))
        return made("bool", f"{{0}} {sign} {form.upper()} (SELECT {{1}} FROM {{2}}{{3}})", outer, column, source, where)
    if form == "nulls":
        return made("bool", "{0} NOT IN (SELECT {1} FROM {2}{3})", outer, column, source, where)
    if form == "having":
        grouped = "EXISTS (SELECT {0} FROM {1}{2} GROUP BY {0} HAVING COUNT(*) > 1 OR MAX({0}) < {3})"
        return made("bool", grouped, column, source, where, outer)
    if form == "union":
        text = "{0} IN (SELECT {1} FROM {2}{3} UNION SELECT {1} FROM {2} WHERE {1} >= {0})"
        return made("bool", text, outer, column, source, where)
    if form == "row":
        first, second = choose.pick(pairs), choose.pick(pairs)
        rows = "({0}, {1}) IN (SELECT {2}, {3} FROM {4})"
        return made("bool", rows, first[0], second[0], first[1], second[1], source)
    if form == "listed":
        return made("int", "(SELECT COUNT(CASE WHEN {0} < {1} THEN 1 END) FROM {2}{3})", column, outer, source, where)
    if form == "nested":
        inside = "(SELECT SUM(n) FROM (SELECT {0}, COUNT(*) AS n FROM {1}{2} GROUP BY {0} HAVING {0} <> {3}) AS q)"
        return made("int", inside, column, source, where, outer)
    if form == "count":
        return made("int", "(SELECT COUNT({0}) FROM {1}{2})", column, source, where)
    if form == "aggregate":
        digits = {"precision": column.precision, "scale": column.scale}
        return made(column.kind, "(SELECT MAX({0}) FROM {1}{2})", column, source, where, **digits)
    if form == "exists":
        return made("bool", "EXISTS (SELECT 1 FROM {0}{1})", source, where)
    op, function = choose.pick(("=", "<", ">=")), choose.pick(("MIN", "MAX"))
    return made("bool", f"{{0}} {op} (SELECT {function}({{1}}) FROM {{2}}{{3}})", outer, column, source, where)
