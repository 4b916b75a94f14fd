"""Finds the tables and views that a SELECT names.

A plain view has no rows, so its name is replaced by its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from freshviews.asking.meaning import NotAnswered
from freshviews.asking.question import Question
from freshviews.catalog.catalog import Catalog, unknown
from freshviews.catalog.definitions import PlainView
from freshviews.catalog.functions import FunctionDef, registered
from freshviews.catalog.timezone import UTC
from freshviews.errors import NameProblem
from freshviews.records import dataclass
from freshviews.sql.text.clock import clock_calls, read_clock
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node, SqlText, parse
from freshviews.types import SqlType


@dataclass(frozen=True)
class AskedRelation:
    """A table or view that a SELECT names. ``plain``: the CREATE VIEW of a view that has no rows of its own, and
    ``widths`` the columns that the tables which it names had when it was created."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    plain: str = ""
    widths: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class UnknownRelation:
    """A name that is neither a table nor a view, and what to say of it."""

    name: str
    message: str


Names = tuple[tuple[str, ...], tuple[str, ...]]
"""The tables and views that a SELECT names, and the functions that it calls."""


@dataclass(frozen=True)
class Asked:
    """The relations that a SELECT reads, and the users' functions that it calls."""

    relations: tuple[AskedRelation, ...] = ()
    functions: tuple[FunctionDef, ...] = ()
    timezone: str = UTC
    """The time zone of TIMESTAMP_LTZ."""


def names_of(question: Question) -> Names:
    """The names in a SELECT, each once: tables in any case, functions in lower case."""
    tables = {table.name.lower(): table.name for table in tables_named(question.tree)}
    calls = dict.fromkeys(node.name.lower() for node in question.tree.find_all(exp.Anonymous))
    return tuple(tables.values()), tuple(calls)


def relations_named(names: Names, catalog: Catalog) -> Asked | UnknownRelation:
    """The relations and functions of some names, and those that plain views and functions among them name."""
    found: dict[str, AskedRelation] = {}
    tables, calls = names
    called = list(calls)
    left = [(name, name, False) for name in tables]
    while left:
        name, named, in_view = left.pop()
        key = name.lower()
        if key in found:
            continue
        known = catalog.named(name)
        if known is None or (getattr(known, "internal", False) and not in_view):
            return UnknownRelation(named, unknown("table or view", name, catalog.names))
        columns = tuple((column.name, column.type) for column in known.columns)
        if isinstance(known, PlainView):
            found[key] = AskedRelation(known.name, columns, known.sql, known.widths)
            left += [(one, named, True) for one in known.inputs]
            called += known.functions
        else:
            found[key] = AskedRelation(known.name, columns)
    return Asked(tuple(found.values()), _functions_named(called, catalog), catalog.timezone)


def _functions_named(names: list[str], catalog: Catalog) -> tuple[FunctionDef, ...]:
    found: dict[str, FunctionDef] = {}
    while names:
        name = names.pop()
        function = catalog.functions.get(name) or registered(name)
        if function is not None and name not in found:
            found[name] = function
            names += function.called
    return tuple(found.values())


def known(question: Question, found: Asked | UnknownRelation) -> Asked:
    """The relations of the SELECT. Raises NameProblem, at the place of a name that is unknown."""
    if isinstance(found, UnknownRelation):
        table = next(one for one in tables_named(question.tree) if one.name == found.name)
        raise NameProblem(found.message, *question.text.at(table))
    return found


def relations_of(question: Question, catalog: Catalog) -> Asked:
    """The relations that the SELECT names, and those that plain views among them name. Raises NameProblem."""
    return known(question, relations_named(names_of(question), catalog))


def tables_named(tree: Node) -> Iterator[exp.Table]:
    """The nodes that name tables and views, not queries of WITH."""
    return (one for one in tree.find_all(exp.Table) if not _names_query(one))


def _names_query(table: exp.Table) -> bool:
    name = table.name.lower()
    node: Node = table
    while (above := node.parent) is not None:
        if isinstance(above, exp.With):
            # A query of WITH names those before it.
            if any(one.alias.lower() == name for one in above.expressions[: node.index]):
                return True
            if above.parent is None:
                return False
            above = above.parent
        else:
            queries = above.args.get("with_")
            if queries is not None and any(one.alias.lower() == name for one in queries.expressions):
                return True
        node = above
    return False


def expand(tree: Node, relations: Mapping[str, AskedRelation]) -> None:
    """Replace the names of plain views by their queries. ``relations``: by name in lower case."""
    left = list(tables_named(tree))
    while left:
        table = left.pop()
        relation = relations[table.name.lower()]
        if not relation.plain:
            _name_columns(table, relation)
            continue
        query = _query_of(relation, relations)
        left += tables_named(query)
        written = table.args.get("alias")
        columns = list(written.columns) if written is not None else []
        columns += [exp.to_identifier(name, quoted=True) for name, _ in relation.columns[len(columns) :]]
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True), columns=columns)
        joins = table.args.get("joins")
        table.replace(exp.Subquery(this=query, alias=alias, **({"joins": joins} if joins else {})))


def _name_columns(table: exp.Table, relation: AskedRelation) -> None:
    """Write the columns that an alias lists, as in ``r AS t(x, y)``, as those of a subquery."""
    alias = table.args.get("alias")
    if alias is None or not alias.columns:
        return
    if len(alias.columns) != len(relation.columns):
        raise NotAnswered(
            table,
            f"alias {alias.name} lists {len(alias.columns)} columns, but {relation.name} has "
            f"{len(relation.columns)}; list one name for each column",
        )
    names = zip(alias.columns, relation.columns, strict=True)
    items = [exp.alias_(exp.column(exp.to_identifier(own, quoted=True)), written.copy()) for written, (own, _) in names]
    named = exp.table_(exp.to_identifier(table.name, quoted=True))
    joins = table.args.get("joins")
    made = exp.Subquery(this=exp.select(*items).from_(named), alias=exp.TableAlias(this=alias.this))
    table.replace(made)
    if joins:
        made.set("joins", joins)


def _query_of(view: AskedRelation, relations: Mapping[str, AskedRelation]) -> Node:
    """The query of a plain view, over the columns that its tables had when it was created."""
    query: Node = parse(SqlText(view.plain))[0].expression
    query.pop()
    read_clock(clock_calls(query, (name for one in relations.values() for name, _ in one.columns)))
    for node in query.walk():
        # Places in another text are none in the text of the SELECT.
        for name in (SPAN, "start", "end", "line", "col"):
            node.meta.pop(name, None)
    widths = {name.lower(): width for name, width in view.widths}
    for table in list(tables_named(query)):
        columns = relations[table.name.lower()].columns
        width = widths.get(table.name.lower(), len(columns))
        if width < len(columns):
            names = [exp.column(exp.to_identifier(name, quoted=True)) for name, _ in columns[:width]]
            before = exp.select(*names).from_(exp.table_(exp.to_identifier(table.name, quoted=True)))
            table.replace(exp.Subquery(this=before, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))))
    return query
