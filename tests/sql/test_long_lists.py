"""IN with thousands of constants has the meaning of a short list, and is planned fast."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from freshviews import Database
from freshviews.errors import SqlError

pytestmark = pytest.mark.plain_python(only=True)

ROWS = [(3, "s1"), (4, "it's"), (None, None), (2997, "s4"), (-3, "s1500"), (5000, "s2")]


def _is_string(s):
    return s[1:].isdigit() and int(s[1:]) < 1500


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a IN ({numbers})", lambda a, s: None if a is None else a in range(0, 4500, 3)),
        ("a NOT IN ({numbers})", lambda a, s: None if a is None else a not in range(0, 4500, 3)),
        ("s IN ({strings}, 'it\\'s')", lambda a, s: None if s is None else s == "it's" or int(s[1:]) < 1500),
        ("a IN ({numbers}, NULL)", lambda a, s: True if a in range(0, 4500, 3) else None),
        ("a IN ({numbers}, -3)", lambda a, s: None if a is None else a in {-3, *range(0, 4500, 3)}),
        ("a IN ({numbers}, 2.5)", lambda a, s: None if a is None else a in range(0, 4500, 3)),
        ("a IN ({numbers}, 4.0, NULL)", lambda a, s: True if a in {4, *range(0, 4500, 3)} else None),
        ("a IN ({numbers}, 4 + a - a)", lambda a, s: None if a is None else a in {4, *range(0, 4500, 3)}),
        ("a / 2 IN ({numbers}, 1.5)", lambda a, s: None if a is None else a / 2 in {1.5, *range(0, 4500, 3)}),
        ("s /* IN ({numbers}) */ IN ({strings})", lambda a, s: None if s is None else _is_string(s)),
        ("s <> 'IN ({numbers})'", lambda a, s: None if s is None else True),
        ("s IN ({strings}) OR a IN ( {numbers} )", lambda a, s: None if a is None else _is_string(s) or a in (3, 2997)),
    ],
)
def test_a_long_list_of_constants_means_the_same_as_a_short_list(condition, holds):
    lists = {
        "numbers": ", ".join(str(3 * i) for i in range(1500)),
        "strings": ", ".join(f"'s{i}'" for i in range(1500)),
    }
    db = Database()
    db.execute("CREATE TABLE t (a BIGINT, s STRING)")
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a, {condition.format(**lists)} AS holds FROM t")
    db.execute(f"CREATE MATERIALIZED VIEW w AS SELECT a FROM t WHERE {condition.format(**lists)}")
    db.insert("t", ROWS)
    assert sorted(db.view("v"), key=repr) == sorted([(a, holds(a, s)) for a, s in ROWS], key=repr)
    assert sorted(db.view("w"), key=repr) == sorted([(a,) for a, s in ROWS if holds(a, s)], key=repr)


def test_a_long_list_may_mix_integers_decimals_and_null():
    db = Database()
    db.execute("CREATE TABLE t (a BIGINT, d DECIMAL(9, 2), e DATE)")
    values = ", ".join(str(i) if i % 3 else f"{i}.5" if i % 2 else "NULL" for i in range(20_000))
    dates = ", ".join(f"DATE '{1000 + i}-01-01'" for i in range(1500))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a IN ({values}) OR d IN ({values})")
    db.execute(f"CREATE MATERIALIZED VIEW w AS SELECT a FROM t WHERE e IN ({dates})")
    db.insert("t", [(1, None, None), (3, Decimal("3.5"), date(2024, 1, 1)), (9, Decimal("3.25"), date(2024, 1, 2))])
    assert sorted(db.view("v")) == [(1,), (3,)] and list(db.view("w")) == [(3,)]


def test_errors_after_a_long_list_show_the_right_place():
    db = Database()
    db.execute("CREATE TABLE t (a BIGINT)")
    listed = ",\n".join(map(str, range(1500)))
    for condition, column in (("AND b = 1", 11), ("AND b.c = 1", 11), ("OR a = 'x", 14)):
        with pytest.raises(SqlError) as error:
            db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a IN ({listed}) {condition}")
        assert (error.value.line, error.value.column) == (1500, column), str(error.value)
