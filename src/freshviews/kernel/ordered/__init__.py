"""The ordered index of a hash table: MIN, MAX, folds over subtrees, and the first rows."""

__all__ = ["folds", "index", "top"]
