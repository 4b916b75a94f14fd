"""Makes internal views store only the part of a text that other views read.

The view v reads the internal view v#1, before and after::

    v#1(id, phone)                  the customers above the average     v reads substring(phone, 1, 2) of v#1
    v#1(id, phone_part)             with substring(phone, 1, 2)         v reads phone_part of v#1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from freshviews.catalog.definitions import ColumnDef, ViewDef
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of, substitute
from freshviews.expr.ops import TEXT_OPS
from freshviews.query.block import Block, Output
from freshviews.query.query import Atom, Query
from freshviews.sql.expressions.build import replaced
from freshviews.types import STRING


def with_parts(views: Sequence[ViewDef]) -> tuple[ViewDef, ...]:
    """The views of a statement, the view itself last, where internal views store only the parts that are read."""
    made = {view.name: view for view in views}
    ordered = {view.order.relation for view in views if view.order is not None}
    # Readers come after what they read, so a part moves down through all views between.
    for view in reversed(views[:-1]):
        if view.name not in ordered:
            read = _parts_read(made, view.name)
            for column in view.columns:
                _move(made, view.name, column, tuple(read.get(column.name, ())))
    return tuple(made.values())


def _parts_read(made: Mapping[str, ViewDef], name: str) -> dict[str, dict[Expr, None]]:
    """The largest parts of each column of a view that others read, or the column itself."""
    found: dict[str, dict[Expr, None]] = {}
    for other in made.values():
        if name in other.inputs:
            for part in (part for expr in _exprs_over(other, name) for part in _parts_in(expr)):
                for column in columns_of(part):
                    found.setdefault(column, {})[part] = None
    return found


def _move(made: dict[str, ViewDef], name: str, column: ColumnDef, parts: tuple[Expr, ...]) -> None:
    """Replace a column by its one part that is read, if nothing else of it is read."""
    view = made[name]
    part = parts[0] if len(parts) == 1 else None
    place = _place_of(view, column) if isinstance(part, Call) else None
    if place is None or not isinstance(part, Call):
        return
    atom, variable = place
    (block,) = view.blocks
    query = block.query
    taken = {c.name.lower() for c in view.columns} | {v.lower() for one in query.occurrences for v in one.variables}
    wish = next(w for n in range(len(taken) + 1) if (w := f"{column.name}_part{n or ''}").lower() not in taken)

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(wish if one == variable else one for one in names)

    at = atom.variables.index(variable)
    cut = substitute(part, {column.name: atom.columns[at]})
    changed = replace(
        atom, variables=renamed(atom.variables), columns=(*atom.columns[:at], cut, *atom.columns[at + 1 :])
    )
    atoms = tuple(changed if one is atom else one for one in query.atoms)
    read = Column(wish, part.type, part.nullable)
    outputs = tuple(Output(wish, read) if one.name == column.name else one for one in block.outputs)
    columns = tuple(ColumnDef(wish, part.type, part.nullable) if one is column else one for one in view.columns)
    block = replace(block, query=replace(query, free=renamed(query.free), atoms=atoms), outputs=outputs)
    made[name] = replace(view, columns=columns, blocks=(block,))
    by = partial(_same, part, read)
    for other in made.values():
        if other.name != name and name in other.inputs:
            made[other.name] = replace(other, blocks=tuple(_with_expressions(one, name, by) for one in other.blocks))


def _same(part: Expr, read: Column, expr: Expr) -> Expr | None:
    return read if expr == part else None


def _place_of(view: ViewDef, column: ColumnDef) -> tuple[Atom, str] | None:
    """The one ordinary atom with a column of a view, and its variable; None if the view does more than pass it on."""
    if column.type != STRING or len(view.blocks) != 1 or view.combined is not None:
        return None
    (block,) = view.blocks
    if block.kind != "bag" or block.limit is not None or block.gathering is not None:
        return None
    named = [one.expr.name for one in block.outputs if one.name == column.name and isinstance(one.expr, Column)]
    if len(named) != 1 or sum(named[0] in columns_of(one.expr) for one in block.outputs) != 1:
        return None
    (variable,) = named
    query, selection = block.query, block.selection
    if selection is not None and variable in (*selection.group, selection.point, selection.limit):
        return None
    lifts = [lift.expr for one in query.aggregates for lift in one.lifts if lift.atom is None]
    having = () if block.having is None else (block.having,)
    if any(variable in columns_of(expr) for expr in (*query.conditions, *lifts, *having)):
        return None
    atoms = [one for one in query.occurrences if variable in one.variables]
    if len(atoms) != 1 or not query.is_ordinary(atoms[0]) or atoms[0].variables.count(variable) != 1:
        return None
    return (atoms[0], variable) if isinstance(atoms[0].columns[atoms[0].variables.index(variable)], Column) else None


def _exprs_over(view: ViewDef, name: str) -> Iterator[Expr]:
    """The expressions of a view's atoms over a relation."""
    for block in view.blocks:
        for query in (block.query, *(one.query for one in block.distinct)):
            for atom in query.occurrences:
                if atom.relation == name:
                    yield from (*atom.columns, *atom.filters)
                    lifts = (lift for one in query.aggregates for lift in one.lifts)
                    yield from (lift.expr for lift in lifts if lift.atom == atom.name)


def _parts_in(expr: Expr) -> Iterator[Expr]:
    """The largest parts of columns in an expression."""
    left = [expr]
    while left:
        node = left.pop()
        if _is_part(node):
            yield node
        elif isinstance(node, Call):
            left.extend(reversed(node.args))


def _is_part(expr: Expr) -> bool:
    """True for a column, and for an operation of ``TEXT_OPS`` on it with constants."""
    if isinstance(expr, Call):
        rest_is_constant = all(isinstance(arg, Literal) and arg.value is not None for arg in expr.args[1:])
        return expr.op in TEXT_OPS and rest_is_constant and _is_part(expr.args[0])
    return isinstance(expr, Column)


def _with_expressions(block: Block, name: str, by: partial[Expr | None]) -> Block:
    """The block with ``by`` applied to its expressions over a relation."""

    def query(one: Query) -> Query:
        names = {atom.name for atom in one.occurrences if atom.relation == name}

        def atom(it: Atom) -> Atom:
            if it.name not in names:
                return it
            columns, filters = (tuple(replaced(e, by) for e in exprs) for exprs in (it.columns, it.filters))
            return replace(it, columns=columns, filters=filters)

        aggregates = tuple(
            replace(
                a, lifts=tuple(replace(i, expr=replaced(i.expr, by)) if i.atom in names else i for i in a.lifts)
            )
            for a in one.aggregates
        )
        atoms, negated = tuple(map(atom, one.atoms)), tuple(map(atom, one.negated))
        return replace(one, atoms=atoms, negated=negated, aggregates=aggregates)

    distinct = tuple(replace(one, query=query(one.query)) for one in block.distinct)
    return replace(block, query=query(block.query), distinct=distinct)
