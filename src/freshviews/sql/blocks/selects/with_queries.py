"""Represents WITH queries and plain views, which are bound where a query names them.

Declares the interface by which the binder of a SELECT binds the queries inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import ColumnDef, PlainView, ViewDef
from freshviews.sql.blocks.bound import Bound, Item, Select
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.views import Views
from freshviews.sql.names.scope import Source
from freshviews.sql.text.clock import clock_calls, columns_in, read_clock
from freshviews.sql.text.parse import Node, SqlText, parse


@dataclass
class Cte:
    """A WITH query or a plain view. It is bound at each use if it dissolves into the join, and once if it needs an
    internal view. ``text``, ``catalog``: the text of a plain view, and the catalog for its names. ``around``: the names
    of the queries around its WITH."""

    node: exp.CTE
    outer: Mapping[str, Cte]
    view: ViewDef | None = None
    text: SqlText | None = None
    catalog: Catalog | None = None
    is_bound: bool = False
    around: Names | None = None


Ctes = Mapping[str, Cte]


class Queries(Views, Protocol):
    """Binds the parts of a SELECT; implemented by ``ViewBinder``."""

    @property
    def text(self) -> SqlText: ...

    def bind(self, node: Node, ctes: Ctes | None = None, around: Names | None = None) -> Bound: ...

    def relation(self, table: exp.Table, ctes: Ctes, around: Names | None = None) -> Select | Source: ...

    def subquery(
        self, node: Node, ctes: Ctes, around: Names | None = None, joined: str = ""
    ) -> Select | Source: ...

    def rows_of(self, bound: Bound, node: Node, around: Names | None) -> Select: ...

    def position(self, node: exp.Literal, items: tuple[Item, ...], clause: str) -> int: ...


def query_of(view: PlainView, catalog: Catalog) -> Cte:
    """The query of a plain view, as a WITH query with its own text."""
    text = SqlText(view.sql)
    node = parse(text)[0]
    read_clock(clock_calls(node.args["expression"], columns_in(catalog)))
    names = node.this.expressions if isinstance(node.this, exp.Schema) else []
    alias = exp.TableAlias(this=exp.to_identifier(view.name), columns=names)
    return Cte(exp.CTE(this=node.args["expression"], alias=alias), {}, None, text, catalog.as_of(view))


def renamed_view(view: ViewDef, columns: tuple[ColumnDef, ...]) -> ViewDef:
    blocks = tuple(
        replace(block, outputs=tuple(replace(o, name=c.name) for o, c in zip(block.outputs, columns, strict=True)))
        for block in view.blocks
    )
    return replace(view, columns=columns, blocks=blocks)
