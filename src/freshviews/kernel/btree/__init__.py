"""Ordered trees: paged B+-trees of rows of words, with versions that share pages.

A page stores its rows column by column::

    birth | level | count | room | next dead | column 0 | column 1 | ...

A leaf has the columns of key and payload; an inner page has an entry per child: the child's least key, its address, the
number of rows below it, and a word per fold.

- ``pages``: pages and versions; ``tree``: creation, lookup, edits; ``load``: bulk load; ``balancing``: split, merge.
- ``folds``: aggregates in inner pages; ``difference``: the rows in which two versions differ.
"""

__all__ = ["balancing", "difference", "folds", "load", "pages", "tree"]
