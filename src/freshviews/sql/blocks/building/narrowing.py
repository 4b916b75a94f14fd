"""Limits a view of row numbers to the first rows, if the numbers are compared only with constants.

``SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) n FROM t) WHERE n <= 3``, before and after::

    v#1(id, g, x, row_number)    all rows with their numbers            v reads v#1 where row_number <= 3
    v#1(id, g, x)                the first 3 rows of each group         v reads v#1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.query.block import EVERY, Block
from freshviews.query.query import Atom, Query

_OPPOSITE = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}

Places = tuple[int, int]
"""A range of numbers: the first, and the one after the last."""


def narrowed(views: Sequence[ViewDef]) -> tuple[ViewDef, ...]:
    """The views of a statement, the view itself last, with views of numbered rows cut to the places that are read."""
    made = {view.name: view for view in views}
    for name in [view.name for view in views[:-1] if _number_of(view) is not None]:
        readers = [(block, atom) for view in made.values() for block, atom in _readings(view, name)]
        if readers:
            _narrow(made, name, readers)
    return tuple(made.values())


def _number_of(view: ViewDef) -> str | None:
    """The column of row numbers of an internal view; None if it has none."""
    limit = view.blocks[0].limit if len(view.blocks) == 1 else None
    if limit is None or not limit.number:
        return None
    return next(o.name for o in view.blocks[0].outputs if isinstance(o.expr, Column) and o.expr.name == limit.number)


def _queries(block: Block) -> Iterator[Query]:
    yield block.query
    yield from (one.query for one in block.distinct)


def _readings(view: ViewDef, name: str) -> Iterator[tuple[Query, Atom]]:
    """The atoms of a view that read a relation, with their queries."""
    for block in view.blocks:
        for query in _queries(block):
            yield from ((query, atom) for atom in query.occurrences if atom.relation == name)


def _narrow(made: dict[str, ViewDef], name: str, readers: Sequence[tuple[Query, Atom]]) -> None:
    view, number = made[name], _number_of(made[name])
    assert number is not None
    ranges = [_places_of(atom.filters, number) for _, atom in readers]
    first, end = min(one[0] for one in ranges), max(one[1] for one in ranges)
    (block,) = view.blocks
    assert block.limit is not None
    limit = replace(block.limit, limit=max(end - 1, 0))
    unread = all(one == (first, end) for one in ranges) and not any(_reads(*one, number) for one in readers)
    if unread and (first == 1 or not limit.ranks):
        limit = replace(limit, number="", offset=first - 1, limit=max(end - first, 0))
        outputs = tuple(one for one in block.outputs if one.name != number)
        columns = tuple(one for one in view.columns if one.name != number)
        view, block = replace(view, columns=columns), replace(block, outputs=outputs)
        for other in made.values():
            made[other.name] = replace(other, blocks=tuple(_without(one, name, number) for one in other.blocks))
    made[name] = replace(view, blocks=(replace(block, limit=limit),))


def _places_of(filters: Sequence[Expr], number: str) -> Places:
    """The range of numbers that passes the filters."""
    first, end = 1, EVERY + 1
    for op, value in (one for one in (_bound(part, number) for part in filters) if one is not None):
        if op in ("gt", "ge", "eq"):
            first = max(first, value + (op == "gt"))
        if op in ("lt", "le", "eq"):
            end = min(end, value + (op != "lt"))
    return min(first, EVERY + 1), end


def _bound(part: Expr, number: str) -> tuple[str, int] | None:
    """The operation and the value of a comparison of the number with a constant; None for another predicate."""
    if not isinstance(part, Call) or part.op not in _OPPOSITE:
        return None
    left, right = part.args
    for own, other, op in ((left, right, part.op), (right, left, _OPPOSITE[part.op])):
        if isinstance(own, Column) and own.name == number and isinstance(other, Literal):
            value = other.value
            return (op, value) if type(value) is int else None
    return None


def _reads(query: Query, atom: Atom, number: str) -> bool:
    """True if an atom reads the number other than in comparisons with constants."""
    lifts = (lift.expr for one in query.aggregates for lift in one.lifts if lift.atom == atom.name)
    filters = (one for one in atom.filters if _bound(one, number) is None)
    return any(number in columns_of(expr) for expr in (*atom.columns, *lifts, *filters))


def _without(block: Block, name: str, number: str) -> Block:
    """A block without comparisons of the number."""

    def atoms(some: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple(
            replace(one, filters=tuple(f for f in one.filters if _bound(f, number) is None))
            if one.relation == name
            else one
            for one in some
        )

    def query(one: Query) -> Query:
        return replace(one, atoms=atoms(one.atoms), negated=atoms(one.negated))

    distinct = tuple(replace(one, query=query(one.query)) for one in block.distinct)
    return replace(block, query=query(block.query), distinct=distinct)
