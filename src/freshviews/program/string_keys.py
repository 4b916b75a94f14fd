"""Which key columns of a program's views may hold codes of strings.

Nothing in a program says the type of a view's column, and some expressions name columns with another type than theirs.
So this follows where values flow: a column of a view, and a variable, may hold a string if a value of type STRING, or
another such column or variable, may come to be there. The order of statements is not looked at, and variables of one
name count as one; so more columns may be found than hold strings, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from freshviews.expr.nodes import Column, Expr
from freshviews.program.program import Program
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Changed,
    Clear,
    Cross,
    Emit,
    Enter,
    Exists,
    Forget,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)
from freshviews.program.structure import visit

Place = str | tuple[str, int]
"""A variable, or a column of a view."""


def string_keys(program: Program) -> dict[str, tuple[int, ...]]:
    """By view, the positions of its key that may hold strings."""
    found: set[Place] = {
        (view.name, len(view.prefix) + i)
        for view in program.stores
        for i, order in enumerate(view.ordered)
        if order.type.name == "STRING"
    }
    flows: dict[Place, set[Place]] = {}
    for one, other in _flows(program):
        flows.setdefault(one, set()).add(other)
        flows.setdefault(other, set()).add(one)
    for name, expr in _values(program):
        if expr.type.name == "STRING":
            found.add(name)
    waiting = list(found)
    while waiting:
        for place in flows.get(waiting.pop(), ()):
            if place not in found:
                found.add(place)
                waiting.append(place)
    return {view.name: tuple(i for i in range(len(view.key)) if (view.name, i) in found) for view in program.stores}


def _bodies(program: Program) -> Iterator[Body]:
    for trigger in program.triggers:
        yield trigger.body
    yield from program.result.bodies
    yield program.upkeep.statements
    if program.balancing is not None:
        yield program.balancing.recompute
        for partition in program.balancing.partitions:
            yield partition.rise
            yield partition.sink
        for procedure in program.balancing.procedures:
            yield procedure.body


def _values(program: Program) -> Iterator[tuple[str, Expr]]:
    """Variables and the expressions that they take their values from."""
    for trigger in program.triggers:
        for parameter in trigger.parameters:
            yield parameter.name, parameter.expr
    for body in _bodies(program):
        for statement in visit(body):
            if isinstance(statement, Let):
                yield statement.variable, statement.expr


def _flows(program: Program) -> Iterator[tuple[Place, Place]]:
    """Pairs of places of which one may take its value from the other."""
    for name, expr in _values(program):
        if isinstance(expr, Column):
            yield name, expr.name
    for view in program.stores:
        yield from _named(view.name, view.key)
    views: dict[str, set[str]] = {}
    statements = [statement for body in _bodies(program) for statement in visit(body)]
    for statement in statements:
        if isinstance(statement, Add | Lookup | Loop) and statement.alias:
            views.setdefault(statement.alias, set()).add(statement.view)
    for statement in statements:
        if isinstance(statement, Top | Beside):
            for name in views.get(statement.alias, ()):
                yield from _named(name, statement.key)
                if isinstance(statement, Beside):
                    yield from ((variable, (name, place)) for place, variable in statement.other)
        yield from _of_statement(program, statement)
    for join in program.upkeep.joins:
        for atom in join.rule.atoms:
            yield from _named(atom.relation, atom.variables)
        edited = {view: len(program.view(view).key) for view, _ in join.edits}
        for of, edit in join.edits:
            yield from (((of, i), (edit, i)) for i in range(edited[of]))
    if program.balancing is not None:
        for partition in program.balancing.partitions:
            for i, variable in enumerate(partition.value):
                yield variable, (partition.heavy, i)
                yield variable, (partition.view, partition.by[i])


def _of_statement(program: Program, statement: Statement) -> Iterator[tuple[Place, Place]]:
    match statement:
        case Add(view, key) | Lookup(view, key) | Loop(view, key) | Balance(view, key):
            yield from _named(view, key)
        case Exists(view, key, bound):
            yield from ((variable, (view, place)) for variable, place in zip(key, bound, strict=True))
        case Scan(view, key, source=source, within=within):
            yield from _named(view, key)
            yield from _named(source, within)
        case Cross(view, within, point=point):
            yield from _named(view, (*within, point))
        case RangeLoop(rows, key):
            yield from _named(rows.view, (*rows.prefix, *key))
        case RangeSum(rows=rows):
            yield from _named(rows.view, rows.prefix)
        case Leap(cursors):
            orders = {trie.name: trie for trie in program.upkeep.tries}
            for cursor in cursors:
                trie = orders[cursor.trie]
                yield from ((v, (trie.view, trie.order[i])) for i, v in enumerate(cursor.key))
        case Perform(procedure, arguments):
            assert program.balancing is not None
            yield from zip(program.balancing.procedure(procedure).parameters, arguments, strict=True)
        case Renumber(places, start, key):
            yield from _named(places.view, start)
            yield from _named(places.view, key)
        case Top() | Beside() | Let():
            pass
        case If() | Smaller() | Sum() | Into() | Tally() | Enter() | Leave() | Forget() | Clear() | Changed() | Emit():
            pass
        case _:
            assert_never(statement)


def _named(view: str, key: tuple[str, ...]) -> Iterator[tuple[Place, Place]]:
    return ((variable, (view, place)) for place, variable in enumerate(key))
