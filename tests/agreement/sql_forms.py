"""Random scenarios of pipes, PIVOT, UNPIVOT, range() and comparisons of rows; DuckDB has nested SELECTs for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_R = BaseTable("r", (TableColumn("a", "BIGINT"), TableColumn("b", "BIGINT"), TableColumn("w", "STRING")))
_S = BaseTable("s", (TableColumn("a", "BIGINT"), TableColumn("d", "BIGINT")))
_T = BaseTable("t", (TableColumn("a", "BIGINT"), TableColumn("w", "STRING")))
_SIGNS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class _Pipe:
    """A pipe, DuckDB's SELECT of the same rows, and its columns: numbers and texts."""

    spark: str
    duck: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.numbers, *self.texts)

    def then(self, operator: str, duck: str) -> _Pipe:
        """The pipe with one more operator; in DuckDB's text {} is the SELECT before it."""
        return replace(self, spark=f"{self.spark} |> {operator}", duck=duck.replace("{}", f"({self.duck}) AS q"))


def forms_scenario(choose: Choices) -> Scenario:
    """One view, or two of which the second reads the first, and some versions."""
    starts = (
        _Pipe("FROM r", "SELECT * FROM r", ("a", "b"), ("w",)),
        _Pipe("TABLE s", "SELECT * FROM s", ("a", "d")),
        _Pipe("FROM t", "SELECT * FROM t", ("a",), ("w",)),
        _Pipe("SELECT a, COUNT(*) AS n FROM r GROUP BY a", "SELECT a, COUNT(*) AS n FROM r GROUP BY a", ("a", "n")),
        _Pipe("FROM r JOIN s USING (a)", "SELECT a, r.b, r.w, s.d FROM r JOIN s USING (a)", ("a", "b", "d"), ("w",)),
    )
    made = _piped(choose, choose.pick(starts), choose.between(1, 4))
    views = [NamedView("v1", _listed(made))]
    if choose.chance(30):
        again = _Pipe("FROM v1", "SELECT * FROM v1", made.numbers, made.texts)
        views.append(NamedView("v2", _listed(_piped(choose, again, choose.between(1, 2)))))
    tables = (_R, _S, _T)
    return Scenario(tables, tuple(views), versions(choose, tables, False))


def _listed(pipe: _Pipe) -> Text:
    """A pipe whose columns are in one order in both."""
    names = ", ".join(pipe.columns)
    return Text(f"{pipe.spark} |> SELECT {names}", f"SELECT {names} FROM ({pipe.duck}) AS q")


def _piped(choose: Choices, pipe: _Pipe, count: int) -> _Pipe:
    for number in range(count):
        made = choose.pick(_OPERATORS)(choose, pipe, f"x{number}{len(pipe.columns)}")
        pipe = pipe if made is None else made
    return pipe


def _where(choose: Choices, pipe: _Pipe, _: str) -> _Pipe | None:
    if not pipe.numbers:
        return None
    x, y = choose.pick(pipe.numbers), choose.pick(pipe.columns)
    if choose.chance(50):
        return pipe.then(f"WHERE {x} > 1", f"SELECT * FROM {{}} WHERE {x} > 1")
    sign, limit = choose.pick(_SIGNS), "1" if y in pipe.numbers else "'b'"
    strict, equal = sign[0], "TRUE" if "=" in sign else "FALSE"
    least = strict == "<"
    first = f"{x} {strict} 2 OR {x} IS NULL AND {least}"
    second = f"{y} {strict} {limit} OR {y} IS NULL AND {least} OR {y} IS NOT DISTINCT FROM {limit} AND {equal}"
    both = f"({first} OR {x} IS NOT DISTINCT FROM 2 AND ({second}))"
    return pipe.then(f"WHERE ({x}, {y}) {sign} (2, {limit})", f"SELECT * FROM {{}} WHERE {both}")


def _extend(choose: Choices, pipe: _Pipe, name: str) -> _Pipe | None:
    if not pipe.numbers or name in pipe.columns:
        return None
    x = choose.pick(pipe.numbers)
    made = pipe.then(f"EXTEND {x} + 1 AS {name}", f"SELECT *, {x} + 1 AS {name} FROM {{}}")
    return replace(made, numbers=(*pipe.numbers, name))


def _set(choose: Choices, pipe: _Pipe, _: str) -> _Pipe | None:
    if not pipe.numbers:
        return None
    x, y = choose.pick(pipe.numbers), choose.pick(pipe.numbers)
    return pipe.then(f"SET {x} = {y} + 1", f"SELECT * REPLACE ({y} + 1 AS {x}) FROM {{}}")


def _drop(choose: Choices, pipe: _Pipe, _: str) -> _Pipe | None:
    if len(pipe.columns) < 3:
        return None
    x = choose.pick(pipe.columns)
    made = pipe.then(f"DROP {x}", f"SELECT * EXCLUDE ({x}) FROM {{}}")
    return replace(made, numbers=_but(pipe.numbers, x), texts=_but(pipe.texts, x))


def _aggregate(choose: Choices, pipe: _Pipe, name: str) -> _Pipe | None:
    if not pipe.numbers or name in pipe.columns:
        return None
    key, x = choose.pick(pipe.columns), choose.pick(pipe.numbers)
    value = choose.pick((f"CAST(SUM({x}) AS BIGINT)", "COUNT(*)", f"MAX({x})"))
    if choose.chance(20):
        return replace(pipe.then(f"AGGREGATE {value} AS {name}", f"SELECT {value} AS {name} FROM {{}}"),
                       numbers=(name,), texts=())
    before, by = "", key
    if choose.chance(30):
        # The position of the column before AGGREGATE.
        before, by = f"SELECT {', '.join(pipe.columns)} |> ", str(pipe.columns.index(key) + 1)
    made = pipe.then(
        f"{before}AGGREGATE {value} AS {name} GROUP BY {by}",
        f"SELECT {key}, {value} AS {name} FROM {{}} GROUP BY {key}",
    )
    return replace(made, numbers=(*_only(pipe.numbers, key), name), texts=_only(pipe.texts, key))


def _join(choose: Choices, pipe: _Pipe, _: str) -> _Pipe | None:
    if "a" not in pipe.numbers or "d" in pipe.columns:
        return None
    kind = choose.pick(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    duck = {"LEFT SEMI JOIN": "SEMI JOIN", "LEFT ANTI JOIN": "ANTI JOIN"}.get(kind, kind)
    made = pipe.then(f"{kind} s USING (a)", f"SELECT * FROM {{}} {duck} s USING (a)")
    return replace(made, numbers=(*pipe.numbers, "d")) if kind in ("JOIN", "LEFT JOIN") else made


def _union(choose: Choices, pipe: _Pipe, _: str) -> _Pipe | None:
    if len(pipe.numbers) != 2 or pipe.texts:
        return None
    kind, names = choose.pick(("UNION ALL", "UNION", "EXCEPT", "INTERSECT")), ", ".join(pipe.columns)
    made = pipe.then(f"SELECT {names}", f"SELECT {names} FROM {{}}")
    return replace(
        made, spark=f"{made.spark} |> {kind} SELECT a, d FROM s", duck=f"({made.duck}) {kind} SELECT a, d FROM s"
    )


def _pivot(choose: Choices, pipe: _Pipe, name: str) -> _Pipe | None:
    if "w" not in pipe.texts or not pipe.numbers or f"{name}b" in pipe.columns:
        return None
    x = choose.pick(pipe.numbers)
    call = choose.pick(("COUNT({})", "MAX({})", "CAST(SUM({}) AS BIGINT)")).format(x)
    groups, texts = _but(pipe.numbers, x), _but(pipe.texts, "w")
    listed = ", ".join((*groups, *texts))
    tests = [("'a'", f"{name}a"), ("NULL", f"{name}b")]
    values = [
        f"CASE WHEN COUNT(*) FILTER (WHERE w IS NOT DISTINCT FROM {one}) > 0 THEN "
        f"{_filtered(call, f'w IS NOT DISTINCT FROM {one}')} END AS {alias}"
        for one, alias in tests
    ]
    by = f" GROUP BY {listed}" if listed else ""
    made = pipe.then(
        f"PIVOT ({call} FOR w IN ({', '.join(f'{one} AS {alias}' for one, alias in tests)}))",
        f"SELECT {', '.join((*filter(None, [listed]), *values))} FROM {{}}{by}",
    )
    return replace(made, numbers=(*groups, *(alias for _, alias in tests)), texts=texts)


def _filtered(call: str, test: str) -> str:
    head, cast, tail = call.partition(" AS BIGINT)")
    return f"{head} FILTER (WHERE {test}){cast}{tail}" if cast else f"{call} FILTER (WHERE {test})"


def _unpivot(choose: Choices, pipe: _Pipe, name: str) -> _Pipe | None:
    if len(pipe.numbers) < 2 or name in pipe.columns:
        return None
    taken, with_nulls = pipe.numbers[:2], choose.chance(50)
    groups = pipe.numbers[2:]
    kept = "".join(f"{one}, " for one in (*groups, *pipe.texts))
    parts = []
    for one in taken:
        where = "" if with_nulls else f" WHERE {one} IS NOT NULL"
        parts.append(f"SELECT {kept}'{one}' AS n{name}, {one} AS {name} FROM {{}}{where}")
    nulls = "INCLUDE NULLS " if with_nulls else ""
    made = pipe.then(f"UNPIVOT {nulls}({name} FOR n{name} IN ({', '.join(taken)}))", " UNION ALL ".join(parts))
    return replace(made, numbers=(*groups, name), texts=(*pipe.texts, f"n{name}"))


def _range(choose: Choices, pipe: _Pipe, name: str) -> _Pipe | None:
    if "a" not in pipe.numbers or name in pipe.columns:
        return None
    made = pipe.then(
        f"JOIN range(0, 4, 2) AS g{name}({name}) ON {name} <= a",
        f"SELECT * FROM {{}} JOIN (VALUES (CAST(0 AS BIGINT)), (2)) AS g({name}) ON {name} <= a",
    )
    return replace(made, numbers=(*pipe.numbers, name))


def _first(choose: Choices, pipe: _Pipe, _: str) -> _Pipe:
    """The first rows, or all but the first, in the order of all columns, so that DuckDB has the same."""
    last = choose.pick(("LIMIT 2", "OFFSET 1", "LIMIT 3 OFFSET 1"))
    order = ", ".join(f"{one} NULLS FIRST" for one in pipe.columns)
    made = pipe.then(f"ORDER BY {order}", f"SELECT * FROM {{}} ORDER BY {order} {last}")
    return replace(made, spark=f"{made.spark} |> {last}")


def _but(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(one for one in names if one != name)


def _only(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(one for one in names if one == name)


_OPERATORS = (
    *(_where, _where, _extend, _set, _drop, _aggregate, _aggregate, _join, _union, _pivot, _pivot, _unpivot, _range),
    _first,
)
