"""Bags of atoms whose rows are kept by a strategy of their own, below change propagation without joins.

The program of a bag holds its rows in a view. That view's place is taken by a node of the join tree: wherever the
program adds to its result, the payload is summed up and handed to the node, as an update of the bag::

    Q[v1, v2] += m * s          becomes          delta = sum: delta += m * s
                                                 if delta: let a = v1, b = v2; what the node does with (a, b) += delta

An update of an atom that guards the bag, which has the atom's rows projected, once each, is counted first::

    on R(a, b) += m:
        R_guard_rows[a, b] += m
            appears: R_guard_keys[a] += 1
                appears: what the program does with R_guard(a) += 1
            vanishes: R_guard_keys[a] += -1
                vanishes: what the program does with R_guard(a) += -1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan.leaves import Carrier
from freshviews.program.nodes import (
    COUNT,
    MULTIPLICITY,
    Add,
    Component,
    Exists,
    Into,
    Let,
    Lookup,
    Loop,
    Monomial,
    Parameter,
    Program,
    Smaller,
    Statement,
    Sum,
    Trigger,
    View,
)
from freshviews.program.rewrite import at_multiplicity, rename, transform, visit
from freshviews.query.query import Atom
from freshviews.types import BIGINT

Handle = Callable[[tuple[Carrier, ...]], tuple[Statement, ...]]


def hung(
    program: Program, bag: str, guards: Mapping[str, Atom], handle: Handle
) -> tuple[tuple[View, ...], tuple[Trigger, ...]]:
    """Views and triggers of a bag's program, its names marked by the bag's; ``handle`` writes what is done with a
    change of a row, whose variables are bound then. ``guards``: the atoms behind relations that are guards.
    PlanError where the program does not hold the bag in a view that it only adds to."""
    if program.output is None or any(reads(t.body, program.output) for t in program.triggers):
        raise PlanError(f"{program.name}: {program.strategy} cannot keep a bag, as it reads its result")
    views = {view.name: f"{bag}_{view.name}" for view in program.views}
    components = program.view(program.output).components
    kept = tuple(replace(v, name=views[v.name]) for v in program.views if v.name != program.output)
    triggers: list[Trigger] = []
    for one in program.triggers:
        made = _trigger(program, one, bag, views, components, handle)
        if one.relation in guards:
            more, made = _guarded(made, bag, one.relation, guards[one.relation])
            kept += more
        triggers.append(made)
    return kept, tuple(triggers)


def reads(body: tuple[Statement, ...], view: str) -> bool:
    """Whether a body looks into a view."""
    return any(isinstance(s, Lookup | Loop | Exists) and s.view == view for s in visit(body))


def _guarded(trigger: Trigger, bag: str, guard: str, source: Atom) -> tuple[tuple[View, ...], Trigger]:
    """The trigger of a guard as one of the atom whose projection it is, and the views that count."""
    key = {p.expr.name: p.name for p in trigger.parameters if isinstance(p.expr, Column)}
    names = tuple(key.get(v, f"{bag}_{guard}_{v}") for v in source.variables)
    count = (Component(COUNT, "integer"),)
    rows = View(f"{bag}_{guard}_rows", source.variables, count, definition=f"{source.name}, which guards {bag}")
    views: tuple[View, ...] = (rows,)
    comes, goes = at_multiplicity(trigger.body, 1), at_multiplicity(trigger.body, -1)
    if len(key) < len(source.variables):
        projected = View(f"{bag}_{guard}_keys", tuple(key), count, definition=f"projection of {source.name}")
        views = (*views, projected)
        place = tuple(key.values())
        comes = (Add(projected.name, place, (COUNT,), (Monomial(()),), comes),)
        goes = (Add(projected.name, place, (COUNT,), (Monomial((), -1),), (), goes),)
    body = (Add(rows.name, names, (COUNT,), (Monomial((MULTIPLICITY,)),), comes, goes),)
    parameters = tuple(Parameter(name, column) for name, column in zip(names, source.columns, strict=True))
    return views, Trigger(source.relation, parameters, source.filters, body)


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
