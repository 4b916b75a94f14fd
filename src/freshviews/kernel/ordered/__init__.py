r"""Ordered indexes of a hash table, for MIN and MAX, first rows, running sums, and ranges.

The key of a row begins with a *prefix*, which identifies its group. The other words of the key order the rows of the
group. The nodes of the search tree are the rows themselves: a row stores its two children, and the folds and sums of
its subtree. The tree is a treap: priorities are hashes of row numbers, so it has O(log N) levels, expected. If the
table has a hash index on the prefix, groups of up to 64 rows stay outside the tree and are scanned::

    sales(part, price) -> count, sum        by [part]  ordered by price  summed by sum

    part 7, 80 rows, in the tree            part 9, 3 rows, outside

              price 20: sum 3, subtree 300             slice of part 9
               /             \                         /       |      \
    price 12: sum 5,     price 31: sum 2,       price 40   price 15   price 22
      subtree 140          subtree 157           sum 6      sum 1      sum 8

- ``index``: the tree and the order of keys; ``groups``: the groups outside the tree.
- ``index_updates``: insert, remove, update.
- ``folds``: aggregates of the last key word, for any shorter prefix; ``sums``: sums of payloads over subtrees.
- ``ranges``: the ends of a group, the sum of a range, its rows; ``places``: the places of rows in their groups.
- ``percentiles``: the values at a fraction of the copies of a group.
- ``top``: how one changed row moves others, for ``ORDER BY ... LIMIT`` and window functions.
- ``threshold_tree``: the rows whose running sum is within a limit, in a tree per group.
"""

__all__ = [
    *("folds", "groups", "index", "index_updates", "percentiles", "places", "ranges", "sums", "threshold_tree", "top"),
]
