"""IVM^eps for listing: enumerates the rows of a triangle join R(a, b), S(b, c), T(c, a) with constant delay.

- The view ``M`` stores the triangles whose three values are all heavy or all light.
- ``V_ST(a, b, c)`` stores the joined rows of S and T where b is heavy in S and c is light in T. ``N_ST(a, b)`` counts
  these rows.
- The subset ``R.listed`` has the rows of R that match V_ST. S and T have such subsets for V_TR and V_RS.

The plan of Q(a, b, c) = R(a, b) S(b, c) T(c, a), as far as R is concerned::

    on R(a, b) += m:
        if changes are wanted:
            if S_heavy[b]:
                for c, v in V_ST[a, b]: emit (a, b, c) * m * v
                for c, t in T.heavy[_, a]: if S[b, c]: emit ...
            else:
                for c, s in S[b]: if T[c, a]: emit ...
        a and b light: for c, s in S[b] where c is light: if t := T[c, a]: M[a, b, c] += m * s * t
        a and b heavy: for c, t in T.heavy[_, a]: ...
        a heavy, b light: for c, s in S[b]: V_RS[a, b, c] += m * s
            appears: N_RS[c, a] += 1                    appears: the row of T enters T.listed
        a light: for c, t in T.heavy[_, a]: V_TR[a, b, c] += m * t ...
        R[a, b] += m
            appears: if N_ST[a, b]: the row enters R.listed
        balance R by a

`docs/ivm-eps.md` explains the cases. An update takes O(N^max(eps, 1 - eps)) steps, amortised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from freshviews.errors import PlanError
from freshviews.plan.delta.first_order import Store
from freshviews.plan.eps.cases import Auxiliary, Beside, Cases, Table
from freshviews.plan.eps.cycle import Cycle, after, cycle_of
from freshviews.plan.eps.triangle import sums
from freshviews.plan.leaves import Carrier, add_count, product, spanning_lifts
from freshviews.plan.naming import Namer, joined_name
from freshviews.program.payload import COUNTED, Monomial
from freshviews.program.program import Program
from freshviews.program.results import Enumerated
from freshviews.program.statements import Add, Body, Changed, Emit, If, Lookup, Loop, Move
from freshviews.program.views import Subset, View
from freshviews.query.query import Query

LISTED = "listed"
"""The subset of the rows from which a row of the result is enumerated."""


def plan(query: Query, epsilon: float | Mapping[str, float], distinct: bool = False) -> Program | None:
    """The program of a join of three relations in a cycle whose result has all their variables; None for others.

    ``distinct``: the result has each row once. ``epsilon`` as for ``triangle``.

    The result is read from ``M`` and from the listed rows. A listed row of R yields the rows of V_ST with its a and b.
    Listed rows of S and T are read in the same way.

    DISTINCT counts each row of the result once. DISTINCT requires relations without negative multiplicities.
    """
    try:
        cycle = cycle_of(query, epsilon)
    except PlanError:
        return None
    if set(query.free) != set(query.variables) or spanning_lifts(query) or len(query.aggregates) > 1:
        return None
    if any(not role.by or len(role.by) == len(role.atom.variables) for role in cycle):
        return None
    return _Listing(query, cycle, distinct).program()


class _Listing:
    """Writes the program."""

    def __init__(self, query: Query, cycle: Cycle, distinct: bool) -> None:
        self.query = query
        self.cycle = cycle
        self.distinct = distinct
        self.namer = Namer(query)
        self.pairs: dict[str, str] = {}
        """By atom, the view of the two others in which the first has a heavy value and the second a light one."""
        auxiliaries, result = [], {}
        everything = query.variables
        for role in cycle:
            first, second = after(cycle, role)
            pair = f"V_{joined_name((first.name, second.name))}"
            self.pairs[role.name] = pair
            where, result[role.name] = sums(first, second, pair)
            auxiliaries.append(Auxiliary(pair, everything, (first.name, second.name), (where,)))
        alike = tuple({role.part(role.by): heavy for role in cycle} for heavy in (True, False))
        names = tuple(role.name for role in cycle)
        self.all = "M"
        auxiliaries.append(Auxiliary(self.all, everything, names, alike))
        table = Table(tuple(auxiliaries), result)
        self.numbers = {
            self.pairs[role.name]: View(
                self.namer.view(f"N{self.pairs[role.name][1:]}"),
                role.atom.variables,
                COUNTED,
                definition=f"rows of {self.pairs[role.name]} by row of {role.name}",
            )
            for role in cycle
        }
        self.cases = Cases(query, table, {role.name: role.given for role in cycle}, self.namer, added=self.added)

    def view(self, name: str) -> View:
        return self.cases.factors[name].view

    def program(self) -> Program:
        result, numbers = Enumerated(self.everything(), self.member()), tuple(self.numbers.values())
        program = self.cases.program(result, self.bounds(), self.beside, self.unlisted())
        listed = {self.view(name).name for name in (*(role.name for role in self.cycle), self.all)}
        views = (
            replace(v, subsets=(*v.subsets, Subset(LISTED, ((),)))) if v.name in listed else v for v in program.views
        )
        assert program.balancing is not None
        emptied = (*program.balancing.auxiliary, *(view.name for view in numbers))
        return replace(program, views=(*views, *numbers), balancing=replace(program.balancing, auxiliary=emptied))

    def added(self, name: str, add: Add) -> Add:
        """An Add to a view that also updates which rows are listed, if a row of the view appears or vanishes."""
        if name == self.all:
            alias = self.namer.marked(self.view(name).name, "added")
            return replace(add, alias=alias, appear=(Move(alias, LISTED, 1),))
        number = self.numbers[name]
        atom = next(role.name for role in self.cycle if self.pairs[role.name] == name)
        store = self.view(atom)
        row = self.namer.marked(store.name, "listed")
        enters = Lookup(store.name, store.key, row, (Move(row, LISTED, 1),))
        leaves = Lookup(store.name, store.key, row, (Move(row, LISTED, -1),))
        more, less = (replace(add_count(number, 1), appear=(enters,)), replace(add_count(number, -1), vanish=(leaves,)))
        return replace(add, appear=(more,), vanish=(less,))

    def emit(self, carriers: tuple[Carrier, ...], sign: int = 1) -> Body:
        (monomial,) = product(COUNTED, carriers)
        return (Emit(self.query.free, (Monomial((), sign) if self.distinct else monomial,)),)

    def beside(self, store: Store) -> Beside:
        """The change of the result where it is wanted, and whether a new row is listed."""
        (atom,) = store.atoms
        row, number = self.namer.marked(store.view.name, "new"), self.numbers[self.pairs[atom.name]]
        enters = Lookup(number.name, number.key, self.namer.row(number.name), (Move(row, LISTED, 1),))
        if not self.distinct:
            return Beside((Changed(self.cases.change(atom, self.emit)),), (enters,), (), row)
        more, less = (
            Changed(self.cases.change(atom, partial(self.emit, sign=sign), update=False)) for sign in (1, -1)
        )
        return Beside((), (enters, more), (less,), row)

    def unlisted(self) -> Body:
        """Take all rows out of ``listed``, before all views are recomputed."""
        stores = [self.cases.factors[role.name] for role in self.cycle]
        return tuple(Loop(s.view.name, s.view.key, (), s.alias, (Move(s.alias, LISTED, -1),)) for s in stores)

    def everything(self) -> Body:
        """Enumerate the result."""
        whole = self.cases.factors[self.all]
        body: Body = (Loop(whole.view.name, whole.view.key, (), whole.alias, self.emit((whole.carrier,)), LISTED),)
        for role in self.cycle:
            store, pair = self.cases.factors[role.name], self.cases.factors[self.pairs[role.name]]
            at = tuple(i for i, v in enumerate(pair.view.key) if v in store.view.key)
            inner = Loop(pair.view.name, pair.view.key, at, pair.alias, self.emit((store.carrier, pair.carrier)))
            body += (Loop(store.view.name, store.view.key, (), store.alias, (inner,), LISTED),)
        return body

    def member(self) -> Body:
        """Look up one row of the result."""
        stores = [self.cases.factors[role.name] for role in self.cycle]
        body = self.emit(tuple(store.carrier for store in stores))
        for store in stores:
            body = (Lookup(store.view.name, store.view.key, store.alias, body),)
        for condition in self.query.conditions:
            body = (If(condition, body),)
        return body

    def bounds(self) -> tuple[tuple[str, str], ...]:
        given = [role.given for role in self.cycle]
        time, space = max(max(e, 1 - e) for e in given), 1 + max(min(e, 1 - e) for e in given)
        return (("update", f"O(N^{time:g}) amortised, + |change| where it is wanted"), ("delay", "O(1)"),
                ("space", f"O(N^{space:g})"))
