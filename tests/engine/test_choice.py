"""The planner chooses a strategy by the shape of the query."""

from __future__ import annotations

import pytest

import freshviews as fv

pytestmark = pytest.mark.compiled(5)

TABLES = """
CREATE TABLE edge (src BIGINT NOT NULL, dst BIGINT NOT NULL);
CREATE TABLE person (id BIGINT PRIMARY KEY, city BIGINT);
CREATE TABLE link (src BIGINT, dst BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
"""
TRIANGLE = "edge r JOIN edge s ON s.src = r.dst JOIN edge t ON t.src = s.dst AND t.dst = r.src"
PATH = "edge r JOIN edge s ON s.src = r.dst JOIN edge t ON t.src = s.dst"
CYCLE = f"{PATH} JOIN edge u ON u.src = t.dst AND u.dst = r.src"
BRIDGE = "edge m ON m.src = r.src"
OTHER = "edge u ON u.src = m.dst JOIN edge v ON v.src = u.dst JOIN edge w ON w.src = v.dst AND w.dst = m.dst"

CHOICES = {
    "triangle": (f"SELECT COUNT(*) AS n FROM {TRIANGLE}", "ivm_eps_linear"),
    "triangles of a vertex": (f"SELECT r.src, COUNT(*) AS n FROM {TRIANGLE} GROUP BY r.src", "first_order"),
    "cycle of four": (f"SELECT COUNT(*) AS n FROM {CYCLE}", "first_order"),
    "dumbbell": (f"SELECT COUNT(*) AS n FROM {TRIANGLE} JOIN {BRIDGE} JOIN {OTHER}", "crown"),
    "triangle with a tail": (f"SELECT m.dst, COUNT(*) AS n FROM {TRIANGLE} JOIN {BRIDGE} GROUP BY m.dst", "crown"),
    "cycle of four with a tail": (f"SELECT COUNT(*) AS n FROM {CYCLE} JOIN {BRIDGE}", "crown"),
    "two tables and an inequality": (
        "SELECT r.src, COUNT(*) AS n FROM edge r JOIN edge s ON s.src = r.src WHERE r.dst < s.dst GROUP BY r.src",
        "first_order",
    ),
    "triangle, its people by key": (
        f"SELECT p.city, COUNT(*) AS n FROM {TRIANGLE} JOIN person p ON p.id = r.src GROUP BY p.city",
        "crown",
    ),
    "rows of trusted tables": ("SELECT r.src, r.dst, s.dst AS e FROM link r JOIN link s ON s.src = r.dst", "crown"),
    "rows of trusted tables, not known by their output": (
        "SELECT r.src + r.dst AS x, s.dst AS e FROM link r JOIN link s ON s.src = r.dst",
        "view_tree",
    ),
    "rows of one trusted table": ("SELECT src FROM link WHERE dst > 3", "view_tree"),
    "path": ("SELECT COUNT(*) AS n FROM edge r JOIN edge s ON s.src = r.dst", "view_tree"),
    "star, three counts of one table": (
        "SELECT COUNT(*) AS n FROM edge r JOIN edge s ON s.src = r.src JOIN edge t ON t.src = r.src",
        "first_order",
    ),
    "star, of sums by edge": (
        "SELECT SUM(r.dst * s.dst) AS n FROM edge r JOIN edge s ON s.src = r.src",
        "view_tree",
    ),
    "star of six edges": (
        "SELECT COUNT(*) AS n FROM edge r JOIN edge s ON s.src = r.src JOIN edge t ON t.src = r.src "
        "JOIN edge u ON u.src = r.src JOIN edge v ON v.src = r.src JOIN edge w ON w.src = r.src",
        "view_tree",
    ),
    "values of edges that no person ends": (
        "SELECT s.dst, COUNT(DISTINCT r.src) AS n FROM edge r JOIN edge s ON s.src = r.dst "
        "WHERE NOT EXISTS (SELECT 1 FROM person p WHERE p.id = r.src) GROUP BY s.dst",
        "first_order",
    ),
    "edges that no person ends, counted": (
        "SELECT s.dst, COUNT(*) AS n FROM edge r JOIN edge s ON s.src = r.dst "
        "WHERE NOT EXISTS (SELECT 1 FROM person p WHERE p.id = r.src) GROUP BY s.dst",
        "view_tree",
    ),
    "edges without a way back": (
        "SELECT src, dst FROM edge r WHERE NOT EXISTS (SELECT 1 FROM edge s WHERE s.src = r.dst AND s.dst = r.src)",
        "crown",
    ),
}


@pytest.mark.parametrize(("query", "strategy"), CHOICES.values(), ids=CHOICES)
def test_the_planner_chooses_the_expected_strategy(query: str, strategy: str) -> None:
    with fv.Database() as db:
        db.execute(TABLES)
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert db.stats()["views"]["v"]["strategy"] == strategy


def test_ivm_eps_refuses_a_view_with_a_negated_atom() -> None:
    absent = "SELECT src FROM edge r WHERE NOT EXISTS (SELECT 1 FROM edge s WHERE s.src = r.dst)"
    with fv.Database() as db:
        db.execute(TABLES)
        for strategy in ("ivm_eps", "ivm_eps_linear"):
            properties = f"'freshviews.strategy' = '{strategy}'"
            with pytest.raises(fv.PlanError, match=r"does not accept NOT EXISTS; set .*first_order.*, or no"):
                db.execute(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS {absent}")
        assert db.stats()["views"] == {}
