"""Mutual information and Chow-Liu trees over joins, compared with scikit-learn and scipy on the rows of the join."""

from __future__ import annotations

from itertools import combinations
from math import log
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.metrics import mutual_info_score

from freshviews import Database
from freshviews.learn import ChowLiuTree, LearnError, MutualInformation

pytestmark = pytest.mark.plain_python(only=True)

VARIABLES = ("kind", "size", "city", "zone")
JOIN = "houses JOIN places USING (place)"


def database() -> Database:
    db = Database()
    db.execute("CREATE TABLE houses (place BIGINT NOT NULL, kind STRING, size INT)")
    db.execute("CREATE TABLE places (place BIGINT NOT NULL, city STRING, zone INT)")
    return db


def fill(db: Database, seed: int, houses: int = 200, places: int = 12) -> None:
    """Rows whose size depends on the kind and whose kind depends on the zone, some with NULL."""
    random = np.random.default_rng(seed)
    zones = [int(random.integers(0, 3)) for _ in range(places)]
    db.insert("places", [(i, f"city {random.integers(0, 4)}", zone) for i, zone in enumerate(zones)])
    rows = []
    for _ in range(houses):
        place = int(random.integers(0, places))
        kind = ("flat", "house", "farm")[zones[place] if random.random() < 0.7 else int(random.integers(0, 3))]
        size = len(kind) + int(random.integers(0, 2))
        rows.append((place, kind if random.random() > 0.1 else None, size))
    db.insert("houses", rows)


def joined(db: Database) -> list[tuple[Any, ...]]:
    """The rows of the join without NULL."""
    houses, places = list(db.table("houses")), list(db.table("places"))
    rows = [(kind, size, *rest) for place, kind, size in houses for other, *rest in places if place == other]
    return [row for row in rows if None not in row]


def expected(rows: list[tuple[Any, ...]]) -> Any:
    columns = [np.array(column, str) for column in zip(*rows, strict=True)]
    return np.array([[mutual_info_score(one, other) for other in columns] for one in columns])


def versions(db: Database) -> Any:
    for seed in range(3):
        fill(db, seed)
        yield
        db.delete("houses", list(db.table("houses"))[::3])
        db.delete("places", list(db.table("places"))[:2])
        yield


def test_mutual_information_equals_scikit_learn_at_every_version() -> None:
    db = database()
    model = MutualInformation(db, JOIN, VARIABLES, name="dependence")
    for _ in versions(db):
        np.testing.assert_allclose(model.matrix_, expected(joined(db)), rtol=1e-8, atol=1e-12)
        ranked = model.ranked("kind")
        assert ranked[0][0] in ("size", "zone") and len(ranked) == 3
        assert ranked == sorted(ranked, key=lambda one: -one[1])


def test_a_chow_liu_tree_has_the_greatest_information() -> None:
    db = database()
    tree = ChowLiuTree(db, JOIN, VARIABLES, name="tree", root="zone")
    for _ in versions(db):
        rows = joined(db)
        weights = -expected(rows)
        np.fill_diagonal(weights, 0)
        greatest = -minimum_spanning_tree(weights).sum()
        edges = tree.edges_
        assert sum(edge.information for edge in edges) == pytest.approx(greatest, rel=1e-9)
        known = {"zone"}
        for edge in edges:
            assert edge.parent in known and edge.child not in known
            known.add(edge.child)
        frame = pd.DataFrame(rows, columns=VARIABLES)
        found = tree.log_probability(frame)
        for row, probability in list(zip(rows, found, strict=True))[::17]:
            assert probability == pytest.approx(by_hand(rows, row, edges), rel=1e-9)
        # Over all possible rows, the probabilities add up to 1.
        values = [sorted(set(column)) for column in zip(*rows, strict=True)]
        every = pd.MultiIndex.from_product(values, names=VARIABLES).to_frame(index=False)
        assert np.exp(tree.log_probability(every)).sum() == pytest.approx(1, rel=1e-9)


def by_hand(rows: list[tuple[Any, ...]], row: tuple[Any, ...], edges: Any) -> float:
    place = VARIABLES.index
    found = log(sum(other[place("zone")] == row[place("zone")] for other in rows) / len(rows))
    for edge in edges:
        parent, child = place(edge.parent), place(edge.child)
        given = [other for other in rows if other[parent] == row[parent]]
        found += log(sum(other[child] == row[child] for other in given) / len(given))
    return found


def test_pairs_of_values_that_never_occur_have_probability_zero() -> None:
    db = database()
    tree = ChowLiuTree(db, JOIN, VARIABLES, name="tree")
    fill(db, 1)
    frame = pa.table({"kind": ["tent", "flat"], "size": [4, 99], "city": ["city 0"] * 2, "zone": [0, 0]})
    assert list(tree.log_probability(frame)) == [-np.inf, -np.inf]


def test_subscribers_of_a_model_get_its_changes() -> None:
    db = database()
    model = MutualInformation(db, JOIN, VARIABLES, name="dependence")
    reported: list[Any] = []
    model.subscribe(lambda one: reported.append(one.matrix_.copy()))
    fill(db, 5)
    assert np.array_equal(reported[-1], model.matrix_)
    before = len(reported)
    db.insert("places", [(1000, "nowhere", 1)])
    assert len(reported) == before
    assert model.matrix_ is model.matrix_
    model.drop()
    assert "dependence" not in db.views


def test_errors_of_a_dependence_model_say_which_rows_and_variables_are_missing() -> None:
    db = database()
    model = ChowLiuTree(db, JOIN, VARIABLES, name="tree")
    with pytest.raises(LearnError, match="no row in which all variables have a value"):
        assert model.edges_
    with pytest.raises(LearnError, match="no variable price"):
        model.ranked("price")
    fill(db, 0)
    with pytest.raises(LearnError, match="no column zone; it has kind, size, city"):
        model.log_probability({"kind": ["flat"], "size": [4], "city": ["city 0"]})
    for variables, message in ((("kind",), "1 variables"), (("kind", "kind"), "twice")):
        with pytest.raises(LearnError, match=message):
            MutualInformation(db, JOIN, variables, name="other")
    with pytest.raises(LearnError, match="root price"):
        ChowLiuTree(db, JOIN, VARIABLES, name="other", root="price")
    assert list(db.views) == ["tree"]


@pytest.mark.parametrize("count", [2, 5])
def test_a_variable_may_be_an_expression(count: int) -> None:
    db = database()
    fill(db, 3)
    variables = ["kind", "size % 2", "upper(city)", "zone = 1", "size > 5"][:count]
    model = MutualInformation(db, f"{JOIN} WHERE size < 7", variables, name="dependence")
    rows = [
        (kind, size % 2, city.upper(), zone == 1, size > 5) for kind, size, city, zone in joined(db) if size < 7
    ]
    columns = [list(map(str, column)) for column in zip(*rows, strict=True)][:count]
    for (i, one), (j, other) in combinations(enumerate(columns), 2):
        assert model.matrix_[i, j] == pytest.approx(mutual_info_score(one, other), abs=1e-12)
