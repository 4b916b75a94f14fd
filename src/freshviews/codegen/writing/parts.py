"""Moves statements into functions ``part_k(state, ...)``, if they nest too deep or occur several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import islice

from freshviews.codegen.layout import words_of
from freshviews.codegen.writing.appending import touched
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.leapfrog_loops import locals_around, write_known
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.program.payload import ComponentOf
from freshviews.program.program import Program
from freshviews.program.statements import Body, Leap, Let, Smaller, Statement, Sum
from freshviews.program.structure import Name, Row, Variable, bodies, slice_of, uses, visit, work
from freshviews.program.views import View

LONG = 100
"""Most lookups, loops and additions of a function that inlines them; in longer functions they are calls."""
_SHORT = 30
"""Maximum number of lookups, loops and additions of a trigger whose repeated bodies are written out."""
_LEAST = 4
"""Minimum number of lookups, loops and additions of a body that becomes a function."""


def changing(program: Program, body: Body) -> frozenset[str] | None:
    """The views that a function with this body changes; None with procedures of partitions, which change views, too."""
    if program.balancing is not None:
        return None
    return frozenset(view for statement in visit(body) for view in uses(statement).changes)


def size(body: Body, repeated: frozenset[Body]) -> int:
    """Lookups, loops and additions that are written where the body is, and not in functions of repeated bodies."""
    return sum(slice_of(statement) is not None for statement in _written(body, repeated))


def repeated_in(program: Program) -> frozenset[Body]:
    """The bodies that become functions: none in programs with partitions, which have procedures of their own.

    Python accepts at most 20 nested loops and 100 levels of indentation; a join of many tables nests deeper. A trigger
    may also have the same statements in several places. For example, a trigger has a loop over each of two slices, and
    runs the loop over the smaller slice; both loops have the same body. In a long trigger, the repeated statements
    become one function, because compile time grows with the code. In a short trigger they stay repeated, so that their
    lookups are inlined and prefetched.
    """
    times: Counter[Body] = Counter()

    def count(body: Body) -> None:
        for inner in _inner(body):
            rest = after_lets(inner)
            if _is_long(rest):
                times[rest] += 1
                if times[rest] == 1:
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


def called_in(context: Context, body: Body) -> Body:
    """The statements at the end of a body that are called: all that nest too deep, or those that are repeated."""
    if context.writer.is_deep and any(inner for statement in body for inner in bodies(statement)):
        return body
    rest = after_lets(body) if context.repeated else ()
    return rest if rest in context.repeated else ()


def write_call(context: Context, body: Body) -> None:
    """Call the function of a body, written now if no function calls it yet.

    The parameters of a part are the variables, rows and sums that its statements read and the calling function binds.
    The part returns the caller's accumulators to which it adds. A repeated part is written where it is first called.
    """
    names = tuple(dict.fromkeys(_free(body)))
    totals = [context.aliases[name.alias] for name in names if isinstance(name, Row)]
    changed = [context.appends[view] for view in touched(body) if view in context.appends]
    for total in totals:
        if isinstance(total, Sum):
            changed += [context.local(total.alias, c.name) for c in total.components if words_of(c) == 1]
    results = (*context.kept, *changed)
    read = [local for name in names for local in _locals(context, name)]
    parameters = tuple(dict.fromkeys(("state", *results, *context.given, *read, *_of_evaluation(context, body))))
    content = (body, tuple(_meaning(context, name) for name in names)) if body in context.repeated else None
    function = context.writer.module.parts.get(content)
    if function is None:
        with context.writer.part(parameters, results, content) as (function, writer):
            _write(replace(context, writer=writer), body, parameters)
    call = f"{function}({', '.join(parameters)})"
    context.line(f"{', '.join(results)} = {call}" if results else call)
    if context.ends is not None:
        context.ends(context)


def _write(context: Context, body: Body, parameters: tuple[str, ...]) -> None:
    """The lines of the function of a body."""
    repeated = context.repeated - {body}
    within = replace(
        context,
        outlined=size(body, repeated) > LONG or (context.outlined and body not in context.repeated),
        repeated=repeated,
        found={},
        appends={view: local for view, local in context.appends.items() if local in parameters},
        ahead=frozenset(),
        likely={},
        changing=None if context.changing is None else changing(context.program, body),
        products={},
        enough=context.enough if context.enough in parameters else "",
    )
    write_prologue(within, body, emits=not context.given)
    if context.program.balancing is not None:
        within.load_balance()
    joined = {cursor.trie for statement in visit(body) if isinstance(statement, Leap) for cursor in statement.cursors}
    for trie in context.program.upkeep.tries:
        if trie.name in joined:
            write_known(within, trie)
    within.body(body)


def _locals(context: Context, name: Name) -> list[str]:
    """The locals that a body reads for a name that is bound outside: all accumulators of a Sum to which it adds."""
    if isinstance(name, Variable):
        words = context.doubles.get(name.name) or context.elements.get(name.name)
        return [words[0] if words else context.variable(name.name)]
    holder = context.aliases[name.alias]
    if isinstance(holder, View):
        return [context.row(name.alias)]
    names = [name.component] if isinstance(name, ComponentOf) else [c.name for c in holder.components]
    return [context.local(name.alias, one) for one in names]


def _meaning(context: Context, name: Name) -> Hashable:
    """The meaning of a name that is bound outside."""
    if isinstance(name, Variable):
        return name, context.elements.get(name.name)
    holder = context.aliases[name.alias]
    return name, holder if isinstance(holder, View) else holder.components


def _of_evaluation(context: Context, body: Body) -> Iterator[str]:
    """The locals of an evaluation that a body reads: scratch tables, memos, tries, and positions in these."""
    yield from (context.table(view) for view in touched(body) if view in context.scratch)
    yield from (context.memos[one] for one in visit(body) if isinstance(one, Sum) and one.remembered)
    yield from locals_around(context, body)


def _inner(body: Body) -> Iterator[Body]:
    """The bodies within a body. The two loops of a Smaller do not count: they are written in place."""
    for statement in body:
        if isinstance(statement, Smaller):
            yield from _inner((statement.left, statement.right))
        else:
            yield from (inner for inner in bodies(statement) if inner)


def _is_long(body: Body) -> bool:
    """Whether a body has ``_LEAST`` lookups, loops and additions."""
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
    sums = {s.alias for s in visit(body) if isinstance(s, Sum)}
    return sums.issuperset(alias for s in visit(body) for alias in work(s).into)


def _free(body: Body, bound: frozenset[str] = frozenset(), rows: frozenset[str] = frozenset()) -> Iterator[Name]:
    """The names that a body reads and that are bound outside, in order, a Row for a Sum to which it adds; ``bound``:
    variables that are bound within, ``rows``: aliases of rows and Sums."""
    for statement in body:
        found = uses(statement)
        for one in (*found.reads, *map(Row, work(statement).into)):
            if (one.name not in bound) if isinstance(one, Variable) else (one.alias not in rows):
                yield one
        bound = bound.union(found.defines)
        for inner in bodies(statement):
            yield from _free(inner, bound.union(found.binds), rows.union(found.rows))
