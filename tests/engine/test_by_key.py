"""Changes by PRIMARY KEY: upsert, update and delete by key do what a dict of rows does, in all ways of a commit."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine import database

pytestmark = pytest.mark.plain_python

SCRIPT = """CREATE TABLE s (a INT NOT NULL, v INT);
CREATE TABLE t (v INT, a INT NOT NULL, b STRING, w STRING DEFAULT 'none', PRIMARY KEY (b, a));
CREATE MATERIALIZED VIEW by_w AS SELECT w, COUNT(*) AS n, SUM(v) AS v FROM t GROUP BY w;
CREATE MATERIALIZED VIEW joined AS SELECT t.a, b, w, s.v FROM t JOIN s ON s.a = t.a;
CREATE MATERIALIZED VIEW most AS SELECT b, MAX(v) AS v, COUNT(DISTINCT w) AS n FROM t GROUP BY b"""
ABOVE = "CREATE MATERIALIZED VIEW above AS SELECT v, COUNT(*) AS n FROM most GROUP BY v"
"""A view over a view: every batch takes the general way."""

Row = tuple[Any, ...]
Model = dict[tuple[Any, Any], Row]


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        yield made


def row(chosen: random.Random) -> Row:
    v, w = chosen.choice((None, 1, 2, 3)), chosen.choice((None, "x", "yy", "none"))
    return v, chosen.randrange(4), chosen.choice("pq"), w


def step(chosen: random.Random, model: Model, on: Any) -> None:
    """A random change of ``model``, and the same of ``on``, a database or a batch."""
    number = chosen.choice((0, 1, 1, 2, 3, 12))
    rows = [row(chosen) for _ in range(number)]
    match chosen.randrange(5):
        case 0:
            on.upsert("t", form(chosen, rows))
            model.update({(b, a): (v, a, b, w) for v, a, b, w in rows})
        case 1:
            keys: list[Any] = [(b, a) for _, a, b, _ in rows]
            columns = pa.table({"B": [b for b, _ in keys], "a": [a for _, a in keys]})
            on.delete("t", keys=columns if number == 3 else keys)
            for key in keys:
                model.pop(key, None)
        case 2:
            changes = [changed(chosen, model[key]) for key in chosen.choices([*model], k=number)] if model else []
            on.update("t", pd.DataFrame(changes) if alike(changes) and chosen.random() < 0.5 else changes)
            for given in changes:
                key = given["b"], given["a"]
                old = dict(zip(("v", "a", "b", "w"), model[key], strict=True))
                model[key] = tuple((old | given).values())
        case 3:
            new = {(b, a): (v, a, b, w) for v, a, b, w in rows if (b, a) not in model}
            on.insert("t", [*new.values()])
            model.update(new)
        case 4:
            gone = chosen.sample([*model], min(number, len(model)))
            on.delete("t", [model.pop(key) for key in gone])


def form(chosen: random.Random, rows: list[Row]) -> Any:
    names = ("v", "a", "b", "w")
    if chosen.random() < 0.5:
        return rows
    named = [dict(zip(names, one, strict=True)) for one in rows]
    return named if chosen.random() < 0.5 or not rows else pa.Table.from_pylist(named)


def changed(chosen: random.Random, old: Row) -> dict[str, Any]:
    given = {"a": old[1], "b": old[2]}
    if chosen.random() < 0.6:
        given["v"] = chosen.choice((None, 4, 5))
    if chosen.random() < 0.6:
        given["w"] = chosen.choice((None, "x", "zz"))
    return given


def alike(changes: list[dict[str, Any]]) -> bool:
    """Whether all have the same columns and no NULL, as frames of pandas have them."""
    return len({tuple(one) for one in changes}) == 1 and not any(None in one.values() for one in changes)


def recomputed(model: Model, others: list[Row]) -> dict[str, Counter[Row]]:
    """The contents of the views, by DuckDB."""
    queries = {one.split()[0]: one.split(" AS ", 1)[1] for one in SCRIPT.split("CREATE MATERIALIZED VIEW ")[1:]}
    with duckdb.connect() as peer:
        peer.execute("CREATE TABLE s (a INT, v INT); CREATE TABLE t (v INT, a INT, b VARCHAR, w VARCHAR)")
        for name, rows in (("s", others), ("t", [*model.values()])):
            if rows:
                peer.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return {name: Counter(peer.execute(query.rstrip(";\n")).fetchall()) for name, query in queries.items()}


@pytest.mark.parametrize("way", ["direct", "general", "batch", "read", "durable"])
@pytest.mark.parametrize("seed", range(3))
def test_changes_by_key_agree_with_a_dict(way: str, seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    path = tmp_path / "db" if way == "durable" else None
    others = [(a, v) for a in range(3) for v in (1, 2)]
    db = fv.Database(path)
    db.execute(SCRIPT + (f";{ABOVE}" if way == "general" else ""))
    db.insert("s", others)
    model: Model = {}
    held: Counter[Row] = Counter()
    if way in ("read", "batch"):
        db.view("joined").subscribe(lambda change: held.update(dict(change)))
    for number in range(60):
        version = db.version
        if way == "batch":
            with db.batch() as batch:
                for _ in range(chosen.randrange(1, 5)):
                    step(chosen, model, batch)
        else:
            step(chosen, model, db)
        assert db.version == version + 1
        assert Counter(db.table("t")) == Counter(model.values())
        if number % 10 == 9:
            if way == "durable":
                if number % 20 == 19:
                    db.snapshot()
                db.close()
                db = fv.Database(path)
            expected = recomputed(model, others)
            assert {name: Counter(db.view(name)) for name in expected} == expected
            assert way not in ("read", "batch") or +held == expected["joined"]
            for key in [(b, a) for b in "pqr" for a in range(4)]:
                assert db.table("t").get(key) == model.get(key) and (key in db.table("t")) == (key in model)
    db.close()


def test_a_small_change_by_key_takes_the_direct_way(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the general way")

    monkeypatch.setattr(database.Database, "_commit", refuse)
    db.upsert("t", [(1, 1, "p", "x"), (2, 2, "p", "x")])
    db.upsert("t", {"a": 1, "b": "p", "v": 5})
    db.upsert("t", [(5, 1, "p", "none")])
    db.update("t", {"a": 1, "b": "p", "v": 6})
    db.delete("t", keys=[("p", 2), ("p", 3)])
    assert db.version == 5 and list(db.table("t")) == [(6, 1, "p", "none")]


def test_one_row_with_named_columns_takes_the_direct_way(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the general way")

    @dataclass
    class Pair:
        a: int
        b: str

    with monkeypatch.context() as only:
        only.setattr(database.Database, "_commit", refuse)
        db.insert("t", {"v": 1, "a": 1, "b": "p", "w": "x"})
        db.insert("t", {"w": "y", "b": "p", "a": 2, "V": 2})
        db.insert("t", [{"a": 3, "b": "p"}, (4, 4, "p", "z")])
        db.insert("t", Pair(5, "p"))
        db.insert("t", [[6, 6, "p", "w"]])
        db.apply("t", {"a": 6, "b": "p", "v": 6, "w": "w", "_multiplicity": -1})
        db.delete("t", {"b": "p", "a": 4, "w": "z", "v": 4})
        db.update("t", {"A": 3, "b": "p", "W": "u"})
    assert db.version == 8
    assert sorted(db.table("t"), key=itemgetter(1)) == [
        (1, 1, "p", "x"), (2, 2, "p", "y"), (None, 3, "p", "u"), (None, 5, "p", "none")
    ]  # fmt: skip
    for wrong, said in (({"a": 1, "A": 1}, "given twice"), ({"a": 1, 1: 2}, "no column 1"), ({}, "NULL in a column")):
        for _ in range(2):
            for change in (db.insert, db.upsert):
                with pytest.raises(fv.BatchError, match=said):
                    change("t", wrong)
    for number in range(200):
        with pytest.raises(fv.BatchError, match=f"no column c{number}"):
            db.insert("t", {"a": 1, "b": "p", f"c{number}": 1})
    assert db.version == 8


def test_the_last_value_given_for_a_key_in_one_call_is_stored(db: fv.Database) -> None:
    db.upsert("t", [(1, 1, "p", "x"), (2, 1, "p", "y"), (3, 1, "p", "z")])
    assert list(db.table("t")) == [(3, 1, "p", "z")]
    db.update("t", [{"a": 1, "b": "p", "v": 4}, {"b": "p", "a": 1, "w": "u"}, {"b": "p", "a": 1, "v": 5}])
    assert list(db.table("t")) == [(5, 1, "p", "u")]


def test_a_subscriber_gets_only_changed_rows(db: fv.Database) -> None:
    db.upsert("t", [(1, 1, "p", "x"), (2, 2, "p", "x")])
    changes: list[list[tuple[Row, int]]] = []
    db.view("by_w").subscribe(lambda change: changes.append(sorted(change)))
    db.upsert("t", [(1, 1, "p", "x"), (3, 2, "p", "x")])
    db.upsert("t", [(1, 1, "p", "x")])
    db.update("t", {"a": 1, "b": "p"})
    db.delete("t", keys=[("nobody", 1)])
    assert changes == [[(("x", 2, 3), -1), (("x", 2, 4), 1)]] and db.version == 5


def test_changes_by_key_see_earlier_changes_of_their_batch(db: fv.Database) -> None:
    db.insert("t", [(1, 1, "p", "x"), (2, 2, "p", "x")])
    with db.batch() as batch:
        batch.delete("t", [(1, 1, "p", "x")])
        batch.upsert("t", [(8, 1, "p", "y")])
        batch.update("t", {"a": 1, "b": "p", "w": "z"})
        batch.insert("t", [(3, 3, "p", "x")])
        batch.delete("t", keys=[("p", 3), ("p", 2)])
        batch.insert("t", [(4, 2, "p", "x")])
    assert sorted(db.table("t")) == [(4, 2, "p", "x"), (8, 1, "p", "z")]
    with pytest.raises(fv.BatchError, match=r"update of \('p', 2\), a key that no row has"), db.batch() as batch:
        batch.delete("t", keys=[("p", 2)])
        batch.update("t", {"a": 2, "b": "p", "w": "z"})
    assert batch.version is None and db.table("t")["p", 2] == (4, 2, "p", "x")


def test_changes_by_key_keep_the_values_of_added_columns(db: fv.Database) -> None:
    db.insert("t", [(1, 1, "p", "x"), (2, 2, "p", "x")])
    with db.batch() as batch:
        batch.upsert("t", [(5, 1, "p", "x")])
        batch.update("t", {"a": 2, "b": "p", "v": 6})
        db.execute("ALTER TABLE t ADD COLUMNS (more INT DEFAULT 7)")
        db.update("t", {"a": 2, "b": "p", "more": 8})
    assert sorted(db.table("t")) == [(5, 1, "p", "x", 7), (6, 2, "p", "x", 8)]
    assert db.table("t")["p", 1] == (5, 1, "p", "x", 7)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda on: on.delete("t", [{"a": 1}]), fv.BatchError, r"b of a row to delete is not given; .*\('t', keys="),
    (lambda on: on.delete("t", pa.table({"a": [1]})), fv.BatchError, "b of a row to delete is not given; rows"),
    (lambda on: on.delete("t", keys="p"), fv.ArgumentError, r"keys= must be a list.*keys=\[\(1, 'x'\)\], .*, not str"),
    (lambda on: on.delete("t", keys=1), fv.ArgumentError, "columns, not int"),
    (lambda on: on.delete("t", [], keys=[]), fv.ArgumentError, "whole rows or keys=, not both"),
    (lambda on: on.delete("t", keys=[("p", 1), "p"]), fv.BatchError, r"t, key 1: the key of table t is \(b, a\), not"),
    (lambda on: on.delete("t", keys=[("p", "x")]), fv.BatchError, "key 0: a of table t: 'x': INT accepts int"),
    (lambda on: on.delete("t", keys=[{"a": 1, "c": 2}]), fv.BatchError, r"key of table t is \(b, a\)"),
    (lambda on: on.upsert("t", [(1, None, "p", "x")]), fv.BatchError, "row 0, column a: NULL in a column declared"),
    (lambda on: on.upsert("t", [{"b": "p"}]), fv.BatchError, "column a: NULL in a column declared NOT NULL"),
    (lambda on: on.upsert("t", [(1, 2)]), fv.BatchError, "a row has 4 values"),
    (lambda on: on.update("t", [{"a": 1, "b": "p"}, {"a": 1}]), fv.BatchError, r"row 1: .*\(b, a\); b is not given"),
    (lambda on: on.update("t", pa.table({"a": [1], "v": [1]})), fv.BatchError, r"\(b, a\); b is not given"),
    (lambda on: on.update("t", [(1, 1, "p", "x")]), fv.BatchError, "row 0: an update is a dict, .*upsert takes whole"),
    (lambda on: on.update("t", {"a": 1, "b": "p", "x": 1}), fv.BatchError, "row 0: there is no column x"),
    (lambda on: on.update("t", pa.table({"a": [1], "b": ["p"], "x": [1]})), fv.BatchError, "no column x; the .* v, a"),
    (lambda on: on.update("t", {"a": 1, "b": "p", "v": "x"}), fv.BatchError, "row 0, column v: 'x': INT accepts int"),
    (lambda on: on.update("t", {"a": 1, "A": 1, "b": "p"}), fv.BatchError, "A is given twice"),
    (lambda on: on.upsert("s", [(1, 1)]), fv.CatalogError, "table s has no PRIMARY KEY by which"),
    (lambda on: on.delete("s", keys=[1]), fv.CatalogError, "table s has no PRIMARY KEY by which"),
    (lambda on: on.update("none", {"a": 1}), fv.CatalogError, "unknown table none"),
    (lambda on: on.upsert("by_w", []), fv.CatalogError, "by_w is a view"),
    (lambda on: on.update("t", 7), fv.BatchError, "rows are given as int"),
]


@pytest.mark.parametrize("of", ["database", "batch"])
@pytest.mark.parametrize(("act", "kind", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_the_error_of_a_change_by_key_names_the_remedy(
    db: fv.Database, act: Callable[[Any], Any], kind: type[Exception], words: str, of: str
) -> None:
    db.insert("t", [(1, 1, "p", "x")])
    with pytest.raises(kind, match=words):
        if of == "database":
            act(db)
        else:
            with db.batch() as batch:
                act(batch)
    assert db.version == 1 and list(db.table("t")) == [(1, 1, "p", "x")]


def test_the_error_of_updating_a_key_without_a_row_shows_the_key(db: fv.Database) -> None:
    db.insert("t", [(1, 1, "p", "x")])
    with pytest.raises(fv.BatchError, match=r"row 1, column b, a: update of .*, a key that no row has") as caught:
        db.update("t", [{"a": 1, "b": "p", "v": 9}, {"a": 9, "b": "p"}, {"a": 8, "b": "p"}])
    assert (caught.value.row, caught.value.value) == (1, ("p", 9))
    assert list(db.table("t")) == [(1, 1, "p", "x")]


def test_the_error_of_deleting_a_missing_row_suggests_a_delete_by_key(db: fv.Database) -> None:
    words = r"not there: .*; rows are deleted whole, or by the PRIMARY KEY \(b, a\): delete\('t', keys=\[...\]\)$"
    with pytest.raises(fv.BatchError, match=words):
        db.delete("t", [{"a": 1, "b": "p"}])
    with pytest.raises(fv.BatchError, match=r"not there: \(9, 9\)$"):
        db.delete("s", [(9, 9)])


def test_trusted_tables_and_windows_refuse_changes_by_key() -> None:
    with fv.Database() as db:
        db.execute("""CREATE TABLE far (id INT PRIMARY KEY, v INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
            CREATE TABLE recent (id INT PRIMARY KEY, v INT) TBLPROPERTIES ('freshviews.window' = '10 rows')""")
        for name, words in (("far", "is trusted: its rows are not stored"), ("recent", "has a window, which deletes")):
            for act in (
                lambda n=name: db.upsert(n, [(1, 1)]),
                lambda n=name: db.update(n, {"id": 1}),
                lambda n=name: db.delete(n, keys=[1]),
            ):
                with pytest.raises(fv.CatalogError, match=words):
                    act()


def test_changes_by_key_respect_unique_columns_and_foreign_keys() -> None:
    with fv.Database() as db:
        db.execute("""CREATE TABLE towns (id INT PRIMARY KEY, name STRING UNIQUE);
            CREATE TABLE people (id INT PRIMARY KEY, town INT REFERENCES towns (id))""")
        db.upsert("towns", [(1, "a"), (2, "b")])
        db.upsert("people", [(1, 1)])
        db.upsert("towns", [(1, "b"), (2, "a")])
        assert sorted(db.table("towns")) == [(1, "b"), (2, "a")]
        with pytest.raises(fv.BatchError, match=r"UNIQUE \(name\) would have rows"):
            db.update("towns", {"id": 1, "name": "a"})
        with pytest.raises(fv.BatchError, match="there is no row for 3"):
            db.update("people", {"id": 1, "town": 3})
        with pytest.raises(fv.BatchError, match="rows of people still refer to 1"):
            db.delete("towns", keys=[1])
        db.update("people", {"id": 1, "town": 2})
        db.delete("towns", keys=[1])
        assert list(db.table("towns")) == [(2, "a")]


KEYS = [
    ("DECIMAL(10, 2)", Decimal("1.50"), Decimal("2.25"), "x"),
    ("DATE", dt.date(2026, 1, 31), dt.date(2026, 2, 1), 5),
    ("TIMESTAMP", dt.datetime(2026, 1, 31, 5), dt.datetime(2026, 1, 31, 6), "x"),
    ("STRING", "é", "never stored", 3),
    ("BOOLEAN", True, False, 1),
    ("DOUBLE", 0.5, 1.5, "x"),
    ("BIGINT", -(2**62), 2**62, 2**70),
]


@pytest.mark.parametrize(("kind", "key", "other", "wrong"), KEYS, ids=[kind for kind, *_ in KEYS])
def test_a_row_is_found_by_a_key_of_each_type(kind: str, key: Any, other: Any, wrong: Any) -> None:
    with fv.Database() as db:
        db.execute(f"CREATE TABLE t (v INT, k {kind} PRIMARY KEY)")
        db.upsert("t", [(1, key)])
        db.update("t", {"k": key, "v": 2})
        table = db.table("t")
        assert table[key] == table.get(key) == (2, key) and key in table
        assert table.get(other) is None and table.get(None, 7) == 7 and other not in table
        with pytest.raises(KeyError):
            table[other]
        with pytest.raises(KeyError, match="k of table t"):
            table[wrong]
        for ask in (table.get, table.__contains__):
            with pytest.raises(fv.ArgumentError, match="k of table t"):
                ask(wrong)
        db.delete("t", keys=[other, None, (key,)])
        assert list(table) == []


def test_a_table_without_a_primary_key_refuses_lookups_by_key(db: fv.Database) -> None:
    for ask in (db.table("s").get, db.table("s").__getitem__, db.table("s").__contains__):
        with pytest.raises(fv.CatalogError, match="table s has no PRIMARY KEY, so rows cannot be looked up"):
            ask(1)


@dataclass
class Person:
    id: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Named:
    ID: int
    Name: str


def test_dataclasses_and_dicts_are_accepted_as_rows() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE p (id INT PRIMARY KEY, name STRING, n INT DEFAULT 4)")
        db.insert("p", Person(1, "a"))
        db.insert("p", {"id": 2, "name": "b"})
        db.insert("p", [Person(3, None), {"id": 4}, (5, "e", 5), Named(6, "f")])
        db.upsert("p", Named(1, "z"))
        db.update("p", Person(2, "y"))
        db.delete("p", {"id": 4, "name": None, "n": 4})
        db.apply("p", {"id": 5, "name": "e", "n": 5, "_multiplicity": -1})
        assert sorted(db.table("p")) == [(1, "z", 4), (2, "y", 4), (3, None, 4), (6, "f", 4)]
        with pytest.raises(fv.BatchError, match="row 0: there is no column part"):

            @dataclass
            class Other:
                id: int
                part: str

            db.insert("p", [Other(9, "x")])
        for wrong in (Person, 5, "p"):
            with pytest.raises(fv.BatchError, match="rows are given as"):
                db.insert("p", wrong)


def test_pydantic_models_are_accepted_as_rows() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Person", id=(int, ...), name=(str | None, None))
    with fv.Database() as db:
        db.execute("CREATE TABLE p (id INT PRIMARY KEY, name STRING)")
        db.insert("p", model(id=1, name="a"))
        db.upsert("p", [model(id=1), model(id=2, name="b")])
        db.update("p", model(id=2, name="c"))
        assert sorted(db.table("p")) == [(1, None), (2, "c")]


COLUMNS_OF_KEYS: list[Callable[[], Any]] = [
    lambda: pa.array([1, 9]),
    lambda: pa.chunked_array([[1], [9]]),
    lambda: np.array([1, 9]),
    lambda: pl.Series([1, 9]),
    lambda: pd.Series([1, 9]),
    lambda: range(1, 2),
    lambda: {1, 9},
]


@pytest.mark.parametrize("column", COLUMNS_OF_KEYS)
def test_keys_of_a_delete_may_be_arrays_or_series(column: Callable[[], Any]) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE k (id INT PRIMARY KEY)")
        db.insert("k", [(1,), (2,)])
        db.delete("k", keys=column())
        assert list(db.table("k")) == [(2,)]


def test_keys_accept_text_for_dates_and_timestamps() -> None:
    with fv.Database() as db:
        db.execute("""CREATE TABLE days (at TIMESTAMP, day DATE, v INT, PRIMARY KEY (day, at));
            CREATE MATERIALIZED VIEW by_day AS SELECT day, SUM(v) AS v FROM days GROUP BY day""")
        db.upsert("days", [("2026-01-31 12:00:00", "2026-01-31", 1), ("2026-01-31 13:00:00", "2026-01-31", 2)])
        db.update("days", {"at": "2026-01-31 12:00:00", "day": "2026-01-31", "v": 5})
        assert ("2026-01-31", "2026-01-31 12:00:00") in db.table("days")
        assert db.view("by_day")["2026-01-31"] == (dt.date(2026, 1, 31), 7)
        assert db.view("by_day").where(day="2026-02-01") == [] and len(db.view("by_day").scan("2026-01-31")) == 1
        keys = pa.table({"day": ["2026-01-31"], "at": ["2026-01-31 12:00:00"]})
        assert db.table("days").lookup(keys).num_rows == 1
        db.delete("days", keys=keys)
        db.delete("days", keys=[("2026-01-31", "2026-01-31 13:00:00")])
        assert list(db.table("days")) == []
        with pytest.raises(fv.ArgumentError, match="day of view by_day: 'x': the value is not a date"):
            db.view("by_day").get("x")
        with pytest.raises(fv.BatchError, match="key 0, column day: 'x': the value is not a date"):
            db.delete("days", keys=pa.table({"day": ["x"], "at": ["x"]}))


def test_all_nans_are_one_key_and_all_zeros_are_one_key() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE d (k DOUBLE PRIMARY KEY, v INT)")
        db.upsert("d", [(float("nan"), 1), (float("nan"), 2), (-0.0, 3), (0.0, 4)])
        assert len(db.table("d")) == 2 and db.table("d")[0] == (0.0, 4)
        assert db.table("d")[float("nan")][1] == 2
