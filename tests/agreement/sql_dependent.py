"""Random scenarios of subqueries, several levels deep, that name columns of any enclosing query: below outer joins, in
their ON, and in LATERAL.
"""

from __future__ import annotations

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_OPS = ("=", "<", "<", "<=", ">", ">=", "<>")
_TABLES = {"r": ("a", "b"), "s": ("a", "c"), "t": ("k", "v")}


def dependent_scenario(choose: Choices) -> Scenario:
    """One view over tables of two columns each."""
    tables = tuple(_table(choose, name, columns) for name, columns in _TABLES.items())
    return Scenario(tables, (NamedView("v1", _Queries(choose).view()),), versions(choose, tables, False))


def _table(choose: Choices, name: str, columns: tuple[str, ...]) -> BaseTable:
    key = columns[:1] if choose.chance(15) else ()
    made = tuple(TableColumn(c, "BIGINT", c not in key and choose.chance(50)) for c in columns)
    return BaseTable(name, made, key, choose.chance(5))


class _Queries:
    """Draws queries; each source has an alias of its own. ``own`` are the columns of a query, ``around`` those of the
    enclosing queries."""

    def __init__(self, choose: Choices) -> None:
        self.choose = choose
        self._sources = 0

    def view(self) -> Text:
        choose = self.choose
        source, own = self._source()
        text = Text.same(source)
        if choose.chance(30):
            text, own = self._joined(text, own, (), 2)
        item = self._value(own, (), 2) if choose.chance(60) else Text.same(choose.pick(own))
        tests = [self._test(own, (), 2)] if choose.chance(70) else []
        head = f"SELECT {choose.pick(own)} AS c1, {{0}} AS c2"
        return _texts(f"{head} FROM {{1}}{{2}}", item, text, _all(" WHERE ", tests))

    def _source(self) -> tuple[str, tuple[str, ...]]:
        self._sources += 1
        name, alias = self.choose.pick(tuple(_TABLES)), f"u{self._sources}"
        return f"{name} AS {alias}", tuple(f"{alias}.{one}" for one in _TABLES[name])

    def _from(self, around: tuple[str, ...], depth: int) -> tuple[Text, tuple[str, ...]]:
        source, own = self._source()
        text = Text.same(source)
        for _ in range(self.choose.pick((0, 1, 1, 1, 2))):
            text, own = self._joined(text, own, around, depth)
        return text, own

    def _joined(
        self, text: Text, own: tuple[str, ...], around: tuple[str, ...], depth: int
    ) -> tuple[Text, tuple[str, ...]]:
        choose = self.choose
        kinds = ("JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI", "LATERAL", "NEST")
        kind = choose.pick(kinds)
        if kind == "LATERAL":
            word = choose.pick(("JOIN LATERAL", "LEFT JOIN LATERAL"))
            self._sources += 1
            alias = f"u{self._sources}"
            inner = self._query((*own, *around), depth - 1, " AS l")
            return _texts(f"{{0}} {word} ({{1}}) AS {alias} ON TRUE", text, inner), (*own, f"{alias}.l")
        if kind == "NEST":
            source, columns = self._source()
            inner, columns = self._joined(Text.same(source), columns, around, depth - 1)
            other, kind = _texts("({0})", inner), choose.pick(("LEFT JOIN", "RIGHT JOIN", "JOIN"))
        else:
            source, columns = self._source()
            other = Text.same(source)
        tests = [Text.same(f"{choose.pick(own)} {choose.pick(_OPS)} {choose.pick(columns)}")]
        if around and choose.chance(60):
            tests.append(self._compared((*own, *columns), around))
        if depth > 0 and choose.chance(20):
            tests.append(self._test(choose.pick((own, columns)), around, depth - 1))
        if kind == "SEMI":
            word = choose.pick(("SEMI", "ANTI"))
            joined = Text(f"LEFT {word} JOIN", f"{word} JOIN")
            return _texts("{0} {1} {2}{3}", text, joined, other, _all(" ON ", tests)), own
        return _texts(f"{{0}} {kind} {{1}}{{2}}", text, other, _all(" ON ", tests)), (*own, *columns)

    def _compared(self, own: tuple[str, ...], around: tuple[str, ...]) -> Text:
        choose = self.choose
        a, b, op = choose.pick(own), choose.pick(around), choose.pick(_OPS)
        form = choose.pick(("{a} {op} {b}",) * 4 + ("{b} {op} {a}", "{a} {op} {b} + 1", "({a} = {b} OR {c} < {b})"))
        return Text.same(form.format(a=a, b=b, op=op, c=choose.pick(own)))

    def _query(self, around: tuple[str, ...], depth: int, name: str = "", call: bool | None = None) -> Text:
        """A query of one column. ``call``: whether the column is an aggregate."""
        choose = self.choose
        text, own = self._from(around, depth)
        tests = [self._compared(own, around) for _ in range(choose.pick((0, 1, 1, 2)))] if around else []
        if depth > 0 and choose.chance(50):
            tests.append(self._test(own, around, depth - 1))
        column = choose.pick(own)
        item = Text.same(column)
        if depth > 0 and choose.chance(20):
            item = self._value(own, around, depth - 1)
        tail = ""
        if choose.chance(50) if call is None else call:
            calls = ("COUNT({0})", "SUM({0})", "MIN({0})", "COUNT(*)", "COALESCE(MAX({0}), 5)")
            item = _texts(choose.pick(calls), item)
            if call is None and choose.chance(15):
                tail = f" GROUP BY {column}"
        elif choose.chance(15):
            item = _texts("DISTINCT {0}", item)
        return _texts(f"SELECT {{0}}{name} FROM {{1}}{{2}}{tail}", item, text, _all(" WHERE ", tests))

    def _value(self, own: tuple[str, ...], around: tuple[str, ...], depth: int) -> Text:
        return _texts("({0})", self._query((*own, *around), depth, call=True))

    def _test(self, own: tuple[str, ...], around: tuple[str, ...], depth: int) -> Text:
        choose = self.choose
        form = choose.pick(("exists", "absent", "in", "not in", "any", "value", "value"))
        a, op = choose.pick(own), choose.pick(_OPS)
        if form == "value":
            made = _texts(f"{a} {op} {{0}}", self._value(own, around, depth))
        else:
            query = self._query((*own, *around), depth)
            if form in ("exists", "absent"):
                made = _texts(f"{'NOT ' if form == 'absent' else ''}EXISTS ({{0}})", query)
            elif form == "any":
                made = _texts(f"{a} {op} {choose.pick(('ANY', 'ALL'))} ({{0}})", query)
            else:
                made = _texts(f"{a} {form.upper()} ({{0}})", query)
        if choose.chance(20):
            return _texts(f"({{0}} OR {a} IS NULL)", made)
        return made


def _texts(template: str, *parts: Text) -> Text:
    return Text(template.format(*(p.spark for p in parts)), template.format(*(p.duck for p in parts)))


def _all(before: str, tests: list[Text]) -> Text:
    if not tests:
        return Text.same("")
    return Text(*(before + " AND ".join(which) for which in zip(*((t.spark, t.duck) for t in tests), strict=True)))
