"""Combines many sums of products, such as SUM(x), SUM(y) and SUM(x * y), into one aggregate.

This aggregate is a cofactor: one element of a ring has all the sums, so each sum is stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.query.block import Block, part
from freshviews.query.query import Aggregate, Lift
from freshviews.records import dataclass

LEAST = 4
"""Minimum number of variables of a shared aggregate: a payload of 14 numbers is read and written as fast one by one."""

_NAME = "cofactor"


@dataclass(frozen=True)
class _Variable:
    """A factor of sums: an atom, and the form that factors with equal codes share."""

    atom: str
    form: object
    is_flag: bool


Pair = tuple[_Variable, _Variable]


def with_shared_sums(block: Block) -> Block:
    """The block with its shared sums of products as cofactors; the block itself if there are none.

    Conditions across atoms stay with sums of numbers, which range views support.

    SUM(x), SUM(y), SUM(x * x), SUM(x * y) and SUM(y * y) are the numbers of one cofactor. If a block sums some
    variables and all their products, one cofactor replaces these aggregates. A payload then stores each sum once, and
    generated code has one call for all sums. Counts of values that are not NULL are combined as well.

    The values of the sums do not change. Only the check that an INT product fits an INT is dropped.
    """
    if block.query.conditions or block.selection is not None or len(block.query.aggregates) < LEAST * (LEAST + 3) // 2:
        return block
    singles: dict[_Variable, str] = {}
    lifts: dict[_Variable, Lift] = {}
    pairs: dict[Pair, str] = {}
    for aggregate in block.query.aggregates:
        found = _factors_of(aggregate)
        if found is None:
            continue
        variables = list(found)
        lifts |= {variable: found[variable][0] for variable in variables if variable not in lifts}
        degree = sum(len(of) for of in found.values())
        if degree == 1:
            singles.setdefault(variables[0], aggregate.name)
        elif degree == 2:
            pairs.setdefault((variables[0], variables[-1]), aggregate.name)
            pairs.setdefault((variables[-1], variables[0]), aggregate.name)
    # A count of rows where two values are known may exist without a count for each alone.
    flags = (v for pair in pairs for v in pair if v.is_flag)
    left = [v for v in dict.fromkeys((*singles, *flags)) if v.is_flag or (v, v) in pairs]
    renamed: dict[str, str] = {}
    made: list[Aggregate] = []
    taken = {aggregate.name for aggregate in block.query.aggregates}
    places = {atom.name: i for i, atom in enumerate(block.query.occurrences)}
    while len(chosen := _clique(left, pairs)) >= LEAST:
        left = [v for v in left if v not in chosen]
        # Variables of one atom are consecutive: kernels add them together.
        chosen.sort(key=lambda v: places[v.atom])
        name = _NAME
        while name in taken:
            name += "_"
        taken.add(name)
        placed = tuple(replace(lifts[v], place=i) for i, v in enumerate(chosen))
        made.append(Aggregate(name, "cofactor.integer", placed))
        for i, one in enumerate(chosen):
            if one in singles:
                renamed[singles[one]] = part(name, (i,))
            for j in range(i, len(chosen)):
                if (one, chosen[j]) in pairs:
                    renamed[pairs[one, chosen[j]]] = part(name, (i, j))
    if not made:
        return block
    kept = tuple(a for a in block.query.aggregates if a.name not in renamed)
    results = tuple(replace(r, components=tuple(renamed.get(c, c) for c in r.components)) for r in block.results)
    return replace(block, query=replace(block.query, aggregates=(*kept, *made)), results=results)


def _clique(variables: Sequence[_Variable], pairs: Mapping[Pair, str]) -> list[_Variable]:
    """Variables whose products are all summed: the largest set found greedily from any variable."""
    places = {variable: i for i, variable in enumerate(variables)}
    partners: list[set[int]] = [set() for _ in variables]
    for one, other in pairs:
        if one in places and other in places:
            partners[places[one]].add(places[other])
    found: list[int] = []
    for first, near in enumerate(partners):
        if len(near | {first}) <= len(found):
            continue
        chosen = [first]
        for place in sorted(near - {first}):
            if partners[place].issuperset(chosen):
                chosen.append(place)
        if len(chosen) > len(found):
            found = chosen
    return [variables[place] for place in sorted(found)]


def _factors_of(aggregate: Aggregate) -> dict[_Variable, list[Lift]] | None:
    """The variables of a sum of a product within atoms, each with a lift per occurrence as a factor; else None."""
    if aggregate.ring != "integer" or not 1 <= len(aggregate.lifts) <= 2:
        return None
    found: dict[_Variable, list[Lift]] = {}
    for lift in aggregate.lifts:
        if lift.atom is None:
            return None
        for factor in _factors(lift.expr):
            form, is_flag = _form(factor)
            found.setdefault(_Variable(lift.atom, form, is_flag), []).append(Lift(lift.atom, factor))
    return found


def _factors(expr: Expr) -> list[Expr]:
    """Expressions whose codes multiply to the code of ``expr``."""
    if isinstance(expr, Call):
        args = expr.args
        if expr.op == "mul_int":
            return [*_factors(args[0]), *_factors(args[1])]
        if expr.op == "check_range":
            return _factors(args[0]) if len(_factors(args[0])) > 1 else [expr]
        if expr.op == "coalesce" and len(args) == 2 and _is_zero(args[1]) and len(_factors(args[0])) > 1:
            return [_zero_for_null(one) for one in _factors(args[0])]
        if expr.op == "and" and all(_is_flag(arg) for arg in args):
            return list(args)
    return [expr]


def _zero_for_null(expr: Expr) -> Expr:
    return Call("coalesce", (expr, Literal(0, expr.type)), expr.type, False) if expr.nullable else expr


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0


def _is_flag(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "is_not_null"


def _form(expr: Expr) -> tuple[object, bool]:
    """The form that factors with equal codes share, and whether the factor is 0 or 1. A column has one code under
    integer types of any size."""
    if isinstance(expr, Column):
        return ("column", expr.name), False
    if isinstance(expr, Call) and isinstance(expr.args[0], Column):
        if expr.op == "coalesce" and len(expr.args) == 2 and _is_zero(expr.args[1]):
            return ("known", expr.args[0].name), False
        if _is_flag(expr):
            return ("flag", expr.args[0].name), True
    return expr, _is_flag(expr)
