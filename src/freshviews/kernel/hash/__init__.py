"""Stores rows of words in hash tables with secondary indexes. Base tables and views are stored in this way.

A table has a header, an array of rows, and *slots*. A slot leads from the hash of a key to the number of a row::

    row    key ... | payload ... | a word per index | ordered index, folds, sums | stamp
    slot   hash << 32 | number + 1

An index has a *group* per value of a part of the key. The *block* of a group lists the numbers of its rows::

    group  key part ... | row count | block capacity | distance of the block
    block  row numbers, half words | digests, half words

- ``table``, ``index``, ``entries``, ``slots``: the structures; ``pending``: deferred inserts.
- ``shrink``: releases memory in steps; ``renew``: empties or packs a whole table; ``merging``: adds one table to
  another.
- ``base_store``, ``base_reads``: stored base tables; ``packing``: columns that share words.
- ``heavy_light``: the numbers of rows from which values are heavy.
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
