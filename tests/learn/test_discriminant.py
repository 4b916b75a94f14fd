"""Linear discriminant analysis over a join, compared with scikit-learn on the rows of the join."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from freshviews import Database
from freshviews.learn import LearnError, LinearDiscriminant
from tests.learn.test_models import FEATURES, JOIN, database, fill

pytestmark = pytest.mark.plain_python(only=True)

CLASS = "CASE WHEN price > 300000 THEN 'high' WHEN price > 200000 THEN 'middle' ELSE 'low' END"


def joined(db: Database) -> tuple[Any, Any]:
    """Features and classes of the rows of the join without NULL."""
    places = {row[0]: row[1:] for row in db.table("places")}
    rows = [(r[1], r[2], *places[r[0]], r[3]) for r in db.table("houses")]
    table = np.array([row for row in rows if None not in row], float)
    price = table[:, -1]
    return table[:, :-1], np.where(price > 300_000, "high", np.where(price > 200_000, "middle", "low"))


def test_discriminant_analysis_equals_scikit_learn_at_every_version() -> None:
    db = database()
    model = LinearDiscriminant(db, JOIN, FEATURES, CLASS, name="classes")
    for seed in range(3):
        if seed == 1:
            db.delete("houses", list(db.table("houses"))[::2])
        if seed != 1:
            for table in ("houses", "places"):
                db.delete(table, list(db.table(table)))
            fill(db, seed)
        x, y = joined(db)
        theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x, y)
        assert model.classes_ == list(theirs.classes_)
        np.testing.assert_allclose(model.priors_, theirs.priors_, rtol=1e-12)
        np.testing.assert_allclose(model.means_, theirs.means_, rtol=1e-9)
        np.testing.assert_allclose(model.covariance_, theirs.covariance_, rtol=1e-8)
        np.testing.assert_allclose(model.predict_proba(x), theirs.predict_proba(x), rtol=1e-6, atol=1e-9)
        assert model.predict(x) == list(theirs.predict(x))


def test_subscribers_of_a_classifier_get_its_changes() -> None:
    db = database()
    model = LinearDiscriminant(db, JOIN, FEATURES, CLASS, name="classes")
    with pytest.raises(LearnError, match="0 rows in 0 classes; it needs 2 classes"):
        assert model.coef_ is None
    reported: list[float] = []
    model.subscribe(lambda one: reported.append(len(one.classes_)))
    fill(db, 0)
    assert reported == [3] and model.coef_ is model.coef_
    with pytest.raises(LearnError, match="twice"):
        LinearDiscriminant(db, JOIN, FEATURES, "rooms", name="other")
    model.drop()
    assert "classes" not in db.views
