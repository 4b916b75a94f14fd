"""COFACTOR, COVAR_MATRIX and CORR_MATRIX: calls that stand for several columns of a SELECT list.

``COFACTOR(x, y)`` has the columns ``count``, ``sum_x``, ``sum_y``, ``sum_x_x``, ``sum_x_y``, ``sum_y_y``; the matrices
have one column per pair. All are read of one payload, the cofactor of the arguments (``freshviews.ring.cofactor``).
Rows where an argument is NULL do not count. Integers and decimals stay exact; with a double among them all are doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, combinations_with_replacement

from freshviews.expr.nodes import Column, Expr
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions import arithmetic, coerce
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.names.scope import name_of
from freshviews.types import BIGINT, DOUBLE, SqlType, decimal

MATRICES = frozenset(("cofactor", "covar_matrix", "corr_matrix"))
"""The functions by lower-case name."""

_GREATEST_SCALE = 18
"""A decimal is an integer of 64 bits, of 18 digits."""


def columns_of_matrix(
    name: str, given: Sequence[Expr], reference: Callable[[AggregateCall], Expr]
) -> list[tuple[str, Expr]]:
    """The columns of a call, by name. Raises Fault for wrong arguments."""
    if len(given) < (2 if name == "corr_matrix" else 1):
        raise Fault(f"{name} takes {'2 or more arguments' if name == 'corr_matrix' else 'at least 1 argument'}")
    args = [arithmetic.numeric(name, arg) for arg in given]
    if not all(arg.type.is_integer or arg.type.is_decimal for arg in args) or _too_fine(args):
        args = [cast(arg, DOUBLE) for arg in args]
    names = _names(given)
    pairs = list(combinations_with_replacement(range(len(args)), 2))
    wanted: list[tuple[str, str, tuple[int, ...], SqlType]] = []
    if name == "cofactor":
        wanted.append(("count", "entry", (), BIGINT))
        wanted += (("sum", "entry", (i,), _total(arg.type)) for i, arg in enumerate(args))
        wanted += (("sum", "entry", pair, _total(product_of(args, pair))) for pair in pairs)
    elif name == "covar_matrix":
        wanted += (("covar", "covariance", pair, DOUBLE) for pair in pairs)
    else:
        wanted += (("corr", "correlation", pair, DOUBLE) for pair in combinations(range(len(args)), 2))
    found = []
    for stem, function, entry, of in wanted:
        call = AggregateCall(function, tuple(args), False, of, entry)
        found.append(("_".join((stem, *(names[i] for i in entry))), reference(call)))
    return found


def product_of(args: Sequence[Expr], entry: tuple[int, ...]) -> SqlType:
    """The type whose codes the products of the arguments of an entry have."""
    types = [args[i].type for i in entry]
    if all(one.is_integer for one in types):
        return BIGINT
    if not all(one.is_integer or one.is_decimal for one in types):
        return DOUBLE
    return decimal(_GREATEST_SCALE, sum(one.scale for one in types if one.is_decimal))


def _too_fine(args: Sequence[Expr]) -> bool:
    """Whether a product of two decimals has more digits behind the point than a decimal can."""
    return 2 * max((arg.type.scale for arg in args if arg.type.is_decimal), default=0) > _GREATEST_SCALE


def _total(argument: SqlType) -> SqlType:
    found = coerce.total_of(argument)
    assert found is not None
    return found


def _names(args: Sequence[Expr]) -> list[str]:
    """A name per argument: that of a column, else ``arg`` with its number; a number behind a name that came before."""
    found: list[str] = []
    for i, arg in enumerate(args, 1):
        name = name_of(arg.name) if isinstance(arg, Column) else f"arg{i}"
        found.append(f"{name}_{i}" if name in found else name)
    return found
