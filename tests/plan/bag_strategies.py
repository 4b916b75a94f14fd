"""The strategies that maintain bags of cyclic queries below ``crown``."""

from __future__ import annotations

from freshviews.plan import STRATEGIES
from freshviews.plan.strategy import BagPlanner

BAG_STRATEGIES = tuple(name for name, one in STRATEGIES.items() if one.bags is not None)


def bag_strategy(name: str) -> BagPlanner:
    """A strategy that maintains bags, without options."""
    bags = STRATEGIES[name].bags
    assert bags is not None
    return bags(None)
