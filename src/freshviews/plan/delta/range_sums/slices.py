"""Describes a loop by the rows that it visits, and by the conditions on these rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of, substitute
from freshviews.expr.ops import may_fail
from freshviews.plan.delta.range_sums.bounds import Ranges, ranges_of, shift_of
from freshviews.plan.delta.range_sums.range_views import Places
from freshviews.program.program import Program
from freshviews.program.statements import Add, Body, If, Loop
from freshviews.program.structure import visit
from freshviews.query.dependencies import conjuncts
from freshviews.records import dataclass
from freshviews.types import BIGINT


@dataclass(frozen=True)
class Slice:
    """The rows that a loop visits: the variables that it opens, the terms of the conditions that its body begins with,
    and the rest of the body.

    ``ends``: variables of the row, the first of which a term compares with a value of another row; of all rows only the
    nearest one passes the terms, by the first variable, then by the second.
    """

    loop: Loop
    opened: frozenset[str]
    terms: tuple[Expr, ...]
    body: Body
    ends: tuple[str, ...] = ()

    def names(self, places: Places) -> tuple[str, ...]:
        """The variables at positions of the key."""
        return tuple(self.loop.key[i] for i in places)

    def places(self, variables: Iterable[str]) -> Places:
        """The positions of opened variables, in the order of the key."""
        return tuple(sorted(map(self.loop.key.index, variables)))

    def bounded(self, ranges: Ranges | None) -> Places:
        """The position of the variable that ranges bound."""
        return () if ranges is None else self.places((ranges.variable.name,))


Split = tuple[tuple[Expr, ...], Ranges | None]
"""Conditions that do not read the rows to be summed, and the ranges that bound these rows, if any do."""


def split_conditions(body: Body) -> tuple[list[Expr], Body]:
    """The conditions around a body, and the body."""
    conditions: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], If):
        conditions.append(body[0].condition)
        body = body[0].body
    return conditions, body


def opened_by(loop: Loop) -> tuple[str, ...]:
    """The variables that a loop binds."""
    return tuple(v for i, v in enumerate(loop.key) if i not in loop.bound)


def slice_of(program: Program, loop: Loop) -> Slice:
    """The rows that a loop of a program visits."""
    conditions, body = split_conditions(loop.body)
    opened = frozenset(opened_by(loop))
    ends: tuple[str, ...] = ()
    terms: list[Expr] = []
    for one in (term for condition in conditions for term in conjuncts(condition)):
        if isinstance(one, Call) and one.op == "disjoint":
            own = [name for name in columns_of(one) if name in opened]
            ends = tuple(own) if len(own) == 2 else ends
            terms += conjuncts(one.args[0])
        else:
            terms.append(one)
    same = _shifted(program, loop, terms) if terms and not ends else {}
    return Slice(loop, opened, tuple(substitute(one, same) for one in terms), body, ends)


def _shifted(program: Program, loop: Loop, terms: Iterable[Expr]) -> dict[str, Expr]:
    """The variables of the row that are a column of a relation plus a constant, such as the ends of ``BETWEEN t - 5 AND
    t + 5``. All but the first are expressed by the first one and a constant."""
    types = {c.name: c for one in terms for c in _columns(one)}
    first: dict[Expr, tuple[Column, float]] = {}
    same: dict[str, Expr] = {}
    for name, (base, constant) in _shifts(program, loop).items():
        if name not in types:
            continue
        variable, other = first.setdefault(base, (types[name], constant))
        if variable.name == name:
            continue
        op, by = ("add_int" if constant > other else "sub_int"), Literal(abs(constant - other), BIGINT)
        same[name] = variable if constant == other else Call(op, (variable, by), BIGINT)
    return same


def _shifts(program: Program, loop: Loop) -> dict[str, tuple[Expr, float]]:
    """The variables that a loop binds to a column of a relation plus a constant."""
    adding = [
        (trigger, s)
        for trigger in program.triggers
        for s in visit(trigger.body)
        if isinstance(s, Add) and s.view == loop.view
    ]
    if len(adding) != 1:
        return {}
    ((trigger, add),) = adding
    exprs = {p.name: p.expr for p in trigger.parameters}
    found = {}
    for i, variable in enumerate(loop.key):
        shift = shift_of(exprs[add.key[i]]) if i not in loop.bound and add.key[i] in exprs else None
        if shift is not None:
            found[variable] = shift
    return found


def split(terms: Iterable[Expr], opened: frozenset[str]) -> Split | None:
    """The terms of the conditions that do not read the opened variables, and the ranges of the others; None if one of
    these is not a range of one variable."""
    others: list[Expr] = []
    ranges: Ranges | None = None
    for one in terms:
        if opened.isdisjoint(columns_of(one)):
            if may_fail(one):
                return None
            others.append(one)
            continue
        found = ranges_of(one, opened)
        ranges = found if found is None or ranges is None else _both(ranges, found)
        if ranges is None:
            return None
    return tuple(others), ranges


def in_one_range(rows: Slice) -> tuple[Ranges | None, list[Expr]]:
    """The one range that some of the terms form, if any, and the other terms."""
    ranges: Ranges | None = None
    others: list[Expr] = []
    for one in rows.terms:
        found = ranges_of(one, rows.opened)
        both = found if ranges is None or found is None else _both(ranges, found)
        if both is None or len(both.parts) != 1:
            others.append(one)
        else:
            ranges = both
    return ranges, others


def _both(one: Ranges, other: Ranges) -> Ranges | None:
    return one.with_(other) if one.variable.name == other.variable.name else None


def _columns(expr: Expr) -> Iterator[Column]:
    """The columns of an expression."""
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call):
        yield from (column for arg in expr.args for column in _columns(arg))
