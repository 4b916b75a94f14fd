"""Makes the program that maintains a block (one SELECT): chooses a strategy, which writes the program."""

from freshviews.plan.registry import STRATEGIES

__all__ = ["STRATEGIES", "costs", "crown", "delta", "explain", "passes", "planner", "strategy", "trie"]
