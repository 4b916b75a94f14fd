"""Answers SELECTs in child processes, with a limit of time and of memory for each SELECT.

::

    this process: SelectProcesses               its child: child.serve
      text or tree, parameters ───────────────>   parses
      relations (Source.relations) <── names ──
      ────────────── columns and types ───────>   translates
      rows (Source.read) <──────────── reads ──
      ────────────── Arrow, in a file ────────>   runs DuckDB, keeps the columns
      rows or an error <───────────────────────

A child cannot read the database: it has only what it was sent. A child that reaches a limit is killed, and the next
SELECT gets another child. Files have no name on disk, and a child ends with its parent, so nothing is left behind.
``channel`` carries the messages.
"""

from freshviews.asking.apart.pool import MEMORY, Reading, Reads, SelectProcesses, Source

__all__ = ["MEMORY", "Reading", "Reads", "SelectProcesses", "Source", "child"]
