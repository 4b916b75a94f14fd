"""Heavy and light parts through SQL: compiled code agrees with a count from scratch; EXPLAIN, images, the page."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from freshviews import Database
from freshviews.errors import PlanError

pytestmark = pytest.mark.compiled(0)

PAGE = Path(__file__).parents[2] / "docs" / "ivm-eps.md"
EDGES = "CREATE TABLE e (src BIGINT NOT NULL, dst BIGINT NOT NULL, w BIGINT NOT NULL) TBLPROPERTIES ({})"
TRUSTED = "'freshviews.trusted' = 'true'"
JOIN = "FROM e r JOIN e s ON r.dst = s.src JOIN e t ON s.dst = t.src AND t.dst = r.src"
STRATEGIES = ("ivm_eps", "ivm_eps_linear")
Edge = tuple[int, int, int]


def views(strategy: str, epsilon: str) -> str:
    """Triangles counted, weighed, filtered and by vertex."""
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}', 'freshviews.epsilon' = '{epsilon}')"
    return f"""
        CREATE MATERIALIZED VIEW counted {properties} AS SELECT COUNT(*) AS n {JOIN};
        CREATE MATERIALIZED VIEW weighed {properties} AS
            SELECT SUM(r.w * s.w) AS n, SUM(CAST(t.w AS DOUBLE) / 8) AS d {JOIN};
        CREATE MATERIALIZED VIEW ordered {properties} AS
            SELECT COUNT(*) AS n {JOIN} WHERE r.src < s.src AND t.w > 1;
        CREATE MATERIALIZED VIEW by_vertex {properties} AS SELECT r.src AS v, COUNT(*) AS n {JOIN} GROUP BY r.src;
    """


def from_scratch(edges: Counter[Edge]) -> dict[str, object]:
    """The expected contents of the views."""
    out: dict[int, list[tuple[Edge, int]]] = {}
    for edge, m in edges.items():
        if m:
            out.setdefault(edge[0], []).append((edge, m))
    found = [
        (r, s, t, x * y * z)
        for rows in out.values()
        for r, x in rows
        for s, y in out.get(r[1], ())
        for t, z in out.get(s[1], ())
        if t[1] == r[0]
    ]
    by_vertex: Counter[int] = Counter()
    for r, _, _, m in found:
        by_vertex[r[0]] += m
    return {
        "counted": sum(m for *_, m in found),
        "weighed": (sum(r[2] * s[2] * m for r, s, _, m in found), sum(t[2] / 8 * m for _, _, t, m in found)),
        "ordered": sum(m for r, s, t, m in found if r[0] < s[0] and t[2] > 1),
        "by_vertex": {v: n for v, n in by_vertex.items() if n},
    }


def held(db: Database) -> dict[str, object]:
    names = from_scratch(Counter())
    rows = {name: [row for batch in db.view(name).to_batches() for row in batch.to_pylist()] for name in names}
    ((weighed,), (counted,), (ordered,)) = (rows[name] for name in ("weighed", "counted", "ordered"))
    return {
        "counted": counted["n"],
        "weighed": (weighed["n"] or 0, weighed["d"] or 0),
        "ordered": ordered["n"],
        "by_vertex": {row["v"]: row["n"] for row in rows["by_vertex"]},
    }


def changes(seed: int, batches: int) -> list[list[tuple[Edge, int]]]:
    """Batches of edges with a few large vertices: growth, then decay."""
    rng = random.Random(seed)
    there: list[Edge] = []
    made = []
    for i in range(batches):
        batch: list[tuple[Edge, int]] = []
        for _ in range(rng.choice((1, 2, 30))):
            if there and rng.random() < (0.3 if i < batches // 2 else 0.75):
                batch.append((there.pop(rng.randrange(len(there))), -1))
            else:
                there.append((int(15 * rng.random() ** 3), int(15 * rng.random() ** 2), rng.randint(1, 2)))
                batch.append((there[-1], 1))
        made.append(batch)
    return made


def apply(db: Database, batch: list[tuple[Edge, int]]) -> None:
    for edge, m in batch:
        (db.insert if m > 0 else db.delete)("e", [edge])


@pytest.mark.parametrize("epsilon", ["0.3", "0.5", "r 0, s 0, t 1"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_compiled_ivm_eps_programs_agree_with_counts_computed_from_scratch(strategy: str, epsilon: str) -> None:
    db = Database()
    db.execute(EDGES.format(TRUSTED) + ";" + views(strategy, epsilon))
    edges: Counter[Edge] = Counter()
    for i, batch in enumerate(changes(3, 60)):
        apply(db, batch)
        for edge, m in batch:
            edges[edge] += m
        if i % 5 == 0:
            assert held(db) == from_scratch(edges)
    text = db.view("counted").explain()
    if epsilon in ("0.3", "0.5"):
        major, minor = re.findall(r"([\d,]+) major and ([\d,]+) minor", text)[0]
        assert int(major) > 3 and int(minor) > 0
    elif strategy == "ivm_eps":
        assert "balance:" not in text
    db.close()


def test_negative_multiplicities_of_a_trusted_table_are_counted() -> None:
    db = Database()
    db.execute(EDGES.format(TRUSTED) + ";" + views("ivm_eps_linear", "0.5"))
    edges: Counter[Edge] = Counter()
    for edge in [(i % 5, i % 3, 1) for i in range(15)]:
        db.delete("e", [edge])
        edges[edge] -= 1
    assert held(db)["counted"] == from_scratch(edges)["counted"]
    db.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_heavy_and_light_parts_survive_a_reopen(strategy: str, tmp_path: Path) -> None:
    edges: Counter[Edge] = Counter()
    with Database(tmp_path / "db") as db:
        db.execute(EDGES.format(TRUSTED) + ";" + views(strategy, "0.5"))
        for batch in changes(5, 20):
            apply(db, batch)
            for edge, m in batch:
                edges[edge] += m
        db.snapshot()
        before = re.findall(r"balance:.*", db.view("counted").explain())
    with Database(tmp_path / "db") as db:
        assert re.findall(r"balance:.*", db.view("counted").explain()) == before
        for batch in changes(6, 12):
            for edge, m in batch:
                if m > 0:
                    apply(db, [(edge, m)])
                    edges[edge] += m
        assert held(db) == from_scratch(edges)


def test_the_planner_chooses_ivm_eps_for_triangle_counts() -> None:
    db = Database()
    db.execute(EDGES.format(TRUSTED))
    db.execute(f"CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n {JOIN}")
    db.execute(f"CREATE MATERIALIZED VIEW by_vertex AS SELECT r.src AS v, COUNT(*) AS n {JOIN} GROUP BY r.src")
    assert "strategy  ivm_eps_linear:" in db.view("counted").explain()
    assert "O(N^0.5) amortised" in db.view("counted").explain()
    assert "strategy  first_order:" in db.view("by_vertex").explain()
    db.close()


@pytest.mark.parametrize("epsilon", ["1.5", "-1", "half", "x 0.5", "", "r 0 1"])
def test_the_error_of_an_invalid_exponent_shows_the_accepted_forms(epsilon: str) -> None:
    db = Database()
    db.execute(EDGES.format(TRUSTED))
    with pytest.raises(PlanError, match="number from 0 to 1, or such a number for each of r, s, t"):
        properties = f"TBLPROPERTIES ('freshviews.epsilon' = '{epsilon}')"
        db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS SELECT COUNT(*) AS n {JOIN}")
    db.close()


def test_the_small_example_of_the_ivm_eps_docs_gives_the_printed_results() -> None:
    text = PAGE.read_text().split("## A small example")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (told,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    db = Database()
    exec(code, {"db": db})
    view = db.view("triangles")
    assert [row for batch in view.to_batches() for row in batch.to_pylist()] == [{"n": 6}]
    assert view.explain().endswith(told)
    assert re.search(r"V_st +1 rows", view.explain())
    db.close()
