r"""Joins an update with views that store the join of the other atoms. These views are maintained in the same way.

Source: DBToaster (Koch et al., VLDB Journal 23(2), 2014). The plan of Q(a, b, c) = R(a, b) S(a, c, e) T(a, c, d).
The first lines show what an update of each relation is joined with. The views below V_ST serve to maintain V_ST::

    R -- V_ST(a, c)            S -- R(a, b)               T -- R(a, b)
          /      \             S -- V_T(a, c)             T -- V_S(a, c)
    V_S(a, c)  V_T(a, c)

    on R(a, b) += m:                          on S(a, c, e) += m:
        for c, v_st in V_ST[a]:                   if v_t := V_T[a, c]:
            Q[a, b, c] += m * v_st                    V_ST[a, c] += m * v_t
        R[a, b] += m                                  for b, r in R[a]:
                                                          Q[a, b, c] += m * v_t * r
                                                  V_S[a, c] += m
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from freshviews.errors import PlanError
from freshviews.expr.nodes import columns_of
from freshviews.plan.assemble import assembled
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, add_joined
from freshviews.plan.leaves import (
    Carrier,
    all_components,
    leaf_view,
    result_view,
    row_carrier,
    spanning_lifts,
    trigger,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import RESULT, Namer, joined_name
from freshviews.plan.optional import Delta, OptionalView, given_of, optional_view, update_negated, update_optional
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Strategy
from freshviews.program.payload import COUNT
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Body, If, Let, Lookup, Loop, Statement
from freshviews.program.structure import visit
from freshviews.program.views import View
from freshviews.query.hypergraph import connected
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass

MOST_VIEWS = 256
"""Maximum number of views of a program. A query can have a view for every connected set of its atoms."""


def plan(query: Query) -> Program:
    """The program that stores, for every update, the rest of the query. PlanError if that takes more than
    ``MOST_VIEWS`` views.

    Source: DBToaster (Koch et al., VLDB Journal 23(2), 2014), as in Olteanu's lecture, Part 2, "Higher-Order IVM using
    DBToaster". An update of one atom is joined with the other atoms. Once the variables of the updated atom are fixed,
    the other atoms fall into connected components. Each component is stored as a view. The view keeps the variables of
    the updated atom and the free variables, and sums out all others. The view is a query of fewer atoms, so the
    construction is recursive. Equal views are shared.

    Departures:

    - Programs are made from the join structure, not by rewriting AGCA expressions.
    - Only components are stored. For updates of S in the example below, the lecture stores V_RT(a, b, c). Here the
      trigger joins R and V_T: they are separate components once a, c and e are fixed.
    - A condition or lift across atoms is applied in a component that has all its variables, otherwise in the trigger.
    - Occurrences of one relation are updated one after the other, each with its own first-order delta.
    - A component of optional atoms alone is an optional view (``plan.optional``). Negated atoms belong to no component:
      the triggers that change the result look them up.
    """
    return _Recursion(query).program()


@dataclass(frozen=True)
class Rest:
    """The rest of a query for an update of one atom: ``parts``, queries over the components of the other atoms, and the
    conditions and lifts that no part applies."""

    parts: tuple[Query, ...]
    pending: Pending


def rest_of(query: Query, atom: Atom, order: tuple[str, ...]) -> Rest:
    """The rest of a query for an update of an atom. The queries of the components have no name. Their free variables
    are in the given order, or in that of the atom where a component is a whole atom."""
    fixed = frozenset(atom.variables)
    groups = connected((a, frozenset(a.variables) - fixed) for a in query.atoms if a is not atom)

    def home(names: tuple[str, ...]) -> int | None:
        """The component that applies a condition or lift over these variables; None if there is none."""
        if fixed.issuperset(names):
            return None
        ordinary = (i for i, group in enumerate(groups) if given_of(group) is None)
        return next((i for i in ordinary if _variables(groups[i]).issuperset(names)), None)

    pending = Pending.of(query).where(lambda names: home(names) is None)
    needed = fixed.union(query.free, *(columns_of(c) for c in pending.conditions))
    needed = needed.union(*(columns_of(let.expr) for _, let, _ in pending.lifts))
    needed = needed.union(*(negated.variables for negated in query.negated))
    parts = []
    for i, group in enumerate(groups):
        atoms = {a.name for a in group}
        aggregates = []
        for aggregate in query.aggregates:
            inside = tuple(
                lift
                for lift in aggregate.lifts
                if (lift.atom in atoms if lift.atom is not None else home(columns_of(lift.expr)) == i)
            )
            # An aggregate that no lift has reached equals the count, so it is not stored.
            if inside or aggregate.name == COUNT:
                aggregates.append(replace(aggregate, lifts=inside))
        parts.append(
            Query(
                "",
                _exported(group, needed, order),
                group,
                tuple(aggregates),
                tuple(c for c in query.conditions if home(columns_of(c)) == i),
            )
        )
    return Rest(tuple(parts), pending)


def _exported(atoms: tuple[Atom, ...], needed: frozenset[str], order: tuple[str, ...]) -> tuple[str, ...]:
    exported = _variables(atoms) & needed
    if len(atoms) == 1 and exported == frozenset(atoms[0].variables):
        return atoms[0].variables
    return tuple(v for v in order if v in exported)


def _variables(atoms: tuple[Atom, ...]) -> frozenset[str]:
    return frozenset(v for atom in atoms for v in atom.variables)


class _Recursion:
    """Writes the program: the views so far, by the query that each answers."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.names = Namer(query)
        self.lets = {(name, let.expr): (let, value) for name, let, value in spanning_lifts(query)}
        self.views: dict[Query, View] = {}
        self.indexes: Indexes = {}
        self.deltas: dict[str, list[Delta]] = {atom.name: [] for atom in query.occurrences}
        self.begun = 0
        """Views of components, including views that are still under construction."""
        self.negated = {atom.name: leaf_view(query, atom, self.names.view(atom.name)) for atom in query.negated}
        self.optional: dict[str, OptionalView] = {}
        self.loading: dict[str, list[Delta]] = {atom.name: [] for atom in query.atoms}
        """Atoms whose rows fill optional views: without default rows."""
        for atom in query.atoms:
            if atom.given is not None:
                self.optional[atom.name] = optional_view(self._leaf(atom), atom.given, self.names)

    def program(self) -> Program:
        query = self.query
        result = result_view(query)
        self._maintain(query, result)
        triggers = tuple(trigger(query, atom, self._body(atom)) for atom in query.occurrences)
        indicators = (one.indicator for one in self.optional.values() if one.indicator is not None)
        views = with_indexes((*self.views.values(), *indicators, *self.negated.values(), result), self.indexes)
        loops = any(isinstance(s, Loop) for t in triggers for s in visit(t.body))
        bounds = (
            ("update", "O(|change of the views|)" if loops else "O(1)"),
            ("delay", "O(1)"),
            ("space", "O(|views|)"),
        )
        return Program(
            query.name, query.free, views, triggers, Held(RESULT), strategy="higher_order", bounds=bounds
        )

    def _body(self, atom: Atom) -> Body:
        """The trigger of an atom."""
        update = (update_carrier(self.query, atom),)

        def delta(carriers: tuple[Carrier, ...]) -> Body:
            return fused(s for write in self.deltas[atom.name] for s in write(carriers))

        if atom.name in self.negated:
            return update_negated(self.negated[atom.name], update, delta)
        if atom.name in self.optional:
            loaded = fused(s for write in self.loading[atom.name] for s in write(update))
            return (*loaded, *update_optional(self.optional[atom.name], update, delta, self.names))
        return delta(update)

    def _leaf(self, atom: Atom) -> View:
        """The view of an optional atom by all its variables. The atom's trigger adds to it."""
        name = self.names.view(atom.name)
        view = leaf_view(self.query, atom, name)
        aggregates = tuple(
            replace(a, lifts=inside)
            for a in self.query.aggregates
            for inside in [tuple(lift for lift in a.lifts if lift.atom == atom.name)]
            if inside or a.name == COUNT
        )
        self.views[Query("", atom.variables, (atom,), aggregates)] = view
        return view

    def _view(self, part: Query) -> View:
        """The view of a component; it is made and maintained if it is new."""
        if part not in self.views:
            atoms = part.atoms
            whole = len(atoms) == 1 and part.free == atoms[0].variables
            stem = joined_name(tuple(a.name for a in atoms))
            name = self.names.view(stem if whole else f"V_{stem}")
            view = View(name, part.free, all_components(part), definition=_definition(part))
            self.begun += 1
            if self.begun > MOST_VIEWS:
                raise PlanError(
                    f"higher_order would store more than {MOST_VIEWS} views for {self.query.name}; set view_tree, "
                    "which stores one per variable"
                )
            self._maintain(part, view)
            self.views[part] = view
        return self.views[part]

    def _maintain(self, query: Query, view: View) -> None:
        """Write the statements that maintain a view, for an update of each atom in its query."""
        given = given_of(query.atoms)
        for atom in query.occurrences:
            rest = rest_of(query, atom, self.query.variables)
            steps = [self._step(self._view(part), given_of(part.atoms)) for part in rest.parts]
            steps += [self._negated(other) for other in query.negated if other is not atom]
            loads = given is not None and atom.given is not None and {*given}.issuperset(atom.given)
            writers = self.loading if loads else self.deltas
            writers[atom.name].append(partial(self._delta, query, atom, view, tuple(steps), rest.pending))

    def _step(self, view: View, given: tuple[str, ...] | None) -> Step:
        alias = self.names.alias(view.name)
        return Step(view.name, view.key, alias, row_carrier(alias, view), given=given)

    def _negated(self, atom: Atom) -> Step:
        view = self.negated[atom.name]
        return Step(view.name, view.key, self.names.alias(view.name), None, negated=True)

    def _delta(
        self,
        query: Query,
        atom: Atom,
        view: View,
        steps: tuple[Step, ...],
        pending: Pending,
        carriers: tuple[Carrier, ...],
    ) -> Body:
        """Statements that add to a view its change caused by the change of an atom, the product of carriers: this is
        joined with the steps."""
        lifts = tuple((name, *self.lets[name, let.expr]) for name, let, _ in pending.lifts)
        join = Join(frozenset(atom.variables), carriers, steps, Pending(pending.conditions, lifts))
        return add_joined(join, view, view.key, self.names.of("u", "u"), self.indexes)


def fused(statements: Iterable[Statement]) -> Body:
    """Statements with equal loops, lookups and conditions merged. No statement of a trigger reads what another one
    writes, so their order is free. Lets go first."""
    lets: dict[Statement, None] = {}
    bodies: dict[Statement, list[Statement]] = {}
    for statement in statements:
        match statement:
            case Let():
                lets[statement] = None
            case If(body=inner) | Lookup(body=inner) | Loop(body=inner):
                bodies.setdefault(replace(statement, body=()), []).extend(inner)
            case _:
                bodies[statement] = []
    merged: list[Statement] = []
    for head, body in bodies.items():
        match head:
            case If() | Lookup() | Loop():
                merged.append(replace(head, body=fused(body)))
            case _:
                merged.append(head)
    return (*lets, *merged)


def _definition(query: Query) -> str:
    """A component as the papers write it: ``SUM d: S(a, d) T(a)``."""
    atoms = " ".join(f"{atom.name}({', '.join(atom.variables)})" for atom in query.atoms)
    return f"SUM {', '.join(query.bound)}: {atoms}" if query.bound else atoms


STRATEGY = Strategy(
    "higher_order", assembled(plan), plan, bags=lambda request: BagPlanner(plan), kinds=EVERY_KIND
)
