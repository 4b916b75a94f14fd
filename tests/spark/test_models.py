"""Cofactors in a pipeline of several cells: by group in the cells, or merged from them, as columns or as one value."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews import Database
from freshviews.spark import Pipeline
from freshviews.spark.layout.layout import layout_of
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.stores.addresses import store_of

pytestmark = pytest.mark.spark

COLUMNS = {
    "houses": "place BIGINT NOT NULL, rooms INT, floors INT, area DOUBLE",
    "places": "place BIGINT NOT NULL, shops INT, income DOUBLE",
}
NAMES = {name: [column.split()[0] for column in columns.split(", ")] for name, columns in COLUMNS.items()}
JOIN = "houses JOIN places USING (place)"
WHOLE = ("rooms", "floors", "shops", "area", "income")
INTEGERS = ("rooms", "floors", "shops")
PAIRS = list(combinations_with_replacement(INTEGERS, 2))
SUMS = [*(f"SUM({x})" for x in INTEGERS), *(f"SUM({x} * {y})" for x, y in PAIRS)]
PARTS = [*(f"f_sum_{x}" for x in INTEGERS), *(f"f_sum_{x}_{y}" for x, y in PAIRS)]
COFACTOR = f"COFACTOR({', '.join(WHOLE)}) AS f, COVAR_MATRIX({', '.join(WHOLE)}) AS c"
VIEWS = {
    "by_place": f"SELECT place, {COFACTOR} FROM {JOIN} GROUP BY place",
    "added": f"SELECT SUM(f_count) AS n, {', '.join(f'SUM({x}) AS v{i}' for i, x in enumerate(PARTS))} FROM by_place",
    "merged": f"SELECT COUNT(*) AS n, {', '.join(f'{x} AS v{i}' for i, x in enumerate(SUMS))} FROM {JOIN}",
    "whole": f"SELECT {COFACTOR} FROM {JOIN}",
}
RESULTS = {"by_place": (2, False), "merged": (2, True), "whole": (2, True)}
"""The cells that compute a view, and whether it is merged from them; ``added`` is in the second stage."""

Rows = dict[str, list[tuple[Any, ...]]]


def houses(random: np.random.Generator, count: int) -> list[tuple[Any, ...]]:
    return [
        (int(random.integers(0, 12)), int(random.integers(1, 9)), int(random.integers(1, 4)), random.normal(90, 30))
        for _ in range(count)
    ]


def write(folder: Path, file: str, inserted: Rows, deleted: Rows) -> None:
    """A file of signed rows for each table."""
    for name in COLUMNS:
        rows = [*((*row, 1) for row in inserted.get(name, [])), *((*row, -1) for row in deleted.get(name, []))]
        if rows:
            (folder / name).mkdir(exist_ok=True)
            columns = dict(zip([*NAMES[name], "_multiplicity"], zip(*rows, strict=True), strict=True))
            pq.write_table(pa.table(columns), folder / f".{name}")
            (folder / f".{name}").rename(folder / name / f"{file}.parquet")


@pytest.mark.full
@pytest.mark.long("two runs of a pipeline whose views are compiled, with others running")
def test_cells_and_one_engine_compute_the_same_models(spark: Any, tmp_path: Path) -> None:
    tables = [
        f"CREATE STREAMING TABLE {name} ({columns}) USING parquet OPTIONS (path '{name}', changes 'signed');"
        for name, columns in COLUMNS.items()
    ]
    views = [f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items()]
    (tmp_path / "script.sql").write_text("\n".join([*tables, *views]))
    random = np.random.default_rng(5)
    first: Rows = {"houses": houses(random, 200)}
    first["places"] = [(i, int(random.integers(0, 9)), random.normal(50_000, 20)) for i in range(12)]
    changed = (*first["places"][3][:2], first["places"][3][2] + 10.0)
    later: Rows = {"houses": houses(random, 40), "places": [changed]}
    gone: Rows = {"houses": first["houses"][::3], "places": [first["places"][3]]}
    with Database() as db:
        db.execute("".join(f"CREATE TABLE {name} ({columns});" for name, columns in COLUMNS.items()))
        db.execute("\n".join(views))
        held = {name: Counter[tuple[Any, ...]]() for name in COLUMNS}
        for number, (inserted, deleted) in enumerate([(first, {}), (later, gone)]):
            for name in COLUMNS:
                held[name] += Counter(inserted.get(name, []))
                held[name] -= Counter(deleted.get(name, []))
                db.insert(name, inserted.get(name, []))
                db.delete(name, deleted.get(name, []))
            write(tmp_path, str(number), inserted, deleted)
            query = Pipeline.from_script(spark, tmp_path / "script.sql", cells=2).start(once=True)
            query.awaitTermination()
            assert query.exception() is None
            store = store_of(tmp_path / "script.checkpoint")
            version = latest(store)
            found = {
                name: Counter(tuple(row.values()) for row in contents(store, version, name).to_pylist())
                for name in VIEWS
            }
            for name in VIEWS:
                assert found[name] == Counter(db.view(name)), name
            assert found["added"] == found["merged"]
            check_against_numpy(next(iter(found["whole"])), held)
        parts = layout_of(version).plan.parts
    assert {part.view: (part.span, part.merged) for part in parts} == RESULTS


def check_against_numpy(row: tuple[Any, ...], held: dict[str, Counter[tuple[Any, ...]]]) -> None:
    """Check the cofactor and the covariances of a row against the rows of the join."""
    places = {place: rest for place, *rest in held["places"].elements()}
    joined = np.array([
        (rooms, floors, places[place][0], area, places[place][1])
        for place, rooms, floors, area in held["houses"].elements()
    ], float)  # fmt: skip
    upper = np.triu_indices(len(WHOLE))
    expected = [len(joined), *joined.sum(axis=0), *(joined.T @ joined)[upper]]
    np.testing.assert_allclose(row, [*expected, *np.cov(joined.T)[upper]], rtol=1e-9)
