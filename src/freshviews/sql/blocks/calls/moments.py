"""Computes variance, skewness, kurtosis, covariance, correlation and regression from exact sums of products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.expr.ops import OPS
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import AggregateCall, over_distinct
from freshviews.sql.expressions import arithmetic, coerce, logic
from freshviews.sql.expressions.build import VOID, Fault, call, integer, key, null
from freshviews.sql.expressions.cast import cast
from freshviews.types import BIGINT, BOOLEAN, DOUBLE


@dataclass(frozen=True)
class _Totals:
    """The totals of two arguments, which may be the same, over the rows in which neither is NULL.

    ``x``, ``y``: the arguments in these rows, else NULL. ``given``: the arguments themselves. Functions of several
    pairs share their product and count, which are the same in all rows. ``reference`` returns the reference of an
    aggregate call.
    """

    x: Expr
    y: Expr
    given: tuple[Expr, ...]
    reference: Callable[[AggregateCall], Expr]

    @property
    def count(self) -> Expr:
        known = dict.fromkeys(self.given)
        return self.reference(AggregateCall("count", tuple(arg for arg in known if arg.nullable), False, BIGINT))

    @property
    def rows(self) -> Expr:
        return call("int_to_float", (self.count,), DOUBLE)

    def mean(self, arg: Expr) -> Expr:
        return self.reference(AggregateCall("avg", (arg,), False, DOUBLE))

    def comoment(self, a: Expr, b: Expr) -> Expr:
        factors = (a, b) if a == b else self.given
        product = call("mul_float", factors, DOUBLE)
        rest = self._sum("sum", call("mul_rest", factors, DOUBLE))
        totals = [self._sum(function, arg) for arg in (a, b, product) for function in ("sum", "sum_rest")]
        return call("comoment", (self.count, *totals, rest), DOUBLE)

    def _powers(self, most: int) -> list[Expr]:
        """The count, then the totals of the powers of x, each as a sum of two doubles."""
        square, rest = _times(self.x, self.x), _rest(self.x, self.x)
        cube, fourth = _times(square, self.x), _times(square, square)
        tail = _times(square, rest)
        found: list[Expr] = [self.count, self._sum("sum", self.x), self._sum("sum_rest", self.x)]
        for power, less in (
            (square, rest),
            (cube, _plus(_rest(square, self.x), _times(rest, self.x))),
            (fourth, _plus(_rest(square, square), _plus(tail, tail))),
        )[: most - 1]:
            found += [self._sum("sum", power), _plus(self._sum("sum_rest", power), self._sum("sum", less))]
        return found

    @property
    def skewness(self) -> Expr:
        third = call("third_moment", tuple(self._powers(3)), DOUBLE)
        return _quotient(_times(_root(self.rows), third), _root(_times(_times(self.xx, self.xx), self.xx)))

    @property
    def kurtosis(self) -> Expr:
        fourth = call("fourth_moment", tuple(self._powers(4)), DOUBLE)
        quotient = _quotient(_times(self.rows, fourth), _times(self.xx, self.xx))
        return call("sub_float", (quotient, Literal(3.0, DOUBLE)), DOUBLE)

    def _sum(self, function: str, arg: Expr) -> Expr:
        return self.reference(AggregateCall(function, (arg,), False, DOUBLE))

    @property
    def xx(self) -> Expr:
        return self.comoment(self.x, self.x)

    @property
    def yy(self) -> Expr:
        return self.comoment(self.y, self.y)

    @property
    def xy(self) -> Expr:
        return self.comoment(self.x, self.y)

    def population(self, moment: Expr) -> Expr:
        return call("div_float", (moment, self.rows), DOUBLE)

    def sample(self, moment: Expr) -> Expr:
        several = call("gt", (self.count, integer(1)), BOOLEAN)
        less = call("sub_float", (self.rows, Literal(1.0, DOUBLE)), DOUBLE)
        return logic.choose([(several, call("div_float", (moment, less), DOUBLE))], null(DOUBLE))


def _quotient(a: Expr, b: Expr) -> Expr:
    """a / b; NULL if b is 0."""
    return logic.choose([(_is_zero(b), null(DOUBLE))], call("div_float", (a, b), DOUBLE))


def _is_zero(value: Expr) -> Expr:
    return call("eq_float", (value, Literal(0.0, DOUBLE)), BOOLEAN)


def _root(value: Expr) -> Expr:
    return call("sqrt", (value,), DOUBLE)


def _times(a: Expr, b: Expr) -> Expr:
    return call("mul_float", (a, b), DOUBLE)


def _plus(a: Expr, b: Expr) -> Expr:
    return call("add_float", (a, b), DOUBLE)


def _rest(a: Expr, b: Expr) -> Expr:
    """a * b less its nearest double."""
    return call("mul_rest", (a, b), DOUBLE)


def _fit(t: _Totals) -> Expr:
    """R squared of y by x: 1 if all y are equal, NULL if all x are."""
    fitted = _quotient(_times(t.xy, t.xy), _times(t.xx, t.yy))
    return logic.choose([(_is_zero(t.xx), null(DOUBLE)), (_is_zero(t.yy), Literal(1.0, DOUBLE))], fitted)


def _intercept(t: _Totals) -> Expr:
    return call("sub_float", (t.mean(t.y), _times(_quotient(t.xy, t.xx), t.mean(t.x))), DOUBLE)


_OF_ONE: Mapping[str, Callable[[_Totals], Expr]] = MappingProxyType(
    {
        "var_pop": lambda t: t.population(t.xx),
        "var_samp": lambda t: t.sample(t.xx),
        "variance": lambda t: t.sample(t.xx),
        "stddev_pop": lambda t: _root(t.population(t.xx)),
        "stddev_samp": lambda t: _root(t.sample(t.xx)),
        "stddev": lambda t: _root(t.sample(t.xx)),
        "std": lambda t: _root(t.sample(t.xx)),
        "skewness": lambda t: t.skewness,
        "kurtosis": lambda t: t.kurtosis,
    }
)

# The first argument is y, which depends on x.
_OF_TWO: Mapping[str, Callable[[_Totals], Expr]] = MappingProxyType(
    {
        "covar_pop": lambda t: t.population(t.xy),
        "covar_samp": lambda t: t.sample(t.xy),
        "corr": lambda t: _quotient(t.xy, _root(_times(t.xx, t.yy))),
        "regr_count": lambda t: t.count,
        "regr_sxx": lambda t: t.xx,
        "regr_syy": lambda t: t.yy,
        "regr_sxy": lambda t: t.xy,
        "regr_slope": lambda t: _quotient(t.xy, t.xx),
        "regr_intercept": _intercept,
        "regr_r2": _fit,
    }
)

_SQUARES = ("regr_sxx", "regr_syy")
_MEANS = ("regr_avgx", "regr_avgy")
"""Averages of one argument in the rows where neither is NULL; of decimals, a decimal."""

MOMENTS = frozenset((*_OF_ONE, *_OF_TWO, *_MEANS))
"""The functions by lower-case name."""


def moment(
    name: str, args: Sequence[Expr], reference: Callable[[AggregateCall], Expr], distinct: bool = False
) -> Expr:
    """The value of a function of ``MOMENTS`` over aggregate calls. Raises Fault for wrong arguments.

    All are functions of comoments. A comoment is the sum of ``(x - mean x) * (y - mean y)`` over the rows without NULL
    in x or y. It is computed from the exact sums of x, y and x * y. Each product x * y is computed as a pair of
    doubles: the nearest double, and the difference from it. A sum becomes such a pair when it is read. So the operation
    ``comoment`` subtracts numbers of 106 bits, and deleted rows leave no rounding error.

    As in Spark, integers and decimals count as DOUBLE. A sample of one row has no variance (NULL), and a division by a
    variance of 0 is NULL. ``distinct``: over the distinct values of the argument, or pairs of both. Functions that read
    one argument alone, such as REGR_SXX, are over its distinct values in the rows where the other one is not NULL.
    """
    count = 1 if name in _OF_ONE else 2
    if len(args) != count:
        raise Fault(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
    doubles: Sequence[Expr] = [
        null(DOUBLE) if arg.type == VOID else cast(arithmetic.numeric(name, arg), DOUBLE) for arg in args
    ]
    if count == 1:
        if distinct:
            doubles, reference = over_distinct(doubles, reference)
        (x,) = doubles
        return _OF_ONE[name](_Totals(x, x, (x,), reference))
    if name in _MEANS:
        decimals = [given if given.type.is_decimal else double for given, double in zip(args, doubles, strict=True)]
        arg, other = decimals if name == "regr_avgy" else decimals[::-1]
        mean = AggregateCall("avg", (_null_where_null(arg, other),), distinct, coerce.mean_of(arg.type) or DOUBLE)
        return reference(mean)
    if distinct and name in _SQUARES:
        arg, other = doubles if name == "regr_syy" else doubles[::-1]
        (x,), reference = over_distinct((_null_where_null(arg, other),), reference)
        return _Totals(x, x, (x,), reference).xx
    if distinct:
        doubles, reference = over_distinct(doubles, reference)
    y, x = (_null_where_null(arg, other) for arg, other in (doubles, doubles[::-1]))
    given = tuple(sorted(doubles, key=lambda arg: str(key(arg))))
    return _OF_TWO[name](_Totals(x, y, given, reference))


def _null_where_null(arg: Expr, other: Expr) -> Expr:
    """The argument; NULL in rows where the other one is NULL."""
    if not other.nullable:
        return arg
    while isinstance(other, Call) and len(other.args) == 1 and OPS[other.op].null == "strict":
        (other,) = other.args
    return logic.choose([(call("is_not_null", (other,), BOOLEAN), arg)], null(arg.type))
