"""Bags of atoms whose rows are kept by a strategy of their own, below change propagation without joins.

The program of a bag holds its rows in a view. That view's place is taken by a node of the join tree: wherever the
program adds to its result, the payload is summed up and handed to the node, as an update of the bag::

    Q[v1, v2] += m * s          becomes          delta = sum: delta += m * s
                                                 if delta: let a = v1, b = v2; what the node does with (a, b) += delta

Where several bags are kept by one program (``freshviews.plan.crown.alike``), each of their nodes reads it: what is
found is handed to one after the other, as if the rows of one bag changed before those of the next. Such a program may
have more variables in its output than a node has. Where a node's are bound before a loop, what the loop finds is
summed up for it. Of triangles over one table, at one node known by their last corner, at the other by their first::

    for c, s in E[b]:                     becomes          first = sum:
        if t := E[a, c]:                                       for c, s in E[b]:
            Q[a, c] += m * s * t                                   if t := E[a, c]:
                                                                       last = sum: last += m * s * t
                                                                       if last: what the one does with (c) += last
                                                                       first += m * s * t
                                                           if first: what the other does with (a) += first

Where the bag is kept by the trace of a leapfrog triejoin, its derivations are what the node takes: they are a batch of
their own, and the bag's views are those of its rows and of what these grow by.

An update of an atom that guards the bag, which has the atom's rows projected, once each, is counted first::

    on R(a, b) += m:
        R_guard_rows[a, b] += m
            appears: R_guard_keys[a] += 1
                appears: what the program does with R_guard(a) += 1
            vanishes: R_guard_keys[a] += -1
                vanishes: what the program does with R_guard(a) += -1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan.leaves import Carrier
from freshviews.plan.naming import Namer, names_of
from freshviews.program.payload import COUNT, MULTIPLICITY, Component, Monomial
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.results import Held
from freshviews.program.rewrite import Renaming, at_multiplicity, rename, renamed, transform
from freshviews.program.statements import Add, Into, Let, Loop, Smaller, Statement, Sum
from freshviews.program.structure import uses, visit, with_bodies
from freshviews.program.traced import TracedJoin
from freshviews.program.upkeep import Evaluated
from freshviews.program.views import View
from freshviews.query.query import Atom
from freshviews.types import BIGINT

Body = tuple[Statement, ...]
Handle = Callable[[tuple[Carrier, ...]], Body]


@dataclass(frozen=True)
class Reader:
    """A node that reads a bag: ``places`` of its ``variables`` in the output of the bag's program; ``handle`` writes
    what is done with a change of a row, whose variables are bound then."""

    name: str
    variables: tuple[str, ...]
    places: tuple[int, ...]
    handle: Handle


@dataclass(frozen=True)
class Hung:
    """What the program of a bag becomes, below the node in the place of its result."""

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    joins: tuple[TracedJoin, ...]


def hung(
    program: Program, guards: Mapping[str, Atom], readers: tuple[Reader, ...], names: Namer
) -> Hung:
    """A bag's program below the nodes that read it; its names begin with the name of the first of these.

    ``guards``: the atoms behind relations that are guards. PlanError where the program does not hold the bag in a view
    that it only adds to, recomputes it, or has parts to rebalance.
    """
    if isinstance(program.upkeep, Evaluated):
        raise PlanError(f"{program.name}: {program.strategy} cannot keep a bag, as it does not tell what changes in it")
    if program.balancing is not None:
        raise PlanError(f"{program.name}: {program.strategy} cannot keep a bag, as it rebalances heavy and light parts")
    result = program.result
    if not isinstance(result, Held) or any(reads(t.body, result.view) for t in program.triggers):
        raise PlanError(f"{program.name}: {program.strategy} cannot keep a bag, as it reads its result")
    bag = readers[0].name
    prefix = _Prefix(bag, names)
    views = {view.name: prefix.of("view", view.name) for view in program.views}
    kept = tuple(replace(v, name=views[v.name]) for v in program.views if v.name != result.view)
    triggers: list[Trigger] = []
    for one in program.triggers:
        made = _trigger(one, prefix, views, program.view(result.view), readers)
        if one.relation in guards:
            more, made = _guarded(made, prefix, one.relation, guards[one.relation])
            kept += more
        triggers.append(made)
    joins = program.upkeep.joins
    relations = {one.derivations: one.derivations for one in joins}
    return Hung(kept, tuple(triggers), tuple(one.renamed({**views, **relations}) for one in joins))


@dataclass(frozen=True)
class _Prefix:
    """Names of a bag's program in the program above: each begins with the bag's name."""

    bag: str
    names: Namer

    def of(self, kind: str, name: str) -> str:
        return self.names.of((self.bag, kind, name), f"{self.bag}_{name}")


def reads(body: tuple[Statement, ...], view: str) -> bool:
    """Whether a body looks into a view."""
    return any(view in uses(statement).views for statement in visit(body))


def _guarded(trigger: Trigger, prefix: _Prefix, guard: str, source: Atom) -> tuple[tuple[View, ...], Trigger]:
    """The trigger of a guard as one of the atom whose projection it is, and the views that count."""
    key = {p.expr.name: p.name for p in trigger.parameters if isinstance(p.expr, Column)}
    names = tuple(key.get(v, prefix.of("variable", f"{guard}_{v}")) for v in source.variables)
    count = (Component(COUNT, "integer"),)
    stored = prefix.of("view", f"{guard}_rows")
    rows = View(stored, source.variables, count, definition=f"{source.name}, which guards {prefix.bag}")
    views: tuple[View, ...] = (rows,)
    comes, goes = at_multiplicity(trigger.body, 1), at_multiplicity(trigger.body, -1)
    if len(key) < len(source.variables):
        keys = prefix.of("view", f"{guard}_keys")
        projected = View(keys, tuple(key), count, definition=f"projection of {source.name}")
        views = (*views, projected)
        place = tuple(key.values())
        comes = (Add(projected.name, place, (COUNT,), (Monomial(()),), comes),)
        goes = (Add(projected.name, place, (COUNT,), (Monomial((), -1),), (), goes),)
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
    """Puts what readers do with changes into the place of additions to the view ``output``. ``totals``: by reader, the
    alias of the sum that it is handed."""

    output: str
    components: tuple[Component, ...]
    readers: tuple[Reader, ...]
    totals: Mapping[str, str]

    def body(self, body: Body, bound: frozenset[str], summed: tuple[Reader, ...] = ()) -> Body:
        """The body, with these variables bound; for the readers of ``summed`` a sum is open around it."""
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
                    whole = self.handed(reader, keys[0], whole)
                result += whole
        return tuple(result)

    def keys(self, statement: Statement) -> list[tuple[str, ...]]:
        """Keys of the additions to the output within a statement."""
        return [s.key for s in visit((statement,)) if isinstance(s, Add) and s.view == self.output]

    def is_summed(
        self, reader: Reader, statement: Statement, keys: list[tuple[str, ...]], bound: frozenset[str]
    ) -> bool:
        """Whether a statement loops over changes of one row of the reader's."""
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
        return into if summed else self.handed(reader, statement.key, into)

    def handed(self, reader: Reader, key: tuple[str, ...], body: Body) -> Body:
        """The reader takes what the body sums up for it."""
        total = self.totals[reader.name]
        carrier = Carrier(total, frozenset(c.name for c in self.components if c.name != COUNT))
        lets = (Let(v, Column(key[i], BIGINT)) for v, i in zip(reader.variables, reader.places, strict=True))
        return (Sum(total, self.components, body, (*lets, *reader.handle((carrier,)))),)
