"""Rewrites a SELECT so that functions of local times read TIMESTAMP_LTZ in the time zone of the catalog.

DuckDB has a TIMESTAMP_LTZ, or *moment*, as a TIMESTAMP in UTC. ``expr.zones`` converts between moments and local times,
as in views. A function that would read a moment in UTC is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlglot import exp

from freshviews.asking.meaning import NotAnswered
from freshviews.asking.own_functions import call_of
from freshviews.asking.typing import as_node, is_void, kind_of, results_of
from freshviews.catalog.timezone import UTC
from freshviews.sql.text.parse import Node
from freshviews.types import BIGINT, DATE, STRING, TIMESTAMP, TIMESTAMP_LTZ, SqlType

_ZONES = "freshviews.expr.zones:"
COMPARED = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In),
    exp.Nullif,
)
CHOSEN = (exp.Coalesce, exp.Case, exp.If, exp.Greatest, exp.Least)
_KEPT = (
    *(exp.Alias, exp.Paren, exp.Query, exp.Subquery, exp.CTE, exp.Group, exp.Order, exp.Distinct),
    *(exp.Max, exp.Min, exp.Count, exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue),
    *(exp.ArgMax, exp.ArgMin, exp.Is, exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.AnonymousAggFunc),
    *(exp.ApproxDistinct, exp.Grouping, exp.GroupingId, exp.Rollup, exp.Cube, exp.GroupingSets, exp.WithinGroup),
)
"""Nodes that move values, or compare those of one column."""
_MOMENTS = (exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros)
_CALLED_MOMENTS = ("unix_timestamp", "to_unix_timestamp", "unix_micros")
"""Functions that read the moment, whatever the zone."""
_FROM_NUMBERS = (exp.UnixToTime, exp.UnixToStr)
_CALLED_WITH_NUMBERS = ("timestamp_seconds", "timestamp_millis", "timestamp_micros", "from_unixtime")
"""Functions whose result is a TIMESTAMP_LTZ, or a local time, in another zone than UTC."""
_LOCAL = (
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.DayOfWeek),
    *(exp.DayOfYear, exp.Hour, exp.Minute, exp.Second, exp.Extract, exp.Dayname, exp.Monthname, exp.LastDay),
    *(exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr, exp.NextDay, exp.AddMonths),
    *(exp.DateDiff, exp.TsOrDsAdd, exp.Concat, exp.ConcatWs, exp.DPipe),
)
"""Nodes that read the local time."""


def place_moments(tree: Node, zone: str, operations: dict[str, str]) -> None:
    """Convert the moments of a typed tree where it needs their local time. ``zone``: the time zone of the catalog. Adds
    the operations of conversions to ``operations``. Raises NotAnswered for functions that take no moment."""
    convert = _Conversion(zone, operations)
    for node in reversed(list(tree.walk())):
        _place(node, convert)


@dataclass(frozen=True)
class _Conversion:
    zone: str
    operations: dict[str, str]

    def local(self, moment: Node) -> Node:
        """The local time of a moment, a TIMESTAMP."""
        if self.zone == UTC:
            moment.type = as_node(TIMESTAMP)
            return moment
        return self._called("from_utc_timestamp", BIGINT, _micros(moment), TIMESTAMP)

    def moment(self, value: Node) -> Node:
        """The moment of a local time, a date, or a text."""
        kind = kind_of(value)
        if kind == TIMESTAMP_LTZ or is_void(value):
            return value
        if kind == STRING:
            return self._called("string_to_moment", STRING, value, TIMESTAMP_LTZ)
        if kind not in (DATE, TIMESTAMP):
            what = f"{kind or 'a value of unknown type'} as a TIMESTAMP_LTZ in a SELECT is not supported"
            raise NotAnswered(value, f"{what}; CAST it to TIMESTAMP first")
        local = exp.Cast(this=value, to=as_node(TIMESTAMP))
        if self.zone == UTC:
            local.type = as_node(TIMESTAMP_LTZ)
            return local
        return self._called("to_utc_timestamp", BIGINT, _micros(local), TIMESTAMP_LTZ)

    def _called(self, name: str, takes: SqlType, value: Node, to: SqlType) -> Node:
        values = [value, exp.Literal.string(self.zone)]
        micros = call_of(name, _ZONES + name, (takes, STRING), values, BIGINT, self.operations)
        made = exp.Anonymous(this="make_timestamp", expressions=[micros])
        made.type = as_node(to)
        return made


def _micros(value: Node) -> Node:
    return exp.Anonymous(this="epoch_us", expressions=[value])


def _place(node: Node, convert: _Conversion) -> None:
    if isinstance(node, exp.Cast):
        _cast(node, convert)
        return
    if isinstance(node, COMPARED):
        _compared(node, convert)
        return
    given = (one for one in node.iter_expressions() if not isinstance(one, exp.DataType))
    zoned = [one for one in given if kind_of(one) == TIMESTAMP_LTZ]
    if isinstance(node, CHOSEN):
        if isinstance(node, exp.Case) and any(one is node.this for one in zoned):
            raise _refused(node)
        if kind_of(node) == TIMESTAMP_LTZ:
            _replace(results_of(node), convert.moment)
    elif isinstance(node, _LOCAL):
        _replace(zoned, convert.local)
    elif isinstance(node, _MOMENTS) or _name(node) in _CALLED_MOMENTS:
        if convert.zone != UTC and any(kind_of(one) in (DATE, STRING) for one in node.iter_expressions()):
            what = f"a DATE or a text as a moment of the time zone {convert.zone}"
            raise NotAnswered(node, f"{what} is not supported in a SELECT; CAST it to TIMESTAMP_LTZ")
        for one in zoned:
            one.type = as_node(TIMESTAMP)
    elif convert.zone != UTC and (isinstance(node, _FROM_NUMBERS) or _name(node) in _CALLED_WITH_NUMBERS):
        what = f"a number as a moment of the time zone {convert.zone}"
        raise NotAnswered(node, f"{what} is not supported in a SELECT; compute it in a view")
    elif zoned and not keeps(node, TIMESTAMP_LTZ):
        raise _refused(node)


def _name(node: Node) -> str:
    """The name of a call that is kept as written."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else ""


def _refused(node: Node) -> NotAnswered:
    instead = "CAST it to TIMESTAMP, its local time, or compute it in a view"
    return NotAnswered(node, f"a TIMESTAMP_LTZ here is not supported in a SELECT; {instead}")


def keeps(node: Node, kind: SqlType) -> bool:
    """True if a node moves its values of a type, or compares them with each other."""
    if isinstance(node, exp.Lag | exp.Lead):
        default = node.args.get("default")
        return default is None or is_void(default) or {kind_of(node.this), kind_of(default)} == {kind}
    if isinstance(node, exp.Tuple):
        return isinstance(node.parent, exp.Group | exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple)
    if isinstance(node, exp.Ordered):
        around = node.parent.parent if node.parent is not None else None
        return not isinstance(around, exp.Window) or not _has_distance(around.args.get("spec"))
    return isinstance(node, _KEPT) or not isinstance(node, exp.Func | exp.Binary | exp.Unary)


def _has_distance(spec: Node | None) -> bool:
    """True for a frame of RANGE with a number or an interval."""
    if spec is None or spec.args.get("kind") != "RANGE":
        return False
    return any(isinstance(spec.args.get(bound), exp.Expr) for bound in ("start", "end"))


def _replace(nodes: Iterable[Node], convert: Callable[[Node], Node]) -> None:
    for one in list(nodes):
        holder = exp.Paren()
        one.replace(holder)
        made = convert(one)
        holder.type = made.type
        holder.set("this", made)


def _cast(node: exp.Cast, convert: _Conversion) -> None:
    to, kind = kind_of(node.args["to"]), kind_of(node.this)
    if to == TIMESTAMP_LTZ:
        if isinstance(node.this, exp.Placeholder):
            node.set("to", as_node(TIMESTAMP))
            return
        if isinstance(node, exp.TryCast) and kind == STRING:
            what = "TRY_CAST of a text to TIMESTAMP_LTZ is not supported in a SELECT"
            raise NotAnswered(node, f"{what}; compute it in a view")
        made = exp.Cast(this=node.this, to=as_node(TIMESTAMP)) if is_void(node.this) else convert.moment(node.this)
        made.type = as_node(TIMESTAMP_LTZ)
        node.replace(made)
    elif kind == TIMESTAMP_LTZ and to is not None:
        if to in (DATE, TIMESTAMP, STRING):
            _replace([node.this], convert.local)
        else:
            node.this.type = as_node(TIMESTAMP)


def _compared(node: Node, convert: _Conversion) -> None:
    query = node.args.get("query")
    sides = [one for one in node.iter_expressions() if one is not query and isinstance(one, exp.Expr)]
    kinds = [*map(kind_compared, sides), *([kind_compared(query)] if query is not None else [])]
    if TIMESTAMP_LTZ not in kinds:
        return
    if query is not None or any(isinstance(one, exp.Query | exp.Any | exp.All) for one in sides):
        if {*kinds} != {TIMESTAMP_LTZ}:
            raise NotAnswered(node, "a TIMESTAMP_LTZ and another type in a subquery are not compared; CAST one of them")
        return
    _replace((one for one, kind in zip(sides, kinds, strict=True) if kind != TIMESTAMP_LTZ), convert.moment)


def kind_compared(node: Node) -> SqlType | None:
    """The type of a side of a comparison: of a value, and of the one column of a subquery."""
    while isinstance(node, exp.Any | exp.All | exp.Subquery | exp.Paren) and kind_of(node) is None:
        node = node.this
    if isinstance(node, exp.Query) and len(node.selects) == 1:
        return kind_of(node.selects[0].unalias())
    return kind_of(node)
