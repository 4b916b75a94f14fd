"""Models over a join, fresh at every version.

A model is read of one row of a view: the cofactor of its variables, which the database maintains as tables change
(``freshviews.ring.cofactor``). So it costs the same whether the join has a thousand rows or a billion, and the join is
never made. The interface follows scikit-learn's.
"""

from freshviews.learn.linear import LinearRegression, Ridge
from freshviews.learn.moments import LearnError, Moments, MomentsView
from freshviews.learn.principal import PCA

__all__ = ["PCA", "LearnError", "LinearRegression", "Moments", "MomentsView", "Ridge"]
