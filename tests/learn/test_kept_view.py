"""A model whose view has been dropped raises an error on every read, also after earlier reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freshviews import Database
from freshviews.errors import CatalogError, FreshviewsError
from freshviews.learn import (
    PCA,
    Baseline,
    ChowLiuTree,
    LinearDiscriminant,
    LinearRegression,
    MomentsView,
    MutualInformation,
    Ridge,
)

pytestmark = pytest.mark.plain_python(only=True)

Read = Callable[[], object]
"""Reads a property of a model."""

MODELS: dict[str, Callable[[Database], Read]] = {
    "regression": lambda db: _reading(LinearRegression(db, "t", ["x"], "y", name="m"), "coef_"),
    "ridge": lambda db: _reading(Ridge(db, "t", ["x"], "y", name="m"), "intercept_"),
    "a category": lambda db: _reading(LinearRegression(db, "t", ["x"], "y", name="m", categories=["c"]), "coef_"),
    "categories": lambda db: _reading(LinearRegression(db, "t", ["x"], "y", name="m", categories=["c", "d"]), "coef_"),
    "components": lambda db: _reading(PCA(db, "t", ["x", "y"], name="m"), "components_"),
    "discriminant": lambda db: _reading(LinearDiscriminant(db, "t", ["x", "y"], "c", name="m"), "coef_"),
    "information": lambda db: _reading(MutualInformation(db, "t", ["c", "d"], name="m"), "matrix_"),
    "tree": lambda db: _reading(ChowLiuTree(db, "t", ["c", "d"], name="m"), "edges_"),
    "drift": lambda db: Baseline(MomentsView(db, "t", ["x", "y"], "m")).drift,
}


def _reading(model: Any, attribute: str) -> Read:
    return lambda: getattr(model, attribute)


@pytest.fixture
def db() -> Database:
    made = Database()
    made.execute("CREATE TABLE t (x DOUBLE, y DOUBLE, c STRING, d STRING); CREATE TABLE other (a BIGINT)")
    made.insert("t", [(float(i % 5), float(i % 7), f"c{i % 3}", f"d{i % 2}") for i in range(60)])
    return made


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("more", [False, True])
def test_a_model_whose_view_was_dropped_raises_an_error(db: Database, name: str, more: bool) -> None:
    """Also if there was no later version."""
    read = MODELS[name](db)
    read()
    db.execute("DROP VIEW m")
    if more:
        db.insert("other", [(1,)])
    for _ in range(2):
        with pytest.raises(CatalogError, match="m was dropped"):
            read()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_never_reads_a_replaced_view(db: Database, name: str) -> None:
    read = MODELS[name](db)
    read()
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT c, COUNT(*) AS n FROM t GROUP BY c")
    with pytest.raises(CatalogError, match="m was dropped"):
        read()
    assert len(db.view("m")) == 3


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_a_closed_database_raises_an_error(db: Database, name: str) -> None:
    read = MODELS[name](db)
    read()
    db.close()
    with pytest.raises(FreshviewsError, match="the database is closed"):
        read()


def test_a_model_with_a_dropped_view_raises_an_error(db: Database) -> None:
    read = MODELS["categories"](db)
    read()
    db.execute("DROP VIEW m_pairs")
    with pytest.raises(CatalogError, match="m_pairs was dropped"):
        read()
