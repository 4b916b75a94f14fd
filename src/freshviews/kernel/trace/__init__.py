"""Maintains the rows of a join by its *trace*, the recorded steps of a leapfrog triejoin.

- ``variable_join``, ``step``: the join, step by step; ``filters``: conditions and negated atoms.
- ``sensitivity``, ``intervals``: records of steps in interval trees; ``oracle``: the bindings to evaluate again.
- ``maintain``: maintains a rule for one batch.
"""

__all__ = ["filters", "intervals", "maintain", "oracle", "sensitivity", "variable_join"]
