"""Finds the tables and views that a query names, and renames them in the query."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.records import dataclass
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node, SqlText, parse
from freshviews.sql.text.plainer import QUALIFIERS


@dataclass(frozen=True)
class Relation:
    """A relation in FROM. ``parts``: of its name, as ``catalog.schema.table``; empty for a function. ``text``: as it is
    written, from ``start`` to ``end`` of the query. ``aliased``: an alias follows."""

    parts: tuple[str, ...]
    text: str
    start: int
    end: int
    aliased: bool


@dataclass(frozen=True)
class Renamed:
    """A query with other names. ``edits``: the start and end of each name in the original, and what is there now."""

    text: str
    edits: tuple[tuple[int, int, str], ...]

    def original(self, offset: int) -> int:
        """The offset in the original query of an offset in ``text``."""
        shift = 0
        for start, end, new in self.edits:
            if offset < start + shift:
                break
            if offset < start + shift + len(new):
                return start
            shift += len(new) - (end - start)
        return offset - shift


def relations_of(query: str) -> list[Relation]:
    """The relations of a query in order of their places, without those that its WITH defines. Raises SqlError."""
    sql = SqlText(query)
    trees = parse(sql)
    if len(trees) != 1:
        raise SqlError(f"one SELECT is expected, not {len(trees)} statements", 1, 1)
    found = [_relation(query, node) for node in trees[0].find_all(exp.Table) if not _is_local(node)]
    return sorted(found, key=lambda one: one.start)


def renamed(query: str, names: Mapping[Relation, str]) -> Renamed:
    """A query whose relations have other names; columns may still be qualified by the last part of the old ones."""
    edits, text, at = [], "", 0
    for one in sorted(names, key=lambda one: one.start):
        new = f"`{names[one]}`"
        if not one.aliased and one.parts and one.parts[-1].lower() != names[one].lower():
            new += f" AS `{one.parts[-1].replace('`', '``')}`"
        edits.append((one.start, one.end, new))
        text += query[at : one.start] + new
        at = one.end
    return Renamed(text + query[at:], tuple(edits))


def _relation(query: str, node: exp.Table) -> Relation:
    if isinstance(node.this, exp.Identifier):
        parts = [*node.meta.get(QUALIFIERS, ()), *node.parts]
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        names = tuple(part.name for part in parts)
    else:
        start, end = node.this.meta[SPAN][0], node.this.meta[SPAN][1] + 1
        names = ()
    return Relation(names, query[start:end], start, end, bool(node.alias))


def _is_local(node: exp.Table) -> bool:
    """True for the name of a WITH around it; within a WITH, of the ones before."""
    if node.db or not isinstance(node.this, exp.Identifier):
        return False
    name = node.name.lower()
    below: Node = node
    above = node.parent
    while above is not None:
        named = []
        if isinstance(above, exp.With):
            named = above.expressions[: next(n for n, one in enumerate(above.expressions) if one is below)]
        elif not isinstance(below, exp.With) and (clause := above.args.get("with_") or above.args.get("with")):
            named = clause.expressions
        if any(one.alias.lower() == name for one in named):
            return True
        below, above = above, above.parent
    return False
