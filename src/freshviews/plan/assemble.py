"""A block's program: the main query's, with the distinct aggregates hung on it.

MIN, MAX, COUNT(DISTINCT) and SUM(DISTINCT) ask which argument values a group has, whatever their number. For
each, a view ``D[group, argument]`` counts derivations, kept by the same strategy; where a row of ``D`` appears or
vanishes, the group's component changes. So it is for MIN_BY and MAX_BY, whose arguments are pairs, and for BIT_AND and
BIT_OR. These read the ends of an order kept over ``D``, or folds of its subtrees, so that a delete costs a search::

    D[g, x] += m
        appears:  Q[g] += (least#n: 1)
                  Q[g].least = min of D[g]
        vanishes: Q[g] += (least#n: -1)
                  Q[g].least = min of D[g]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.program.nodes import (
    Add,
    Clear,
    Component,
    Exists,
    Leap,
    Lookup,
    Loop,
    Monomial,
    Program,
    Smaller,
    Statement,
    Value,
    View,
)
from freshviews.program.order import Order, Scan
from freshviews.program.rewrite import transform
from freshviews.query.block import FOLDED, SCANNED, Block, DistinctAggregate
from freshviews.query.query import Query

Strategy = Callable[[Query], Program]


def number_of(name: str) -> str:
    """The component that counts the distinct values behind a distinct aggregate."""
    return name + "#n"


def assemble(block: Block, strategy: Strategy) -> Program:
    """The program of a block whose result is held in a view."""
    main = strategy(block.query)
    if not block.distinct:
        return main
    assert main.output is not None
    result = main.view(main.output)
    extra = tuple(c for d in block.distinct for c in _components(d))
    result = replace(result, components=(*result.components, *extra))
    views = [result if v.name == result.name else v for v in main.views]
    triggers = list(main.triggers)
    tries, evaluate = list(main.tries), list(main.evaluate)
    scratch, traced = list(main.scratch), list(main.traced)
    for alike in _alike(block.distinct):
        hung = _hang(alike, strategy(alike[0].query), result)
        views[:0] = hung.views
        triggers.extend(hung.triggers)
        tries.extend(hung.tries)
        evaluate.extend(hung.evaluate)
        traced.extend(hung.traced)
        scratch.extend(hung.scratch)
    return replace(
        main,
        views=tuple(views),
        triggers=tuple(triggers),
        tries=tuple(tries),
        evaluate=tuple(evaluate),
        traced=tuple(traced),
        scratch=tuple(scratch),
    )


def _alike(aggregates: tuple[DistinctAggregate, ...]) -> list[tuple[DistinctAggregate, ...]]:
    """The distinct aggregates, those over the same values together: MIN(x) and COUNT(DISTINCT x) share ``D``."""
    groups: dict[Query, list[DistinctAggregate]] = {}
    for aggregate in aggregates:
        groups.setdefault(replace(aggregate.query, name=""), []).append(aggregate)
    return [tuple(group) for group in groups.values()]


def _components(distinct: DistinctAggregate) -> tuple[Component, ...]:
    number = Component(number_of(distinct.name), "integer")
    if distinct.kind == "count":
        return (Component(distinct.name, "integer"),)
    return (Component(distinct.name, distinct.ring if distinct.kind == "sum" else "integer"), number)


def _hang(alike: tuple[DistinctAggregate, ...], program: Program, result: View) -> Program:
    """The program of distinct aggregates over the same values, its root's appear and vanish changing the
    result."""
    root = program.output
    assert root is not None
    names = {view.name: f"{alike[0].name}_{view.name}" for view in (*program.views, *program.scratch)}
    tries = {trie.name: f"{alike[0].name}_{trie.name}" for trie in program.tries}
    traces = {one.derivations: f"{one.derivations}_{alike[0].name}" for one in program.traced}

    def effects(source: str, key: tuple[str, ...], sign: int) -> tuple[Statement, ...]:
        return tuple(s for distinct in alike for s in _effect(distinct, source, result, key, sign))

    def change(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case Lookup() | Loop() | Exists() | Clear():
                return (replace(statement, view=names[statement.view]),)
            case Leap(cursors=cursors):
                return (replace(statement, cursors=tuple(replace(c, trie=tries[c.trie]) for c in cursors)),)
            case Smaller(left=left, right=right):
                return (
                    Smaller(
                        replace(left, view=names[left.view]),
                        replace(right, view=names[right.view]),
                    ),
                )
            case Add(view=view, key=key) if view == root:
                return (
                    replace(
                        statement,
                        view=names[view],
                        appear=effects(names[view], key, 1),
                        vanish=effects(names[view], key, -1),
                    ),
                )
            case Add():
                return (replace(statement, view=names[statement.view]),)
            case _:
                return (statement,)

    views = []
    for view in program.views:
        if view.name == root:
            scanned = [d for d in alike if d.kind in SCANNED]
            ordered = tuple(map(Order, scanned[0].arguments)) if scanned else ()
            folds = tuple(kind for kind in FOLDED if any(d.kind == kind for d in alike))
            what = f"values of {', '.join(d.name for d in alike)} by group"
            view = replace(view, journal=False, ordered=ordered, folds=folds, definition=what)
        views.append(replace(view, name=names[view.name]))
    triggers = tuple(
        replace(t, relation=traces.get(t.relation, t.relation), body=transform(t.body, change))
        for t in program.triggers
    )
    return replace(
        program,
        views=tuple(views),
        triggers=triggers,
        tries=tuple(replace(t, name=tries[t.name], view=names[t.view]) for t in program.tries),
        evaluate=transform(program.evaluate, change),
        traced=tuple(traced.renamed({**names, **traces}) for traced in program.traced),
        scratch=tuple(replace(view, name=names[view.name]) for view in program.scratch),
    )


def _effect(
    distinct: DistinctAggregate, source: str, result: View, key: tuple[str, ...], sign: int
) -> tuple[Statement, ...]:
    group = key[: len(result.key)]
    number = Monomial((), sign)
    if distinct.kind == "count":
        return (Add(result.name, group, (distinct.name,), (number,)),)
    counted = number_of(distinct.name)
    if distinct.kind == "sum":
        amount = Monomial((Value(key[-1], distinct.ring),), sign)
        return (Add(result.name, group, (distinct.name, counted), (amount, number)),)
    return (
        Add(result.name, group, (counted,), (number,)),
        Scan(result.name, group, distinct.name, source, distinct.kind),
    )
