"""Binds the aggregates that return one text for all rows of a group: STRING_AGG, LISTAGG, GROUP_CONCAT, PROVENANCE."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from freshviews.expr.nodes import Expr, Literal
from freshviews.query.block import GatheredColumn, Gathering
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.blocks.joins.tree import Joined
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, key, null
from freshviews.sql.expressions.cast import cast
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BINARY, BOOLEAN, INT, STRING, SqlType

JOINING = {"string_agg": "", "listagg": "", "group_concat": ","}
"""Aggregates that join texts, and their default separators."""
PROVENANCE = "provenance"
EMPTY = "[]"
"""The provenance of no rows."""
TIMES = "times"
"""The member of a JSON object that holds the multiplicity."""


@dataclass(frozen=True)
class _Written:
    """A call of STRING_AGG as written."""

    arguments: tuple[Node, ...]
    distinct: bool
    order: tuple[exp.Ordered, ...]


def joined_texts(node: Node, bind: Callable[[Node], Expr], keep: Callable[[Expr], Expr]) -> AggregateCall:
    """The call of STRING_AGG, LISTAGG or GROUP_CONCAT. ``keep``: applies FILTER to an argument. Raises Fault.

    ``STRING_AGG(x, sep ORDER BY y)`` becomes an ``AggregateCall`` over y and x with a ``Gathering``. The rows of a
    group are ordered by y, then by x. If x is NULL in a row, or FILTER drops the row, all arguments are NULL.
    PROVENANCE has no arguments in SQL. Its ``AggregateCall`` has the columns that identify a row of each source of
    FROM.
    """
    name = node.name.lower()
    written = _written(node)
    if not 1 <= len(written.arguments) <= 2:
        raise Fault(f"{name} takes 1 or 2 arguments (the value and the separator), not {len(written.arguments)}")
    value = keep(_typed(bind(written.arguments[0])))
    separator = _separator(name, value.type, [bind(one) for one in written.arguments[1:]])
    test = call("is_not_null", (value,), BOOLEAN)
    keys: list[tuple[Expr, bool, bool]] = []
    for one in written.order:
        made = _typed(keep(bind(one.this)))
        if written.distinct and key(made) != key(value):
            raise Refusal(
                f"{name} of DISTINCT values in the order of {one.this.sql(dialect='spark')}",
                "order by the value itself, or leave out DISTINCT or ORDER BY",
            )
        if isinstance(made, Literal):
            continue
        if value.nullable and key(made) != key(value):
            made = logic.choose([(test, made)], null(made.type))
        keys.append((made, bool(one.args.get("desc")), not one.args.get("nulls_first")))
    kind = BINARY if value.type == BINARY else STRING
    if not written.order and value.type != kind:
        keys.append((value, False, False))
    columns = (*(GatheredColumn(made.type, down, last) for made, down, last in keys), GatheredColumn(kind))
    args = (*(made for made, _, _ in keys), cast(value, kind))
    return AggregateCall(
        "string_agg", args, False, kind, gathering=Gathering(columns, separator, distinct=written.distinct)
    )


def provenance_call(arguments: Sequence[Node], distinct: bool, filtered: bool) -> AggregateCall:
    """The call of PROVENANCE, without its sources. Raises Fault."""
    if arguments:
        raise Fault(f"{PROVENANCE} takes no arguments; it covers all tables in FROM")
    if distinct or filtered:
        raise Refusal(f"{PROVENANCE} with {'DISTINCT' if distinct else 'FILTER'}", "select the rows by WHERE")
    return AggregateCall(PROVENANCE, (), False, STRING, gathering=Gathering(()))


def or_empty(value: Expr) -> Expr:
    """The provenance of a group, with an empty list in place of NULL."""
    return logic.first_of((value, Literal(EMPTY, STRING)))


def with_provenance(
    calls: Sequence[AggregateCall], joined: Joined, views: Views, text: SqlText, select: exp.Select
) -> tuple[AggregateCall, ...]:
    """The aggregate calls of a SELECT, with the columns that identify rows of the sources as arguments of PROVENANCE.

    Raises UnsupportedSql if a row of the join is not made of exactly one row of each table.
    """
    if not any(one.function == PROVENANCE for one in calls):
        return tuple(calls)
    node = next(one for one in select.find_all(exp.Anonymous) if one.name.lower() == PROVENANCE)
    _check_join(joined, text, node)
    args: list[Expr] = []
    relations: list[tuple[str, int]] = []
    for source in joined.sources:
        columns = {column.name: column for column in source.columns}
        own = [source.column(columns[name]) for name in views.identity_of(source)]
        args += own
        relations.append((source.alias, len(own)))
    gathering = Gathering(tuple(GatheredColumn(one.type) for one in args), relations=tuple(relations))
    made = AggregateCall(PROVENANCE, tuple(args), False, STRING, gathering=gathering)
    return tuple(made if one.function == PROVENANCE else one for one in calls)


def _check_join(joined: Joined, text: SqlText, node: Node) -> None:
    if joined.optional:
        names = ", ".join(one.alias for one in joined.optional)
        instead = "make a materialized view of the outer join, and select from this view"
        raise text.unsupported(node, f"PROVENANCE() of an outer join, which may lack a row of {names},", instead)
    if joined.absent:
        instead = "make a materialized view of the remaining rows, and select from this view"
        raise text.unsupported(node, "PROVENANCE() of rows chosen by NOT EXISTS, NOT IN or an anti-join", instead)
    for source in joined.sources:
        if "#" in source.relation:
            what = f"PROVENANCE() of {source.alias}, a subquery or view that is more than a join of tables,"
            raise text.unsupported(node, what, f"make a materialized view of {source.alias}, and select from this view")
        if source.alias.lower() == TIMES:
            raise text.error(
                node, f"{TIMES} is the name of the multiplicity in PROVENANCE(); give the table another alias"
            )


def _written(node: Node) -> _Written:
    """The arguments of a call, DISTINCT and ORDER BY, which sqlglot wraps around the first and the last argument."""
    arguments = list(node.expressions)
    order: tuple[exp.Ordered, ...] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        order = tuple(arguments[-1].expressions)
        arguments[-1] = arguments[-1].this
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    # In (x ORDER BY y, ', ') the comma is read as part of ORDER BY.
    late = len(arguments) == 1 and any(isinstance(one.this, exp.Literal) and one.this.is_string for one in order)
    if late or any(isinstance(one, exp.Order) for one in arguments):
        raise Fault(f"ORDER BY must follow the separator in {node.name.lower()}: (value, ', ' ORDER BY column)")
    return _Written(tuple(arguments), distinct, order)


def _separator(name: str, of: SqlType, given: Sequence[Expr]) -> str:
    if not given:
        return JOINING[name]
    (separator,) = given
    if not isinstance(separator, Literal) or separator.type not in (BINARY if of == BINARY else STRING, VOID):
        what, example = ("BINARY", "X'2C'") if of == BINARY else ("a string in quotes", "', '")
        raise Fault(f"the separator of {name} must be {what}, as in {name}(x, {example})")
    return "" if separator.value is None else str(separator.value)


def _typed(value: Expr) -> Expr:
    return null(INT) if value.type == VOID else value
