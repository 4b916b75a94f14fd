"""First-order maintenance: joins each update with the stored base relations.

Source: Chirkova and Yang, Materialized Views (2012). The plan of Q() = R(a, b) S(b, c) T(c, a)::

    on R(a, b) += m:
        u = sum:
            if |S[b]| <= |T[_, a]|:
                for c, s in S[b]:
                    if t := T[c, a]:
                        u += m * s * t
            else: ... the other way round
        Q[] += u
        R[a, b] += m
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import TypeVar

from freshviews.expr.nodes import Call, Column, Expr, substitute
from freshviews.plan.assemble import assemble, joined_queries
from freshviews.plan.delta.exclusion import exclusion
from freshviews.plan.delta.exponents import Keys, update_exponent
from freshviews.plan.delta.nest import CHOICES, Indexes, Join, Pending, Step, add_joined
from freshviews.plan.leaves import (
    Carrier,
    add_to,
    leaf_view,
    parameters_of,
    result_view,
    row_carrier,
    spanning_lifts,
    under,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.optional import OptionalView, optional_view, update_negated, update_optional
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Request, Strategy
from freshviews.program.payload import MULTIPLICITY
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.rewrite import rename, scale
from freshviews.program.statements import Body, Let, Smaller
from freshviews.program.structure import bodies, slice_of, uses, visit
from freshviews.program.views import View
from freshviews.query import variable_order
from freshviews.query.dependencies import FD, closure
from freshviews.query.query import Atom, Query
from freshviews.query.variable_order import best_order
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN

T = TypeVar("T")

MOST_TOGETHER = 6
"""Maximum number of atoms that share a store and take an update together, in a term for each set of them. More atoms
take it one after the other, in a term each. For that the store is held twice: before and after the update."""

MOST_STATEMENTS = 8_000
"""Maximum number of statements of all terms; beyond it, the smaller of two slices is chosen in fewer places."""


@dataclass(frozen=True)
class Store:
    """Atoms that share one stored view. An optional or a negated atom has a store of its own. ``after``: the view that
    already has the update, if there are more than ``MOST_TOGETHER`` atoms."""

    view: View
    atoms: tuple[Atom, ...]
    unique: Keys = ()
    optional: OptionalView | None = None
    negated: bool = False
    after: View | None = None

    def seen_by(self, atom: Atom, updated: tuple[Atom, ...]) -> View:
        """The view that another atom reads: atoms before the updated one have taken the update."""
        if self.after is None or updated[0] not in self.atoms:
            return self.view
        return self.after if self.atoms.index(atom) < self.atoms.index(updated[0]) else self.view

    @property
    def rows(self) -> tuple[View, ...]:
        """The views that have the rows."""
        return (self.view,) if self.after is None else (self.after, self.view)

    @property
    def views(self) -> tuple[View, ...]:
        """The views of the rows, and the indicator where there is one."""
        indicator = None if self.optional is None else self.optional.indicator
        return self.rows if indicator is None else (*self.rows, indicator)


def plan(query: Query, dependencies: tuple[FD, ...] = ()) -> Program:
    """The first-order program of a query. ``dependencies`` are keys of its atoms.

    Departures:

    - If two relations bind the same variables, the program loops over the smaller slice and probes the larger slice.
    - Occurrences of one relation with the same columns and filters share a store. An update changes all of them at
      once. So the delta of two occurrences has three terms: the update in the first and the old rows in the second, the
      reverse, and the update in both.
    - Terms that are equal after renaming are computed once and multiplied by their number. For the triangle count over
      one edge relation, the three deltas are one loop.
    - A relation with a declared key whose columns are bound is joined first: at most one row matches.
    """
    deltas = _deltas(query, dependencies)
    stores, triggers, indexes = deltas.stores, deltas.triggers, deltas.indexes
    stored = [] if len(stores) == 1 == len(query.atoms) else [view for store in stores for view in store.views]
    views = (*with_indexes(stored, indexes), result_view(query))
    worst = max(update_exponents(query, dependencies).values())
    update = "O(1)" if worst == 0 else "O(N)" if worst == 1 else f"O(N^{worst})"
    bounds = (("update", update), ("delay", "O(1)"), ("space", "O(N + |result|)"), *_limits(deltas))
    return Program(query.name, query.free, views, triggers, Held(RESULT), strategy="first_order", bounds=bounds)


def _limits(deltas: _Deltas) -> tuple[tuple[str, str], ...]:
    """The lines of EXPLAIN about limits of planning that were reached."""
    found = []
    if any(_choices(trigger.body) == deltas.choices for trigger in deltas.triggers):
        most, places = deltas.choices, "nested places" if deltas.choices > 1 else "place"
        why = f"; further choices would need more than {MOST_STATEMENTS:,} statements" if most < CHOICES else ""
        found.append(("loops", f"greedy: the smaller of two slices is chosen in at most {most} {places}{why}"))
    for store in deltas.stores:
        if store.after is not None:
            many = f"{len(store.atoms)} occurrences of {store.view.name}"
            found.append(("deltas", f"{many} take an update one after the other; the store exists twice"))
    return tuple(found)


def _choices(body: Body) -> int:
    """The most nested choices between two slices."""
    return max(
        (isinstance(s, Smaller) + max(map(_choices, bodies(s)), default=0) for s in body),
        default=0,
    )


MOST_SHARING = 5
"""Maximum number of occurrences of tables for which deltas with shared stores are preferred to a view tree: the delta
of n occurrences has a term for each set of them."""


def looks_all_up(request: Request) -> str | None:
    """The rows of one relation determine those of all others, and no update costs more than in a view tree.

    This relation has as many rows as the join, and so most of the updates. Its row costs as many lookups as a view tree
    has views on its path, and is added to one view, not to each of them. Keys of trusted tables count: the deltas are
    right without them, and loop where several rows have the same key.
    """
    query, dependencies = request.query, request.expected
    if request.kind.dynamic_width <= 0 or len(query.atoms) == 1:
        return None
    fact = next((a for a in query.atoms if closure(a.variables, dependencies).issuperset(query.variables)), None)
    if fact is None:
        return None
    # The order of the view tree that the planner would choose, under checked keys.
    order = best_order(query, False, request.dependencies)
    tree = variable_order.update_exponents(order, query, dependencies)
    deltas = update_exponents(query, dependencies)
    if any(deltas[name] > exponent for name, exponent in tree.items()):
        return None
    return f"from a row of {fact.name} all other relations are looked up by their keys"


def shares_lookups(request: Request) -> str | None:
    """Deltas only look rows up, in fewer views than a view tree has: a view tree has a view for each of the atoms that
    share a store."""
    query, dependencies = request.query, request.dependencies
    stores = stores_of(query, dependencies, Namer(query))
    if len(stores) == len(query.atoms) or len(query.atoms) > MOST_SHARING:
        return None
    if max(update_exponents(query, dependencies).values()) > 0:
        return None
    return "occurrences of a table share its stored rows, and an update only looks rows up"


def holds_rows_once(request: Request) -> str | None:
    """Two relations and NOT EXISTS, where no variable of one relation alone is summed out before the join.

    Then a view tree sums nothing. It would hold the rows of a relation and again those that pass NOT EXISTS; deltas
    hold the rows once, and look up NOT EXISTS for the rows that they visit. With COUNT(DISTINCT x) alone, the values of
    x are not summed out: the joined query has them in its groups. Excluding atoms are looked up where values change
    (``plan.delta.exclusion``).
    """
    if not all(map(_sums_none, joined_queries(request.block))):
        return None
    return "rows are stored once; a view tree would store those that pass NOT EXISTS a second time"


def _sums_none(query: Query) -> bool:
    if not query.negated or len(query.atoms) != 2 or any(atom.given is not None for atom in query.atoms):
        return False
    one, other = (set(atom.variables) for atom in query.atoms)
    return bool(one & other) and (one ^ other).issubset(query.free)


def takes_cyclic(request: Request) -> str | None:
    """Any query: first-order deltas need no more than the base relations."""
    if request.kind.acyclic:
        return "no view tree joins these atoms; deltas over the base relations do"
    return "cyclic: deltas over the base relations take linear space and the smaller side's time"


@lru_cache(maxsize=16)
def update_exponents(query: Query, dependencies: tuple[FD, ...] = ()) -> dict[str, int]:
    """By atom, the exponent of the time of a one-row update."""
    deltas = _deltas(query, dependencies)
    unique = {view.name: store.unique for store in deltas.stores for view in store.rows}
    exponents = [update_exponent(trigger.body, unique) for trigger in deltas.triggers]
    return {
        atom.name: exponent
        for store, exponent in zip(deltas.stores, exponents, strict=True)
        for atom in store.atoms
    }


@dataclass
class Terms:
    """State that the terms of a program share while they are written. ``indexes``: the indexes that their loops need,
    by view; ``choices``: the most nested choices between two slices in a term."""

    indexes: Indexes
    choices: int = CHOICES


@dataclass(frozen=True)
class _Deltas:
    """The stores of a query, the trigger of each, the indexes that the triggers need, and the most nested choices
    between two slices that a term may have."""

    stores: tuple[Store, ...]
    triggers: tuple[Trigger, ...]
    indexes: Indexes
    choices: int


@lru_cache(maxsize=16)
def _deltas(query: Query, dependencies: tuple[FD, ...]) -> _Deltas:
    """The triggers, with as many nested choices as ``MOST_STATEMENTS`` allows, at least one. Each further choice at
    most doubles the statements."""
    found = _deltas_with(1, query, dependencies)
    written = [trigger.body for trigger in found.triggers]
    statements = sum(1 for body in written for _ in visit(body))
    choices = min(CHOICES, (MOST_STATEMENTS // statements).bit_length())
    return found if choices <= 1 or not any(map(_choices, written)) else _deltas_with(choices, query, dependencies)


def _deltas_with(choices: int, query: Query, dependencies: tuple[FD, ...]) -> _Deltas:
    names, terms = Namer(query), Terms({}, choices)
    stores = stores_of(query, dependencies, names)
    triggers = tuple(_trigger(query, store, stores, terms, names) for store in stores)
    return _Deltas(stores, triggers, terms.indexes, choices)


def stores_of(query: Query, dependencies: tuple[FD, ...], names: Namer) -> tuple[Store, ...]:
    """The atoms, grouped by their stored rows. A shared store has the name of the relation, another store the name of
    its atom."""
    stores = []
    for store in shared_stores(query, names, lambda atom: ()):
        first, view = store.atoms[0], store.view
        optional = None if first.given is None else optional_view(view, first.given, names)
        after = None
        if len(store.atoms) > MOST_TOGETHER:
            after = replace(view, name=names.view(f"{view.name}_after"), definition=f"{view.name} and the update")
        unique = _unique(first, dependencies)
        stores.append(Store(view, store.atoms, unique, optional, first in query.negated, after))
    return tuple(stores)


def shared_stores(query: Query, names: Namer, kind: Callable[[Atom], object]) -> Iterator[Store]:
    """The views of the rows of atoms. Ordinary atoms over the same rows share one if they are of one ``kind``."""
    groups: dict[object, list[Atom]] = {}
    for atom in query.occurrences:
        # Lifts differ by occurrence, so only atoms without lifts share.
        lifted = any(lift.atom == atom.name for a in query.aggregates for lift in a.lifts)
        alone = lifted or not query.is_ordinary(atom)
        own = atom.name if alone else (atom.relation, atom.columns, frozenset(atom.filters), kind(atom))
        groups.setdefault(own, []).append(atom)
    for first, *others in groups.values():
        view = leaf_view(query, first, names.view(first.relation if others else first.name))
        yield Store(view, (first, *others))


def _unique(atom: Atom, dependencies: tuple[FD, ...]) -> Keys:
    """Positions of the variables of an atom that determine all others in its own rows."""
    own = [fd for fd in dependencies if fd.atom == atom.name]
    keys = [fd.determinant for fd in own if closure(fd.determinant, own).issuperset(atom.variables)]
    return tuple(frozenset(atom.variables.index(v) for v in key) for key in keys)


def _trigger(query: Query, store: Store, stores: tuple[Store, ...], terms: Terms, namer: Namer) -> Trigger:
    first = store.atoms[0]
    shared = len(store.atoms) > 1
    parameters = parameters_of(query, first)
    if shared:
        parameters = namer.columns(parameters)
    names = tuple(p.name for p in parameters)
    if store.optional is not None or store.negated:
        return Trigger(first.relation, parameters, first.filters, _single_trigger(query, store, stores, terms, namer))
    counts: dict[Body, int] = {}
    for updated in non_empty_subsets(store.atoms) if store.after is None else ((atom,) for atom in store.atoms):
        body = term(query, updated, names, stores, terms, namer)
        if shared:
            body = canonical(body, frozenset(names), namer)
        counts[body] = counts.get(body, 0) + 1
    body = tuple(s for one, times in counts.items() for s in scale(one, times))
    if len(stores) > 1 or len(query.atoms) > 1:
        key = names[: len(first.variables)]
        adds = [add_to(view, (update_carrier(query, first),), key=key) for view in store.rows]
        body = (*adds[:-1], *body, adds[-1])
    return Trigger(first.relation, parameters, first.filters, body)


def _single_trigger(query: Query, store: Store, stores: tuple[Store, ...], terms: Terms, namer: Namer) -> Body:
    """The trigger of an optional or negated atom."""
    (atom,) = store.atoms
    update = (update_carrier(query, atom),)

    def delta(carriers: tuple[Carrier, ...]) -> Body:
        return term(query, (atom,), atom.variables, stores, terms, namer, carriers)

    if store.optional is None:
        return update_negated(store.view, update, delta)
    return update_optional(store.optional, update, delta, namer)


def non_empty_subsets(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    for size in range(1, len(items) + 1):
        yield from combinations(items, size)


def term(
    query: Query,
    updated: tuple[Atom, ...],
    names: tuple[str, ...],
    stores: tuple[Store, ...],
    terms: Terms,
    namer: Namer,
    carriers: tuple[Carrier, ...] = (),
) -> Body:
    """The delta term in which the atoms of ``updated`` take the update, whose variables are ``names``. The indexes that
    loops need are added to ``terms``. ``carriers``: the change, if it differs from the update."""
    mapping: dict[str, str] = {}
    equalities: list[Expr] = []
    for atom in updated:
        for variable, name in zip(atom.variables, names, strict=False):
            known = mapping.setdefault(variable, name)
            if known != name:
                # Sorted, so that equal terms are recognised.
                pair = tuple(Column(n, BIGINT, False) for n in sorted((known, name)))
                equality = Call("null_safe_eq", pair, BOOLEAN, False)
                if equality not in equalities:
                    equalities.append(equality)
    replaced: dict[str, Expr] = {v: Column(n, BIGINT) for v, n in mapping.items() if v != n}
    conditions = tuple(substitute(c, replaced) for c in query.conditions)
    lifts = tuple(
        (name, Let(let.variable, substitute(let.expr, replaced)), value)
        for name, let, value in spanning_lifts(query)
    )
    held = {atom.name: store for store in stores for atom in store.atoms}
    rows = {a.name: tuple(mapping.get(v, v) for v in a.variables) for a in query.occurrences}
    determined = _determined_by_keys(tuple((rows[a.name], held[a.name].unique) for a in query.atoms))
    steps = []
    for atom in query.occurrences:
        if atom not in updated:
            store, alias = held[atom.name], namer.row(atom.name)
            key = rows[atom.name]
            view = store.seen_by(atom, updated)
            carrier = None if store.negated else row_carrier(alias, view)
            given = None if atom.given is None else tuple(mapping.get(v, v) for v in atom.given)
            others = 0 if store.negated else determined[key]
            steps.append(Step(view.name, key, alias, carrier, store.unique, others, given, store.negated))
    free = tuple(mapping.get(v, v) for v in query.free)
    change = carriers or (update_carrier(query, updated[0]),)
    once_more = Carrier(None, frozenset(), tuple((a.name, MULTIPLICITY) for a in query.aggregates))
    again = (once_more,) * (len(updated) - 1)
    bound = frozenset(mapping.values())
    ordered = tuple(sorted(steps, key=lambda s: (s.view, tuple(v if v in bound else "~" for v in s.key))))
    join = Join(bound, (*change, *again), ordered, Pending(conditions, lifts), terms.choices)
    return under(equalities, add_joined(join, result_view(query), free, namer.of("u", "u"), terms.indexes))


@lru_cache(maxsize=256)
def _determined_by_keys(rows: tuple[tuple[tuple[str, ...], Keys], ...]) -> dict[tuple[str, ...], int]:
    """By row, the number of variables that it determines by keys of all rows, beside its own."""
    rules = [FD(tuple(row[i] for i in sorted(positions)), row) for row, unique in rows for positions in unique]
    return {row: len(closure(row, rules).difference(row)) for row, _ in rows}


def canonical(body: Body, bound: frozenset[str], namer: Namer) -> Body:
    """The body with loop variables and aliases renamed by order of appearance, so that equal terms are recognised."""
    names: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for statement in visit(body):
        for variable in uses(statement).binds:
            if variable not in bound:
                names.setdefault(variable, namer.of(("variable", len(names)), f"v{len(names) + 1}"))
        rows = slice_of(statement)
        if rows is not None and rows.alias:
            wanted = f"{rows.view.lower()}{len(aliases) + 1}"
            aliases.setdefault(rows.alias, namer.of(("row", rows.view, len(aliases)), wanted))
    return rename(body, names, aliases)


def _plan(request: Request) -> Program:
    return assemble(
        request.block,
        lambda query: plan(query, request.keys_of(query)),
        bool(request.negative),
        excluding=exclusion,
    )


STRATEGY = Strategy(
    "first_order",
    _plan,
    plan,
    bags=lambda request: BagPlanner(plan, widened=True),
    stores_rows=True,
    kinds=EVERY_KIND,
)
