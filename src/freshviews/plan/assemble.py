"""The program of a block: that of its main query, with its distinct aggregates attached.

MIN, MAX, COUNT(DISTINCT) and SUM(DISTINCT) depend on which argument values a group has, not on how often. For each of
them a view ``D[group, argument]`` counts derivations, maintained by the same strategy. When a row of ``D`` appears or
vanishes, the component of the group changes. MIN_BY and MAX_BY, whose arguments are pairs, and BIT_AND and BIT_OR work
the same way. These and MIN and MAX read the ends of an ordered index over ``D``, or folds of its subtrees, so that a
delete costs a search. ``MIN(x)``, by group g::

    D[g, x] += m
        appears:  Q[g] += (least#n: 1)
                  Q[g].least = min of D[g]
        vanishes: Q[g] += (least#n: -1)
                  Q[g].least = min of D[g]

A block with several grouping sets has one ``D``, of the finest grouping: see ``plan.grouping_sets``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from freshviews.plan.grouping_sets import Level, Store, below_of, by_sets, for_each, levels_of, stores_of
from freshviews.plan.naming import Namer, chosen_names, names_in
from freshviews.plan.strategy import Request
from freshviews.program.payload import COUNT, Component, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.rewrite import Renaming, renamed, transform
from freshviews.program.statements import Add, Balance, Scan, Statement
from freshviews.program.upkeep import Evaluated, over, together
from freshviews.program.views import Order, View
from freshviews.query.block import FOLDED, SCANNED, Block, DistinctAggregate
from freshviews.query.query import Query

_ENDS = ("min", "max")
_SHARED = (*_ENDS, *FOLDED)
"""Aggregates that can be answered from a prefix of the index key."""
ROWS = "rows"
"""The component of a store that counts the rows of a finer store."""


def number_of(name: str) -> str:
    """The component that counts the distinct values of a distinct aggregate."""
    return name + "#n"


def assemble(block: Block, plan: Callable[[Query], Program], in_z: bool = False) -> Program:
    """The program of a block whose result is held in a view. ``plan`` makes the program of a query. ``in_z``:
    multiplicities may be negative."""
    main = plan(block.query)
    if block.sets:
        main = by_sets(main, block)
    if not block.distinct:
        return main
    assert isinstance(main.result, Held)
    result = main.view(main.result.view)
    extra = tuple(c for d in block.distinct for c in _components(d))
    result = replace(result, components=(*result.components, *extra))
    views = [result if v.name == result.name else v for v in main.views]
    triggers = list(main.triggers)
    upkeep = main.upkeep
    taken = {*names_in(main), *chosen_names(block.query)}
    for alike in _alike(block.distinct):
        shared = not in_z and all(d.kind in _SHARED for d in alike)
        store = stores_of(levels_of(block), len(block.query.free), not shared)
        part = _attached(alike, plan(alike[0].query), result, store, in_z, taken)
        taken.update(names_in(part))
        views[:0] = part.views
        triggers.extend(part.triggers)
        upkeep = together(upkeep, part.upkeep)
    return replace(main, views=tuple(views), triggers=tuple(triggers), upkeep=upkeep)


def assembled(plan: Callable[[Query], Program]) -> Callable[[Request], Program]:
    """The ``plan`` of a strategy that plans one query after the other, and reads no options."""
    return lambda request: assemble(request.block, plan, bool(request.negative))


def _alike(aggregates: tuple[DistinctAggregate, ...]) -> list[tuple[DistinctAggregate, ...]]:
    """The distinct aggregates, grouped by the values that they read: MIN(x) and COUNT(DISTINCT x) share ``D``."""
    groups: dict[Query, list[DistinctAggregate]] = {}
    for aggregate in aggregates:
        groups.setdefault(replace(aggregate.query, name=""), []).append(aggregate)
    return [tuple(group) for group in groups.values()]


def _components(distinct: DistinctAggregate) -> tuple[Component, ...]:
    number = Component(number_of(distinct.name), "integer")
    if distinct.kind == "count":
        return (Component(distinct.name, "integer"),)
    return (Component(distinct.name, distinct.ring if distinct.kind == "sum" else "integer"), number)


def _attached(
    alike: tuple[DistinctAggregate, ...], program: Program, result: View, store: Store, in_z: bool, taken: Iterable[str]
) -> Program:
    """The program of distinct aggregates over the same values, whose result is changed where a row of the root appears
    or vanishes. No new name is one of ``taken``."""
    assert isinstance(program.result, Held)
    root = program.result.view
    free = len(store.group)
    first = alike[0].name
    namer = Namer(alike[0].query, (*taken, *names_in(program)))
    names = {view.name: namer.view(f"{first}_{view.name}") for view in program.stores}
    tries = {t.name: names.get(t.name) or namer.fresh(f"{first}_{t.name}") for t in program.upkeep.tries}
    traces = {one.derivations: f"{one.derivations}_{first}" for one in program.upkeep.joins}
    stores = {one: namer.view(f"{names[root]}_{i}") for i, one in enumerate(below_of(store), 2)} | {store: names[root]}

    def effects(store: Store, key: tuple[str, ...], sign: int) -> tuple[Statement, ...]:
        def of_level(level: Level, group: tuple[str, ...]) -> Iterator[Statement]:
            within = tuple(key[i] for i in store.group[: len(level.grouped)])
            for distinct in alike:
                yield from _effect(distinct, result.name, group, (stores[store], within), key[-1], sign)

        body = list(for_each((*store.whole, *store.shorter), key[:free], of_level))
        if not in_z:
            body += (add(one, key, Add("", (), (ROWS,), (Monomial((), sign),)), (sign,)) for one in store.coarser)
        return tuple(body)

    def add(store: Store, key: tuple[str, ...], made: Add, signs: tuple[int, ...] = (1, -1)) -> Add:
        # A store that counts rows of a finer one only gains rows where they appear, and only loses rows where they
        # vanish. With both branches in each, the code would double with every store of a chain.
        row = (*(key[i] for i in store.group), *key[free:])
        appear, vanish = (effects(store, key, sign) if sign in signs else () for sign in (1, -1))
        return replace(made, view=stores[store], key=row, appear=appear, vanish=vanish)

    to = Renaming(views=names, tries=tries)

    def change(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case Add(view=view, key=key) if view == root:
                below = below_of(store) if in_z else ()
                return tuple(add(one, key, statement) for one in (store, *below))
            case Balance():
                # The parts belong to the main program. Its stores have these names.
                return (statement,)
            case _:
                return (renamed(statement, to),)

    views: list[View] = []
    for view in program.views:
        if view.name == root:
            what = f"values of {', '.join(d.name for d in alike)} by group"
            number = Component(COUNT if in_z else ROWS, "integer")
            for one in below_of(store):
                key = (*(view.key[i] for i in one.group), *view.key[free:])
                coarser = View(stores[one], key, (number,), definition=f"{what}, of fewer variables")
                views.append(_in_order(coarser, one, alike))
            view = _in_order(replace(view, journal=False, definition=what), store, alike)
        views.append(replace(view, name=names[view.name]))
    triggers = tuple(
        replace(t, relation=traces.get(t.relation, t.relation), body=transform(t.body, change))
        for t in program.triggers
    )
    upkeep = over(program.upkeep, {**names, **traces}, tries)
    if isinstance(upkeep, Evaluated):
        upkeep = replace(upkeep, statements=transform(upkeep.statements, change))
    return replace(program, views=tuple(views), triggers=triggers, upkeep=upkeep)


def _in_order(view: View, store: Store, alike: tuple[DistinctAggregate, ...]) -> View:
    """The view of a store, ordered if an aggregate scans it, with the folds that aggregates read."""
    scanned = [d for d in alike if d.kind in SCANNED] if store.whole or store.shorter else []
    kinds = (*FOLDED, *_ENDS) if store.shorter else FOLDED
    folds = tuple(kind for kind in kinds if any(d.kind == kind for d in scanned))
    return replace(view, ordered=tuple(map(Order, scanned[0].arguments)) if scanned else (), folds=folds)


def _effect(
    distinct: DistinctAggregate,
    result: str,
    group: tuple[str, ...],
    source: tuple[str, tuple[str, ...]],
    value: str,
    sign: int,
) -> tuple[Statement, ...]:
    """The change of a group when a value appears or vanishes. ``source`` is a store, and the key of the group in it,
    which may be a prefix."""
    number = Monomial((), sign)
    if distinct.kind == "count":
        return (Add(result, group, (distinct.name,), (number,)),)
    counted = number_of(distinct.name)
    if distinct.kind == "sum":
        amount = Monomial((Value(value, distinct.ring),), sign)
        return (Add(result, group, (distinct.name, counted), (amount, number)),)
    return (
        Add(result, group, (counted,), (number,)),
        Scan(result, group, distinct.name, *source, distinct.kind),
    )
