"""Runs scripts, and converts their statements that change rows to signed rows.

A statement becomes signed rows of its table. DELETE becomes rows with -1, INSERT rows with +1, UPDATE old rows with -1
and new rows with +1, MERGE any of these. Expressions over one table are computed here, over codes;
``freshviews.asking`` computes the rows of a SELECT.
"""

__all__ = ["counts", "script"]
