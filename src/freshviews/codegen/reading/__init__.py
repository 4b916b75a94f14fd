"""Source of readers: the change of a result, its rows, one group, output expressions."""

__all__ = ["enumeration", "evaluation", "listing", "projection", "readers"]
