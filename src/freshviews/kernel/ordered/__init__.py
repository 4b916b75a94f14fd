"""The ordered index of a hash table: a treap whose nodes are the rows themselves.

A row stores its two children as row numbers + 1 in the halves of one word, then a word per fold of its subtree, then
the sums of its subtree.

- ``index``: insert, remove, MIN and MAX; ``folds``: other aggregates of the key; ``sums``: sums of payloads over
  ranges; ``top``: the rows of ``ORDER BY ... LIMIT``; ``threshold``: the rows whose running sum is within a limit, over
  trees of their own.
"""

__all__ = ["folds", "index", "sums", "threshold", "top"]
