"""Functions of users: CREATE FUNCTION, Python functions of a database, and those that a process registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import freshviews as fv
from freshviews.catalog import functions
from freshviews.errors import ArgumentError, CatalogError, EvaluationError, SqlError, StoreError

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

# As live Spark 4.1 answers: an argument is cast to the type of its parameter, the result to the type of the function.
CALLS = [
    ("f(x INT) RETURNS INT RETURN x + 1", "f(1), f('3'), f(2L), f(CAST(NULL AS INT)), f(1.5), f(1.5D), f(true)",
     (2, 4, 3, None, 2, 2, 2)),
    ("f(x INT) RETURNS STRING RETURN x + 2", "f(1), typeof(f(1))", ("3", "string")),
    ("f(x INT, y INT DEFAULT 3 + 4) RETURN x + y", "f(1), f(1, 2), f(y => 1, x => 2), f(1, y => 5)", (8, 3, 3, 6)),
    ("f(x DECIMAL(5, 2)) RETURNS DECIMAL(4, 1) RETURN x", "f(1.25), f(1.255), f(1.5D)",
     (Decimal("1.3"), Decimal("1.3"), Decimal("1.5"))),
    ("f(s STRING) RETURNS INT RETURN s", "f('12'), f(12)", (12, 12)),
    ("f(s STRING) RETURNS DATE RETURN s", "f('2020-01-01')", (date(2020, 1, 1),)),
    ("f(s INT) RETURNS BOOLEAN RETURN s", "f(2), f(0)", (True, False)),
    ("f(x INT) RETURNS INT RETURN f.x + 1", "f(4)", (5,)),
    ("f() RETURNS INT RETURN 4", "f()", (4,)),
    ("f(x INT) RETURNS BIGINT RETURN CASE WHEN x > 0 THEN 10 / x ELSE 0 END", "f(0), f(4)", (0, 2)),
    ("f(x INT DEFAULT '5') RETURNS INT DETERMINISTIC CONTAINS SQL COMMENT 'c' RETURN x", "f()", (5,)),
    ("f(x DATE) RETURNS DATE LANGUAGE SQL RETURN x", "f(TIMESTAMP '2020-01-01 10:00:00')", (date(2020, 1, 1),)),
    ("f(x BIGINT) RETURNS BIGINT RETURN x", "f('4'), f(1.7), f(1.7D)", (4, 1, 1)),
    ("f(x STRING) RETURNS STRING RETURN x", "f(5), f(DATE '2020-01-01'), f(true), f(X'41')",
     ("5", "2020-01-01", "true", "A")),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "calls", "expected"), CALLS, ids=[one for one, _, _ in CALLS])
def test_an_sql_function_returns_the_same_result_as_in_spark(
    definition: str, calls: str, expected: tuple[object, ...]
) -> None:
    db = fv.Database()
    names = ", ".join(f"c{place}" for place in range(len(expected)))
    db.execute(f"CREATE FUNCTION {definition}; CREATE MATERIALIZED VIEW v ({names}) AS SELECT {calls}")
    assert list(db.view("v")) == [expected]


REFUSED = [
    ("CREATE FUNCTION f(x INT) RETURN z", "column 33: z is unknown in f; its parameters: x"),
    ("CREATE FUNCTION f(x INT) RETURNS DATE RETURN x", "column 46: function f returns DATE: INT cannot be cast"),
    ("CREATE FUNCTION f(x INT) RETURN (SELECT 1)", "column 33: a subquery in a function is not supported"),
    ("CREATE FUNCTION f(x INT) RETURN max(x)", "column 33: an aggregate function cannot stand in the body"),
    ("CREATE FUNCTION f(x INT) RETURN f(x)", "column 33: function f is not supported"),
    ("CREATE FUNCTION f(x INT, X INT) RETURN x", "column 26: parameter X is given twice"),
    ("CREATE FUNCTION f(x INT DEFAULT 1, y INT) RETURN x", "column 36: parameter y needs a DEFAULT"),
    ("CREATE FUNCTION f(x INT DEFAULT y, y INT DEFAULT 4) RETURN x", "column 33: y is unknown in the DEFAULT of x"),
    ("CREATE FUNCTION f(x INT NOT NULL) RETURN x", "column 25: NOT NULL of a parameter is not supported"),
    ("CREATE FUNCTION f(x INT) RETURNS TABLE (a INT) RETURN SELECT 1", "returns a TABLE is not supported"),
    ("CREATE FUNCTION f(x INT) NOT DETERMINISTIC RETURN x", "not DETERMINISTIC is not supported"),
    ("CREATE TEMPORARY FUNCTION f(x INT) RETURN x", "CREATE TEMPORARY FUNCTION is not supported"),
    ("CREATE FUNCTION abs(x INT) RETURN x", "abs is a function of SQL; choose another name"),
    ("CREATE FUNCTION s.f(x INT) RETURN x", "s.f: write the name of the function without a schema"),
    ("CREATE FUNCTION f(x INT) RETURNS INT USING scala 'f'", "a function in scala is not supported"),
    ("CREATE FUNCTION plus(x INT) RETURN x", "function plus exists already; DROP it or write CREATE OR REPLACE"),
    ("CREATE OR REPLACE FUNCTION plus(x INT) RETURN x", "plus is still called by v, p, more; DROP them first"),
    ("CREATE OR REPLACE FUNCTION more(x INT) RETURN more(x) + 1", "function more is still called by p; DROP"),
    ("DROP FUNCTION plus", "function plus is still called by v, p, more"),
    ("DROP FUNCTION pluss", "unknown function pluss; did you mean plus?"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus() AS x FROM t", r"plus\(x INT, y INT\) takes 1 to 2 arguments, not 0"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(1, 2, 3) AS x FROM t", "takes 1 to 2 arguments, not 3"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(z => 1) AS x FROM t", "plus has no parameter z"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(x => 1, 2) AS x FROM t", "without a name is after a named argument"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(1, x => 1) AS x FROM t", "parameter x is given twice"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(DATE '2020-01-01') AS x FROM t", "parameter x of plus is INT: DATE"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus('a') AS x FROM t", "parameter x of plus is INT: 'a'"),
    ("CREATE MATERIALIZED VIEW w AS SELECT plus(2147483647) AS x FROM t", "column 38: plus: 2147483650 is outside"),
    ("SELECT plus(1, 2, 3)", "column 8: plus.* takes 1 to 2 arguments, not 3"),
    ("SELECT plus(DISTINCT a) FROM t", "column 8: plus is not an aggregate function; leave DISTINCT out"),
    ("SELECT plus(a ORDER BY a) FROM t", "column 8: plus is not an aggregate function; leave ORDER BY out"),
    ("SELECT plus(a) FILTER (WHERE a > 1) FROM t", "column 8: plus is not an aggregate function; leave FILTER"),
    ("SELECT plus(a) OVER (PARTITION BY b) FROM t", "column 8: plus is not an aggregate function; leave OVER out"),
]


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_the_first_view_over_the_clock_may_call_a_function(kind: str) -> None:
    db = fv.Database()
    db.execute(
        f"""CREATE TABLE t (a INT, at TIMESTAMP);
        CREATE FUNCTION day_after(x TIMESTAMP) RETURN x + INTERVAL '1' DAY;
        CREATE {kind} old AS SELECT a FROM t WHERE day_after(at) < now() AND at < day_after(now())"""
    )
    db.insert("t", [(1, datetime(2026, 1, 1)), (2, datetime(2026, 1, 2))])
    for day, expected in ((2, []), (3, [(1,)]), (4, [(1,), (2,)])):
        db.advance(datetime(2026, 1, day))
        assert sorted(db.sql("SELECT a FROM old").fetchall()) == expected


SELF = [
    "CREATE OR REPLACE FUNCTION one(x INT) RETURN one(x) + 1",
    "CREATE OR REPLACE FUNCTION one(x INT DEFAULT one(2)) RETURN x",
]


@pytest.mark.parametrize("sql", SELF)
def test_a_function_that_calls_itself_is_refused(sql: str) -> None:
    db = fv.Database()
    db.execute("CREATE FUNCTION one(x INT) RETURN x + 1")
    with pytest.raises(SqlError, match="function one calls itself; choose another name"):
        db.execute(sql)


@pytest.fixture
def db() -> fv.Database:
    made = fv.Database()
    made.execute(
        """CREATE TABLE t (a INT, b STRING, d DOUBLE, day DATE, amount DECIMAL(10, 2));
        CREATE FUNCTION plus(x INT, y INT DEFAULT 3) RETURNS INT RETURN x + y;
        CREATE FUNCTION more(x INT) RETURN plus(x) * 2;
        CREATE VIEW p AS SELECT more(a) AS m, d FROM t;
        CREATE MATERIALIZED VIEW v AS SELECT plus(a) AS x, COUNT(*) AS n FROM t GROUP BY plus(a)"""
    )
    return made


def test_errors_of_sql_functions_name_the_place_and_the_remedy(db: fv.Database) -> None:
    for sql, message in REFUSED:
        with pytest.raises(SqlError, match=message):
            db.execute(sql)


def test_sql_functions_may_be_called_in_views_statements_and_selects(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT m, COUNT(*) AS n FROM p GROUP BY m HAVING more(m) > 0")
    db.insert("t", [(1, "u", None, None, None), (1, "w", None, None, None), (-9, None, None, None, None)])
    assert sorted(db.view("v")) == [(-6, 1), (4, 2)]
    assert list(db.view("w")) == [(8, 2)]
    db.execute("UPDATE t SET a = plus(a, y => more(0)) WHERE plus(a) = 4; INSERT INTO t (a) VALUES (plus(5))")
    assert sorted(db.view("v")) == [(-6, 1), (10, 2), (11, 1)]
    assert sorted(db.sql("SELECT more(a), plus(y => a, x => 1) FROM t WHERE plus(a) > 10").fetchall()) == [(22, 9)]
    assert sorted(db.sql("SELECT m FROM p").fetchall()) == [(-12,), (20,), (20,), (22,)]


def test_a_call_is_refused_if_the_expanded_function_bodies_are_too_long(db: fv.Database) -> None:
    db.execute("CREATE FUNCTION twice(x INT) RETURN x + x")
    nested = f"{'twice(' * 20}a{')' * 20}"
    with pytest.raises(SqlError, match="a call of twice has over 10,000 operations, with the bodies of all functions"):
        db.execute(f"CREATE MATERIALIZED VIEW w AS SELECT {nested} AS x FROM t")
    with pytest.raises(SqlError, match="has over 10,000 operations, with the bodies of all functions"):
        db.sql(f"SELECT {nested} FROM t")


def test_a_python_function_runs_once_for_each_distinct_argument(db: fv.Database) -> None:
    calls: list[tuple[float, int]] = []

    @db.function(takes=["DOUBLE", "INT"], returns="STRING")
    def cell(x: float, digits: int) -> str:
        calls.append((x, digits))
        return f"{x:.{digits}f}"

    db.execute(
        """CREATE MATERIALIZED VIEW w AS SELECT cell(d, plus(a, 0)) AS c FROM t;
        CREATE MATERIALIZED VIEW sums AS SELECT b, cell(SUM(d), 1) AS c FROM t GROUP BY b;
        CREATE MATERIALIZED VIEW pairs AS SELECT r.a, s.a AS b FROM t r JOIN t s ON cell(r.d, 0) = cell(s.d, 0)"""
    )
    row = (2, "u", 2.25, None, None)
    db.insert("t", [row, row, (1, "w", 1.5, None, None), (None, None, None, None, None)])
    assert sorted(map(str, db.view("w"))) == ["('1.5',)", "('2.25',)", "('2.25',)", "(None,)"]
    assert sorted(db.view("sums"), key=str) == [("u", "4.5"), ("w", "1.5"), (None, None)]
    assert sorted(db.view("pairs")) == [(1, 1), (1, 2), (1, 2), (2, 1), (2, 1), (2, 2), (2, 2), (2, 2), (2, 2)]
    assert calls.count((2.25, 2)) == 1
    db.delete("t", [row])
    assert sorted(map(str, db.view("w"))) == ["('1.5',)", "('2.25',)", "(None,)"]
    assert db.sql("SELECT cell(d, 1) AS c FROM t WHERE a = 1").fetchall() == [("1.5",)]
    db.execute("UPDATE t SET b = cell(d, 3) WHERE a = 1")
    assert ("1.500", "1.5") in list(db.view("sums"))


def test_a_function_over_arrow_arrays_gets_each_distinct_argument_once(db: fv.Database) -> None:
    sizes: list[int] = []

    def twice(x: pa.Array) -> pa.Array:
        sizes.append(len(x))
        if pc.any(pc.equal(x, 13)).as_py():
            raise KeyError("13 is missing")
        return pc.multiply(x.cast(pa.int64()), 2)

    assert db.function("twice", twice, takes=["INT"], returns="BIGINT", arrow=True) is twice
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT a, twice(a) AS t FROM t WHERE a < 13 OR a IS NULL")
    db.execute("CREATE MATERIALIZED VIEW s AS SELECT SUM(CASE WHEN a = 13 THEN 0 ELSE twice(a) END) AS s FROM t")
    db.insert("t", [(a, None, None, None, None) for a in (1, 2, 2, 3, None, 13)])
    assert sorted(map(str, db.view("w"))) == ["(1, 2)", "(2, 4)", "(2, 4)", "(3, 6)", "(None, None)"]
    assert list(db.view("s")) == [(16,)]
    assert max(sizes) >= 3
    assert db.sql("SELECT SUM(twice(a)) FROM t WHERE a < 5").fetchall() == [(16,)]
    with pytest.raises(SqlError, match=r"function twice\(13\) raised KeyError: '13 is missing'"):
        db.sql("SELECT twice(13)")


def test_an_error_of_a_python_function_names_the_function_its_arguments_and_the_row(db: fv.Database) -> None:
    db.function("inverse", lambda x: 1 / x, takes=["DOUBLE"], returns="DOUBLE")
    db.function("text", lambda x: x, takes=["INT"], returns="STRING")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT inverse(d) AS i FROM t WHERE a > 0")
    db.insert("t", [(0, None, 0.0, None, None)])
    message = (
        r"table t, row 1: view w cannot be computed for \(a = 2, .*\): function inverse\(0.0\) raised "
        "ZeroDivisionError: float division by zero"
    )
    with pytest.raises(EvaluationError, match=message):
        db.insert("t", [(1, None, 1.0, None, None), (2, None, 0.0, None, None)])
    assert list(db.view("w")) == []
    message = r"line 1, column 38: function text\(5\) returned 5: STRING accepts str, not int"
    with pytest.raises(SqlError, match=message):
        db.execute("CREATE MATERIALIZED VIEW x AS SELECT text(5) AS x FROM t")
    assert db.sql("SELECT try_divide(inverse(d), 0) FROM t WHERE d > 0").fetchall() == []


def test_python_values_of_every_type_reach_a_function_and_return(db: fv.Database) -> None:
    types = {
        "BOOLEAN": True, "TINYINT": -5, "SMALLINT": 300, "INT": 70_000, "BIGINT": 2**40, "FLOAT": 0.5, "DOUBLE": 0.1,
        "DECIMAL(12, 3)": Decimal("1.500"), "STRING": "é", "DATE": date(2020, 2, 29),
        "TIMESTAMP": datetime(2020, 2, 29, 1, 2, 3, 4),
    }  # fmt: skip
    db.execute(f"CREATE TABLE every ({', '.join(f'c{i} {kind}' for i, kind in enumerate(types))})")
    for i, kind in enumerate(types):

        def same(value: Any, expected: Any = types[kind]) -> Any:
            assert value is None or (value, type(value)) == (expected, type(expected))
            return value

        db.function(f"same{i}", same, takes=[kind], returns=kind, nulls=bool(i % 2))
    calls = ", ".join(f"same{i}(c{i}) AS c{i}" for i in range(len(types)))
    db.execute(f"CREATE MATERIALIZED VIEW w AS SELECT {calls} FROM every")
    db.insert("every", [tuple(types.values()), (None,) * len(types)])
    assert {tuple(types.values()), (None,) * len(types)} == set(db.view("w"))
    assert set(db.sql(f"SELECT {calls} FROM every").fetchall()) == set(db.view("w"))
    db.function("reversed", lambda x: x[::-1], takes=["BINARY"], returns="BINARY")
    db.execute("CREATE MATERIALIZED VIEW x AS SELECT hex(reversed(encode(c8, 'UTF-8'))) AS h FROM every")
    assert set(db.view("x")) == {("A9C3",), (None,)}


def test_a_function_gets_nulls_only_if_it_was_registered_with_nulls(db: fv.Database) -> None:
    db.function("plain", lambda x, y: f"{x}{y}", takes=["INT", "INT"], returns="STRING")
    db.function("asking", lambda x, y: f"{x}{y}", takes=["INT", "INT"], returns="STRING", nulls=True)
    db.function("none", lambda: None, returns="INT")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT plain(a, 1) AS p, asking(a, NULL) AS q, none() AS n FROM t")
    db.insert("t", [(None, None, None, None, None), (3, None, None, None, None)])
    assert sorted(db.view("w"), key=str) == [("31", "3None", None), (None, "NoneNone", None)]
    assert db.sql("SELECT plain(a, 1), asking(a, NULL), none() FROM t WHERE a = 3").fetchall() == [
        ("31", "3None", None)
    ]


def test_a_function_that_a_view_calls_cannot_be_replaced_by_another(db: fv.Database) -> None:
    def one(x: int) -> int:
        return x + 1

    db.function("one", one, takes=["INT"], returns="INT")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT one(a) AS x FROM t")
    db.function("one", one, takes=["INT"], returns="INT")
    with pytest.raises(CatalogError, match="w call another function one; DROP them first, or rename it"):
        db.function("one", lambda x: x, takes=["INT"], returns="INT")
    db.execute("DROP VIEW w")
    db.function("one", lambda x: x + 2, takes=["INT"], returns="INT")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT one(a) AS x FROM t")
    db.insert("t", [(1, None, None, None, None)])
    assert list(db.view("w")) == [(3,)]
    assert db.sql("SELECT one(1)").fetchall() == [(3,)]


WRONG: list[tuple[Callable[[fv.Database], object], type[Exception], str]] = [
    (lambda db: db.function("abs", abs, returns="INT"), CatalogError, "abs is a function of SQL"),
    (lambda db: db.function("q", abs, takes="INT", returns="INT"), ArgumentError, r"\(takes\) must be a list of types"),
    (lambda db: db.function("q", 3, takes=["INT"], returns="INT"), ArgumentError, "takes a function, not 3"),
    (lambda db: db.function("q", abs, takes=["INTX"], returns="INT"), ArgumentError, r"\(takes\): 'INTX' is not a"),
    (lambda db: db.function("q", abs, returns="INT) AS INT"), ArgumentError, r"\(returns\): .* is not a column type"),
    (lambda db: db.function("q x", abs, returns="INT"), ArgumentError, "'q x' is not a valid name"),
    (lambda db: db.function("q", abs, returns="INT", arrow=True), ArgumentError, "Arrow arrays needs at least one"),
    (lambda db: db.function("q", abs, returns="INT", nulls=1), ArgumentError, r"\(nulls\) must be True or False"),
    (lambda db: fv.register_function("q", abs, returns="VOID"), ArgumentError, "register_function"),
]  # fmt: skip


def test_wrong_arguments_are_refused_and_the_error_says_which(db: fv.Database) -> None:
    for call, kind, message in WRONG:
        with pytest.raises(kind, match=message):
            call(db)


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(functions._registered)
    yield
    functions._registered.clear()
    functions._registered.update(before)


def test_create_function_cannot_redefine_a_registered_function_that_views_call(registered: None) -> None:
    fv.register_function("doubled", lambda x: x * 2, takes=["INT"], returns="INT")
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT); CREATE VIEW p AS SELECT doubled(a) AS d FROM t; INSERT INTO t VALUES (4)")
    for create in ("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"):
        with pytest.raises(SqlError, match="function doubled is still called by p; DROP them first"):
            db.execute(f"{create} doubled(x STRING) RETURN x || x")
        with pytest.raises(SqlError, match="function doubled is still called by p; DROP them first"):
            db.execute(f"{create} doubled(x INT) RETURN doubled(x) + 1")
    assert db.sql("SELECT d FROM p").fetchall() == [(8,)]
    db.execute("DROP VIEW p; CREATE FUNCTION doubled(x STRING) RETURN x || x")
    assert db.sql("SELECT doubled(a) FROM t").fetchall() == [("44",)]


def test_a_durable_database_stores_sql_functions_but_python_functions_must_be_registered(
    tmp_path: Path, registered: None
) -> None:
    def cell(x: float, digits: int) -> str:
        return f"{x:.{digits}f}"

    with fv.Database(tmp_path / "shop") as db:
        db.function("cell_of_shop", cell, takes=["DOUBLE", "INT"], returns="STRING")
        db.execute(
            """CREATE TABLE t (a INT, d DOUBLE);
            CREATE FUNCTION plus(x INT, y INT DEFAULT 3) RETURNS INT RETURN x + y;
            CREATE MATERIALIZED VIEW v AS SELECT cell_of_shop(d, plus(a, 0)) AS c FROM t"""
        )
        db.insert("t", [(1, 2.0)])
    with pytest.raises(StoreError, match=r"function cell_of_shop is not supported.*freshviews.register_function"):
        fv.Database(tmp_path / "shop")
    fv.register_function("cell_of_shop", cell, takes=["DOUBLE", "INT"], returns="STRING")
    with fv.Database(tmp_path / "shop") as db:
        assert list(db.view("v")) == [("2.0",)]
        db.insert("t", [(2, 3.0)])
        db.snapshot()
    with fv.Database(tmp_path / "shop") as db:
        db.insert("t", [(1, 4.0)])
        assert sorted(db.view("v")) == [("2.0",), ("3.00",), ("4.0",)]
        with pytest.raises(SqlError, match="function plus is still called by v"):
            db.execute("DROP FUNCTION plus")
        db.execute("DROP VIEW v; DROP FUNCTION plus; CREATE FUNCTION plus(x INT) RETURN x")
    with fv.Database(tmp_path / "shop") as db:
        assert db.sql("SELECT plus(5)").fetchall() == [(5,)]


def test_sql_calls_python_functions_only_of_modules_that_an_environment_variable_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_functions.py").write_text("def twice(x):\n    return 2 * x\n\nvalue = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    create = "CREATE FUNCTION twice(x INT) RETURNS INT USING python 'shop_functions:twice'"
    db = fv.Database()
    refusal = (
        "column 55: function twice: shop_functions:twice was not called, because the environment variable "
        "FRESHVIEWS_FUNCTIONS does not list module shop_functions; if you trust"
    )
    with pytest.raises(SqlError, match=refusal):
        db.execute(create)
    monkeypatch.setenv("FRESHVIEWS_FUNCTIONS", "other, shop_functions")
    for sql, message in [
        (create.replace(":twice'", ":thrice'"), "shop_functions:thrice cannot be imported: AttributeError"),
        (create.replace(":twice'", ":value'"), "shop_functions:value is of type int, and not a function"),
        (create.replace(":twice'", "'"), "'shop_functions' does not name a function; write 'module:function'"),
        (create.replace("RETURNS INT ", ""), "function twice in Python needs RETURNS and a type"),
    ]:
        with pytest.raises(SqlError, match=message):
            db.execute(sql)
    with fv.Database(tmp_path / "shop") as kept:
        kept.execute(
            f"{create}; CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT twice(x => a) AS x FROM t"
        )
        kept.insert("t", [(4,)])
    with fv.Database(tmp_path / "shop") as kept:
        kept.insert("t", [(5,)])
        assert sorted(kept.view("v")) == [(8,), (10,)]
        assert "twice(a)" in str(kept.view("v").explain())
