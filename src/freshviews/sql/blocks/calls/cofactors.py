"""COFACTOR, COVAR_MATRIX and CORR_MATRIX: calls that stand for several columns of a SELECT list.

``COFACTOR(x, y)`` has the columns ``count``, ``sum_x``, ``sum_y``, ``sum_x_x``, ``sum_x_y``, ``sum_y_y``; the matrices
have one column per pair. All are read of one payload, the cofactor of the arguments (``freshviews.ring.cofactor``).
Rows where an argument is NULL do not count. Integers and decimals stay exact; with a double among them all are doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshviews.catalog.matrices import Entry, columns_of, entries_of
from freshviews.expr.nodes import Column, Expr
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions import arithmetic, coerce
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.names.scope import name_of
from freshviews.types import BIGINT, DOUBLE, SqlType, decimal

_READ = {"count": "entry", "sum": "entry", "covar": "covariance", "corr": "correlation"}
"""How the columns whose names begin so are read of a cofactor."""

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
    found = []
    names = columns_of(name, [name_of(arg.name) if isinstance(arg, Column) else None for arg in given])
    for column, (stem, entry) in zip(names, entries_of(name, len(args)), strict=True):
        call = AggregateCall(_READ[stem], tuple(args), False, _type_of(stem, args, entry), entry)
        found.append((column, reference(call)))
    return found


def _type_of(stem: str, args: Sequence[Expr], entry: Entry) -> SqlType:
    if stem not in ("count", "sum"):
        return DOUBLE
    if not entry:
        return BIGINT
    return _total(args[entry[0]].type if len(entry) == 1 else product_of(args, entry))


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
