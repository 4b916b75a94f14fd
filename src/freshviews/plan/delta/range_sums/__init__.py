"""Range sums, a pass over the programs of all strategies: a loop over rows between two bounds becomes a sum.

``ranges`` rewrites the loops. ``bounds``, ``grid`` and ``slices`` read the conditions of a loop; ``products`` and
``linear`` read its lifts and payloads. ``range_views`` declares and maintains the stored views. ``unneeded`` removes
views that nothing reads any more. ``visits`` writes the lines of EXPLAIN.
"""

__all__ = ["ranges"]
