"""Runs scripts, and converts their statements that change rows to signed rows.

A statement becomes signed rows of its table: DELETE the rows with -1, INSERT those with +1, UPDATE the old rows with -1
and the new ones with +1, MERGE all three. The rows of an expression over one table are computed here, over codes; rows
of a SELECT come from ``freshviews.asking``.
"""

__all__ = ["counts", "script"]
