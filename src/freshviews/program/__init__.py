"""Defines the trigger language. Strategies write programs in this language, and ``codegen`` compiles the programs.

- ``program`` defines a whole program, ``results`` how its result is read.
- ``statements``, ``payload`` and ``views`` define parts of a program. ``traced`` defines its traced joins.
- ``upkeep`` defines work at the end of a version, ``heavy_light`` heavy and light parts.
- ``printer`` prints programs. ``structure``, ``roles`` and ``rewrite`` read and change statements.
- ``reference`` is the executable specification.
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
