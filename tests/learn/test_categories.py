"""Regressions with categories, compared with scikit-learn's OneHotEncoder on the rows of the join at each version."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, preprocessing

from freshviews import CatalogError, Database
from freshviews.errors import SqlError
from freshviews.learn import Baseline, EncodedMomentsView, LearnError, LinearRegression, Ridge
from tests.tiers import seeds

pytestmark = pytest.mark.plain_python(only=True)

JOIN = "sales JOIN stores USING (store) JOIN items USING (item)"
FEATURES = ("units", "area", "weight")
CATEGORIES = ("city", "kind", "promo")
COLUMNS = ("units", "area", "weight", "city", "kind", "promo", "day", "price")

Rows = Sequence[Sequence[Any]]


def database(number: str = "DOUBLE") -> Database:
    db = Database()
    db.execute(
        f"""CREATE TABLE sales (store BIGINT, item BIGINT, day DATE, promo BOOLEAN, units INT, price {number});
        CREATE TABLE stores (store BIGINT NOT NULL, city STRING, area {number});
        CREATE TABLE items (item BIGINT NOT NULL, kind INT, weight {number});"""
    )
    return db


def stream(db: Database, seed: int, versions: int, number: Any = float) -> Iterator[None]:
    """Batches of inserts and deletes in each table. Some cities, promos and units are NULL."""
    random = np.random.default_rng(seed)

    def amount(mean: float, deviation: float) -> Any:
        return number(str(round(float(random.normal(mean, deviation)), 2)))

    def maybe(value: Any) -> Any:
        return value if random.random() > 0.07 else None

    def a_store(store: int) -> tuple[Any, ...]:
        return store, maybe(("Bergen", "Oslo", "Ålesund")[int(random.integers(0, 3))]), amount(900, 50)

    def an_item(item: int) -> tuple[Any, ...]:
        return item, int(random.integers(-1, 3)), amount(3, 1)

    def a_sale() -> tuple[Any, ...]:
        store, item, units = (int(random.integers(0, most)) for most in (8, 6, 9))
        promo, day = bool(random.random() < 0.3), datetime.date(2026, 11, int(random.integers(1, 4)))
        return store, item, day, maybe(promo), maybe(units), amount(50 + 3 * store + item % 4 + units - 5 * promo, 2)

    db.insert("stores", [a_store(store) for store in range(8)])
    db.insert("items", [an_item(item) for item in range(6)])
    for version in range(versions):
        if version:
            sales = list(db.table("sales"))
            db.delete("sales", [sales[i] for i in random.choice(len(sales), len(sales) // 3, replace=False)])
            # A store and an item change, and with them the city and the kind of their sales.
            for table, row in (("stores", a_store(int(random.integers(0, 8)))), ("items", an_item(version % 6))):
                db.delete(table, [old for old in db.table(table) if old[0] == row[0]])
                db.insert(table, [row])
        db.insert("sales", [a_sale() for _ in range(60)])
        yield


def joined(db: Database, used: Sequence[str] = (*FEATURES, *CATEGORIES)) -> Rows:
    """The rows of the join without NULL in the price and in the columns that are used."""
    stores, items = ({row[0]: row[1:] for row in db.table(name)} for name in ("stores", "items"))
    rows = [
        (units, stores[store][1], items[item][1], stores[store][0], items[item][0], promo, day, price)
        for store, item, day, promo, units, price in db.table("sales")
    ]
    places = [COLUMNS.index(name) for name in (*used, "price")]
    return [row for row in rows if all(row[place] is not None for place in places)]


def column(rows: Rows, name: str) -> Any:
    return np.array([row[COLUMNS.index(name)] for row in rows], object)


def encoded(rows: Rows, features: Sequence[str], categories: Sequence[str], dropping: Sequence[str]) -> Any:
    """The rows in scikit-learn's encoding, and the names of the columns. ``dropping``: categories whose first value is
    left out."""
    made, names = [column(rows, name).astype(float) for name in features], list(features)
    for name in categories:
        encoder = preprocessing.OneHotEncoder(drop="first" if name in dropping else None, sparse_output=False)
        made += list(encoder.fit_transform(column(rows, name)[:, None]).T)
        names += (f"{name}={value}" for value in encoder.categories_[0][int(name in dropping) :])
    return np.column_stack(made), names


def assert_equal(model: LinearRegression, theirs: Any, rows: Rows, dropping: Sequence[str]) -> None:
    """Asserts that a model equals scikit-learn's, fitted to the rows."""
    x, names = encoded(rows, model.features, model.categories, dropping)
    y = column(rows, "price").astype(float)
    theirs.fit(x, y)
    assert model.terms == tuple(names) and model.variables == (*names, "price")
    unit = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8, atol=1e-8 * unit)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8 * unit)
    np.testing.assert_allclose(model.predict(frame_of(rows)), theirs.predict(x), rtol=1e-8)
    if model.fit_intercept:
        np.testing.assert_allclose(model.r2, theirs.score(x, y), rtol=1e-8)
    table, moments = np.column_stack([x, y]), model.moments
    assert moments.count == len(x)
    np.testing.assert_allclose(moments.mean, table.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.products, table.T @ table, rtol=1e-12)
    scatter = np.cov(table.T, ddof=0) * len(x)
    np.testing.assert_allclose(moments.scatter, scatter, rtol=1e-8, atol=1e-10 * scatter.max())


def frame_of(rows: Rows) -> dict[str, Any]:
    return {name: column(rows, name) for name in COLUMNS}


@pytest.mark.parametrize("number", ["DOUBLE", "DECIMAL(9, 2)"])
@pytest.mark.parametrize("seed", seeds(5))
def test_models_with_categories_equal_scikit_learn_at_every_version(seed: int, number: str) -> None:
    db = database(number)
    taken = {"categories": CATEGORIES}
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices", **taken)
    levels = LinearRegression(db, JOIN, FEATURES, "price", name="levels", fit_intercept=False, **taken)
    ridge = Ridge(db, JOIN, FEATURES, "price", name="ridge", alpha=2.5, **taken)
    through = Ridge(db, JOIN, FEATURES, "price", name="through", alpha=0.1, fit_intercept=False, **taken)
    for _ in stream(db, seed, 4, float if number == "DOUBLE" else Decimal):
        rows = joined(db)
        assert_equal(model, linear_model.LinearRegression(), rows, CATEGORIES)
        assert_equal(levels, linear_model.LinearRegression(fit_intercept=False), rows, CATEGORIES[1:])
        assert_equal(ridge, linear_model.Ridge(alpha=2.5, solver="svd"), rows, [])
        assert_equal(through, linear_model.Ridge(alpha=0.1, fit_intercept=False, solver="svd"), rows, [])
        cities = sorted(set(column(rows, "city")))
        assert model.categories_ == ridge.categories_ and model.categories_["city"] == cities


@pytest.mark.parametrize("categories", [["day"], ["promo", "day"]])
def test_a_model_may_have_categories_and_no_features(categories: list[str]) -> None:
    db = database()
    model = LinearRegression(db, JOIN, [], "price", name="prices", categories=categories)
    levels = LinearRegression(db, JOIN, [], "price", name="levels", categories=categories, fit_intercept=False)
    for _ in stream(db, 3, 2):
        rows = joined(db, categories)
        assert_equal(model, linear_model.LinearRegression(), rows, categories)
        assert_equal(levels, linear_model.LinearRegression(fit_intercept=False), rows, categories[1:])
        days = column(rows, "day")
        assert model.categories_["day"] == sorted(set(days))
        if categories == ["day"]:
            price = column(rows, "price").astype(float)
            means = [price[days == day].mean() for day in sorted(set(days))]
            np.testing.assert_allclose(levels.coef_, means, rtol=1e-12)
            np.testing.assert_allclose(model.intercept_, means[0], rtol=1e-12)


def test_values_of_a_category_appear_and_vanish_with_their_rows() -> None:
    db = Database()
    db.execute("CREATE TABLE flats (area INT, city STRING, price INT)")
    model = LinearRegression(db, "flats", ["area"], "price", name="prices", categories=["city"])
    seen: list[tuple[str, ...]] = []
    model.subscribe(lambda one: seen.append(one.terms))
    assert model.terms == ("area",) and model.categories_ == {"city": []}
    with pytest.raises(LearnError, match="0 rows; it needs 2"):
        _ = model.coef_
    oslo = [(area, "Oslo", 2 * area + 10) for area in (1, 2, 4)]
    db.insert("flats", oslo)
    # A value without others is the reference.
    np.testing.assert_allclose([*model.coef_, model.intercept_], [2, 10], rtol=1e-12)
    db.insert("flats", [(3, "Bergen", 2 * 3 + 25)])
    assert model.categories_ == {"city": ["Bergen", "Oslo"]} and model.terms == ("area", "city=Oslo")
    np.testing.assert_allclose([*model.coef_, model.intercept_], [2, -15, 25], rtol=1e-12)
    db.insert("flats", [(7, None, 0), (None, "Moss", 0), (7, "Moss", None)])
    assert model.moments.count == 4 and model.terms == ("area", "city=Oslo")
    db.delete("flats", oslo)
    assert model.terms == ("area",) and model.categories_ == {"city": ["Bergen"]}
    assert seen == [("area",), ("area", "city=Oslo"), ("area",)]
    db.delete("flats", list(db.table("flats")))
    assert model.moments.count == 0 and model.categories_ == {"city": []}
    model.drop()
    assert "prices" not in db.views


def test_subscribers_are_notified_once_per_version() -> None:
    db = Database()
    db.execute("CREATE TABLE flats (area INT, city STRING, kind STRING, price INT)")
    model = LinearRegression(db, "flats", ["area"], "price", name="prices", categories=["city", "kind"])
    seen: list[int] = []
    subscription = model.subscribe(lambda one: seen.append(one.moments.count))
    flats = [(1, "Oslo", "a", 5), (1, "Bergen", "b", 5), (2, "Oslo", "a", 6), (2, "Bergen", "b", 8)]
    db.insert("flats", flats)
    db.insert("flats", [(1, "Oslo", None, 5)])
    assert seen == [4]
    # Each city and each kind has the same sums, but other pairs meet.
    before = model.moments
    with db.batch() as batch:
        batch.delete("flats", flats[:2])
        batch.insert("flats", [(1, "Oslo", "b", 5), (1, "Bergen", "a", 5)])
    assert seen == [4, 4] and (model.moments.products != before.products).any()
    subscription.unsubscribe()
    db.delete("flats", flats[2:])
    assert seen == [4, 4]
    model.drop()
    assert not list(db.views)


def test_a_refused_model_leaves_no_view() -> None:
    db = database()
    db.execute("CREATE MATERIALIZED VIEW prices_pairs AS SELECT COUNT(*) AS n FROM sales")
    with pytest.raises(CatalogError, match="prices_pairs"):
        LinearRegression(db, JOIN, ["units"], "price", name="prices", categories=["city", "kind"])
    assert list(db.views) == ["prices_pairs"]
    model = LinearRegression(db, JOIN, ["units"], "price", name="prices", categories=["city"])
    assert model.categories_ == {"city": []}


def test_models_with_categories_have_standard_errors() -> None:
    db = database()
    model = LinearRegression(db, JOIN, FEATURES, "price", name="prices", categories=CATEGORIES)
    for _ in stream(db, 7, 2):
        rows = joined(db)
        x, _ = encoded(rows, FEATURES, CATEGORIES, CATEGORIES)
        y = column(rows, "price").astype(float)
        mean = x.mean(axis=0)
        whole = np.column_stack([np.ones(len(x)), x - mean])
        coef, *_ = np.linalg.lstsq(whole, y, rcond=None)
        inverse = np.linalg.inv(whole.T @ whole) * ((y - whole @ coef) ** 2).sum() / (len(x) - whole.shape[1])
        np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diag(inverse)[1:]), rtol=1e-7)
        at_zero = np.concatenate([[1.0], -mean])
        np.testing.assert_allclose(model.intercept_error_, np.sqrt(at_zero @ inverse @ at_zero), rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_forward_selection_adds_a_category_in_one_step(fit_intercept: bool) -> None:
    db = database()
    model = LinearRegression(
        db, JOIN, FEATURES, "price", name="prices", categories=CATEGORIES, fit_intercept=fit_intercept
    )
    for _ in stream(db, 2, 2):
        rows = joined(db)
        y = column(rows, "price").astype(float)
        whole = ((y - y.mean() * fit_intercept) ** 2).sum()
        chosen: list[str] = []

        def explained(names: Sequence[str], rows: Rows = rows, y: Any = y, whole: Any = whole) -> float:
            taken = [[name for name in names if name in known] for known in (FEATURES, CATEGORIES)]
            x, _ = encoded(rows, *taken, [])
            theirs = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(x, y)
            return float(1 - ((y - theirs.predict(x)) ** 2).sum() / whole)

        steps = model.forward_steps()
        for name, score in steps:
            left = [one for one in (*FEATURES, *CATEGORIES) if one not in chosen]
            assert name == max(left, key=lambda one: explained([*chosen, one]))
            chosen.append(name)
            np.testing.assert_allclose(score, explained(chosen), rtol=1e-8)
        assert steps[-1][1] == pytest.approx(model.r2, rel=1e-9) and model.forward_steps(2) == steps[:2]


TYPES: dict[str, list[Any]] = {
    "STRING": ["", "a=b", "Å"],
    "INT": [-7, 0, 3],
    "BIGINT": [-(2**62), 5, 2**62 + 1],
    "BOOLEAN": [False, True],
    "DATE": [datetime.date(1969, 5, 1), datetime.date(2026, 1, 31)],
    "TIMESTAMP": [datetime.datetime(1999, 1, 1, 5), datetime.datetime(2026, 1, 31, 12, 30, 0, 5)],
    "DECIMAL(9, 2)": [Decimal("-1.50"), Decimal("0.25")],
    "DOUBLE": [-1.5, 0.25, float("inf"), float("nan")],
}


@pytest.mark.parametrize("kind", TYPES)
def test_a_category_may_have_any_type(kind: str) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    values = TYPES[kind]
    db = Database()
    db.execute(f"CREATE TABLE t (c {kind}, other INT, x DOUBLE, y DOUBLE)")
    model = LinearRegression(db, "t", ["x"], "y", name="line", categories=["c", "other"])
    # In descending order: the order of arrival does not matter.
    rows = [(value, i % 2, float(i), i + 10.0 * place) for i in range(9) for place, value in enumerate(values)]
    db.insert("t", [*reversed(rows), (None, 1, 2.0, 500.0)])
    assert repr(model.categories_["c"]) == repr(values)
    assert model.terms[:-1] == ("x", *(f"c={value}" for value in values[1:]))
    np.testing.assert_allclose(model.coef_, [1.0, *(10.0 * i for i in range(1, len(values))), 0.0], atol=1e-9)
    columns = {"c": values, "other": [1] * len(values), "x": [2.0] * len(values)}
    expected = 2.0 + 10.0 * np.arange(len(values))
    frames = [columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    frames += [{name: np.array(column) for name, column in columns.items()}]
    if kind == "STRING":
        frames += [pd.DataFrame(columns).astype({"c": "category"})]
    for frame in frames:
        np.testing.assert_allclose(model.predict(frame), expected, atol=1e-9)


def test_a_category_may_be_an_expression() -> None:
    db = database()
    condition = "units < 7"
    model = LinearRegression(
        db, f"{JOIN} WHERE {condition}", ["units"], "price", name="prices",
        categories=["concat(city, ' ', kind)", "day > DATE '2026-11-02'", "units % 2"],
    )  # fmt: skip
    for _ in stream(db, 11, 2):
        rows = [row for row in joined(db, ("units", "city", "kind", "day")) if row[0] < 7]
        place = COLUMNS.index
        values = [
            [f"{row[place('city')]} {row[place('kind')]}" for row in rows],
            [row[place("day")] > datetime.date(2026, 11, 2) for row in rows],
            [row[0] % 2 for row in rows],
        ]
        encoder = preprocessing.OneHotEncoder(drop="first", sparse_output=False)
        x = encoder.fit_transform(np.array(values, object).T)
        x = np.column_stack([column(rows, "units").astype(float), x])
        theirs = linear_model.LinearRegression().fit(x, column(rows, "price").astype(float))
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8, atol=1e-8)
        known = zip(model.categories, encoder.categories_, strict=True)
        names = [f"{name}={value}" for name, of in known for value in of[1:]]
        assert model.terms == ("units", *names)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dependent_categories_get_the_solution_of_least_norm(fit_intercept: bool) -> None:
    """Includes a value with two rows and a feature of millions, which scikit-learn takes for dependent."""
    db = Database()
    db.execute("CREATE TABLE t (city STRING, land STRING, income DOUBLE, price DOUBLE)")
    cities = [("Oslo", "NO"), ("Bergen", "NO"), ("Bonn", "DE"), ("Ulm", "DE")]
    model = LinearRegression(
        db, "t", ["income"], "price", name="prices", categories=["city", "land"], fit_intercept=fit_intercept
    )
    random = np.random.default_rng(0)
    taken = [*random.integers(0, 3, 500).tolist(), 3, 3]
    rows = [(*cities[i], float(random.normal(3e6, 1e6)), 10.0 * i + float(random.normal())) for i in taken]
    db.insert("t", rows)
    parts, y = [np.array([[row[2]] for row in rows])], np.array([row[3] for row in rows])
    for place in (0, 1):
        encoder = preprocessing.OneHotEncoder(drop="first" if fit_intercept or place else None, sparse_output=False)
        parts.append(encoder.fit_transform(np.array([[row[place]] for row in rows])))
    x = np.hstack(parts)
    if fit_intercept:
        x, y = x - x.mean(axis=0), y - y.mean()
    expected, _, rank, _ = np.linalg.lstsq(x, y)
    assert rank == len(expected) - 1
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-7, atol=1e-12)
    with pytest.raises(LearnError, match="linearly independent features"):
        _ = model.standard_errors_


def test_integers_with_a_large_mean_lose_no_digit() -> None:
    """Includes a mean whose rounding to a double loses a fifth of the digits."""
    db = Database()
    db.execute("CREATE TABLE t (c INT, x BIGINT, y BIGINT)")
    model = LinearRegression(db, "t", ["x"], "y", name="line", categories=["c"])
    rows = [(i % 3, 2**27 - 50 + i, 3 * i + 100 * (i % 3)) for i in range(100)]
    db.insert("t", rows)
    np.testing.assert_allclose(model.coef_, [3.0, 100.0, 200.0], rtol=1e-12)


def test_doubles_with_a_large_mean_keep_the_digits_of_their_sums() -> None:
    db = Database()
    db.execute("CREATE TABLE t (c INT, d INT, x DOUBLE, y DOUBLE)")
    model = LinearRegression(db, "t", ["x"], "y", name="line", categories=["c", "d"])
    near = LinearRegression(db, "t", ["x - 1e6"], "y", name="near", categories=["c", "d"])
    random = np.random.default_rng(0)
    x = 1e6 + random.normal(size=500)
    c, d = random.integers(0, 3, 500), random.integers(0, 5, 500)
    y = 3.0 * (x - 1e6) + 7.0 * c - d + random.normal(size=500)
    db.insert("t", [tuple(row) for row in zip(c.tolist(), d.tolist(), x.tolist(), y.tolist(), strict=True)])
    design = np.column_stack([x, *(c == 1, c == 2), *(d == value for value in range(1, 5))]).astype(float)
    theirs = linear_model.LinearRegression().fit(design, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(near.coef_, theirs.coef_, rtol=1e-12)


def test_predict_refuses_unknown_values_of_a_category() -> None:
    import pandas as pd

    db = Database()
    db.execute("CREATE TABLE t (city STRING, size INT, x DOUBLE, y DOUBLE)")
    model = LinearRegression(db, "t", ["x"], "y", name="line", categories=["city", "size"])
    cities, sizes = ("Bergen", "Oslo"), (3, 4)
    db.insert("t", [(c, s, float(x), x + 10.0 * (c == "Oslo") + s) for c in cities for s in sizes for x in range(4)])
    frame = {"x": [1.0, 1.0], "city": ["Oslo", "Bonn"], "size": [3, 4]}
    with pytest.raises(LearnError, match="model line: no row has the value 'Bonn' in column city"):
        model.predict(frame)
    # Bonn is predicted as Bergen, the reference.
    np.testing.assert_allclose(model.predict(frame, unknown="zero"), [14.0, 5.0])
    with pytest.raises(LearnError, match="unknown='drop'; 'error' and 'zero' are accepted"):
        model.predict(frame, unknown="drop")
    with pytest.raises(LearnError, match="no row has the value None in column city"):
        model.predict({**frame, "city": ["Oslo", None]})
    with pytest.raises(LearnError, match="no row has the value nan in column city"):
        model.predict(pd.DataFrame({**frame, "city": ["Oslo", float("nan")]}))
    with pytest.raises(LearnError, match="column size has a value that is not of type int32"):
        model.predict({**frame, "city": ["Oslo", "Oslo"], "size": ["three", "four"]})
    with pytest.raises(LearnError, match="no column city; it has x, size"):
        model.predict({"x": [1.0], "size": [3]})
    with pytest.raises(LearnError, match="no column x; it has city, size"):
        model.predict({"city": ["Oslo"], "size": [3]})
    with pytest.raises(LearnError, match="array has no column names"):
        model.predict(np.zeros((2, 3)))


def test_errors_of_models_with_categories_name_the_wrong_input() -> None:
    db = database()
    for kind in (LinearRegression, Ridge):
        with pytest.raises(LearnError, match="degree=2 cannot be combined with categories"):
            kind(db, JOIN, ["units"], "price", name="prices", categories=["city"], degree=2)
        with pytest.raises(LearnError, match="a variable is given twice in"):
            kind(db, JOIN, ["units"], "price", name="prices", categories=["units"])
        with pytest.raises(LearnError, match="no feature"):
            kind(db, JOIN, [], "price", name="prices", categories=[])
    many = [f"units % {i}" for i in range(2, 14)]
    with pytest.raises(LearnError, match="12 categories; 1 to 11 are accepted"):
        LinearRegression(db, JOIN, ["area"], "price", name="prices", categories=many)
    with pytest.raises(LearnError, match="0 categories"):
        EncodedMomentsView(db, JOIN, ["units"], [], "price", "prices")
    assert not list(db.views)
    model = LinearRegression(db, JOIN, ["area"], "price", name="prices", categories=many[:11])
    for _ in stream(db, 4, 1):
        assert len(model.categories_["units % 9"]) == 9
    with pytest.raises(LearnError, match="has categories, but drift compares only numbers"):
        Baseline(model)


def test_zeros_of_both_signs_are_one_value_of_a_category() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, c DOUBLE, y DOUBLE)")
    model = Ridge(db, "t", ["x"], "y", name="m", categories=["c"])
    db.insert("t", [(1.0, -0.0, 2.0), (2.0, 0.0, 3.0), (3.0, 1.0, 5.0)])
    assert model.categories_ == {"c": [0.0, 1.0]}
    frame = {"x": [1.0, 1.0], "c": [-0.0, 0.0]}
    assert len({*model.predict(frame).tolist()}) == 1


@pytest.mark.parametrize("alpha", [1e-300, 1e-20, 1e-12])
def test_a_tiny_penalty_gives_the_least_squares_solution(alpha: float) -> None:
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, c STRING, y DOUBLE)")
    ridge = Ridge(db, "t", ["x"], "y", name="ridge", categories=["c"], alpha=alpha)
    squares = LinearRegression(db, "t", ["x"], "y", name="squares", categories=["c"])
    chance = np.random.default_rng(1)
    db.insert("t", [(float(chance.normal()), "abc"[i % 3], float(i % 7)) for i in range(300)])
    frame = {"x": [0.5, -2.0], "c": ["a", "c"]}
    assert ridge.predict(frame) == pytest.approx(squares.predict(frame), rel=1e-8)


def test_models_with_wrong_variables_or_penalties_are_refused() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, c STRING, y DOUBLE)")
    with pytest.raises(SqlError, match="takes numbers, not STRING; write CATEGORY"):
        LinearRegression(db, "t", ["x", "c"], "y", name="m")
    with pytest.raises(LearnError, match="alpha must be 0 or more, and finite, not inf"):
        Ridge(db, "t", ["x"], "y", name="m", alpha=float("inf"))
    with pytest.raises(LearnError, match="a variable is given twice in"):
        LinearRegression(db, "t", ["x"], "y", name="m", categories=["c", "C"])


def test_reading_a_model_does_not_wait_for_versions_of_other_tables() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x DOUBLE, c STRING, d STRING, y DOUBLE); CREATE TABLE other (a BIGINT)")
    model = LinearRegression(db, "t", ["x"], "y", name="m", categories=["c", "d"])
    db.insert("t", [(float(i % 13), f"c{i % 30}", f"d{i % 20}", float(i % 7)) for i in range(2_000)])
    ended = threading.Event()

    def commit() -> None:
        while not ended.is_set():
            db.insert("other", [(1,)])

    writer = threading.Thread(target=commit)
    before = db.version
    writer.start()
    try:
        while db.version == before:
            time.sleep(0.001)
        for _ in range(3):
            assert len(model.coef_) == 1 + 29 + 19
    finally:
        ended.set()
        writer.join()
