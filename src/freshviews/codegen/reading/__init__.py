"""Source of readers: the change of a result, its rows, one row of it, output expressions."""

__all__ = ["enumeration", "evaluation", "listing", "member", "projection", "readers", "settling"]
