"""Attaches bags to a join tree. A *bag* is a part of a cyclic query that a strategy other than CROWN joins first.

An addition to the view Q, which holds the rows of a bag, becomes an update of a node of the join tree::

    Q[v1, v2] += m * s          becomes          delta = sum: delta += m * s
                                                 if delta: let a = v1, b = v2; update the node by (a, b) += delta

A *guard* restricts a bag by an atom outside the bag. The guard has the distinct values of some columns of that atom::

    on R(a, b) += m:
        R_guard_rows[a, b] += m
            appears: R_guard_keys[a] += 1
                appears: update R_guard by (a) += 1
            vanishes: R_guard_keys[a] += -1
                vanishes: update R_guard by (a) += -1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan.leaves import Carrier, add_count, sum_carrier
from freshviews.plan.naming import Namer, names_of
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Component, Monomial
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.results import Held
from freshviews.program.rewrite import Renaming, at_multiplicity, rename, renamed, transform
from freshviews.program.statements import Add, Body, Into, Let, Loop, Smaller, Statement, Sum
from freshviews.program.structure import uses, visit, with_bodies
from freshviews.program.traced import TracedJoin
from freshviews.program.upkeep import Evaluated
from freshviews.program.views import View
from freshviews.query.query import Atom
from freshviews.records import dataclass
from freshviews.types import BIGINT

Handle = Callable[[tuple[Carrier, ...]], Body]


@dataclass(frozen=True)
class Reader:
    """A node that reads a bag. ``places``: positions of its ``variables`` in the output of the bag's program.
    ``handle`` writes the statements of the node for the change of a row, whose variables are bound."""

    name: str
    variables: tuple[str, ...]
    places: tuple[int, ...]
    handle: Handle


@dataclass(frozen=True)
class AttachedBag:
    """The parts of a bag's program below the nodes that read it."""

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    joins: tuple[TracedJoin, ...]


def attached(program: Program, guards: Mapping[str, Atom], readers: tuple[Reader, ...], names: Namer) -> AttachedBag:
    """Attaches a bag's program to the nodes that read it; its names begin with the name of the first of these.

    ``guards``: the atoms behind relations that are guards. Raises PlanError if the program recomputes the bag, has
    parts to rebalance, or does not hold the bag in a view that it only adds to.

    One program may serve several isomorphic bags (``plan.crown.alike``). Then each of their nodes gets each change. If
    the variables of a node are bound before a loop, the node gets the sum of the changes in the loop. In this program
    of triangles over one table, one node reads the last corner, c, and another node reads the first corner, a::

        for c, s in E[b]:                     becomes          first = sum:
            if t := E[a, c]:                                       for c, s in E[b]:
                Q[a, c] += m * s * t                                   if t := E[a, c]:
                                                                           last = sum: last += m * s * t
                                                                           if last: update one node by (c) += last
                                                                           first += m * s * t
                                                               if first: update the other by (a) += first

    If a traced leapfrog triejoin maintains the bag, the node gets the derivations of that join as a batch.
    """
    if isinstance(program.upkeep, Evaluated):
        raise PlanError(
            f"{program.name}: strategy {program.strategy} cannot maintain a bag, because this strategy reports no "
            "changes"
        )
    if program.balancing is not None:
        raise PlanError(
            f"{program.name}: strategy {program.strategy} cannot maintain a bag, because this strategy has heavy and "
            "light parts"
        )
    result = program.result
    if not isinstance(result, Held) or any(reads(t.body, result.view) for t in program.triggers):
        raise PlanError(
            f"{program.name}: strategy {program.strategy} cannot maintain a bag, because this strategy reads its own "
            "result"
        )
    bag = readers[0].name
    prefix = _Prefix(bag, names)
    views = {view.name: prefix.of("view", view.name) for view in program.views}
    kept = tuple(replace(v, name=views[v.name]) for v in program.views if v.name != result.view)
    triggers: list[Trigger] = []
    for one in program.triggers:
        made = _trigger(one, prefix, views, program.view(result.view), readers)
        if one.relation in guards:
            more, made = _guard_trigger(made, prefix, one.relation, guards[one.relation])
            kept += more
        triggers.append(made)
    joins = program.upkeep.joins
    relations = {one.derivations: one.derivations for one in joins}
    return AttachedBag(kept, tuple(triggers), tuple(one.renamed({**views, **relations}) for one in joins))


@dataclass(frozen=True)
class _Prefix:
    """Names of a bag's program in the program above: each begins with the bag's name."""

    bag: str
    names: Namer

    def of(self, kind: str, name: str) -> str:
        return self.names.of((self.bag, kind, name), f"{self.bag}_{name}")


def reads(body: Body, view: str) -> bool:
    """True if a body reads a view."""
    return any(view in uses(statement).views for statement in visit(body))


def _guard_trigger(trigger: Trigger, prefix: _Prefix, guard: str, source: Atom) -> tuple[tuple[View, ...], Trigger]:
    """The trigger of a guard, rewritten for the atom that it is a projection of; and the views that count."""
    key = {p.expr.name: p.name for p in trigger.parameters if isinstance(p.expr, Column)}
    names = tuple(key.get(v, prefix.of("variable", f"{guard}_{v}")) for v in source.variables)
    stored = prefix.of("view", f"{guard}_rows")
    rows = View(stored, source.variables, COUNTED, definition=f"{source.name}, which guards {prefix.bag}")
    views: tuple[View, ...] = (rows,)
    comes, goes = at_multiplicity(trigger.body, 1), at_multiplicity(trigger.body, -1)
    if len(key) < len(source.variables):
        keys = prefix.of("view", f"{guard}_keys")
        projected = View(keys, tuple(key), COUNTED, definition=f"projection of {source.name}")
        views = (*views, projected)
        place = tuple(key.values())
        comes = (replace(add_count(projected, 1, place), appear=comes),)
        goes = (replace(add_count(projected, -1, place), vanish=goes),)
    body = (Add(rows.name, names, (COUNT,), (Monomial((MULTIPLICITY,)),), comes, goes),)
    parameters = tuple(Parameter(name, column) for name, column in zip(names, source.columns, strict=True))
    return views, Trigger(source.relation, parameters, source.filters, body)


def _trigger(
    trigger: Trigger, prefix: _Prefix, views: dict[str, str], result: View, readers: tuple[Reader, ...]
) -> Trigger:
    """A trigger of a bag, in which the readers take the place of the view ``result``."""
    variables, aliases = names_of(trigger.body)
    variables.update(p.name for p in trigger.parameters)
    names = {name: prefix.of("variable", name) for name in sorted(variables)}
    body = rename(trigger.body, names, {alias: prefix.of("row", alias) for alias in sorted(aliases)})

    to = Renaming(views=views)

    def change(statement: Statement) -> Body:
        is_result = isinstance(statement, Add) and statement.view == result.name
        return (statement if is_result else renamed(statement, to),)

    parameters = tuple(replace(p, name=names[p.name]) for p in trigger.parameters)
    totals = {
        reader.name: prefix.of("sum", "delta" if i == 1 else f"delta_{i}") for i, reader in enumerate(readers, 1)
    }
    handing = _Handing(result.name, result.components, readers, totals)
    bound = frozenset(p.name for p in parameters)
    return Trigger(trigger.relation, parameters, trigger.filters, handing.body(transform(body, change), bound))


@dataclass(frozen=True)
class _Handing:
    """Replaces additions to the view ``output`` by the statements of readers. ``totals``: by reader, the alias of the
    sum that it gets."""

    output: str
    components: tuple[Component, ...]
    readers: tuple[Reader, ...]
    totals: Mapping[str, str]

    def body(self, body: Body, bound: frozenset[str], summed: tuple[Reader, ...] = ()) -> Body:
        """The body, with these variables bound. The readers of ``summed`` get a sum that is open around the body."""
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Let):
                bound |= {statement.variable}
            keys = self.keys(statement)
            if not keys:
                result.append(statement)
            elif isinstance(statement, Add) and statement.view == self.output:
                result += (s for reader in self.readers for s in self.added(statement, reader, reader in summed))
            else:
                here = tuple(r for r in self.readers if r not in summed and self.is_summed(r, statement, keys, bound))
                whole: Body = (self.within(statement, bound, (*summed, *here)),)
                for reader in here:
                    whole = self.pass_to_reader(reader, keys[0], whole)
                result += whole
        return tuple(result)

    def keys(self, statement: Statement) -> list[tuple[str, ...]]:
        """The keys of the additions to the output within a statement."""
        return [s.key for s in visit((statement,)) if isinstance(s, Add) and s.view == self.output]

    def is_summed(
        self, reader: Reader, statement: Statement, keys: list[tuple[str, ...]], bound: frozenset[str]
    ) -> bool:
        """True if a statement loops over changes that all belong to one row of the reader."""
        rows = {tuple(key[i] for i in reader.places) for key in keys}
        loops = any(isinstance(s, Loop) and self.keys(s) for s in visit((statement,)))
        return loops and len(rows) == 1 and bound.issuperset(*rows)

    def within(self, statement: Statement, bound: frozenset[str], summed: tuple[Reader, ...]) -> Statement:
        match statement:
            case Smaller(left=left, right=right):
                sides = [self.within(side, bound, summed) for side in (left, right)]
                assert isinstance(sides[0], Loop) and isinstance(sides[1], Loop)
                return Smaller(sides[0], sides[1])
            case Loop(key=key):
                bound |= frozenset(key)
        return with_bodies(statement, lambda body: self.body(body, bound, summed))

    def added(self, statement: Add, reader: Reader, summed: bool) -> Body:
        into: Body = (Into(self.totals[reader.name], statement.payload),)
        return into if summed else self.pass_to_reader(reader, statement.key, into)

    def pass_to_reader(self, reader: Reader, key: tuple[str, ...], body: Body) -> Body:
        """The statements that sum up the changes of the body and pass the sum to the reader."""
        total = self.totals[reader.name]
        carrier = sum_carrier(total, self.components)
        lets = (Let(v, Column(key[i], BIGINT)) for v, i in zip(reader.variables, reader.places, strict=True))
        return (Sum(total, self.components, body, (*lets, *reader.handle((carrier,)))),)
