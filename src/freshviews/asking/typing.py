"""Infers the types of numbers in a SELECT by Spark's rules; sqlglot infers all other types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from freshviews.sql.expressions.coerce import (
    as_decimal,
    common,
    mean_of,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
    total_of,
)
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import LONGEST_NUMBER, Node
from freshviews.sql.text.typenames import NAMED
from freshviews.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal,
)

_KINDS = dict(NAMED)
_KINDS |= {"DATETIME": TIMESTAMP}
_NODES = {kind: exp.DType[name] for name, kind in reversed(NAMED.items())}


def kind_of(node: Node | None) -> SqlType | None:
    """The type of an annotated expression, or that a DataType names; None if unknown, and for NULL."""
    of = node if isinstance(node, exp.DataType) else None if node is None else node.type
    if of is None or not isinstance(of.this, exp.DType):
        return None
    if of.this == exp.DType.DECIMAL:
        digits = [int(one.name) for one in of.expressions if one.name.isdigit()]
        return decimal(digits[0] if digits else 10, digits[1] if len(digits) > 1 else 0)
    return _KINDS.get(of.this.value)


def as_node(kind: SqlType) -> exp.DataType:
    """The node of a type."""
    if kind.is_decimal:
        digits = [exp.DataTypeParam(this=exp.Literal.number(one)) for one in (kind.precision, kind.scale)]
        return exp.DataType(this=exp.DType.DECIMAL, expressions=digits)
    return exp.DataType(this=exp.DType.INTERVAL if kind.is_interval else _NODES[kind])


def is_void(node: Node | None) -> bool:
    """True for NULL without a type."""
    return node is not None and (node.type is not None and node.type.this == exp.DType.NULL)


def _written(node: Node) -> str:
    """The digits of a numeric constant with its sign; empty for other nodes."""
    sign, inner = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    return sign + str(inner.this) if isinstance(inner, exp.Literal) and not inner.is_string else ""


def literal_digits(node: Node) -> SqlType | None:
    """The DECIMAL of an integer constant, as wide as it is written."""
    while isinstance(node, exp.Paren):
        node = node.this
    inner = node.this
    if isinstance(node, exp.Cast) and isinstance(inner, exp.Literal) and kind_of(node.to) != TINYINT:
        start, end = node.meta.get(SPAN, (0, LONGEST_NUMBER))
        node = inner if end - start <= len(inner.name) + 1 else node  # as 1L
    digits = _written(node).removeprefix("-")
    return decimal(len(digits.lstrip("0") or "0"), 0) if digits.isdigit() else None


def _literal(annotator: Any, node: Node) -> Node:
    """A number with a point is a DECIMAL, one with an exponent a DOUBLE."""
    text = _written(node)
    digits = text.removeprefix("-")
    whole, point, fraction = digits.partition(".")
    if not text:
        return _set(annotator, node, STRING)
    if digits.isdigit():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return _set(annotator, node, INT)
        return _set(annotator, node, BIGINT if -(2**63) <= value < 2**63 else decimal(min(len(digits), 38), 0))
    if point and (whole + fraction).isdigit():
        return _set(annotator, node, decimal(min(max(len(whole.lstrip("0") + fraction), 1), 38), len(fraction)))
    return _set(annotator, node, DOUBLE)


def _negated(annotator: Any, node: Node) -> Node:
    return _literal(annotator, node) if _written(node) else _set(annotator, node, kind_of(node.this))


def operand_kinds(node: Node) -> tuple[SqlType, SqlType, SqlType] | None:
    """The types of the operands of + - * / % DIV as Spark reads them, and their common type; None if unknown."""
    sides = [node.this, node.args.get("expression")]
    kinds: list[Any] = [kind_of(one) for one in sides]
    for place in (0, 1):
        if kinds[place] is None and is_void(sides[place]):
            kinds[place] = kinds[1 - place]
    one, other = kinds
    if one is None or other is None:
        return None
    to = common(one, other)
    if STRING in (one, other) and to == STRING:
        to = DOUBLE
    if to is None or not to.is_numeric:
        return None
    if not to.is_decimal:
        return to, to, to
    exact = [literal_digits(side) or as_decimal(kind) for side, kind in zip(sides, kinds, strict=True)]
    return exact[0], exact[1], to


def _arithmetic(of_decimals: Callable[[SqlType, SqlType], SqlType]) -> Callable[[Any, Node], Node]:
    def annotate(annotator: Any, node: Node) -> Node:
        found = operand_kinds(node)
        if found is None:
            return _default(annotator, node)
        one, other, to = found
        if isinstance(node, exp.IntDiv):
            return _set(annotator, node, BIGINT)
        if to.is_decimal:
            return _set(annotator, node, of_decimals(one, other))
        return _set(annotator, node, DOUBLE if isinstance(node, exp.Div) and not to.is_float else to)

    return annotate


def _default(annotator: Any, node: Node) -> Node:
    spec: Any = Spark.EXPRESSION_METADATA.get(type(node)) or {}
    if "annotator" in spec:
        spec["annotator"](annotator, node)
    else:
        _mark(annotator, node, spec.get("returns"))
    return node


def _set(annotator: Any, node: Node, kind: SqlType | None) -> Node:
    if kind is None:
        return _default(annotator, node)
    return _mark(annotator, node, as_node(kind))


def _mark(annotator: Any, node: Node, kind: Any) -> Node:
    made: Node = annotator._set_type(node, kind)
    return made


def _of_argument(rule: Callable[[SqlType], SqlType | None]) -> Callable[[Any, Node], Node]:
    def annotate(annotator: Any, node: Node) -> Node:
        inner = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
        kind = kind_of(inner)
        return _set(annotator, node, rule(kind) if kind is not None else None)

    return annotate


def least_common(nodes: Iterable[Node | None]) -> SqlType | None:
    """The common type of several values; None if one is unknown or they have none."""
    kinds: list[SqlType | None] = []
    for one in nodes:
        kind = kind_of(one)
        if kind is None:
            if is_void(one):
                continue
            return None
        kinds.append(kind)

    def both(one: SqlType | None, other: SqlType | None) -> SqlType | None:
        return None if one is None or other is None else common(one, other)

    return reduce(both, kinds[1:], kinds[0]) if kinds else None


def results_of(node: Node) -> list[Node]:
    """The expressions one of which is the value of a conditional."""
    if isinstance(node, exp.Case):
        return [*(one.args["true"] for one in node.args["ifs"]), *filter(None, [node.args.get("default")])]
    if isinstance(node, exp.If):
        return [one for one in (node.args.get("true"), node.args.get("false")) if one is not None]
    return [node.this, *node.expressions]


def _widest(annotator: Any, node: Node) -> Node:
    return _set(annotator, node, least_common(results_of(node)))


def _rounded(annotator: Any, node: Node) -> Node:
    kind, places = kind_of(node.this), node.args.get("decimals")
    if kind is None or not kind.is_decimal:
        return _set(annotator, node, kind)
    text = "0" if places is None else places.sql()
    scale = int(text) if text.lstrip("-").isdigit() else kind.scale
    kept = min(max(scale, 0), kind.scale)
    whole = kind.precision - kind.scale + 1
    return _set(annotator, node, decimal(min(max(whole + kept, 1 - scale), 38), kept))


def _whole(annotator: Any, node: Node) -> Node:
    kind = kind_of(node.this)
    if kind is not None and kind.is_decimal:
        return _set(annotator, node, decimal(min(kind.precision - kind.scale + 1, 38), 0))
    return _set(annotator, node, BIGINT if kind is not None else None)


def _fixed(kind: SqlType) -> Callable[[Any, Node], Node]:
    return lambda annotator, node: _set(annotator, node, kind)


def _called(annotator: Any, node: Node) -> Node:
    if node.name == UNSIGNED:
        return _shifted(annotator, node)
    return _set(annotator, node, CALLED.get(node.name))


def _shifted(annotator: Any, node: Node) -> Node:
    """A shift of a BIGINT has 64 bits, any other one 32."""
    value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    return _set(annotator, node, BIGINT if kind_of(value) == BIGINT else INT)


CONTINUOUS, DISCRETE, WRITTEN = "quantile_cont", "quantile_disc", "written"
"""DuckDB's functions of percentiles, and the mark that has the name of the function that is written."""
UNSIGNED = "shiftrightunsigned"


def is_ordered(kind: SqlType) -> bool:
    """True for types of which APPROX_PERCENTILE returns a value."""
    return kind.name in ("DATE", "TIMESTAMP") or kind.is_numeric


def _statistic(annotator: Any, node: Node) -> Node:
    """MODE, and APPROX_PERCENTILE of what has an order, have the type of their values; other percentiles are DOUBLE."""
    value = node.expressions[0]
    kind = kind_of(value.this if isinstance(value, exp.Order) else value)
    approximate = node.meta.get(WRITTEN) in ("percentile_approx", "approx_percentile")
    keeps = node.name == "mode" or (approximate and kind is not None and is_ordered(kind))
    return _set(annotator, node, kind if keeps else DOUBLE)


def _extracted(annotator: Any, node: Node) -> Node:
    """A part of a moment is an INT; seconds have their fraction."""
    return _set(annotator, node, decimal(8, 6) if node.this.name.upper() in SECONDS else INT)


def _same(kind: SqlType) -> SqlType:
    return kind


DATES = (exp.TsOrDsAdd, exp.DateTrunc, exp.DateFromUnixDate, exp.LastDay, exp.NextDay, exp.AddMonths)
_ALWAYS: Mapping[type[Node], SqlType] = {
    **dict.fromkeys((exp.Length, exp.StrPosition, exp.Year, exp.Quarter, exp.Day, exp.DateDiff), INT),
    **dict.fromkeys((exp.Month, exp.Week, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Minute), INT),
    **dict.fromkeys((exp.Second, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Ascii), INT),
    **dict.fromkeys((exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv), BIGINT),
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Initcap), STRING),
    **dict.fromkeys((exp.Substring, exp.Left, exp.Right, exp.Repeat, exp.Reverse, exp.Pad), STRING),
    **dict.fromkeys((exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr), DOUBLE),
    **dict.fromkeys((exp.CovarPop, exp.CovarSamp, exp.PercentRank, exp.CumeDist, exp.Sqrt, exp.Exp, exp.Ln), DOUBLE),
    **dict.fromkeys((exp.Log, exp.Pow, exp.Cbrt, exp.Sign, exp.MonthsBetween), DOUBLE),
    **dict.fromkeys((exp.WeekOfYear, exp.RegexpCount, exp.UnixDate, exp.BitwiseCount), INT),
    **dict.fromkeys((exp.BitLength, exp.Levenshtein, exp.RegexpInstr), INT),
    **dict.fromkeys(DATES, DATE),
    **dict.fromkeys((exp.Dayname, exp.Monthname), STRING),
    exp.Grouping: TINYINT,
    exp.GroupingId: BIGINT,
    **dict.fromkeys((exp.RegrCount, exp.TimestampDiff), BIGINT),
    exp.SafeDivide: DOUBLE,
}

CALLED = {"strlen": INT, "weekday": INT, "substring_index": STRING, "regexp_substr": STRING}
"""The types of calls that are kept as written."""

SECONDS = ("SECOND", "SECONDS", "S", "SEC", "SECS")

_SAME = (
    *(exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last, exp.Abs, exp.Paren, exp.Nullif, exp.FirstValue),
    *(exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.ArgMax, exp.ArgMin),
)

_BY_RULE: Mapping[type[Node], Callable[[Any, Node], Node]] = {
    **dict.fromkeys((exp.Add, exp.Sub), _arithmetic(sum_of)),
    exp.Mul: _arithmetic(product_of),
    exp.Div: _arithmetic(quotient_of),
    exp.Mod: _arithmetic(remainder_of),
    exp.Sum: _of_argument(total_of),
    exp.Avg: _of_argument(mean_of),
    **dict.fromkeys(_SAME, _of_argument(_same)),
    **dict.fromkeys((exp.Coalesce, exp.Case, exp.If, exp.Greatest, exp.Least), _widest),
    exp.Round: _rounded,
    exp.Literal: _literal,
    exp.Anonymous: _called,
    exp.AnonymousAggFunc: _statistic,
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift), _shifted),
    exp.Extract: _extracted,
    exp.Neg: _negated,
    **dict.fromkeys((exp.Ceil, exp.Floor), _whole),
    **{node: _fixed(kind) for node, kind in _ALWAYS.items()},
}

METADATA: Any = {**Spark.EXPRESSION_METADATA, **{kind: {"annotator": rule} for kind, rule in _BY_RULE.items()}}
"""The function by which sqlglot gives each kind of node its type."""
