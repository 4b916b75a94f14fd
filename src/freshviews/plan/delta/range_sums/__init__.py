"""Range sums, a pass over the programs of all strategies: a loop over rows between two bounds becomes a sum.

``ranges`` rewrites the loops. ``bounds``, ``grid`` and ``slices`` read the conditions, ``products`` and ``linear`` the
lifts and payloads that allow it. ``range_views`` has what is stored, ``unneeded`` removes views that nothing reads any
more, and ``visits`` has what EXPLAIN says.
"""

__all__ = ["ranges"]
