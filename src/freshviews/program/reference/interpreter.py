"""Interprets the trigger language, in plain Python over dicts. Compiled code must do the same as the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import assert_never

from freshviews.expr.nodes import words_in
from freshviews.program.payload import COUNT, MULTIPLICITY
from freshviews.program.reference.balances import Balances
from freshviews.program.reference.listing import listed
from freshviews.program.reference.ordered_rows import compare, in_order, is_between, scanned, values, window
from freshviews.program.reference.payloads import Key, Payload, Scope, ring_of, value_of
from freshviews.program.reference.scalars import evaluate
from freshviews.program.reference.tables import Tables, enter, leave
from freshviews.program.reference.tracing import Batch, Tracing
from freshviews.program.results import Enumerated, Held, Listed
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Changed,
    Clear,
    Cross,
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
    PlaceBound,
    Range,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Smaller,
    Sum,
    Tally,
    Top,
)
from freshviews.program.upkeep import Evaluated, Settled
from freshviews.program.views import View
from freshviews.ring import named
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary

Level = dict[Key, list[int]]
"""A level of a trie: for the values that lead to a node, the values below it, in order."""


class _Enough(Exception):
    """Ends the body of a Sum with ``once``, after its first addition."""


@dataclass
class State(Tables):
    """The state of an interpreted program, empty at first. ``wanted``: whether a subscriber wants changes.

    If an expression fails, ``apply`` raises ScalarError, and the state must not be used any more.

    A view is a dict from key tuples to payload tuples. A row whose payload is zero in every component is absent.
    Integers are unbounded; compiled programs check for overflow.

    ``State.steps`` counts the work: updates, rows that loops visit, lookups, changes of rows, emitted rows. Tests of
    the bounds on update time and delay use this count.
    """

    dictionary: Dictionary | None = None
    wanted: bool = True
    journals: dict[str, dict[Key, Payload]] = field(default_factory=dict)
    emitted: dict[Key, Payload] = field(default_factory=dict)
    tries: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    balances: Balances = field(init=False)
    tracings: list[Tracing] = field(init=False)
    has_moved: bool = False
    """Whether a Scan with a component ``known`` has changed anything in the body of a RangeLoop."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.journals = {view.name: {} for view in self.program.stores if view.journal}
        self.balances = Balances(self, self.run)
        self.tracings = [Tracing(join, self.dictionary) for join in self.program.upkeep.joins]

    def want_changes(self, wanted: bool) -> None:
        """Start or stop recording the change of the result."""
        if wanted and not self.wanted and isinstance(self.program.result, Enumerated):
            self.run(self.program.result.awake, Scope())
        self.wanted = wanted

    def apply(self, relation: str, updates: Iterable[tuple[Mapping[str, int], int]]) -> None:
        """A batch of updates of one relation: rows (column to code) and their multiplicities."""
        self._run_triggers(relation, list(updates))
        for tracing in self.tracings:
            before = tracing.maintained.counters.operations
            batch = tracing.derivations(self.views, self.clear)
            self.steps += tracing.maintained.counters.operations - before
            self._run_triggers(tracing.traced.derivations, batch)
        if isinstance(self.program.upkeep, Evaluated):
            self.evaluate()
        if isinstance(self.program.upkeep, Settled):
            self.run(self.program.upkeep.statements, Scope())

    def _run_triggers(self, relation: str, batch: Batch) -> None:
        for trigger in (t for t in self.program.triggers if t.relation == relation):
            self.balances.expect([m for _, m in batch])
            for row, m in batch:
                self.steps += 1
                if all(evaluate(f, row, self.dictionary) == 1 for f in trigger.filters):
                    words = {p.name: words_in(p.expr) for p in trigger.parameters}
                    variables = {
                        p.name: evaluate(p.expr, row, self.dictionary) for p in trigger.parameters if not words[p.name]
                    }
                    elements = {name: tuple(row[c] for c in columns) for name, columns in words.items() if columns}
                    scope = Scope(
                        {**variables, MULTIPLICITY.name: m}, {}, self._collector(self.emitted), elements=elements
                    )
                    self.run(trigger.body, scope)
            self.balances.settle()

    def evaluate(self) -> None:
        """Recompute the views that the triggers do not maintain."""
        assert isinstance(self.program.upkeep, Evaluated)
        for name in self.program.upkeep.recomputed:
            for key, payload in self.views[name].items():
                if name in self.journals:
                    self.journals[name].setdefault(key, payload)
            self.views[name].clear()
            for index in self.indexes[name].values():
                index.clear()
        for trie in self.program.upkeep.tries:
            levels: tuple[Level, ...] = tuple({} for _ in trie.order)
            for row in sorted(tuple(key[i] for i in trie.order) for key in self.views[trie.view]):
                for i, level in enumerate(levels):
                    values = level.setdefault(row[:i], [])
                    if not values or values[-1] != row[i]:
                        values.append(row[i])
            self.tries[trie.name] = levels
        self.run(self.program.upkeep.statements, Scope())
        for view in self.program.upkeep.scratch:
            self.clear(view.name)

    def output(self) -> dict[Key, Payload]:
        """The result: payloads by values of the free variables; emitted rows are collected for an enumerated result."""
        match self.program.result:
            case Held(view):
                return dict(self.views[view])
            case Listed():
                return dict(self.listed())
            case Enumerated():
                rows: dict[Key, Payload] = {}
                self.enumerate(self._collector(rows))
                return self._present(rows)
            case _:
                assert_never(self.program.result)

    def enumerate(self, emit: Callable[[Key, Payload], None]) -> None:
        """Emit the rows of an Enumerated result, one after the other, with payloads."""
        assert isinstance(self.program.result, Enumerated)
        self.run(self.program.result.rows, Scope(emit=emit))

    def listed(self) -> Iterator[tuple[Key, Payload]]:
        """The rows of a Listed result, one after the other, each once, with their payloads."""
        assert isinstance(self.program.result, Listed)
        for variables in listed(self, self.run, self.program.result.sources, {}):
            found: dict[Key, Payload] = {}
            self.run((self.program.result.member,), Scope(variables, {}, self._collector(found)))
            yield from self._present(found).items()

    def find(self, row: Key) -> Payload:
        """The payload of a row of a result that is not stored; zero if it is absent."""
        result = self.program.result
        assert not isinstance(result, Held)
        member = (result.member,) if isinstance(result, Listed) else result.member
        found: dict[Key, Payload] = {}
        self.run(member, Scope(dict(zip(self.program.free, row, strict=True)), {}, self._collector(found)))
        return found.get(row, ring_of(result.emitted).zero)

    def change(self) -> dict[Key, Payload]:
        """The change of the result since the last call: the growth of each payload (for a Scan, the codes'
        difference)."""
        match self.program.result:
            case Held(name):
                return self._journaled(self.program.view(name))
            case Listed(delta=delta):
                grown = dict(self.views[delta])
                self.clear(delta)
                return grown
            case Enumerated():
                emitted, self.emitted = self.emitted, {}
                return self._present(emitted)
            case _:
                assert_never(self.program.result)

    def _journaled(self, view: View) -> dict[Key, Payload]:
        """The change of a view since its journal began; the journal begins again."""
        ring, rows = ring_of(view.components), self.views[view.name]
        journal, self.journals[view.name] = self.journals[view.name], {}
        pairs = ((key, rows.get(key, ring.zero), before) for key, before in journal.items())
        return {key: ring.add(after, ring.negate(before)) for key, after, before in pairs if after != before}

    def _collector(self, rows: dict[Key, Payload]) -> Callable[[Key, Payload], None]:
        """A function that adds each emitted payload to that of its row."""
        ring = ring_of(self.program.result.emitted)

        def add(row: Key, payload: Payload) -> None:
            rows[row] = ring.add(rows.get(row, ring.zero), payload)

        return add

    def _present(self, rows: dict[Key, Payload]) -> dict[Key, Payload]:
        ring = ring_of(self.program.result.emitted)
        return {row: payload for row, payload in rows.items() if not ring.is_zero(payload)}

    def run(self, body: Body, scope: Scope) -> None:
        """Run statements in a scope."""
        for statement in body:
            match statement:
                case Let(variable, expr):
                    scope.variables[variable] = evaluate(expr, scope.variables, self.dictionary)
                case If(condition, inner):
                    if evaluate(condition, scope.variables, self.dictionary) == 1:
                        self.run(inner, scope)
                case Lookup(name, key, alias, inner, otherwise, optional):
                    self.steps += 1
                    payload = self.views[name].get(scope.values(key))
                    if payload is None and optional:
                        payload = _default(self.program.view(name))
                    if payload is None:
                        self.run(otherwise, scope)
                    else:
                        scope.rows[alias] = (self.program.view(name).components, payload)
                        scope.places[alias] = (name, scope.values(key))
                        self.run(inner, scope)
                case Balance(name, key):
                    self.balances.restore(name, scope.values(key))
                case Perform(name, arguments, sign):
                    assert self.program.balancing is not None
                    procedure = self.program.balancing.procedure(name)
                    variables = dict(zip(procedure.parameters, scope.values(arguments), strict=True))
                    self.run(procedure.body, Scope({**variables, MULTIPLICITY.name: sign}, {}, scope.emit))
                case Loop():
                    self._loop(statement, scope)
                case Leap():
                    self._leap(statement, scope)
                case Exists(name, key, bound, inner, among):
                    self.steps += 1
                    if self.index(name, bound, among).get(scope.values(key)):
                        self.run(inner, scope)
                case Tally():
                    self._tally(statement, scope)
                case Move():
                    self._move(statement, scope)
                case Smaller(left, right):
                    self.steps += 2
                    less = len(self.slice(left, scope.variables)) <= len(self.slice(right, scope.variables))
                    self._loop(left if less else right, scope)
                case Sum(alias, components, inner, then, once):
                    zero = ring_of(components).zero
                    scope.rows[alias] = (components, zero)
                    with suppress(_Enough):
                        self.run(inner, replace(scope, enough=alias) if once else scope)
                    if scope.rows[alias][1] != zero:
                        self.run(then, scope)
                case Into(alias, sums):
                    components, payload = scope.rows[alias]
                    more = tuple(value_of(p, c.ring, scope) for c, p in zip(components, sums, strict=True))
                    scope.rows[alias] = (components, ring_of(components).add(payload, more))
                    if scope.enough == alias:
                        raise _Enough
                case Add():
                    self._add(statement, scope)
                case Scan(known=known):
                    (self._scan_range if known else self._scan)(statement, scope)
                case Top():
                    self._top(statement, scope)
                case Beside():
                    self._beside(statement, scope)
                case Framed():
                    self._framed(statement, scope)
                case Forget():
                    self._forget(statement, scope)
                case Renumber():
                    self._renumber(statement, scope)
                case Cross():
                    self._cross(statement, scope)
                case RangeSum():
                    self._range_sum(statement, scope)
                case RangeLoop():
                    self._range_loop(statement, scope)
                case Clear(name):
                    self.clear(name)
                case Changed(inner):
                    if self.wanted:
                        self.run(inner, scope)
                case Emit(row, sums):
                    self.steps += 1
                    # The membership test of a UnionSource emits only a count.
                    rings = (c.ring for c in self.program.result.emitted)
                    more = tuple(value_of(p, ring, scope) for p, ring in zip(sums, rings, strict=False))
                    scope.emit(scope.values(row), more)
                case _:
                    assert_never(statement)

    def _tally(self, statement: Tally, scope: Scope) -> None:
        self.steps += 1
        name, key = scope.places[statement.alias]
        view = self.program.view(name)
        at = [c.name for c in view.components].index(statement.component)
        before = self.views[name][key] if key in self.views[name] else scope.rows[statement.alias][1]
        after = (*before[:at], before[at] + statement.amount, *before[at + 1 :])
        if key in self.views[name]:
            self.views[name][key] = after
        scope.rows[statement.alias] = (view.components, after)
        if (before if statement.amount < 0 else after)[at] == statement.full:
            self.run(statement.body, scope)

    def _move(self, statement: Move, scope: Scope) -> None:
        self.steps += 1
        name, key = scope.places[statement.alias]
        slices = {at: index[tuple(key[i] for i in at)] for at, index in self.subsets[name, statement.subset].items()}
        if statement.sign > 0:
            for rows in slices.values():
                assert key not in rows, f"{key} is in {name}.{statement.subset} already"
                rows[key] = None
        for event in statement.events:
            self.run(event.alone if len(slices[event.bound]) == 1 else event.others, scope)
        if statement.sign < 0:
            for rows in slices.values():
                rows.pop(key, None)

    def _loop(self, loop: Loop, scope: Scope) -> None:
        components = self.program.view(loop.view).components
        # Python itself refuses an Add that makes or removes a row of what is being looped over.
        for key in self.slice(loop, scope.variables):
            self.steps += 1
            scope.variables.update(zip(loop.key, key, strict=True))
            scope.rows[loop.alias] = (components, self.views[loop.view][key])
            scope.places[loop.alias] = (loop.view, key)
            self.run(loop.body, scope)
        if loop.optional and not self.slice(loop, scope.variables):
            self.steps += 1
            scope.variables.update((v, NULL) for i, v in enumerate(loop.key) if i not in loop.bound)
            scope.rows[loop.alias] = (components, _default(self.program.view(loop.view)))
            self.run(loop.body, scope)

    def _range_sum(self, statement: RangeSum, scope: Scope) -> None:
        self.steps += 1
        view = self.program.view(statement.rows.view)
        components, payload = scope.rows[statement.alias]
        ring, places = ring_of(components), [view.components.index(c) for c in components]
        for key in self._range(statement.rows, scope):
            own = self.views[view.name][key]
            payload = ring.add(payload, ring.scale(tuple(own[i] for i in places), statement.coefficient))
        scope.rows[statement.alias] = (components, payload)

    def _range_loop(self, loop: RangeLoop, scope: Scope) -> None:
        self.steps += 1
        view = self.program.view(loop.rows.view)
        keys = self._range(loop.rows, scope)
        for key in {"first": keys[:1], "last": keys[-1:]}.get(loop.only, keys):
            self.steps += 1
            scope.variables.update(zip(loop.key, key[len(loop.rows.prefix) :], strict=True))
            scope.rows[loop.alias] = (view.components, self.views[view.name][key])
            scope.places[loop.alias] = (view.name, key)
            self.has_moved = False
            self.run(loop.body, scope)
            if loop.steady and not self.has_moved:
                break

    def _range(self, rows: Range, scope: Scope) -> list[Key]:
        """The keys of the rows of a range, in order."""
        view = self.program.view(rows.view)
        prefix, at = scope.values(rows.prefix), len(rows.prefix)
        assert len(view.prefix) == at, f"{view.name} is not ordered by the rest of its key"
        found = [key for key in self.views[view.name] if key[:at] == prefix]
        edges: list[tuple[int, bool] | None] = [None, None]
        for i, bound in enumerate((rows.low, rows.high)):
            if isinstance(bound, PlaceBound):
                place, first, sign = scope.values(bound.variables), at + bound.first, -1 if i else 1
                orders = view.ordered[bound.first : bound.first + len(place)]
                places = ((key, key[first : first + len(place)]) for key in found)
                found = [key for key, own in places if sign * compare(own, place, orders, self.dictionary) >= 0]
            elif bound is not None:
                edges[i] = scope.variables[bound.variable], bound.strict
        if not rows.is_of_places:
            low, high = edges
            found = [key for key in found if is_between(key[at], low, high, view.ordered[0], self.dictionary)]
        return in_order(found, view.ordered, self.dictionary)

    def _leap(self, leap: Leap, scope: Scope) -> None:
        found = [self.tries[c.trie][len(c.key) - 1].get(scope.values(c.key[:-1]), []) for c in leap.cursors]
        for value in sorted(set(found[0]).intersection(*found[1:])):
            self.steps += len(leap.cursors)
            scope.variables[leap.variable] = value
            for cursor in leap.cursors:
                if cursor.alias:
                    trie = next(trie for trie in self.program.upkeep.tries if trie.name == cursor.trie)
                    words = dict(zip(trie.order, scope.values(cursor.key), strict=True))
                    key = tuple(words[i] for i in range(len(words)))
                    scope.rows[cursor.alias] = (self.program.view(trie.view).components, self.views[trie.view][key])
            self.run(leap.body, scope)

    def _add(self, add: Add, scope: Scope) -> None:
        view = self.program.view(add.view)
        ring, key = ring_of(view.components), scope.values(add.key)
        given = dict(zip(add.components, add.payload, strict=True))
        more = tuple(
            value_of(given[c.name], c.ring, scope) if c.name in given else zero
            for c, zero in zip(view.components, ring.zero, strict=True)
        )
        before = self.views[view.name].get(key, ring.zero)
        after = ring.add(before, more)
        self._put(view, key, before, after)
        if add.alias:
            scope.rows[add.alias] = (view.components, after)
            scope.places[add.alias] = (view.name, key)
        absent_before, absent_after = _absent(view, before), _absent(view, after)
        if absent_before and not absent_after:
            self.run(add.appear, scope)
        elif absent_after and not absent_before:
            self.run(add.vanish, scope)
            for subset in view.subsets:
                leave(self.subsets[view.name, subset.name], key)
        elif not absent_before:
            self.run(add.stay, scope)

    def _put(self, view: View, key: Key, before: Payload, after: Payload) -> None:
        self.steps += 1
        if view.journal:
            self.journals[view.name].setdefault(key, before)
        rows, present = self.views[view.name], not _absent(view, after)
        if present:
            enter(self.indexes[view.name], key)
            rows[key] = after
        else:
            leave(self.indexes[view.name], key)
            rows.pop(key, None)

    def _scan_range(self, statement: Scan, scope: Scope) -> None:
        view, source = self.program.view(statement.view), self.program.view(statement.source)
        words = {statement.component: 0, statement.known: 0, statement.by: 0}
        kind, last = statement.kind, 2 if statement.by else 1
        if kind:
            assert kind in source.folds, f"{source.name} does not fold {kind}"
            rows = self._range(Range(source.name, statement.within, statement.low, statement.high), scope)
            ends = in_order((row[-last:] for row in rows), source.ordered[-last:], self.dictionary)
            if ends:
                end = ends[0] if kind in ("min", "min_by") else ends[-1]
                value = scanned(kind, dict.fromkeys(ends, 1), source.ordered[-last:], self.dictionary)
                words = {statement.component: value, statement.known: 1, statement.by: end[0]}
        key = scope.values(statement.key)
        before = self.views[view.name].get(key, ring_of(view.components).zero)
        after = tuple(words.get(c.name, word) for c, word in zip(view.components, before, strict=True))
        self.has_moved |= before != after
        self._put(view, key, before, after)

    def _scan(self, statement: Scan, scope: Scope) -> None:
        key, within = scope.values(statement.key), scope.values(statement.within)
        view, source = self.program.view(statement.view), self.program.view(statement.source)
        in_order = len(source.ordered) == len(source.key) - len(within)
        assert statement.kind in source.folds or in_order, f"{source.name} is not ordered by the rest of its key"
        rows = {row: count for row, (count, *_) in self.views[source.name].items() if row[: len(within)] == within}
        found = scanned(statement.kind, rows, source.ordered, self.dictionary)
        before = self.views[view.name].get(key, ring_of(view.components).zero)
        at = [c.name for c in view.components].index(statement.component)
        self._put(view, key, before, (*before[:at], found, *before[at + 1 :]))

    def _top(self, statement: Top, scope: Scope) -> None:
        view, sides = self._sides(statement, scope)
        first, last = statement.first, statement.last
        before, after = (dict(window(side, view.ordered, first, last, self.dictionary)) for side in sides)
        for key in {**before, **after}:
            change = after.get(key, 0) - before.get(key, 0)
            if change:
                row = dict(zip(statement.key, key, strict=True))
                self._report(statement.body, scope, {**row, statement.change: change})

    def _report(self, body: Body, scope: Scope, values: Mapping[str, int]) -> None:
        """Run a body for a row or a place, which binds variables to these values."""
        self.steps += 1
        scope.variables.update(values)
        self.run(body, scope)

    def _sides(self, statement: Top | Beside | Framed, scope: Scope) -> tuple[View, list[dict[Key, int]]]:
        """The counts of the rows of a group before and after the change of the row of a statement."""
        name, own = scope.places[statement.alias]
        view, count = self.program.view(name), scope.rows[statement.alias][1][0]
        rows = {key: payload[0] for key, payload in self._group(view, own).items()}
        return view, [{**rows, own: count - scope.variables[statement.grown]}, {**rows, own: count}]

    def _group(self, view: View, key: Key) -> dict[Key, Payload]:
        """The rows of a view that agree with a key in the columns that are not ordered."""
        within = len(view.prefix)
        return {row: payload for row, payload in self.views[view.name].items() if row[:within] == key[:within]}

    def _beside(self, statement: Beside, scope: Scope) -> None:
        view, sides = self._sides(statement, scope)
        found: list[Counter[tuple[Key, Key | None]]] = []
        for side in sides:
            copies = [key for key in in_order(side, view.ordered, self.dictionary) for _ in range(max(side[key], 0))]
            places = range(len(copies))
            others = (copies[i + statement.shift] if i + statement.shift in places else None for i in places)
            found.append(Counter(zip(copies, others, strict=True)))
        before, after = found
        for key, other in {**before, **after}:
            change = after[key, other] - before[key, other]
            row = dict(zip(statement.key, key, strict=True))
            row |= {name: NULL if other is None else other[i] for i, name in statement.other}
            row |= {statement.there: int(other is not None), statement.change: 1 if change > 0 else -1}
            for _ in range(abs(change)):
                self._report(statement.body, scope, row)

    def _framed(self, statement: Framed, scope: Scope) -> None:
        view, sides = self._sides(statement, scope)
        found: list[Counter[tuple[Key, Key]]] = []
        for side in sides:
            copies = [key for key in in_order(side, view.ordered, self.dictionary) for _ in range(max(side[key], 0))]
            pairs = Counter[tuple[Key, Key]]()
            for i, key in enumerate(copies):
                frame = copies[max(i + statement.low, 0) : max(i + statement.high + 1, 0)]
                pairs.update((key, other) for other in frame)
            found.append(pairs)
        before, after = found
        for key, other in {**before, **after}:
            change = after[key, other] - before[key, other]
            row = dict(zip(statement.key, key, strict=True)) | {name: other[i] for i, name in statement.other}
            if change:
                self._report(statement.body, scope, {**row, statement.change: change})

    def _forget(self, statement: Forget, scope: Scope) -> None:
        name, key = scope.places[statement.alias]
        count, held, number = self.views[name][key]
        for i in range(held):
            self._report(statement.body, scope, {statement.place: number + i + 1})
        self.views[name][key] = (count, 0, 0)

    def _renumber(self, statement: Renumber, scope: Scope) -> None:
        places, start = statement.places, scope.values(statement.start)
        view = self.program.view(places.view)
        counts = {key: payload[0] for key, payload in self._group(view, start).items()}
        order = in_order({**counts, start: 0}, view.ordered, self.dictionary)
        begin, place = order.index(start), 0
        for i, key in enumerate(order):
            copies = max(counts.get(key, 0), 0)
            numbers = range(place, place + (1 if places.ranks else copies))
            wanted = [n + 1 for n in numbers if n < places.last] if copies else []
            if i >= begin and key in counts:
                count, held, number = self.views[view.name][key]
                reported = [number + n + 1 for n in range(held)]
                if wanted != reported:
                    self.views[view.name][key] = (count, len(wanted), wanted[0] - 1 if wanted else 0)
                    for change, some in ((-1, reported), (1, wanted)):
                        for n in some:
                            row = dict(zip(statement.key, key, strict=True))
                            self._report(statement.body, scope, {**row, statement.place: n, statement.change: change})
            place += copies

    def _cross(self, statement: Cross, scope: Scope) -> None:
        view, group = self.program.view(statement.view), scope.values(statement.within)
        limit = scope.variables[statement.limit]
        rows = {key: payload for key, payload in self.views[view.name].items() if key[:-1] == group}
        changes = []
        for key, value in values(view, rows, self.dictionary):
            count, weight, number, selected = rows[key]
            wanted = 0
            if value is not None and limit != NULL and count != 0:
                wanted = int(value < limit or (value == limit and not statement.strict))
            self.views[view.name][key] = (count, weight, number, wanted)
            if count != 0 and wanted != selected:
                changes.append((key[-1], wanted - selected))
        for point, change in changes:
            self._report(statement.body, scope, {statement.point: point, statement.change: change})


def _absent(view: View, payload: Payload) -> bool:
    """True if a row with this payload is absent. A tally does not count."""
    components = view.components[:-1] if view.tally else view.components
    return ring_of(components).is_zero(payload[: len(components)])


def _default(view: View) -> Payload:
    """The payload of the default row: a count of 1, and 0 in all other components."""
    return tuple(1 if c.name == COUNT else named(c.ring).zero for c in view.components)
