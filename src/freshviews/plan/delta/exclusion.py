"""Looks up negated atoms (NOT EXISTS) only when a value first appears in a group, instead of for every joined row.

For ``COUNT(DISTINCT x)`` by ``a`` over ``R(a, k) S(k, x) !T(x)``, ``appears`` runs if the entry just changed was 0
before, and ``vanishes`` if it is 0 now::

    on R(a, k) += m:                            on T(x) += m:
        for x, s in S[k]:                           T[x] += m
            D[a, x] += m * s                            appears:
                appears:                                    for a, d in D[_, x]:
                    if no T[x]:                                 Q[a] += (count: -1, number: -1)
                        Q[a] += (count: 1, number: 1)   vanishes: the same, with 1 instead of -1
        R[a, k] += m
"""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.plan.assemble import Change
from freshviews.plan.delta.nest import Indexes, Join, Step, nest
from freshviews.plan.leaves import Carrier, leaf_view, row_carrier, trigger, update_carrier
from freshviews.plan.naming import Namer
from freshviews.plan.optional import update_negated
from freshviews.program.program import Trigger
from freshviews.program.statements import Body
from freshviews.program.views import View
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass


@dataclass(frozen=True)
class Exclusion:
    """An ``assemble.Exclusion``: negated atoms, and the view of the rows of each."""

    query: Query
    atoms: tuple[Atom, ...]
    views: tuple[View, ...]
    names: Namer

    def passing(self, key: Sequence[str], body: Body) -> Body:
        """The body, to run where no atom excludes the row with this key."""
        named = dict(zip(self.query.free, key, strict=True))
        return nest(Join(frozenset(key), (), tuple(self._steps(named))), lambda _: body, {})

    def triggers(self, store: View, change: Change, indexes: Indexes) -> tuple[Trigger, ...]:
        """The triggers of the atoms. The indexes of the store that they need are added to ``indexes``."""
        placed = zip(self.atoms, self.views, strict=True)
        return tuple(self._trigger(atom, view, store, change, indexes) for atom, view in placed)

    def _trigger(self, atom: Atom, view: View, store: View, change: Change, indexes: Indexes) -> Trigger:
        alias = self.names.row(store.name)
        row = Step(store.name, self.query.free, alias, row_carrier(alias, store))
        others = [step for step in self._steps({v: v for v in self.query.free}) if step.view != view.name]

        def delta(carriers: tuple[Carrier, ...]) -> Body:
            join = Join(frozenset(atom.variables), carriers, (row, *others))
            return nest(join, lambda done: change(done.carriers), indexes)

        return trigger(self.query, atom, update_negated(view, (update_carrier(self.query, atom),), delta))

    def _steps(self, named: dict[str, str]) -> list[Step]:
        return [
            Step(view.name, tuple(named[v] for v in atom.variables), self.names.row(view.name), None, negated=True)
            for atom, view in zip(self.atoms, self.views, strict=True)
        ]


def exclusion(query: Query, atoms: Sequence[Atom], names: Namer) -> Exclusion:
    """The exclusion by some negated atoms of a query, all of whose variables are free. ``names`` names their views.

    If all variables of a negated atom are in the key of a store ``D[g, x]``, the atom excludes whole rows of ``D``.
    Then ``D`` also has the excluded rows, but they do not count in their groups. An update of the negated atom finds
    them by an index of ``D``. An update takes no longer than if the join looked up the atom. ``D`` is as large as the
    result without the atom.
    """
    views = (leaf_view(query, atom, names.view(atom.name)) for atom in atoms)
    return Exclusion(query, tuple(atoms), tuple(views), names)
