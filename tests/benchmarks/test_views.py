"""DuckDB answers every view of the benchmarks, and freshviews accepts it or refuses it with a reason."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks.measuring.stream import Relation
from benchmarks.workloads import flights, graph, large_book, orderbook, oumv, snb, star, tpch, tpch_queries
from freshviews.catalog.catalog import Catalog
from freshviews.errors import SqlError
from freshviews.sql.statements.sql_script import parse_script

pytestmark = pytest.mark.compiled(12)

EDGE = (Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst")),)
STAR = tuple(
    Relation(name, ", ".join(f"{c} BIGINT" for c in ["postcode", *columns.split()]), ("postcode",))
    for name, (_, columns) in star.COLUMNS.items()
)
VIEWS: dict[str, tuple[tuple[Relation, ...], str]] = {
    **{f"graph {name}": (EDGE, graph.view_of(name)) for name in (*graph.PATTERNS, *graph.LISTED)},
    **{f"star {name}": (STAR, view) for name, view in star.VIEWS.items()},
    **{f"orderbook {name}": (orderbook.RELATIONS, view) for name, view in orderbook.VIEWS.items()},
    **{f"large_book {name}": (orderbook.RELATIONS, view) for name, view in large_book.VIEWS.items()},
    "oumv": (oumv.RELATIONS, oumv.VIEW),
}
for module, queries in ((tpch, tpch_queries.QUERIES), (snb, snb.VIEWS), (flights, flights.VIEWS)):
    for query, (tables, text) in queries.items():
        VIEWS[f"{module.TITLE} {query}"] = (tuple(module.RELATIONS[name] for name in tables.split()), text)


@pytest.mark.parametrize("name", VIEWS)
def test_duckdb_can_run_the_query_of_every_benchmark_view(name: str) -> None:
    relations, view = VIEWS[name]
    with duckdb.connect() as db:
        for relation in relations:
            db.execute(relation.plain_ddl())
        assert len(db.execute(view).fetchall()) <= 1


@pytest.mark.parametrize("name", VIEWS)
def test_the_error_of_a_refused_benchmark_view_shows_its_place(name: str) -> None:
    relations, view = VIEWS[name]
    script = "\n".join(relation.ddl(checked=False) for relation in relations)
    try:
        parse_script(f"{script}\nCREATE MATERIALIZED VIEW v AS {view};", Catalog())
    except SqlError as error:
        assert "line" in str(error)


def test_every_query_of_tpch_has_a_case() -> None:
    assert list(tpch_queries.QUERIES) == [f"q{number}" for number in range(1, 23)]
