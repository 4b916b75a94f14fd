"""Extends a program by a lookup, which finds rows of the result by values of some columns and reads no other rows."""

from __future__ import annotations

from dataclasses import replace

from freshviews.program.payload import COUNT, ComponentOf, Monomial
from freshviews.program.program import Keyed, Program
from freshviews.program.results import Enumerated, Held
from freshviews.program.statements import Body, Emit, Lookup, Loop, Smaller, Statement
from freshviews.program.structure import uses, with_bodies
from freshviews.program.views import View

_Indexes = dict[tuple[str, str], set[tuple[int, ...]]]
"""The indexes that loops need, by view and subset."""


class _Unable(Exception):
    """A statement binds a given variable otherwise than a loop over a view does."""


def with_key(program: Program, key: tuple[str, ...]) -> Program:
    """The program of a bag with a lookup of the rows of a key; unchanged if its result allows none.

    If values are given for all variables of a loop over the result, the loop becomes a lookup. If values are given for
    some of the variables, the loop runs over a slice, and the view gets an index for it. This pass rewrites programs,
    so it serves every strategy whose result is held or enumerated.
    """
    result = program.result
    needed: _Indexes = {}
    if isinstance(result, Held):
        row = Monomial((ComponentOf("found", COUNT),))
        free = program.view(result.view).key
        rows: Body = (Loop(result.view, free, (), "found", (Emit(free, (row,)),)),)
    elif isinstance(result, Enumerated):
        rows = result.rows
    else:
        return program
    try:
        body = _with_given_key(rows, frozenset(key), frozenset(key), needed)
    except _Unable:
        return program
    return replace(program, views=tuple(_indexed(view, needed) for view in program.views), keyed=Keyed(key, body))


def _with_given_key(body: Body, key: frozenset[str], known: frozenset[str], needed: _Indexes) -> Body:
    """The body for given variables of a key; ``known``: these variables and those bound around the body."""
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop) and not statement.optional:
            made.append(_loop(statement, key, known, needed))
            continue
        used = uses(statement)
        if isinstance(statement, Smaller) or key.intersection((*used.binds, *used.defines)):
            raise _Unable
        inside = known.union(used.binds)
        made.append(with_bodies(statement, lambda inner, inside=inside: _with_given_key(inner, key, inside, needed)))  # type: ignore[misc]
        known = known.union(used.defines)
    return tuple(made)


def _loop(loop: Loop, key: frozenset[str], known: frozenset[str], needed: _Indexes) -> Statement:
    body = _with_given_key(loop.body, key, known.union(loop.key), needed)
    bound = tuple(i for i, variable in enumerate(loop.key) if variable in known)
    if len(bound) == len(loop.key) and not loop.among:
        return Lookup(loop.view, loop.key, loop.alias, body)
    if bound:
        needed.setdefault((loop.view, loop.among), set()).add(bound)
    return replace(loop, bound=bound, body=body)


def _indexed(view: View, needed: _Indexes) -> View:
    """The view with the indexes that loops need."""
    own = needed.get((view.name, ""), set())
    subsets = tuple(
        replace(one, indexes=tuple(sorted({*one.indexes, *needed.get((view.name, one.name), set())})))
        for one in view.subsets
    )
    return replace(view, indexes=tuple(sorted({*view.indexes, *own})), subsets=subsets)
