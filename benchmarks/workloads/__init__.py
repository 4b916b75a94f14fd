"""Streams of changes: each module lists its cases and makes the stream of a case.

``graph``, ``triangle``, ``eps`` and ``kept_listing`` are patterns in graphs, drawn or read by ``graphs``. ``tpch``,
``star``, ``snb``, ``orderbook`` and ``flights`` join tables; ``large_book`` has subqueries over many orders.
``cofactor`` has the sums that a model reads, of ``star`` and of ``inventory``.
``compiled`` is for peers that are programs. ``oumv`` and ``hard`` are streams on which every algorithm is slow.
"""

__all__ = [
    "cofactor",
    "compiled",
    "eps",
    "flights",
    "graph",
    "graphs",
    "hard",
    "inventory",
    "kept_listing",
    "large_book",
    "orderbook",
    "oumv",
    "retail",
    "snb",
    "star",
    "tpch",
    "tpch_queries",
    "triangle",
]
