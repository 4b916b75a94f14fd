"""Rewrites programs: a loop over the rows between two bounds becomes a lookup of the sum of these rows.

- ``ranges`` rewrites the loops; ``range_views`` declares and maintains the stored views.
- ``bounds``, ``grid`` and ``slices`` read the conditions of a loop. ``products`` and ``linear`` rewrite its payloads.
- ``unneeded`` removes views that nothing reads. ``visits`` writes the lines of EXPLAIN.
"""

__all__ = ["ranges"]
