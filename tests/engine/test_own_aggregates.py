"""Aggregates of plain Python that users declare: Database.aggregate, register_aggregate, CREATE AGGREGATE FUNCTION."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.catalog import functions
from freshviews.errors import ArgumentError, CatalogError, EvaluationError, FreshviewsError, SqlError, StoreError
from freshviews.plan import STRATEGIES

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

Row = tuple[Any, ...]


class Listed:
    """The values in the order in which they were added."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def add(self, *values: Any) -> None:
        self.values.append(values[0] if len(values) == 1 else values)

    def output(self) -> str:
        return str(self.values)


class Weighted:
    """An exact mean with weights, as a state that is changed in place."""

    def __init__(self) -> None:
        self.total, self.weight = Fraction(0), 0

    def add(self, value: int, weight: int) -> None:
        self.total += value * weight
        self.weight += weight

    def remove(self, value: int, weight: int) -> None:
        self.add(value, -weight)

    def output(self) -> float | None:
        return float(self.total / self.weight) if self.weight else None


def weighted(rows: list[tuple[int, int]]) -> float | None:
    total = sum(weight for _, weight in rows)
    return float(Fraction(sum(value * weight for value, weight in rows)) / total) if total else None


@pytest.fixture
def db() -> fv.Database:
    made = fv.Database()
    made.execute("CREATE TABLE t (g STRING, x INT, s STRING)")
    made.aggregate("listed", takes=["INT"], returns="STRING")(Listed)
    return made


@pytest.mark.parametrize("strategy", [None, *(one for one in STRATEGIES if not one.startswith("ivm_eps"))])
@pytest.mark.full
def test_aggregates_follow_random_inserts_and_deletes(strategy: str | None) -> None:
    db = fv.Database()
    db.aggregate("listed", takes=["INT"], returns="STRING")(Listed)
    db.aggregate("weighted", takes=["INT", "INT"], returns="DOUBLE")(Weighted)
    named = "" if strategy is None else f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    db.execute(
        f"""CREATE TABLE r (a INT, x INT); CREATE TABLE s (a INT, y INT);
        CREATE MATERIALIZED VIEW v {named} AS SELECT a, listed(x) AS l, weighted(x, y) AS w, COUNT(*) AS n
            FROM r JOIN s USING (a) GROUP BY a;
        CREATE MATERIALIZED VIEW whole {named} AS
            SELECT listed(DISTINCT x) AS l, weighted(x, y) FILTER (WHERE y > 1) AS w FROM r JOIN s USING (a)"""
    )
    draw = random.Random(f"{strategy}")
    rows: dict[str, list[Row]] = {"r": [], "s": []}
    for _ in range(8):
        with db.batch() as batch:
            for name, kept in rows.items():
                new = [(draw.choice((None, 1, 2)), draw.choice((None, 0, 1, 2, 3))) for _ in range(draw.randrange(4))]
                gone = [kept.pop(draw.randrange(len(kept))) for _ in range(min(len(kept), draw.randrange(4)))]
                batch.insert(name, new)
                batch.delete(name, gone)
                kept += new
        joined = [(a, x, y) for a, x in rows["r"] for b, y in rows["s"] if a == b and a is not None]
        groups: dict[Any, list[Row]] = defaultdict(list)
        for a, x, y in joined:
            groups[a].append((x, y))
        expected = []
        for a, found in groups.items():
            values = sorted(x for x, _ in found if x is not None)
            pairs = [(x, y) for x, y in found if None not in (x, y)]
            expected.append((a, str(values) if values else None, weighted(pairs), len(found)))
        assert sorted(db.view("v"), key=str) == sorted(expected, key=str)
        values = sorted({x for _, x, _ in joined if x is not None})
        pairs = [(x, y) for _, x, y in joined if None not in (x, y) and y > 1]
        assert list(db.view("whole")) == [(str(values) if values else None, weighted(pairs))]


CALLS = [
    ("listed(x)", "[1, 2, 2]"),
    ("listed(DISTINCT x)", "[1, 2]"),
    ("listed(arg1 => -x)", "[-2, -2, -1]"),
    ("listed(x) FILTER (WHERE s = 'b')", "[2]"),
    ("listed(x) FILTER (WHERE s = 'c')", None),
    ("listed(NULL)", None),
    ("asking(x, s)", "[(None, 'd'), (1, None), (2, 'a'), (2, 'b')]"),
    ("asking(x, s) FILTER (WHERE s IS NOT NULL)", "[(None, 'd'), (2, 'a'), (2, 'b')]"),
    ("asking(DISTINCT NULL, 1)", "[(None, '1')]"),
    ("number()", 4),
    ("number() FILTER (WHERE x = 2)", 2),
    ("number() FILTER (WHERE x = 7)", None),
    ("length(listed(x)) + number()", 13),
]


@pytest.mark.parametrize(("call", "value"), CALLS, ids=[call for call, _ in CALLS])
def test_an_aggregate_gets_its_values_in_ascending_order(db: fv.Database, call: str, value: object) -> None:
    db.aggregate("asking", takes=["INT", "STRING"], returns="STRING", nulls=True)(Listed)
    db.aggregate("number", returns="INT", zero=int, add=lambda n: n + 1, remove=lambda n: n - 1, output=int)
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {call} AS c FROM t")
    assert list(db.view("v")) == [(None,)]
    db.insert("t", [("u", 2, "b"), ("u", 9, "z"), ("w", 1, None), ("u", None, "d"), ("u", 2, "a")])
    db.delete("t", [("u", 9, "z")])
    assert list(db.view("v")) == [(value,)]


QUERIES: list[tuple[str, list[Row]]] = [
    ("SELECT g, listed(x) AS l FROM t GROUP BY g HAVING length(listed(x)) > 3", [("u", "[1, 2]")]),
    (
        "SELECT g, s, listed(x) AS l FROM t GROUP BY ROLLUP (g, s)",
        [("u", "a", "[2]"), ("u", "b", "[1]"), ("w", "a", "[3]"), ("u", None, "[1, 2]"), ("w", None, "[3]"),
         (None, None, "[1, 2, 3]")],
    ),
    ("SELECT x, listed(x) OVER (PARTITION BY g) AS l FROM t", [(1, "[1, 2]"), (2, "[1, 2]"), (3, "[3]")]),
    ("SELECT x, listed(x) OVER (ORDER BY x) AS l FROM t", [(1, "[1]"), (2, "[1, 2]"), (3, "[1, 2, 3]")]),
    (
        "SELECT x, listed(x) OVER (ORDER BY x DESC ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS l FROM t",
        [(1, "[2, 3]"), (2, "[3]"), (3, None)],
    ),
    (
        "SELECT g, (SELECT listed(o.x) FROM t o WHERE o.x < t.x) AS l FROM t",
        [("u", None), ("u", "[1]"), ("w", "[1, 2]")],
    ),
    ("SELECT * FROM t PIVOT (listed(x) FOR s IN ('a', 'b'))", [("u", "[2]", "[1]"), ("w", "[3]", None)]),
    ("SELECT a, listed(k) AS l FROM p JOIN t USING (x) GROUP BY a", [("[1, 2]", "[2, 2]"), ("[3]", "[1]")]),
    ("FROM t |> AGGREGATE listed(x) AS l GROUP BY g", [("u", "[1, 2]"), ("w", "[3]")]),
    ("SELECT listed(x) AS l FROM t GROUP BY g ORDER BY listed(x) DESC LIMIT 1", [("[3]",)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=[query for query, _ in QUERIES])
def test_a_registered_aggregate_works_wherever_a_built_in_aggregate_works(
    db: fv.Database, query: str, expected: list[Row]
) -> None:
    db.execute(
        f"""CREATE VIEW p AS SELECT a, x, k
            FROM (SELECT g, listed(x) AS a, COUNT(*) AS k FROM t GROUP BY g) JOIN t USING (g);
        CREATE MATERIALIZED VIEW v AS {query}"""
    )
    db.insert("t", [("u", 2, "a"), ("w", 3, "a"), ("w", 4, "b")])
    with db.batch() as batch:
        batch.insert("t", [("u", 1, "b")])
        batch.delete("t", [("w", 4, "b")])
    assert sorted(db.view("v"), key=str) == sorted(expected, key=str)


@pytest.mark.full
def test_values_of_every_type_reach_an_aggregate_and_return() -> None:
    db = fv.Database()
    types: dict[str, Any] = {
        "BOOLEAN": True, "TINYINT": -5, "SMALLINT": 300, "INT": 70_000, "BIGINT": 2**40, "FLOAT": 0.5, "DOUBLE": 0.1,
        "DECIMAL(12, 3)": Decimal("1.500"), "STRING": "é", "DATE": date(2020, 2, 29),
        "TIMESTAMP": datetime(2020, 2, 29, 1, 2, 3, 4),
    }  # fmt: skip
    db.execute(f"CREATE TABLE every ({', '.join(f'c{i} {kind}' for i, kind in enumerate(types))})")
    for i, kind in enumerate(types):

        def last(before: list[Any], value: Any, expected: Any = types[kind]) -> list[Any]:
            assert (value, type(value)) == (expected, type(expected))
            return [*before, value]

        remove = (lambda before, value: before[1:]) if i % 2 else None
        db.aggregate(
            f"last{i}", takes=[kind], returns=kind, zero=list, add=last, output=lambda found: found[-1], remove=remove
        )
    db.aggregate("bytes_of", takes=["BINARY"], returns="BINARY", zero=bytes, add=lambda a, b: a + b, output=bytes)
    calls = ", ".join(f"last{i}(c{i}) AS c{i}" for i in range(len(types)))
    db.execute(
        f"""CREATE MATERIALIZED VIEW v AS SELECT {calls} FROM every;
        CREATE MATERIALIZED VIEW b AS SELECT hex(bytes_of(encode(c8, 'UTF-8'))) AS h FROM every"""
    )
    rows = [tuple(types.values()), (None,) * len(types), tuple(types.values())]
    for row in rows:
        db.insert("every", [row])
    db.delete("every", rows[:1])
    assert list(db.view("v")) == rows[:1]
    assert list(db.view("b")) == [("C3A9",)]


def test_nan_and_zeros_are_ordered_as_in_sql() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE d (x DOUBLE)")
    db.aggregate("listed", takes=["DOUBLE"], returns="STRING")(Listed)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT listed(x) AS l FROM d")
    db.insert("d", [(math.nan,), (-0.0,), (math.inf,), (-math.inf,), (None,)])
    assert list(db.view("v")) == [("[-inf, 0.0, inf, nan]",)]


class Strict:
    """Raises what the values say."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        self.values.append(value)
        if value == 13:
            raise KeyError("13 is missing")

    def remove(self, value: int) -> None:
        self.values.remove(value)
        if value == 14:
            raise ZeroDivisionError("14 stays")

    def output(self) -> int | str:
        if 15 in self.values:
            raise IndexError("no 15")
        return "text" if 16 in self.values else sum(self.values)


ERRORS = [
    (13, r"add\(state, 13\) raised KeyError: '13 is missing', group g = 'u'"),
    (15, "output(state) raised IndexError: no 15, group g = 'u'"),
    (16, "output returned 'text': INT accepts int, not str, group g = 'u'"),
]


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize(("value", "message"), ERRORS)
def test_an_error_names_its_aggregate_its_view_and_its_group(removes: bool, value: int, message: str) -> None:
    db = fv.Database()
    made = Strict if removes else type("Strict", (Strict,), {"remove": None})
    db.aggregate("strict", takes=["INT"], returns="INT")(made)
    db.execute(
        """CREATE TABLE t (g STRING, x INT);
        CREATE MATERIALIZED VIEW v AS SELECT g, strict(x) AS x, COUNT(*) AS n FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM t"""
    )
    db.insert("t", [("u", 1), ("w", 2)])
    db.insert("t", [("u", 1)])
    before = {name: sorted(db.view(name)) for name in db.views}
    version = db.version
    for _ in range(2):
        with pytest.raises(EvaluationError) as caught, db.batch() as batch:
            batch.insert("t", [("w", 5), ("u", value)])
            batch.delete("t", [("w", 2)])
        expected = message.replace("\\", "")
        assert f"view v cannot be computed: aggregate strict: {expected}" in str(caught.value)
        assert ({name: sorted(db.view(name)) for name in db.views}, db.version) == (before, version)
    db.insert("t", [("u", 4)])
    db.delete("t", [("w", 2)])
    assert list(db.view("v")) == [("u", 6, 3)]
    db.insert("t", [("u", 14)])
    if removes:
        with pytest.raises(EvaluationError, match=r"strict: remove\(state, 14\) raised ZeroDivisionError: 14 stays"):
            db.delete("t", [("u", 14)])
        assert list(db.view("v")) == [("u", 20, 4)]
    db.delete("t", [("u", 4)])
    assert list(db.view("v")) == [("u", 16, 3)]


def test_a_view_is_not_created_if_its_aggregate_raises_an_error(db: fv.Database) -> None:
    db.insert("t", [("u", 13, None)])
    db.aggregate("strict", takes=["INT"], returns="INT")(Strict)
    with pytest.raises(EvaluationError, match=r"view v: .*: aggregate strict: add\(state, 13\) raised KeyError"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT strict(x) AS x FROM t")
    assert not db.views
    db.aggregate("none", returns="INT", zero=int, add=lambda n: None, output=int)
    with pytest.raises(EvaluationError, match="aggregate none: add returned None; it must return the state"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT none() AS x FROM t")


def test_a_batch_that_another_view_refuses_leaves_all_states_unchanged(db: fv.Database) -> None:
    db.aggregate("strict", takes=["INT"], returns="INT")(Strict)
    db.execute(
        """CREATE MATERIALIZED VIEW v AS SELECT g, strict(x) AS x FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW w AS SELECT 1 / x AS y FROM t"""
    )
    db.insert("t", [("u", 1, None), ("u", 2, None), ("w", 3, None)])
    for g in ("u", "w"):
        with pytest.raises(EvaluationError, match="view w cannot be computed"), db.batch() as batch:
            batch.insert("t", [(g, 0, None), (g, 7, None)])
            batch.delete("t", [("u", 1, None)])
        db.insert("t", [("u", 5, None)])
    assert sorted(db.view("v")) == [("u", 13), ("w", 3)]


@pytest.mark.parametrize("removes", [True, False])
def test_a_change_of_one_row_calls_remove_once_or_without_remove_recomputes_the_group(removes: bool) -> None:
    calls: list[str] = []
    db = fv.Database()
    db.execute("CREATE TABLE t (g INT, x INT)")

    def add(n: int, x: int) -> int:
        calls.append("add")
        return n + x

    def remove(n: int, x: int) -> int:
        calls.append("remove")
        return n - x

    db.aggregate(
        "total", takes=["INT"], returns="BIGINT", zero=int, add=add, output=int, remove=remove if removes else None
    )
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, total(x) AS x FROM t GROUP BY g")
    db.insert("t", [(g, x) for g in range(3) for x in range(200)])
    db.insert("t", [(0, 1000)])
    calls.clear()
    with db.batch() as batch:
        batch.insert("t", [(1, 500)])
        batch.delete("t", [(1, 7)])
    assert db.view("v")[1] == (1, 19900 + 493)
    assert sorted(calls) == (["add", "remove"] if removes else ["add"] * 200)
    plan = str(db.view("v").explain())
    more = "O(log n) for each changed row, with one call of add or remove"
    assert (more in plan, "O(n log n) for each changed group of n rows, with n calls of add" in plan) == (
        removes, not removes,
    )  # fmt: skip


def test_an_aggregate_ignores_deletes_of_rows_that_a_trusted_table_never_had() -> None:
    db = fv.Database()
    db.aggregate("strict", takes=["INT"], returns="INT")(Strict)
    db.execute(
        """CREATE TABLE t (g STRING, x INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
        CREATE MATERIALIZED VIEW u AS SELECT g, x FROM t;
        CREATE MATERIALIZED VIEW v AS SELECT g, strict(x) AS x FROM u GROUP BY g"""
    )
    db.insert("t", [("u", 1)])
    db.delete("t", [("u", 2)])
    db.insert("t", [("u", 3)])
    assert list(db.view("v")) == [("u", 4)]
    db.insert("t", [("u", 2)])
    assert list(db.view("v")) == [("u", 4)]
    assert "with n calls of add" in str(db.view("v").explain())


WRONG: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda db: db.aggregate("sum", returns="INT")(Listed), CatalogError, "sum is a function of SQL"),
    (lambda db: db.aggregate("q", takes="INT", returns="INT"), ArgumentError, r"\(takes\) must be a list of types"),
    (lambda db: db.aggregate("q", returns="INTX"), ArgumentError, r"\(returns\): 'INTX' is not a column type"),
    (lambda db: db.aggregate("q", returns="INT")(len), ArgumentError, "decorates a class, not .*; functions are given"),
    (lambda db: db.aggregate("q", returns="INT")(int), ArgumentError, "class int has no method add; it needs add and"),
    (lambda db: db.aggregate("q x", returns="INT")(Listed), ArgumentError, "'q x' is not a valid name"),
    (lambda db: db.aggregate("q", returns="INT", nulls=1), ArgumentError, "the argument nulls must be True or False"),
    (lambda db: db.aggregate("q", returns="INT", zero=0, add=max, output=int), ArgumentError,
     r"\(zero\) must be a function, not 0; it makes a new state"),
    (lambda db: db.aggregate("q", returns="INT", zero=int, add=max), ArgumentError, r"\(output\) must be a function"),
    (lambda db: db.aggregate(None, returns="INT", zero=int, add=max, output=int), ArgumentError, "NULL is not a valid"),
    (lambda db: fv.register_aggregate("q", returns="VOID"), ArgumentError, "register_aggregate"),
]  # fmt: skip


def test_wrong_arguments_are_refused_and_the_error_says_which(db: Any) -> None:
    for call, kind, message in WRONG:
        with pytest.raises(kind, match=message):
            call(db)


REFUSED = [
    ("SELECT listed(x ORDER BY s) FROM t", "ORDER BY in listed is not supported; values come in ascending order"),
    ("SELECT x FROM t WHERE listed(x) = ''", "an aggregate function cannot stand in WHERE"),
    ("SELECT listed(x, x) FROM t", r"listed\(arg1 INT\) takes 1 argument, not 2"),
    ("SELECT listed(DATE '2020-01-01') FROM t", "parameter arg1 of listed is INT: DATE cannot be cast to INT"),
    ("SELECT listed(listed(x)) FROM t", "an aggregate function cannot stand in an aggregate function"),
    ("SELECT listedd(x) FROM t", "function listedd is not supported; .* did you mean listed"),
    ("SELECT * FROM t PIVOT (abs(x) FOR s IN ('a'))", "FILTER .* only after an aggregate function, not after abs"),
]


def test_the_error_of_a_wrong_call_names_the_place_and_the_remedy(db: fv.Database) -> None:
    for sql, message in REFUSED:
        with pytest.raises(SqlError, match=message) as caught:
            db.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        assert caught.value.line == 1
    for sql in ("SELECT listed(x) FROM t", "INSERT INTO t SELECT g, 1, listed(x) FROM t GROUP BY g"):
        with pytest.raises(SqlError, match="aggregate listed, of plain Python, in a SELECT is not supported; call it"):
            (db.sql if sql.startswith("SELECT") else db.execute)(sql)
    with pytest.raises(SqlError, match="column 33: an aggregate function cannot stand in the body of function f"):
        db.execute("CREATE FUNCTION f(x INT) RETURN listed(x)")
    with pytest.raises(FreshviewsError, match="ivm_eps"):
        db.execute(
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'ivm_eps') AS SELECT listed(x) FROM t"
        )


def test_an_aggregate_that_a_view_calls_cannot_be_replaced_by_another(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT listed(x) AS l FROM t")
    db.aggregate("listed", takes=["INT"], returns="STRING")(Listed)
    with pytest.raises(CatalogError, match="v call another function listed; DROP them first, or rename it"):
        db.aggregate("listed", takes=["INT"], returns="STRING")(Weighted)
    with pytest.raises(SqlError, match="function listed is still called by v; DROP them first"):
        db.execute("DROP FUNCTION listed")
    db.execute("DROP VIEW v; DROP FUNCTION listed")
    with pytest.raises(SqlError, match=r"for an aggregate call Database.aggregate or freshviews.register_ag"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT listed(x) AS l FROM t")


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(functions._registered)
    yield
    functions._registered.clear()
    functions._registered.update(before)


def test_a_durable_database_requires_its_aggregates_to_be_registered(tmp_path: Path, registered: None) -> None:
    with fv.Database(tmp_path / "shop") as db:
        db.aggregate("weighted_mean", takes=["INT", "INT"], returns="DOUBLE")(Weighted)
        db.execute(
            """CREATE TABLE t (g INT, x INT, w INT);
            CREATE MATERIALIZED VIEW v AS SELECT g, weighted_mean(x, w) AS m FROM t GROUP BY g"""
        )
        db.insert("t", [(1, 2, 3), (1, 6, 1)])
    with pytest.raises(StoreError, match=r"function weighted_mean is not supported.*freshviews.register_aggregate"):
        fv.Database(tmp_path / "shop")
    fv.register_aggregate("weighted_mean", takes=["INT", "INT"], returns="DOUBLE")(Weighted)
    with fv.Database(tmp_path / "shop") as db:
        assert list(db.view("v")) == [(1, 3.0)]
        db.delete("t", [(1, 6, 1)])
        assert list(db.view("v")) == [(1, 2.0)]
        db.snapshot()
    with fv.Database(tmp_path / "shop") as db:
        db.insert("t", [(1, 4, 3)])
        assert list(db.view("v")) == [(1, 3.0)]


MODULE = """class Longest:
    def __init__(self):
        self.best = ""
    def add(self, text):
        self.best = max(self.best, text, key=len)
    def output(self):
        return self.best

def twice(x):
    return 2 * x
"""


def test_sql_accepts_aggregates_only_of_modules_that_an_environment_variable_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_aggregates.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    create = "CREATE AGGREGATE FUNCTION longest(s STRING) RETURNS STRING USING python 'shop_aggregates:Longest'"
    with pytest.raises(SqlError, match=r"function longest: .* add shop_aggregates to FRESHVIEWS_FUNCTIONS"):
        fv.Database().execute(create)
    monkeypatch.setenv("FRESHVIEWS_FUNCTIONS", "shop_aggregates")
    for sql, message in [
        (create.replace("Longest'", "twice'"), "shop_aggregates:twice is of type function, and not a class"),
        (create.replace("shop_aggregates:Longest", "shop_aggregates:Longest.x"), "cannot be imported: AttributeError"),
        (create.partition("USING")[0] + "RETURN s", "an AGGREGATE FUNCTION in SQL is not supported"),
        (create.replace("RETURNS STRING ", ""), "function longest in Python needs RETURNS and a type"),
        (create.replace("'shop_aggregates:Longest'", "f"), "names no function of Python; CREATE AGGREGATE FUNCTION"),
    ]:
        with pytest.raises(SqlError, match=message):
            fv.Database().execute(sql)
    with fv.Database(tmp_path / "shop") as db:
        db.execute(
            f"""{create}; CREATE TABLE t (a INT, s STRING);
            CREATE MATERIALIZED VIEW v AS SELECT a, longest(s => s) AS l FROM t GROUP BY a"""
        )
        db.insert("t", [(1, "bolt"), (1, "nut")])
    monkeypatch.delenv("FRESHVIEWS_FUNCTIONS")
    with pytest.raises(StoreError, match="add shop_aggregates to FRESHVIEWS_FUNCTIONS"):
        fv.Database(tmp_path / "shop")
    monkeypatch.setenv("FRESHVIEWS_FUNCTIONS", "shop_aggregates")
    with fv.Database(tmp_path / "shop") as db:
        db.delete("t", [(1, "bolt")])
        assert list(db.view("v")) == [(1, "nut")]
        db.execute(f"DROP VIEW v; {create.replace('CREATE', 'CREATE OR REPLACE')}; DROP FUNCTION longest")


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class _Incomparable:
    """A function that raises if it is compared."""

    def __call__(self, state: int, value: int) -> int:
        raise _Unprintable

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = object.__hash__


def test_objects_of_a_user_that_cannot_be_printed_or_compared_raise_errors_of_freshviews() -> None:
    db = fv.Database()
    for _ in range(2):
        db.aggregate("strange", takes=["INT"], returns="INT", zero=int, add=_Incomparable(), output=int)
    db.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT strange(a) AS y FROM t")
    with pytest.raises(EvaluationError, match="raised _Unprintable: a message that cannot be shown"):
        db.insert("t", [(1,)])
