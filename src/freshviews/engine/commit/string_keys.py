"""Finds the key columns of stored views that may hold codes of strings, by following values through a program.

``engine.commit.collection``, which frees the codes of unused strings, keeps the codes in these columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.expr.nodes import Column, Expr
from freshviews.program.program import Program
from freshviews.program.roles import Part, Role
from freshviews.program.statements import Let, Perform
from freshviews.program.structure import columns, uses, visit

Place = str | tuple[str, int]
"""A variable, or a column of a view."""


def string_keys(program: Program) -> dict[str, tuple[int, ...]]:
    """By view, the positions of its key columns that may hold strings.

    A program does not declare the types of a view's columns. So this module follows the flow of values: a column may
    hold a string if it may get a STRING, or a value of a column that may hold a string. The order of statements is
    ignored, and variables of the same name count as one. So the result may have too many columns, but never too few.
    """
    found: set[Place] = {
        (view.name, len(view.prefix) + i)
        for view in program.stores
        for i, order in enumerate(view.ordered)
        if order.type.is_text
    }
    flows: dict[Place, set[Place]] = {}
    for one, other in _flows(program):
        flows.setdefault(one, set()).add(other)
        flows.setdefault(other, set()).add(one)
    for name, expr in _values(program):
        if expr.type.is_text:
            found.add(name)
    waiting = list(found)
    while waiting:
        for place in flows.get(waiting.pop(), ()):
            if place not in found:
                found.add(place)
                waiting.append(place)
    return {view.name: tuple(i for i in range(len(view.key)) if (view.name, i) in found) for view in program.stores}


def _values(program: Program) -> Iterator[tuple[str, Expr]]:
    """Variables and the expressions that give their values."""
    for trigger in program.triggers:
        for parameter in trigger.parameters:
            yield parameter.name, parameter.expr
    for body in program.bodies:
        for statement in visit(body):
            if isinstance(statement, Let):
                yield statement.variable, statement.expr


def _flows(program: Program) -> Iterator[tuple[Place, Place]]:
    """Pairs of places between which values may flow, in either direction."""
    for name, expr in _values(program):
        if isinstance(expr, Column):
            yield name, expr.name
    for view in program.stores:
        yield from _named(view.name, view.key)
    statements = [statement for body in program.bodies for statement in visit(body)]
    views: dict[str, set[str]] = {}
    for statement in statements:
        found = uses(statement)
        for alias in found.rows:
            views.setdefault(alias, set()).update((*found.views, *found.changes))
    tries = {trie.name: trie for trie in program.upkeep.tries}

    def place(named: Part, of: str, column: int) -> Iterator[Place]:
        if named.role in (Role.ROW, Role.UPDATED):
            yield from ((view, column) for view in views.get(of, ()))
        elif named.role is Role.TRIE:
            yield tries[of].view, tries[of].order[column]
        else:
            yield of, column

    for statement in statements:
        for variable, named, of, column in columns(statement):
            yield from ((variable, one) for one in place(named, of, column))
        if isinstance(statement, Perform):
            assert program.balancing is not None
            parameters = program.balancing.procedure(statement.procedure).parameters
            yield from zip(parameters, statement.arguments, strict=True)
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


def _named(view: str, key: tuple[str, ...]) -> Iterator[tuple[Place, Place]]:
    return ((variable, (view, place)) for place, variable in enumerate(key))
