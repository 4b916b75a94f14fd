"""Views that go on from their images are the views that were never interrupted."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from freshviews.engine.batch import CodeBatch
from freshviews.engine.image import OtherProgram
from freshviews.engine.maintained import Maintained
from freshviews.errors import StoreError
from freshviews.kernel.mem import PURE_PYTHON
from freshviews.plan import STRATEGIES
from freshviews.query.block import TableDef, ViewDef
from freshviews.sql.catalog import Catalog, ViewDefs
from freshviews.sql.script import parse_script
from freshviews.store import array_file
from freshviews.store.strings import read_strings, write_strings
from freshviews.types import NULL, Dictionary

SCRIPT = """
CREATE TABLE r (a BIGINT, b BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE s (b BIGINT, c BIGINT, d DOUBLE) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE t (c BIGINT, name STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW sums AS
  SELECT b, SUM(a) AS x, COUNT(*) AS n, SUM(d) AS y, AVG(d) AS z FROM r JOIN s USING (b) GROUP BY b;
CREATE MATERIALIZED VIEW ends AS
  SELECT s.b, MIN(name) AS least, MAX(name) AS most, COUNT(DISTINCT name) AS n, MAX(d) AS d
  FROM s JOIN t ON s.c = t.c WHERE upper(name) <> 'P3' GROUP BY s.b;
CREATE MATERIALIZED VIEW paths AS SELECT r.a, s.b, t.name FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c;
CREATE MATERIALIZED VIEW either AS SELECT a FROM r UNION ALL SELECT c FROM t WHERE name = 'p1';
CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(d) AS d FROM s;
"""
VIEWS = ("sums", "ends", "paths", "either", "total")
ROWS = 40 if PURE_PYTHON else 300


def definitions(script: str = SCRIPT) -> dict[str, TableDef | ViewDef]:
    found: dict[str, TableDef | ViewDef] = {}
    for statement in parse_script(script, Catalog()):
        for one in statement.views if isinstance(statement, ViewDefs) else (statement,):
            assert isinstance(one, TableDef | ViewDef)
            found[one.name] = one
    return found


@contextmanager
def maintained(
    name: str, dictionary: Dictionary, strategy: str | None = None, script: str = SCRIPT
) -> Iterator[Maintained]:
    known = definitions(script)
    view = known[name]
    assert isinstance(view, ViewDef)
    if strategy is not None:
        view = ViewDef(**{**view.__dict__, "strategy": strategy})
    made = Maintained(view, {n: known[n] for n in view.inputs}, dictionary)
    try:
        made.prepare()
        yield made
    finally:
        made.close()


def batches(order: random.Random, dictionary: Dictionary, values: int, rows: int = ROWS) -> list[CodeBatch]:
    """A batch for each table; every fourth row is taken out rather than put in."""
    names = np.array([dictionary.encode(f"p{i}") for i in range(6)] + [NULL])
    doubles = np.array([0.1, 1e300, -1e300, 2.5, float("inf")]).view(np.int64)
    draw = np.random.default_rng(order.randrange(2**32))

    def integers() -> np.ndarray:
        return draw.integers(0, values, rows)

    columns = {
        "r": {"a": integers(), "b": integers()},
        "s": {"b": integers(), "c": integers(), "d": draw.choice(doubles, rows)},
        "t": {"c": integers(), "name": draw.choice(names, rows)},
    }
    m = draw.choice([1, 1, 1, -1], rows)
    return [CodeBatch(name, found, m) for name, found in columns.items()]


def run(view: Maintained, several: list[CodeBatch]) -> None:
    for batch in several:
        if batch.relation in view.inputs:
            view.apply(batch)
            assert view.failure() is None


def rows_of(several: Iterator[CodeBatch] | list[CodeBatch]) -> list[tuple[int, ...]]:
    return sorted(
        row for batch in several for row in zip(*(c.tolist() for c in (*batch.columns.values(), batch.multiplicities)), strict=True)
    )


def agree(one: Maintained, other: Maintained) -> None:
    """Contents, change and what EXPLAIN tells are the same, and so are the rows in the same order."""
    for a, b in zip(one.contents(100), other.contents(100), strict=True):
        assert {n: c.tolist() for n, c in a.columns.items()} == {n: c.tolist() for n, c in b.columns.items()}
        assert a.multiplicities.tolist() == b.multiplicities.tolist()
    assert one.failure() is None and other.failure() is None
    if one.wants_change and other.wants_change:
        assert rows_of([one.take_change()]) == rows_of([other.take_change()])
    assert one.sizes() == other.sizes() and one.explain() == other.explain()


def strategies() -> list[tuple[str, str | None]]:
    named = [(view, strategy) for view in VIEWS for strategy in STRATEGIES]
    return [*((view, None) for view in VIEWS), *named]


@pytest.mark.parametrize("mapped", [1, 1 << 18], ids=["mapped", "read"])
@pytest.mark.parametrize("name, strategy", strategies())
def test_a_view_goes_on_from_its_image_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, strategy: str | None, mapped: int
) -> None:
    from freshviews.errors import PlanError

    monkeypatch.setattr(array_file, "MAPPED", mapped)
    order = random.Random(name)
    dictionary = Dictionary()
    try:
        with maintained(name, dictionary, strategy) as one:
            for turn in range(3):
                one.wants_change = turn > 0
                # Wider ranges of values make tables grow, narrow ones make groups large.
                run(one, batches(order, dictionary, (5, 400, 20)[turn]))
                one.discard_change()
                one.write_image(tmp_path / "image", sync=False)
                write_strings(tmp_path / "strings", dictionary, 0, sync=False)
                known = Dictionary()
                read_strings(tmp_path / "strings", known)
                with maintained(name, known, strategy) as other:
                    other.wants_change = turn > 0
                    other.read_image(tmp_path / "image", verify=True)
                    agree(one, other)
                    for values in (400, 5):
                        several = batches(order, dictionary, values)
                        run(one, several)
                        run(other, several)
                        agree(one, other)
                    run(other, [b.negated() for b in several])
                    run(one, [b.negated() for b in several])
                    agree(one, other)
                    other.clear()
                    one.discard_change()
                    other.discard_change()
                    run(other, several)
                    with maintained(name, dictionary, strategy) as fresh:
                        run(fresh, several)
                        assert rows_of(fresh.contents(100)) == rows_of(other.contents(100))
    except PlanError:
        assert strategy is not None
    finally:
        assert not list(tmp_path.glob("*.tmp"))
