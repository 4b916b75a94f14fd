"""Answers a SELECT over named Arrow relations in Spark's meaning, with DuckDB.

::

    text ── question_of ──> Question      a tree whose nodes know their line and column
         ── relations_of ─> Relations     the tables and views that the SELECT names
         ── translated ───> Translation   DuckDB's text, and the columns of each relation that are read
         ── run ──────────> Arrow         the rows; ``Answer`` returns them
"""

from freshviews.asking.answer import Answer
from freshviews.asking.own_functions import functions_of
from freshviews.asking.parameters import Parameters, bound
from freshviews.asking.question import Question, question_of
from freshviews.asking.relations import AskedRelation, relations_of
from freshviews.asking.running import Limits, run
from freshviews.asking.translation import Translation, translated

__all__ = [
    "Answer",
    "AskedRelation",
    "Limits",
    "Parameters",
    "Question",
    "Translation",
    "answer",
    "bound",
    "functions_of",
    "question_of",
    "relations_of",
    "run",
    "running",
    "translated",
]
