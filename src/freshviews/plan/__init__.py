"""Planning: a strategy makes the program of a block, and the planner chooses the strategy.

``strategy`` says what a strategy is, ``registry`` has all of them in order of preference.
"""

from freshviews.plan.registry import STRATEGIES

__all__ = ["STRATEGIES", "costs", "crown", "delta", "explain", "passes", "planner", "strategy", "trie"]
