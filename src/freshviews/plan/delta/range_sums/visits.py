"""Writes the lines of EXPLAIN about ranges: the bound of an update, and which conditions are tested row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.expr.printer import print_expression
from freshviews.plan.delta.range_sums.slices import opened_by, split_conditions
from freshviews.program.program import Program, Trigger
from freshviews.program.statements import Body, If, Lookup, Loop, RangeLoop, RangeSum, Smaller, Statement
from freshviews.program.structure import bodies
from freshviews.types import SqlType

_NO_RANGE = "not a range of one column with sums and differences as its ends"
_BEYOND = """where arithmetic of the query might overflow, an update visits all rows of its group
and reports an overflow; values far from the limits of their types never cause this"""
_ROUNDED = """where arithmetic of doubles might round, an update visits all rows of its group: this needs
a double that is no multiple of 1/1024, or is beyond 2^40; whole numbers up to 2^40 never cause this"""


def bounds_of(
    program: Program,
    bounds: tuple[tuple[str, str], ...],
    wide: frozenset[str],
    groups: frozenset[str],
    limited: Collection[SqlType],
) -> tuple[tuple[str, str], ...]:
    """The bounds with range sums, for values within the limits. ``wide``: the wide views; ``groups``: the views whose
    groups loops visit; ``limited``: the types of the terms that have limits."""
    usual = [s for trigger in program.triggers for s in _usual(trigger.body, wide)]
    ranged = any(isinstance(s, RangeSum) for s in usual)
    update = "O(log N)" if ranged else "O(1)"
    visited_groups = dict.fromkeys(s.view for s in usual if isinstance(s, Loop) and s.view in groups)
    if any(isinstance(s, Smaller) or (isinstance(s, Loop) and s.view not in groups) for s in usual):
        update = dict(bounds)["update"] + ("; O(log N) for the sum of a range" if ranged else "")
    elif any(isinstance(s, RangeLoop) and s.only for s in usual):
        visits = any(isinstance(s, RangeLoop) and not s.only for s in usual)
        update = f"O(log N){', and again O(log N) for each row whose match changes' if visits else ''}"
    elif any(isinstance(s, RangeLoop) for s in usual):
        update = "O(N): O(log N) for each row whose range contains the value that is added or removed"
    elif visited_groups:
        each = "a range sum" if ranged else "an addition"
        update = f"{'O(G log N)' if ranged else 'O(G)'}: {each} for each of the G rows of {', '.join(visited_groups)}"
    found = tuple((name, update if name == "update" else text) for name, text in bounds)
    if any(not one.is_float for one in limited):
        found = (*found, ("beyond", _BEYOND))
    if any(one.is_float for one in limited):
        found = (*found, ("rounded", _ROUNDED))
    return (*found, *visited(program.triggers, wide))


def visited(triggers: Iterable[Trigger], wide: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The lines of EXPLAIN about conditions that bound a row and are not ranges."""
    found: dict[str, None] = {}
    for loop in (s for trigger in triggers for s in _usual(trigger.body, wide) if isinstance(s, Loop)):
        for condition in split_conditions(loop.body)[0]:
            if _compares(condition, frozenset(opened_by(loop))):
                found[f"each row of {loop.view}, to test {print_expression(condition)}: {_NO_RANGE}"] = None
    return (("visited", "\n".join(found)),) if found else ()


def _compares(condition: Expr, opened: frozenset[str]) -> bool:
    """True if a condition is made of inequalities that compare the row with something else."""
    if isinstance(condition, Call) and condition.op in ("and", "or", "not"):
        return all(_compares(arg, opened) for arg in condition.args)
    names = columns_of(condition)
    inequality = isinstance(condition, Call) and condition.op.removesuffix("_float") in ("lt", "le", "gt", "ge")
    return inequality and bool(opened.intersection(names)) and not opened.issuperset(names)


def _usual(body: Body, wide: frozenset[str]) -> Iterator[Statement]:
    """The statements of a body, without loops for values beyond a limit."""
    for statement in body:
        yield statement
        match statement:
            case Lookup(view=view, otherwise=otherwise) if view in wide:
                yield from _usual(otherwise, wide)
            case If(Column(), body=(Loop(),)):
                pass
            case _:
                for inner in bodies(statement):
                    yield from _usual(inner, wide)
