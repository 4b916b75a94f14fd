"""Models over joins, compared with scikit-learn's on the rows of the join."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import decomposition, linear_model

from freshviews import Database
from freshviews.errors import SqlError
from freshviews.learn import PCA, LearnError, LinearRegression, Ridge

pytestmark = pytest.mark.plain_python(only=True)

FEATURES = ("rooms", "area", "shops", "income")
JOIN = "houses JOIN places USING (place)"


def database(number: str = "DOUBLE") -> Database:
    db = Database()
    db.execute(f"CREATE TABLE houses (place BIGINT NOT NULL, rooms BIGINT NOT NULL, area {number}, price {number})")
    db.execute(f"CREATE TABLE places (place BIGINT NOT NULL, shops BIGINT, income {number})")
    return db


def fill(db: Database, seed: int, houses: int = 300, places: int = 20) -> None:
    """Rows with large means and small deviations, some with NULL."""
    random = np.random.default_rng(seed)
    for i in range(places):
        db.insert("places", [(i, int(random.integers(0, 9)), float(random.normal(50_000, 20)))])
    rows = []
    for _ in range(houses):
        rooms, area = int(random.integers(1, 8)), float(random.normal(90, 30))
        price = 1e5 + 3e4 * rooms + 1500 * area + float(random.normal(0, 1e4))
        rows.append((int(random.integers(0, places)), rooms, area if random.random() > 0.1 else None, price))
    db.insert("houses", rows)


def joined(db: Database) -> tuple[Any, Any]:
    """Features and target of the rows of the join without NULL."""
    places = {row[0]: row[1:] for row in db.table("places")}
    rows = [(r[1], r[2], *places[r[0]], r[3]) for r in db.table("houses")]
    table = np.array([row for row in rows if None not in row], float)
    return table[:, :-1], table[:, -1]


def assert_equal_to_sklearn(ours: LinearRegression, theirs: Any, x: Any, y: Any) -> None:
    theirs.fit(x, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    np.testing.assert_allclose(ours.r2, theirs.score(x, y), rtol=1e-8)
    np.testing.assert_allclose(ours.predict(x[:5]), theirs.predict(x[:5]), rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_equal_scikit_learn_on_the_join_at_every_version(fit_intercept: bool) -> None:
    db = database()
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices", fit_intercept=fit_intercept)
    ridge = Ridge(db, JOIN, FEATURES, "price", name="ridge", alpha=7.5, fit_intercept=fit_intercept)
    for seed in range(3):
        fill(db, seed)
        if seed == 1:
            db.delete("houses", list(db.table("houses"))[:100])
            db.delete("places", [next(iter(db.table("places")))])
            for table in ("houses", "places"):
                db.delete(table, list(db.table(table)))
            fill(db, 10)
        if seed == 2:
            continue
        x, y = joined(db)
        # scikit-learn without an intercept has r2 about the mean, ours about 0.
        if fit_intercept:
            assert_equal_to_sklearn(model, linear_model.LinearRegression(), x, y)
            assert_equal_to_sklearn(ridge, linear_model.Ridge(alpha=7.5, solver="svd"), x, y)
        else:
            theirs = linear_model.LinearRegression(fit_intercept=False).fit(x, y)
            np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8)
            assert model.intercept_ == 0.0


def test_a_model_has_the_standard_errors_of_ordinary_least_squares() -> None:
    db = database()
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices")
    fill(db, 5)
    x, y = joined(db)
    # The design matrix is centred, so its inverse is as exact as it can be.
    mean = x.mean(axis=0)
    design = np.column_stack([np.ones(len(x)), x - mean])
    coef, *_ = np.linalg.lstsq(design, y, rcond=None)
    variance = ((y - design @ coef) ** 2).sum() / (len(x) - design.shape[1])
    inverse = np.linalg.inv(design.T @ design) * variance
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diag(inverse)[1:]), rtol=1e-7)
    at_zero = np.concatenate([[1.0], -mean])
    np.testing.assert_allclose(model.intercept_error_, np.sqrt(at_zero @ inverse @ at_zero), rtol=1e-7)


def test_a_ridge_regression_has_no_standard_errors() -> None:
    db = database()
    ridge = Ridge(db, JOIN, FEATURES, "price", name="ridge")
    fill(db, 5)
    with pytest.raises(LearnError, match="penalty"):
        _ = ridge.standard_errors_


def test_principal_components_equal_scikit_learn() -> None:
    db = database()
    model = PCA(db, JOIN, FEATURES, name="axes", components=3)
    fill(db, 3)
    db.execute(f"CREATE MATERIALIZED VIEW whole AS SELECT rooms, area, shops, income FROM {JOIN}")
    x = np.array([row for row in db.view("whole") if None not in row], float)
    theirs = decomposition.PCA(3, svd_solver="full").fit(x)
    signs = np.sign((theirs.components_ * model.components_).sum(axis=1))
    np.testing.assert_allclose(model.components_, theirs.components_ * signs[:, None], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_allclose(model.transform(x[:4]), theirs.transform(x[:4]) * signs, rtol=1e-6, atol=1e-6)
    assert (model.components_[np.arange(3), np.abs(model.components_).argmax(axis=1)] > 0).all()


def test_dependent_features_get_the_solution_of_least_norm() -> None:
    db = database()
    db.execute("CREATE MATERIALIZED VIEW twice AS SELECT rooms, rooms + rooms AS double_rooms, price FROM houses")
    model = LinearRegression(db, "twice", ["rooms", "double_rooms"], "price", name="prices")
    fill(db, 4)
    x = np.array([(row[1], 2 * row[1]) for row in db.table("houses")], float)
    y = np.array([row[3] for row in db.table("houses")])
    theirs = linear_model.LinearRegression().fit(x, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8)
    with pytest.raises(LearnError, match="linearly independent features"):
        _ = model.standard_errors_


def test_subscribers_get_a_model_after_every_change_of_the_model() -> None:
    db = database()
    model = LinearRegression(db, JOIN, ["rooms"], "price", name="prices")
    seen: list[float] = []
    subscription = model.subscribe(lambda one: seen.append(one.coef_[0] if one.moments.count > 1 else 0.0))
    db.insert("places", [(1, 2, 3.0)])
    assert seen == []
    db.insert("houses", [(1, 1, 1.0, 10.0), (1, 2, 1.0, 30.0)])
    db.insert("houses", [(1, 3, 1.0, 90.0)])
    assert seen == pytest.approx([20.0, 40.0])
    subscription.unsubscribe()
    db.delete("houses", [(1, 3, 1.0, 90.0)])
    assert len(seen) == 2
    assert model.coef_[0] == pytest.approx(20.0)


def test_columns_of_a_frame_are_found_by_name() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    db = database()
    model = LinearRegression(db, JOIN, ["rooms", "area"], "price", name="prices")
    fill(db, 1)
    columns = {"area": [50.0, 60.0], "rooms": [1, 2], "other": ["x", "y"]}
    expected = model.predict(np.array([[1, 50.0], [2, 60.0]]))
    for frame in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_allclose(model.predict(frame), expected)
    with pytest.raises(LearnError, match="no column area"):
        model.predict({"rooms": [1]})
    with pytest.raises(LearnError, match=r"shape \(2, 1\)"):
        model.predict(np.array([[1], [2]]))


def test_the_error_of_a_model_names_the_wrong_input() -> None:
    db = database()
    model = LinearRegression(db, JOIN, ["rooms"], "price", name="prices")
    with pytest.raises(LearnError, match="0 rows; it needs 2"):
        _ = model.coef_
    with pytest.raises(LearnError, match="twice"):
        LinearRegression(db, JOIN, ["rooms", "rooms"], "price", name="other")
    with pytest.raises(LearnError, match="no feature"):
        LinearRegression(db, JOIN, [], "price", name="other")
    with pytest.raises(LearnError, match="alpha"):
        Ridge(db, JOIN, ["rooms"], "price", name="other", alpha=-1.0)
    with pytest.raises(LearnError, match="components"):
        PCA(db, JOIN, ["rooms"], name="other", components=2)
    with pytest.raises(SqlError, match="unknown column roms; did you mean rooms") as raised:
        LinearRegression(db, JOIN, ["roms"], "price", name="other")
    statement = "CREATE MATERIALIZED VIEW other AS SELECT COFACTOR(roms, price) AS f"
    assert raised.value.__notes__[0].startswith(f"The model other creates its view by: {statement}")
    model.drop()
    LinearRegression(db, JOIN, ["rooms"], "price", name="prices")


def test_values_with_a_large_mean_lose_no_digit() -> None:
    """The covariance of values whose squares have no digits left for the deviations."""
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, y DOUBLE)")
    model = LinearRegression(db, "t", ["x"], "y", name="line")
    db.insert("t", [(1e15 + x, 3.0 * x) for x in range(100)])
    assert model.coef_[0] == pytest.approx(3.0, rel=1e-12)


def test_forward_steps_add_the_feature_that_explains_most() -> None:
    for seed in range(2):
        db = database()
        model = LinearRegression(db, JOIN, FEATURES, "price", name="prices")
        fill(db, seed)
        x, y = joined(db)
        chosen: list[int] = []
        steps = model.forward_steps()
        for name, explained in steps:
            left = [i for i in range(len(FEATURES)) if i not in chosen]
            scores = {
                i: linear_model.LinearRegression().fit(x[:, [*chosen, i]], y).score(x[:, [*chosen, i]], y) for i in left
            }
            best = max(left, key=scores.__getitem__)
            assert name == FEATURES[best]
            np.testing.assert_allclose(explained, scores[best], rtol=1e-8)
            chosen.append(best)
        assert steps[-1][1] == pytest.approx(model.r2, rel=1e-12) and model.forward_steps(2) == steps[:2]
