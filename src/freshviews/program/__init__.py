"""Defines the trigger language. Strategies write programs in this language, and ``codegen`` compiles the programs.

- ``statements``, ``payload``, ``views``: the parts of a program; ``program``: a whole program; ``results``: how its
  result is read.
- ``upkeep``: work at the end of a version; ``heavy_light``: heavy and light parts; ``traced``: traced joins.
- ``printer``: the printed text; ``structure``, ``roles``, ``rewrite``: walks over statements and changes of them.
- ``reference``: the executable specification.
"""

__all__ = [
    "comparison",
    "heavy_light",
    "intersections",
    "payload",
    "printer",
    "program",
    "reference",
    "results",
    "rewrite",
    "roles",
    "rule",
    "statements",
    "structure",
    "traced",
    "upkeep",
    "views",
]
