"""Data structures over raw memory and their compiled functions. Kernels know no query.

All memory is malloc'ed and counted in 64-bit words; a structure is known by the address of its header block, its
handle. A compiled function takes handles and words and returns words, so a call costs no boxing and nothing is
reference-counted. The same functions run as plain Python over the same memory (``memory.mem``).

- ``hash``: tables with indexes, in which relations and views are stored; ``ordered``: MIN, MAX and first rows of them.
- ``btree``: ordered trees with versions; ``trie``: tries over them and over sorted rows; ``trace``: the incremental
  leapfrog triejoin.
- ``scalar``, ``codes``, ``output``: operations on codes, Arrow columns to codes, rows that a program returns.
- ``rings``: payloads of several words.
- ``direct`` makes a version of a small batch in one call.
- ``image`` writes tables as arrays to files; ``widen`` gives the sums of a table more words.
- ``machine``: functions with machine code, and its cache; ``compiler``, which alone imports Numba, compiles them.
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
