"""Window functions as they are written: their arguments, partitions, orders and frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.blocks.aggregates import Collector, is_aggregate
from freshviews.sql.blocks.bound import (
    AggregateCall,
    Sort,
)
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, null
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import INT, SqlType

_RANKS = ("rank", "dense_rank", "row_number")
_INSTEAD = (
    "RANK, DENSE_RANK, ROW_NUMBER, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE and aggregates are accepted, these "
    "over the whole partition, up to the current row, or over ROWS BETWEEN ... that contain it"
)
_SHIFTS = {"lag": -1, "lead": 1}
_ENDS = ("first_value", "last_value", "nth_value")
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class Window:
    """A window function.

    ``rank``: one of RANK, DENSE_RANK and ROW_NUMBER; else ``value`` is an expression over references to ``calls``, or,
    of the row ``shift`` rows after the current one, or of row number ``place`` of the partition. ``order``: empty where
    it is over the whole partition. ``frame``: the rows of ROWS BETWEEN, relative to the current one; None for no
    bound.
    """

    node: Node
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    rank: str
    value: Expr
    calls: tuple[AggregateCall, ...]
    frame: tuple[int | None, int | None] | None = None
    shift: int = 0
    place: int = 0
    default: Expr | None = None

    @property
    def type(self) -> SqlType:
        return self.value.type


def window_of(text: SqlText, node: exp.Window, bind: Callable[[Node], Expr]) -> Window:
    """Bind a window function. Raises SqlError or UnsupportedSql with the place."""
    spec = _spec(text, node)
    partition = tuple(map(bind, spec.args.get("partition_by") or ()))
    order = tuple(
        Sort(bind(one.this), bool(one.args.get("desc")), not one.args.get("nulls_first"))
        for one in (spec.args["order"].expressions if spec.args.get("order") is not None else ())
    )
    inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
    name = inner.name.lower()
    if name in _SHIFTS and isinstance(node.this, exp.Anonymous):
        return _shifted(text, node, bind, partition, order)
    if name in _ENDS and isinstance(node.this, exp.Anonymous):
        return _at_place(text, node, bind, partition, order)
    whole, frame = _frame(text, spec, bool(order))
    if name in _RANKS and isinstance(node.this, exp.Anonymous):
        if inner.expressions:
            raise text.error(node, f"{name.upper()} takes no arguments")
        if not order:
            raise text.error(node, f"{name.upper()} ranks rows by an order; write OVER (ORDER BY ...)")
        of = INT
        return Window(node, partition, order, name, Literal(1, of), ())
    if not is_aggregate(inner) or any(isinstance(one, exp.Distinct) for one in inner.expressions):
        distinct = " (DISTINCT ...)" if is_aggregate(inner) else ""
        raise text.unsupported(node, f"{inner.name.upper()}{distinct} OVER", _INSTEAD)
    collector = Collector(Binder(text, _unnamed, "OVER", group=bind), bool(partition or order), _ungrouped)
    value = collector.bind(node.this)
    if order and any(one.gathering is not None for one in collector.calls):
        what = f"{inner.name.upper()} OVER (... ORDER BY ...)"
        raise text.unsupported(node, what, "OVER (PARTITION BY ...) is accepted, and ORDER BY inside of the aggregate")
    return Window(node, partition, () if whole else order, "", value, tuple(collector.calls), frame)


def _shifted(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """LAG or LEAD."""
    name = node.this.name.lower()
    arguments = _arguments(text, node, 1, 3)
    if _spec(text, node).args.get("spec") is not None:
        raise text.unsupported(node, f"a frame of {name.upper()}", "leave it out")
    steps = _number_of_rows(text, node, arguments[1], bind) if len(arguments) > 1 else 1
    value = bind(arguments[0])
    default: Expr = null(value.type)
    if len(arguments) > 2:
        try:
            value, default, _ = logic.alike([value, bind(arguments[2])], name.upper())
        except Fault as fault:
            raise text.error(node, str(fault)) from None
    return Window(node, partition, order, "", value, (), shift=_SHIFTS[name] * steps, default=default)


def _at_place(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE: the value of one row of the partition, counted from its end for LAST_VALUE.
    """
    name = node.this.name.lower()
    arguments = _arguments(text, node, *((2, 2) if name == "nth_value" else (1, 1)))
    spec = _spec(text, node)
    frame = spec.args.get("spec")
    low, high = (_FIRST, 0) if frame is None else (_bound(frame, "start"), _bound(frame, "end"))
    if low != _FIRST or high is None or high < 0 or (high != _LAST and name != "first_value"):
        what = f"{name.upper()} over {'a frame that ends at the current row' if frame is None else text.of(frame)}"
        raise text.unsupported(node, what, f"write ORDER BY ... {_WHOLE}")
    place = _number_of_rows(text, node, arguments[1], bind) if name == "nth_value" else 1
    value = bind(arguments[0])
    made = Window(node, partition, order, "", value, (), place=place, default=null(value.type))
    return replace(made, place=-1) if name == "last_value" else made


def _arguments(text: SqlText, node: exp.Window, least: int, most: int) -> list[Node]:
    """The arguments of a function about an order of rows."""
    name, arguments = node.this.name.upper(), node.this.expressions
    if not least <= len(arguments) <= most:
        raise text.error(node, f"{name} takes {least if least == most else f'{least} to {most}'} arguments")
    if _spec(text, node).args.get("order") is None:
        raise text.error(node, f"{name} is about an order of rows; write OVER (ORDER BY ...)")
    return list(arguments)


def _number_of_rows(text: SqlText, node: exp.Window, argument: Node, bind: Callable[[Node], Expr]) -> int:
    value = bind(argument)
    if not isinstance(value, Literal) or not isinstance(value.value, int) or value.value < 1:
        raise text.error(argument, f"the second argument of {node.this.name.upper()} is a number of rows, 1 or more")
    return int(value.value)


def is_numbered(node: exp.Window) -> bool:
    """True if a window function needs the numbers of rows, and so all columns, which tell rows apart."""
    by_rows = any(one.args.get("kind") == "ROWS" for one in node.find_all(exp.WindowSpec)) or node.args.get("alias")
    return bool(by_rows) or node.this.name.lower() in ("row_number", *_SHIFTS, *_ENDS)


def _unnamed(column: exp.Column) -> Expr:
    raise AssertionError(column)


def _ungrouped(node: Node) -> Expr:
    raise AssertionError(node)


def _spec(text: SqlText, node: exp.Window) -> exp.Window:
    """The window that OVER describes or names."""
    name = node.args.get("alias")
    if name is None:
        return node
    select = node.parent_select
    known = (select.args.get("windows") or ()) if select is not None else ()
    found: exp.Window | None = next((one for one in known if one.this.name.lower() == name.name.lower()), None)
    if found is None:
        raise text.error(name, f"unknown window {name.name}; WINDOW {name.name} AS (...) defines it")
    return found


def _frame(text: SqlText, spec: exp.Window, ordered: bool) -> tuple[bool, tuple[int | None, int | None] | None]:
    """True for all rows of the partition, and the bounds of ROWS BETWEEN; without these, the rows up to the current one
    and those equal to it."""
    frame = spec.args.get("spec")
    if frame is None:
        return not ordered, None
    bounds = [_bound(frame, "start"), _bound(frame, "end")]
    if bounds == [_FIRST, _LAST]:
        return True, None
    if frame.args.get("kind") == "RANGE" and bounds == [_FIRST, 0] and ordered:
        return False, None
    low, high = bounds
    if frame.args.get("kind") != "ROWS" or not ordered or low is None or high is None or not low <= 0 <= high:
        raise text.unsupported(spec, f"the frame {text.of(frame)}", _INSTEAD)
    return False, (None if low == _FIRST else low, None if high == _LAST else high)


_LAST = 2**31
_FIRST = -_LAST


def _bound(frame: Node, which: str) -> int | None:
    """A bound of a frame as a number of rows after the current one; None if it is another one."""
    value, side = frame.args.get(which), frame.args.get(f"{which}_side")
    sign = -1 if side == "PRECEDING" else 1
    if value is None or value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        return sign * _LAST
    whole = isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
    return sign * min(int(value.name), _LAST - 1) if whole else None
