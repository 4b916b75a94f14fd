"""Rewrites statements: renames variables and rows, multiplies additions by a constant, replaces statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from operator import is_
from typing import Any

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.program.payload import MULTIPLICITY, ComponentOf, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.roles import Part, Role, mapped
from freshviews.program.statements import Add, Body, Statement, Sum
from freshviews.program.structure import uses, visit, with_bodies
from freshviews.program.upkeep import Evaluated
from freshviews.records import dataclass


def transform(body: Body, change: Callable[[Statement], Body]) -> Body:
    """The body with every statement replaced by the statements that ``change`` returns for it, innermost first."""
    result: list[Statement] = []
    for statement in body:
        result.extend(change(with_bodies(statement, lambda inner: transform(inner, change))))
    return body if len(result) == len(body) and all(map(is_, result, body)) else tuple(result)


def with_statements(program: Program, change: Callable[[Statement], Body]) -> Program:
    """The program with the statements of its triggers and evaluations replaced, as by ``transform``."""
    triggers = tuple(replace(t, body=transform(t.body, change)) for t in program.triggers)
    upkeep = program.upkeep
    if isinstance(upkeep, Evaluated):
        upkeep = replace(upkeep, statements=transform(upkeep.statements, change))
    return replace(program, triggers=triggers, upkeep=upkeep)


def with_payload(statement: Statement, change: Callable[[Monomial], Monomial]) -> Statement:
    """The statement with ``change`` of each monomial that it adds."""

    def changed(part: Part, value: Any) -> Any:
        return tuple(map(change, value)) if part.role is Role.PAYLOAD else value

    made: Statement = mapped(statement, changed)
    return made


def scale(body: Body, coefficient: int) -> Body:
    """The body with all its additions multiplied: every Add, or the Into of a Sum that an Add then reads."""
    if coefficient == 1:
        return body

    def change(statement: Statement) -> Body:
        rows = (one.alias for one in uses(statement).reads if isinstance(one, ComponentOf))
        if isinstance(statement, Add) and not summed.isdisjoint(rows):
            return (statement,)
        return (with_payload(statement, lambda p: replace(p, coefficient=p.coefficient * coefficient)),)

    summed = {s.alias for s in visit(body) if isinstance(s, Sum)}
    return transform(body, change)


def at_multiplicity(body: Body, m: int) -> Body:
    """The body for an update of a given multiplicity."""

    def monomial(p: Monomial) -> Monomial:
        factors = tuple(f for f in p.factors if f != MULTIPLICITY)
        return Monomial(factors, p.coefficient * m ** (len(p.factors) - len(factors)))

    return transform(body, lambda statement: (with_payload(statement, monomial),))


@dataclass(frozen=True)
class Renaming:
    """New names by old name. A name that its map lacks stays."""

    variables: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    tries: Mapping[str, str] = field(default_factory=dict)

    def variable(self, name: str) -> str:
        return self.variables.get(name, name)

    def alias(self, name: str) -> str:
        return self.aliases.get(name, name)

    def view(self, name: str) -> str:
        return self.views.get(name, name)

    def key(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([self.variables.get(name, name) for name in variables])

    def expression(self, expr: Expr) -> Expr:
        if isinstance(expr, Column):
            return replace(expr, name=self.variable(expr.name))
        if isinstance(expr, Literal):
            return expr
        return replace(expr, args=tuple(map(self.expression, expr.args)))

    def payload(self, payload: tuple[Monomial, ...]) -> tuple[Monomial, ...]:
        return tuple(replace(one, factors=tuple(map(self._factor, one.factors))) for one in payload)

    def names(self, value: str | tuple[str | tuple[int, str], ...]) -> object:
        """Variables, alone or after positions."""
        if isinstance(value, str):
            return self.variable(value)
        return tuple(self.variable(one) if isinstance(one, str) else (one[0], self.variable(one[1])) for one in value)

    def part(self, part: Part, value: Any) -> Any:
        """The value of a part of a statement."""
        match part.role:
            case Role.VIEW | Role.RANGE | Role.CHANGED:
                return self.view(value)
            case Role.TRIE:
                return self.tries.get(value, value)
            case Role.ROW | Role.UPDATED | Role.ALIAS | Role.SUM:
                return self.alias(value)
            case Role.EXPRESSION:
                return self.expression(value)
            case Role.PAYLOAD:
                return self.payload(value)
            case Role.SIDE | Role.AMONG | None:
                return value
            case _:
                return self.names(value)

    def _factor(self, factor: ComponentOf | Value) -> ComponentOf | Value:
        if isinstance(factor, ComponentOf):
            return replace(factor, alias=self.alias(factor.alias))
        return replace(factor, name=self.variable(factor.name))


def renamed(statement: Statement, to: Renaming) -> Statement:
    """The statement with other names; those in its bodies stay."""
    made: Statement = mapped(statement, to.part)
    return made


def rename(body: Body, names: Mapping[str, str], aliases: Mapping[str, str]) -> Body:
    """The body with variables and aliases renamed; names that the maps lack stay."""
    to = Renaming(names, aliases)
    return transform(body, lambda statement: (renamed(statement, to),))
