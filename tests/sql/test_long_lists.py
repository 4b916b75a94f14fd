"""IN with thousands of constants: the same as with a few, planned fast."""

from __future__ import annotations

import time

import pytest

from freshviews import Database

pytestmark = pytest.mark.plain_python(only=True)

ROWS = [(3, "s1"), (4, "it's"), (None, None), (2997, "s4"), (-3, "s1500"), (5000, "s2")]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a IN ({numbers})", lambda a, s: None if a is None else a in range(0, 4500, 3)),
        ("a NOT IN ({numbers})", lambda a, s: None if a is None else a not in range(0, 4500, 3)),
        ("s IN ({strings}, 'it\\'s')", lambda a, s: None if s is None else s == "it's" or int(s[1:]) < 1500),
        ("a IN ({numbers}, NULL)", lambda a, s: True if a in range(0, 4500, 3) else None),
        ("a IN ({numbers}, -3)", lambda a, s: None if a is None else a in {-3, *range(0, 4500, 3)}),
        ("a IN ({numbers}, 2.5)", lambda a, s: None if a is None else a in range(0, 4500, 3)),
    ],
)
def test_a_long_list_means_what_a_short_one_does(condition, holds):
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


def test_a_list_of_150_000_constants_is_planned_within_seconds():
    db = Database()
    db.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
    began = time.process_time()
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT b FROM t WHERE a IN ({', '.join(map(str, range(150_000)))})")
    assert time.process_time() - began < 10
    db.insert("t", [(149_999, 1), (150_000, 2)])
    assert list(db.view("v")) == [(1,)]
