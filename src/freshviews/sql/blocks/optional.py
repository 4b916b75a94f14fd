"""Splits the ON of an outer join into equalities and filters. Rows of the right side are looked up by the equalities.

In ``l LEFT JOIN r ON r.k = l.k AND r.x > 1``, rows of r are looked up by k, and ``r.x > 1`` is a filter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.records import dataclass
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import TRUE, call, null, refined, rejects_null
from freshviews.sql.names.scope import aliases_in
from freshviews.types import BOOLEAN, INT

EQUALITIES = ("eq", "eq_float", "null_safe_eq")


def equality(own: Expr, other: Expr) -> Call:
    """The predicate that a column of a domain has the value of an expression, NULL included."""
    op = "null_safe_eq" if own.nullable else "eq_float" if own.type.is_float else "eq"
    made = call(op, (own, other), BOOLEAN)
    assert isinstance(made, Call)
    return made


@dataclass(frozen=True)
class Keyed:
    """The partners of a row: the source's rows that pass ``filters`` and are equal in every pair (the source's
    expression, the row's expression). NULL equals NULL; a filter excludes it if it must not."""

    filters: tuple[Expr, ...]
    pairs: tuple[tuple[Expr, Expr], ...]


def keyed(on: Iterable[Expr], alias: str, optional: Collection[str] = ()) -> Keyed | None:
    """Split ON of a join with the source ``alias``; None if it has another form.

    Each equality is between the source and one earlier source. For an ``optional`` earlier source only a column is
    accepted, in an equality that NULL does not pass. A predicate over an earlier source alone decides whether the key
    is NULL.
    """
    filters: list[Expr] = []
    pairs: list[tuple[Expr, Expr, bool]] = []
    before: dict[str, list[Expr]] = {}
    for term in on:
        aliases = aliases_in(term)
        if term == TRUE:
            continue
        if aliases <= {alias}:
            filters.append(term)
        elif alias not in aliases:
            (first, *more) = aliases
            if more or first in optional:
                return None
            before.setdefault(first, []).append(term)
        else:
            pair = _pair(term, alias, optional)
            if pair is None:
                return None
            pairs.append(pair)
    for first, terms in before.items():
        test = logic.all_of(terms)
        found = (i for i, (_, other, strict) in enumerate(pairs) if strict and aliases_in(other) == {first})
        place = next(found, None)
        one = Literal(1, INT)
        own, other, _ = pairs.pop(place) if place is not None else (one, one, True)
        pairs.append((own, call("case", (test, other, null(other.type)), other.type), True))
    known = frozenset[str]().union(*map(rejects_null, filters))
    filters += [call("is_not_null", (o,), BOOLEAN) for o, _, strict in pairs if strict and refined(o, known).nullable]
    # Without an equality all rows have one key.
    chosen = [(own, other) for own, other, _ in pairs] or [(Literal(1, INT), Literal(1, INT))]
    return Keyed(tuple(filters), tuple(chosen))


def _pair(term: Expr, alias: str, optional: Collection[str]) -> tuple[Expr, Expr, bool] | None:
    """An equality as (the source's side, the other side, True if NULL does not pass); None for another predicate."""
    if not isinstance(term, Call) or term.op not in EQUALITIES:
        return None
    strict = term.op != "null_safe_eq"
    for own, other in (term.args, term.args[::-1]):
        around = aliases_in(other)
        if aliases_in(own) == {alias} and len(around) == 1 and alias not in around:
            plain = strict and isinstance(other, Column)
            return (own, other, strict) if plain or not around & set(optional) else None
    return None
