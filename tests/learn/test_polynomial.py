"""Models of degree 2, and drift, compared with scikit-learn and numpy on the rows of the join at every version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, preprocessing

from freshviews import Database
from freshviews.learn import PCA, Baseline, Drift, LearnError, LinearRegression, MomentsView, Ridge

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "learn.md"
FEATURES = ("rooms", "area", "income")
JOIN = "houses JOIN places USING (place)"


def database() -> Database:
    db = Database()
    db.execute(
        "CREATE TABLE houses (place BIGINT NOT NULL, rooms INT NOT NULL, area DOUBLE, price DOUBLE NOT NULL);"
        "CREATE TABLE places (place BIGINT NOT NULL, income DOUBLE NOT NULL)"
    )
    return db


def stream(db: Database, seed: int, versions: int) -> Iterator[Any]:
    """The rows of the join without NULL, as features and target, after each of some random batches."""
    random = np.random.default_rng(seed)
    db.insert("places", [(i, float(random.normal(3, 1))) for i in range(8)])
    for version in range(versions):
        if version % 3 == 2:
            houses, places = list(db.table("houses")), list(db.table("places"))
            db.delete("houses", houses[:10])
            db.delete("places", places[:1])
            db.insert("places", [(places[0][0], places[0][1] + 1.5)])
        rows = []
        for _ in range(25):
            rooms, area = int(random.integers(1, 8)), float(random.normal(4 + version / 5, 1))
            price = 3.0 + rooms * area - 0.5 * area**2 + float(random.normal(0, 0.5))
            rows.append((int(random.integers(0, 8)), rooms, area if random.random() > 0.1 else None, price))
        db.insert("houses", rows)
        income = dict(db.table("places"))
        joined = [(rooms, area, income[place], price) for place, rooms, area, price in db.table("houses")]
        yield np.array([row for row in joined if row[1] is not None], float)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_of_degree_2_equal_scikit_learn_at_every_version(fit_intercept: bool) -> None:
    db = database()
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices", fit_intercept=fit_intercept, degree=2)
    ridge = Ridge(db, JOIN, FEATURES, "price", name="ridge", alpha=2.5, fit_intercept=fit_intercept, degree=2)
    made = preprocessing.PolynomialFeatures(2, include_bias=False)
    for rows in stream(db, 1, 5):
        x, y = made.fit_transform(rows[:, :-1]), rows[:, -1]
        theirs = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(x, y)
        penalised = linear_model.Ridge(alpha=2.5, fit_intercept=fit_intercept, solver="svd").fit(x, y)
        for ours, other in ((model, theirs), (ridge, penalised)):
            np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-8)
            np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=1e-8)
            np.testing.assert_allclose(ours.predict(rows[:4, :-1]), other.predict(x[:4]), rtol=1e-8)
        if fit_intercept:
            np.testing.assert_allclose(model.r2, theirs.score(x, y), rtol=1e-8)
    squares = [name.replace("^2", "") for name in made.get_feature_names_out(FEATURES)]
    assert model.terms == tuple(
        f"{name} * {name}" if "^2" in theirs_name else name.replace(" ", " * ")
        for name, theirs_name in zip(squares, made.get_feature_names_out(FEATURES), strict=True)
    )
    assert {name for name, _ in model.forward_steps(3)} <= set(model.terms)


def test_products_of_int_columns_do_not_overflow() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x INT, y DOUBLE)")
    model = LinearRegression(db, "t", ["x"], "y", name="parabola", degree=2)
    db.insert("t", [(x * 100_000, 2.0 * (x * 100_000.0) ** 2 + 1.0) for x in range(-5, 6)])
    np.testing.assert_allclose(model.coef_, [0.0, 2.0], rtol=1e-9, atol=1e-4)
    for degree in (0, 3):
        with pytest.raises(LearnError, match="must be 1 or 2"):
            LinearRegression(db, "t", ["x"], "y", name="other", degree=degree)


def recomputed(before: Any, after: Any) -> tuple[Any, Any, float]:
    """The drift of rows, by its definition."""
    first, last = np.cov(before.T), np.cov(after.T)
    deviation, shift = before.std(axis=0, ddof=1), after.mean(axis=0) - before.mean(axis=0)
    inverse = np.linalg.inv(first)
    nats = np.trace(inverse @ last) + shift @ inverse @ shift - len(shift)
    nats += np.log(np.linalg.det(first)) - np.log(np.linalg.det(last))
    return shift / deviation, (last - first) / np.outer(deviation, deviation), float(nats / 2)


def test_drift_equals_the_drift_computed_from_the_rows_at_every_version() -> None:
    db = database()
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices")
    baselines: list[tuple[Baseline, Any]] = []
    for rows in stream(db, 2, 5):
        baselines.append((Baseline(model), rows))
        for baseline, before in baselines:
            drift = baseline.drift()
            mean, covariance, nats = recomputed(before, rows)
            np.testing.assert_allclose(drift.mean, mean, rtol=1e-8, atol=1e-12)
            np.testing.assert_allclose(drift.covariance, covariance, rtol=1e-8, atol=1e-12)
            np.testing.assert_allclose(drift.divergence, nats, rtol=1e-7, atol=1e-12)
            assert drift.versions == (baseline.version, db.version) and drift.counts == (len(before), len(rows))
    first = baselines[0][0].drift()
    assert first.variables == (*FEATURES, "price") and first.divergence > 0.5
    changes = dict(first.ranked())
    assert list(changes.values()) == sorted(changes.values(), reverse=True)
    assert changes["area"] == max(abs(first.mean[1]), np.abs(first.covariance[1]).max())


def test_a_model_that_returns_to_an_earlier_state_has_no_drift() -> None:
    """Sums are exact, so rows that were inserted and deleted leave no bit."""
    db = database()
    view = MomentsView(db, JOIN, FEATURES, "moments")
    list(stream(db, 3, 2))
    baseline = Baseline(view)
    extra = [(1, 9, 1e15, 0.1), (2, 3, -0.1, 3.0)]
    db.insert("houses", extra)
    assert baseline.drift().divergence > 1.0
    db.delete("houses", extra)
    drift = baseline.drift()
    assert not drift.mean.any() and not drift.covariance.any() and drift.divergence < 1e-14


def test_drift_of_a_constant_is_infinite() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, y DOUBLE)")
    model = PCA(db, "t", ["x", "y"], name="axes")
    with pytest.raises(LearnError, match="0 rows; drift needs 2"):
        Baseline(model)
    db.insert("t", [(1.0, 2.0), (1.0, 4.0)])
    baseline = Baseline(model)

    def now() -> Drift:
        drift = baseline.drift()
        assert np.isnan(drift.divergence)
        return drift

    assert now().mean.tolist() == [0.0, 0.0]
    db.insert("t", [(4.0, 3.0)])
    drift = now()
    assert drift.mean.tolist() == [np.inf, 0.0] and drift.covariance[0, 0] == np.inf
    assert drift.ranked()[0] == ("x", np.inf)
    db.delete("t", [(4.0, 3.0), (1.0, 2.0)])
    with pytest.raises(LearnError, match="1 rows; drift needs 2"):
        baseline.drift()


def test_the_drift_example_of_the_learn_page_prints_the_output_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, section = PAGE.read_text().split("## Products of features, and drift\n")
    found = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    exec(found[1], {})
    assert capsys.readouterr().out == found[2]
