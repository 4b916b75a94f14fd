"""Rewrites the body of a loop over rows. The new body adds the sum of many rows at once.

This is valid if each addition in the body is linear in the row's payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.expr.nodes import Expr, columns_of
from freshviews.plan.delta.range_sums.products import Products, products_of
from freshviews.program.payload import ZERO, ComponentOf, Monomial, Value
from freshviews.program.rewrite import transform
from freshviews.program.statements import (
    Add,
    Body,
    Emit,
    Exists,
    If,
    Into,
    Let,
    Lookup,
    Loop,
    RangeLoop,
    Smaller,
    Statement,
    Sum,
)
from freshviews.program.structure import variables_read, visit, with_bodies
from freshviews.program.views import View


class _NotLinear(Exception):
    """Raised if the body of a loop does not add the row's payload linearly, or reads its variables."""


Factor = tuple[str, Expr | None]
"""A component of the row, and the expression over variables of the row that multiplies it; None for 1."""


def ring_of(factor: Expr) -> str:
    """The ring that a factor is an element of."""
    return "real" if factor.type.is_float else "integer"


def kept_by(body: Body, opened: frozenset[str]) -> frozenset[str]:
    """The variables of a row that the body reads outside of lifts that are split: they stay in the key of a group."""
    payloads = [p for s in visit(body) if isinstance(s, Into | Add | Emit) for p in s.payload]
    whole = {f.name for p in payloads for f in p.factors if isinstance(f, Value) and not _is_number(f)}
    kept: frozenset[str] = frozenset()
    while True:
        summed = opened - kept
        found: set[str] = set()
        for statement in visit(body):
            if not isinstance(statement, Let):
                found.update(summed.intersection(variables_read(statement)))
            elif statement.variable in whole or products_of(statement.expr, summed) is None:
                found.update(summed.intersection(columns_of(statement.expr)))
        if not found:
            return kept
        kept |= found


class Linear:
    """Rewrites the body of a loop over the sum of its rows. ``opened``: the variables of a row that a sum lacks;
    ``within``: variables that the body binds. ``used``: the summed factors, in order; ``products``: the lifts that are
    split, by variable."""

    def __init__(self, alias: str, total: str, opened: frozenset[str], within: frozenset[str]) -> None:
        self.within = within
        self.alias = alias
        self.total = total
        self.opened = opened
        self.used: dict[Factor, None] = {}
        self.products: dict[str, Products] = {}

    def body(self, body: Body) -> Body | None:
        """The body with the sum in the place of the row; None if that is not equivalent."""
        try:
            return tuple(s for one in body for s in self._statement(one, frozenset({self.alias})))
        except _NotLinear:
            return None

    def _body(self, body: Body, carriers: frozenset[str]) -> Body:
        return tuple(s for one in body for s in self._statement(one, carriers))

    def _statement(self, statement: Statement, carriers: frozenset[str]) -> Body:
        """Rewrites a statement. ``carriers``: the row, and sums over it; each addition has one factor of them."""
        match statement:
            case Let(variable, expr):
                if self.opened.isdisjoint(columns_of(expr)) and self.products.keys().isdisjoint(columns_of(expr)):
                    return (statement,)
                found = products_of(expr, self.opened)
                # Terms of inner loops are not known where the sum is.
                if found is None or self.within.intersection(columns_of(expr)):
                    raise _NotLinear
                self.products[variable] = found
                return (statement,)
            case Into() | Add() | Emit():
                self._check_reads(statement)
                if isinstance(statement, Add) and (statement.stay or statement.alias):
                    raise _NotLinear
                for monomial in statement.payload:
                    self._monomial(monomial, carriers)
                if isinstance(statement, Add):
                    for event in (statement.appear, statement.vanish):
                        self._check_free(event)
                return (statement,)
            case Sum(alias=alias, body=inner, then=then, once=once):
                if once:
                    raise _NotLinear
                into = [s for s in visit(inner) if isinstance(s, Into) and s.alias == alias]
                factors = [p for s in into for p in s.payload if p != ZERO]
                carried = [any(_is_of(f, carriers) for f in p.factors) for p in factors]
                if any(carried):
                    inner = self._body(inner, carriers)
                    return (replace(statement, body=inner, then=self._body(then, frozenset({alias}))),)
                self._check_free(inner)
                return (replace(statement, then=self._body(then, carriers)),)
            case If() | Lookup() | Loop() | RangeLoop() | Exists() | Smaller():
                self._check_reads(statement)
                return (with_bodies(statement, lambda inner: self._body(inner, carriers)),)
            case _:
                raise _NotLinear

    def _monomial(self, monomial: Monomial, carriers: frozenset[str]) -> None:
        if monomial == ZERO:
            return
        own = [f for f in monomial.factors if _is_of(f, carriers)]
        lifted = [f for f in monomial.factors if isinstance(f, Value) and f.name in self.products]
        if len(own) != 1 or len(lifted) > 1 or not all(map(_is_number, lifted)):
            raise _NotLinear
        (row,) = own
        assert isinstance(row, ComponentOf)
        if row.alias != self.alias:
            if lifted:
                raise _NotLinear
            return
        for part in self.products[lifted[0].name].parts if lifted else ():
            self.used[row.component, part.row] = None
        if not lifted:
            self.used[row.component, None] = None

    def _check_reads(self, statement: Statement) -> None:
        """Checks that the body reads no variable of the row, except as factors of a payload."""
        factors: set[str] = set()
        if isinstance(statement, Into | Add | Emit):
            factors = {f.name for p in statement.payload for f in p.factors if isinstance(f, Value)}
            key = statement.row if isinstance(statement, Emit) else getattr(statement, "key", ())
            if self.opened.intersection(key) or self.products.keys() & {*key} or self.opened & factors:
                raise _NotLinear
        read = set(variables_read(statement)) - (factors & self.products.keys())
        if read & self.opened or read & self.products.keys():
            raise _NotLinear

    def _check_free(self, body: Body) -> None:
        """Checks that the expression reads nothing of the row."""
        for statement in visit(body):
            self._check_reads(statement)
            if isinstance(statement, Into | Add | Emit):
                factors = [f for p in statement.payload for f in p.factors]
                if any(_is_of(f, frozenset({self.alias})) for f in factors):
                    raise _NotLinear
                if any(isinstance(f, Value) and f.name in self.products for f in factors):
                    raise _NotLinear

    def named(
        self, body: Body, names: Mapping[Factor, str], fresh: Callable[[str], str], view: Callable[[str], View]
    ) -> Body:
        """The body with the components of the sum, and with a sum of products in the place of each lift that is split.
        ``names`` are the names of the summed factors, ``view`` gives the views of the program by name."""
        lets: dict[Expr, str] = {}

        def monomials(monomial: Monomial) -> list[Monomial]:
            own = next((f for f in monomial.factors if _is_of(f, frozenset({self.alias}))), None)
            if own is None:
                return [monomial]
            assert isinstance(own, ComponentOf)
            lifted = next((f for f in monomial.factors if isinstance(f, Value) and f.name in self.products), None)
            rest = tuple(f for f in monomial.factors if f not in (own, lifted))
            if lifted is None:
                place = monomial.factors.index(own)
                mine = ComponentOf(self.total, names[own.component, None])
                factors = (*monomial.factors[:place], mine, *monomial.factors[place + 1 :])
                return [replace(monomial, factors=factors)]
            found = []
            for part in self.products[lifted.name].parts:
                mine = ComponentOf(self.total, names[own.component, part.row])
                outside: tuple[Value, ...] = ()
                if part.outside is not None:
                    if part.outside not in lets:
                        lets[part.outside] = fresh("term")
                    outside = (Value(lets[part.outside], ring_of(part.outside)),)
                found.append(Monomial((*rest, mine, *outside), monomial.coefficient * part.coefficient))
            return found

        def change(statement: Statement) -> Body:
            if isinstance(statement, Let) and statement.variable in self.products:
                return ()
            if not isinstance(statement, Into | Add | Emit):
                return (statement,)
            parts = [[p] if p == ZERO else monomials(p) for p in statement.payload]
            several = range(max(map(len, parts), default=1))
            payloads = [tuple(part[i] if i < len(part) else ZERO for part in parts) for i in several]
            if not isinstance(statement, Add) or len(payloads) == 1:
                return tuple(replace(statement, payload=payload) for payload in payloads)
            # The row is looked up once.
            alias, target = fresh(f"{statement.view.lower()}_sum"), view(statement.view)
            whole = tuple(Monomial((ComponentOf(alias, name),)) for name in statement.components)
            components = tuple(map(target.component, statement.components))
            into = tuple(Into(alias, payload) for payload in payloads)
            return (Sum(alias, components, into, (replace(statement, payload=whole),)),)

        made = transform(body, change)
        return (*(Let(name, expr) for expr, name in lets.items()), *made)


def _is_number(factor: Value) -> bool:
    """Whether a value is an element of the integers or of the doubles: its lift may be split into a sum of products."""
    return factor.ring in ("integer", "real")


def _is_of(factor: ComponentOf | Value, aliases: frozenset[str]) -> bool:
    return isinstance(factor, ComponentOf) and factor.alias in aliases
