"""Prints programs in a notation close to that of the papers.

The printed program is public: EXPLAIN shows it, golden files hold it, documents quote it. The notation::

    S(b, c) -> count, sum_x  by [b], [c]      a view: key, payload, indexes; "ordered" and "journal" may follow

    on E(src as a, dst as b) += m:            a trigger: columns (under other names) and multiplicity
        where gt(weight, 0)                       the trigger runs only for these rows
        let x = ...                               names the value of an expression
        for c, s in S[b]:                         a loop over a slice; s is the payload
        for a, s in S[_, c]:                      the same, by the second column of the key
        for b, c, s in S:                         a loop over all rows
        for c in S[b, c] as s & T[c]:             a leapfrog join of c over tries; s is the row
        if t := T[c, a]: ... else: ...            a lookup
        if |S[b]| <= |T[_, a]|: ... else: ...     a loop over the smaller of two slices
        u = sum: ... if u: ...                    a sum; the second body runs unless it is zero
        u = sum, by (a, c): ...                   the same, cached by the variables that it depends on
        u = some: ...                             a sum whose body ends at the first addition
        Q[a] += m * s * t                         the payload is the count alone
        Q[a] += (count: m * s.count, sum_x: m * s.sum_x)
            appears: ...                          runs if the row was absent before
            vanishes: ...                         runs if the row is absent after
            stays: ...                            runs if the row is present before and after
            then: ...                             runs in all three cases
        for b, c, s in S.joined[b]:               a loop over the rows of a subset
        if some S.joined[b]:                      runs if the slice has a row
        s.joins += 1; full at 2: ...              a tally; the body runs if it becomes 2
        S.joined += s                             a row enters a subset; "-=": it leaves
            alone in [b]: ...                     runs if the row's slice by [b] has no other row in the subset
            not alone in [b]: ...                 runs if it has another row
        balance S[b, c]                           rebalancing, if sizes or degrees of values require it
        turn_b(b) * -1                            a procedure, with its multiplicity
        V[a].min_x = min of D[a]                  an aggregate of an ordered view
        for x, y, d in first 10 of R, as r grows by m:
                                                  rows that get d copies more among the first 10 (d < 0: fewer)
        for number n of r, forgotten:             each number or rank stored for row r, which is then deleted
        for x, y, number n, d in all of R, new or wrong from [u, v] on:
                                                  rows from [u, v] on, with a new number n (d is 1) or a stored number
                                                  that is now wrong (d is -1)
        for x, y, (z) -1 or not o, d in R, as r grows by m:
                                                  pairs of a row and the row before it, new (d is 1) or former (d is
                                                  -1); z is a column of the row before; o is 0 if none is before
        for p, d in S[b, _] by value < c:         as c changes: rows whose value became less than c (d is 1), or stopped
                                                  being less (d is -1)
        u += P[g, x < t <= y]                     the sums of the rows of a range, of an ordered view
        for t, p in P[g, x < t <= y]:             a loop over the rows of a range
        if changes are wanted:                    runs only then
        emit (a, b, c) * m                        a row of the result
        for a, each once, of L_b, and ...         a listing: the union of several sets of values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from freshviews.expr.nodes import Column
from freshviews.expr.printer import print_expression
from freshviews.program.heavy_light import Balancing
from freshviews.program.payload import COUNT, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Enumerated, Held, Listed, Source, UnionSource
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Bound,
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
    Places,
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
    is_always,
    variables_of,
)
from freshviews.program.upkeep import Settled
from freshviews.program.views import View

Names = Mapping[str, tuple[str, ...]]

INDENT = "    "
PLAIN = (COUNT,)
_ALL = 2**31 - 1
"""Places that stand for all."""


def print_program(program: Program) -> str:
    """The views, the triggers, how the result is read, and how views are maintained. Ends with a newline."""
    lines = [_view(view) for view in program.views]
    lines += [f"{_view(view)}  scratch" for view in program.upkeep.scratch]
    for trie in program.upkeep.tries:
        key = program.view(trie.view).key
        lines.append(f"{trie.name} = {trie.view} in order of {', '.join(key[i] for i in trie.order)}")
    lines += [f"trace {join}, for {join.derivations}" for join in program.upkeep.joins]
    for trigger in program.triggers:
        lines += ["", *_trigger(trigger, program)]
    awake: Body = ()
    match program.result:
        case Held():
            pass
        case Enumerated(rows=rows, awake=awake):
            lines += ["", f"result({', '.join(program.free)}):", *_indented(_lines(program, rows))]
        case Listed(sources=sources, member=member):
            lines += ["", f"result({', '.join(program.free)}):", *_indented(_listing(program, sources, (member,)))]
        case _:
            assert_never(program.result)
    if program.balancing is not None:
        lines += ["", *_balancing(program.balancing, program)]
    if program.upkeep.statements:
        when = "settle:" if isinstance(program.upkeep, Settled) else "evaluate:"
        lines += ["", when, *_indented(_lines(program, program.upkeep.statements))]
    if awake:
        lines += ["", "when changes begin to be wanted:", *_indented(_lines(program, awake))]
    return "\n".join(lines) + "\n"


def _balancing(balancing: Balancing, program: Program) -> Iterator[str]:
    """The conditions of rebalancing, and its statements."""
    size = " + ".join(f"|{store}|" for store in balancing.stores)
    for one in balancing.partitions:
        threshold = f"N^{one.epsilon:g}"
        place = _slice(one.view, program.view(one.view).key, one.by)
        value = ", ".join(one.value) or "all"
        yield f"{value} is heavy in {one.view} where |{place}| >= {threshold}, in {one.heavy}:"
        yield f"{INDENT}becomes heavy, at 3/2 {threshold}:"
        yield from _indented(_indented(_lines(program, one.rise)))
        yield f"{INDENT}becomes light, below 1/2 {threshold}:"
        yield from _indented(_indented(_lines(program, one.sink)))
    for procedure in balancing.procedures:
        yield f"{procedure.name}({', '.join(procedure.parameters)}) * m:"
        yield from _indented(_lines(program, procedure.body))
    yield f"N is doubled where {size} reaches it, halved below N / 4; then, after all parts are rebuilt:"
    yield from _indented(_lines(program, balancing.recompute))


def print_trigger(program: Program, trigger: Trigger) -> str:
    """One trigger of the program. Ends with a newline."""
    return "\n".join(_trigger(trigger, program)) + "\n"


def print_statements(program: Program, statements: Body) -> str:
    """Statements of a trigger, or of the enumeration, of the program. Ends with a newline."""
    return "\n".join(_lines(program, statements)) + "\n"


def _numbers(places: Places) -> str:
    return "rank" if places.ranks else "number"


def _places(first: int, last: int) -> str:
    """Positions of an order."""
    if last >= _ALL:
        return "all"
    return f"{first} to {last}" if first else f"first {last}"


def _view(view: View) -> str:
    text = f"{view.name}({_at(view.key)}) -> {', '.join(c.name for c in view.components)}"
    notes = []
    if view.indexes:
        notes.append("by " + _indexes(view, view.indexes))
    notes += [f"{subset.name} by {_indexes(view, subset.indexes)}" for subset in view.subsets]
    if view.ordered:
        last = view.key[-len(view.ordered) :]
        notes.append("ordered by " + ", ".join(f"{v}{order}" for v, order in zip(last, view.ordered, strict=True)))
    if view.folds:
        notes.append("folded by " + ", ".join(view.folds))
    if view.running is not None:
        notes.append(str(view.running))
    if view.placed:
        notes.append("placed")
    if view.sums:
        notes.append("summed by " + ", ".join(view.sums))
    if view.journal:
        notes.append("journal")
    return "  ".join([text, *notes])


def _indexes(view: View, indexes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(f"[{', '.join(view.key[i] for i in ix)}]" for ix in indexes)


def _trigger(trigger: Trigger, program: Program) -> Iterator[str]:
    columns, lets = [], []
    for parameter in trigger.parameters:
        if not isinstance(parameter.expr, Column):
            lets.append(f"{INDENT}let {parameter.name} = {print_expression(parameter.expr)}")
        elif parameter.expr.name == parameter.name:
            columns.append(parameter.name)
        else:
            columns.append(f"{parameter.expr.name} as {parameter.name}")
    yield f"on {trigger.relation}({', '.join(columns)}) += m:"
    yield from (f"{INDENT}where {print_expression(condition)}" for condition in trigger.filters)
    yield from lets
    yield from _indented(_lines(program, trigger.body))


def _lines(program: Program, statements: Body) -> Iterator[str]:
    printer = _Printer(program)
    printer.body(statements, {})
    return iter(printer.lines)


def _listing(program: Program, sources: tuple[Source, ...], then: Body) -> Iterator[str]:
    """A nested loop over sources, with the statements ``then`` innermost."""
    if not sources:
        yield from _lines(program, then)
        return
    one, rest = sources[0], sources[1:]
    if not isinstance(one, UnionSource):
        yield f"for {_bound(one)} in {_slice(one.view, one.key, one.bound, one.among)}:"
    else:
        yield f"for {', '.join(one.variables)}, each once, of"
        if one.light is not None:
            yield f"{INDENT}{_slice(one.light.view, one.light.key, one.light.bound)},"
        heavy = one.heavy
        yield f"{INDENT}and for each {_bound(heavy)} in {_slice(heavy.view, heavy.key, heavy.bound, heavy.among)}"
        yield from _indented(_indented(_listing(program, one.inner, ())))
    yield from _indented(_listing(program, rest, then))


def _bound(rows: Source) -> str:
    """The variables that rows bind."""
    assert not isinstance(rows, UnionSource)
    return ", ".join(v for i, v in enumerate(rows.key) if i not in rows.bound) or "row"


def _names(components: tuple[Component, ...]) -> tuple[str, ...]:
    return tuple(c.name for c in components)


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (INDENT + line for line in lines)


def _slice(view: str, key: tuple[str, ...], bound: tuple[int, ...], among: str = "") -> str:
    if among:
        view = f"{view}.{among}"
    if not bound:
        return view
    shown = [name if i in bound else "_" for i, name in enumerate(key)]
    return f"{view}[{', '.join(shown[: max(bound) + 1])}]"


class _Printer:
    """Prints statements into ``lines``, indented by ``depth``. ``views`` has the names of the components of each view,
    ``rows`` those of each row in scope."""

    def __init__(self, program: Program) -> None:
        self.views = program.components
        self.stores = program.by_name
        self.emitted = _names(program.result.emitted)
        self.tries: dict[str, str] = {trie.name: trie.view for trie in program.upkeep.tries}
        self.held: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 0

    def body(self, statements: Body, rows: Names) -> None:
        for statement in statements:
            self.statement(statement, rows)

    def block(self, head: str, statements: Body, rows: Names, deeper: int = 0) -> None:
        """A head with the statements below it, indented; ``deeper``: both below the statement that comes before."""
        self.depth += deeper
        self.line(head)
        self.within(statements, rows)
        self.depth -= deeper

    def within(self, statements: Body, rows: Names) -> None:
        self.depth += 1
        self.body(statements, rows)
        self.depth -= 1

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def statement(self, statement: Statement, rows: Names) -> None:
        match statement:
            case Let(variable, expr):
                self.line(f"let {_name(variable)} = {print_expression(expr)}")
            case If(condition, body):
                self.block(f"if {print_expression(condition)}:", body, rows)
            case Lookup(view, key, alias, body, otherwise, optional):
                self.held[alias] = view
                head = f"{alias} := {view}[{', '.join(key)}]"
                if optional:
                    self.block(f"with {head} or default:", body, {**rows, alias: self.views[view]})
                elif body:
                    self.block(f"if {head}:", body, {**rows, alias: self.views[view]})
                if otherwise:
                    self.block("else:" if body else f"if no {head[head.index(':=') + 3:]}:", otherwise, rows)
            case Loop():
                self.loop(statement, rows)
            case Leap(cursors, body):
                scope = {**rows, **{c.alias: self.views[self.tries[c.trie]] for c in cursors if c.alias}}
                places = " & ".join(
                    f"{c.trie}[{', '.join(c.key)}]{f' as {c.alias}' if c.alias else ''}" for c in cursors
                )
                self.block(f"for {statement.variable} in {places}:", body, scope)
            case Exists(view, key, bound, body, among):
                names = dict(zip(bound, key, strict=True))
                shown = tuple(names.get(i, "_") for i in range(len(self.stores[view].key)))
                self.block(f"if some {_slice(view, shown, bound, among)}:", body, rows)
            case Tally(alias, component, amount, full, body):
                name = self.factor(ComponentOf(alias, component), rows)
                if amount == 0:
                    self.block(f"if {name} = {full}:", body, rows)
                else:
                    self.line(f"{name} {'+' if amount > 0 else '-'}= {abs(amount)}")
                    if body:
                        head = f"full at {full}:" if amount > 0 else f"was full at {full}:"
                        self.block(head, body, rows, 1)
            case Move(alias, subset, _, events):
                view = self.held[alias]
                self.line(f"{view}.{subset} {'+=' if statement.sign > 0 else '-='} {alias}")
                for event in events:
                    place = f"[{', '.join(self.stores[view].key[i] for i in event.bound)}]"
                    for head, body in ((f"alone in {place}:", event.alone), (f"not alone in {place}:", event.others)):
                        if body:
                            self.block(head, body, rows, 1)
            case Smaller(left, right):
                one, other = (_slice(loop.view, loop.key, loop.bound) for loop in (left, right))
                self.line(f"if |{one}| <= |{other}|:")
                self.within((left,), rows)
                self.line("else:")
                self.within((right,), rows)
            case Sum(alias, components, body, then, once, remembered):
                scope = {**rows, alias: _names(components)}
                by = f", by ({', '.join(remembered)})" if remembered else ""
                self.block(f"{alias} = {'some' if once else 'sum'}{by}:", body, scope)
                self.block(f"if {alias}:", then, scope)
            case Into(alias, payload):
                self.line(f"{alias} += {self.payload(rows[alias], rows[alias], payload, rows)}")
            case RangeSum(alias, place, coefficient):
                sign = {1: "+= ", -1: "-= "}.get(coefficient, f"+= {coefficient} * ")
                self.line(f"{alias} {sign}{self.range(place)}")
            case RangeLoop(place, key, alias, body, only, steady):
                self.held[alias] = place.view
                scope = {**rows, alias: self.views[place.view]}
                which, until = f"{only} of " if only else "", ", until nothing changes" if steady else ""
                self.block(f"for {', '.join([*key, alias])} in {which}{self.range(place)}{until}:", body, scope)
            case Add(view, key, components, payload, appear, vanish, stay, alias):
                self.line(f"{view}[{_at(key)}] += {self.payload(self.views[view], components, payload, rows)}")
                if alias:
                    self.held[alias] = view
                    rows = {**rows, alias: self.views[view]}
                cases = [("appears", appear), ("vanishes", vanish), ("stays", stay)]
                if is_always(appear, vanish, stay):
                    cases = [("then", stay)]
                for word, body in cases:
                    if body:
                        head = f"{word}, as {alias}:" if alias else f"{word}:"
                        self.block(head, body, rows, 1)
            case Balance(view, key):
                self.line(f"balance {view}[{', '.join(key)}]")
            case Perform(procedure, arguments, sign):
                self.line(f"{procedure}({', '.join(arguments)}) * {sign}")
            case Scan(view, key, component, source, within, kind, low, high, known, by):
                also = "".join(f", {one}" for one in (by, known) if one)
                place = f"{source}[{', '.join(within)}]"
                if low or high:
                    place = self.range(Range(source, within, low, high))
                self.line(f"{view}[{_at(key)}].{component}{also} = {f'{kind} of {place}' if kind else 'none'}")
            case Top(alias, grown, first, last, key, change, body):
                view, place = self.held[alias], _places(first, last)
                head = f"for {', '.join((*key, change))} in {place} of {view}, as {alias} grows by {_name(grown)}:"
                self.block(head, body, rows)
            case Forget(alias, numbered, number, body):
                head = f"for {_numbers(numbered)} {number} of {alias}, forgotten:"
                self.block(head, body, rows)
            case Renumber(numbered, begin, key, number, change, body):
                what = f"{', '.join(key)}, {_numbers(numbered)} {number}, {change}"
                which = f"{_places(0, numbered.last)} of {numbered.view}"
                head = f"for {what} in {which}, new or wrong from [{_at(begin)}] on:"
                self.block(head, body, rows)
            case Beside(alias, grown, shift, key, other, there, change, body):
                what = f"{', '.join(key)}, ({', '.join(name for _, name in other)}) {shift:+} or not {there}, {change}"
                head = f"for {what} in {self.held[alias]}, as {alias} grows by {_name(grown)}:"
                self.block(head, body, rows)
            case Framed(alias, grown, low, high, key, other, change, body):
                what = f"{', '.join(key)}, ({', '.join(name for _, name in other)}) {low:+} to {high:+}, {change}"
                head = f"for {what} in {self.held[alias]}, as {alias} grows by {_name(grown)}:"
                self.block(head, body, rows)
            case Cross(view, within, limit, strict, point, change, body):
                place, sign = f"{view}[{', '.join((*map(_name, within), '_'))}]", "<" if strict else "<="
                head = f"for {_name(point)}, {_name(change)} in {place} by value {sign} {_name(limit)}:"
                self.block(head, body, rows)
            case Clear(view):
                self.line(f"clear {view}")
            case Changed(body):
                self.block("if changes are wanted:", body, rows)
            case Emit(row, payload):
                self.line(f"emit ({', '.join(row)}) * {self.payload(self.emitted, self.emitted, payload, rows)}")
            case _:
                assert_never(statement)

    def loop(self, loop: Loop, rows: Names) -> None:
        bound = [name for i, name in enumerate(loop.key) if i not in loop.bound]
        self.held[loop.alias] = loop.view
        place = _slice(loop.view, loop.key, loop.bound, loop.among)
        head = f"for {', '.join([*bound, loop.alias])} in {place}{' or default' if loop.optional else ''}:"
        self.block(head, loop.body, {**rows, loop.alias: self.views[loop.view]})

    def range(self, rows: Range) -> str:
        """The rows of a range, with the names of the bounded columns between the bounds."""
        ordered = self.stores[rows.view].key[len(rows.prefix) :]

        def columns(bound: Bound | PlaceBound | None) -> str:
            first, number = (bound.first, len(bound.variables)) if isinstance(bound, PlaceBound) else (0, 1)
            return _tuple(ordered[first : first + number])

        low, high, texts = rows.low, rows.high, []
        if low is not None:
            texts.append(f"{_tuple(map(_name, variables_of(low)))} {_sign(low)} {columns(low)}")
        if high is not None:
            joined = bool(texts) and columns(low) == columns(high)
            own = texts.pop() if joined else columns(high)
            texts.append(f"{own} {_sign(high)} {_tuple(map(_name, variables_of(high)))}")
        return f"{rows.view}[{', '.join([*map(_name, rows.prefix), *(texts or ordered[:1])])}]"

    def payload(
        self, known: tuple[str, ...], given: tuple[str, ...], payload: tuple[Monomial, ...], rows: Names
    ) -> str:
        """Monomials for the ``given`` ones of the ``known`` components."""
        texts = [self.monomial(monomial, rows) for monomial in payload]
        if known == PLAIN:
            return texts[0]
        return f"({', '.join(f'{name}: {text}' for name, text in zip(given, texts, strict=True))})"

    def monomial(self, monomial: Monomial, rows: Names) -> str:
        factors = [self.factor(factor, rows) for factor in monomial.factors]
        if not factors or abs(monomial.coefficient) != 1:
            factors.insert(0, str(monomial.coefficient))
        elif monomial.coefficient == -1:
            factors[0] = "-" + factors[0]
        return " * ".join(factors)

    def factor(self, factor: ComponentOf | Value, rows: Names) -> str:
        match factor:
            case ComponentOf(alias, component):
                return alias if rows[alias] == PLAIN else f"{alias}.{component}"
            case Value(name):
                return _name(name)
            case _:
                assert_never(factor)


def _at(key: tuple[str, ...]) -> str:
    """The printed variables of a key."""
    return ", ".join(map(_name, key))


def _tuple(names: Iterable[str]) -> str:
    """One name, or several in parentheses."""
    listed = tuple(names)
    return listed[0] if len(listed) == 1 else f"({', '.join(listed)})"


def _sign(bound: Bound | PlaceBound) -> str:
    return "<" if isinstance(bound, Bound) and bound.strict else "<="


def _name(variable: str) -> str:
    """The printed name of a variable."""
    return variable.removeprefix("@")
