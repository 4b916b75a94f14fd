"""Parses the text of a SELECT into a tree, and refuses clauses that ``asking`` does not support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.sql.text.fields import ignored, unknown_nodes
from freshviews.sql.text.parse import Node, SqlText, parse

LONGEST = 1 << 20
"""Most characters of a SELECT."""
_KEPT = 10_000
"""Most characters of a SELECT whose tree and translation are kept."""


@dataclass(frozen=True, eq=False)
class Question:
    """A SELECT: its text and its tree, which nobody changes. ``repeats``: its translation is kept. ``stored``:
    a statement stores its rows."""

    text: SqlText
    tree: Node
    repeats: bool = False
    stored: bool = False

    def __post_init__(self) -> None:
        _check(self.text, self.tree)


def question_of(sql: str) -> Question:
    """The SELECT of a text. Raises SqlError, with line and column, if it is not one SELECT."""
    if len(sql) > LONGEST:
        raise SqlError(f"the text has {len(sql):,} characters; a SELECT of at most {LONGEST:,} is accepted")
    return _known(sql) if len(sql) <= _KEPT else _read(sql, False)


@lru_cache(256)
def _known(sql: str) -> Question:
    return _read(sql, True)


def _read(sql: str, repeats: bool) -> Question:
    text = SqlText(sql)
    trees = parse(text)
    if not trees:
        raise SqlError("a SELECT is expected, not an empty text")
    if len(trees) > 1:
        raise text.error(trees[1], "one SELECT is accepted, not several statements")
    return Question(text, trees[0], repeats)


def _instead(node: Node) -> str:
    """The remedy for an unknown node."""
    return "write ? or :name for a parameter" if isinstance(node, exp.Parameter) else "leave it out"


def _check(text: SqlText, tree: Node) -> None:
    """Raise SqlError for what is not a query, UnsupportedSql for a clause without a meaning here."""
    if not isinstance(tree, exp.Query):
        word = text.of(tree).partition(" ")[0].upper()
        raise text.error(tree, f"a SELECT over tables and views is accepted, not {word}")
    nodes = list(tree.walk())
    clause = ignored(nodes)
    if clause is not None:
        raise text.unsupported(*clause)
    for node in unknown_nodes(nodes):
        if not isinstance(node, exp.Placeholder):
            raise text.unsupported(node, text.of(node) or type(node).__name__.upper(), _instead(node))
    for node in nodes:
        if isinstance(node, exp.Select) and node.args.get("hint") is not None:
            node.set("hint", None)
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise text.unsupported(
                node, "WITH RECURSIVE", "write each step of the recursion as a WITH query of its own"
            )
        if isinstance(node, exp.Select) and not node.expressions:
            raise text.error(node, "SELECT needs at least one column; write *, or name the columns")
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            raise text.unsupported(node, text.of(node), "FROM takes tables, views and subqueries")
        if isinstance(node, exp.Table) and (node.args.get("db") or node.args.get("catalog")):
            raise text.unsupported(node, f"the name {text.of(node)}", "write the name without schema and catalog")
