"""Random statements that change rows, in both dialects of SQL, over a table ``t`` with a key and ``u`` without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term, made

DEFINITIONS = """
CREATE TABLE t (k INT PRIMARY KEY, a INT DEFAULT 2, s {string}, x DECIMAL(6, 2));
CREATE TABLE u (k INT, a INT, s {string} NOT NULL, x DECIMAL(6, 2));
CREATE {view} totals AS SELECT a, COUNT(*) AS n, SUM(x) AS x, MAX(s) AS s FROM t GROUP BY a;
CREATE {view} pairs AS SELECT t.k, t.s, u.a FROM t JOIN u ON t.k = u.a
"""
VIEWS = ("totals", "pairs")
TABLES = ("t", "u")
_KINDS = {"k": "int", "a": "int", "s": "string", "x": "decimal"}


def definitions(duck: bool) -> str:
    """The tables, and views over them."""
    return DEFINITIONS.format(string="VARCHAR" if duck else "STRING", view="VIEW" if duck else "MATERIALIZED VIEW")


@dataclass(frozen=True)
class _Drawing:
    choose: Choices

    def expressions(self, *tables: str, bare: bool = False) -> Expressions:
        """Expressions over the columns of tables, named with the table unless ``bare``."""
        columns = []
        for table in tables:
            for name, kind in _KINDS.items():
                text = name if bare else f"{table}.{name}"
                columns.append(Term(Text(text, text), kind, *((6, 2) if kind == "decimal" else ()), column=True))
        return Expressions(self.choose, columns)

    def value(self, column: str, of: Expressions) -> Term:
        """A value for a column: small, so that no statement overflows."""
        if column == "k":
            return made("int", str(self.choose.between(0, 9)))
        if column == "x":
            return made("decimal", "CAST(({0}) % 100 AS DECIMAL(6, 2))", of.any(self.choose.pick(("decimal", "int"))))
        if column == "a":
            return made("int", "CAST(({0}) % 5 AS INT)", of.any("int"))
        return made("string", "coalesce({0}, 'n')", of.any("string"))

    def asked(self, table: str) -> Term:
        """A predicate of a SELECT, which DuckDB answers for both."""
        column, sign = self.choose.pick("ka"), self.choose.pick(("<", ">=", "=", "<>"))
        return made("bool", f"({table}.{column} {sign} {self.choose.between(0, 5)} OR {table}.s IS NULL)")

    def asked_row(self, table: str) -> Term:
        key = self.choose.pick((f"{self.choose.between(0, 9)}", f"{table}.k + 5"))
        other = self.choose.pick((f"CAST(({table}.k - {table}.a) % 5 AS INT)", f"{table}.a", "NULL"))
        number = self.choose.pick((f"CAST({table}.x / 2 AS DECIMAL(6, 1))", "1.5", f"{table}.a"))
        return made("row", f"{key}, {other}, coalesce({table}.s, 'n'), {number}")

    def row(self, of: Expressions) -> Term:
        values = [self.value(column, of) for column in _KINDS]
        if self.choose.chance(20):
            values[1] = made("int", "DEFAULT")
        return made("row", "{0}, {1}, {2}, {3}", *values)

    def values(self, rows: int) -> Term:
        none = Expressions(self.choose, ())
        return _joined([made("row", "({0})", self.row(none)) for _ in range(rows)])

    def sets(self, of: Expressions, columns: str = "asx") -> Term:
        chosen = [one for one in columns if self.choose.chance(60)] or [columns[0]]
        return _joined([made("set", f"{one} = {{0}}", self.value(one, of)) for one in chosen])

    def insert(self) -> Term:
        table = self.choose.pick(TABLES)
        if self.choose.chance(50):
            return made("", f"INSERT INTO {table} VALUES {{0}}", self.values(self.choose.between(1, 3)))
        other = self.choose.pick(TABLES)
        row, where = self.asked_row(other), self.asked(other)
        return made("", f"INSERT INTO {table} SELECT {{0}} FROM {other} WHERE {{1}}", row, where)

    def upsert(self) -> Term:
        rows = self.values(1)
        if self.choose.chance(40):
            return made("", "INSERT INTO t VALUES {0} ON CONFLICT (k) DO NOTHING", rows)
        sets = self.sets(self.expressions("t", "excluded"))
        return made("", "INSERT INTO t VALUES {0} ON CONFLICT (k) DO UPDATE SET {1}", rows, sets)

    def delete(self) -> Term:
        table = self.choose.pick(TABLES)
        if self.choose.chance(25):
            return made("", "DELETE FROM t WHERE k IN (SELECT u.a FROM u WHERE {0})", self.asked("u"))
        return made("", f"DELETE FROM {table} WHERE {{0}}", self.expressions(table, bare=True).predicate())

    def update(self) -> Term:
        table = self.choose.pick(TABLES)
        of = self.expressions(table, bare=True)
        sets = self.sets(of)
        if table == "t" and self.choose.chance(30):
            sets = "a = (SELECT MAX(u.a) FROM u WHERE u.k = t.k), s = 'q'"
            return made("", f"UPDATE t SET {sets} WHERE {{0}}", self.asked("t"))
        where = made("bool", f"k = {self.choose.between(0, 9)}") if self.choose.chance(30) else of.predicate()
        return made("", f"UPDATE {table} SET {{0}} WHERE {{1}}", sets, where)

    def merge(self) -> Term:
        both, here, there = self.expressions("t", "v"), self.expressions("t"), self.expressions("v")
        source = "(SELECT k, MIN(a) AS a, MAX(s) AS s, MAX(x) AS x FROM u GROUP BY k) AS v"
        on = "t.k = v.k" if self.choose.chance(70) else "t.k = v.k AND t.a <> v.a"
        parts = [made("", f"MERGE INTO t USING {source} ON {on}")]
        if self.choose.chance(40):
            parts.append(made("", "WHEN MATCHED AND {0} THEN DELETE", both.predicate()))
        if self.choose.chance(70):
            parts.append(made("", "WHEN MATCHED THEN UPDATE SET {0}", self.sets(both)))
        if on == "t.k = v.k" and (len(parts) == 1 or self.choose.chance(60)):
            row = made("row", "v.k, {0}, {1}, {2}", *(self.value(column, there) for column in "asx"))
            condition = made("", "AND v.k IS NOT NULL AND {0}", there.predicate())
            parts.append(made("", "WHEN NOT MATCHED {0} THEN INSERT (k, a, s, x) VALUES ({1})", condition, row))
        if len(parts) == 1 or self.choose.chance(40):
            parts.append(made("", "WHEN NOT MATCHED BY SOURCE AND {0} THEN DELETE", here.predicate()))
        return _joined(parts, " ")


def statement(choose: Choices) -> Text:
    """One statement. It may be refused by both, as one that gives a key twice."""
    draw = _Drawing(choose)
    kinds: tuple[Callable[[], Term], ...] = (
        *(draw.insert,) * 4, *(draw.upsert,) * 2, draw.delete, *(draw.update,) * 2, *(draw.merge,) * 2
    )  # fmt: skip
    return choose.pick(kinds)().text


def _joined(parts: list[Term], sign: str = ", ") -> Term:
    spark, duck = sign.join(one.text.spark for one in parts), sign.join(one.text.duck for one in parts)
    return Term(Text(spark, duck), "")
