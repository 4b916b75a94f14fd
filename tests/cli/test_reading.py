"""Counts the imports and steps of ``query`` and ``status`` before their first line, as no clock is fair here."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from freshviews.asking import running
from freshviews.catalog.definitions import TableDef
from freshviews.cells import plan_cells
from freshviews.engine.database import Database
from freshviews.errors import NoDuckDB, SqlError
from freshviews.spark import settings
from freshviews.spark.definition import catalog_of, tables_of
from freshviews.spark.layout.layout import Layout, layout_of
from freshviews.spark.reading import computed
from freshviews.spark.reading.contents import contents
from freshviews.spark.reading.select import select
from freshviews.spark.settings import NoSpark
from freshviews.spark.state.bundle import Bundle
from freshviews.spark.state.cell import changes_schema, load_cell, new_token, segment_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.sql import Catalog, ViewDefs, parse_script
from tests.cli.sales import NEVER as NEVER_AT
from tests.cli.sales import TABLES, VIEWS, commit, sale
from tests.ring.user_rings import GAUSS

NEVER = {"pandas", "pyspark", "py4j", "boto3", "prometheus_client", "http.server"}
"""Modules that no reading command imports."""
PLANNING = {"freshviews.plan.planner", "freshviews.codegen.compiled_block"}
ENGINE = {"freshviews.engine.database", "llvmlite.binding", *PLANNING}
"""Modules that plan a view and run it."""

COUNTED = """
import sys
from freshviews.cli.main import app
try:
    app(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def run(folder: Path, *words: str) -> tuple[list[str], set[str]]:
    """A command with an empty cache of code: its lines, and the modules that it imports."""
    given = {**os.environ, "FRESHVIEWS_CACHE_DIR": str(folder / "cache"), "FRESHVIEWS_COMPILE": "beside"}
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words], cwd=folder, env=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), set(done.stderr.split())


def with_contents(root: Path, made: Manifest, view: str) -> Manifest:
    """The version after ``made``, with the contents of a view stored for a sink."""
    bundle = Bundle(store_of(root), "changes", "contents-")
    rows = contents(store_of(root), made, view)
    bundle.add("all", rows.schema, rows.to_batches())
    names = bundle.finish()
    bundle.wait()
    after = replace(made, version=made.version + 1, contents={view: {f"{view}@0": names["all"]}})
    Manifests(store_of(root)).commit(after)
    return after


def test_query_and_status_import_no_slow_modules(tmp_path: Path) -> None:
    """3,000 rows are more than one batch of plain Python, but few enough for plain Python in pieces."""
    root = tmp_path / "shop.checkpoint"
    made = commit(root, None, [sale(number, f"part {number % 7}") for number in range(3000)])
    commit(root, made, [sale(number, f"part {number % 7}", -1) for number in range(0, 3000, 100)])
    lines, modules = run(tmp_path, "query", "shop.sql", "SELECT n FROM by_part WHERE part = 'part 0'", "--json")
    assert lines == [f'{{"n": {sum(n % 7 == 0 and n % 100 > 0 for n in range(3000))}}}']
    assert modules & (NEVER - {"pandas"} | {"numba"}) == set()  # Arrow imports pandas to sum up deletes.
    lines, modules = run(tmp_path, "status", "shop.sql")
    assert lines[0].startswith("version 2 ") and modules & (NEVER | ENGINE | {"numba", "rich", "duckdb"}) == set()


def test_a_view_over_a_users_ring_is_read_without_the_module_of_the_ring(tmp_path: Path) -> None:
    assert GAUSS.name == "gauss", "registered by the import, in this process"
    root = tmp_path / "shop.checkpoint"
    z = "CREATE MATERIALIZED VIEW z AS SELECT part, GAUSS(id, 2 * id) AS z FROM sales GROUP BY part"
    views = {**VIEWS, "z": z}
    catalog = catalog_of(";\n".join([*TABLES.values(), *views.values()]))
    layout = Layout(plan_cells(catalog, 1, {}), catalog)
    empty = Manifest(0, -1, None, time.time(), TABLES, views, plan=layout.plan.to_json(), rings=layout.rings)
    assert layout.rings.keys() == {"gauss"}
    commit(root, empty, [sale(number, "a") for number in (1, 2)] + [sale(3, "b")])
    assert os.environ.get("FRESHVIEWS_RINGS") is None
    # (1 + i)(2 + i) + (2 + i)(4 + i)
    lines, _ = run(tmp_path, "query", "shop.sql", "SELECT z_re, z_im FROM z WHERE part = 'a'", "--json")
    assert lines == ['{"z_re": 8, "z_im": 9}']
    lines, _ = run(tmp_path, "query", "shop.sql", "SELECT n FROM by_part WHERE part = 'a'", "--json")
    assert lines == ['{"n": 2}']
    assert run(tmp_path, "status", "shop.sql")[0][0].startswith("version 1 ")
    code = (
        "import sys; from freshviews.cli.serving.versions import plan_text;"
        "from freshviews.spark.reading.contents import latest;"
        "from freshviews.spark.state.stores.addresses import store_of;"
        "print(plan_text(latest(store_of(sys.argv[1])), 'z'))"
    )
    shown = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, timeout=300)
    assert "view z(part STRING, z_re BIGINT, z_im BIGINT)" in shown.stdout, shown.stderr


def test_an_unregistered_aggregate_is_refused_with_the_remedy(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT MINE(x) AS m FROM t"
    (tmp_path / "shop.sql").write_text(f"CREATE TABLE t (x BIGINT);\n{view}")
    (tmp_path / "my_rings.py").write_text(
        "import freshviews as fv\n"
        "fv.register_ring(fv.UserRing('mine', ('BIGINT',), 1, 'BIGINT', lift=lambda x: 2 * x))\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for command in ("check", "explain"):
        words = [sys.executable, "-m", "freshviews.cli", command, "shop.sql"]
        for given, code in (({}, 1), ({"FRESHVIEWS_RINGS": "my_rings"}, 0), ({"FRESHVIEWS_RINGS": "rings_of_mine"}, 1)):
            environment = {**os.environ, "PYTHONPATH": path, **given}
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == code, done.stderr
            if not given:
                assert "shop.sql:2:38: function mine is not supported" in done.stderr
                assert "freshviews.register_ring" in done.stderr and "FRESHVIEWS_RINGS" in done.stderr
            elif code:
                assert "FRESHVIEWS_RINGS names the module rings_of_mine, which cannot be imported" in done.stderr


def test_a_log_of_inserts_is_read_without_pandas(tmp_path: Path) -> None:
    commit(tmp_path / "shop.checkpoint", None, [sale(number, f"part {number % 7}") for number in range(30)])
    for sql in (
        "SELECT * FROM by_part ORDER BY n, part LIMIT 1",
        "SELECT id, price, day FROM kept WHERE part LIKE 'p%' LIMIT 1",
    ):
        lines, modules = run(tmp_path, "query", "shop.sql", sql, "--json")
        assert len(lines) == 1 and modules & (NEVER | {"numba"}) == set()


def test_a_select_over_several_views_is_answered_at_one_version(tmp_path: Path) -> None:
    root = tmp_path / "shop.checkpoint"
    commit(root, None, [sale(number, f"part {number % 3}") for number in range(10)])
    sql = (
        "SELECT v.part, n, SUM(id) OVER (PARTITION BY v.part) AS ids, price / 2 AS half, at "
        "FROM kept JOIN by_part v USING (part) WHERE price > (SELECT AVG(price) FROM kept) ORDER BY id DESC LIMIT 1"
    )
    found = select(store_of(root), sql)
    half = Decimal("1.125000")
    assert found.to_pylist() == [{"part": "part 0", "n": 4, "ids": 15, "half": half, "at": NEVER_AT}]
    with pytest.raises(SqlError, match="a SELECT over tables and views is accepted, not DROP"):
        select(store_of(root), "DROP TABLE sales")


def test_an_unknown_name_is_reported_with_its_place(tmp_path: Path) -> None:
    commit(tmp_path / "shop.checkpoint", None, [sale(1, "a")])
    store = store_of(tmp_path / "shop.checkpoint")
    for sql, message in (
        ("SELECT prat FROM by_part", "line 1, column 8: unknown column prat; did you mean part?"),
        ("SELECT part FROM by_part WHERE nn = 1", "line 1, column 32: unknown column nn; did you mean n?"),
        ("SELECT part FROM by_part ORDER BY parts", "line 1, column 35: unknown column parts; did you mean part?"),
        ("SELECT part FROM by_parts", "line 1, column 18: unknown table or view by_parts; did you mean by_part?"),
    ):
        with pytest.raises(SqlError) as refused:
            select(store, sql)
        assert str(refused.value) == message


def test_the_error_says_how_to_install_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path / "shop.checkpoint", None, [sale(1, "a")])
    store = store_of(tmp_path / "shop.checkpoint")
    monkeypatch.setattr(settings, "spark_home", lambda: None)
    with pytest.raises(NoSpark, match=r"pip install 'freshviews\[spark\]'"):
        select(store, "SELECT n FROM by_part", on_spark=True)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    running._duckdb.cache_clear()
    with pytest.raises(NoDuckDB, match=r"pip install 'freshviews\[sql\]'"):
        select(store, "SELECT n FROM by_part")


def test_stored_contents_of_a_version_are_read_without_an_engine(tmp_path: Path) -> None:
    root = tmp_path / "shop.checkpoint"
    made = commit(root, None, [sale(number, f"part {number % 7}") for number in range(30)])
    after = with_contents(root, made, "by_part")
    lines, modules = run(tmp_path, "query", "shop.sql", "SELECT COUNT(*) AS n FROM by_part", "--json")
    assert lines == ['{"n": 7}'] and modules & (NEVER | ENGINE) == set()
    assert contents(store_of(root), after, "by_part").equals(contents(store_of(root), made, "by_part"))
    # The contents are unknown if an engine with a part of the view has stored none of it.
    lacking = replace(after, contents={"by_part": {"by_part@1": "changes/none.arrow@0+8"}})
    assert contents(store_of(root), lacking, "by_part").num_rows == 7


def test_reading_a_view_loads_only_needed_relations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = commit(tmp_path, None, [sale(1, "nut"), sale(2, "nut")])
    defined: list[list[str]] = []
    define = Database.define

    def noted(database: Database, statements: tuple[TableDef | ViewDefs, ...]) -> None:
        defined.append([s.name if isinstance(s, TableDef) else s.view.name for s in statements])
        define(database, statements)

    monkeypatch.setattr(Database, "define", noted)
    assert contents(store_of(tmp_path), made, "by_part").to_pylist() == [{"part": "nut", "n": 2}]
    assert defined == [["sales", "by_part"]]


def test_foreign_keys_add_their_tables_to_the_relations_that_a_view_needs() -> None:
    script = """
    CREATE TABLE kinds (kind STRING, PRIMARY KEY (kind));
    CREATE TABLE parts (part STRING, kind STRING, PRIMARY KEY (part), FOREIGN KEY (kind) REFERENCES kinds (kind));
    CREATE TABLE sales (part STRING, qty INT);
    CREATE TABLE others (x INT);
    CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM sales GROUP BY part;
    CREATE MATERIALIZED VIEW other AS SELECT x FROM others;
    CREATE MATERIALIZED VIEW rare AS
      SELECT p.part, qty FROM by_part AS s JOIN parts AS p ON s.part = p.part WHERE qty < (SELECT AVG(qty) FROM Sales)
    """
    statements = parse_script(script, Catalog())
    names = [s.name if isinstance(s, TableDef) else s.view.name for s in computed.needed_for(["rare"], statements)]
    assert names == ["kinds", "parts", "sales", "by_part", "rare"]


@pytest.mark.parametrize("seed", range(3))
def test_a_log_applied_in_pieces_equals_the_whole_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The log deletes and reinserts keys, and has duplicate rows, NULL and -0.0."""
    chance = random.Random(seed)
    monkeypatch.setattr(computed, "FEW_ROWS", 3)
    made, here = None, Counter[tuple[int, str | None, float]]()
    for _ in range(6):
        rows = []
        for _ in range(chance.randrange(1, 9)):
            if here and chance.random() < 0.4:
                one = chance.choice(list(here))
                here[one] -= 1
                here = +here
                rows.append(sale(one[0], one[1], -1, one[2]))
            else:
                one = (chance.randrange(5), chance.choice([None, "nut", ""]), chance.choice([0.0, -0.0, 1.5]))
                here[one] += 1
                rows.append(sale(one[0], one[1], 1, one[2]))
        made = commit(tmp_path, made, rows)
    assert made is not None
    whole = load_cell(store_of(tmp_path), made.cells["0"], layout_of(made).statements[0]).database
    for view in VIEWS:
        found = contents(store_of(tmp_path), made, view).to_pylist()
        assert Counter(map(repr, found)) == Counter(map(repr, whole.view(view).to_arrow().to_pylist()))
    whole.close()


def keyed(root: Path, tables: str, views: str, change: Callable[[pa.Schema], pa.Table]) -> Manifest:
    """A version of tables whose log has one change of the first."""
    from freshviews.cells import plan_cells
    from freshviews.spark.definition import catalog_of

    plan = plan_cells(catalog_of(f"{tables};\n{views}"), 1, {})
    given = {"t": tables}, {"v": views}
    made = Manifest(1, -1, None, 0.0, *given, plan=plan.to_json())
    (role,) = layout_of(made).roles
    rows = change(changes_schema(tables_of(tables)["t"]))
    segment = segment_of(store_of(root), "0", {role.name: rows})
    token = new_token()
    files = segment.finish()
    segment.wait()
    log = [{"token": token, "level": 0, "rows": rows.num_rows, "files": files}]
    return replace(made, cells={"0": {"token": token, "image": None, "log": log}})


def test_a_log_whose_rows_refer_to_later_rows_is_applied_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed, "FEW_ROWS", 2)
    made = keyed(
        tmp_path,
        "CREATE TABLE t (id BIGINT, up BIGINT, PRIMARY KEY (id), FOREIGN KEY (up) REFERENCES t (id))",
        "CREATE MATERIALIZED VIEW v AS SELECT up, COUNT(*) AS n FROM t GROUP BY up",
        lambda schema: pa.Table.from_pylist(
            [{"id": n, "up": (n + 1) % 6, "_multiplicity": 1} for n in range(6)], schema=schema
        ),
    )
    assert contents(store_of(tmp_path), made, "v").num_rows == 6


def test_the_log_of_a_windowed_table_is_applied_in_the_order_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed, "FEW_ROWS", 2)
    made = keyed(
        tmp_path,
        "CREATE TABLE t (id BIGINT) TBLPROPERTIES ('freshviews.window' = '3 rows')",
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM t",
        lambda schema: pa.Table.from_pylist([{"id": n, "_multiplicity": 1} for n in range(8)], schema=schema),
    )
    assert sorted(contents(store_of(tmp_path), made, "v").column("id").to_pylist()) == [5, 6, 7]
