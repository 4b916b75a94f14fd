"""Splits a block, which is one SELECT, over several cells.

Each cell maintains partial views over its own rows. A second engine merges the partial views into the result. For
``SELECT g, SUM(x) ... GROUP BY g``, each cell has sums of its own rows by ``g``, and the second engine adds them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef, ViewDef
from freshviews.expr.nodes import WORDS, Call, Column, Expr
from freshviews.query.block import SCANNED, Block, DistinctAggregate, Limit, Output, Result, counts_values
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.records import dataclass
from freshviews.ring import named, ring_over
from freshviews.sql.blocks.building.variables import free_name
from freshviews.types import BIGINT, BOOLEAN


@dataclass(frozen=True)
class Piece:
    """A view that cells maintain for a merged block: its columns and its one block."""

    columns: tuple[ColumnDef, ...]
    block: Block


def pieces_of(block: Block) -> tuple[Piece, ...]:
    """The cell views of a block with groups, or of a global one: the groups, then the values of each distinct query.

    **LIMIT n OFFSET m.** Each cell maintains the first n + m of its own rows. The second stage selects the result from
    these rows.

    **Groups.** A cell has a view with a row per group: the free variables, the ring elements of the aggregates as
    words, and MIN and MAX. For COUNT and SUM of DISTINCT values, a cell has another view, with a row per group and
    value. For MIN_BY and MAX_BY, a cell also sends the least or greatest ordering value. With grouping sets, a cell
    groups by all free variables.
    """
    query = block.query
    components = _components(block)
    scanned = _scanned(block)
    results: list[Result] = []
    columns = _group_columns(query)
    outputs = _group_outputs(query, columns)
    if block.limit is not None:
        most: Limit | None = replace(block.limit, limit=block.limit.offset + block.limit.limit, offset=0)
        if block.limit.added or block.limit.ranks:
            # The rank of a row depends on the rows of all cells.
            most = None
        return (Piece(tuple(columns), replace(block, outputs=tuple(outputs), limit=most)),)
    for i, component in enumerate(components, 1):
        words = _word_columns(block, component, i)
        for number, column in enumerate(words):
            part = f"_{number}" if len(words) > 1 else ""
            name = free_name(f"component_{i}{part}", _names(block, results))
            function, entry = ("word", (number,)) if part else ("count", ())
            results.append(Result(name, function, (component,), BIGINT, BIGINT, column.nullable, entry))
            outputs.append(Output(column.name, Column(name, BIGINT, column.nullable)))
        columns += words
    for i, one in enumerate(scanned):
        name = free_name(f"scanned_{i + 1}", _names(block, results))
        results.append(Result(name, one.kind, (one.name,), one.type, one.type))
        outputs.append(Output(f"m{i + 1}", Column(name, one.type)))
        columns.append(ColumnDef(f"m{i + 1}", one.type))
    kept = tuple(a for a in query.aggregates if a.name in components or a is query.aggregates[0])
    groups = Block("groups", replace(query, aggregates=kept), tuple(outputs), tuple(results), tuple(scanned))
    return Piece(tuple(columns), groups), *(_values(block, one) for one in _value_queries(block))


def merged(block: Block, tables: Sequence[str]) -> Block:
    """The block over the tables of its pieces, with the same outputs and HAVING.

    The second stage stores these rows in tables, and groups them by each grouping set. It adds up ring elements, takes
    the least of the minima, and counts the distinct values of all cells.
    """
    query = block.query
    components = _components(block)
    scanned = _scanned(block)
    values = _value_queries(block)
    groups = _group_columns(query)
    atom = _atom(tables[0], query.free, groups)
    renamed = {c: free_name(c, ["count", *(o for o in components if o != c)]) for c in components}
    sums = tuple(
        Aggregate(renamed[c], _ring(block, c), (Lift(tables[0], _element(_word_columns(block, c, i))),))
        for i, c in enumerate(components, 1)
    )
    main = Query(query.name, query.free, (atom,), (Aggregate("count", "integer"), *sums))

    def rebased(one: DistinctAggregate) -> DistinctAggregate:
        if one.kind in SCANNED:
            width, last = len(one.arguments), scanned.index(one) + 1
            found = tuple(Column(f"m{last - width + 1 + i}", kind) for i, kind in enumerate(one.arguments))
            known = Call("is_not_null", (found[0],), BOOLEAN, False)
            over = replace(
                atom,
                variables=(*atom.variables, *one.query.free[-width:]),
                columns=(*atom.columns, *found),
                filters=(known,),
            )
            return replace(one, query=Query(one.query.name, one.query.free, (over,)))
        place = next(i for i, other in enumerate(values) if _same(other, one.query))
        columns = _group_columns(one.query)
        over = _atom(tables[place + 1], one.query.free, columns)
        return replace(one, query=Query(one.query.name, one.query.free, (over,)))

    results = tuple(
        replace(result, components=tuple(renamed.get(c, c) for c in result.components)) for result in block.results
    )
    return replace(block, query=main, results=results, distinct=tuple(map(rebased, block.distinct)))


def passed_on(view: ViewDef, block: Block, table: str) -> Block:
    """A bag of all rows of a table that contains the rows of a block of the view."""
    return all_rows(block.query.name, view.columns, table)


def all_rows(name: str, columns: Sequence[ColumnDef], table: str) -> Block:
    """A bag of all rows of a table."""
    variables = tuple(f"g{i + 1}" for i in range(len(columns)))
    read = tuple(Column(c.name, c.type, c.nullable) for c in columns)
    outputs = tuple(Output(c.name, Column(v, c.type, c.nullable)) for v, c in zip(variables, columns, strict=True))
    return Block("bag", Query(name, variables, (Atom(table, table, variables, read),)), outputs)


def _scanned(block: Block) -> list[DistinctAggregate]:
    """The aggregates that a cell evaluates over its own values; MIN_BY is preceded by MIN of its ordering value."""
    found: list[DistinctAggregate] = []
    for one in block.distinct:
        if one.by is not None:
            name = free_name(f"{one.name}_by", [other.name for other in (*block.distinct, *found)])
            query = replace(one.query, name=f"{one.query.name}_by", free=one.query.free[:-1])
            found.append(DistinctAggregate(name, one.kind.removesuffix("_by"), query, one.by))
        if one.kind in SCANNED:
            found.append(one)
    return found


def _components(block: Block) -> tuple[str, ...]:
    """The linear components that results use; the count, if the piece would have no column otherwise."""
    linear = {one.name for one in block.query.aggregates}
    used = (c for r in block.results for c in r.components)
    found = tuple(dict.fromkeys(c for c in used if c in linear))
    if not (found or block.query.free or any(one.kind in SCANNED for one in block.distinct)):
        return (block.query.aggregates[0].name,)
    return found


def _ring(block: Block, component: str) -> str:
    """The ring of a component, with its range."""
    found = next(one for one in block.query.aggregates if one.name == component)
    return ring_over(found.ring, (lift.place for lift in found.lifts if lift.place is not None))


def _word_columns(block: Block, component: str, number: int) -> list[ColumnDef]:
    """A column per word of a component. Each of several words may have the code NULL."""
    words = named(_ring(block, component)).words
    if words == 1:
        return [ColumnDef(f"c{number}", BIGINT, False)]
    return [ColumnDef(f"c{number}_{i}", BIGINT) for i in range(words)]


def _element(words: Sequence[ColumnDef]) -> Expr:
    """The lift that is the element with these words."""
    columns = tuple(Column(c.name, c.type, c.nullable) for c in words)
    return columns[0] if len(columns) == 1 else Call(WORDS, columns, BIGINT, False)


def _value_queries(block: Block) -> list[Query]:
    """The distinct queries of distinct aggregates whose values are sent."""
    found: list[Query] = []
    for one in block.distinct:
        if one.kind not in SCANNED and not any(_same(one.query, other) for other in found):
            found.append(one.query)
    return found


def _same(one: Query, other: Query) -> bool:
    return replace(one, name="") == replace(other, name="")


def _values(block: Block, query: Query) -> Piece:
    """The values of the distinct aggregates over a query: each once, or, if an aggregate counts them, a bag."""
    counted = any(counts_values(one.kind) and _same(one.query, query) for one in block.distinct)
    columns = _group_columns(query)
    return Piece(tuple(columns), Block("bag" if counted else "groups", query, tuple(_group_outputs(query, columns))))


def _names(block: Block, results: Sequence[Result]) -> list[str]:
    queries = (block.query, *(one.query for one in block.distinct))
    return [*(v for query in queries for v in query.variables), *(r.name for r in results)]


def _group_columns(query: Query) -> list[ColumnDef]:
    """A column per free variable, of its type. A variable of a default row may be NULL even if its column is not."""
    found = []
    for i, variable in enumerate(query.free):
        exprs = [
            (expr, expr.nullable or variable in atom.opened)
            for atom in query.atoms
            for name, expr in zip(atom.variables, atom.columns, strict=True)
            if name == variable
        ]
        found.append(ColumnDef(f"g{i + 1}", exprs[0][0].type, all(nullable for _, nullable in exprs)))
    return found


def _group_outputs(query: Query, columns: Sequence[ColumnDef]) -> list[Output]:
    return [Output(c.name, Column(v, c.type, c.nullable)) for v, c in zip(query.free, columns, strict=True)]


def _atom(table: str, variables: tuple[str, ...], columns: Sequence[ColumnDef]) -> Atom:
    return Atom(table, table, variables, tuple(Column(c.name, c.type, c.nullable) for c in columns))
