r"""Keeps the rows of a hash table in order, for MIN and MAX, first rows, running sums, and ranges.

An ordered index is a search tree whose nodes are the rows. The rows of small groups are outside the tree, and are
scanned::

    sales(part, price) -> count, sum        by [part]  ordered by price  summed by sum

    part 7, 80 rows, in the tree            part 9, 3 rows, outside

              price 20: sum 3, subtree 300             slice of part 9
               /             \                         /       |      \
    price 12: sum 5,     price 31: sum 2,       price 40   price 15   price 22
      subtree 140          subtree 157           sum 6      sum 1      sum 8

- ``index``: the tree and the order of keys; ``groups``: the groups outside the tree.
- ``index_updates``: inserts, removes and updates a row.
- ``folds``: aggregates of the last key word over rows that share a prefix; ``sums``: sums of payloads over subtrees.
- ``ranges``: the first and last row of a group, and the sum and the rows of a range.
- ``places``: the positions of rows in the order of their group; ``percentiles``: the values at a fraction of a group.
- ``top``: how one changed row moves other rows, for ``ORDER BY ... LIMIT`` and window functions.
- ``threshold_tree``: the rows whose running sum is within a limit, in a tree per group.
"""

__all__ = [
    "folds",
    "groups",
    "index",
    "index_updates",
    "percentiles",
    "places",
    "ranges",
    "sums",
    "threshold_tree",
    "top",
]
