"""Rewriting of statements: renaming, scaling, visiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.program.payload import MULTIPLICITY, ComponentOf, Monomial, Value
from freshviews.program.statements import (
    Add,
    Balance,
    Changed,
    Clear,
    Emit,
    Enter,
    Exists,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)
from freshviews.program.structure import bodies

Body = tuple[Statement, ...]


def visit(body: Body) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    for statement in body:
        yield statement
        if isinstance(statement, Smaller):
            yield from visit((statement.left, statement.right))
            continue
        for nested in bodies(statement):
            yield from visit(nested)


def made_anew(evaluate: Body) -> tuple[str, ...]:
    """The views that statements add to, each once, without those that they clear themselves."""
    cleared = {s.view for s in visit(evaluate) if isinstance(s, Clear)}
    added = (s.view for s in visit(evaluate) if isinstance(s, Add | Scan))
    return tuple(dict.fromkeys(view for view in added if view not in cleared))


def transform(body: Body, change: Callable[[Statement], Body]) -> Body:
    """Every statement replaced, innermost first, by what ``change`` makes of it."""
    result: list[Statement] = []
    for statement in body:
        result.extend(change(_with_bodies(statement, change)))
    return tuple(result)


def _with_bodies(statement: Statement, change: Callable[[Statement], Body]) -> Statement:
    return with_bodies(statement, lambda body: transform(body, change))


def with_bodies(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """The statement, each body directly in it replaced by what ``change`` makes of it."""
    match statement:
        case If() | Loop() | Leap() | Changed() | Exists() | Tally() | Top():
            return replace(statement, body=change(statement.body))
        case Lookup(body=body, otherwise=otherwise):
            return replace(statement, body=change(body), otherwise=change(otherwise))
        case Enter(events=events) | Leave(events=events):
            changed = (replace(e, alone=change(e.alone), others=change(e.others)) for e in events)
            return replace(statement, events=tuple(changed))
        case Smaller(left=left, right=right):
            return Smaller(replace(left, body=change(left.body)), replace(right, body=change(right.body)))
        case Sum(body=body, then=then):
            return replace(statement, body=change(body), then=change(then))
        case Add(appear=appear, vanish=vanish, stay=stay):
            return replace(statement, appear=change(appear), vanish=change(vanish), stay=change(stay))
        case _:
            return statement


def scale(body: Body, coefficient: int, sums: frozenset[str] = frozenset()) -> Body:
    """The body with what it adds multiplied: every Add, or the Into of a Sum whose value is then added."""
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


def rename(body: Body, names: dict[str, str], aliases: dict[str, str]) -> Body:
    """The body with variables and aliases renamed; names that the maps lack stay."""

    def expression(expr: Expr) -> Expr:
        if isinstance(expr, Column):
            return replace(expr, name=names.get(expr.name, expr.name))
        if isinstance(expr, Literal):
            return expr
        return replace(expr, args=tuple(expression(arg) for arg in expr.args))

    def key(variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(v, v) for v in variables)

    def factor(f: ComponentOf | Value) -> ComponentOf | Value:
        if isinstance(f, ComponentOf):
            return replace(f, alias=aliases.get(f.alias, f.alias))
        return replace(f, name=names.get(f.name, f.name))

    def monomial(p: Monomial) -> Monomial:
        return replace(p, factors=tuple(factor(f) for f in p.factors))

    def change(statement: Statement) -> Body:
        match statement:
            case Let():
                renamed: Statement = replace(
                    statement,
                    variable=names.get(statement.variable, statement.variable),
                    expr=expression(statement.expr),
                )
            case If():
                renamed = replace(statement, condition=expression(statement.condition))
            case Lookup() | Loop():
                renamed = replace(
                    statement, key=key(statement.key), alias=aliases.get(statement.alias, statement.alias)
                )
            case Smaller(left=left, right=right):
                renamed = Smaller(
                    replace(left, key=key(left.key), alias=aliases.get(left.alias, left.alias)),
                    replace(right, key=key(right.key), alias=aliases.get(right.alias, right.alias)),
                )
            case Leap(cursors=cursors):
                walked = (replace(c, key=key(c.key), alias=aliases.get(c.alias, c.alias)) for c in cursors)
                renamed = replace(statement, cursors=tuple(walked))
            case Sum():
                renamed = replace(
                    statement,
                    alias=aliases.get(statement.alias, statement.alias),
                    remembered=key(statement.remembered),
                )
            case Into():
                renamed = replace(
                    statement,
                    alias=aliases.get(statement.alias, statement.alias),
                    payload=tuple(monomial(p) for p in statement.payload),
                )
            case Add():
                renamed = replace(
                    statement,
                    key=key(statement.key),
                    payload=tuple(monomial(p) for p in statement.payload),
                    alias=aliases.get(statement.alias, statement.alias),
                )
            case Emit():
                payload = tuple(monomial(p) for p in statement.payload)
                renamed = replace(statement, row=key(statement.row), payload=payload)
            case Scan():
                renamed = replace(statement, key=key(statement.key), within=key(statement.within))
            case Exists() | Balance():
                renamed = replace(statement, key=key(statement.key))
            case Perform():
                renamed = replace(statement, arguments=key(statement.arguments))
            case Top():
                grown, change_ = key((statement.grown, statement.change))
                alias = aliases.get(statement.alias, statement.alias)
                renamed = replace(statement, alias=alias, grown=grown, key=key(statement.key), change=change_)
            case Tally() | Enter() | Leave():
                renamed = replace(statement, alias=aliases.get(statement.alias, statement.alias))
            case _:
                renamed = statement
        return (renamed,)

    return transform(body, change)
