"""Splits the argument of a SUM into factors, one per table.

``SUM(o.discount * i.price)`` has the factors o.discount and i.price.
"""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.expr.ops import OPS, may_fail
from freshviews.query.query import Lift
from freshviews.records import dataclass
from freshviews.sql.blocks.building.join import localised
from freshviews.sql.blocks.building.variables import Variables, at_leaf
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, has_host, integer, is_guarded, key, retyped
from freshviews.sql.names.scope import aliases_in
from freshviews.types import BIGINT, BOOLEAN, DOUBLE


class AcrossWithHost(Exception):
    """An expression over several sources needs a host operation: the block needs an inner block."""


@dataclass(frozen=True)
class Lifts:
    """Lifts over the block's variables, for an Aggregate."""

    lifts: tuple[Lift, ...]

    @property
    def identity(self) -> tuple[object, ...]:
        return tuple((lift.atom, key(lift.expr), lift.place) for lift in self.lifts)


def of_sum(argument: Expr, variables: Variables) -> Lifts:
    """The lifts of SUM(argument) for exact types; NULL counts as 0.

    The argument of ``SUM(o.discount * i.price)`` has a factor of o and a factor of i. A view tree can push each factor
    to its leaf. Products, changes of sign, and scalings by a constant are split. So is ``CASE WHEN c THEN v ELSE 0
    END``, which is v times 1 or 0. A product over several tables is exact: only the sum must fit its type, not each INT
    product.
    """
    return _placed([_zero_for_null(factor) for factor in _factors(argument)], variables)


def of_real_sum(argument: Expr, variables: Variables) -> Lifts:
    """The one lift of SUM over DOUBLE."""
    argument = localised(argument, variables.join.shared)
    double = retyped(argument, DOUBLE)
    value = call("coalesce", (double, Literal(0.0, DOUBLE)), DOUBLE) if double.nullable else double
    if variables.join.lifted_in_atom(value):
        return Lifts((Lift(next(iter(aliases_in(value)), variables.join.sources[0].alias), at_leaf(value)),))
    return Lifts((Lift(None, _compiled(value, variables)),))


def of_arguments(args: Sequence[Expr], variables: Variables) -> Lifts:
    """The lifts of a cofactor or a user's ring: a value per argument, and factors that are 1 for the rows where none is
    NULL, else 0. A BOOLEAN, TRUE or NULL, has no value and comes after the numbers."""
    terms = of_count(args, variables)
    flags = terms[0] if len(terms) == 1 else _placed([_flag("is_not_null", arg) for arg in args], variables)
    flagged = {lift.atom for lift in flags.lifts}
    values = []
    for place, arg in enumerate(arg for arg in args if arg.type != BOOLEAN):
        value = _zero_for_null(localised(arg, variables.join.shared))
        alias = next(iter(aliases_in(value)), variables.join.sources[0].alias)
        # A default row has 0 for all lifts of its atom; if it counts, its value is computed over variables.
        counts = alias in variables.join.optional and alias not in flagged
        if variables.join.lifted_in_atom(value) and not counts:
            values.append(Lift(alias, at_leaf(value), place))
        else:
            values.append(Lift(None, _compiled(value, variables), place))
    return Lifts((*values, *flags.lifts))


def of_known(made: Lifts) -> Lifts:
    """The lifts that count the rows where no argument is NULL, from the lifts of arguments."""
    return Lifts(tuple(lift for lift in made.lifts if lift.place is None))


def of_count(args: Sequence[Expr], variables: Variables, computed: bool = False) -> list[Lifts]:
    """Lifts whose sums add up to COUNT(args), the rows where no argument is NULL; most calls need one. ``computed``:
    arguments are computed, as they may fail."""
    terms: list[list[Expr]] = [[]]
    for arg in args:
        parts = [[_flag("is_not_null", arg)]] if computed and arg.nullable and is_guarded(arg) else _presence(arg)
        terms = [[*one, *other] for one in terms for other in parts]
    return [_placed(_in_order({key(f): f for f in term}), variables) for term in terms]


def _in_order(factors: dict[tuple[object, ...], Expr]) -> list[Expr]:
    """Factors in the order of their keys, so that COUNT(x, y) and COUNT(y, x) are one sum."""
    return [factors[one] for one in sorted(factors, key=str)]


def of_one_count(arg: Expr, variables: Variables) -> Lifts:
    """The lifts of COUNT(arg) as a single sum, even if its condition is then not factorised."""
    terms = of_count([arg], variables)
    return terms[0] if len(terms) == 1 else _placed([_flag("is_not_null", arg)], variables)


def _placed(factors: Sequence[Expr], variables: Variables) -> Lifts:
    """One lift per source, and one over variables for factors that span several sources."""
    by_alias: dict[str, Expr] = {}
    constant, spanning = None, None
    for one in factors:
        factor = localised(one, variables.join.shared)
        aliases = aliases_in(factor)
        if not aliases:
            constant = factor if constant is None else _times(constant, factor)
        elif variables.join.lifted_in_atom(factor):
            (alias,) = aliases
            by_alias[alias] = factor if alias not in by_alias else _times(by_alias[alias], factor)
        else:
            spanning = factor if spanning is None else _times(spanning, factor)
    if constant is not None and not (isinstance(constant, Literal) and constant.value == 1):
        alias = next(iter(by_alias), variables.join.sources[0].alias)
        by_alias[alias] = constant if alias not in by_alias else _times(constant, by_alias[alias])
    order = [source.alias for source in variables.join.sources if source.alias in by_alias]
    lifts = [Lift(alias, at_leaf(by_alias[alias])) for alias in order]
    if spanning is not None:
        lifts.append(Lift(None, _compiled(spanning, variables)))
    return Lifts(tuple(lifts))


def _compiled(expr: Expr, variables: Variables) -> Expr:
    made = variables.over(expr)
    if has_host(made):
        raise AcrossWithHost
    return made


def _times(a: Expr, b: Expr) -> Expr:
    if _is_flag(a) and _is_flag(b):
        return call("and", (a, b), BIGINT)
    return call("mul_int", (a, b), b.type if b.type.is_decimal else a.type if a.type.is_decimal else BIGINT)


def _zero_for_null(factor: Expr) -> Expr:
    if not factor.nullable:
        return factor
    return logic.first_of((factor, Literal(0, factor.type)))


def _factors(expr: Expr) -> list[Expr]:
    """Expressions whose codes multiply to the code of ``expr``; 0 stands for NULL."""
    if len(aliases_in(expr)) <= 1 or not isinstance(expr, Call):
        return [expr]
    args = expr.args
    if expr.op == "mul_int":
        return [*_factors(args[0]), *_factors(args[1])]
    if expr.op == "check_range" and isinstance(args[0], Call) and args[0].op == "mul_int":
        return _factors(args[0])
    if expr.op == "neg_int":
        return [integer(-1), *_factors(args[0])]
    if expr.op == "scale_up":
        return [args[1], *_factors(args[0])]
    chosen = _single_branch(expr)
    if chosen is not None and not any(map(is_guarded, args)):
        flags, value = chosen
        return [*flags, *_factors(value)]
    return [expr]


def _presence(expr: Expr) -> list[list[Expr]]:
    """Products of 0-or-1 factors whose sum is 1 if the expression is not NULL, else 0."""
    if not expr.nullable:
        return [[]]
    if isinstance(expr, Call) and OPS[expr.op].null == "strict":
        terms: list[list[Expr]] = [[]]
        for arg in expr.args:
            terms = [[*one, *other] for one in terms for other in _presence(arg)]
        return terms
    if isinstance(expr, Call) and expr.op == "case" and len(expr.args) == 3:
        test, then, otherwise = expr.args
        # An expression that cannot fail may be tested for NULL even where the condition of the CASE is not TRUE.
        if _is_null(otherwise) and not (then.nullable and may_fail(then)) and not is_guarded(test):
            return [[*_when_true(test), *term] for term in _presence(then)]
        if len(aliases_in(expr)) > 1 and not any(map(is_guarded, expr.args)):
            taken = [[*_when_true(test), *term] for term in _presence(then) if not _is_null(then)]
            left = [[_unless_true(test), *term] for term in _presence(otherwise) if not _is_null(otherwise)]
            return taken + left
    return [[_flag("is_not_null", expr)]]


def _is_null(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value is None


def _flag(op: str, expr: Expr) -> Expr:
    made = call(op, (expr,), BOOLEAN)
    return integer(int(bool(made.value))) if isinstance(made, Literal) else retyped(made, BIGINT)


def _when_true(test: Expr) -> list[Expr]:
    """Factors that are 1 if the test is TRUE; one per conjunct."""
    return [logic.as_boolean_code(term, BIGINT) for term in logic.conjuncts_of(test)]


def _unless_true(test: Expr) -> Expr:
    """1 if the test is FALSE or NULL."""
    taken = call("is_true", (test,), BOOLEAN) if test.nullable else test
    return _flag("not", taken)


def _single_branch(expr: Call) -> tuple[list[Expr], Expr] | None:
    """For a CASE with one branch and 0 or NULL otherwise: the factors of its test, and its value."""
    if expr.op != "case" or len(expr.args) != 3:
        return None
    test, then, otherwise = expr.args
    if _is_zero_or_null(otherwise):
        return _when_true(test), then
    if _is_zero_or_null(then):
        return [_unless_true(test)], otherwise
    return None


def _is_zero_or_null(value: Expr) -> bool:
    return isinstance(value, Literal) and (value.value is None or value.value == 0)


def _is_flag(factor: Expr) -> bool:
    """True if its code is 0 or 1 and never NULL."""
    return isinstance(factor, Call) and (
        factor.op in ("is_not_null", "is_true") or (factor.op == "and" and all(map(_is_flag, factor.args)))
    )
