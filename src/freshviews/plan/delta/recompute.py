"""Recomputation: evaluates the view from the stored rows of its inputs after every batch.

This is the baseline for all other strategies; the planner never chooses it.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.plan.assemble import assembled
from freshviews.plan.delta import first_order
from freshviews.plan.strategy import EVERY_KIND, Strategy
from freshviews.program.program import Program
from freshviews.program.upkeep import Recomputed
from freshviews.query.query import Query


def plan(query: Query) -> Program:
    """The first-order program, to be run over all stored rows after every batch.

    This is the baseline for all other strategies; the planner never chooses it. All views are emptied. Then the
    triggers of the first-order program (``plan.delta.first_order``) run over the stored rows, relation by relation in
    the order of FROM. The plan of Q() = R(a, b) S(b, c)::

        after each batch, over all rows from empty views:
            on R(a, b) += m: ...
            on S(b, c) += m: ...
    """
    bounds = (("update", "as evaluating the query from scratch"), ("delay", "O(1)"), ("space", "O(N + |result|)"))
    return replace(first_order.plan(query), strategy="recompute", bounds=bounds, upkeep=Recomputed())


STRATEGY = Strategy("recompute", assembled(plan), plan, kinds=EVERY_KIND)
