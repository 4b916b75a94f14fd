"""Plans blocks: each strategy makes a program, and the planner chooses the strategy."""

from freshviews.plan.registry import STRATEGIES

__all__ = ["STRATEGIES", "costs", "crown", "delta", "explain", "passes", "planner", "strategy", "trie"]
