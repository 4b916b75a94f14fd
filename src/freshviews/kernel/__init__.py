"""Data structures over raw memory and their compiled functions. No kernel knows a query.

- ``hash``: hash tables with indexes, which store relations and views; ``ordered``: ordered indexes of these tables.
- ``btree``: ordered trees with versions; ``trie``: tries over them and over sorted rows; ``trace``: the incremental
  leapfrog triejoin.
- ``scalar``: operations on codes; ``codes``: converts Arrow columns to codes; ``output``: rows that a program returns.
- ``rings``: payloads of several words; ``widen`` gives the sums of a table more words.
- ``direct`` commits a small batch in one call; ``image`` writes tables as arrays to files.
- ``machine``: functions, and the cache of their machine code; ``compiler`` compiles them with Numba.
"""

__all__ = [
    "btree",
    "codes",
    "compiler",
    "direct",
    "hash",
    "image",
    "machine",
    "memory",
    "ordered",
    "output",
    "rings",
    "scalar",
    "trace",
    "trie",
    "widen",
]
