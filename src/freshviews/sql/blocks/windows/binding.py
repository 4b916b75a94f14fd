"""Window functions as written: their arguments, partitions, orders and frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from freshviews.expr.nodes import Expr, Literal
from freshviews.query.block import counts_values
from freshviews.sql.blocks.aggregates import Collector
from freshviews.sql.blocks.bound import (
    AggregateCall,
    Sort,
)
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, null
from freshviews.sql.expressions.expression import WITHIN_GROUP, Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import is_aggregate_name
from freshviews.types import INT, SqlType

_RANKS = ("rank", "dense_rank", "row_number")
_INSTEAD = (
    "RANK, DENSE_RANK, ROW_NUMBER, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE and aggregates are accepted, the last "
    "over the whole partition, up to the current row, or over ROWS BETWEEN ... that contain it"
)
_SHIFTS = {"lag": -1, "lead": 1}
_ENDS = ("first_value", "last_value", "nth_value")
_ENDS_TOO = {"any_value": "first_value", "first": "first_value", "last": "last_value"}
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class Window:
    """A window function.

    ``rank``: one of RANK, DENSE_RANK and ROW_NUMBER. Otherwise ``value`` is an expression over references to ``calls``,
    or a value of the row ``shift`` rows after the current one, or of row ``place`` of the partition, from its end if
    negative. ``order``: empty if it is over the whole partition. ``frame``: the rows of ROWS BETWEEN, relative to the
    current one; None for no bound. ``skips``: rows where ``value`` is NULL are not counted. ``so_far``: ``value``
    counts from its row on, and in the rows that are equal to it in the order.
    """

    node: Node
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    rank: str
    value: Expr
    calls: tuple[AggregateCall, ...]
    frame: tuple[int | None, int | None] | None = None
    shift: int | None = None
    place: int = 0
    default: Expr | None = None
    skips: bool = False
    so_far: bool = False

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
    if isinstance(inner, exp.WithinGroup):
        raise text.unsupported(node, f"{inner.this.name.upper()}(...) WITHIN GROUP ... OVER", WITHIN_GROUP)
    name = _function_of(node, spec)
    if name in _SHIFTS:
        return _shifted(text, node, bind, partition, order)
    if name in _ENDS:
        return _at_place(text, node, bind, partition, order)
    if name in _RANKS:
        if inner.expressions:
            raise text.error(node, f"{name.upper()} takes no arguments")
        if not order:
            raise text.error(node, f"{name.upper()} needs an order; write OVER (ORDER BY ...)")
        _refuse_frame(text, node, spec)
        return Window(node, partition, order, name, Literal(1, INT), ())
    whole, frame = _frame(text, spec, bool(order))
    is_known = isinstance(inner, exp.Anonymous) and is_aggregate_name(inner.name.lower())
    if not is_known or any(isinstance(one, exp.Distinct) for one in inner.expressions):
        distinct = " (DISTINCT ...)" if is_known else ""
        raise text.unsupported(node, f"{inner.name.upper()}{distinct} OVER", _INSTEAD)
    collector = Collector(Binder(text, _unnamed, "OVER", group=bind), bool(partition or order), _ungrouped)
    value = collector.bind(node.this)
    if order and any(one.gathering is not None or counts_values(one.function) for one in collector.calls):
        what = f"{inner.name.upper()} OVER (... ORDER BY ...)"
        raise text.unsupported(node, what, "OVER (PARTITION BY ...) is accepted, and ORDER BY inside the aggregate")
    return Window(node, partition, () if whole else order, "", value, tuple(collector.calls), frame)


def _shifted(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """LAG or LEAD."""
    name = node.this.name.lower()
    arguments = _arguments(text, node, 1, 3)
    _refuse_frame(text, node, _spec(text, node))
    steps = _number_of_rows(text, node, arguments[1], bind, -_LAST) if len(arguments) > 1 else 1
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
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE: the value of one row of the partition."""
    spec = _spec(text, node)
    name, written = _function_of(node, spec), node.this.name.upper()
    count = 2 if name == "nth_value" else 1
    arguments = _arguments(text, node, count, count + 1)
    skips = len(arguments) > count and bool(arguments[-1].this)
    if len(arguments) > count and not isinstance(arguments[-1], exp.Boolean):
        what = f"argument {count + 1} of {written} must be TRUE to ignore NULL, or FALSE"
        raise text.error(arguments[-1], what)
    frame = spec.args.get("spec")
    low, high = (_FIRST, 0) if frame is None else (_bound(frame, "start"), _bound(frame, "end"))
    so_far = skips and high == 0 and name == "first_value" and (frame is None or _kind(frame) == "RANGE")
    known = high == _LAST or so_far or (name == "first_value" and not skips and high is not None and high >= 0)
    if low != _FIRST or not known:
        what = f"{written} {'IGNORE NULLS ' if skips else ''}over "
        what += "a frame that ends at the current row" if frame is None else text.of(frame)
        raise text.unsupported(node, what, f"write ORDER BY ... {_WHOLE}")
    place = _number_of_rows(text, node, arguments[1], bind, 1) if name == "nth_value" else 1
    value = bind(arguments[0])
    place = -1 if name == "last_value" else place
    found = Window(node, partition, order, "", value, (), place=place, default=null(value.type))
    return replace(found, skips=skips, so_far=so_far)


def _function_of(node: exp.Window, spec: exp.Window) -> str:
    """The name of a function that is not an aggregate; empty for an aggregate. With an order of rows, FIRST, LAST and
    ANY_VALUE are functions of its ends."""
    if not isinstance(node.this, exp.Anonymous):
        return ""
    name = node.this.name.lower()
    name = name if spec.args.get("order") is None else _ENDS_TOO.get(name, name)
    return name if name in (*_RANKS, *_SHIFTS, *_ENDS) else ""


def _arguments(text: SqlText, node: exp.Window, least: int, most: int) -> list[Node]:
    """The arguments of a function over an order of rows."""
    name, arguments = node.this.name.upper(), node.this.expressions
    if not least <= len(arguments) <= most:
        raise text.error(node, f"{name} takes {least} to {most} arguments")
    if _spec(text, node).args.get("order") is None:
        raise text.error(node, f"{name} needs an order; write OVER (ORDER BY ...)")
    return list(arguments)


def _number_of_rows(text: SqlText, node: exp.Window, argument: Node, bind: Callable[[Node], Expr], least: int) -> int:
    value = bind(argument)
    number = value.value if isinstance(value, Literal) and value.type.is_integer else None
    if not isinstance(number, int) or not least <= number < _LAST:
        which = "1 or more" if least == 1 else "a constant"
        raise text.error(argument, f"the second argument of {node.this.name.upper()} must be a number of rows, {which}")
    return number


def _refuse_frame(text: SqlText, node: exp.Window, spec: exp.Window) -> None:
    """Raise UnsupportedSql for a frame of a function that takes none, except the default frame of ranks."""
    frame, name = spec.args.get("spec"), node.this.name.lower()
    if frame is None:
        return
    written = (_kind(frame), _bound(frame, "start"), _bound(frame, "end"))
    if name in _SHIFTS or written != ("ROWS", _FIRST, 0):
        raise text.unsupported(node, f"a frame of {name.upper()}", "leave it out")


def needs_all_columns(text: SqlText, node: exp.Window) -> bool:
    """True if a window function needs all columns of the rows, to distinguish them."""
    return _numbering(text, node) is not None or _function_of(node, _spec(text, node)) in _ENDS


def number_equal_rows(text: SqlText, windows: Sequence[exp.Window]) -> bool:
    """True if window functions number equal rows in different ways, which must agree on the same row."""
    return len({_numbering(text, one) for one in windows} - {None}) > 1


def _numbering(text: SqlText, node: exp.Window) -> Hashable:
    """The expressions that order the rows, for a function that numbers equal rows; None for another function."""
    spec = _spec(text, node)
    name = _function_of(node, spec)
    if name in _SHIFTS:
        return node
    frame = spec.args.get("spec")
    framed = frame is not None and _kind(frame) == "ROWS" and (_bound(frame, "start"), _bound(frame, "end")) != _EVERY
    if name != "row_number" and (name or not framed):
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
            raise text.unsupported(name, f"window {name.name} with further clauses", "write all clauses in one place")
        if name.name.lower() not in known:
            raise text.error(name, f"unknown window {name.name}; WINDOW {name.name} AS (...) defines it")
        found = known.pop(name.name.lower())
    excluded = found.args["spec"].args.get("exclude") if found.args.get("spec") is not None else None
    if excluded is not None:
        raise text.unsupported(excluded, f"EXCLUDE {excluded.name} in a frame", "leave it out")
    return found


def _frame(text: SqlText, spec: exp.Window, ordered: bool) -> tuple[bool, tuple[int | None, int | None] | None]:
    """True for all rows of the partition, and the bounds of ROWS BETWEEN; without either, all rows up to the current
    place."""
    frame = spec.args.get("spec")
    if frame is None:
        return not ordered, None
    low, high = _bound(frame, "start"), _bound(frame, "end")
    if (low, high) == _EVERY:
        return True, None
    if _kind(frame) == "RANGE" and (low, high) == (_FIRST, 0) and ordered:
        return False, None
    if _kind(frame) != "ROWS" or not ordered or low is None or high is None or not low <= 0 <= high:
        raise text.unsupported(spec, f"the frame {text.of(frame)}", _INSTEAD)
    return False, (None if low == _FIRST else low, None if high == _LAST else high)


_LAST = 2**31
_FIRST = -_LAST
_EVERY = (_FIRST, _LAST)


def _kind(frame: Node) -> str:
    """ROWS, RANGE or GROUPS."""
    return str(frame.args["kind"]).upper()


def _bound(frame: Node, which: str) -> int | None:
    """A bound of a frame as a number of rows after the current one; None for another bound."""
    value, side = frame.args.get(which), frame.args.get(f"{which}_side")
    if side is None:
        return 0 if value == "CURRENT ROW" or (value is None and which == "end") else None
    sign = -1 if side.upper() == "PRECEDING" else 1
    if value == "UNBOUNDED":
        return sign * _LAST
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        return None
    return sign * min(int(value.name), _LAST - 1)
