"""Queries as the papers write them: ``query("Q(a) = R(a, b), S(b), a < b")``.

Every column is BIGINT NOT NULL. The relation of R(a, b) has the columns c0 and c1. A relation that
occurs again gives atoms E, E_2, E_3. A variable that repeats within an atom is one variable and a filter.
Comparisons of two variables become conditions. ``S?(k | y)`` is an optional atom with k given, ``!S(k)`` a negated
one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from freshviews.expr.nodes import Call, Column
from freshviews.query.query import Aggregate, Atom, Query
from freshviews.types import BIGINT, BOOLEAN

_ATOM = re.compile(r"\s*(!?)(\w+)(\??)\s*\(([^()]*)\)\s*,?")
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|<|>|=)\s*(\w+)\s*,?")
_OPS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "=": "eq", "!=": "ne"}


def column(name: str) -> Column:
    return Column(name, BIGINT, False)


def query(text: str, aggregates: tuple[Aggregate, ...] = (Aggregate("count", "integer"),)) -> Query:
    """The query that a line of text denotes; ValueError if it is not in the notation."""
    head = _ATOM.match(text)
    if head is None or text[head.end() :].lstrip()[:1] != "=":
        raise ValueError(f"no head: {text}")
    rest = text[head.end() :].lstrip()[1:]
    atoms: list[Atom] = []
    negated: list[Atom] = []
    conditions: list[Call] = []
    while rest.strip():
        if found := _ATOM.match(rest):
            relation = found[2]
            count = sum(atom.relation == relation for atom in (*atoms, *negated)) + 1
            name = relation if count == 1 else f"{relation}_{count}"
            given, _, opened = found[4].partition("|")
            made = _atom(name, relation, (*_names(given), *_names(opened)))
            if found[3]:
                made = replace(made, given=_names(given))
            (negated if found[1] else atoms).append(made)
        elif found := _CONDITION.match(rest):
            conditions.append(Call(_OPS[found[2]], (column(found[1]), column(found[3])), BOOLEAN, False))
        else:
            raise ValueError(f"neither an atom nor a condition: {rest}")
        rest = rest[found.end() :]
    return Query(head[2], _names(head[4]), tuple(atoms), aggregates, tuple(conditions), tuple(negated))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _atom(name: str, relation: str, arguments: tuple[str, ...]) -> Atom:
    first: dict[str, Column] = {}
    filters: list[Call] = []
    for i, variable in enumerate(arguments):
        here = column(f"c{i}")
        if variable in first:
            filters.append(Call("eq", (first[variable], here), BOOLEAN, False))
        else:
            first[variable] = here
    return Atom(name, relation, tuple(first), tuple(first.values()), tuple(filters))
