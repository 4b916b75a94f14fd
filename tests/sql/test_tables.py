"""CREATE TABLE and DROP become definitions, names keep their spelling."""

from __future__ import annotations

import pytest

from freshviews.catalog.definitions import ForeignKey, TableDef
from freshviews.errors import CatalogError
from freshviews.sql import Catalog, DropTable, DropView, ViewDefs, parse_script
from freshviews.types import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP, decimal
from tests.sql.printed import catalog


def _table(sql: str, known: Catalog | None = None) -> TableDef:
    (table,) = parse_script(sql, known or Catalog())
    assert isinstance(table, TableDef)
    return table


def test_a_table_has_its_columns_in_order_with_types_and_nullability() -> None:
    table = _table(
        """CREATE TABLE Orders (o_id BIGINT PRIMARY KEY COMMENT 'the key', `two words` STRING NOT NULL,
           n INTEGER, ok BOOLEAN, day DATE, at TIMESTAMP, ntz TIMESTAMP_NTZ, total DECIMAL(12, 2), plain DECIMAL)"""
    )
    assert table.name == "Orders"
    assert [(c.name, c.type, c.nullable) for c in table.columns] == [
        ("o_id", BIGINT, False),
        ("two words", STRING, False),
        ("n", INT, True),
        ("ok", BOOLEAN, True),
        ("day", DATE, True),
        ("at", TIMESTAMP, True),
        ("ntz", TIMESTAMP, True),
        ("total", decimal(12, 2), True),
        ("plain", decimal(10, 0), True),
    ]
    assert table.keys == (("o_id",),)
    assert table.has_primary_key


def test_keys_are_the_primary_key_and_then_the_unique_ones_in_the_tables_spelling() -> None:
    table = _table("CREATE TABLE t (A INT, b INT UNIQUE, c INT, UNIQUE (C, a), CONSTRAINT pk PRIMARY KEY (a, B))")
    assert table.keys == (("A", "b"), ("b",), ("c", "A"))
    assert [c.nullable for c in table.columns] == [False, False, True]


def test_a_unique_key_alone_leaves_its_columns_nullable() -> None:
    table = _table("CREATE TABLE t (a INT UNIQUE)")
    assert (table.keys, table.has_primary_key, table.columns[0].nullable) == ((("a",),), False, True)


def test_foreign_keys_are_inline_or_of_the_table_and_default_to_the_primary_key() -> None:
    known = catalog()
    assert _table("CREATE TABLE t (x BIGINT REFERENCES K (ID))", known).foreign_keys == (
        ForeignKey(("x",), "k", ("id",)),
    )
    assert _table("CREATE TABLE t (x BIGINT, FOREIGN KEY (X) REFERENCES k)", known).foreign_keys == (
        ForeignKey(("x",), "k", ("id",)),
    )
    own = _table("CREATE TABLE t (x INT PRIMARY KEY, up INT REFERENCES t (x))")
    assert own.foreign_keys == (ForeignKey(("up",), "t", ("x",)),)


def test_properties_are_kept_and_trusted_is_understood() -> None:
    table = _table("CREATE TABLE t (a INT) TBLPROPERTIES ('freshviews.trusted' = 'TRUE', 'owner' = 'me')")
    assert table.trusted
    assert table.properties == (("freshviews.trusted", "TRUE"), ("owner", "me"))
    assert not _table("CREATE TABLE t (a INT)").trusted


def test_a_view_names_its_strategy_and_keeps_its_text() -> None:
    script = (
        "CREATE TABLE t (a INT);\n"
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'view_tree')\n  AS SELECT a FROM t;"
    )
    _, made = parse_script(script, Catalog())
    assert isinstance(made, ViewDefs)
    assert made.view.strategy == "view_tree"
    assert made.view.sql == script.split(";\n")[1].removesuffix(";")
    assert made.view.inputs == ("t",)


def test_a_view_may_rename_its_columns() -> None:
    _, made = parse_script(
        "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v (x, y COMMENT 'twice') AS SELECT a, a + a FROM t",
        Catalog(),
    )
    assert isinstance(made, ViewDefs)
    assert [c.name for c in made.view.columns] == ["x", "y"]
    assert [o.name for o in made.view.blocks[0].outputs] == ["x", "y"]


def test_names_are_one_whatever_their_case_and_keep_the_spelling_of_their_definition() -> None:
    script = "CREATE TABLE Orders (Id INT, Day DATE); CREATE MATERIALIZED VIEW v AS SELECT ORDERS.id, dAy FROM orders"
    _, made = parse_script(script, Catalog())
    assert isinstance(made, ViewDefs)
    atom = made.view.blocks[0].query.atoms[0]
    assert (atom.relation, [str(c) for c in atom.columns]) == ("Orders", ["Id", "Day"])


def test_if_not_exists_and_if_exists_leave_nothing_to_do() -> None:
    known = catalog()
    assert parse_script("CREATE TABLE IF NOT EXISTS R (z INT)", known) == []
    assert parse_script("DROP TABLE IF EXISTS nothing; DROP MATERIALIZED VIEW IF EXISTS nothing", known) == []
    assert parse_script(" ;; -- nothing at all\n", known) == []


def test_dropping_a_view_takes_its_internal_views_the_last_made_first() -> None:
    script = """
        CREATE MATERIALIZED VIEW v AS SELECT q.n FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS q
        JOIN (SELECT DISTINCT a FROM s) AS w ON q.a = w.a;
        DROP MATERIALIZED VIEW V"""
    _, drop = parse_script(script, catalog())
    assert drop == DropView("v", ("v#2", "v#1"))


def test_what_is_needed_by_another_cannot_be_dropped() -> None:
    known = catalog()
    with pytest.raises(CatalogError, match="r is still needed by v; DROP them first"):
        parse_script("CREATE MATERIALIZED VIEW v AS SELECT a FROM r; DROP TABLE r", known)
    with pytest.raises(CatalogError, match="r is still needed by v"):
        parse_script(
            "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT a, count(*) AS n FROM r GROUP BY a; DROP TABLE r", known
        )
    with pytest.raises(CatalogError, match="k is still needed by t"):
        parse_script("CREATE TABLE t (x BIGINT REFERENCES k (id)); DROP TABLE k", known)
    with pytest.raises(CatalogError, match="v is still needed by w"):
        parse_script(
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM r; CREATE MATERIALIZED VIEW w AS SELECT a FROM v; "
            "DROP MATERIALIZED VIEW v",
            known,
        )
    assert parse_script("DROP TABLE r", known) == [DropTable("r")]


def test_an_internal_view_cannot_be_named_by_a_user() -> None:
    script = "CREATE MATERIALIZED VIEW v AS SELECT a FROM (SELECT DISTINCT a FROM r) AS s;"
    with pytest.raises(CatalogError, match="unknown table or view v#1"):
        parse_script(script + "CREATE MATERIALIZED VIEW w AS SELECT a FROM `v#1`", catalog())
