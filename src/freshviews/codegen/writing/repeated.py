"""Bodies that long triggers repeat, as functions that they call.

A row of a bag may be found in several ways, and the statements that follow are the same. Each repeated body becomes a
function ``part_k(state, ...)``, with the variables and rows that it reads as arguments; it is written where it is first
called. The compiler's time grows with the code; and a trigger that is not long has its lookups inlined and prefetched.
The trigger language has no such calls: it shows each update with everything that it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from freshviews.codegen.writer import Writer
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.program.payload import ComponentOf
from freshviews.program.program import Program
from freshviews.program.statements import Balance, Body, Let, Perform, Smaller, Statement, Sum
from freshviews.program.structure import Row, Variable, bodies, slice_of, uses, visit, work

LONG = 100
"""Maximum number of lookups, loops and additions of a function that inlines them; longer functions call them."""
_SHORT = 30
"""Maximum number of lookups, loops and additions of a trigger whose repeated bodies are written out."""
_LEAST = 4
"""Minimum number of lookups, loops and additions of a body that becomes a function."""


@dataclass(frozen=True)
class Name:
    """An input of a body that is bound outside: a ``variable``, the row of an ``alias``, or a component of a ``sum``;
    ``part`` if it is not known whether the alias is of a row or of a Sum."""

    kind: str
    name: str
    component: str = ""


def changing(program: Program, body: Body) -> frozenset[str] | None:
    """The views that a function with this body changes; None with procedures of partitions, which change views, too."""
    if program.balancing is not None:
        return None
    return frozenset(view for statement in visit(body) for view in uses(statement).changes)


def size(body: Body, repeated: frozenset[Body]) -> int:
    """Lookups, loops and additions that are written where the body is, and not in functions of repeated bodies."""
    return sum(slice_of(statement) is not None for statement in _written(body, repeated))


def repeated_in(program: Program) -> frozenset[Body]:
    """The bodies that become functions: none in programs with partitions, which have procedures of their own."""
    times: Counter[Body] = Counter()

    def count(body: Body) -> None:
        for inner in _inner(body):
            work = after_lets(inner)
            if _is_long(work):
                times[work] += 1
                if times[work] == 1:
                    count(inner)

    if program.balancing is None:
        for trigger in program.triggers:
            if size(trigger.body, frozenset()) > _SHORT:
                count(trigger.body)
    return frozenset(body for body, n in times.items() if n > 1 and _is_closed(body))


def after_lets(body: Body) -> Body:
    """A body without the Lets that it begins with: their variables may have other values elsewhere."""
    first = next((i for i, statement in enumerate(body) if not isinstance(statement, Let)), len(body))
    return body[first:]


def write_call(context: Context, body: Body) -> None:
    """Call the function of a body."""
    names = tuple(dict.fromkeys(_resolve_component(context, name) for name in _free(body)))
    rows = tuple(context.aliases[name.name] for name in names if name.kind == "alias")
    parts = context.writer.module.parts
    function = parts.get((body, names, rows))
    if function is None:
        function = f"part_{len(parts)}"
        parts[body, names, rows] = function
        context.writer.module.part_sources.append(_write(context, body, names, function))
    call = f"{function}({_arguments(context, names)})"
    context.line(f"steps += {call}" if context.counted else call)


def _write(caller: Context, body: Body, names: tuple[Name, ...], function: str) -> str:
    context = Context(
        caller.program,
        Writer(caller.writer.module),
        caller.write,
        caller.views,
        caller.scratch,
        caller.pending,
        counted=caller.counted,
        outlined=size(body, caller.repeated) > LONG,
        repeated=caller.repeated - {body},
        aliases=caller.aliases,
        changing=changing(caller.program, body),
    )
    with context.writer.function(function, _arguments(context, names), "outside"):
        write_prologue(context, body, emits=True)
        context.line("steps = 0")
        context.body(body)
        context.line("return steps")
    return context.writer.text()


def _resolve_component(context: Context, name: Name) -> Name:
    """Resolves a component of an alias: a component of a Sum, or of a row."""
    if name.kind != "part":
        return name
    if isinstance(context.aliases[name.name], Sum):
        return Name("sum", name.name, name.component)
    return Name("alias", name.name)


def _arguments(context: Context, names: tuple[Name, ...]) -> str:
    return ", ".join(["state", *(_local(context, name) for name in names)])


def _local(context: Context, name: Name) -> str:
    match name.kind:
        case "variable":
            return context.variable(name.name)
        case "alias":
            return context.row(name.name)
        case _:
            return context.local(name.name, name.component)


def _inner(body: Body) -> Iterator[Body]:
    """The bodies within a body. The two loops of a Smaller do not count: they are written in place."""
    for statement in body:
        if isinstance(statement, Smaller):
            yield from _inner((statement.left, statement.right))
        else:
            yield from (inner for inner in bodies(statement) if inner)


def _is_long(body: Body) -> bool:
    """True if a body has ``_LEAST`` lookups, loops and additions."""
    return sum(1 for _ in islice((s for s in visit(body) if slice_of(s) is not None), _LEAST)) == _LEAST


def _written(body: Body, apart: frozenset[Body]) -> Iterator[Statement]:
    """The statements of a body, without those of bodies that are functions."""
    left = list(body)
    while left:
        statement = left.pop()
        yield statement
        for inner in bodies(statement):
            if isinstance(statement, Smaller) or after_lets(inner) not in apart:
                left += inner


def _is_closed(body: Body) -> bool:
    """True if a body adds to no Sum outside."""
    sums = {alias for s in visit(body) for alias in uses(s).rows}
    return all(sums.issuperset(work(s).into) and not isinstance(s, Balance | Perform) for s in visit(body))


def _free(body: Body, bound: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Name]:
    """The inputs of a body that are bound outside, in order; ``bound``: kinds and names that are bound within."""

    for statement in body:
        found = uses(statement)
        for one in found.reads:
            match one:
                case Variable(name) if ("variable", name) not in bound:
                    yield Name("variable", name)
                case Row(name) if ("alias", name) not in bound:
                    yield Name("alias", name)
                case ComponentOf(name, component) if ("alias", name) not in bound:
                    yield Name("part", name, component)
        bound |= {("variable", name) for name in found.defines}
        names = {("variable", name) for name in found.binds} | {("alias", name) for name in found.rows}
        for inner in bodies(statement):
            yield from _free(inner, bound | names)
