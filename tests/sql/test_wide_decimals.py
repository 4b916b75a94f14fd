"""A DECIMAL of more than 18 digits holds all of its digits, and means what it means in Spark.

The answers of ``EXPRESSIONS`` are those of Spark 4.1 in ANSI mode.
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews import BatchError, Database, EvaluationError, SqlError
from freshviews.engine.commit.collection import Collection
from freshviews.types.sqltype import text_of, value_of_text

pytestmark = pytest.mark.plain_python(only=True)

MOST = 10**38 - 1
LARGE = Decimal("1234567890123456789012345678.1234567891")


def rows_of(db: Database, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in db.view(view))


def made(script: str, **rows: list[tuple[Any, ...]]) -> Database:
    db = Database()
    db.execute(script)
    for table, given in rows.items():
        db.insert(table, given)
    return db


def test_texts_of_values_are_in_the_order_of_the_values() -> None:
    ends = [0, *(10**n + d for n in range(77) for d in (-1, 0, 1))]
    values = sorted({*ends, *(-one for one in ends)})
    texts = [text_of(value) for value in values]
    assert all(one.encode() < other.encode() for one, other in pairwise(texts))
    assert [value_of_text(text) for text in texts] == values


def test_a_column_holds_38_digits_in_python_and_in_arrow() -> None:
    kinds = ("DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(38, 10)")
    for kind, scale in zip(kinds, (0, 38, 10), strict=True):
        values = [Decimal(u).scaleb(-scale, Context(prec=60)) for u in (MOST, -MOST, 0, 1, -1, 2**63, -(2**63), 2**64)]
        array = pa.array([*values, None], pa.decimal128(38, scale))
        db = made(f"CREATE TABLE t (x {kind}); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
        db.insert("t", [(value,) for value in values])
        db.insert("t", pa.table({"x": array}))
        assert db.view("v").to_arrow().column("x").type == array.type
        assert rows_of(db, "v") == Counter({**{(value,): 2 for value in values}, (None,): 1})
        db.delete("t", pa.table({"x": array}))
        assert Counter(db.view("v").to_arrow().column("x").to_pylist()) == Counter(values)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Decimal(10**38), r"DECIMAL\(38, 0\) accepts 38 digits before the point"),
        (Decimal("0.5"), r"DECIMAL\(38, 0\) accepts 0 digits after the point"),
        (1.5, r"DECIMAL\(38, 0\) accepts decimal.Decimal and int, not float"),
    ],
)
def test_a_value_that_the_type_lacks_is_refused(given: Any, reason: str) -> None:
    db = made("CREATE TABLE t (x DECIMAL(38, 0)); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    with pytest.raises(BatchError, match=f"table t, row 0, column x: .*{reason}"):
        db.insert("t", [(given,)])


EXPRESSIONS: list[tuple[str, tuple[int, int], str, tuple[int, int], str, str]] = []
"""An expression, the digits and the value of x and of y, and Spark's answer: its type and value, or ``error``."""


def test_aggregates_are_exact_while_rows_come_and_go() -> None:
    db = made(
        """CREATE TABLE t (g INT, x DECIMAL(36, 10), y DECIMAL(30, 0));
        CREATE MATERIALIZED VIEW v AS SELECT g, SUM(x) AS s, COUNT(x) AS n, MIN(x) AS lo, MAX(x) AS hi,
          SUM(DISTINCT y) AS d, AVG(y) AS a, SUM(y) FILTER (WHERE x > 0) AS f FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW top AS SELECT x, y FROM t ORDER BY x DESC NULLS LAST, y LIMIT 3"""
    )
    db._collection = Collection(db._dictionary, 8)
    chosen, stored = random.Random(3), Counter[tuple[Any, ...]]()
    context = Context(prec=80)

    def number(digits: int, scale: int) -> Decimal | None:
        size = 10 ** chosen.choice((1, 2, digits - 2))
        return None if chosen.random() < 0.1 else Decimal(chosen.randint(-size, size)).scaleb(-scale, context)

    for _ in range(25):
        rows = [(chosen.randint(0, 2), number(36, 10), number(30, 0)) for _ in range(4)]
        gone = chosen.sample(sorted(stored.elements(), key=repr), min(3, stored.total()))
        db.insert("t", rows)
        db.delete("t", gone)
        stored += Counter(rows)
        stored -= Counter(gone)
        expected = Counter[tuple[Any, ...]]()
        with localcontext(context):
            for g in {row[0] for row in stored}:
                xs = [x for k, x, _ in stored.elements() if k == g and x is not None]
                ys = [y for k, _, y in stored.elements() if k == g and y is not None]
                above = [y for k, x, y in stored.elements() if k == g and x is not None and x > 0 and y is not None]
                ends = (min(xs, default=None), max(xs, default=None))
                mean = None if not ys else (sum(ys) / len(ys)).quantize(Decimal("0.0001"), "ROUND_HALF_UP")
                distinct, positive = sum(set(ys)) if ys else None, sum(above) if above else None
                expected[(g, sum(xs) if xs else None, len(xs), *ends, distinct, mean, positive)] += 1
            best = sorted(stored.elements(), key=lambda r: (r[1] is None, -(r[1] or 0), r[2] is not None, r[2] or 0))
        assert rows_of(db, "v") == expected
        assert rows_of(db, "top") == Counter(row[1:] for row in best[:3])


def test_wide_and_narrow_decimals_and_integers_meet_in_joins_unions_and_conditions() -> None:
    db = made(
        """CREATE TABLE t (x DECIMAL(38, 4)); CREATE TABLE u (y DECIMAL(10, 2)); CREATE TABLE w (n BIGINT);
        CREATE MATERIALIZED VIEW j AS SELECT x, y FROM t JOIN u ON x = y;
        CREATE MATERIALIZED VIEW k AS SELECT x, n FROM t JOIN w ON x = n;
        CREATE MATERIALIZED VIEW a AS SELECT x FROM t UNION ALL SELECT y FROM u UNION ALL SELECT n FROM w;
        CREATE MATERIALIZED VIEW c AS SELECT x FROM t WHERE x > 99999999999999999999.5 OR x IN (1.5, 2, 7);
        CREATE MATERIALIZED VIEW g AS SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING x >= 1;
        CREATE MATERIALIZED VIEW e AS SELECT x FROM t WHERE EXISTS (SELECT * FROM u WHERE y = x)""",
        t=[(Decimal("1.5"),), (Decimal("2"),), (Decimal(2**63),), (Decimal("1E30"),), (None,)],
        u=[(Decimal("1.50"),), (Decimal("3"),)],
        w=[(2,), (2**63 - 1,)],
    )
    assert rows_of(db, "j") == Counter([(Decimal("1.5"), Decimal("1.5"))])
    assert rows_of(db, "k") == Counter([(Decimal(2), 2)])
    every = ("1.5", "2", str(2**63), "1E30", "1.5", "3", "2", str(2**63 - 1))
    assert rows_of(db, "a") == Counter([(None,), *((Decimal(one),) for one in every)])
    assert rows_of(db, "c") == Counter([(Decimal("1.5"),), (Decimal(2),), (Decimal("1E30"),)])
    assert rows_of(db, "g") == Counter((Decimal(one), 1) for one in ("1.5", "2", str(2**63), "1E30"))
    assert rows_of(db, "e") == Counter([(Decimal("1.5"),)])
    db.delete("t", [(Decimal("1.5"),), (Decimal("1E30"),)])
    assert not rows_of(db, "j") and not rows_of(db, "e") and rows_of(db, "c") == Counter([(Decimal(2),)])


def test_window_functions_order_wide_decimals() -> None:
    db = made(
        """CREATE TABLE t (id INT, x DECIMAL(38, 2));
        CREATE MATERIALIZED VIEW v AS SELECT id, ROW_NUMBER() OVER (ORDER BY x, id) AS n,
          LAG(x) OVER (ORDER BY x, id) AS l, SUM(x) OVER (ORDER BY id) AS s FROM t""",
        t=[(1, Decimal("1E30")), (2, Decimal("-1E30")), (3, Decimal("0.01")), (4, Decimal(2**64))],
    )
    expected = [
        (1, 4, Decimal(2**64), Decimal("1E30")), (2, 1, None, Decimal(0)),
        (3, 2, Decimal("-1E30"), Decimal("0.01")), (4, 3, Decimal("0.01"), 2**64 + Decimal("0.01")),
    ]  # fmt: skip
    assert rows_of(db, "v") == Counter(expected)


def test_keys_defaults_and_statements_take_wide_decimals(tmp_path: Path) -> None:
    path = tmp_path / "db"
    db = Database(path)
    db.execute(
        """CREATE TABLE t (k DECIMAL(38, 0) PRIMARY KEY, x DECIMAL(20, 2) DEFAULT 12345678901234567.25, n INT);
        CREATE MATERIALIZED VIEW v AS SELECT n, SUM(x) AS s, MAX(k) AS most FROM t GROUP BY n"""
    )
    db.upsert("t", {"k": MOST, "n": 1})
    db.upsert("t", {"k": -MOST, "x": Decimal("999999999999999999.99"), "n": 1})
    db.execute("INSERT INTO t VALUES (5, 0.5, 2); UPDATE t SET x = x + 1 WHERE k > 0")
    assert db.table("t")[MOST] == (MOST, Decimal("12345678901234568.25"), 1)
    expected = Counter([(1, Decimal("1012345678901234568.24"), MOST), (2, Decimal("1.50"), 5)])
    assert rows_of(db, "v") == expected
    assert db.sql("SELECT SUM(x) FROM t WHERE k <> 5").fetchall() == [(Decimal("1012345678901234568.24"),)]
    db.close()
    for _ in range(2):
        db = Database(path)
        assert rows_of(db, "v") == expected
        assert db.table("t")[-MOST] == (-MOST, Decimal("999999999999999999.99"), 1)
        db.snapshot()
        db.close()


def test_a_result_of_more_than_38_digits_is_an_error() -> None:
    db = made("""CREATE TABLE t (x DECIMAL(38, 0));
        CREATE MATERIALIZED VIEW v AS SELECT SUM(x) AS s, SUM(x) - 1 AS l FROM t""")
    db.insert("t", [(Decimal(-MOST),), (Decimal(MOST),)])
    with pytest.raises(EvaluationError, match=f"overflow: the unscaled value {2 * MOST} has more than 38 digits"):
        db.insert("t", [(Decimal(MOST),), (Decimal(MOST),)])
    assert rows_of(db, "v") == Counter([(Decimal(0), Decimal(-1))])


def test_a_cast_holds_a_sum_that_64_bits_do_not_hold() -> None:
    rows = [(Decimal("9999999999999999.99"),)] * 20
    db = made("""CREATE TABLE t (x DECIMAL(18, 2));
        CREATE MATERIALIZED VIEW v AS SELECT SUM(CAST(x AS DECIMAL(38, 2))) AS s FROM t""")
    db.insert("t", rows)
    assert rows_of(db, "v") == Counter([(sum(x for (x,) in rows),)])


def test_a_mean_of_many_digits_is_rounded_half_up() -> None:
    db = made("CREATE TABLE t (x DECIMAL(18, 6)); CREATE MATERIALIZED VIEW v AS SELECT AVG(x) AS a FROM t")
    db.insert("t", [(Decimal(f"999999999999.99999{digit}"),) for digit in (9, 8, 8)])
    mean = Fraction(3 * 10**18 - 5, 3 * 10**6)
    assert db.view("v").to_arrow().column("a").type == pa.decimal128(22, 10)
    assert [row[0] for row in db.view("v")] == [Decimal(int(mean * 10**10 + Fraction(1, 2))).scaleb(-10)]


@pytest.mark.parametrize(
    "item",
    [
        "SUM(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "x DIV 1",
        "CAST(x AS BIGINT)",
        "(SELECT sum_x_x FROM (SELECT COFACTOR(x) FROM t) AS c)",
    ],
)
def test_a_value_that_is_used_in_64_bits_and_does_not_fit_them_is_an_error(item: str) -> None:
    db = made(f"CREATE TABLE t (x DECIMAL(38, 2)); CREATE MATERIALIZED VIEW v AS SELECT x, {item} AS y FROM t")
    db.insert("t", [(Decimal("1.5"),)])
    stored = rows_of(db, "v")
    with pytest.raises(EvaluationError, match=r"does not fit|outside"):
        db.insert("t", [(Decimal("1E30"),)])
    assert rows_of(db, "v") == stored


def test_a_constant_of_more_than_38_digits_is_refused() -> None:
    with pytest.raises(SqlError, match="has more than 38 digits"):
        made(f"CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT x + {10 * MOST} AS y FROM t")
