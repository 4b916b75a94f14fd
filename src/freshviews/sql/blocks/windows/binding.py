"""Binds calls of window functions: their arguments, partitions, orders and frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from sqlglot import exp

from freshviews.expr.nodes import Expr, Literal
from freshviews.query.block import Frame as Between
from freshviews.records import dataclass
from freshviews.sql.blocks.aggregates import Collector
from freshviews.sql.blocks.bound import (
    AggregateCall,
    Sort,
)
from freshviews.sql.expressions import arithmetic, logic
from freshviews.sql.expressions.build import Fault, null, retyped
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import WITHIN_GROUP, Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import is_aggregate_name
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, TIMESTAMP_LTZ, SqlType

_RANKS = ("rank", "dense_rank", "row_number", "ntile", "percent_rank", "cume_dist")
_INSTEAD = (
    "RANK, DENSE_RANK, ROW_NUMBER, NTILE, PERCENT_RANK, CUME_DIST, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE and "
    "aggregates are accepted"
)
_SHIFTS = {"lag": -1, "lead": 1}
_ENDS = ("first_value", "last_value", "nth_value")
_ENDS_TOO = {"first": "first_value", "last": "last_value"}
MOST_PAIRED = 10_000
"""Most rows of a frame whose rows are found by their places; rows of larger frames are found by their numbers."""


@dataclass(frozen=True)
class Step:
    """A bound of a RANGE frame: the value of ORDER BY plus ``sign`` times an amount, in the direction of the order."""

    sign: int
    amount: Expr


Bound = int | Step | None
"""A bound of a frame, relative to the current row: a number of rows, or 0 for the rows at its place; None for none."""


@dataclass(frozen=True)
class Frame:
    """The frame of a window: of ``rows``, or of values of ORDER BY."""

    rows: bool
    low: Bound
    high: Bound

    @property
    def has_current(self) -> bool:
        """True if the frame of every row contains the row."""
        return _sign(self.low) <= 0 <= _sign(self.high, 1)

    @property
    def between(self) -> Between | None:
        """The rows of a frame of ROWS with two bounds, up to MOST_PAIRED of them; None for another frame."""
        if not self.rows or not isinstance(self.low, int) or not isinstance(self.high, int):
            return None
        return Between(self.low, self.high) if self.high - self.low < MOST_PAIRED else None


def _sign(bound: Bound, without: int = -1) -> int:
    """-1, 0 or 1: the bound is before the current row, at it, or after it."""
    if isinstance(bound, Step):
        return bound.sign
    return without if bound is None else (bound > 0) - (bound < 0)


@dataclass(frozen=True)
class Window:
    """A window function.

    ``rank``: one of the functions that number rows, NTILE into ``place`` parts. Otherwise ``value`` is an expression
    over references to ``calls``, or a value of the row ``shift`` rows after the current one, or of row ``place`` of
    the frame, from its end if negative. ``frame``: None for the whole partition. ``skips``: rows where ``value`` is
    NULL are not counted. ``joins_in_order``: STRING_AGG joins the texts in the order of the window.
    """

    node: Node
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    rank: str
    value: Expr
    calls: tuple[AggregateCall, ...]
    frame: Frame | None = None
    shift: int | None = None
    place: int = 0
    default: Expr | None = None
    skips: bool = False
    joins_in_order: bool = False

    @property
    def type(self) -> SqlType:
        return {"percent_rank": DOUBLE, "cume_dist": DOUBLE}.get(self.rank, self.value.type)


def window_of(text: SqlText, node: exp.Window, bind: Callable[[Node], Expr]) -> Window:
    """Bind a window function. Raises SqlError or UnsupportedSql with the place."""
    spec = _spec(text, node)
    partition = tuple(map(bind, spec.args.get("partition_by") or ()))
    order = tuple(
        Sort(bind(one.this), bool(one.args.get("desc")), not one.args.get("nulls_first"))
        for one in (spec.args["order"].expressions if spec.args.get("order") is not None else ())
    )
    inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
    if isinstance(inner, exp.WithinGroup):
        raise text.unsupported(node, f"{inner.this.name.upper()}(...) WITHIN GROUP ... OVER", WITHIN_GROUP)
    name = _function_of(node, spec)
    if name in _SHIFTS:
        return _shifted(text, node, bind, partition, order)
    if name in _ENDS:
        return _at_place(text, node, bind, partition, order)
    if name in _RANKS:
        return _ranked(text, node, bind, partition, order)
    frame, order = _frame(text, spec, bind, order)
    if not isinstance(inner, exp.Anonymous) or not is_aggregate_name(inner.name.lower()):
        raise text.unsupported(node, f"{inner.name.upper()} OVER", _INSTEAD)
    collector = Collector(Binder(text, _unnamed, "OVER", group=bind), bool(partition or order), _ungrouped)
    value = collector.bind(node.this)
    in_order = frame is not None and inner.find(exp.Order) is None
    return Window(node, partition, order, "", value, tuple(collector.calls), frame, joins_in_order=in_order)


def _ranked(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """A function that numbers rows or places."""
    name, arguments = node.this.name.lower(), node.this.expressions
    if not order:
        raise text.error(node, f"{name.upper()} needs an order; write OVER (ORDER BY ...)")
    _refuse_frame(text, node, _spec(text, node))
    if name != "ntile" and arguments:
        raise text.error(node, f"{name.upper()} takes no arguments")
    tiles = 1
    if name == "ntile" and arguments:
        _arguments(text, node, 0, 1)
        tiles = _number_of_rows(text, node, arguments[0], bind, 1, "argument")
    return Window(node, partition, order, name, Literal(1, INT), (), place=tiles)


def _shifted(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """LAG or LEAD."""
    name = node.this.name.lower()
    arguments = _arguments(text, node, 1, 4)
    if not order:
        raise text.error(node, f"{name.upper()} needs an order; write OVER (ORDER BY ...)")
    _refuse_frame(text, node, _spec(text, node))
    skips = len(arguments) > 3 and _ignores_nulls(text, node, arguments[3], 4)
    steps = _number_of_rows(text, node, arguments[1], bind, -_LAST) if len(arguments) > 1 else 1
    value = bind(arguments[0])
    default: Expr = null(value.type)
    if len(arguments) > 2:
        try:
            value, default, _ = logic.alike([value, bind(arguments[2])], name.upper())
        except Fault as fault:
            raise text.error(node, str(fault)) from None
    shift = _SHIFTS[name] * steps
    return Window(node, partition, order, "", value, (), shift=shift, default=default, skips=skips)


def _at_place(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE: the value of one row of the frame."""
    spec = _spec(text, node)
    name = _function_of(node, spec)
    count = 2 if name == "nth_value" else 1
    arguments = _arguments(text, node, count, count + 1)
    skips = len(arguments) > count and _ignores_nulls(text, node, arguments[count], count + 1)
    place = _number_of_rows(text, node, arguments[1], bind, 1) if name == "nth_value" else 1
    value = bind(arguments[0])
    frame, order = _frame(text, spec, bind, order)
    place = -1 if name == "last_value" else place
    return Window(node, partition, order, "", value, (), frame, place=place, default=null(value.type), skips=skips)


def _ignores_nulls(text: SqlText, node: exp.Window, argument: Node, number: int) -> bool:
    """The last argument of a function that may ignore NULL."""
    if not isinstance(argument, exp.Boolean):
        what = f"argument {number} of {node.this.name.upper()} must be TRUE to ignore NULL, or FALSE"
        raise text.error(argument, what)
    return bool(argument.this)


def _function_of(node: exp.Window, spec: exp.Window) -> str:
    """The name of a function that is not an aggregate; empty for an aggregate. FIRST and LAST are functions of the ends
    of an order of rows; so is ANY_VALUE if the window has one."""
    if not isinstance(node.this, exp.Anonymous):
        return ""
    name = node.this.name.lower()
    name = "first" if name == "any_value" and spec.args.get("order") is not None else name
    name = _ENDS_TOO.get(name, name)
    return name if name in (*_RANKS, *_SHIFTS, *_ENDS) else ""


def _arguments(text: SqlText, node: exp.Window, least: int, most: int) -> list[Node]:
    """The arguments of a function over an order of rows."""
    name, arguments = node.this.name.upper(), node.this.expressions
    if not least <= len(arguments) <= most:
        raise text.error(node, f"{name} takes {least} to {most} arguments")
    return list(arguments)


def _number_of_rows(
    text: SqlText,
    node: exp.Window,
    argument: Node,
    bind: Callable[[Node], Expr],
    least: int,
    which: str = "second argument",
) -> int:
    value = bind(argument)
    number = value.value if isinstance(value, Literal) and value.type.is_integer else None
    if not isinstance(number, int) or not least <= number < _LAST:
        what = f"the {which} of {node.this.name.upper()} must be a number of {'rows' if ' ' in which else 'parts'}"
        raise text.error(argument, f"{what}, {'1 or more' if least == 1 else 'a constant'}")
    return number


def _refuse_frame(text: SqlText, node: exp.Window, spec: exp.Window) -> None:
    """Raise UnsupportedSql for a frame of a function that takes none, except the default frame of ranks."""
    frame, name = spec.args.get("spec"), node.this.name.lower()
    if frame is None:
        return
    of_rows = _kind(frame) == "ROWS" and frame.args.get("end_side") is None
    if name in _SHIFTS or not of_rows or not _is_unbounded(frame, "start", "PRECEDING"):
        raise text.unsupported(node, f"a frame of {name.upper()}", "leave it out")


def needs_all_columns(text: SqlText, node: exp.Window) -> bool:
    """True if a window function needs all columns of the rows, to distinguish them."""
    return _numbering(text, node) is not None or _function_of(node, _spec(text, node)) in _ENDS


def number_equal_rows(text: SqlText, windows: Sequence[exp.Window]) -> bool:
    """True if window functions number equal rows in different ways, which must agree on the same row, or if a frame is
    bounded by numbers of rows, which must differ."""
    return len({_numbering(text, one) for one in windows} - {None}) > 1 or any(_counts_rows(text, w) for w in windows)


def _counts_rows(text: SqlText, node: exp.Window) -> bool:
    """True for a frame of ROWS with a bound, and for a neighbour among the rows that are not NULL."""
    spec = _spec(text, node)
    frame, name = spec.args.get("spec"), _function_of(node, spec)
    if name in _SHIFTS:
        return len(node.this.expressions) > 3
    return name not in _RANKS and frame is not None and _kind(frame) == "ROWS" and not _is_whole(frame)


def _numbering(text: SqlText, node: exp.Window) -> Hashable:
    """The expressions that order the rows, for a function that numbers equal rows; None for another function."""
    spec = _spec(text, node)
    name = _function_of(node, spec)
    if name in _SHIFTS:
        return node
    frame = spec.args.get("spec")
    framed = frame is not None and _kind(frame) == "ROWS" and not _is_whole(frame)
    if name not in ("row_number", "ntile") and (name not in ("", *_ENDS) or not framed):
        return None
    return (*(spec.args.get("partition_by") or ()), spec.args.get("order"))


def _unnamed(column: exp.Column) -> Expr:
    raise AssertionError(column)


def _ungrouped(node: Node) -> Expr:
    raise AssertionError(node)


def _spec(text: SqlText, node: exp.Window) -> exp.Window:
    """The window that OVER describes or names. Raises SqlError for an unknown name."""
    select, found = node.parent_select, node
    known = {one.this.name.lower(): one for one in ((select.args.get("windows") or ()) if select is not None else ())}
    while (name := found.args.get("alias")) is not None:
        if any(found.args.get(part) for part in ("partition_by", "order", "spec")):
            raise text.unsupported(
                name,
                f"window {name.name} with clauses in both OVER and WINDOW",
                "write all clauses in OVER, or all in WINDOW",
            )
        if name.name.lower() not in known:
            raise text.error(name, f"unknown window {name.name}; write WINDOW {name.name} AS (...)")
        found = known.pop(name.name.lower())
    excluded = found.args["spec"].args.get("exclude") if found.args.get("spec") is not None else None
    if excluded is not None:
        raise text.unsupported(excluded, f"EXCLUDE {excluded.name} in a frame", "leave it out")
    return found


def _frame(
    text: SqlText, spec: exp.Window, bind: Callable[[Node], Expr], order: tuple[Sort, ...]
) -> tuple[Frame | None, tuple[Sort, ...]]:
    """The frame of a window, None for the whole partition, and its order: values that a bound is added to are words."""
    frame = spec.args.get("spec")
    if frame is None:
        return Frame(False, None, 0) if order else None, order
    if _is_whole(frame):
        return None, order
    kind = _kind(frame)
    if kind not in ("ROWS", "RANGE"):
        raise text.unsupported(frame, f"the frame {text.of(frame)}", "ROWS and RANGE are accepted")
    if kind == "RANGE" and not order:
        raise text.error(frame, "a frame of RANGE needs an order; write ORDER BY before it")
    words = tuple(replace(one, expr=retyped(one.expr, replace(one.expr.type, wide=False))) for one in order)
    low, high = (_bound(text, frame, which, kind == "ROWS", bind, words) for which in ("start", "end"))
    made = Frame(kind == "ROWS", low, high)
    backwards = made.rows and isinstance(low, int) and isinstance(high, int) and low > high
    if backwards or _sign(low) > _sign(high, 1) or _is_unbounded(frame, "start", "FOLLOWING"):
        raise text.error(frame, f"the frame {text.of(frame)} ends before it begins")
    if _is_unbounded(frame, "end", "PRECEDING"):
        raise text.error(frame, f"the frame {text.of(frame)} ends before it begins")
    return made, words if isinstance(low, Step) or isinstance(high, Step) else order


_LAST = 2**31
_WORST = _LAST - 1


def _kind(frame: Node) -> str:
    """ROWS, RANGE or GROUPS."""
    return str(frame.args["kind"]).upper()


def _is_unbounded(frame: Node, which: str, side: str) -> bool:
    """True for UNBOUNDED on one side."""
    value, given = frame.args.get(which), frame.args.get(f"{which}_side")
    return isinstance(value, str) and value.upper() == "UNBOUNDED" and str(given).upper() == side


def _is_whole(frame: Node) -> bool:
    """True for a frame without bounds."""
    return _is_unbounded(frame, "start", "PRECEDING") and _is_unbounded(frame, "end", "FOLLOWING")


def _bound(
    text: SqlText, frame: Node, which: str, rows: bool, bind: Callable[[Node], Expr], order: tuple[Sort, ...]
) -> Bound:
    """A bound of a frame."""
    value, side = frame.args.get(which), frame.args.get(f"{which}_side")
    if isinstance(value, str) or value is None:
        return None if side is not None else 0
    sign = -1 if str(side).upper() == "PRECEDING" else 1
    if rows:
        made = bind(value)
        number = made.value if isinstance(made, Literal) and made.type.is_integer else None
        if not isinstance(number, int):
            raise text.error(value, "a bound of ROWS must be a constant number of rows")
        return sign * max(min(number, _WORST), -_WORST)
    if len(order) != 1:
        raise text.error(value, "a frame of RANGE with a number or an interval needs one expression in ORDER BY")
    kind = order[0].expr.type

    def no_constant(column: exp.Column) -> Expr:
        raise text.error(column, f"a bound of RANGE must be a constant of 0 or more, not {text.of(value)}")

    amount = Binder(text, no_constant, "a frame").bind(value)
    try:
        if not amount.type.is_interval:
            amount = cast(amount, INT if kind == DATE else kind)
        unordered = kind.is_text or kind in (BOOLEAN, TIMESTAMP_LTZ)
        if unordered or (amount.type.is_interval != (kind == TIMESTAMP) and kind != DATE):
            raise Fault("")
        step = Step(sign, amount)
        if kind == DATE and moved_place(order[0].expr, step, False).type != kind:
            raise Fault("")
    except Fault:
        what = (
            f"{text.of(value)} cannot be added to {kind}; write RANGE with a constant number for a number, with an "
            "interval"
        )
        raise text.error(value, f"{what} for a TIMESTAMP, and with days or an interval of days for a DATE") from None
    return _checked(text, value, step)


def _checked(text: SqlText, value: Node, step: Step) -> Bound:
    """A bound of RANGE, which must be 0 or more; 0 is the place of the current row."""
    amount = step.amount
    size = _number(amount)
    if size is None or not 0 <= size < inf:
        raise text.error(value, f"a bound of RANGE must be a finite constant of 0 or more, not {text.of(value)}")
    return step if size else 0


def _number(amount: Expr) -> Any:
    return amount.value if isinstance(amount, Literal) else None


def moved_place(place: Expr, step: Step, descending: bool) -> Expr:
    """The value of ORDER BY at a bound of a frame, of the same type. Raises Fault."""
    moved, amount = arithmetic.subtract if (step.sign < 0) != descending else arithmetic.add, step.amount
    if place.type.is_decimal:
        # Of many digits, the sum of decimals would have another scale. A code is a number of units of the scale.
        assert isinstance(amount, Literal) and amount.type.scale == place.type.scale
        units = moved(retyped(place, BIGINT), Literal(amount.value, BIGINT))
        return retyped(units, place.type)
    made = moved(place, amount)
    return cast(made, place.type) if place.type.is_integer else made


def is_in_order(place: SqlType, step: Step) -> bool:
    """True if no greater place has a smaller bound. A TIMESTAMP plus months is at the end of a month for several days,
    with the time of each day."""
    return not (place == TIMESTAMP and step.amount.type.is_months)
