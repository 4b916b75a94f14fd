"""Range sums, a pass over the programs of all strategies: a loop over rows between two bounds becomes a sum.

``ranges`` rewrites the loops. ``bounds``, ``grid`` and ``slices`` read the conditions, ``products`` and ``linear`` the
lifts and payloads. ``range_views`` declares and maintains the stored views, ``unneeded`` removes views that nothing
reads any more, and ``visits`` writes the lines of EXPLAIN.
"""

__all__ = ["ranges"]
