"""The incremental leapfrog triejoin: maintains the derivations of a rule by its trace.

Words in memory describe a rule, so no code is compiled for it. ``variable_join`` lists these words: levels (variables),
cursors (one per atom and variable), atoms, and ordered trees.

- ``variable_join``, ``step``: the join, step by step; ``filters``: conditions and negated atoms.
- ``sensitivity``, ``intervals``: records of steps in interval trees; ``oracle``: the bindings to evaluate again.
- ``maintain``: maintains a rule for one batch.
"""

__all__ = ["filters", "intervals", "maintain", "oracle", "sensitivity", "variable_join"]
