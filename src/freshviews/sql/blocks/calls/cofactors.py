"""Binds COFACTOR, COVAR_MATRIX and CORR_MATRIX. A call returns several columns of a SELECT list.

``COFACTOR(x, y)`` has the columns ``count``, ``sum_x``, ``sum_y``, ``sum_x_x``, ``sum_x_y``, ``sum_y_y``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from freshviews.catalog.matrices import Entry, columns_of, entries_of
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import GatheredColumn, Gathering
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions import arithmetic, coerce, logic
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, null, retyped
from freshviews.sql.expressions.cast import cast
from freshviews.sql.names.scope import name_of
from freshviews.sql.text.parse import Node
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, SqlType, decimal

_READ = {"count": "entry", "sum": "entry", "covar": "covariance", "corr": "correlation"}
"""The function that reads a column from a cofactor, by the prefix of the column's name."""

_GREATEST_SCALE = 18
"""Most digits of a decimal that is stored as an integer of 64 bits."""

RELATION = "relation"
"""The function of a call whose value is a relation, as a text."""


def is_category(argument: Node) -> bool:
    """True for ``CATEGORY(...)``."""
    return isinstance(argument, exp.Anonymous) and argument.name.lower() == "category"


def category_in(name: str, argument: Node) -> Node:
    """The argument of CATEGORY. Raises Fault and Refusal."""
    if name != "cofactor":
        instead = "use COFACTOR(x, CATEGORY(city)) for the sums, or freshviews.learn for models"
        raise Refusal(f"CATEGORY in {name.upper()}", instead)
    if len(argument.expressions) != 1:
        raise Fault(f"category takes 1 argument, not {len(argument.expressions)}")
    value: Node = argument.expressions[0]
    return value


def columns_of_matrix(
    name: str, given: Sequence[Expr], reference: Callable[[AggregateCall], Expr], categories: Collection[int] = ()
) -> list[tuple[str, Expr]]:
    """The columns of a call, by name. ``categories``: positions of categories. Raises Fault for wrong arguments.
    """
    if len(given) < (2 if name == "corr_matrix" else 1):
        raise Fault(f"{name} takes {'2 or more arguments' if name == 'corr_matrix' else 'at least 1 argument'}")
    places = [i for i in range(len(given)) if i not in categories]
    numbers = [_number(name, given[i]) for i in places]
    if not all(arg.type.is_integer or arg.type.is_decimal for arg in numbers) or _too_fine(numbers):
        numbers = [cast(arg, DOUBLE) for arg in numbers]
    values = {i: null(INT) if given[i].type == VOID else given[i] for i in categories}
    args = (*numbers, *map(_is_there, values.values()))
    relations = _relations(dict(zip(places, numbers, strict=True)), values) if values else {}
    found = []
    names = [name_of(arg.name) if isinstance(arg, Column) else None for arg in given]
    entries = entries_of(name, len(given), categories)
    for column, (stem, entry) in zip(columns_of(name, names, categories), entries, strict=True):
        if entry in relations:
            made = relations[entry]
        elif numbers:
            own = tuple(map(places.index, entry))
            made = AggregateCall(_READ[stem], args, False, _type_of(stem, numbers, own), own)
        else:
            made = AggregateCall("count", args, False, BIGINT)
        found.append((column, reference(made)))
    return found


def _number(name: str, arg: Expr) -> Expr:
    # A text would be cast, as by SUM, and a text that is not a number would then refuse every batch.
    if arg.type in (STRING, BOOLEAN):
        instead = "write CATEGORY(...) for a category in COFACTOR, or CAST(... AS DOUBLE) for a number"
        raise Fault(f"{name} takes numbers, not {arg.type}; {instead}")
    found = arithmetic.numeric(name, arg)
    return retyped(found, replace(found.type, wide=False))


def _is_there(category: Expr) -> Expr:
    """TRUE if a row has a value of the category, else NULL."""
    there = Literal(True, BOOLEAN)
    if not category.nullable:
        return there
    return logic.choose([(call("is_not_null", (category,), BOOLEAN), there)], null(BOOLEAN))


def _relations(numbers: Mapping[int, Expr], categories: Mapping[int, Expr]) -> dict[Entry, AggregateCall]:
    """The calls of the entries of categories. ``numbers`` and ``categories``: the arguments by their positions.

    There is a relation for each category and each pair. Its rows have its number, the categories, a count and sums.
    """
    own = {i: place for place, i in enumerate(categories, 1)}
    count = len(own) + 1
    sums = {i: place for place, i in enumerate(numbers, count + 1)}
    listed: dict[Entry, tuple[int, tuple[int, ...]]] = {}
    for number, keys in enumerate((*((i,) for i in own), *combinations(own, 2))):
        places = tuple(own[i] for i in keys)
        listed[keys] = (number, (*places, count))
        if len(keys) == 1:
            listed |= {tuple(sorted((*keys, i))): (number, (*places, place)) for i, place in sums.items()}
    totals = (_total(arg.type) for arg in numbers.values())
    types = (BIGINT, *(arg.type for arg in categories.values()), BIGINT, *totals)
    gathering = Gathering(tuple(map(GatheredColumn, types)), listed=tuple(listed.values()))
    args = (*categories.values(), *numbers.values())
    return {
        entry: AggregateCall(RELATION, args, False, STRING, (i,), gathering=gathering)
        for i, entry in enumerate(listed)
    }


def _type_of(stem: str, args: Sequence[Expr], entry: Entry) -> SqlType:
    if stem not in ("count", "sum"):
        return DOUBLE
    if not entry:
        return BIGINT
    return _total(args[entry[0]].type if len(entry) == 1 else product_of(args, entry))


def product_of(args: Sequence[Expr], entry: tuple[int, ...]) -> SqlType:
    """The type whose codes the products of an entry's arguments have.

    ``COFACTOR(x, y)`` has the columns ``count``, ``sum_x``, ``sum_y``, ``sum_x_x``, ``sum_x_y``, ``sum_y_y``; the
    matrices have one column per pair. All are read from one payload, the cofactor of the arguments
    (``freshviews.ring.cofactor``). Rows where an argument is NULL do not count. Integers and decimals stay exact; if
    one argument is a double, all arguments become doubles.

    An argument of COFACTOR may be a category, as in ``COFACTOR(x, CATEGORY(city))``. Each column of a category is a
    text, for example a list of the count and the sum of x for each city. One ``query.block.Gathering`` makes all these
    texts.
    """
    types = [args[i].type for i in entry]
    if all(one.is_integer for one in types):
        return BIGINT
    if not all(one.is_integer or one.is_decimal for one in types):
        return DOUBLE
    return decimal(_GREATEST_SCALE, sum(one.scale for one in types if one.is_decimal))


def _too_fine(args: Sequence[Expr]) -> bool:
    """True if a product of two decimals has more digits after the point than a decimal can have."""
    return 2 * max((arg.type.scale for arg in args if arg.type.is_decimal), default=0) > _GREATEST_SCALE


def _total(argument: SqlType) -> SqlType:
    found = coerce.total_of(argument)
    assert found is not None
    return found
