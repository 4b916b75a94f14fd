"""Keeps rows of words in the order of their keys, in paged B+-trees. Versions of a tree share unchanged pages.

A page stores its rows column by column::

    birth | level | count | room | next dead | column 0 | column 1 | ...

- ``pages``: pages and versions; ``tree``: creation, lookup, edits; ``load``: bulk load; ``balancing``: split, merge.
- ``folds``: aggregates in inner pages; ``difference``: the rows in which two versions differ.
"""

__all__ = ["balancing", "difference", "folds", "load", "pages", "tree"]
