"""Answers a SELECT over named Arrow tables with DuckDB, and returns what Spark would return.

::

    text ── question_of ──> Question      a tree whose nodes know their line and column
         ── relations_of ─> Relations     the tables and views that the SELECT names
         ── translated ───> Translation   DuckDB's text, and the columns of each relation that are read
         ── run ──────────> Arrow         the rows; ``Answer`` returns them

``SelectProcesses`` (``apart``) does all this in another process, with a limit of memory, for untrusted SELECTs.
"""

from freshviews.asking.answer import Answer
from freshviews.asking.apart import Reading, Reads, SelectProcesses, Source
from freshviews.asking.parameters import Parameters, bound
from freshviews.asking.question import Question, question_of
from freshviews.asking.relations import (
    Asked,
    AskedRelation,
    Names,
    UnknownRelation,
    known,
    names_of,
    relations_named,
    relations_of,
)
from freshviews.asking.running import Limits, run
from freshviews.asking.translation import Translation, translated

__all__ = [
    "Answer",
    "Asked",
    "AskedRelation",
    "Limits",
    "Names",
    "Parameters",
    "Question",
    "Reading",
    "Reads",
    "SelectProcesses",
    "Source",
    "Translation",
    "UnknownRelation",
    "answer",
    "bound",
    "known",
    "names_of",
    "question_of",
    "relations_named",
    "relations_of",
    "run",
    "running",
    "translated",
]
