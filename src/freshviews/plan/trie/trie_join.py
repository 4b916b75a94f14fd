"""Evaluates a join again after every batch, by leapfrog triejoin, which is worst-case optimal.

Source: Veldhuizen, Leapfrog Triejoin, ICDT 2014. Variables are bound one at a time, to the intersection of sorted
lists. In the plan of Q() = R(a, b) S(b, c) T(c, a), r, s and t are counts of rows::

    T_a_c = T in order of a, c
    evaluate:
        u1 = sum:
            for a in R[a] & T_a_c[a]:
                for b in R[a, b] as r & S[b]:
                    u2 = sum:
                        for c in S[b, c] as s & T_a_c[a, c] as t:
                            u2 += s * t
                    if u2:
                        u1 += r * u2
        if u1:
            Q[] += u1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from itertools import chain

from freshviews.expr.nodes import columns_of
from freshviews.plan.assemble import assemble
from freshviews.plan.delta.first_order import Store, stores_of
from freshviews.plan.delta.nest import Indexes, Pending
from freshviews.plan.leaves import (
    Carrier,
    add_to,
    all_components,
    components_over,
    product,
    result_view,
    row_carrier,
    sum_carrier,
    trigger,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.optional import with_given
from freshviews.plan.strategy import EVERY_KIND, Request, Strategy
from freshviews.plan.trie.key_order import (
    PROPERTY,
    Estimates,
    best_key_order,
    named_order,
    parts,
    without_lookups,
)
from freshviews.program.payload import COUNTED, Component, Monomial
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body, Clear, Cursor, Into, Leap, Lookup, Loop, Sum
from freshviews.program.upkeep import Evaluated
from freshviews.program.views import Trie, View
from freshviews.query.block import counts_values
from freshviews.query.dependencies import FD
from freshviews.query.edge_cover import edge_cover_number
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass

WORTH = 4
"""Maximum ratio, by the estimates, of values visited by tabulating and without: a tabulated value costs an addition,
another one a search."""


def plan(
    query: Query,
    dependencies: tuple[FD, ...] = (),
    order: tuple[str, ...] | None = None,
    once: bool = False,
    sizes: Mapping[str, float] | None = None,
) -> Program:
    """The program of a query. ``dependencies`` are keys of its atoms, ``order`` is the key order if one is named,
    ``sizes`` are rows by relation. ``once``: only the presence of a row of the result matters.

    The program stores the rows of each relation, as under ``first_order``. An atom is read through a trie of its rows
    in key order. Departures:

    - Variables that are not in the result are summed over, not listed. A sum that depends on only some of the bound
      variables is cached by those variables (Kalinsky, Etsion, Kimelfeld, Flexible Caching in Trie Joins, EDBT 2017).
    - A sum may be *tabulated* by a variable that is bound later: it is computed for all values of that variable
      together.
    - If only the presence of a row matters, a sum ends at the first match.
    - Atoms of the same relation, with the same order and the same variables bound so far, share a cursor.
    - Optional and negated atoms are not part of the leapfrog join. Their rows are looked up by hash.
    - The key order is chosen by estimated cost (``plan.trie.key_order``); 'freshviews.key_order' overrides it.
    """
    chosen = order or best_key_order(query, dependencies, sizes)
    names = Namer(query)
    stores = stores_of(query, dependencies, names)
    estimates = Estimates(without_lookups(query), dependencies, sizes or {})
    writer = _Writer(query, chosen, stores, once, estimates, with_given(query, query.free), names)
    evaluate = writer.whole()
    time = f"O(N^{writer.exponent})" if writer.exponent > 1 else "O(N)"
    if any(atom.given is not None for atom in query.atoms):
        time += ", times the partners in outer joins"
    return Program(
        query.name,
        query.free,
        (*with_indexes((store.view for store in stores), writer.indexes), result_view(query)),
        tuple(_loading(query, store) for store in stores),
        Held(RESULT, presence=once),
        strategy="trie_join",
        bounds=(
            ("key order", ", ".join(chosen)),
            ("tries", "; ".join(writer.described()) or "none"),
            ("update", f"recomputed at every batch: {time}, up to a logarithm; a row is stored in O(1)"),
            ("delay", "O(1)"),
            ("space", "O(N + |result|)"),
        ),
        upkeep=Evaluated(evaluate, tuple(writer.tries.values()), tuple(writer.scratch)),
    )


def _loading(query: Query, store: Store) -> Trigger:
    """The trigger that stores the rows of a relation."""
    first = store.atoms[0]
    return trigger(query, first, (add_to(store.view, (update_carrier(query, first),), key=first.variables),))


@dataclass(frozen=True)
class _Table:
    """A scratch view of sums by one variable, for the ``bound`` variables; ``atoms`` are summed over."""

    view: View
    variable: str
    bound: tuple[str, ...]
    atoms: frozenset[str]

    @property
    def edge(self) -> frozenset[str]:
        return frozenset((*self.bound, self.variable))


@dataclass(frozen=True)
class _Point:
    """A point in the join. ``path``: bound variables, in order. ``left`` and ``atoms``: variables and atoms still to
    join. ``pending``: expressions whose variables are not all bound. ``carriers``: factors of the innermost sum.
    ``begun``: number of variables that were bound where that sum began, -1 outside of sums. ``tables``: tables still to
    be looked up. ``optional`` and ``negated``: such atoms still to be looked up. ``opened``: variables that optional
    atoms have bound."""

    path: tuple[str, ...]
    left: tuple[str, ...]
    atoms: tuple[Atom, ...]
    pending: Pending
    carriers: tuple[Carrier, ...] = ()
    begun: int = -1
    tables: tuple[_Table, ...] = ()
    optional: tuple[Atom, ...] = ()
    negated: tuple[Atom, ...] = ()
    opened: tuple[str, ...] = ()

    @property
    def bound(self) -> frozenset[str]:
        return frozenset((*self.path, *self.opened))


_Finish = Callable[[tuple[Carrier, ...]], Body]


@dataclass
class _Writer:
    query: Query
    order: tuple[str, ...]
    stores: tuple[Store, ...]
    once: bool
    estimates: Estimates
    kept: frozenset[str]
    """Variables that are not summed over."""
    names: Namer
    tries: dict[tuple[str, tuple[int, ...]], Trie] = field(default_factory=dict)
    exponent: Fraction = Fraction(0)
    scratch: list[View] = field(default_factory=list)
    tabulates: bool = True
    indexes: Indexes = field(default_factory=dict)
    _served: dict[tuple[str, tuple[int, ...]], set[str]] = field(default_factory=dict)
    _aliases: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    _sums: int = 0

    def whole(self) -> Body:
        """The statements that evaluate the result."""
        pending = Pending(self.query.conditions) if self.once else Pending.of(self.query)
        components = all_components(self.query)

        def finish(carriers: tuple[Carrier, ...]) -> Body:
            payload = (Monomial(()),) * len(components) if self.once else product(components, carriers)
            return (Add(RESULT, self.query.free, tuple(c.name for c in components), payload),)

        optional = tuple(a for a in self.query.atoms if a.given is not None)
        atoms = tuple(a for a in self.query.atoms if a.given is None)
        start = _Point((), self.order, atoms, pending, optional=optional, negated=self.query.negated)
        return self.below(start, finish)

    def described(self) -> list[str]:
        """Each trie with the atoms that it serves."""
        found = []
        for (view, order), trie in self.tries.items():
            store = next(s for s in self.stores if s.view.name == view)
            served = [a.name for a in store.atoms if a.name in self._served[view, order]]
            key = ", ".join(store.view.key[i] for i in order)
            found.append(f"{trie.name} = {store.atoms[0].relation} by {key}, for {', '.join(served)}")
        return found

    def below(self, point: _Point, finish: _Finish) -> Body:
        """Statements from a point of the join on."""
        applied = point.pending.applied(point, lambda ready: self.below(ready, finish))
        if applied is not None:
            return applied
        for atom in point.negated:
            if point.bound.issuperset(atom.variables):
                body = self.below(replace(point, negated=tuple(a for a in point.negated if a is not atom)), finish)
                return (Lookup(self._store(atom).view.name, atom.variables, self._alias(atom), (), body),)
        for atom in point.atoms:
            if point.bound.issuperset(atom.variables):
                others = tuple(a for a in point.atoms if a is not atom)
                view = self._store(atom).view
                alias = self._alias(atom)
                carriers = (*point.carriers, row_carrier(alias, view))
                body = self.below(replace(point, atoms=others, carriers=carriers), finish)
                return body if atom.variables else (Lookup(view.name, (), alias, body),)
        for table in point.tables:
            if table.variable in point.bound:
                alias = self.names.row(table.view.name)
                tables = tuple(one for one in point.tables if one is not table)
                carriers = (*point.carriers, row_carrier(alias, table.view))
                body = self.below(replace(point, tables=tables, carriers=carriers), finish)
                return (Lookup(table.view.name, (table.variable,), alias, body),)
        if not point.left:
            return self._looked_up(point, finish) if point.optional else finish(point.carriers)
        return self._tabulated(point, finish) or self._summed(point, finish) or self._leap(point, finish)

    def _looked_up(self, point: _Point, finish: _Finish) -> Body:
        """The statements for the next optional atom: its rows, or its default row, and the statements that follow."""
        atom = next(a for a in point.optional if point.bound.issuperset(a.given or ()))
        view, alias = self._store(atom).view, self._alias(atom)
        rest = replace(
            point,
            optional=tuple(a for a in point.optional if a is not atom),
            carriers=(*point.carriers, row_carrier(alias, view)),
            opened=(*point.opened, *atom.opened),
        )
        body = self.below(rest, finish)
        if not atom.opened:
            return (Lookup(view.name, atom.variables, alias, body, optional=True),)
        at = tuple(i for i, v in enumerate(atom.variables) if v in (atom.given or ()))
        if at:
            self.indexes.setdefault(view.name, set()).add(at)
        return (Loop(view.name, atom.variables, at, alias, body, optional=True),)

    def _tabulated(self, point: _Point, finish: _Finish) -> Body:
        """The statements that tabulate a part, and those of the rest; () if no part is worth it."""
        if not self.tabulates or self.once or not point.path or point.optional or point.negated:
            return ()
        found = next((one for one in self._tables(point) if self._is_worth(point, *one)), None)
        if found is None:
            return ()
        part, last = found
        atoms = tuple(a for a in point.atoms if not frozenset(part).isdisjoint(a.variables))
        order = (*point.path, *_along(part, last, point.path, atoms), last)
        if not all(self._can_be_reordered(atom, order, point) for atom in atoms):
            return ()
        joined = frozenset(a.name for a in atoms)
        name = self.names.view(f"w{1 + len(self.scratch)}")
        components = components_over(self.query, joined)
        what = f"what {', '.join(part)} add up to, by {last}"
        table = _Table(View(name, (last,), components, definition=what), last, point.path, joined)
        self.scratch.append(table.view)
        writer = replace(self, order=order, kept=frozenset((last,)), tabulates=False)

        def add(carriers: tuple[Carrier, ...]) -> Body:
            return (add_to(table.view, carriers),)

        body = writer.below(_Point(point.path, order[len(point.path) :], atoms, Pending((), ())), add)
        self.exponent, self._sums = max(self.exponent, writer.exponent), writer._sums
        left = tuple(v for v in point.left if v not in part)
        others = tuple(a for a in point.atoms if a not in atoms)
        rest = replace(point, left=left, atoms=others, tables=(*point.tables, table))
        return (Clear(name), *body, *self.below(rest, finish))

    def _can_be_reordered(self, atom: Atom, order: tuple[str, ...], point: _Point) -> bool:
        """True if an atom can be read in another order from this point on: none of its variables is bound, or the
        orders agree on it."""
        before, after = ([v for v in one if v in atom.variables] for one in (self.order, order))
        return before == after or point.bound.isdisjoint(atom.variables)

    def _tables(self, point: _Point) -> Iterator[tuple[tuple[str, ...], str]]:
        """The parts that could be tabulated, each with its variable. The variable is bound later, but not next. The
        part depends on it and on the bound variables alone."""
        edges = self._edges(point)
        waiting = frozenset(
            chain.from_iterable(columns_of(e) for e in point.pending.expressions),
        ).union(*(table.edge for table in point.tables))
        for i, last in enumerate(point.left):
            bound = point.bound.union(point.left[: i + 1])
            for part in parts(point.left[i + 1 :], [edge - bound for edge in edges]) if i > 0 else ():
                mine = frozenset(part)
                around = frozenset[str]().union(*(edge for edge in edges if not mine.isdisjoint(edge))) - mine
                if around != {*point.path, last} or not mine.isdisjoint(self.kept | waiting):
                    continue
                inner = [a for a in point.atoms if not mine.isdisjoint(a.variables)]
                others = [a for a in point.atoms if last in a.variables and a not in inner]
                components = components_over(self.query, frozenset(a.name for a in inner))
                # Another atom must still bind the variable. The rows of a single atom are adjacent and need no table.
                if others and len(inner) > 1 and all(c.ring == "integer" for c in components):
                    yield part, last

    def _is_worth(self, point: _Point, part: tuple[str, ...], last: str) -> bool:
        """True if tabulating a part is no more work than visiting the values of its variable: by the bounds, and within
        a factor of ``WORTH`` by the estimates."""
        mine = frozenset((*point.path, *part, last))
        path = frozenset((*point.path, *point.left[: point.left.index(last) + 1]))
        edges = {a.name: frozenset(a.variables) for a in self.query.atoms}
        # The atoms of the part are read in full; of the others only the bound variables are known.
        seen = {name: edge & point.bound if edge.isdisjoint(part) else edge for name, edge in edges.items()}
        known = [edge for edge in seen.values() if edge]
        fits = edge_cover_number(mine, known) <= edge_cover_number(path, list(edges.values()))
        return fits and self.estimates.size(mine, seen) <= WORTH * self.estimates.size(path)

    def _summed(self, point: _Point, finish: _Finish) -> Body:
        """The statements of the first part that is summed by itself, and those of the rest; () if there is none."""
        found = parts(point.left, [edge - point.bound for edge in self._edges(point)])
        for part in found:
            mine = self._with_opened(point, part)
            if not self.kept.isdisjoint(mine):
                continue
            inner, rest = self._split(point, part, mine)
            components = self._components(inner)
            remembered = self._depends(inner)
            if len(remembered) == len(point.path) or any(c.ring != "integer" for c in components):
                remembered = ()
            alone = point.begun >= 0 and len(found) == 1 and not point.carriers
            if alone and (not remembered or point.begun == len(point.path)):
                continue
            self._sums += 1
            alias = self.names.of(("sum", self._sums), f"u{self._sums}")
            body = self.below(inner, self._add_to(alias, components))
            carrier = sum_carrier(alias, components)
            then = self.below(replace(rest, carriers=(*point.carriers, carrier)), finish)
            return (Sum(alias, components, body, then, self.once, remembered),)
        return ()

    def _add_to(self, alias: str, components: tuple[Component, ...]) -> _Finish:
        def finish(carriers: tuple[Carrier, ...]) -> Body:
            return (Into(alias, (Monomial(()),) if self.once else product(components, carriers)),)

        return finish

    def _edges(self, point: _Point) -> list[frozenset[str]]:
        """The edges that connect variables. Edges that share a variable of a pending optional atom are merged."""
        atoms = (frozenset(a.variables) for a in (*point.atoms, *point.optional, *point.negated))
        exprs = (frozenset(columns_of(e)) for e in point.pending.expressions)
        edges = [*atoms, *exprs, *(table.edge for table in point.tables)]
        for variable in (v for atom in point.optional for v in atom.opened):
            one = frozenset[str]().union(*(edge for edge in edges if variable in edge))
            edges = [*(edge for edge in edges if variable not in edge), one]
        return edges

    def _with_opened(self, point: _Point, part: tuple[str, ...]) -> frozenset[str]:
        """The variables of a part, and those that its optional atoms open."""
        opened = frozenset(v for atom in point.optional for v in atom.opened)
        around = frozenset[str]().union(*(edge for edge in self._edges(point) if not edge.isdisjoint(part)))
        return frozenset(part) | around & opened

    def _split(self, point: _Point, part: tuple[str, ...], mine: frozenset[str]) -> tuple[_Point, _Point]:
        """The point of a part's sum, and the point after it. ``mine``: the variables that the sum binds."""

        def side(inside: bool) -> _Point:
            def own(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
                return tuple(a for a in atoms if mine.isdisjoint(a.variables) != inside)

            return replace(
                point,
                atoms=own(point.atoms),
                pending=point.pending.where(lambda names: mine.isdisjoint(names) != inside),
                tables=tuple(table for table in point.tables if (table.variable in mine) == inside),
                optional=own(point.optional),
                negated=own(point.negated),
            )

        begun = replace(side(True), left=part, carriers=(), begun=len(point.path), opened=())
        return begun, replace(side(False), left=tuple(v for v in point.left if v not in mine))

    def _components(self, inner: _Point) -> tuple[Component, ...]:
        if self.once:
            return COUNTED
        spanning = frozenset(name for name, _, _ in inner.pending.lifts)
        atoms = frozenset(a.name for a in (*inner.atoms, *inner.optional)).union(*(t.atoms for t in inner.tables))
        return components_over(self.query, atoms, spanning)

    def _depends(self, inner: _Point) -> tuple[str, ...]:
        """The bound variables on which a sum depends, in order."""
        mine = frozenset[str]().union(*self._edges(inner))
        return tuple(v for v in inner.path if v in mine)

    def _leap(self, point: _Point, finish: _Finish) -> Body:
        variable, *left = point.left
        cursors: dict[tuple[str, tuple[str, ...]], Cursor] = {}
        for atom in point.atoms:
            if variable in atom.variables:
                walk = self._walk(atom)
                key = walk[: walk.index(variable) + 1]
                trie = self._trie(atom).name
                cursors.setdefault((trie, key), Cursor(trie, key, self._alias(atom) if key == walk else ""))
        path = (*point.path, variable)
        edges = [frozenset(a.variables) for a in self.query.atoms if a.given is None]
        self.exponent = max(self.exponent, edge_cover_number(frozenset(path), edges))
        body = self.below(replace(point, path=path, left=tuple(left)), finish)
        return (Leap(tuple(cursors.values()), body),)

    def _walk(self, atom: Atom) -> tuple[str, ...]:
        """The variables of an atom in key order."""
        return tuple(sorted(atom.variables, key=self.order.index))

    def _order_of(self, atom: Atom) -> tuple[int, ...]:
        return tuple(atom.variables.index(v) for v in self._walk(atom))

    def _store(self, atom: Atom) -> Store:
        return next(store for store in self.stores if atom in store.atoms)

    def _trie(self, atom: Atom) -> Trie:
        view, order = self._store(atom).view, self._order_of(atom)
        self._served.setdefault((view.name, order), set()).add(atom.name)
        known = self.tries.get((view.name, order))
        if known is None:
            as_stored = order == tuple(range(len(order)))
            name = view.name if as_stored else self.names.fresh("_".join([view.name, *(view.key[i] for i in order)]))
            known = self.tries[view.name, order] = Trie(name, view.name, order)
        return known

    def _alias(self, atom: Atom) -> str:
        """The name of the row that the cursor of an atom finds. Atoms that share a cursor share the row."""
        place = (self._store(atom).view.name, tuple(atom.variables))
        if place not in self._aliases:
            self._aliases[place] = self.names.row(atom.name)
        return self._aliases[place]


def _along(part: tuple[str, ...], last: str, path: tuple[str, ...], atoms: tuple[Atom, ...]) -> tuple[str, ...]:
    """The variables of a part, ordered so that each shares an atom with those before as far as possible. Ties go to
    variables that share no atom with the last one."""
    order: list[str] = []
    near = frozenset(v for a in atoms if last in a.variables for v in a.variables)
    while len(order) < len(part):
        known = {*path, *order}
        rest = [v for v in part if v not in order]
        met = [v for v in rest if any(v in a.variables and not known.isdisjoint(a.variables) for a in atoms)]
        order.append(min(met or rest, key=lambda v: (v in near, part.index(v))))
    return tuple(order)


def _plan(request: Request) -> Program:
    main, positive = request.query, not request.joins_negative
    counted = [one.query for one in request.block.distinct if counts_values(one.kind)]

    def plan_query(query: Query) -> Program:
        once = positive and query not in counted and (query is not main or request.is_distinct)
        return plan(query, request.keys_of(query), named_order(request, query), once, request.sizes)

    return assemble(request.block, plan_query, not positive)


_PROPERTIES = frozenset({PROPERTY})
STRATEGY = Strategy("trie_join", _plan, plan, properties=_PROPERTIES, owns=_PROPERTIES, kinds=EVERY_KIND)
