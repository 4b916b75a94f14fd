"""Rows of views by key: by group, by a key that those of the tables imply, by a prefix of it, and by other columns."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv

pytestmark = pytest.mark.plain_python

TABLES = """CREATE TABLE orders (o INT PRIMARY KEY, c INT, day DATE, total INT);
CREATE TABLE customers (c INT PRIMARY KEY, name STRING UNIQUE NOT NULL, town STRING);
CREATE TABLE items (o INT, line INT, part STRING, PRIMARY KEY (o, line));
CREATE TABLE loose (c INT, note STRING);
CREATE TABLE far (f INT PRIMARY KEY, c INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
"""
KEYED = {
    "first": ("SELECT o, c, total FROM orders ORDER BY total DESC, o LIMIT 3", ("o",)),
    "numbered": (
        "SELECT o, c, total, ROW_NUMBER() OVER (PARTITION BY c ORDER BY total, o) AS n FROM orders "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY c ORDER BY total, o) <= 2",
        ("o",),
    ),
    "joined": ("SELECT name, o, total FROM orders JOIN customers USING (c)", ("o",)),
    "outer_join": ("SELECT o, name, town FROM orders LEFT JOIN customers USING (c)", ("o",)),
    "lines": ("SELECT line, i.o, name FROM items i JOIN orders USING (o) JOIN customers USING (c)", ("o", "line")),
    "filtered": ("SELECT UPPER(name) AS name, c FROM customers WHERE town = 'x'", ("c",)),
    "groups": ("SELECT town, COUNT(*) AS n FROM customers GROUP BY town", ("town",)),
    "above": ("SELECT n, town FROM groups WHERE n > 1", ("town",)),
    "distinct_pairs": ("SELECT DISTINCT c, day FROM orders", ("c", "day")),
}
KEYLESS = {
    "without": ("SELECT name, total FROM orders JOIN customers USING (c) WHERE total > 0"),
    "loosely": ("SELECT o, note FROM orders JOIN loose USING (c)"),
    "trusted": ("SELECT f, c FROM far"),
    "both": ("SELECT o FROM orders UNION ALL SELECT c FROM customers"),
    "total": ("SELECT SUM(total) AS total FROM orders"),
}


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        views = [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, (query, _) in KEYED.items()]
        views += [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in KEYLESS.items()]
        made.execute(TABLES + ";\n".join(views))
        yield made


def change(db: fv.Database, chosen: random.Random) -> None:
    for _ in range(4):
        o, c = chosen.randrange(6), chosen.randrange(4)
        db.upsert("orders", [(o, chosen.choice((None, c, c)), None, chosen.choice((None, 1, 2, 3)))])
        db.upsert("customers", [(c, f"name {c}", chosen.choice((None, "x", "y")))])
        db.upsert("items", [(o, chosen.randrange(3), chosen.choice((None, "bolt")))])
        db.insert("loose", [(c, "z")])
    db.delete("orders", keys=[chosen.randrange(6)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.full
def test_a_view_finds_rows_by_key_prefix_and_column(db: fv.Database, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(6):
        change(db, chosen)
        for name, (_, key) in KEYED.items():
            view = db.view(name)
            names, rows = view.schema.names, list(view)
            places = [names.index(column) for column in key]
            for values in {tuple(row[i] for i in places) for row in rows}:
                (found,) = (row for row in rows if tuple(row[i] for i in places) == values)
                asked = values[0] if len(values) == 1 else values
                assert view[asked] == view.get(asked) == found
                assert view.scan(values[0]) == [row for row in rows if row[places[0]] == values[0]]
                assert view.scan(values) == [found]
            for place, column in enumerate(names):
                for value in {row[place] for row in rows}:
                    assert view.where(**{column.upper(): value}) == [row for row in rows if row[place] == value]
            missing: tuple[Any, ...] = (99, None)[: len(key)] if key != ("town",) else ("nowhere",)
            assert view.get(missing, "none") == "none" and view.scan(missing) == []
            with pytest.raises(KeyError, match=re.escape(str(missing[0]))):
                view[missing]


def test_the_method_where_returns_every_copy_of_a_row(db: fv.Database) -> None:
    db.upsert("orders", [(1, 1, None, 5)])
    db.insert("loose", [(1, "z"), (1, "z"), (1, None)])
    view = db.view("loosely")
    assert view.where(note="z") == [(1, "z")] * 2 == view.where(o=1, NOTE="z")
    assert view.where(note=None) == [(1, None)] and view.where(note="never stored") == []
    assert len(view.where()) == 3


@pytest.mark.parametrize("name", KEYLESS)
def test_a_lookup_in_a_view_without_a_key_is_refused_with_a_remedy(db: fv.Database, name: str) -> None:
    view = db.view(name)
    for ask in (view.get, view.scan, view.__getitem__):
        with pytest.raises(fv.CatalogError, match=rf"view {name} has no key to look up; .*where\(column=value\)"):
            ask(1)


def refused(db: fv.Database) -> list[tuple[Any, str]]:
    view, lines = db.view("joined"), db.view("lines")
    return [
        (lambda: view.get("x"), "o of view joined: 'x': INT accepts int"),
        (lambda: view.get((1, 2)), r"the key of view joined is \(o\), not \(1, 2\)"),
        (lambda: lines.scan((1, 2, 3)), r"view lines: the key is \(o, line\), not \(1, 2, 3\)"),
        (lambda: lines.scan("x"), "o of view lines: 'x': INT accepts int"),
        (lambda: view.where(o="x"), "o of view joined: 'x': INT accepts int"),
        (lambda: view.where(part=1), "view joined: part is not a column; the columns are name, o, total"),
        (lambda: view.where(o=1, O=2), "O is given twice; the columns are name, o, total"),
    ]


def test_the_error_of_a_wrong_key_names_the_key(db: fv.Database) -> None:
    for ask, words in refused(db):
        with pytest.raises(fv.ArgumentError, match=words):
            ask()
    with pytest.raises(KeyError, match="o of view joined"):
        db.view("joined")["x"]


def test_a_replaced_view_gets_the_key_of_its_new_definition(db: fv.Database) -> None:
    db.upsert("orders", [(1, 1, None, 5)])
    db.upsert("customers", [(1, "Ida", None)])
    assert db.view("joined").get(1) == ("Ida", 1, 5)
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW joined AS SELECT c, name FROM customers")
    assert db.view("joined")[1] == (1, "Ida")
    db.execute("ALTER TABLE customers ADD COLUMNS (age INT)")
    assert db.view("joined")[1] == (1, "Ida")


DECLARED = """CREATE MATERIALIZED VIEW loosely TBLPROPERTIES ('freshviews.key' = ' NOTE , o') AS
  SELECT o, note FROM orders JOIN loose USING (c);
CREATE MATERIALIZED VIEW both TBLPROPERTIES ('freshviews.key' = 'o') AS
  SELECT o FROM orders UNION ALL SELECT c FROM loose;
CREATE MATERIALIZED VIEW turned TBLPROPERTIES ('freshviews.key' = 'day, c') AS
  SELECT c, day, COUNT(*) AS n FROM orders GROUP BY c, day;
CREATE MATERIALIZED VIEW last TBLPROPERTIES ('freshviews.key' = 'c') AS
  SELECT o, c, total FROM orders ORDER BY total DESC LIMIT 2"""


@pytest.fixture
def declared() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(TABLES + DECLARED)
        made.upsert("orders", [(1, 1, None, 5), (2, 2, None, 6), (3, 1, None, 4)])
        made.insert("loose", [(1, "z"), (2, "z"), (4, None)])
        yield made


def test_rows_of_a_view_are_looked_up_by_its_declared_key(declared: fv.Database) -> None:
    loosely = declared.view("loosely")
    assert loosely[("z", 2)] == (2, "z") and loosely.get({"O": 1, "note": "z"}) == (1, "z")
    assert loosely.get(("z", 9)) is None and len(loosely.scan("z")) == 3
    assert declared.view("turned")[(None, 1)] == (1, None, 2)
    assert declared.view("last").get(2) == (2, 2, 6) and declared.view("last").scan(1) == [(1, 1, 5)]
    with pytest.raises(fv.ArgumentError, match=r"the key of view loosely is \(note, o\), not 'z'"):
        loosely.get("z")


def test_a_lookup_of_a_duplicate_declared_key_is_refused(declared: fv.Database) -> None:
    both = declared.view("both")
    assert both.get(3) == (3,)
    for ask in (both.get, both.__getitem__):
        with pytest.raises(fv.CatalogError, match=r"view both: its declared key .o. is not unique, .* have 1; list"):
            ask(1)
    declared.delete("loose", [(1, "z")])
    assert both[1] == (1,)


def test_alter_view_can_declare_change_and_remove_a_key(db: fv.Database) -> None:
    db.upsert("orders", [(1, 1, None, 5)])
    db.upsert("customers", [(1, "Ida", None)])
    without = db.view("without")
    db.execute("ALTER VIEW without SET TBLPROPERTIES ('freshviews.key' = 'NAME')")
    assert without["Ida"] == ("Ida", 5) and without._ipython_key_completions_() == ["Ida"]
    db.execute("ALTER VIEW without SET TBLPROPERTIES ('freshviews.key' = 'total')")
    assert without[5] == ("Ida", 5)
    db.execute("ALTER VIEW without SET TBLPROPERTIES ('freshviews.key' = '')")
    with pytest.raises(fv.CatalogError, match=r"ALTER VIEW without SET TBLPROPERTIES \('freshviews.key' = 'column'\)"):
        without.get("Ida")
    db.execute("ALTER VIEW first SET TBLPROPERTIES ('freshviews.key' = 'total')")
    assert db.view("first")[5] == (1, 1, 5)


@pytest.mark.parametrize(("key", "words"), [("x", "'x' is not"), ("a, A", "'A' is given twice"), ("", "'' is not")])
def test_a_declared_key_must_name_columns_of_the_view(key: str, words: str) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT, b INT)")
        with pytest.raises(fv.SqlError, match=f"line 1, .*key of view v: {words}.*; the columns are a, b"):
            db.execute(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.key' = '{key}') AS SELECT a, b FROM t")


def test_a_declared_key_survives_a_reopen(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "shop") as made:
        made.execute("""CREATE TABLE t (a INT, b INT);
            CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.key' = 'b') AS SELECT a, b FROM t""")
        made.insert("t", [(1, 2)])
        made.snapshot()
    with fv.Database(tmp_path / "shop") as opened:
        assert opened.view("v")[2] == (1, 2)
