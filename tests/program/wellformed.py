"""The rules of programs that the types of ``freshviews.program`` do not express."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.expr.nodes import columns_of
from freshviews.program.payload import MULTIPLICITY, ZERO, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.results import Enumerated, Held, Listed, SliceSource, Source, UnionSource
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Changed,
    Clear,
    Cross,
    Cursor,
    Emit,
    Exists,
    Forget,
    Framed,
    If,
    Into,
    Leap,
    Let,
    Lookup,
    Loop,
    Move,
    Perform,
    Range,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)
from freshviews.program.structure import visit
from freshviews.query.block import BY
from freshviews.ring import CofactorRing, RecordedRing, named


def check(program: Program) -> None:
    """Raises AssertionError if the program breaks a rule."""
    names = [view.name for view in program.stores]
    assert len(set(names)) == len(names), f"two views are named alike: {names}"
    if isinstance(program.result, Held):
        assert program.view(program.result.view).journal
    for trigger in program.triggers:
        variables = [parameter.name for parameter in trigger.parameters]
        assert len(set(variables)) == len(variables), f"two parameters are named alike: {variables}"
        assert MULTIPLICITY.name not in variables
        _Check(program).body(trigger.body, {MULTIPLICITY.name, *variables}, {}, frozenset())
    _Check(program).body(program.upkeep.statements, set(), {}, frozenset())
    for trie in program.upkeep.tries:
        assert sorted(trie.order) == list(range(len(program.view(trie.view).key))), f"{trie} does not order its view"
    walked = {c.trie for s in visit(program.upkeep.statements) if isinstance(s, Leap) for c in s.cursors}
    assert walked == {trie.name for trie in program.upkeep.tries} and len(walked) == len(program.upkeep.tries)
    match program.result:
        case Enumerated(rows, member, awake):
            _Check(program).body(rows, set(), {}, frozenset())
            _Check(program).body(awake, set(), {}, frozenset())
            _Check(program).body(member, set(program.free), {}, frozenset())
        case Listed(sources, total, delta):
            _Check(program).body((total,), set(program.free), {}, frozenset())
            _Check(program).listing(sources, set())
            assert total.components == program.view(delta).components
    used = _Check.used_indexes(program)
    if program.balancing is not None:
        for partition in program.balancing.partitions:
            for body in (partition.rise, partition.sink):
                _Check(program).body(body, set(partition.value), {}, frozenset())
            # The degree of a value is the size of its slice.
            used.add((partition.view, partition.by, ""))
        for procedure in program.balancing.procedures:
            known = {MULTIPLICITY.name, *procedure.parameters}
            _Check(program).body(procedure.body, known, {}, frozenset())
        _Check(program).body(program.balancing.recompute, set(), {}, frozenset())
    for traced in program.upkeep.joins:
        assert any(trigger.relation == traced.derivations for trigger in program.triggers)
        for view, edits in traced.edits:
            assert program.view(view).key == program.view(edits).key
        read = {atom.relation: len(atom.variables) for atom in traced.rule.atoms}
        assert read == {view: len(program.view(view).key) for view, _ in traced.edits}
    for view in program.views:
        for index in view.indexes:
            assert (view.name, index, "") in used, f"no loop needs the index {index} of {view.name}"
        for subset in view.subsets:
            for index in subset.indexes:
                assert (view.name, index, subset.name) in used, f"nothing needs {view.name}.{subset.name} by {index}"
        if view.tally:
            assert view.components[-1] == Component(view.tally, "integer"), f"the tally of {view.name} is not last"


def _sources(listing: tuple[Source, ...]) -> Iterator[Source]:
    """All sources of a listing, and the rows of its unions."""
    for one in listing:
        yield one
        if isinstance(one, UnionSource):
            yield from (rows for rows in (one.light, one.heavy) if rows is not None)
            yield from _sources(one.inner)


class _Check:
    def __init__(self, program: Program, has: bool = False) -> None:
        self.program = program
        self.has = has

    def listing(self, sources: tuple[Source, ...], variables: set[str]) -> None:
        """Every source binds new variables; those of a union are the variables that each of its sets binds."""
        for one in sources:
            if isinstance(one, SliceSource):
                self.rows(one, variables)
                variables = variables | set(one.key)
                continue
            assert not variables.intersection(one.variables)
            if one.light is not None:
                self.rows(one.light, variables)
                assert set(one.light.key) - variables == set(one.variables)
            self.rows(one.heavy, variables)
            inside = variables | set(one.heavy.key)
            self.listing(one.inner, inside)
            _Check(self.program, has=True).body(one.has, inside | set(one.variables), {}, frozenset())
            variables = variables | set(one.variables)

    def rows(self, rows: SliceSource, variables: set[str]) -> None:
        self.view(rows.view, rows.key)
        for i, variable in enumerate(rows.key):
            assert (variable in variables) == (i in rows.bound), f"{variable} in the rows of {rows.view}"

    @staticmethod
    def used_indexes(program: Program) -> set[tuple[str, tuple[int, ...], str]]:
        bodies = [t.body for t in program.triggers]
        bodies += [program.upkeep.statements, *program.result.bodies]
        listed = list(_sources(program.result.sources)) if isinstance(program.result, Listed) else []
        bodies += [one.has for one in listed if isinstance(one, UnionSource)]
        if program.balancing is not None:
            bodies += [body for p in program.balancing.partitions for body in (p.rise, p.sink)]
            bodies.append(program.balancing.recompute)
            bodies += [p.body for p in program.balancing.procedures]
        used = {(one.view, one.bound, one.among) for one in listed if isinstance(one, SliceSource)}
        for body in bodies:
            statements = list(visit(body))
            used |= {(s.view, s.bound, s.among) for s in statements if isinstance(s, Loop | Exists)}
            # An index counts as used, too, if its events report rows that are alone in a slice.
            held = {s.alias: s.view for s in statements if isinstance(s, Loop | Lookup | Add) and s.alias}
            for s in statements:
                if isinstance(s, Move):
                    used |= {(held[s.alias], event.bound, s.subset) for event in s.events}
        return used

    def body(
        self,
        statements: tuple[Statement, ...],
        variables: set[str],
        rows: dict[str, tuple[Component, ...]],
        open_views: frozenset[str],
    ) -> None:
        """``open_views``: views that an enclosing loop or lookup reads."""
        variables = set(variables)
        for statement in statements:
            match statement:
                case Let(variable, expr):
                    assert variables.issuperset(columns_of(expr)), statement
                    variables.add(variable)
                case If(condition, inner):
                    assert variables.issuperset(columns_of(condition)), statement
                    self.body(inner, variables, rows, open_views)
                case Lookup(view, key, alias, inner, otherwise, optional):
                    assert not (optional and otherwise)
                    assert variables.issuperset(key), f"{view}[{key}] is looked up with unbound variables"
                    self.row(alias, variables, rows)
                    components = self.view(view, key)
                    self.body(inner, variables, {**rows, alias: components}, open_views | {view})
                    self.body(otherwise, variables, rows, open_views)
                case Balance(view, key):
                    assert variables.issuperset(key)
                    assert not open_views and self.program.balancing is not None
                    assert view in self.program.balancing.stores
                case Perform(procedure, arguments, sign):
                    assert self.program.balancing is not None and sign in (1, -1)
                    assert len(self.program.balancing.procedure(procedure).parameters) == len(arguments)
                    assert variables.issuperset(arguments)
                case Loop():
                    self.loop(statement, variables, rows, open_views)
                case Smaller(left, right):
                    self.loop(left, variables, rows, open_views)
                    self.loop(right, variables, rows, open_views)
                case Leap(cursors, inner):
                    scope = dict(rows)
                    for cursor in cursors:
                        trie = next(trie for trie in self.program.upkeep.tries if trie.name == cursor.trie)
                        assert cursor.key[-1] == statement.variable and variables.issuperset(cursor.key[:-1])
                        assert statement.variable not in variables, f"{statement.variable} is bound twice"
                        assert bool(cursor.alias) == (len(cursor.key) == len(trie.order)), f"{cursor} comes to a row"
                        if cursor.alias:
                            self.row(cursor.alias, variables, rows)
                            scope[cursor.alias] = self.program.view(trie.view).components
                    self.body(inner, {*variables, statement.variable}, scope, open_views | self.walked(cursors))
                case Exists(view, key, bound, inner, among):
                    assert variables.issuperset(key), f"{view}[{key}] is asked for with unbound variables"
                    assert len(key) == len(bound)
                    self.program.view(view).place_of_index(bound, among)
                    self.body(inner, variables, rows, open_views)
                case Tally(alias, component, amount, full, inner):
                    assert component in {c.name for c in rows[alias]} and full > 0 and abs(amount) <= 1
                    self.body(inner, variables, rows, open_views)
                case Move(alias, _, sign, events):
                    assert alias in rows and sign in (1, -1)
                    for event in events:
                        self.body(event.alone, variables, rows, open_views)
                        self.body(event.others, variables, rows, open_views)
                case Sum(alias, components, inner, then, _, remembered):
                    assert variables.issuperset(remembered), statement
                    self.row(alias, variables, rows)
                    scope = {**rows, alias: components}
                    self.body(inner, variables, scope, open_views)
                    self.body(then, variables, scope, open_views)
                case Into(alias, payload):
                    for component, monomial in zip(rows[alias], payload, strict=True):
                        self.monomial(monomial, component.ring, variables, rows)
                case Add(view, key, names, payload, appear, vanish, stay, alias):
                    assert view not in open_views, f"{view} is changed while it is read"
                    assert variables.issuperset(key), f"{view}[{key}] += with unbound variables"
                    rings = {c.name: c.ring for c in self.view(view, key)}
                    for name, monomial in zip(names, payload, strict=True):
                        self.monomial(monomial, rings[name], variables, rows)
                    scope = dict(rows)
                    if alias:
                        self.row(alias, variables, rows)
                        scope[alias] = self.view(view, key)
                    for inner in (appear, vanish, stay):
                        self.body(inner, variables, scope, open_views)
                case Scan(view, key, component, source, within, kind):
                    assert variables.issuperset((*key, *within)), statement
                    assert view not in open_views, f"{view} is changed while it is read"
                    assert component in {c.name for c in self.view(view, key)}
                    ordered = self.program.view(source)
                    ends: tuple[str, ...] = BY if len(ordered.ordered) > 1 else ("min", "max")
                    if len(ordered.key) != len(within) + len(ordered.ordered):
                        assert len(ordered.key) > len(within) + len(ordered.ordered) and ordered.ordered
                        ends = ()
                    assert kind in (*ends, *ordered.folds)
                case Top(alias, grown, first, last, key, change, inner):
                    assert alias in rows and grown in variables and 0 <= first <= last
                    assert variables.isdisjoint((*key, change)), "a Top binds new variables"
                    self.body(inner, variables | {*key, change}, rows, open_views)
                case RangeSum(alias, place):
                    self.range(place, variables)
                    view = self.program.view(place.view)
                    assert all(c in view.components and c.name in view.sums for c in rows[alias])
                case RangeLoop(place, key, alias, inner):
                    self.range(place, variables)
                    assert variables.isdisjoint(key) and len(key) == len(self.program.view(place.view).ordered)
                    self.row(alias, variables | set(key), rows)
                    scope = {**rows, alias: self.program.view(place.view).components}
                    self.body(inner, variables | set(key), scope, open_views | {place.view})
                case Clear(view):
                    assert view in {one.name for one in self.program.upkeep.scratch} and view not in open_views
                case Changed(inner):
                    self.body(inner, variables, rows, open_views)
                case Emit(row, payload):
                    assert variables.issuperset(row), statement
                    if self.has:
                        assert payload == (Monomial(()),)
                        continue
                    assert len(row) == len(self.program.free)
                    for component, monomial in zip(self.program.result.emitted, payload, strict=True):
                        self.monomial(monomial, component.ring, variables, rows)
                case Beside() | Framed() | Cross() | Forget() | Renumber():
                    pass
                case _:
                    raise AssertionError(f"no rule for {type(statement).__name__}")

    def range(self, rows: Range, variables: set[str]) -> None:
        view = self.program.view(rows.view)
        assert variables.issuperset(rows.variables), f"{rows} has unbound variables"
        assert view.ordered and len(view.prefix) == len(rows.prefix), f"{rows} is not over the order of its view"
        assert not (view.ordered[0].descending or view.ordered[0].nulls_last)

    def walked(self, cursors: tuple[Cursor, ...]) -> frozenset[str]:
        names = {cursor.trie for cursor in cursors}
        return frozenset(trie.view for trie in self.program.upkeep.tries if trie.name in names)

    def view(self, name: str, key: tuple[str, ...]) -> tuple[Component, ...]:
        view = self.program.view(name)
        assert len(view.key) == len(key), f"{name} has the key {view.key}, not {key}"
        return view.components

    def row(self, alias: str, variables: set[str], rows: dict[str, tuple[Component, ...]]) -> None:
        assert alias not in rows, f"{alias} names two rows"
        assert alias not in variables, f"{alias} names a row and a variable"

    def loop(
        self,
        loop: Loop,
        variables: set[str],
        rows: dict[str, tuple[Component, ...]],
        open_views: frozenset[str],
    ) -> None:
        components = self.view(loop.view, loop.key)
        for i, variable in enumerate(loop.key):
            assert (variable in variables) == (i in loop.bound), f"{variable} in the loop over {loop.view}"
        if loop.bound or loop.among:
            self.program.view(loop.view).place_of_index(loop.bound, loop.among)
        self.row(loop.alias, variables | set(loop.key), rows)
        scope = {**rows, loop.alias: components}
        self.body(loop.body, variables | set(loop.key), scope, open_views | {loop.view})

    def monomial(
        self, monomial: Monomial, ring: str, variables: set[str], rows: dict[str, tuple[Component, ...]]
    ) -> None:
        assert monomial.coefficient != 0 or monomial == ZERO
        rings = []
        for factor in monomial.factors:
            match factor:
                case ComponentOf(alias, component):
                    rings.append({c.name: c.ring for c in rows[alias]}[component])
                case Value(name, kind):
                    assert name in variables, f"{name} is unbound"
                    rings.append(kind)
        others = [kind for kind in rings if kind != "integer"]
        if not isinstance(named(ring), CofactorRing | RecordedRing):
            assert others in ([], [ring]), f"{ring} is the product of {rings}"
            return
        for kind in others:
            part = named(kind)
            assert type(part) is type(named(ring)), f"{ring} is the product of {rings}"
            assert _arguments(part) <= _arguments(named(ring)), f"{ring} does not have the variables of {kind}"


def _arguments(ring: object) -> set[int]:
    """The arguments from which elements of a ring are made."""
    assert isinstance(ring, CofactorRing | RecordedRing)
    return set(ring.variables if isinstance(ring, CofactorRing) else ring.places)
