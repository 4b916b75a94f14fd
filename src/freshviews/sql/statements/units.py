"""Splits a script into units, such as a transaction. A unit takes effect as a whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from freshviews.errors import SqlError, hiding_secrets
from freshviews.records import dataclass
from freshviews.sql.text.fields import DATA
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node, SqlText, copied, parse
from freshviews.sql.text.shape import QUERIES, main_word

_ASKING = (exp.Query, exp.Describe)
_COMMANDS = ("SHOW", "EXPLAIN")
_QUESTIONS = {"SHOW", "DESCRIBE", "DESC", "EXPLAIN"}
_ENDS = (exp.Commit, exp.Rollback)
_REPEATED = ("INSERT", "DELETE", "UPDATE", "MERGE ", "SELECT")
"""The first letters of scripts whose trees are kept, as programs repeat them."""
_KEPT = 10_000
"""Most characters of such a script."""


@dataclass(frozen=True)
class Unit:
    """Statements that take effect together.

    ``kind``: ``definitions``, ``data`` (one statement), ``transaction`` (the statements of data between BEGIN and
    COMMIT, or ROLLBACK if not ``commits``), ``table`` (one CREATE TABLE AS SELECT), or ``question`` (one). ``first``,
    ``last``: the numbers of its statements in the script, from 1.
    """

    kind: str
    nodes: tuple[Node, ...]
    first: int
    last: int
    commits: bool = True

    @property
    def changes_rows(self) -> bool:
        return self.kind in ("data", "transaction")


@hiding_secrets
def units_of(script: str) -> tuple[Unit, ...]:
    """The units of a script. Raises SqlError, with line and column, if it is not SQL or a transaction is not whole."""
    if len(script) <= _KEPT and script.lstrip()[:6].upper() in _REPEATED:
        known = _parsed(script)
        if all(unit.kind != "definitions" for unit in known):
            # Copies, as parameters get their values in the trees.
            return tuple(replace(unit, nodes=tuple(copied(node) for node in unit.nodes)) for unit in known)
    return _units(script)


@lru_cache(256)
def _parsed(script: str) -> tuple[Unit, ...]:
    return _units(script)


def _units(script: str) -> tuple[Unit, ...]:
    text = SqlText(script)
    made: list[Unit] = []
    begun: int | None = None
    inside: list[Node] = []
    nodes = parse(text)
    for number, node in enumerate(nodes, 1):
        kind = _kind(node)
        if isinstance(node, exp.Transaction):
            if begun is not None:
                raise text.error(node, "BEGIN is inside an open transaction; write COMMIT or ROLLBACK first")
            begun, inside = number, []
        elif isinstance(node, _ENDS):
            if begun is None:
                word = type(node).__name__.upper()
                raise text.error(
                    node,
                    f"{word} has no BEGIN; write BEGIN first, or leave {word} out: outside a transaction each "
                    "statement commits by itself",
                )
            made.append(Unit("transaction", tuple(inside), begun, number, isinstance(node, exp.Commit)))
            begun = None
        elif begun is not None:
            if kind != "data":
                what = "a statement that reads" if kind == "question" else "a statement that creates, alters or drops"
                raise text.unsupported(
                    node,
                    f"{what} between BEGIN and COMMIT",
                    "write only INSERT, DELETE, UPDATE, MERGE and TRUNCATE in a transaction",
                )
            inside.append(node)
        elif kind == "definitions" and made and made[-1].kind == kind:
            made[-1] = Unit(kind, (*made[-1].nodes, node), made[-1].first, number)
        else:
            made.append(Unit(kind, (node,), number, number))
    if begun is not None:
        raise text.error(nodes[begun - 1], "BEGIN has no COMMIT or ROLLBACK in this script; nothing was executed")
    return tuple(made)


def is_question(script: str) -> bool:
    """Whether a script is one question, such as SHOW TABLES or a SELECT. Raises as ``units_of``."""
    return [unit.kind for unit in units_of(script)] == ["question"]


def has_rows(script: str) -> bool:
    """Whether the result has rows: of a query, or of SHOW, DESCRIBE or EXPLAIN, by its words."""
    return main_word(script) in {*QUERIES, *_QUESTIONS}


def slice_of(script: str, nodes: Sequence[Node]) -> str:
    """The text of consecutive statements."""
    start, end = nodes[0].meta.get(SPAN), nodes[-1].meta.get(SPAN)
    if start is None or end is None:
        raise SqlError("a statement has no place in the script")
    return script[start[0] : end[1] + 1]


def _kind(node: Node) -> str:
    if isinstance(node, DATA):
        return "data"
    if isinstance(node, _ASKING) or (isinstance(node, exp.Command) and node.name.upper() in _COMMANDS):
        return "question"
    if isinstance(node, exp.Create) and node.kind == "TABLE" and isinstance(node.expression, exp.Query):
        return "table"
    return "definitions"
