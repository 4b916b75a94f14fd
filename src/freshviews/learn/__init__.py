"""Defines models of the rows of a join, such as a regression, with the interface of scikit-learn.

A model is fresh at every version. It is computed from sums that a view maintains, so its cost does not depend on the
size of the join.

The examples of all models continue from here::

    >>> import freshviews as fv
    >>> from freshviews import learn
    >>> db = fv.Database()
    >>> db.execute("CREATE TABLE flats (city STRING, kind STRING, rooms INT, area DOUBLE, price DOUBLE)")
    >>> db.insert("flats", [
    ...     ("Oslo", "loft", 1, 30.0, 200.0), ("Oslo", "flat", 2, 50.0, 280.0), ("Oslo", "flat", 3, 80.0, 390.0),
    ...     ("Rome", "loft", 1, 40.0, 190.0), ("Rome", "flat", 3, 70.0, 320.0), ("Rome", "flat", 4, 90.0, 420.0)])
    1
"""

from freshviews.learn.counts import Counts, CountsView
from freshviews.learn.dependence import ChowLiuTree, Edge, MutualInformation
from freshviews.learn.discriminant import LinearDiscriminant
from freshviews.learn.drift import Baseline, Drift
from freshviews.learn.encoded import EncodedMoments, EncodedMomentsView
from freshviews.learn.kept_view import LearnError
from freshviews.learn.linear import LinearRegression, Ridge
from freshviews.learn.moments import GroupedMomentsView, Moments, MomentsView
from freshviews.learn.principal import PCA

__all__ = [
    "PCA", "Baseline", "ChowLiuTree", "Counts", "CountsView", "Drift", "Edge", "EncodedMoments", "EncodedMomentsView",
    "GroupedMomentsView", "LearnError", "LinearDiscriminant", "LinearRegression", "Moments", "MomentsView",
    "MutualInformation", "Ridge",
]  # fmt: skip
