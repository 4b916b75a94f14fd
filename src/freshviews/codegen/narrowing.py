"""Replaces the sums of doubles in a program by narrow sums, which have four words instead of 37.

If a narrow sum overflows, the engine continues with the original program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from freshviews.expr.nodes import Call, Expr
from freshviews.program.payload import Component, Value
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.rewrite import transform
from freshviews.program.roles import Role
from freshviews.program.statements import Body, Statement, Sum
from freshviews.program.structure import values_of, visit
from freshviews.program.upkeep import ByTriggers, Evaluated
from freshviews.program.views import View
from freshviews.ring import NARROW, REAL


def may_be_narrow(program: Program) -> bool:
    """True if sums of doubles of a program may be narrow. There must be some; triggers alone must maintain the result,
    which is held, so that reading adds nothing.

    False if sums are stored in the subtrees of an order, if elements come whole from other engines, or for remainders
    of products, as in VARIANCE: their last bits are mostly below the unit of narrow sums.
    """
    if not isinstance(program.result, Held) or not isinstance(program.upkeep, ByTriggers):
        return False
    if program.balancing is not None or program.keyed is not None:
        return False
    views = [view for view in program.views if any(c.ring == REAL.name for c in view.components)]
    if not views or any(view.sums or view.placed or view.running is not None for view in views):
        return False
    if any(_has_rest(expr) for expr in _expressions(program)):
        return False
    return not any(_takes_elements(s) for trigger in program.triggers for s in visit(trigger.body))


def with_narrow_sums(program: Program) -> Program:
    """The program with narrow sums in the place of reals."""
    triggers = tuple(replace(one, body=_body(one.body)) for one in program.triggers)
    upkeep = program.upkeep
    if isinstance(upkeep, Evaluated):
        scratch = tuple(map(_view, upkeep.scratch))
        upkeep = replace(upkeep, statements=_body(upkeep.statements), scratch=scratch)
    return replace(program, views=tuple(map(_view, program.views)), triggers=triggers, upkeep=upkeep)


def _component(component: Component) -> Component:
    return replace(component, ring=NARROW.name) if component.ring == REAL.name else component


def _view(view: View) -> View:
    return replace(view, components=tuple(map(_component, view.components)))


def _body(body: Body) -> Body:
    def change(statement: Statement) -> Body:
        if isinstance(statement, Sum):
            return (replace(statement, components=tuple(map(_component, statement.components))),)
        return (statement,)

    return transform(body, change)


def _expressions(program: Program) -> Iterator[Expr]:
    for trigger in program.triggers:
        yield from (parameter.expr for parameter in trigger.parameters)
        for statement in visit(trigger.body):
            yield from values_of(statement, Role.EXPRESSION)


def _has_rest(expr: Expr) -> bool:
    return isinstance(expr, Call) and (expr.op == "mul_rest" or any(map(_has_rest, expr.args)))


def _takes_elements(statement: Statement) -> bool:
    factors = (f for payload in values_of(statement, Role.PAYLOAD) for monomial in payload for f in monomial.factors)
    return any(isinstance(factor, Value) and factor.whole and factor.ring == REAL.name for factor in factors)
