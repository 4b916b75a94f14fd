"""Random scenarios of subqueries in every place of a SELECT, nested, and correlated by equalities, ranges and any
predicate; of range joins; and of thresholds over sums of ranges, as in order books."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_OPS = ("=", "=", "=", "<", "<=", ">", ">=", "<>")
_RANGES = ("<", "<=", ">", ">=")


def places_scenario(choose: Choices, refused: bool = True) -> Scenario:
    """One view, or two of which the second also reads the first. ``refused``: a scalar subquery may return several
    rows; then the batch is refused."""
    tables = (
        _table(choose, "r", ("a", "b", "x"), 20),
        _table(choose, "s", ("a", "b", "y"), 20),
        _table(choose, "t", ("k", "v"), 60),
    )
    relations = [_Relation(t.name, tuple(c.name for c in t.columns), bool(t.key) and not t.trusted) for t in tables]
    views = []
    for i in range(1, 3 if choose.chance(25) else 2):
        query = _Queries(choose, relations, refused)
        text, columns = query.select()
        views.append(NamedView(f"v{i}", text))
        if choose.chance(70) and columns:
            relations = [*relations[1:], _Relation(f"v{i}", columns)]
    return Scenario(tables, tuple(views), versions(choose, tables, False))


def range_scenario(choose: Choices) -> Scenario:
    """Bids and asks: joins by ranges, sums over ranges, and rows selected by such sums."""
    price = choose.pick(("DECIMAL(4, 1)", "DECIMAL(4, 1)", "BIGINT", "DOUBLE"))
    tables = tuple(
        BaseTable(
            name,
            (
                TableColumn("i", "BIGINT", choose.chance(20)),
                TableColumn("p", price, choose.chance(25)),
                TableColumn("n", "INT", choose.chance(25)),
            ),
            trusted=choose.chance(15),
        )
        for name in ("bids", "asks")
    )
    views = tuple(NamedView(f"v{i}", Text.same(_book(choose))) for i in range(1, 3 if choose.chance(20) else 2))
    return Scenario(tables, views, versions(choose, tables, False))


def _table(choose: Choices, name: str, columns: tuple[str, ...], keyed: int) -> BaseTable:
    key = columns[:1] if choose.chance(keyed) else ()
    made = tuple(
        TableColumn(c, choose.pick(("BIGINT", "INT")), c not in key and choose.chance(50)) for c in columns
    )
    return BaseTable(name, made, key, choose.chance(10))


@dataclass(frozen=True)
class _Relation:
    """``keyed``: its first column is a key."""

    name: str
    columns: tuple[str, ...]
    keyed: bool = False


@dataclass(frozen=True)
class _Around:
    """The columns that an expression may name, as (alias, column); ``around``: those of the enclosing queries."""

    own: tuple[str, ...]
    around: tuple[str, ...] = ()


class _Queries:
    """Draws SELECTs; each subquery has aliases of its own."""

    def __init__(self, choose: Choices, relations: list[_Relation], refused: bool) -> None:
        self.choose = choose
        self.relations = relations
        self._refused = refused
        self._aliases = 0

    def select(self) -> tuple[Text, tuple[str, ...]]:
        """A query and the names of its columns."""
        choose = self.choose
        source, scope = self._from()
        tests = []
        if choose.chance(55):
            tests.append(self._test(scope, 2))
        if choose.chance(25):
            tests.append(self._simple(scope))
        where = _and(tests, " WHERE ")
        shape = choose.pick(("bag", "bag", "groups", "groups", "global", "by subquery", "first"))
        if shape == "bag":
            items = [self._item(scope, 2, 45) for _ in range(choose.between(1, 3))]
            head, tail = "SELECT DISTINCT " if choose.chance(20) else "SELECT ", Text.same("")
            windowed = choose.chance(15)
            if windowed:
                items.append(self._window(scope.own, of_rows=scope))
            if choose.chance(8):
                # Equal rows have their numbers in any order: two numbers of them would not belong together.
                test = self._window(scope.own, not windowed, scope)
                compared = f"{choose.pick((*_RANGES, '<=', '='))} {choose.pick((1, 2, 2, 3))}"
                tail = _texts(f" QUALIFY {{0}} {compared}", test)
        elif shape == "first":
            items = [Text.same(choose.pick(scope.own)), self._item(scope, 2, 60)]
            head = "SELECT "
            limit = f"LIMIT {choose.between(1, 4)}"
            names = ("1", "2") if choose.chance(50) else ("2", "1")
            tail = Text(
                f" ORDER BY {', '.join(names)} {limit}",
                " ORDER BY " + ", ".join(f"{n} ASC NULLS FIRST" for n in names) + f" {limit}",
            )
        else:
            groups: list[Text] = []
            if shape == "groups":
                chosen = [choose.pick(scope.own) for _ in range(choose.between(1, 2))]
                groups = [Text.same(column) for column in dict.fromkeys(chosen)]
            elif shape == "by subquery":
                groups = [self._item(scope, 1, 80)]
                if not _names(groups[0], scope.own):
                    groups = [Text.same(choose.pick(scope.own))]
            items = [*groups, *(self._aggregate(scope) for _ in range(choose.between(1, 2)))]
            inner = _Around(tuple(g.spark for g in groups if shape == "groups"))
            if inner.own and choose.chance(40):
                items.append(self._scalar(inner, 1))
            elif inner.own and choose.chance(15):
                call = f"COUNT({choose.pick(scope.own)})"
                items.append(self._window((*inner.own, call)))
            by = ", ".join(g.spark for g in groups), ", ".join(g.duck for g in groups)
            if choose.chance(30):
                by = (", ".join(str(i) for i, _ in enumerate(groups, 1)),) * 2
            tail = Text(*(f" GROUP BY {one}" for one in by)) if groups else Text.same("")
            if choose.chance(35):
                having = self._having(scope, inner)
                tail = Text(f"{tail.spark} HAVING {having.spark}", f"{tail.duck} HAVING {having.duck}")
            head = "SELECT "
        names = tuple(f"c{i}" for i in range(1, len(items) + 1))
        listed = [
            ", ".join(f"{one} AS {name}" for one, name in zip(which, names, strict=True))
            for which in ([i.spark for i in items], [i.duck for i in items])
        ]
        spark = f"{head}{listed[0]} FROM {source.spark}{where.spark}{tail.spark}"
        duck = f"{head}{listed[1]} FROM {source.duck}{where.duck}{tail.duck}"
        if shape != "first" and choose.chance(10):
            kind = choose.pick(("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"))
            relation = choose.pick(self.relations)
            other = ", ".join(choose.pick(relation.columns) for _ in names)
            return Text(*(f"{one} {kind} SELECT {other} FROM {relation.name}" for one in (spark, duck))), names
        return Text(spark, duck), names

    # FROM

    def _from(self) -> tuple[Text, _Around]:
        choose = self.choose
        relation = choose.pick(self.relations)
        text, own = Text.same(f"{relation.name} AS p"), tuple(f"p.{c}" for c in relation.columns)
        for alias in "qo"[: choose.pick((0, 0, 1, 1, 1, 2))]:
            kind = choose.pick(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LATERAL", "SUB"))
            other = choose.pick(self.relations)
            columns = tuple(f"{alias}.{c}" for c in other.columns)
            if kind == "LATERAL":
                word = choose.pick(("JOIN LATERAL", "LEFT JOIN LATERAL"))
                inner = self._lateral(_Around(own))
                on = f"{alias}.l {choose.pick(_OPS)} {choose.pick(own)}" if choose.chance(20) else "TRUE"
                text = _texts(f"{{0}} {word} ({{1}}) AS {alias} ON {on}", text, inner)
                own = (*own, f"{alias}.l")
                continue
            if kind == "SUB":
                inner = self._derived()
                text = _texts(f"{{0}} LEFT JOIN ({{1}}) AS {alias} ON {alias}.d = {choose.pick(own)}", text, inner)
                own = (*own, f"{alias}.d", f"{alias}.e")
                continue
            tests = [Text.same(f"{choose.pick(own)} {choose.pick(_OPS)} {choose.pick(columns)}")]
            if choose.chance(30):
                # FULL JOIN takes subqueries that name one of its sides.
                scope = _Around(choose.pick((own, columns)) if kind == "FULL JOIN" else (*own, *columns))
                tests.append(self._test(scope, 1) if choose.chance(60) else self._simple(scope))
            text = _texts(f"{{0}} {kind} {other.name} AS {alias}{{1}}", text, _and(tests, " ON "))
            own = (*own, *columns)
        return text, _Around(own)

    def _derived(self) -> Text:
        """A subquery of FROM with columns d and e, which contains another subquery."""
        relation, alias = self._source()
        scope = _Around(tuple(f"{alias}.{c}" for c in relation.columns))
        item = self._scalar(scope, 1) if self.choose.chance(60) else Text.same(self.choose.pick(scope.own))
        where = _and([self._test(scope, 1)] if self.choose.chance(50) else [], " WHERE ")
        return _texts(
            f"SELECT {self.choose.pick(scope.own)} AS d, {{0}} AS e FROM {relation.name} AS {alias}{{1}}", item, where
        )

    def _lateral(self, outer: _Around) -> Text:
        relation, alias = self._source()
        scope = _Around(tuple(f"{alias}.{c}" for c in relation.columns), outer.own)
        item = self._call(scope) if self.choose.chance(50) else self.choose.pick(scope.own)
        where = self._where(scope, 0, correlated=True)
        if item in scope.own and self.choose.chance(50):
            where = _texts("{0} {1}", where, self._first(item))
        elif item not in scope.own and self.choose.chance(20):
            where = _texts(f"{{0}} HAVING {self._call(scope)} {self.choose.pick(_OPS)} 1", where)
        return _texts(f"SELECT {item} AS l FROM {relation.name} AS {alias}{{0}}", where)

    # Expressions

    def _item(self, scope: _Around, depth: int, percent: int) -> Text:
        """An integer: a column, or an expression with a subquery."""
        choose = self.choose
        if not choose.chance(percent):
            return Text.same(choose.pick(scope.own))
        form = choose.pick(("scalar", "scalar", "scalar", "coalesce", "case", "test", "sum"))
        if form == "test":
            return _texts("CASE WHEN {0} THEN 1 ELSE 0 END", self._test(scope, depth))
        value = self._scalar(scope, depth)
        if form == "coalesce":
            return _texts(f"COALESCE({{0}}, {choose.pick((0, 7))})", value)
        if form == "case":
            return _texts(f"CASE WHEN {{0}} THEN {{1}} ELSE {choose.pick(scope.own)} END", self._simple(scope), value)
        if form == "sum":
            return _texts(f"{{0}} + {choose.pick(scope.own)}", value)
        return value

    def _aggregate(self, scope: _Around) -> Text:
        choose = self.choose
        if choose.chance(30):
            return Text.same("COUNT(*)")
        argument = self._item(scope, 1, 25)
        function = choose.pick(("SUM", "COUNT", "MIN", "MAX", "COUNT(DISTINCT"))
        rows = Text.same("")
        if choose.chance(12):
            rows = _texts(" FILTER (WHERE {0})", self._test(scope, 1))
        if function.endswith("DISTINCT"):
            return _texts("COUNT(DISTINCT {0}){1}", argument, rows)
        return _texts(f"{function}({{0}}){{1}}", argument, rows)

    def _window(self, columns: tuple[str, ...], numbered: bool = True, of_rows: _Around | None = None) -> Text:
        """A window function; NULL is ordered by Spark's default. ``columns``: the columns that distinguish rows, in
        order. ``of_rows``: the columns that a subquery within it may name."""
        choose = self.choose
        by, at, of = (choose.pick(columns) for _ in range(3))
        value = Text.same(of)
        if of_rows is not None and choose.chance(30):
            value = self._scalar(of_rows, 1)
            by, of = choose.pick(((by, "{0}"), ("{0}", of), ("{0}", "{0}")))
        order = choose.pick((f"ORDER BY {at} ASC NULLS FIRST", f"ORDER BY {at} DESC NULLS LAST"))
        partition = f"PARTITION BY {by}"
        over = choose.pick(("", partition, f"{partition} {order}", f"{partition} {order}", order))
        calls = ["COUNT(*)", f"SUM({of})", f"MAX({of})", f"COUNT({of})"]
        if "ORDER" in over:
            calls += ["RANK()", "DENSE_RANK()"]
            calls += ["ROW_NUMBER()", f"LAG({of})", f"LEAD({of}, 2, 7)"] if numbered else []
        call = choose.pick(calls)
        if call.startswith(("ROW_NUMBER", "LAG", "LEAD")):
            over += "".join(f", {one} ASC NULLS FIRST" for one in columns if one != at)
        return _texts(f"{call} OVER ({over})", value)

    def _first(self, column: str) -> Text:
        """ORDER BY ... LIMIT; only the column is shown, so ties are equal rows."""
        order = self.choose.pick(("ASC NULLS FIRST", "DESC NULLS LAST"))
        return Text.same(f"ORDER BY {column} {order} LIMIT {self.choose.pick((1, 2))}")

    def _having(self, scope: _Around, groups: _Around) -> Text:
        choose = self.choose
        value = Text.same(choose.pick(("COUNT(*)", f"SUM({choose.pick(scope.own)})", f"MAX({choose.pick(scope.own)})")))
        if choose.chance(30):
            return _texts("{0} > 1", value)
        return _texts(f"{{0}} {choose.pick(_RANGES)} {{1}}", value, self._scalar(groups, 1))

    def _simple(self, scope: _Around) -> Text:
        """A predicate without a subquery."""
        choose = self.choose
        a, b = choose.pick(scope.own), choose.pick(scope.own)
        return Text.same(
            choose.pick(
                (
                    f"{a} > 0",
                    f"{a} <> {b}",
                    f"{a} IS NULL",
                    f"{a} IS NOT NULL",
                    f"{a} < {b} + 1",
                    f"({a} = 1 OR {b} = 0)",
                    f"COALESCE({a}, 1) = 1",
                )
            )
        )

    def _test(self, scope: _Around, depth: int) -> Text:
        """A predicate with a subquery."""
        choose = self.choose
        if choose.chance(15):
            return _texts("NOT ({0})", self._atom(scope, depth))
        if choose.chance(15):
            return _texts("({0} OR {1})", self._atom(scope, depth), self._simple(scope))
        if choose.chance(8):
            return _texts("({0} OR {1})", self._atom(scope, depth), self._atom(scope, 0))
        if choose.chance(8):
            return self._rows_in(scope, depth)
        return self._atom(scope, depth)

    def _atom(self, scope: _Around, depth: int) -> Text:
        choose = self.choose
        form = choose.pick(("exists", "absent", "in", "not in", "any", "all", "value", "value", "null", "between"))
        own = choose.pick(scope.own) if scope.own else "1"
        if form in ("value", "null", "between"):
            value = self._scalar(scope, depth)
            if form == "null":
                return _texts(f"{{0}} IS {choose.pick(('', 'NOT '))}NULL", value)
            if form == "between":
                return _texts(f"{own} BETWEEN {{0}} AND 2", value)
            return _texts(f"{own} {choose.pick(_OPS)} {{0}}", value)
        relation, alias = self._source()
        inner = _Around(tuple(f"{alias}.{c}" for c in relation.columns), scope.own)
        where = self._where(inner, depth)
        if form in ("exists", "absent"):
            word = "EXISTS" if form == "exists" else "NOT EXISTS"
            listed = "COUNT(*)" if choose.chance(5) else "1"
            return _texts(f"{word} (SELECT {listed} FROM {relation.name} AS {alias}{{0}})", where)
        column = self._call(inner) if choose.chance(10) else choose.pick(inner.own)
        if form in ("in", "not in"):
            return _texts(f"{own} {form.upper()} (SELECT {column} FROM {relation.name} AS {alias}{{0}})", where)
        word = choose.pick(("ANY", "SOME")) if form == "any" else "ALL"
        op = choose.pick(("=", "<>", *_RANGES))
        return _texts(
            f"{own} {op} {{1}} (SELECT {column} FROM {relation.name} AS {alias}{{0}})",
            where,
            Text(word, "ALL" if word == "ALL" else "ANY"),
        )

    def _rows_in(self, scope: _Around, depth: int) -> Text:
        """Rows IN a subquery; DuckDB compares rows with NULL fields in another way, so its text spells it out."""
        choose = self.choose
        if len(scope.own) < 2:
            return self._atom(scope, depth)
        relation, alias = self._source()
        inner = _Around(tuple(f"{alias}.{c}" for c in relation.columns), scope.own)
        where = self._where(inner, 0)
        a, b, c, d = (choose.pick(one) for one in (scope.own, scope.own, inner.own, inner.own))
        rest = f" AND {where.duck.removeprefix(' WHERE ')}" if where.duck else ""
        source = f"FROM {relation.name} AS {alias}"
        if choose.chance(50):
            return Text(
                f"({a}, {b}) IN (SELECT {c}, {d} {source}{where.spark})",
                f"EXISTS (SELECT 1 {source} WHERE {a} = {c} AND {b} = {d}{rest})",
            )
        return Text(
            f"({a}, {b}) NOT IN (SELECT {c}, {d} {source}{where.spark})",
            f"NOT EXISTS (SELECT 1 {source} WHERE ({a} = {c} AND {b} = {d}) IS NOT FALSE{rest})",
        )

    def _scalar(self, scope: _Around, depth: int) -> Text:
        """A scalar subquery, mostly of an aggregate."""
        choose = self.choose
        relation, alias = self._source()
        inner = _Around(tuple(f"{alias}.{c}" for c in relation.columns), scope.own)
        source = f"FROM {relation.name} AS {alias}"
        if scope.own and choose.chance(12):
            # The row of a key, or one of possibly several rows: then the batch is refused.
            keyed = [one for one in self.relations if one.keyed]
            if keyed and choose.chance(70):
                one = choose.pick(keyed)
                test = f"{alias}.{one.columns[0]} = {choose.pick(scope.own)}"
                if choose.chance(25):
                    test += f" AND {choose.pick((alias + '.' + one.columns[1], *scope.own))} > 0"
                item = choose.pick(("{}", "{}", "{} + 1", "COALESCE({}, 5)")).format(f"{alias}.{one.columns[1]}")
                return Text.same(f"(SELECT {item} FROM {one.name} AS {alias} WHERE {test})")
            if self._refused:
                by = " AND ".join(f"{c} = {choose.pick(scope.own)}" for c in inner.own[:2])
                return Text.same(f"(SELECT {inner.own[-1]} {source} WHERE {by})")
        if self._refused and choose.chance(8):
            column = choose.pick(inner.own)
            first = Text.same(f"ORDER BY {column} {choose.pick(('ASC NULLS FIRST', 'DESC NULLS LAST'))} LIMIT 1")
            return _texts(f"(SELECT {column} {source}{{0}} {{1}})", self._where(inner, 0), first)
        if scope.own and choose.chance(8):
            other, beside = self._source()
            columns = tuple(f"{beside}.{c}" for c in other.columns)
            on = f"{choose.pick(inner.own)} = {choose.pick(columns)}"
            on += f" AND {choose.pick((*inner.own, *columns))} {choose.pick(_OPS)} {choose.pick(scope.own)}"
            kind = choose.pick(("LEFT JOIN", "FULL JOIN", "FULL JOIN"))
            source = f"{source} {kind} {other.name} AS {beside} ON {on}"
            inner = _Around((*inner.own, *columns), scope.own)
        call = self._call(inner)
        if choose.chance(15):
            call = choose.pick((f"COALESCE({call}, 5)", f"2 * {call}", f"{call} + 1"))
        return _texts(f"(SELECT {call} {source}{{0}})", self._where(inner, depth))

    def _call(self, scope: _Around) -> str:
        column = self.choose.pick(scope.own)
        functions = ("COUNT(*)", "COUNT({})", "SUM({})", "SUM({})", "MIN({})", "MAX({})", "COUNT(DISTINCT {})")
        return self.choose.pick(functions).format(column)

    def _where(self, scope: _Around, depth: int, correlated: bool = False) -> Text:
        """WHERE of a subquery: mostly correlated, sometimes with a subquery of its own."""
        choose = self.choose
        tests = []
        if scope.around and (correlated or choose.chance(70)):
            for _ in range(choose.pick((1, 1, 1, 2))):
                own, outer = choose.pick(scope.own), choose.pick(scope.around)
                form = choose.pick(("plain",) * 9 + ("plus", "between", "or", "around"))
                if form == "plain":
                    pair = (own, outer) if choose.chance(70) else (outer, own)
                    tests.append(f"{pair[0]} {choose.pick(_OPS)} {pair[1]}")
                elif form == "plus":
                    tests.append(f"{own} {choose.pick(_OPS)} {outer} + 1")
                elif form == "between":
                    tests.append(f"{own} BETWEEN {outer} AND {outer} + 1")
                elif form == "around":
                    tests.append(f"{outer} {choose.pick(('> 0', '<= 1', 'IS NOT NULL', 'IS NULL'))}")
                else:
                    tests.append(f"({own} = {outer} OR {choose.pick(scope.own)} < {outer})")
        found = [Text.same(one) for one in tests]
        if choose.chance(25):
            found.append(self._simple(replace(scope, around=())))
        if depth > 1 and choose.chance(25):
            found.append(self._test(replace(scope, around=()), depth - 1))
        return _and(found, " WHERE ")

    def _source(self) -> tuple[_Relation, str]:
        self._aliases += 1
        return self.choose.pick(self.relations), f"u{self._aliases}"


def _texts(template: str, *parts: Text) -> Text:
    return Text(template.format(*(p.spark for p in parts)), template.format(*(p.duck for p in parts)))


def _and(tests: list[Text], before: str) -> Text:
    if not tests:
        return Text.same("")
    return Text(before + " AND ".join(t.spark for t in tests), before + " AND ".join(t.duck for t in tests))


def _names(text: Text, columns: tuple[str, ...]) -> bool:
    return any(column in text.spark for column in columns)


# Order books


def _book(choose: Choices) -> str:
    if choose.chance(40):
        return _range_join(choose)
    shape = choose.pick(("rows", "sum", "sum", "groups", "value", "joined", "joined", "distinct", "having"))
    test = _threshold(choose)
    if shape == "rows":
        return f"SELECT q.i AS c1, q.p AS c2 FROM bids AS q WHERE {test}"
    if shape == "sum":
        return f"SELECT SUM(q.p * q.n) AS c1, COUNT(*) AS c2 FROM bids AS q WHERE {test}"
    if shape == "groups":
        return f"SELECT q.i AS c1, SUM(q.n) AS c2, MAX(q.p) AS c3 FROM bids AS q WHERE {test} GROUP BY q.i"
    if shape == "distinct" and choose.chance(60):
        return _nearest(choose)
    if shape == "distinct":
        return f"SELECT DISTINCT q.i AS c1 FROM bids AS q WHERE {test} UNION ALL SELECT i FROM asks"
    if shape == "joined":
        join = choose.pick(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        source = f"bids AS q {join} asks AS o ON q.i = o.i"
        if choose.chance(50):
            return f"SELECT COUNT(*) AS c1, SUM(q.n * o.n) AS c2 FROM {source} WHERE {test}"
        return f"SELECT q.i AS c1, q.p AS c2, o.p AS c3 FROM {source} WHERE {test}"
    if shape == "having":
        having = f"SUM(q.n) {choose.pick(_RANGES)} (SELECT COUNT(*) FROM asks AS u WHERE u.i <= q.i)"
        return f"SELECT q.i AS c1, COUNT(*) AS c2 FROM bids AS q GROUP BY q.i HAVING {having}"
    return f"SELECT q.i AS c1, q.p AS c2, {_range_sum(choose)} AS c3 FROM bids AS q"


def _nearest(choose: Choices) -> str:
    """Bids beside the nearest asks; no two asks are equally near."""
    join = f"ASOF {choose.pick(('', '', 'LEFT '))}JOIN (SELECT i, n, MAX(p) AS p FROM asks GROUP BY i, n) AS o"
    source = f"bids AS q {join} ON q.i = o.i AND q.n {choose.pick(_RANGES)} o.n"
    if choose.chance(50):
        return f"SELECT o.n AS c1, SUM(q.n) AS c2, COUNT(*) AS c3 FROM {source} GROUP BY o.n"
    return f"SELECT q.i AS c1, q.n AS c2, o.p AS c3 FROM {source}"


def _range_sum(choose: Choices) -> str:
    calls = ("SUM(u.n)", "SUM(u.n)", "COUNT(*)", "COUNT(u.i)", "SUM(u.p)", "MAX(u.n)", "COALESCE(SUM(u.n), 0)")
    call = choose.pick(calls)
    tests = [f"u.p {choose.pick(_RANGES)} q.p"]
    if choose.chance(25):
        tests.append("u.i = q.i")
    if choose.chance(10):
        tests.append(choose.pick(("u.n > 0", "u.i <> q.i", "u.p > 1")))
    return f"(SELECT {call} FROM {choose.pick(('bids', 'bids', 'asks'))} AS u WHERE {' AND '.join(tests)})"


def _threshold(choose: Choices) -> str:
    other = choose.pick(
        (
            "(SELECT 0.25 * SUM(u1.n) FROM bids AS u1)",
            "0.5 * (SELECT SUM(u1.n) FROM bids AS u1)",
            "(SELECT SUM(u1.n) FROM bids AS u1 WHERE u1.i = q.i)",
            "(SELECT COUNT(*) FROM asks AS u1)",
            "1",
            "2",
            "q.n",
        )
    )
    if choose.chance(25):
        # A column next to a limit that changes.
        limit = choose.pick(("(SELECT {f}(u.p) FROM asks AS u)", "(SELECT {f}(u.p) FROM bids AS u WHERE u.i = q.i)"))
        test = f"q.p {choose.pick(_RANGES)} {limit.format(f=choose.pick(('MIN', 'MAX', 'SUM')))}"
    elif choose.chance(50):
        test = f"{other} {choose.pick(_RANGES)} {_range_sum(choose)}"
    else:
        test = f"{_range_sum(choose)} {choose.pick(_RANGES)} {other}"
    also = choose.pick(("{}", "{}", "{}", "{}", "{} AND q.n > 0", "({} OR q.n = 1)", "NOT ({})", "{} AND {}"))
    return also.format(test, f"q.n <= {_range_sum(choose)}")


def _range_join(choose: Choices) -> str:
    kind = choose.pick(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    on = choose.pick(
        (
            f"q.p {choose.pick(_RANGES)} o.p",
            f"q.p {choose.pick(_RANGES)} o.p AND q.i = o.i",
            "q.p BETWEEN o.n AND o.p",
            "q.p >= o.p - 1 AND q.p <= o.p + 1",
            f"q.p - o.p {choose.pick(_RANGES)} 1",
            f"(q.p - o.p > 2 OR o.p - q.p > 2) AND q.i {choose.pick(('=', '<>'))} o.i",
            f"q.i = o.i AND q.n {choose.pick(_RANGES)} o.n AND q.p {choose.pick(_RANGES)} o.p",
            "q.i = o.i",
            f"q.p {choose.pick(_RANGES)} o.p + o.n",
        )
    )
    source = f"FROM bids AS q {kind} {choose.pick(('asks', 'asks', 'bids'))} AS o ON {on}"
    shape = choose.pick(("rows", "distinct", "sum", "groups", "groups", "extremes"))
    if shape == "rows":
        return f"SELECT q.i AS c1, o.p AS c2 {source}"
    if shape == "distinct":
        return f"SELECT DISTINCT q.i AS c1, o.i AS c2 {source}"
    if shape == "sum":
        return f"SELECT COUNT(*) AS c1, SUM(q.n) AS c2, SUM(q.p - o.p) AS c3, SUM(o.n) AS c4 {source}"
    if shape == "extremes":
        return f"SELECT q.i AS c1, MIN(o.p) AS c2, MAX(q.n) AS c3, COUNT(DISTINCT o.i) AS c4 {source} GROUP BY q.i"
    lift = choose.pick(("q.p * o.n", "q.p - o.p", "q.n * (o.p - q.p)"))
    by = choose.pick(("q.i", "q.i", "q.i, o.i", "o.n"))
    names = by.replace(",", " AS c0,")
    return f"SELECT {names} AS c1, COUNT(*) AS c2, SUM(o.n) AS c3, SUM({lift}) AS c4 {source} GROUP BY {by}"
