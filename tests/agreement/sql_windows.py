"""Random scenarios of window functions over tables with many equal rows and NULLs: several functions of one window or
of several, frames, QUALIFY, functions within others, and views over such views.

DuckDB numbers the rows that are equal in all columns. If the places of rows matter, it orders rows by all columns and
that number, as freshviews does."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_SPARK_ORDERS = ("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_DUCK_ORDERS = (" ASC NULLS FIRST", " ASC NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")
_FRAMES = (
    "ROWS UNBOUNDED PRECEDING",
    "ROWS 1 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    _WHOLE,
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
_BY_VALUE = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
)
_COMPUTED = ("CAST({} AS STRING)", "CAST({} AS DOUBLE)", "{} % 2", "-{}")
_AGGREGATES = (
    "COUNT(*)", "SUM({})", "SUM({})", "MIN({})", "MAX({})", "COUNT({})", "COUNT(DISTINCT {})", "SUM(DISTINCT {})",
    "BIT_AND({})", "BIT_OR({})",
)  # fmt: skip
_SPELLED = {"FIRST_VALUE": ("FIRST", "ANY_VALUE"), "LAST_VALUE": ("LAST",)}


def windows_scenario(choose: Choices) -> Scenario:
    """One view, or two of which the second reads the first."""
    tables = tuple(_table(choose, name) for name in "rs")
    first, columns = _Query(choose, *_source(choose, tables)).text()
    views = [NamedView("v1", first)]
    if choose.chance(30):
        views.append(NamedView("v2", _Query(choose, Text.same("v1"), columns).text()[0]))
    return Scenario(tables, tuple(views), versions(choose, tables, False))


def _table(choose: Choices, name: str) -> BaseTable:
    names = "abc"[: choose.pick((1, 2, 2, 3))]
    key = ("a",) if choose.chance(10) else ()
    columns = (TableColumn(c, choose.pick(("INT", "BIGINT")), c not in key and choose.chance(60)) for c in names)
    return BaseTable(name, tuple(columns), key, choose.chance(10))


def _source(choose: Choices, tables: tuple[BaseTable, ...]) -> tuple[Text, tuple[str, ...]]:
    """A FROM clause, and its columns."""
    columns = tuple(c.name for c in tables[0].columns)
    listed = ", ".join(columns)
    match choose.pick(("table", "table", "table", "first", "where", "join", "union", "groups")):
        case "first":
            return Text.same("(SELECT a FROM r) AS q"), ("a",)
        case "where":
            return Text.same(f"(SELECT {listed} FROM r WHERE a < 2 OR a IS NULL) AS q"), columns
        case "join":
            shown = ", ".join(f"r.{c} AS {c}" for c in columns)
            return Text.same(f"(SELECT {shown}, s.a AS d FROM r JOIN s ON r.a = s.a) AS q"), (*columns, "d")
        case "union":
            return Text.same("(SELECT a FROM r UNION ALL SELECT a FROM s) AS q"), ("a",)
        case "groups":
            return Text.same("(SELECT a, COUNT(*) AS n FROM r GROUP BY a) AS q"), ("a", "n")
    return Text.same(tables[0].name), columns


@dataclass
class _Query:
    """Draws a SELECT with window functions over rows with these columns."""

    choose: Choices
    source: Text
    columns: tuple[str, ...]
    inner: list[str] = field(default_factory=list)
    """Columns that DuckDB computes in a subquery."""
    named: dict[str, str] = field(default_factory=dict)
    """The names of the WINDOW clause by their definitions."""

    def text(self) -> tuple[Text, tuple[str, ...]]:
        """A query and the names of its columns."""
        choose = self.choose
        specs = [self._spec() for _ in range(choose.pick((1, 1, 2)))]
        items = [Text.same(one) for one in self.columns if choose.chance(70)]
        items += [self._item(choose.pick(specs)) for _ in range(choose.between(1, 3))]
        names = tuple(f"c{i}" for i in range(1, len(items) + 1))
        tail = Text.same("")
        if choose.chance(20):
            test = f"{choose.pick(('<=', '<=', '=', '<', '>'))} {choose.pick((1, 2, 3))}"
            call = self._ranked(choose.pick(specs)) if choose.chance(80) else self._item(choose.pick(specs))
            tail = Text(f" QUALIFY {call.spark} {test}", f" QUALIFY {call.duck} {test}")
        listed = [
            ", ".join(f"{one} AS {name}" for one, name in zip(which, names, strict=True))
            for which in ([i.spark for i in items], [i.duck for i in items])
        ]
        windows = ", ".join(f"{name} AS {over}" for over, name in self.named.items())
        windows = f" WINDOW {windows}" if windows else ""
        equal = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(self.columns)}) AS copy"
        within = self.source.duck
        for one in (equal, *self.inner):
            within = f"(SELECT *, {one} FROM {within}) AS rows_"
        return Text(
            f"SELECT {listed[0]} FROM {self.source.spark}{windows}{tail.spark}",
            f"SELECT {listed[1]} FROM {within}{tail.duck}",
        ), names

    def _spec(self) -> _Spec:
        choose = self.choose
        partition = ""
        if choose.chance(50):
            one = choose.pick(self.columns)
            partition = f"PARTITION BY {choose.pick((one, one, f'{one} % 2'))} "
        spark, duck = [], []
        for _ in range(choose.pick((0, 1, 1, 1, 2, 3))):
            column, how = choose.pick(self.columns), choose.between(0, len(_SPARK_ORDERS) - 1)
            if choose.chance(20):
                column = choose.pick(_COMPUTED).format(column)
            spark.append(column + _SPARK_ORDERS[how])
            duck.append(column + _DUCK_ORDERS[how])
        return _Spec(partition, tuple(spark), tuple(duck), (*self.columns, "copy"))

    def _item(self, spec: _Spec) -> Text:
        choose = self.choose
        if choose.chance(8):
            return self._nested(spec)
        if not spec.spark or choose.chance(20):
            return self._aggregate(spec)
        return choose.pick((self._ranked, self._lag_or_lead, self._lag_or_lead, self._end, self._aggregate))(spec)

    def _windowed(self, call: str, spec: _Spec, frame: str = "") -> str:
        """A function over a window in Spark's dialect; keywords are in any case."""
        choose = self.choose
        over = f"({spec.partition}{_by(spec.spark)}{frame})"
        if choose.chance(30):
            name = self.named.setdefault(over, f"w{len(self.named)}")
            over = choose.pick((name, name, f"({name})"))
        return _cased(choose, f"{call} OVER {over}")

    def _ranked(self, spec: _Spec) -> Text:
        choose = self.choose
        name = choose.pick(("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST"))
        if not spec.spark:
            return self._aggregate(spec)
        order = spec.places if name in ("ROW_NUMBER", "NTILE") else spec.duck
        call = f"{name}({choose.pick((1, 2, 3)) if name == 'NTILE' else ''})"
        return Text(self._windowed(call, spec), f"{call} OVER ({spec.partition}{_by(order)})")

    def _lag_or_lead(self, spec: _Spec) -> Text:
        """LAG or LEAD."""
        choose = self.choose
        value, steps = self._value(), choose.pick((None, None, 1, 2, 3, 0, -1, -2))
        more = "" if steps is None else f", {steps}{choose.pick(('', ', 7', f', {value}'))}"
        call = f"{choose.pick(('LAG', 'LEAD'))}({value}{more}"
        if steps != 0 and choose.chance(25):
            form = choose.pick(("{}) IGNORE NULLS", "{} IGNORE NULLS)"))
            spark, call = form.format(call), f"{call} IGNORE NULLS)"
        else:
            spark = call = f"{call})"
        return Text(self._windowed(spark, spec), f"{call} OVER ({spec.partition}{_by(spec.places)})")

    def _end(self, spec: _Spec) -> Text:
        """The value of one row of a frame."""
        choose = self.choose
        value, skips = self._value(), choose.chance(50)
        name = choose.pick(("FIRST_VALUE", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"))
        place = f", {choose.pick((1, 2, 3))}" if name == "NTH_VALUE" else ""
        frame = choose.pick(("", f" {_WHOLE}", self._frame(spec)))
        spelled = choose.pick((name, name, *_SPELLED.get(name, ())))
        form = choose.pick(("{}({}{}, true)", "{}({}{}) IGNORE NULLS")) if skips else "{}({}{})"
        spark = self._windowed(form.format(spelled, value, place), spec, frame)
        by_place = "RANGE" not in frame and frame
        if not by_place:
            # The value of the last place, of equal rows too.
            self.inner.append(f"ROW_NUMBER() OVER ({spec.partition}{_by(spec.places)}) AS n{len(self.inner)}")
            number = f"n{len(self.inner) - 1}"
            kept = f"{value} IS NOT NULL" if skips else "TRUE"
            if name == "NTH_VALUE":
                listed = f"LIST({value} ORDER BY {number}) FILTER (WHERE {kept})"
                return Text(spark, f"({listed} OVER ({spec.partition}{_by(spec.duck)}{frame}))[{place[2:]}]")
            call = f"{'ARG_MAX' if name == 'LAST_VALUE' else 'ARG_MIN'}_NULL({value}, {number}) FILTER (WHERE {kept})"
            return Text(spark, f"{call} OVER ({spec.partition}{_by(spec.duck)}{frame})")
        call = f"{name}({value}{place}{' IGNORE NULLS' if skips else ''})"
        return Text(spark, f"{call} OVER ({spec.partition}{_by(spec.places)}{frame})")

    def _frame(self, spec: _Spec) -> str:
        """A frame of a window with an order."""
        if len(spec.spark) == 1 and "STRING" not in spec.spark[0] and self.choose.chance(30):
            return f" {self.choose.pick(_BY_VALUE)}"
        return f" {self.choose.pick(_FRAMES)}"

    def _aggregate(self, spec: _Spec) -> Text:
        choose = self.choose
        call = choose.pick(_AGGREGATES).format(self._value())
        if choose.chance(10):
            call += f" FILTER (WHERE {choose.pick(self.columns)} > 0)"
        frame = self._frame(spec) if spec.spark and choose.chance(60) else ""
        order = spec.places if "ROWS" in frame else spec.duck
        if "ROWS" in frame and _WHOLE not in frame and choose.chance(15):
            # Of the order of places, which only such a frame determines.
            call = f"STRING_AGG(CAST({self._value()} AS STRING), ';')"
        return Text(self._windowed(call, spec, frame), f"{call} OVER ({spec.partition}{_by(order)}{frame})")

    def _nested(self, spec: _Spec) -> Text:
        """A function of the value of another window function."""
        inner = self._item(self._spec())
        self.inner.append(f"{inner.duck} AS n{len(self.inner)}")
        value, name = f"n{len(self.inner) - 1}", self.choose.pick(("SUM", "MAX", "COUNT"))
        spark = self._windowed(f"{name}({inner.spark})", spec)
        return Text(spark, f"{name}({value}) OVER ({spec.partition}{_by(spec.duck)})")

    def _value(self) -> str:
        column = self.choose.pick(self.columns)
        return self.choose.pick((column, column, f"{column} + 1"))


@dataclass(frozen=True)
class _Spec:
    """A partition and an order; ``columns`` distinguish all rows."""

    partition: str
    spark: tuple[str, ...]
    duck: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def places(self) -> tuple[str, ...]:
        """An order in which no two rows are equal."""
        return (*self.duck, *(f"{one} ASC NULLS FIRST" for one in self.columns))


def _by(order: tuple[str, ...]) -> str:
    return f"ORDER BY {', '.join(order)}" if order else ""


def _cased(choose: Choices, text: str) -> str:
    """The text in upper or lower case, or in both."""
    if choose.chance(70):
        return text
    how = choose.pick(("lower", "title", "mixed"))
    if how == "mixed":
        return "".join(one.lower() if choose.chance(50) else one for one in text)
    return text.lower() if how == "lower" else text.title()
