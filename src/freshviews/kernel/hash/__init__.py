"""Hash tables of rows of words, their secondary indexes, and stored base tables.

A table has a header, an array of rows, and slots that lead from a hash to a row number::

    row    key ... | payload ... | a word per index | ordered index, folds, sums | stamp
    slot   hash << 32 | number + 1

An index leads from part of the key to a group, and a group to the numbers of its rows::

    group  key part ... | row count | block capacity | distance of the block
    block  row numbers, half words | digests, half words

- ``table``, ``index``, ``entries``, ``slots``: the structures; ``pending``: deferred inserts.
- ``shrink``: releases memory in steps; ``renew``: empties or packs a whole table; ``merging``: adds up tables.
- ``base_store``, ``base_reads``: stored base tables; ``packing``: columns that share words.
- ``heavy_light``: the thresholds of heavy and light parts.
- ``row_order``: sorts rows; ``ahead``: prefetches; ``memo``, ``sum_table``: caches of sums for a join.
"""

__all__ = [
    "ahead",
    "base_reads",
    "base_store",
    "entries",
    "heavy_light",
    "index",
    "memo",
    "merging",
    "packing",
    "pending",
    "renew",
    "row_order",
    "shrink",
    "slots",
    "sum_table",
    "table",
]
