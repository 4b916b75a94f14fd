"""Prints views as compact text for comparison, and has the catalog of most tests."""

from __future__ import annotations

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Expr
from freshviews.program.views import Order
from freshviews.query.block import Block
from freshviews.query.query import Lift, Query
from freshviews.sql import Catalog, ViewDefs, parse_script

TABLES = """
CREATE TABLE r (a INT, b INT, c BIGINT, d DATE, t BOOLEAN, x DOUBLE, s STRING, p DECIMAL(12, 2), ts TIMESTAMP);
CREATE TABLE s (a INT, b INT NOT NULL, e STRING);
CREATE TABLE k (id BIGINT PRIMARY KEY, name STRING NOT NULL, price DECIMAL(12, 2) NOT NULL, f FLOAT,
                i8 TINYINT, i16 SMALLINT);
"""


def catalog(script: str = TABLES) -> Catalog:
    known = Catalog()
    for statement in parse_script(script, known):
        known = known.after(statement)
    return known


def views(query: str, known: Catalog | None = None, name: str = "v") -> tuple[ViewDef, ...]:
    """The internal views of a query and the view itself."""
    script = f"CREATE MATERIALIZED VIEW {name} AS {query}"
    (statement,) = parse_script(script, known or catalog())
    assert isinstance(statement, ViewDefs)
    return statement.views


def view(query: str, known: Catalog | None = None) -> ViewDef:
    return views(query, known)[-1]


def printed(found: tuple[ViewDef, ...]) -> str:
    return "\n".join(_view(one) for one in found)


def column_types(one: ViewDef) -> str:
    return ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in one.columns)


def _view(one: ViewDef) -> str:
    combined = [] if one.combined is None else [f"  {one.combined}"]
    return "\n".join([f"{one.name}: {column_types(one)}", *(_block(block) for block in one.blocks), *combined])


def _block(block: Block) -> str:
    lines = [f"{block.kind} {query_text(block.query)}"]
    lines += [f"distinct {d.name} = {d.kind} {query_text(d.query)}" for d in block.distinct]
    lines += [f"{r.name} = {r.function}({', '.join(r.components)}) {r.type}" for r in block.results]
    lines.append("-> " + ", ".join(_bound(o.name, o.expr) for o in block.outputs))
    if block.sets:
        lines.append("sets " + ", ".join(f"({', '.join(one)})" for one in block.sets))
    if block.having is not None:
        lines.append(f"having {block.having}")
    if block.limit is not None:
        order = ", ".join(f"{c.variable}{Order(c.type, c.descending, c.nulls_last)}" for c in block.limit.order)
        lines.append(f"order by {order} limit {block.limit.limit} offset {block.limit.offset}")
    if block.selection is not None:
        one = block.selection
        value = f"{'-' if one.negated else ''}{one.value}{' or NULL' if one.nullable else ''}"
        order = f"({', '.join(one.group)} | {one.point}{Order(one.type, one.descending)})"
        lines.append(f"selected {value} of {one.weights or one.rows}{order} {'<' if one.strict else '<='} {one.limit}")
    return "\n".join("  " + line for line in lines)


def query_text(query: Query) -> str:
    """``name(free) = atom:relation(variables | filters) ... if conditions; aggregate = lifts``."""
    atoms = []
    for atom in query.atoms:
        columns = ", ".join(_bound(v, c) for v, c in zip(atom.variables, atom.columns, strict=True))
        filters = f" | {' & '.join(map(str, atom.filters))}" if atom.filters else ""
        name = atom.relation if atom.name == atom.relation else f"{atom.name}:{atom.relation}"
        atoms.append(f"{name}({columns}{filters})")
    text = f"{query.name}({', '.join(query.free)}) = {' '.join(atoms)}"
    if query.conditions:
        text += " if " + " & ".join(map(str, query.conditions))
    sums = [f"{a.name}:{a.ring} {' * '.join(map(_lift, a.lifts))}" for a in query.aggregates if a.lifts]
    return "; ".join([text, *sums])


def _lift(lift: Lift) -> str:
    return f"{lift.atom or ''}[{lift.expr}]"


def _bound(name: str, expr: Expr) -> str:
    return name if str(expr) == name else f"{name}={expr}"
