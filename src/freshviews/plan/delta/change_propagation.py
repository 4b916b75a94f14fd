r"""Maintains a tree of binary joins, and stores the result of every join (standard change propagation).

Source: Blakeley, Larson and Tompa (SIGMOD 1986). The plan of Q(a) = R(a, b) S(b, c) T(c)::

          Q(a)                on S(b, c) += m:
         /    \                   for a, r in R[_, b]:
      RS(a, c)  T(c)                  RS[a, c] += m * r
      /    \                          if t := T[c]:
    R(a, b)  S(b, c)                      Q[a] += m * r * t
                                  S[b, c] += m
"""

from __future__ import annotations

from freshviews.expr.nodes import columns_of
from freshviews.plan.assemble import assembled
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, nest
from freshviews.plan.leaves import (
    Carrier,
    add_to,
    components_over,
    leaf_view,
    result_view,
    row_carrier,
    trigger,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import RESULT, Namer, joined_name
from freshviews.plan.optional import optional_view, update_negated, update_optional
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Strategy
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.statements import Body, Loop
from freshviews.program.structure import visit
from freshviews.program.views import View
from freshviews.query.query import Atom, Query


def plan(query: Query) -> Program:
    """The program that stores every intermediate result of a left-deep plan of binary joins.

    Source: the incremental operators of Blakeley, Larson and Tompa (SIGMOD 1986) and Griffin and Libkin (SIGMOD 1995).
    Stream processors work in this way. This plan is the baseline of the CROWN paper (Wang, Hu, Dai, Yi, PVLDB 16(5),
    2023, section 2.3).

    The plan is left-deep: atoms are joined one after the other, and the result after each join is stored. The key of a
    stored result has the free variables, and the variables that later joins, conditions and lifts need. An update of an
    atom is joined with the stored join of the atoms before it, then with each atom after it. Each stored result on the
    way is updated, row by row.

    Atoms are joined in the order of the query, but an atom that shares a variable with an earlier atom goes first.
    """
    return _LeftDeep(query).program()


def join_order(query: Query) -> tuple[Atom, ...]:
    """The atoms in join order: the first of the query, then always an atom that is connected to those before it, if
    there is one. An optional atom comes after those that bind its given variables, a negated one at the end."""
    left = list(query.atoms)
    order = [next(atom for atom in left if atom.given is None)]
    left.remove(order[0])
    while left:
        bound = {v for atom in order for v in atom.variables}
        ready = [atom for atom in left if bound.issuperset(atom.given or ())]
        best = max(ready, key=lambda atom: (bool(bound.intersection(atom.variables)), -left.index(atom)))
        left.remove(best)
        order.append(best)
    return (*order, *query.negated)


class _LeftDeep:
    """Writes the program. ``leaves[k]`` is the view of the k-th atom, ``results[k]`` that of the join of the first k +
    1 atoms. ``results[0]`` is ``leaves[0]``, and the last result is that of the query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.atoms = join_order(query)
        self.names = Namer(query)
        self.pending = self._pending()
        self.leaves = tuple(leaf_view(query, atom, self.names.view(atom.name)) for atom in self.atoms)
        self.optional = {
            leaf.name: optional_view(leaf, atom.given, self.names)
            for leaf, atom in zip(self.leaves, self.atoms, strict=True)
            if atom.given is not None
        }
        self.results = tuple(self._result(k) for k in range(len(self.atoms)))

    def _bound_variables(self, k: int) -> frozenset[str]:
        """The variables of the first k + 1 atoms."""
        return frozenset(v for atom in self.atoms[: k + 1] for v in atom.variables)

    def _pending(self) -> tuple[Pending, ...]:
        """The conditions and lifts across atoms to apply at each join: the first one that binds their variables."""
        left, found = Pending.of(self.query), []
        for k in range(len(self.atoms)):
            bound = self._bound_variables(k)
            found.append(left.where(bound.issuperset))
            left = left.where(lambda names, bound=bound: not bound.issuperset(names))  # type: ignore[misc]
        return tuple(found)

    def _result(self, k: int) -> View:
        query, last = self.query, len(self.atoms) - 1
        joined = [atom.name for atom in self.atoms[: k + 1]]
        if k == last:
            return result_view(query)
        later = {v for atom in self.atoms[k + 1 :] for v in atom.variables} | set(query.free)
        for pending in self.pending[k + 1 :]:
            later.update(v for condition in pending.conditions for v in columns_of(condition))
            later.update(v for _, let, _ in pending.lifts for v in columns_of(let.expr))
        key = tuple(v for v in query.variables if v in later & self._bound_variables(k))
        applied = frozenset(name for pending in self.pending[: k + 1] for name, _, _ in pending.lifts)
        components = components_over(query, frozenset(joined), applied)
        if k == 0:
            return View(self.leaves[0].name, key, components, definition=self.leaves[0].definition)
        name = self.names.view(joined_name(tuple(joined)))
        return View(name, key, components, definition=" join ".join(joined))

    def program(self) -> Program:
        indexes: Indexes = {}
        triggers = tuple(self._trigger(k, indexes) for k in range(len(self.atoms)))
        kept = [self.results[0]]
        for leaf, result in zip(self.leaves[1:], self.results[1:], strict=True):
            indicator = self.optional[leaf.name].indicator if leaf.name in self.optional else None
            kept += [leaf, result] if indicator is None else [leaf, indicator, result]
        views = with_indexes(kept, indexes)
        query = self.query
        loops = any(isinstance(s, Loop) for t in triggers for s in visit(t.body))
        bounds = (
            ("update", "O(|change of the intermediate results|)" if loops else "O(1)"),
            ("delay", "O(1)"),
            ("space", "O(N + |intermediate results|)"),
        )
        return Program(
            query.name, query.free, views, triggers, Held(RESULT), strategy="change_propagation", bounds=bounds
        )

    def _trigger(self, k: int, indexes: Indexes) -> Trigger:
        atom = self.atoms[k]
        bound = frozenset(atom.variables)
        leaf, update = self.leaves[k], (update_carrier(self.query, atom),)
        steps = () if k == 0 else (self._step(self.results[k - 1]),)

        def go_on(join: Join, j: int) -> Body:
            """Continue with the change of result j, which is bound: add it, and join it with the next atom."""
            add = add_to(self.results[j], join.carriers)
            if j + 1 == len(self.atoms):
                return (add,)
            step = self._step(self.leaves[j + 1], self.atoms[j + 1])
            further = Join(join.bound, join.carriers, (step,), self.pending[j + 1])
            return (add, *nest(further, lambda done: go_on(done, j + 1), indexes))

        def delta(carriers: tuple[Carrier, ...]) -> Body:
            return nest(Join(bound, carriers, steps, self.pending[k]), lambda done: go_on(done, k), indexes)

        if leaf.name in self.optional:
            body = update_optional(self.optional[leaf.name], update, delta, self.names)
        elif atom in self.query.negated:
            body = update_negated(leaf, update, delta)
        else:
            body = delta(update) + ((add_to(leaf, update),) if k > 0 else ())
        return trigger(self.query, atom, body)

    def _step(self, view: View, atom: Atom | None = None) -> Step:
        """The view as one to join with; ``atom`` if it is the leaf of an atom."""
        alias = self.names.alias(view.name)
        if atom is not None and atom in self.query.negated:
            return Step(view.name, view.key, alias, None, negated=True)
        return Step(view.name, view.key, alias, row_carrier(alias, view), given=None if atom is None else atom.given)


STRATEGY = Strategy(
    "change_propagation", assembled(plan), plan, bags=lambda request: BagPlanner(plan), kinds=EVERY_KIND
)
