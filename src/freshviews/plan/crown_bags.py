"""Bags of atoms whose rows are kept by a strategy of their own, below change propagation without joins.

The program of a bag holds its rows in a view. That view's place is taken by a node of the join tree: wherever the
program adds to its result, the payload is summed up and handed to the node, as an update of the bag::

    Q[v1, v2] += m * s          becomes          delta = sum: delta += m * s
                                                 if delta: let a = v1, b = v2; what the node does with (a, b) += delta
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.expr.nodes import Column
from freshviews.plan.leaves import Carrier
from freshviews.program.nodes import (
    COUNT,
    Add,
    Component,
    Exists,
    Into,
    Let,
    Lookup,
    Loop,
    Program,
    Smaller,
    Statement,
    Sum,
    Trigger,
    View,
)
from freshviews.program.rewrite import rename, transform, visit
from freshviews.types import BIGINT

Handle = Callable[[tuple[Carrier, ...]], tuple[Statement, ...]]


def hung(program: Program, bag: str, handle: Handle) -> tuple[tuple[View, ...], tuple[Trigger, ...]]:
    """Views and triggers of a bag's program, its names marked by the bag's; ``handle`` writes what is done with a
    change of a row, whose variables are bound then."""
    assert program.output is not None
    views = {view.name: f"{bag}_{view.name}" for view in program.views}
    components = program.view(program.output).components
    kept = tuple(replace(v, name=views[v.name]) for v in program.views if v.name != program.output)
    triggers = tuple(_trigger(program, t, bag, views, components, handle) for t in program.triggers)
    return kept, triggers


def _trigger(
    program: Program,
    trigger: Trigger,
    bag: str,
    views: dict[str, str],
    components: tuple[Component, ...],
    handle: Handle,
) -> Trigger:
    variables = {p.name for p in trigger.parameters}
    aliases: set[str] = set()
    for statement in visit(trigger.body):
        match statement:
            case Loop(key=key, alias=alias) | Lookup(key=key, alias=alias):
                variables.update(key)
                aliases.add(alias)
            case Let(variable=variable):
                variables.add(variable)
            case Sum(alias=alias):
                aliases.add(alias)
    names = {name: f"{bag}_{name}" for name in variables}
    body = rename(trigger.body, names, {alias: f"{bag}_{alias}" for alias in aliases})
    total = f"{bag}_delta"
    carrier = Carrier(total, frozenset(c.name for c in components if c.name != COUNT))

    def change(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case Add(view=view, key=key, payload=payload) if view == program.output:
                lets = (Let(v, Column(k, BIGINT)) for v, k in zip(program.free, key, strict=True))
                return (Sum(total, components, (Into(total, payload),), (*lets, *handle((carrier,)))),)
            case Add() | Lookup() | Loop() | Exists():
                return (replace(statement, view=views[statement.view]),)
            case Smaller(left=left, right=right):
                return (Smaller(replace(left, view=views[left.view]), replace(right, view=views[right.view])),)
            case _:
                return (statement,)

    parameters = tuple(replace(p, name=names[p.name]) for p in trigger.parameters)
    return Trigger(trigger.relation, parameters, trigger.filters, transform(body, change))
