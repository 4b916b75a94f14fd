"""Planning: a strategy makes the program of a block, and the planner chooses the strategy.

``strategy`` defines the interface; ``registry`` lists the strategies in order of preference.
"""

from freshviews.plan.registry import STRATEGIES

__all__ = ["STRATEGIES", "costs", "crown", "delta", "explain", "passes", "planner", "strategy", "trie"]
