"""Makes the program of a block (one SELECT): plans its main query, and adds aggregates over distinct values.

A view ``D[group, argument]`` counts rows for each group and value of an argument. For ``MIN(x)`` by group g, ``least``
is the minimum, and ``least#n`` counts the distinct values of the group::

    D[g, x] += m
        appears:  Q[g] += (least#n: 1)
                  Q[g].least = min of D[g]
        vanishes: Q[g] += (least#n: -1)
                  Q[g].least = min of D[g]

A percentile or MODE depends on how often a group has each value. So it is computed after every change of ``D``::

    Q[g] += (median#n: m)
    Q[g].median = percentile of D[g]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Protocol

from freshviews.expr.nodes import Call, Column, Expr
from freshviews.plan.grouping_sets import Level, Store, below_of, by_sets, for_each, levels_of, stores_of
from freshviews.plan.leaves import Carrier, product, result_view
from freshviews.plan.naming import RESULT, Namer, chosen_names, names_in
from freshviews.plan.strategy import Request
from freshviews.program.payload import COUNT, COUNTED, Component, Monomial, Value
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.rewrite import Renaming, renamed, with_statements
from freshviews.program.statements import Add, Balance, Body, If, Let, Scan, Statement
from freshviews.program.upkeep import combine_upkeep, upkeep_over
from freshviews.program.views import Order, View
from freshviews.query.block import FOLDED, MODES, SCANNED, Block, DistinctAggregate, argument_of_amount, counts_values
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN

_ENDS = ("min", "max")
_SHARED = (*_ENDS, *FOLDED)
"""Aggregates that can be answered from a prefix of the index key."""
AMOUNT = "@amount"
"""The variable that holds what a sum adds for distinct arguments. No column has its name."""
ROWS = "rows"
"""The component of a store that counts the rows of a finer store."""


Change = Callable[[tuple[Carrier, ...]], Body]
"""Writes how a row of a store, given as the product of carriers, changes its group."""


class Exclusion(Protocol):
    """Negated atoms of the query of a store, which the program of the store does not join."""

    @property
    def views(self) -> Sequence[View]:
        """The rows of the atoms."""

    def passing(self, key: Sequence[str], body: Body) -> Body:
        """The body, to run where no atom excludes the row with this key."""

    def triggers(self, store: View, change: Change, indexes: dict[str, set[tuple[int, ...]]]) -> Sequence[Trigger]:
        """The triggers of the atoms. The indexes of the store that they need are added to ``indexes``."""


Excluding = Callable[[Query, Sequence[Atom], Namer], Exclusion]
"""Makes the exclusion by some negated atoms of a query, all of whose variables are free."""


def number_of(name: str) -> str:
    """The component that counts the distinct values of a distinct aggregate."""
    return name + "#n"


@dataclass(frozen=True)
class _Values:
    """Distinct aggregates over the same values, and the query that counts these by group.

    ``brings``: groups appear and vanish with these values; if ``nullable``, NULL is one of them.
    """

    aggregates: tuple[DistinctAggregate, ...]
    query: Query
    brings: bool = False
    nullable: bool = False

    @property
    def counts(self) -> bool:
        """True if the aggregates depend on how often a group has each value."""
        return counts_values(self.aggregates[0].kind)


def assemble(
    block: Block,
    plan: Callable[[Query], Program],
    in_z: bool = False,
    joins_groups: bool = False,
    excluding: Excluding | None = None,
) -> Program:
    """The program of a block whose result is held in a view. ``plan`` makes the program of a query. ``in_z``:
    multiplicities may be negative. ``joins_groups``: the main query is joined even where its groups could come and go
    with their values. ``excluding``: how negated atoms are looked up where values change, if they can be.

    MIN, MAX, COUNT(DISTINCT) and SUM(DISTINCT) depend on which argument values a group has, not on how often it has
    them. For each of these aggregates a view ``D[group, argument]`` counts derivations. The strategy of the main query
    maintains ``D``. When a row of ``D`` appears or vanishes, the aggregate of the group changes. MIN_BY, MAX_BY,
    BIT_AND and BIT_OR work in the same way.

    MIN and MAX are read from an ordered index over ``D``, so a delete costs one search. For ``MIN(x)`` by group g, with
    ``least#n`` as the number of values of a group::

        D[g, x] += m
            appears:  Q[g] += (least#n: 1)
                      Q[g].least = min of D[g]
            vanishes: Q[g] += (least#n: -1)
                      Q[g].least = min of D[g]

    If a block has only such aggregates, and every derivation has a row in ``D``, the main query is not joined: a group
    exists while ``D`` has a row of the group. For ``COUNT(DISTINCT x)``, if x may be NULL, ``D`` also has rows with
    NULL::

        D[g, x] += m
            appears:  Q[g] += (count: 1)
                      if x is not NULL:
                          Q[g] += (number: 1)
            vanishes: the same with -1

    ``plan.delta.exclusion`` looks up some negated atoms when rows of ``D`` appear or vanish. A block with several
    grouping sets has one ``D``, of the finest grouping: see ``plan.grouping_sets``.
    """
    values = _values(block, joins_groups)
    if any(one.brings for one in values):
        groups = result_view(block.query)
        main = Program(block.query.name, block.query.free, (groups,), (), Held(RESULT, presence=not in_z))
    else:
        main = plan(block.query)
    if block.sets:
        main = by_sets(main, block)
    if not values:
        return main
    assert isinstance(main.result, Held)
    result = main.view(main.result.view)
    extra = tuple(c for d in block.distinct for c in components_of(d))
    result = replace(result, components=(*result.components, *extra))
    views = [result if v.name == result.name else v for v in main.views]
    triggers = list(main.triggers)
    taken = {*names_in(main), *chosen_names(block.query)}
    for one in values:
        shared = not in_z and all(d.kind in _SHARED for d in one.aggregates)
        store = stores_of(levels_of(block), len(block.query.free), not shared)
        late = () if excluding is None else _late(one)
        rest = replace(one.query, negated=tuple(atom for atom in one.query.negated if atom not in late))
        part = _attach_values(one, plan(rest), result, store, in_z, taken, excluding if late else None, late)
        if late:
            part = replace(part, bounds=_bounds(plan(one.query)))
        taken.update(names_in(part))
        views[:0] = part.views
        triggers.extend(part.triggers)
        if one.brings:
            main = replace(main, strategy=part.strategy, bounds=part.bounds)
        main = replace(main, upkeep=combine_upkeep(main.upkeep, part.upkeep))
    return replace(main, views=tuple(views), triggers=tuple(triggers))


def joined_queries(block: Block) -> tuple[Query, ...]:
    """The queries that ``assemble`` joins for a block: those of its distinct aggregates, and the main one unless its
    groups come and go with their values."""
    values = _values(block, False)
    main = () if any(one.brings for one in values) else (block.query,)
    return (*main, *(one.query for one in values))


def assembled(plan: Callable[[Query], Program]) -> Callable[[Request], Program]:
    """The ``plan`` of a strategy that plans one query after the other, and reads no options."""
    return lambda request: assemble(request.block, plan, bool(request.negative))


def _values(block: Block, joins_groups: bool) -> list[_Values]:
    """Groups the distinct aggregates by the values that they read: MIN(x) and COUNT(DISTINCT x) share ``D``, and so do
    percentiles of x. Values that bring the groups come first; there are none if ``joins_groups``, or if groups have
    components of their own. ``block.results`` names what is read of a group."""
    groups: dict[tuple[Query, bool, bool], list[DistinctAggregate]] = {}
    for aggregate in block.distinct:
        read = replace(aggregate.query, name=""), counts_values(aggregate.kind), aggregate.kind in MODES
        groups.setdefault(read, []).append(aggregate)
    found = [_Values(tuple(group), group[0].query) for group in groups.values()]
    shown = {component for result in block.results for component in result.components}
    if joins_groups or block.sets or not shown or not shown.issubset(d.name for d in block.distinct):
        return found
    bringing = [one for one in (_bringing_groups(block, one) for one in found) if one is not None]
    if not bringing:
        return found
    first = min(bringing, key=lambda one: one.nullable)
    return [first, *(one for one in found if one.aggregates != first.aggregates)]


def _bringing_groups(block: Block, values: _Values) -> _Values | None:
    """Marks the values as those that bring the groups; None if some derivation has no value, or they are counted."""
    if values.counts:
        return None
    main, of_values = block.query, values.query
    if (main.conditions, main.negated) != (of_values.conditions, of_values.negated):
        return None
    if [atom.name for atom in main.atoms] != [atom.name for atom in of_values.atoms]:
        return None
    atoms = []
    nullable = False
    arguments = of_values.free[len(main.free) :]
    for atom, other in zip(main.atoms, of_values.atoms, strict=True):
        more = [f for f in other.filters if f not in atom.filters]
        own = dict(zip(atom.variables, atom.columns, strict=True))
        columns = dict(zip(other.variables, other.columns, strict=True))
        if atom.relation != other.relation or any(columns.get(v) != column for v, column in own.items()):
            return None
        if any(v not in arguments or _is_shared(v, of_values) for v in columns if v not in own):
            return None
        if not all(_is_not_null(f, [columns[v] for v in arguments if v in columns]) for f in more):
            return None
        if atom.given is not None and other.given is None and not set(arguments).isdisjoint(atom.given):
            return None
        nullable = nullable or bool(more) or atom.given != other.given
        atoms.append(replace(other, filters=atom.filters, given=atom.given))
    if nullable and (len(arguments) > 1 or any(d.kind in SCANNED for d in values.aggregates)):
        return None
    return replace(values, query=replace(of_values, atoms=tuple(atoms)), brings=True, nullable=nullable)


def _is_shared(variable: str, query: Query) -> bool:
    """True if several atoms have the variable."""
    return sum(variable in atom.variables for atom in query.occurrences) > 1


def _is_not_null(condition: Expr, columns: list[Expr]) -> bool:
    """True if the condition says that one of the columns is not NULL."""
    return isinstance(condition, Call) and condition.op == "is_not_null" and condition.args[0] in columns


def _late(values: _Values) -> tuple[Atom, ...]:
    """The negated atoms that can be looked up where values change. Empty if aggregates scan the values of a group: they
    would meet excluded values."""
    if not values.brings or any(d.kind in SCANNED for d in values.aggregates):
        return ()
    return tuple(atom for atom in values.query.negated if set(atom.variables).issubset(values.query.free))


def _bounds(joined: Program) -> tuple[tuple[str, str], ...]:
    """The bounds of a program that looks negated atoms up later than ``joined``, which joins them: an update of such an
    atom visits at most as many values as it would visit rows in the join."""
    return tuple((what, "O(N + |result without NOT EXISTS|)" if what == "space" else o) for what, o in joined.bounds)


def components_of(distinct: DistinctAggregate) -> tuple[Component, ...]:
    """The components of the result that a distinct aggregate is read from."""
    number = Component(number_of(distinct.name), "integer")
    if distinct.kind == "count":
        return (Component(distinct.name, "integer"),)
    return (Component(distinct.name, distinct.ring if distinct.kind == "sum" else "integer"), number)


def _attach_values(
    values: _Values,
    program: Program,
    result: View,
    store: Store,
    in_z: bool,
    taken: set[str],
    excluding: Excluding | None,
    late: tuple[Atom, ...],
) -> Program:
    """The program of distinct aggregates over the same values, whose result is changed where a row of the root appears
    or vanishes. New names differ from ``taken``. ``late``: negated atoms that the program looks up by ``excluding`` and
    does not join."""
    assert isinstance(program.result, Held)
    root, alike = program.result.view, values.aggregates
    free = len(store.group)
    first = alike[0].name
    counted = in_z or values.counts
    namer = Namer(values.query, taken.union(names_in(program)))
    if values.brings:
        # There is no other program whose views and tries would have these names.
        names = {view.name: view.name for view in program.stores} | {root: namer.view(f"{first}_{root}")}
        tries = {t.name: t.name for t in program.upkeep.tries}
        traces = {one.derivations: one.derivations for one in program.upkeep.joins}
    else:
        names = {view.name: namer.view(f"{first}_{view.name}") for view in program.stores}
        tries = {t.name: names.get(t.name) or namer.fresh(f"{first}_{t.name}") for t in program.upkeep.tries}
        traces = {one.derivations: f"{one.derivations}_{first}" for one in program.upkeep.joins}
    excluded = None if excluding is None else excluding(values.query, late, namer)
    stores = {one: namer.view(f"{names[root]}_{i}") for i, one in enumerate(below_of(store), 2)} | {store: names[root]}

    def passing(key: tuple[str, ...], body: Body) -> Body:
        return body if excluded is None else excluded.passing(key, body)

    def effects(store: Store, key: tuple[str, ...], sign: int) -> Body:
        def of_level(level: Level, group: tuple[str, ...]) -> Iterator[Statement]:
            within = tuple(key[i] for i in store.group[: len(level.grouped)])
            changes = [
                change
                for distinct in alike
                for change in _effect(distinct, result.name, group, (stores[store], within), key[free:], sign)
            ]
            yield from _of_group(changes, values, key[-1], sign, counted=values.brings and not in_z)

        body = list(for_each((*store.whole, *store.shorter), key[:free], of_level))
        if not counted:
            body += (add(one, key, Add("", (), (ROWS,), (Monomial((), sign),)), (sign,)) for one in store.coarser)
        return tuple(body)

    def add(store: Store, key: tuple[str, ...], made: Add, signs: tuple[int, ...] = (1, -1)) -> Add:
        # A row that appears in a store can only add rows to a coarser one, a row that vanishes can only remove some.
        # With both branches in each, the code would double with every store of a chain.
        row = (*(key[i] for i in store.group), *key[free:])
        if values.counts:
            signs = ()
        appear, vanish = (passing(key, effects(store, key, sign)) if sign in signs else () for sign in (1, -1))
        return replace(made, view=stores[store], key=row, appear=appear, vanish=vanish)

    def moved(store: Store, key: tuple[str, ...], derivations: Monomial) -> Iterator[Statement]:
        """The change of aggregates that count values, after the count of a row of a store has changed."""

        def of_level(level: Level, group: tuple[str, ...]) -> Iterator[Statement]:
            within = tuple(key[i] for i in store.group[: len(level.grouped)])
            yield Add(result.name, group, tuple(number_of(d.name) for d in alike), (derivations,) * len(alike))
            for distinct in alike:
                yield Scan(result.name, group, distinct.name, stores[store], within, distinct.kind)

        yield from for_each((*store.whole, *store.shorter), key[:free], of_level)

    to = Renaming(views=names, tries=tries)

    def change(statement: Statement) -> Body:
        match statement:
            case Add(view=view, key=key) if view == root:
                changed = (store, *(below_of(store) if counted else ()))
                adds = tuple(add(one, key, statement) for one in changed)
                if not (values.counts or (values.brings and in_z)):
                    return adds
                derivations = statement.payload[statement.components.index(COUNT)]
                if values.counts:
                    return (*adds, *(one for place in changed for one in moved(place, key, derivations)))
                return (*adds, *passing(key, (Add(result.name, key[:free], (COUNT,), (derivations,)),)))
            case Balance():
                # The parts belong to the main program. Its stores have these names.
                return (statement,)
            case _:
                return (renamed(statement, to),)

    def of_row(carriers: tuple[Carrier, ...]) -> Body:
        key = values.query.free
        body = effects(store, key, prod(carrier.sign for carrier in carriers))
        if not in_z:
            return body
        (derivations,) = product(COUNTED, carriers)
        return (*body, Add(result.name, key[:free], (COUNT,), (derivations,)))

    made = with_statements(program, change)
    triggers = [replace(t, relation=traces.get(t.relation, t.relation)) for t in made.triggers]
    views: list[View] = []
    indexes: dict[str, set[tuple[int, ...]]] = {}
    if excluded is not None:
        triggers += excluded.triggers(replace(program.view(root), name=names[root]), of_row, indexes)
        views += excluded.views
    for view in program.views:
        if view.name == root:
            what = f"values of {', '.join(d.name for d in alike)} by group"
            number = Component(COUNT if counted else ROWS, "integer")
            for one in below_of(store):
                key = (*(view.key[i] for i in one.group), *view.key[free:])
                coarser = View(stores[one], key, (number,), definition=f"{what}, of fewer variables")
                views.append(_in_order(coarser, one, alike))
            held = replace(view, journal=False, definition=what, indexes=tuple(sorted(indexes.get(names[root], ()))))
            view = _in_order(held, store, alike)
        views.append(replace(view, name=names[view.name]))
    upkeep = upkeep_over(made.upkeep, {**names, **traces}, tries)
    return replace(program, views=tuple(views), triggers=tuple(triggers), upkeep=upkeep)


def _of_group(changes: list[Statement], values: _Values, value: str, sign: int, counted: bool) -> Iterator[Statement]:
    """The changes of a group by a value; a NULL changes nothing. ``counted``: the value counts for the group."""
    count = Monomial((), sign)
    place, first = next((i, one) for i, one in enumerate(changes) if isinstance(one, Add))
    if not values.nullable:
        if counted:
            first = replace(first, components=(COUNT, *first.components), payload=(count, *first.payload))
        yield from (*changes[:place], first, *changes[place + 1 :])
        return
    if counted:
        yield Add(first.view, first.key, (COUNT,), (count,))
    yield If(Call("is_not_null", (Column(value, BIGINT),), BOOLEAN, False), tuple(changes))


def _in_order(view: View, store: Store, alike: tuple[DistinctAggregate, ...]) -> View:
    """The view of a store, ordered if an aggregate scans it, with the folds that aggregates read."""
    if counts_values(alike[0].kind):
        modes = tuple(kind for kind in MODES if any(d.kind == kind for d in alike))
        return replace(view, ordered=(Order(alike[0].type),), folds=modes, placed=not modes)
    scanned = [d for d in alike if d.kind in SCANNED] if store.whole or store.shorter else []
    kinds = (*FOLDED, *_ENDS) if store.shorter else FOLDED
    folds = tuple(kind for kind in kinds if any(d.kind == kind for d in scanned))
    return replace(view, ordered=tuple(map(Order, scanned[0].arguments)) if scanned else (), folds=folds)


def _effect(
    distinct: DistinctAggregate,
    result: str,
    group: tuple[str, ...],
    source: tuple[str, tuple[str, ...]],
    value: tuple[str, ...],
    sign: int,
) -> Body:
    """The change of a group when a value appears or vanishes: the variables of the arguments. ``source`` is a store,
    and the key of the group in it, which may be a prefix."""
    number = Monomial((), sign)
    if distinct.kind == "count":
        return (Add(result, group, (distinct.name,), (number,)),)
    counted = number_of(distinct.name)
    if distinct.kind == "sum" and distinct.amount is None:
        amount = Monomial((Value(value[0], distinct.ring),), sign)
        return (Add(result, group, (distinct.name, counted), (amount, number)),)
    if distinct.amount is not None:
        to = Renaming({argument_of_amount(i, BIGINT).name: one for i, one in enumerate(value)})
        computed = Let(AMOUNT, to.expression(distinct.amount))
        amount = Monomial((Value(AMOUNT, distinct.ring),), sign)
        return (computed, Add(result, group, (distinct.name, counted), (amount, number)))
    return (
        Add(result, group, (counted,), (number,)),
        Scan(result, group, distinct.name, *source, distinct.kind),
    )
