"""Ordered trees in pages with versions: loading, editing, comparing and scanning them."""

__all__ = ["balancing", "difference", "folds", "load", "pages", "tree"]
