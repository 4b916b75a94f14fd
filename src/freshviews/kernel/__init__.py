"""Keeps data structures in raw memory. A *kernel* is a compiled function over raw memory that knows no query.

- ``hash``: hash tables with indexes, which store relations and views; ``ordered``: ordered indexes of these tables.
- ``btree``: ordered trees with versions; ``trie``: reads ordered trees and sorted rows as tries; ``trace``: the
  incremental leapfrog triejoin.
- ``scalar``: operations on codes; ``codes``: converts Arrow columns to codes; ``output``: rows that a program returns.
- ``rings``: payloads of several words; ``widen``: gives the sums of a table more words.
- ``direct``: commits a small batch in one call; ``image``: writes tables as arrays to files.
- ``machine``: functions, and the cache of their machine code; ``compiler``: compiles functions with Numba.

A *code* is the word that represents a value. A *payload* is the part of a row that updates change, such as its count.
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
