"""Rewriting of statements: renaming, scaling, replacing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import assert_never

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.program.payload import MULTIPLICITY, ComponentOf, Monomial, Value
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Bound,
    Changed,
    Clear,
    Cross,
    Cursor,
    Emit,
    Enter,
    Exists,
    Forget,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
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
)
from freshviews.program.structure import visit, with_bodies


def transform(body: Body, change: Callable[[Statement], Body]) -> Body:
    """The body with every statement replaced by the statements that ``change`` returns for it, innermost first."""
    result: list[Statement] = []
    for statement in body:
        result.extend(change(with_bodies(statement, lambda inner: transform(inner, change))))
    return body if len(result) == len(body) and all(map(is_, result, body)) else tuple(result)


def scale(body: Body, coefficient: int, sums: frozenset[str] = frozenset()) -> Body:
    """The body with all its additions multiplied: every Add, or the Into of a Sum that an Add then reads."""
    if coefficient == 1:
        return body

    def change(statement: Statement) -> Body:
        if isinstance(statement, Into) or (isinstance(statement, Add) and not _adds_sum(statement, summed)):
            payload = tuple(replace(p, coefficient=p.coefficient * coefficient) for p in statement.payload)
            return (replace(statement, payload=payload),)
        return (statement,)

    summed = {s.alias for s in visit(body) if isinstance(s, Sum)} | sums
    return transform(body, change)


def at_multiplicity(body: Body, m: int) -> Body:
    """The body for an update of a given multiplicity."""

    def monomial(p: Monomial) -> Monomial:
        factors = tuple(f for f in p.factors if f != MULTIPLICITY)
        return Monomial(factors, p.coefficient * m ** (len(p.factors) - len(factors)))

    def change(statement: Statement) -> Body:
        if isinstance(statement, Into | Add | Emit):
            return (replace(statement, payload=tuple(map(monomial, statement.payload))),)
        return (statement,)

    return transform(body, change)


def _adds_sum(statement: Add, summed: set[str] | frozenset[str]) -> bool:
    return any(isinstance(f, ComponentOf) and f.alias in summed for p in statement.payload for f in p.factors)


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
        return tuple(map(self.variable, variables))

    def expression(self, expr: Expr) -> Expr:
        if isinstance(expr, Column):
            return replace(expr, name=self.variable(expr.name))
        if isinstance(expr, Literal):
            return expr
        return replace(expr, args=tuple(map(self.expression, expr.args)))

    def cursor(self, cursor: Cursor) -> Cursor:
        return Cursor(self.tries.get(cursor.trie, cursor.trie), self.key(cursor.key), self.alias(cursor.alias))

    def bound(self, bound: Bound | None) -> Bound | None:
        return None if bound is None else replace(bound, variable=self.variable(bound.variable))

    def range(self, rows: Range) -> Range:
        return Range(self.view(rows.view), self.key(rows.prefix), self.bound(rows.low), self.bound(rows.high))

    def payload(self, payload: tuple[Monomial, ...]) -> tuple[Monomial, ...]:
        return tuple(replace(one, factors=tuple(map(self._factor, one.factors))) for one in payload)

    def _factor(self, factor: ComponentOf | Value) -> ComponentOf | Value:
        if isinstance(factor, ComponentOf):
            return replace(factor, alias=self.alias(factor.alias))
        return replace(factor, name=self.variable(factor.name))


def renamed(statement: Statement, to: Renaming) -> Statement:
    """The statement with other names; those in its bodies stay."""
    match statement:
        case Let(variable, expr):
            return Let(to.variable(variable), to.expression(expr))
        case If(condition):
            return replace(statement, condition=to.expression(condition))
        case Lookup(view, key, alias) | Loop(view, key, alias=alias):
            return replace(statement, view=to.view(view), key=to.key(key), alias=to.alias(alias))
        case RangeSum(alias, rows):
            return replace(statement, alias=to.alias(alias), rows=to.range(rows))
        case RangeLoop(rows, key, alias):
            return replace(statement, rows=to.range(rows), key=to.key(key), alias=to.alias(alias))
        case Leap(cursors):
            return replace(statement, cursors=tuple(map(to.cursor, cursors)))
        case Exists(view, key) | Balance(view, key):
            return replace(statement, view=to.view(view), key=to.key(key))
        case Sum(alias=alias, remembered=remembered):
            return replace(statement, alias=to.alias(alias), remembered=to.key(remembered))
        case Into(alias, payload):
            return replace(statement, alias=to.alias(alias), payload=to.payload(payload))
        case Add(view, key, payload=payload, alias=alias):
            return replace(
                statement, view=to.view(view), key=to.key(key), payload=to.payload(payload), alias=to.alias(alias)
            )
        case Tally(alias) | Enter(alias) | Leave(alias):
            return replace(statement, alias=to.alias(alias))
        case Perform(arguments=arguments):
            return replace(statement, arguments=to.key(arguments))
        case Scan(view, key, source=source, within=within):
            return replace(
                statement, view=to.view(view), key=to.key(key), source=to.view(source), within=to.key(within)
            )
        case Top(alias=alias, grown=grown, key=key, change=change):
            made = replace(statement, alias=to.alias(alias), key=to.key(key))
            return replace(made, grown=to.variable(grown), change=to.variable(change))
        case Forget(alias, places, place):
            moved = replace(places, view=to.view(places.view))
            return replace(statement, alias=to.alias(alias), places=moved, place=to.variable(place))
        case Renumber(places, start, key=key, place=place, change=change):
            moved = replace(places, view=to.view(places.view))
            renumber = replace(statement, places=moved, start=to.key(start), key=to.key(key))
            return replace(renumber, place=to.variable(place), change=to.variable(change))
        case Beside(alias=alias, grown=grown, key=key, other=other, there=there, change=change):
            beside = replace(statement, alias=to.alias(alias), key=to.key(key), there=to.variable(there))
            others = tuple((i, to.variable(name)) for i, name in other)
            return replace(beside, other=others, grown=to.variable(grown), change=to.variable(change))
        case Cross(view, within, limit, point=point, change=change):
            cross = replace(statement, view=to.view(view), within=to.key(within), limit=to.variable(limit))
            return replace(cross, point=to.variable(point), change=to.variable(change))
        case Clear(view):
            return Clear(to.view(view))
        case Emit(row, payload):
            return Emit(to.key(row), to.payload(payload))
        case Smaller() | Changed():
            return statement
        case _:
            assert_never(statement)


def rename(body: Body, names: Mapping[str, str], aliases: Mapping[str, str]) -> Body:
    """The body with variables and aliases renamed; names that the maps lack stay."""
    to = Renaming(names, aliases)
    return transform(body, lambda statement: (renamed(statement, to),))
