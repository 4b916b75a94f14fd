"""Statements that long triggers repeat, as functions that they call.

A row of a bag may be found in several ways, and a row of a relation may come to be joined by itself or by one that it
meets: what is done then is the same, and is written once, as ``part_k(state, ...)`` with the variables and rows that it
reads as arguments. The compiler's time grows with the code, and a trigger that is not long has its lookups inlined and
fetched ahead. In the trigger language there are no such calls: it shows each update with all that it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freshviews.codegen.writer import RESERVED, Names, Writer
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.program.payload import ComponentOf
from freshviews.program.program import Program
from freshviews.program.statements import (
    Add,
    Balance,
    Body,
    Enter,
    Exists,
    Into,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    Smaller,
    Statement,
    Sum,
)
from freshviews.program.structure import Row, Variable, bodies, uses, visit

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter

LONG = 100
"""Lookups, loops and additions of a function beyond which they are calls."""
_SHORT = 30
"""So many in a trigger are written out, whether or not some are repeated."""
_LEAST = 4
"""Fewer are not worth a function of their own."""


@dataclass(frozen=True)
class Name:
    """What a body reads that is bound outside: a ``variable``, the row of an ``alias``, or a component of a ``sum``; or
    of either (``part``), as long as it is not known which it is."""

    kind: str
    name: str
    component: str = ""


@dataclass
class Repeated:
    """The bodies that are functions, and these: by body and what its rows are of, the name; and the sources."""

    bodies: frozenset[Body]
    functions: dict[tuple[object, ...], str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)

    def size(self, body: Body) -> int:
        """Lookups, loops and additions that are written where the body is."""
        return sum(isinstance(s, Lookup | Loop | Add) for s in _written(body, self.bodies))


def repeated_in(program: Program) -> Repeated:
    """What the long triggers of a program repeat. Parts that are rebalanced have procedures of their own."""
    times: Counter[Body] = Counter()

    def count(body: Body) -> None:
        for inner in _inner(body):
            work = after_lets(inner)
            if _weight(work) >= _LEAST:
                times[work] += 1
                if times[work] == 1:
                    count(inner)

    if program.balancing is None:
        for trigger in program.triggers:
            if sum(isinstance(s, Lookup | Loop | Add) for s in visit(trigger.body)) > _SHORT:
                count(trigger.body)
    return Repeated(frozenset(body for body, n in times.items() if n > 1 and _is_closed(body)))


def after_lets(body: Body) -> Body:
    """A body without the Lets that it begins with, whose variables may have other values elsewhere."""
    first = next((i for i, statement in enumerate(body) if not isinstance(statement, Let)), len(body))
    return body[first:]


def write_call(writer: StatementWriter, body: Body) -> None:
    """Call the function of a body, which is written where this is its first call."""
    repeated = writer.repeated
    assert repeated is not None
    names = tuple(dict.fromkeys(_held(writer, one) for one in _free(body, frozenset())))
    rows = tuple(writer.aliases[one.name] for one in names if one.kind == "alias")
    function = repeated.functions.get((body, names, rows))
    if function is None:
        function = f"part_{len(repeated.functions)}__HASH__"
        repeated.functions[body, names, rows] = function
        repeated.sources.append(_write(writer, body, names, function))
    call = f"{function}({', '.join(['state', *(_local(writer, one) for one in names)])})"
    writer.writer.line(f"steps += {call}" if writer.counted else call)


def _write(caller: StatementWriter, body: Body, names: tuple[Name, ...], function: str) -> str:
    writer = Writer()
    made = type(caller)(caller.program, writer, Names(RESERVED), caller.scalars.constants, caller.used)
    made.aliases, made.counted, made.repeated = dict(caller.aliases), caller.counted, caller.repeated
    made.outlined = caller.repeated is not None and caller.repeated.size(body) > LONG
    made.need("outside", "load")
    parameters = ", ".join(["state", *(_local(made, one) for one in names)])
    writer.line("@outside")
    with writer.block(f"def {function}({parameters}) -> int:"):
        write_prologue(made, body)
        writer.line("steps = 0")
        made.statements(body)
        writer.line("return steps")
    return writer.text()


def _held(writer: StatementWriter, one: Name) -> Name:
    """A part as what it is of."""
    if one.kind != "part":
        return one
    if isinstance(writer.aliases[one.name], Sum):
        return Name("sum", one.name, one.component)
    return Name("alias", one.name)


def _local(writer: StatementWriter, one: Name) -> str:
    """The Python name of what a body reads."""
    match one.kind:
        case "variable":
            return writer.variable(one.name)
        case "alias":
            return writer.row(one.name)
        case _:
            return writer.local(one.name, one.component)


def _inner(body: Body) -> Iterator[Body]:
    """The bodies within a body. The two loops of a Smaller are none: they are written where it is."""
    for statement in body:
        if isinstance(statement, Smaller):
            yield from _inner((statement.left, statement.right))
        else:
            yield from (inner for inner in bodies(statement) if inner)


def _weight(body: Body) -> int:
    return sum(isinstance(s, Lookup | Loop | Add | Exists | Enter | Leave) for s in visit(body))


def _written(body: Body, apart: frozenset[Body]) -> Iterator[Statement]:
    """The statements of a body, without those of bodies that are functions."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            if isinstance(statement, Smaller) or after_lets(inner) not in apart:
                yield from _written(inner, apart)


def _is_closed(body: Body) -> bool:
    """Whether it adds to no Sum outside."""
    sums = {s.alias for s in visit(body) if isinstance(s, Sum)}
    return all(s.alias in sums for s in visit(body) if isinstance(s, Into)) and not any(
        isinstance(s, Balance | Perform) for s in visit(body)
    )


def _free(body: Body, bound: frozenset[tuple[str, str]]) -> Iterator[Name]:
    """What a body reads that is bound outside, in order; ``bound``: kinds and names of what is bound within."""

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
