"""Recomputation: after every batch the view is made anew from the stored rows of its inputs.

The baseline that all maintenance is measured against; it runs only where a user names it. The query is
evaluated by feeding all stored rows, in order of FROM, to the triggers of the first-order program of the empty
database: each row of the last relation is joined with the others through their indexes.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.plan.assemble import assembled
from freshviews.plan.delta import first_order
from freshviews.plan.strategy import Strategy
from freshviews.program.program import Program
from freshviews.program.upkeep import Recomputed
from freshviews.query.query import Query


def plan(query: Query) -> Program:
    """The first-order program, to be run over all stored rows after every batch."""
    bounds = (("update", "as evaluating the query from scratch"), ("delay", "O(1)"), ("space", "O(N + |result|)"))
    return replace(first_order.plan(query), strategy="recompute", bounds=bounds, upkeep=Recomputed())


STRATEGY = Strategy("recompute", assembled(plan), plan)
