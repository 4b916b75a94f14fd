"""Converts calls of SQL aggregates, such as SUM(x), to ``AggregateCall`` objects. Equal calls share one object.

``FILTER (WHERE c)`` becomes a CASE around the arguments. COUNT_IF(c) becomes ``COUNT(CASE WHEN c THEN 1 END)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from freshviews.catalog.known_functions import is_own_aggregate
from freshviews.catalog.matrices import MATRICES
from freshviews.catalog.rings import aggregate_over, bit_xor
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import BY, FOLDED, SCANNED
from freshviews.sql.blocks.bound import AggregateCall, aggregate_index, aggregate_ref, over_distinct
from freshviews.sql.blocks.calls.cofactors import RELATION, category_in, columns_of_matrix, is_category
from freshviews.sql.blocks.calls.halves import halves_of, whole_of_halves
from freshviews.sql.blocks.calls.moments import MOMENTS, moment
from freshviews.sql.blocks.calls.own_aggregates import call_of_aggregate
from freshviews.sql.blocks.calls.own_rings import call_of_ring, columns_of_ring
from freshviews.sql.blocks.calls.percentiles import PERCENTILES, percentile_call
from freshviews.sql.blocks.calls.wide_sums import is_wide, wide_aggregate
from freshviews.sql.blocks.text_aggregates import JOINING, PROVENANCE, joined_texts, or_empty, provenance_call
from freshviews.sql.expressions import coerce, logic
from freshviews.sql.expressions.build import VOID, Fault, Refusal, integer, key, null, replaced, retyped
from freshviews.sql.expressions.build import call as expression
from freshviews.sql.expressions.cast import cast, checked
from freshviews.sql.expressions.expression import Binder, is_unit
from freshviews.sql.expressions.nulls import where_null
from freshviews.sql.names.marks import OUTER, is_marked
from freshviews.sql.names.star import is_star
from freshviews.sql.text.parse import Node
from freshviews.sql.text.refuse import GROUPINGS, is_aggregate_name
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING

_SYNONYMS = {
    "mean": "avg", "countif": "count_if", "approx_count_distinct": "count_distinct",
    "any": "bool_or", "some": "bool_or", "every": "bool_and",
    "arg_max": "max_by", "argmax": "max_by", "arg_min": "min_by", "argmin": "min_by",
    "any_value": "min", "first": "min", "first_value": "min", "last": "max", "last_value": "max",
}  # fmt: skip
_OF_ANY = ("any_value", "first", "first_value", "last", "last_value")
_LOGICAL = {"bool_or": "max", "bool_and": "min"}


class Collector:
    """Collects the aggregate calls of one SELECT and returns references to them.

    SQL allows FIRST, ANY_VALUE and LAST to return the value of any row. Here FIRST and ANY_VALUE are the least value
    that is not NULL, and LAST is the greatest. ``FILTER (WHERE c)`` becomes a CASE around the arguments. COUNT_IF(c) is
    ``COUNT(CASE WHEN c THEN 1 END)``. BOOL_OR and BOOL_AND are MAX and MIN. MAX_BY(x, y) ignores rows where y is NULL.
    ONLY_VALUE(x) is the one value of x, NULL included; several values are an error. Equal calls share one
    ``AggregateCall``.
    """

    def __init__(
        self,
        scalar: Binder,
        grouped: bool,
        grouping: Callable[[Node], Expr],
        star: Callable[[Node], Sequence[Expr]] | None = None,
    ) -> None:
        """``star``: the columns that ``*`` or ``table.*`` denotes in COUNT; None if no star is accepted there."""
        self.calls: list[AggregateCall] = []
        self._places: dict[tuple[object, ...], int] = {}
        self._scalar = replace(scalar, clause="an aggregate function")
        self._grouped = grouped
        self._over = scalar.clause == "OVER"
        self._grouping = grouping
        self._star = star

    def bind(self, node: Node) -> Expr:
        """Return the reference for an aggregate call, with or without FILTER, or the value of GROUPING."""
        if node.name.lower() in GROUPINGS:
            return self._grouping(node)
        if self._over and _function_name(node) in _OF_ANY[1:]:
            what = f"{_function_name(node).upper()} OVER"
            raise self._scalar.text.unsupported(node, what, "MIN, MAX, ANY_VALUE, LAG and LEAD OVER are accepted")
        if self._over and _function_name(node) == PROVENANCE:
            raise self._scalar.text.unsupported(
                node, "PROVENANCE() OVER", "compute PROVENANCE() with GROUP BY in a subquery, then join the subquery"
            )
        try:
            self._check_own(node)
            if is_matrix(node):
                what = f"{_function_name(node)} returns several columns; write it as an item of the SELECT list, alone"
                raise Fault(what)
            if _function_name(node) in MOMENTS:
                return self._moment(node)
            if _function_name(node) == "try_sum":
                return self._try_sum(node)
            call = self._call(node)
        except Fault as fault:
            raise self._scalar.text.error(node, str(fault)) from None
        least = self._reference(call)
        if call.function == "min_by" and _function_name(node) == "only_value":
            return expression("only_value", (least, self._reference(replace(call, function="max_by"))), call.type)
        if call.function == "sum" and call.type.is_months:
            return checked(retyped(least, BIGINT), call.type)
        return or_empty(least) if call.function == PROVENANCE else least

    def columns(self, node: Node) -> list[tuple[str, Expr]]:
        """The names and references of the columns that a call returns; see ``is_matrix``."""
        try:
            self._check_own(node)
            name, arguments, distinct, keep = self._parts(node)
            if distinct:
                raise Refusal(f"{name} of DISTINCT values", "aggregate over SELECT DISTINCT in FROM")
            ring = aggregate_over(name)
            chosen = {i: category_in(name, one) for i, one in enumerate(arguments) if ring is None and is_category(one)}
            args = [self._scalar.bind(chosen.get(i, argument)) for i, argument in enumerate(arguments)]

            def reference(call: AggregateCall) -> Expr:
                found = self._reference(filtered(call, keep))
                return or_empty(found) if call.function == RELATION else found

            if ring is not None:
                return columns_of_ring(ring, args, reference)
            return columns_of_matrix(name, args, reference, chosen)
        except Fault as fault:
            raise self._scalar.text.error(node, str(fault)) from None

    def _check_own(self, node: Node) -> None:
        """Refuse an aggregate over columns of enclosing queries alone: it belongs to an enclosing query."""
        if self._over or any(node.find_all(exp.Query)):
            return
        named = (one for one in node.find_all(exp.Column) if not (is_unit(one) or is_star(one)))
        columns = [self._scalar.bind(one) for one in named]
        if columns and all(map(is_marked, columns)):
            text = self._scalar.text
            what = f"{text.of(node)} in a subquery, an aggregate of columns of the enclosing query alone,"
            remedy = "name a column of the subquery in the aggregate, or move the aggregate to the enclosing query"
            raise text.unsupported(node, what, remedy)

    def _moment(self, node: Node) -> Expr:
        """A variance, covariance or regression: an expression over references to sums."""
        name, arguments, distinct, keep = self._parts(node)
        args = [keep(self._scalar.bind(argument)) for argument in arguments]
        return moment(name, args, self._reference, distinct)

    def _try_sum(self, node: Node) -> Expr:
        """SUM; of BIGINT, NULL where it does not fit: the sums of both halves of the values always do."""
        name, arguments, distinct, keep = self._parts(node)
        if len(arguments) != 1:
            raise Fault(f"{name} takes 1 argument, not {len(arguments)}")
        argument = self._scalar.bind(arguments[0])
        if argument.type != BIGINT:
            total = self._reference(_over_one("sum", argument, distinct, keep))
            if total.type.is_months:
                return expression("try_check_range", (total, *map(integer, total.type.bounds)), total.type)
            return expression("attempt", (total,), total.type) if total.type.wide else total
        reference: Callable[[AggregateCall], Expr] = self._reference
        if distinct:
            (argument,), reference = over_distinct((keep(argument),), reference)
            keep = _as_is
        return whole_of_halves(*(reference(_over_one("sum", half, False, keep)) for half in halves_of(argument)))

    def _parts(self, node: Node) -> tuple[str, list[Node], bool, Callable[[Expr], Expr]]:
        """The name of a call, its arguments, True for DISTINCT, and the function that applies FILTER."""
        keep: Callable[[Expr], Expr] = _as_is
        if isinstance(node, exp.Filter):
            keep = _only_where(replace(self._scalar, clause="FILTER").condition(node.expression.this))
            node = node.this
        arguments = list(node.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        return node.name.lower(), list(arguments[0].expressions) if distinct else arguments, distinct, keep

    def _reference(self, call: AggregateCall) -> Expr:
        if is_wide(call):
            return wide_aggregate(call, self._reference)
        return aggregate_ref(self._place(call), call, self._grouped)

    def _place(self, call: AggregateCall) -> int:
        place = self._places.setdefault(_identity(call), len(self.calls))
        if place == len(self.calls):
            self.calls.append(call)
        return place

    def _call(self, node: Node) -> AggregateCall:
        name, arguments, distinct, keep = self._parts(node)
        if name in _OF_ANY and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
            arguments = arguments[:1]  # the second argument of first(x, true) says that NULL is ignored
        if is_own_aggregate(name):
            return call_of_aggregate(name, arguments, distinct, self._scalar.bind, keep)
        name = _SYNONYMS.get(name, name)
        if name in JOINING:
            return joined_texts(node.this if isinstance(node, exp.Filter) else node, self._scalar.bind, keep)
        if name in PERCENTILES:
            return percentile_call(name, arguments, distinct, self._scalar.bind, keep)
        if name == PROVENANCE:
            return provenance_call(arguments, distinct, isinstance(node, exp.Filter))
        ring = aggregate_over(name)
        if ring is not None:
            if distinct:
                raise Refusal(f"{name} of DISTINCT values", "aggregate over SELECT DISTINCT in FROM")
            return filtered(call_of_ring(ring, [self._scalar.bind(argument) for argument in arguments]), keep)
        if name in ("count", "count_distinct"):
            return self._count(arguments, distinct or name == "count_distinct", keep)
        if name in BY:
            if len(arguments) != 2:
                raise Fault(f"{name} takes 2 arguments (a value and the value to order by), not {len(arguments)}")
            value, by = (self._typed(self._scalar.bind(argument)) for argument in arguments)
            return AggregateCall(name, (value, keep(by)), False, value.type)
        if len(arguments) != 1:
            raise Fault(f"{name} takes 1 argument, not {len(arguments)}")
        argument = self._scalar.bind(arguments[0])
        if name == "bit_xor":
            if distinct:
                raise Refusal(f"{name} of DISTINCT values", "aggregate over SELECT DISTINCT in FROM")
            if argument.type != VOID and not argument.type.is_integer:
                raise Fault(f"{name} takes integers, not {argument.type}")
            call = filtered(call_of_ring(bit_xor(), [argument]), keep)
            return replace(call, type=INT if argument.type == VOID else argument.type)
        if name == "only_value":
            value = self._typed(argument)
            return AggregateCall("min_by", (value, keep(Literal(1, INT))), False, value.type)
        if name == "count_if":
            if distinct:
                raise Fault("count_if takes no DISTINCT")
            return self._counting(_flag(argument, name), keep)
        if name == "try_avg":
            # The sum of a BIGINT may not fit 64 bits.
            name, argument = "avg", cast(argument, DOUBLE) if argument.type == BIGINT else argument
        return _over_one(name, argument, distinct, keep)

    def _count(self, arguments: list[Node], distinct: bool, keep: Callable[[Expr], Expr]) -> AggregateCall:
        if not arguments:
            raise Fault("count takes * or at least 1 argument")
        if not distinct and arguments == [exp.Star()]:
            bound: list[Expr] = [Literal(1, INT)]
        else:
            # COUNT(t.*) and COUNT(*, x) count the rows where no column of the star is NULL.
            columns: dict[object, Expr] = {}
            for argument in arguments:
                if self._star is not None and is_star(argument):
                    columns.update((key(one), one) for one in self._star(argument))
                else:
                    columns[len(columns)] = self._typed(self._scalar.bind(argument))
            bound = list(columns.values())
            if not bound:
                raise Fault("count takes * or at least 1 argument")
        return filtered(AggregateCall("count", tuple(bound), distinct, BIGINT), keep)

    def _counting(self, test: Expr, keep: Callable[[Expr], Expr]) -> AggregateCall:
        taken = logic.choose([(test, Literal(1, INT))], null(VOID))
        return filtered(AggregateCall("count", (taken,), False, BIGINT), keep)

    def _typed(self, argument: Expr) -> Expr:
        return null(INT) if argument.type == VOID else argument


def of_no_rows(value: Expr, calls: Sequence[AggregateCall]) -> Expr:
    """The value of an aggregate expression over no rows: COUNT is 0, every other aggregate NULL."""

    def zero(part: Expr) -> Expr | None:
        index = aggregate_index(part.name) if isinstance(part, Column) else None
        return integer(0) if index is not None and calls[index].function == "count" else None

    return where_null(replaced(value, zero), lambda name: not name.startswith(OUTER))


def columns_outside(node: Node) -> Iterator[exp.Column]:
    """The columns in an expression, left to right, except those in aggregate calls and in subqueries."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Column):
            if not is_unit(one):
                yield one
        elif not isinstance(one, (exp.Filter, exp.Query)) and not is_aggregate(one):
            waiting += reversed(list(one.iter_expressions()))


def is_aggregate(node: Node) -> bool:
    return isinstance(node, exp.Anonymous) and (node.name.lower() in GROUPINGS or is_aggregate_name(node.name.lower()))


def _flag(argument: Expr, name: str) -> Expr:
    """The argument of an aggregate of flags; a text is cast to BOOLEAN."""
    return cast(argument, BOOLEAN) if argument.type == STRING else logic.condition(argument, name)


def _over_one(name: str, argument: Expr, distinct: bool, keep: Callable[[Expr], Expr]) -> AggregateCall:
    function = _LOGICAL.get(name, name)
    if name in _LOGICAL:
        argument = _flag(argument, name)
    if argument.type == VOID:
        argument = null(BOOLEAN if name in _LOGICAL else DOUBLE if name in ("sum", "avg") else INT)
    if name in FOLDED and not argument.type.is_integer:
        raise Fault(f"{name} takes integers, not {argument.type}")
    if function in SCANNED:
        # DISTINCT does not change these aggregates.
        return AggregateCall(function, (keep(argument),), False, argument.type)
    result = coerce.total_of(argument.type) if function == "sum" else coerce.mean_of(argument.type)
    if result is None:
        raise Fault(f"{name} takes numbers, not {argument.type}")
    if argument.type == STRING:
        argument = cast(argument, DOUBLE)
    return AggregateCall(function, (keep(argument),), distinct, result)


def is_matrix(node: Node) -> bool:
    """True if an item of a SELECT list returns several columns."""
    call = node.this if isinstance(node, exp.Alias) else node
    call = call.this if isinstance(call, exp.Filter) else call
    if not isinstance(call, exp.Anonymous):
        return False
    ring = aggregate_over(call.name)
    return call.name.lower() in MATRICES or (ring is not None and not ring.is_single)


def filtered(call: AggregateCall, keep: Callable[[Expr], Expr]) -> AggregateCall:
    """The call over the rows that pass FILTER."""
    args = tuple(map(keep, call.args))
    if call.function == "count" and not call.distinct:
        # An argument that is never NULL needs no test; COUNT(1) and COUNT(*) are one aggregate.
        args = tuple(arg for arg in args if arg.nullable)
    return replace(call, args=args)


def _function_name(node: Node) -> str:
    return (node.this if isinstance(node, exp.Filter) else node).name.lower()


def _as_is(argument: Expr) -> Expr:
    return argument


def _only_where(test: Expr) -> Callable[[Expr], Expr]:
    return lambda argument: logic.choose([(test, argument)], null(argument.type))


def _identity(call: AggregateCall) -> tuple[object, ...]:
    kinds = tuple(arg.type for arg in call.args) if call.function != "count" else ()
    amount = () if call.amount is None else key(call.amount)
    return (call.function, call.entry, call.ring, call.gathering, call.distinct, amount, kinds, *map(key, call.args))
