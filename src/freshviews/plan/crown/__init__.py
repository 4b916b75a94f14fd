"""Change propagation without joins (CROWN): semi-joins along a join tree, and bags for cyclic queries."""

__all__ = ["crown", "free_connex_query", "tree_choice"]
