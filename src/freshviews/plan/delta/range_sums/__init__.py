"""Range sums: a pass over programs that replaces a loop over rows between two bounds by a sum.

- ``ranges`` rewrites the loops; ``range_views`` declares and maintains the stored views.
- ``bounds``, ``grid`` and ``slices`` read the conditions of a loop; ``products`` and ``linear`` its payloads.
- ``unneeded`` removes views that nothing reads; ``visits`` writes the lines of EXPLAIN.
"""

__all__ = ["ranges"]
