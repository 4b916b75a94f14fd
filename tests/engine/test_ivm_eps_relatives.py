"""4-cycles, 4-paths, Loomis-Whitney counts and listed triangles through SQL agree with DuckDB from scratch."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from freshviews import Database

# A program over four relations takes a minute to compile: make test compiles only the listed triangles.
pytestmark = pytest.mark.compiled(100)

TABLES = {"r": "ab", "s": "bc", "t": "cd", "u": "da", "x": "bcd", "y": "cda", "z": "dab", "w": "abc"}
VIEWS = {
    "listed": "SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b JOIN u ON s.c = u.d AND u.a = r.a",
    "cycle": (
        "SELECT COUNT(*) AS n, SUM(r.a * t.c) AS m FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c "
        "JOIN u ON t.d = u.d AND u.a = r.a"
    ),
    "cycle of one table": (
        "SELECT COUNT(*) AS n FROM r JOIN r r2 ON r.b = r2.a JOIN r r3 ON r2.b = r3.a "
        "JOIN r r4 ON r3.b = r4.a AND r4.b = r.a"
    ),
    "path": "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c JOIN u ON t.d = u.d",
    "loomis": (
        "SELECT COUNT(*) AS n FROM x JOIN y ON x.c = y.c AND x.d = y.d "
        "JOIN z ON z.d = x.d AND z.b = x.b AND z.a = y.a JOIN w ON w.a = y.a AND w.b = x.b AND w.c = x.c"
    ),
    "each_once": (
        "SELECT DISTINCT r.a, r.b, r2.b AS c FROM r JOIN r r2 ON r.b = r2.a JOIN r r3 ON r2.b = r3.a AND r3.b = r.a"
    ),
}
Change = tuple[str, tuple[int, ...], int]


def changes(seed: int, count: int, tables: tuple[str, ...]) -> list[Change]:
    """Inserts, then deletes of all rows. A few values have most rows."""
    rng = random.Random(seed)
    there: list[tuple[str, tuple[int, ...]]] = []
    made: list[Change] = []
    for i in range(count):
        if there and rng.random() < (0.2 if i < count // 2 else 0.7):
            name, row = there.pop(rng.randrange(len(there)))
            made.append((name, row, -1))
        else:
            name = rng.choice(tables)
            width = 4 if len(TABLES[name]) == 3 else 9
            there.append((name, tuple(int(width * rng.random() ** rng.choice((1, 3))) for _ in TABLES[name])))
            made.append((*there[-1], 1))
    return made + [(name, row, -1) for name, row in there]


@pytest.mark.long("programs over four relations take a minute to compile")
@pytest.mark.parametrize("name", VIEWS)
def test_compiled_ivm_eps_programs_agree_with_duckdb(name: str) -> None:
    db, peer = Database(), duckdb.connect()
    tables = tuple(t for t in TABLES if f" {t} " in f"{VIEWS[name]} ")
    told: Counter[tuple[object, ...]] = Counter()
    for table in tables:
        columns = ", ".join(f"{c} BIGINT NOT NULL" for c in TABLES[table])
        db.execute(f"CREATE TABLE {table} ({columns})")
        peer.execute(f"CREATE TABLE {table} ({columns})")
    properties = "'freshviews.strategy' = 'ivm_eps', 'freshviews.epsilon' = '0.1'"
    db.execute(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS {VIEWS[name]}")
    if name in ("listed", "each_once"):
        db.view("v").subscribe(lambda change: told.update(dict(change)))
    most = 0
    for i, (table, row, m) in enumerate(changes(7, 220, tables)):
        (db.insert if m > 0 else db.delete)(table, [row])
        if m > 0:
            peer.execute(f"INSERT INTO {table} VALUES {row}")
        else:
            where = " AND ".join(f"{c} = {v}" for c, v in zip(TABLES[table], row, strict=True))
            peer.execute(f"DELETE FROM {table} WHERE rowid = (SELECT MIN(rowid) FROM {table} WHERE {where})")
        if i % 12 == 0:
            held = Counter(tuple(r.values()) for b in db.view("v").to_batches() for r in b.to_pylist())
            assert held == Counter(peer.execute(VIEWS[name]).fetchall())
            listed = name in ("listed", "each_once")
            most = max(most, len(held) if listed else next(iter(held))[0])
            assert not listed or +told == held
    text = db.view("v").explain()
    assert "strategy  ivm_eps:" in text and "amortised" in text and "heavy values" in text
    assert most > 2
    db.close()
