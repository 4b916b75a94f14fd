"""CREATE TABLE and DROP become definitions, and names keep their spelling."""

from __future__ import annotations

import pytest

from freshviews.catalog.catalog import Comment
from freshviews.catalog.definitions import ForeignKey, TableDef
from freshviews.errors import CatalogError, SqlError
from freshviews.sql import Catalog, DropTable, DropView, ViewDefs, parse_script
from freshviews.types import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP, decimal
from tests.sql.printed import catalog


def _table(sql: str, known: Catalog | None = None) -> TableDef:
    table, *_ = parse_script(sql, known or Catalog())
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


def test_keys_begin_with_the_primary_key() -> None:
    table = _table("CREATE TABLE t (A INT, b INT UNIQUE, c INT, UNIQUE (C, a), CONSTRAINT pk PRIMARY KEY (a, B))")
    assert table.keys == (("A", "b"), ("b",), ("c", "A"))
    assert [c.nullable for c in table.columns] == [False, False, True]


def test_a_unique_key_alone_leaves_its_columns_nullable() -> None:
    table = _table("CREATE TABLE t (a INT UNIQUE)")
    assert (table.keys, table.has_primary_key, table.columns[0].nullable) == ((("a",),), False, True)


def test_foreign_keys_refer_to_the_primary_key_by_default() -> None:
    known = catalog()
    assert _table("CREATE TABLE t (x BIGINT REFERENCES K (ID))", known).foreign_keys == (
        ForeignKey(("x",), "k", ("id",)),
    )
    assert _table("CREATE TABLE t (x BIGINT, FOREIGN KEY (X) REFERENCES k)", known).foreign_keys == (
        ForeignKey(("x",), "k", ("id",)),
    )
    own = _table("CREATE TABLE t (x INT PRIMARY KEY, up INT REFERENCES t (x))")
    assert own.foreign_keys == (ForeignKey(("up",), "t", ("x",)),)


def test_the_property_trusted_makes_a_table_trusted() -> None:
    table = _table("CREATE TABLE t (a INT) TBLPROPERTIES ('freshviews.trusted' = 'TRUE', 'owner' = 'me')")
    assert table.trusted
    assert table.properties == (("freshviews.trusted", "TRUE"), ("owner", "me"))
    assert not _table("CREATE TABLE t (a INT)").trusted


def test_a_view_stores_its_strategy_and_its_text() -> None:
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
    _, made, comment = parse_script(
        "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v (x, y COMMENT 'twice') AS SELECT a, a + a FROM t",
        Catalog(),
    )
    assert isinstance(made, ViewDefs) and comment == Comment("v", "y", "twice")
    assert [c.name for c in made.view.columns] == ["x", "y"]
    assert [o.name for o in made.view.blocks[0].outputs] == ["x", "y"]


def test_names_are_case_insensitive() -> None:
    script = "CREATE TABLE Orders (Id INT, Day DATE); CREATE MATERIALIZED VIEW v AS SELECT ORDERS.id, dAy FROM orders"
    _, made = parse_script(script, Catalog())
    assert isinstance(made, ViewDefs)
    atom = made.view.blocks[0].query.atoms[0]
    assert (atom.relation, [str(c) for c in atom.columns]) == ("Orders", ["Id", "Day"])


def test_drop_if_exists_ignores_a_missing_relation() -> None:
    known = catalog()
    assert parse_script("CREATE TABLE IF NOT EXISTS R (z INT)", known) == []
    assert parse_script("DROP TABLE IF EXISTS nothing; DROP MATERIALIZED VIEW IF EXISTS nothing", known) == []
    assert parse_script(" ;; -- nothing at all\n", known) == []


def test_dropping_a_view_drops_its_internal_views() -> None:
    script = """
        CREATE MATERIALIZED VIEW v AS SELECT q.n FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS q
        JOIN (SELECT DISTINCT a FROM s) AS w ON q.a = w.a;
        DROP MATERIALIZED VIEW V"""
    _, drop = parse_script(script, catalog())
    assert drop == DropView("v", ("v#2", "v#1"))


def test_a_relation_that_another_relation_needs_cannot_be_dropped() -> None:
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


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("'a' = ('b' = 'c')", "the value of property a is not a constant: .'b' = 'c'."),
        ("'a' = TBLPROPERTIES ('b' = 'c')", "the value of property a is not a constant"),
        ("TBLPROPERTIES ('b' = 'c')", "a TBLPROPERTIES clause is nested in another one"),
        ("'a' = (1, 2)", "is not a constant"),
        ("'a' = b", "is not a constant: b"),
        ("'a' = NULL", "is not a constant"),
        ("'a' = '1', 'a' = '2'", "property a is given twice"),
    ],
)
def test_a_property_whose_value_is_not_one_constant_is_refused(clause: str, message: str) -> None:
    for sql in ("CREATE TABLE longer (a INT)", "CREATE MATERIALIZED VIEW v"):
        tail = "" if "TABLE" in sql else " AS SELECT a FROM r"
        with pytest.raises(SqlError, match=f"line 1, column .*{message}"):
            parse_script(f"{sql} TBLPROPERTIES ({clause}){tail}", catalog())


def test_a_property_may_be_a_number_or_a_boolean() -> None:
    properties = "'freshviews.trusted' = TRUE, 'freshviews.rows' = 7, a.b = 'c'"
    made = _table(f"CREATE TABLE t (a INT) TBLPROPERTIES ({properties})")
    assert made.trusted
    assert dict(made.properties) == {"freshviews.trusted": "true", "freshviews.rows": "7", "a.b": "c"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1e400", "column 45: 1e400 is greater than every DOUBLE"),
        ("-1.5E+309", "1.5E.309 is greater than every DOUBLE"),
        ("1e400D", "greater than every DOUBLE"),
        ("1e39F", "1e39F is greater than every FLOAT"),
        ("9" * 5000, "column 45: this number has 5000 characters; at most 1000 are allowed"),
        ("0." + "0" * 5000, "this number has 5002 characters"),
        ("9" * 1000, "9999... has more than 38 digits"),
        ("DATE '2026-01-01' + INTERVAL " + "9" * 40 + " DAY", "INTERVAL"),
    ],
    ids=lambda text: text[:20],
)
def test_a_constant_outside_the_range_of_every_type_is_refused(value: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        parse_script(f"CREATE MATERIALIZED VIEW v AS SELECT a + 0, {value} AS x FROM r", catalog())


@pytest.mark.parametrize(
    "query", [f"SELECT a FROM r ORDER BY a LIMIT {'9' * 5000}", f"SELECT a FROM r GROUP BY {'9' * 5000}"], ids=len
)
def test_a_number_of_5000_digits_is_refused_at_any_place(query: str) -> None:
    with pytest.raises(SqlError, match="this number has 5000 characters"):
        parse_script(f"CREATE MATERIALIZED VIEW v AS {query}", catalog())


def test_infinity_is_accepted_if_a_cast_makes_it_a_double() -> None:
    for value in ("CAST('1e400' AS DOUBLE)", "CAST('Infinity' AS FLOAT)", "CAST(1e39 AS FLOAT)", "1e308", "3.4e38F"):
        assert parse_script(f"CREATE MATERIALIZED VIEW v AS SELECT a, {value} AS x FROM r", catalog())
