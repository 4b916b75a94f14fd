"""Strategies: each a pure function from a Query to a Program, in a registry by name."""

from collections.abc import Callable

from freshviews.plan import first_order
from freshviews.program.nodes import Program
from freshviews.query.query import Query

STRATEGIES: dict[str, Callable[[Query], Program]] = {
    "first_order": first_order.plan,
}
