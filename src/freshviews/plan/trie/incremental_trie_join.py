"""Maintains a leapfrog triejoin by its trace, the recorded operations. A batch repeats only the operations it affects.

Source: Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013). In the plan of Q() = R(a, b) S(b, c)
T(c, a), ``R_edits`` has the changes of R in a batch, and ``#Q`` gets the rows that enter or leave the join::

    trace R(a, b), S(b, c), T(c, a) in order of a, b, c, for #Q

    on R(a, b) += m:
        R[a, b] += m
        R_edits[a, b] += m

    (S and T in the same way)

    on #Q(a, b, c) += m:
        Q[] += m

`docs/trie-join.md` explains the algorithm; ``program.reference`` is its executable description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshviews.expr.nodes import Column, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.plan.assemble import assemble
from freshviews.plan.delta import first_order
from freshviews.plan.delta.first_order import stores_of
from freshviews.plan.leaves import add_to, trigger, update_carrier
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Request, Strategy
from freshviews.plan.trie.key_order import PROPERTY, best_key_order, named_order, without_lookups
from freshviews.program.payload import COUNT
from freshviews.program.program import Program
from freshviews.program.rewrite import Renaming, renamed, with_statements
from freshviews.program.rule import Atom as RuleAtom
from freshviews.program.rule import Rule
from freshviews.program.traced import TracedJoin
from freshviews.program.upkeep import Traced
from freshviews.program.views import View
from freshviews.query.dependencies import FD
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.types import BIGINT


def plan(
    query: Query,
    dependencies: tuple[FD, ...] = (),
    order: tuple[str, ...] | None = None,
    sizes: Mapping[str, float] | None = None,
) -> Program:
    """The program of a query. ``dependencies`` are keys of its atoms, ``order`` is the key order if one is named,
    ``sizes`` are rows by relation.

    The trace produces derivations: bindings of all variables, with the product of the multiplicities of the rows. The
    head of the rule is a separate program, of a query over the derivations. The module has an example.

    A negated atom is looked up where the last of its variables is bound::

        trace R(a, b), S(b, c) in order of a, b, c where !T(a, c) at c

    The head joins optional atoms with the derivations, by the given variables. The plan of Q(a, z) = R(a, b) S(b, c)
    T(c, a) U?(a | z)::

        on #Q(a) += m:
            for z, u in U[a] or default:
                Q[a, z] += m * u
            joined[a] += m

        on U(a, z) += m:
            if j := joined[a]:
                Q[a, z] += m * j
            ... and the default row, where the first row of a appears or the last one vanishes

    Departures, besides those of the reference:
    """
    query = _with_summed(query)
    body = _inner(query)
    chosen = _complete_order(body, order) if order else best_key_order(body, dependencies, sizes)
    names = Namer(query)
    stores = stores_of(replace(body, atoms=(*body.atoms, *body.negated), negated=()), (), names)
    placed = tuple(c for c in body.conditions if columns_of(c))
    left = tuple(c for c in query.conditions if c not in placed or may_fail(c))
    head = _with_own_names(first_order.plan(_head(query, left)), names)
    edits = []
    for store in stores:
        name = names.view(f"{store.view.name}_edits")
        edits.append(replace(store.view, name=name, definition=f"what {store.view.name} grows by in a batch"))
    atoms = []
    for atom in body.occurrences:
        store = next(s for s in stores if atom in s.atoms)
        atoms.append(RuleAtom(store.view.name, atom.variables, negated=atom in body.negated))
    pairs = tuple((store.view.name, view.name) for store, view in zip(stores, edits, strict=True))
    traced = TracedJoin(Rule(chosen, tuple(atoms), placed), pairs, head.triggers[0].relation)
    loading = []
    for store, view in zip(stores, edits, strict=True):
        first = store.atoms[0]
        update = (update_carrier(body, first),)
        adds = tuple(add_to(one, update, key=first.variables) for one in (store.view, view))
        loading.append(trigger(body, first, adds))
    views: tuple[View, ...] = (*(store.view for store in stores), *edits, *head.views)
    return replace(
        head,
        name=query.name,
        views=views,
        triggers=(*loading, *head.triggers),
        strategy="incremental_trie_join",
        bounds=(
            ("key order", ", ".join(chosen)),
            ("indices", f"kept: {'; '.join(traced.kept()) or 'none'}"),
            ("", f"dropped: {'; '.join(traced.dropped()) or 'none'}"),
            *((("filters", "; ".join(traced.filters())),) if traced.filters() else ()),
            ("update", f"edit distance of the trace plus number of changes, up to a logarithm{_head_note(query)}"),
            ("delay", "O(1)"),
            ("space", "O(N + |trace| + |result|)"),
        ),
        upkeep=Traced((traced,)),
    )


def _plan(request: Request) -> Program:
    def plan_query(query: Query) -> Program:
        return plan(query, request.keys_of(query), named_order(request, query), request.sizes)

    return assemble(request.block, plan_query, bool(request.negative))


def _bags(request: Request | None) -> BagPlanner:
    """Bags are widened: a derivation has all variables anyway."""
    if request is None:
        return BagPlanner(plan, widened=True)
    return BagPlanner(lambda bag: plan(bag, (), named_order(request, bag), request.sizes), widened=True)


def _with_summed(query: Query) -> Query:
    """The query with a variable for each summed expression of an ordinary atom, so that no lift is inside such an atom,
    and with at least one variable in each of them."""
    names = Namer(query)
    optional = tuple(atom for atom in query.atoms if atom.given is not None)
    atoms = {atom.name: atom for atom in query.atoms if atom.given is None}

    def variable_of(lift: Lift, aggregate: Aggregate) -> Lift:
        if lift.atom not in atoms:
            return lift
        atom = atoms[lift.atom]
        if lift.expr in atom.columns:
            name = atom.variables[atom.columns.index(lift.expr)]
        else:
            name = names.lift(lift, aggregate)
            atom = replace(atom, variables=(*atom.variables, name), columns=(*atom.columns, lift.expr))
            atoms[atom.name] = atom
        return replace(lift, atom=None, expr=Column(name, lift.expr.type, lift.expr.nullable))

    aggregates = tuple(replace(a, lifts=tuple(variable_of(lift, a) for lift in a.lifts)) for a in query.aggregates)
    for name, atom in atoms.items():
        if not atom.variables:
            atoms[name] = replace(atom, variables=(names.row(name),), columns=(Literal(0, BIGINT),))
    return replace(query, atoms=(*atoms.values(), *optional), aggregates=aggregates)


def _inner(query: Query) -> Query:
    """The part that the trace joins: ordinary atoms, with conditions and negated atoms over their variables alone."""
    own = frozenset(query.joined)
    return replace(
        without_lookups(query),
        aggregates=(Aggregate(COUNT, "integer"),),
        negated=tuple(atom for atom in query.negated if own.issuperset(atom.variables)),
    )


def _head(query: Query, conditions: tuple[Expr, ...]) -> Query:
    """The query over its derivations: one atom whose columns are the variables, and the atoms that the trace does not
    join. ``conditions`` are those that the trace does not decide; over the derivations alone they are filters."""
    name, own = Namer(query, (atom.name for atom in query.occurrences)).fresh("joined"), frozenset(query.joined)
    types = {v: column for atom in query.atoms for v, column in zip(atom.variables, atom.columns, strict=True)}
    beside = tuple(atom for atom in query.atoms if atom.given is not None)
    negated = tuple(atom for atom in query.negated if not own.issuperset(atom.variables))
    filters = tuple(c for c in conditions if own.issuperset(columns_of(c)))
    across = tuple(c for c in conditions if c not in filters)

    def moved(lift: Lift) -> Lift:
        return replace(lift, atom=name) if lift.atom is None and own.issuperset(columns_of(lift.expr)) else lift

    aggregates = tuple(replace(a, lifts=tuple(map(moved, a.lifts))) for a in query.aggregates)
    spanning = (lift.expr for a in aggregates for lift in a.lifts if lift.atom is None)
    read = {v for one in (*beside, *negated) for v in one.variables}.union(*map(columns_of, (*across, *spanning)))
    variables = tuple(v for v in (*query.free, *query.joined) if v in own and (v in query.free or v in read))
    variables = tuple(dict.fromkeys(variables))
    columns = tuple(Column(v, types[v].type, types[v].nullable) for v in variables)
    atom = Atom(name, f"#{query.name}", variables, columns, filters)
    return Query(query.name, query.free, (atom, *beside), aggregates, across, negated)


def _with_own_names(head: Program, names: Namer) -> Program:
    """The head with names for its views that differ from those of the trace."""
    views = {view.name: view.name if view.name == RESULT else names.view(view.name) for view in head.views}
    to = Renaming(views=views)
    made = with_statements(head, lambda statement: (renamed(statement, to),))
    return replace(made, views=tuple(replace(v, name=views[v.name]) for v in head.views))


def _head_note(query: Query) -> str:
    """The addition to EXPLAIN's bound if the head joins atoms."""
    names = [atom.name for atom in query.atoms if atom.given is not None]
    return f"; {', '.join(names)} by deltas over the derivations" if names else ""


def _complete_order(query: Query, order: tuple[str, ...]) -> tuple[str, ...]:
    """The order with all variables: a missing one comes as soon as the others of its atom are bound."""
    found = list(order)
    for variable in query.variables:
        if variable not in found:
            atom = next(a for a in query.atoms if variable in a.variables)
            found.insert(max((found.index(v) + 1 for v in atom.variables if v in found), default=0), variable)
    return tuple(found)


STRATEGY = Strategy(
    "incremental_trie_join",
    _plan,
    plan,
    bags=_bags,
    properties=frozenset({PROPERTY}),
    kinds=EVERY_KIND,
)
