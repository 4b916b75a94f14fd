"""Replaces ``now()`` and similar functions in conditions by subqueries over a table that has the time.

Similar functions are ``current_timestamp``, ``localtimestamp`` and ``current_date``. The table has one row, the time
that ``Database.advance`` set last. ``blocks.subqueries.range_comparison`` turns a comparison with the time into a
selection of rows of one source. Outside of conditions, these functions are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.clock import CLOCK, NOW
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node

_MOMENTS = ("now", "current_timestamp", "localtimestamp")
_DAYS = ("current_date", "curdate")
_CALLED = frozenset((*_MOMENTS, *_DAYS))
_BARE = _CALLED - {"now", "curdate"}
_READ = "reads the clock"

def clock_calls(query: Node, columns: Iterable[str]) -> list[Node]:
    """The calls of the clock in conditions. A name without parentheses that is one of ``columns`` is none."""
    found = [
        node
        for node in query.find_all(exp.Anonymous, exp.Column)
        if node.name.lower() in _CALLED and not (node.expressions or node.args.get("table"))
    ]
    # Looking at the names of all columns takes long.
    bare = _BARE.difference(map(str.lower, columns)) if any(isinstance(node, exp.Column) for node in found) else _BARE
    found = [one for one in found if isinstance(one, exp.Anonymous) or one.name.lower() in bare]
    return [one for one in found if _in_condition(one)]


def _in_condition(node: Node) -> bool:
    """True inside WHERE or HAVING, or ON of a join."""
    above: Node | None = node
    while above is not None and not isinstance(above, (exp.Query, exp.Where, exp.Having, exp.Join, exp.Filter)):
        above = above.parent
    return isinstance(above, (exp.Where, exp.Having, exp.Join)) and not isinstance(above.parent, exp.Filter)


def read_clock(calls: Iterable[Node]) -> None:
    """Replace calls of the clock by subqueries."""
    for node in calls:
        now = exp.Anonymous(this="max", expressions=[exp.Column(this=exp.to_identifier(NOW))])
        table = exp.Table(this=exp.to_identifier(CLOCK.name, quoted=True))
        made: Node = exp.Subquery(this=exp.Select(expressions=[now], from_=exp.From(this=table)))
        for one in made.walk():
            one.meta[_READ] = True
        if node.name.lower() in _DAYS:
            made = exp.Cast(this=made, to=exp.DataType.build("DATE"))
        for one in made.walk():
            one.meta[SPAN] = node.meta.get(SPAN, (0, 0))
        node.replace(made)


def reads_clock(node: Node) -> bool:
    """True for a subquery that ``read_clock`` made, and for the nodes in it."""
    return _READ in node.meta


def columns_in(catalog: Catalog) -> Iterator[str]:
    """The names of all columns of tables and views."""
    for columns in (one.columns for kind in (catalog.tables, catalog.views, catalog.plain) for one in kind.values()):
        yield from (column.name for column in columns)
