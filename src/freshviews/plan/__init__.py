"""Plans blocks. A block is one SELECT. The planner chooses a strategy, which makes the program of the block."""

from freshviews.plan.registry import STRATEGIES

__all__ = ["STRATEGIES", "costs", "crown", "delta", "explain", "passes", "planner", "strategy", "trie"]
