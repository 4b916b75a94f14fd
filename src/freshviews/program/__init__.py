"""The trigger language: strategies write programs in it, and ``codegen`` compiles them.

- ``statements``, ``payload``, ``views``: the nodes; ``program``: a whole program; ``results``: how its result is read.
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
