"""Databases with pending rows agree with databases that index every row at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.catalog.catalog import ViewDefs
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.host_columns import lift_program
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.engine.database import Database
from freshviews.kernel.hash import table
from freshviews.kernel.hash.pending import NEVER, unlinked_rows
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.plan.planner import plan_block
from freshviews.sql import Catalog, parse_script
from freshviews.types.dictionary import Dictionary

pytestmark = pytest.mark.compiled(6)

TABLES = """
CREATE TABLE sales (cust BIGINT, part BIGINT, qty BIGINT, price DECIMAL(12, 2));
CREATE TABLE customers (cust BIGINT PRIMARY KEY, region BIGINT);
CREATE TABLE parts (part BIGINT PRIMARY KEY, kind BIGINT);
"""
QUERIES = {
    "totals": """SELECT region, kind, SUM(qty) AS qty, SUM(price) AS price, COUNT(*) AS n
        FROM sales JOIN customers USING (cust) JOIN parts USING (part) GROUP BY region, kind""",
    "pairs": "SELECT customers.cust, region, qty FROM sales JOIN customers ON sales.cust = customers.cust",
    "twice": """SELECT a.part, COUNT(*) AS n FROM sales a JOIN sales b ON a.part = b.part JOIN parts
        ON a.part = parts.part GROUP BY a.part""",
    "dear": "SELECT region, MAX(qty) AS most FROM sales JOIN customers USING (cust) GROUP BY region",
}
STRATEGIES = ("first_order", "higher_order", "view_tree", "change_propagation")
STEPS = 12 if PURE_PYTHON else 40


def script(strategy: str) -> str:
    named = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    views = "".join(
        f"CREATE MATERIALIZED VIEW {name} {named} AS {query};\n"
        for name, query in QUERIES.items()
        if name != "twice" or strategy != "view_tree"
    )
    return TABLES + views


@pytest.fixture
def appending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defer small batches too, estimate repetitions early, and leave few rows pending."""
    monkeypatch.setattr(table, "LEAST_BATCH", 4)
    monkeypatch.setattr(table, "MOST_PENDING", 90)
    monkeypatch.setattr(table, "FIRST_LOOK", 60)


def stores(db: Database) -> list[int]:
    """The tables of the programs of views."""
    states = [part.state for view in db._relations.views.values() for part in view.maintained.blocks]
    return [handle for state in states for handle in state.tables]


def pending_rows(db: Database) -> int:
    """Rows of views' stores that are pending."""
    return sum(mem.load(handle, table.PENDING) for handle in stores(db))


def waiting_rows(db: Database) -> int:
    """Rows of views' stores that may be unlinked."""
    return sum(map(unlinked_rows, stores(db)))


def contents(db: Database) -> dict[str, Counter[Any]]:
    found = {name: Counter(db.table(name)) for name in db.tables}
    return found | {name: Counter(db.view(name)) for name in db.views}


def recomputed(db: Database) -> dict[str, Counter[Any]]:
    """The views as DuckDB computes them from the stored tables."""
    connection = duckdb.connect()
    for name in db.tables:
        connection.register(name, db.table(name).to_arrow())
    found = {}
    for name in db.views:
        rows = connection.execute(QUERIES[name]).fetchall()
        found[name] = Counter(tuple(map(plain, row)) for row in rows)
    return found


def plain(value: Any) -> Any:
    return None if value is None else float(value)


def compare(db: Database) -> None:
    expected = recomputed(db)
    for name, rows in expected.items():
        assert Counter(tuple(map(plain, row)) for row in db.view(name)) == rows, name


def sales(order: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [
        (
            order.choice([None, *range(8)]),
            order.randrange(6),
            order.choice([None, *range(-3, 50)]),
            order.choice([None, 0, 5, Decimal("7.25")]),
        )
        for _ in range(count)
    ]


def step(db: Database, order: random.Random, last: list[tuple[Any, ...]]) -> None:
    """Apply one batch, accepted or refused; ``last``: sales that were inserted."""
    kind = order.choice(["sales", "sales", "sales", "delete", "dimension", "mixed", "missing", "overflow"])
    if kind == "sales":
        rows = sales(order, order.choice([1, 3, 20, 70]))
        db.insert("sales", rows)
        last.extend(rows)
    elif kind == "delete":
        for row in order.sample(last, min(len(last), order.choice([1, 10]))):
            db.delete("sales", [row])
            last.remove(row)
    elif kind == "dimension":
        name, key = order.choice([("customers", order.randrange(8)), ("parts", order.randrange(6))])
        old = [row for row in db.table(name) if row[0] == key]
        with db.batch() as batch:
            if old:
                batch.delete(name, old)
            if not old or order.random() < 0.6:
                batch.insert(name, [(key, order.randrange(3))])
    elif kind == "mixed":
        rows = sales(order, 6)
        gone = order.sample(last, min(len(last), 2))
        db.apply("sales", [(*row, 1) for row in rows] + [(*row, -1) for row in gone])
        last.extend(rows)
        for row in gone:
            last.remove(row)
    elif kind == "missing":
        with pytest.raises(fv.BatchError, match="not there"), db.batch() as batch:
            batch.insert("sales", sales(order, 9))
            batch.delete("sales", [(77, 77, 77, None)])
    else:
        before = contents(db)
        # The sum of customer 1 and part 0 overflows in the middle of a batch of inserts.
        with pytest.raises(fv.EvaluationError, match="overflow"):
            db.insert("sales", [(1, 0, 2**62, None), (2, 0, 1, None), (3, 0, 2**62, None), (4, 1, 1, None)] * 2)
        assert contents(db) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(2))
def test_views_with_deferred_rows_agree_with_duckdb(appending: None, tmp_path: Path, strategy: str, seed: int) -> None:
    order = random.Random(f"{strategy} {seed}")
    db = Database()
    db.execute(script(strategy))
    last: list[tuple[Any, ...]] = []
    most = waited = 0
    for number in range(STEPS):
        step(db, order, last)
        most, waited = max(most, pending_rows(db)), max(waited, waiting_rows(db))
        if order.random() < 0.2:
            before = pending_rows(db), waiting_rows(db)
            db.write_image(tmp_path / str(number), sync=False)
            other = Database.from_image(tmp_path / str(number), parse_script(script(strategy), Catalog()))
            assert (pending_rows(other), waiting_rows(other)) == before
            if order.random() < 0.5:
                step(db, random.Random(number), list(last))
                step(other, random.Random(number), last)
                assert contents(db) == contents(other)
            db.close()
            db = other
        if order.random() < 0.3:
            compare(db)
    compare(db)
    assert Counter(db.table("sales")) == Counter(tuple(row) for row in decoded(last))
    assert most > 0 or PURE_PYTHON, "in few steps rows may never be pending"
    assert waited > 0 or PURE_PYTHON
    db.close()


def decoded(rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows, read from a database that has only them."""
    with Database() as db:
        db.execute(TABLES)
        db.insert("sales", rows)
        yield from list(db.table("sales"))


@pytest.mark.parametrize("seed", range(2))
def test_a_durable_database_with_deferred_rows_reopens(appending: None, tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    last: list[tuple[Any, ...]] = []
    for turn in range(5):
        with Database(tmp_path / "kept") as db:
            if turn == 0:
                db.execute(script("first_order"))
            for _ in range(6):
                step(db, order, last)
            if turn % 2:
                db.snapshot()
            compare(db)
            expected = contents(db)
        with Database(tmp_path / "kept") as db:
            assert contents(db) == expected


def test_a_refused_batch_of_deferred_rows_changes_nothing(appending: None) -> None:
    db = Database()
    db.execute(script("first_order"))
    db.insert("customers", [(i, i) for i in range(5)])
    db.insert("parts", [(0, 0)])
    db.insert("sales", [(i % 5, 0, 2**61, None) for i in range(5)])
    before = contents(db)
    assert pending_rows(db) > 0
    with pytest.raises(fv.EvaluationError, match=r"table sales, row 7.*overflow"):
        db.insert("sales", [(1, 0, 0, None)] * 5 + [(i, 0, 2**62, None) for i in (2, 1, 1, 3)])
    assert contents(db) == before
    compare(db)
    db.insert("sales", [(1, 0, 2**61, None)] * 2)
    compare(db)
    states = [part.state for part in db._relations.views["totals"].maintained.blocks]
    assert NEVER in [mem.load(handle, table.EAGER_BELOW) for state in states for handle in state.tables]


@pytest.mark.skipif(PURE_PYTHON, reason="a hundred thousand rows take machine code")
def test_large_batches_of_inserts_are_deferred_by_default() -> None:
    db = Database()
    db.execute(script("first_order"))
    random_numbers = np.random.default_rng(1)
    rows = 50_000
    db.insert("customers", [(i, i % 5) for i in range(3000)])
    db.insert("parts", [(i, i % 7) for i in range(3000)])
    for turn in range(4):
        columns = {name: random_numbers.integers(0, 3000, rows) for name in ("cust", "part", "qty")}
        given = pa.table(columns | {"price": pa.nulls(rows)})
        db.insert("sales", given)
        assert pending_rows(db) >= rows * (turn + 1)
    compare(db)
    db.delete("sales", given.slice(5, 100))
    assert pending_rows(db) < waiting_rows(db)
    compare(db)
    db.insert("sales", given.slice(7, 2000))
    db.delete("sales", given.slice(200, 30_000))
    compare(db)
    assert waiting_rows(db) > 0
    db.insert("customers", [(3000, 1)])
    db.insert("parts", [(3000, 1)])
    assert pending_rows(db) == waiting_rows(db) == 0
    compare(db)


def test_flushes_of_deferred_rows_count_as_steps(appending: None) -> None:
    found: dict[str, Any] = {}
    for statement in parse_script(
        """CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (a BIGINT, c BIGINT);
        CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS
        SELECT b, COUNT(*) AS n FROM r JOIN s USING (a) GROUP BY b;""",
        Catalog(),
    ):
        for one in statement.views if isinstance(statement, ViewDefs) else (statement,):
            found[one.name] = one
    view = found["v"]
    (block,) = view.blocks
    program, _ = lift_program(plan_block(view, block, found).program)
    compiled = compile_block(program, block, (), (), None, counted=True)
    state = BlockState(program, compiled, 3, Dictionary())
    steps = []
    for relation, rows in (("r", 40), ("s", 1), ("s", 1), ("r", 1)):
        words, ones = np.arange(rows), np.ones(rows, np.int64)
        before = int(state.status[STATUS_STEPS])
        state.run(relation, {name: address_of(words) for name in ("a", "b", "c")}, address_of(ones), rows)
        steps.append(int(state.status[STATUS_STEPS]) - before)
    # Each row of r takes a lookup and a change of its store. The first row of s flushes them, in 40 more steps than the
    # next one, which looks a slice up, has one turn of its loop, and changes v and its store.
    assert steps == [80, 44, 4, 3]
    state.close()


def test_the_number_of_deferred_rows_of_a_table_is_bounded(appending: None) -> None:
    most = 0
    with Database() as db:
        db.execute(
            "CREATE TABLE f (a BIGINT, k BIGINT); CREATE TABLE d (k BIGINT PRIMARY KEY, g BIGINT);"
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS"
            " SELECT g, COUNT(*) AS n FROM f JOIN d ON f.k = d.k GROUP BY g;"
        )
        db.insert("d", [(k, k % 3) for k in range(7)])
        stored = db._relations.tables["f"].stored
        assert stored is not None
        for i in range(20):
            db.insert("f", [(40 * i + j, j % 7) for j in range(40)])
            left = [*(mem.load(handle, table.PENDING) for handle in stored.handles), pending_rows(db)]
            assert max(left) <= 90
            most = max(most, *left)
        assert most > 40
        assert sum(n for _, n in db.view("v")) == 800
        db.delete("f", [(0, 0)])
        assert sum(n for _, n in db.view("v")) == len(db.table("f")) == 799
