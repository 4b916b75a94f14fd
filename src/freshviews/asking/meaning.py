"""Rewrites the typed tree of a SELECT so that DuckDB returns what Spark would return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from freshviews.asking.typing import (
    CALLED,
    DATES,
    SECONDS,
    UNSIGNED,
    WRITTEN,
    as_node,
    kind_of,
    least_common,
    operand_kinds,
    results_of,
)
from freshviews.sql.text.parse import Node
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, SqlType, decimal

DIVIDE, DIGITS, QUOTIENT, WHOLE, TO_INTEGER, PERHAPS_INTEGER, SECONDS_OF, NUMBER, POINT = (
    f"fv_{name}"
    for name in ("divide", "digits", "quotient", "whole", "to_integer", "perhaps_integer", "seconds", "number", "point")
)
TEXT, ABOVE_ZERO, START, LENGTH, TIMES, MILLISECONDS = (
    f"fv_{name}" for name in ("text", "above_zero", "start", "length", "times", "milliseconds")
)
LEFT, RIGHT, WRAPPED = (f"fv_{name}" for name in ("left", "right", "wrapped"))
LONGEST_TEXT = 1 << 20
"""Most characters that repeat, lpad, rpad and space make. DuckDB makes the texts of 2,048 rows before it looks at
limits of time and memory."""
_ZERO = "error('division by zero')"
_TOO_LONG = f"error('a text of more than {LONGEST_TEXT:,} characters is too long')"
_ONE = "CAST(1 AS HUGEINT)"
_INTEGER = "regexp_full_match(a, '\\s*[+-]?[0-9]+\\s*')"
_OTHER = "CAST(error(chr(39) || a || chr(39) || ' is not a whole number') AS VARCHAR)"
_PADDED = "lpad(CAST(abs(a) AS VARCHAR), CAST(greatest(length(CAST(abs(a) AS VARCHAR)), n + 1) AS INTEGER), '0')"
_HALF = "CASE WHEN b <> 0 AND 2 * abs(a % b) >= abs(b) THEN sign(a) * sign(b) ELSE 0 END"

_GUARDS = 8
"""Most terms before a term that decide whether it is computed."""
_FAILING = (DIVIDE, WHOLE, QUOTIENT, TO_INTEGER)

OWN = (
    f"{DIVIDE}(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN {_ZERO} ELSE a / b END",
    # The digits of a DECIMAL as an integer, with zeros behind them.
    f"{DIGITS}(a, zeros) AS CAST(replace(CAST(a AS VARCHAR), '.', '') || zeros AS HUGEINT)",
    f"{WHOLE}(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN {_ZERO} ELSE a // b END",
    f"{QUOTIENT}(a, b) AS {WHOLE}(a, b) + {_HALF}",
    f"{TO_INTEGER}(a) AS CASE WHEN {_INTEGER} THEN trim(a) ELSE CASE WHEN a IS NOT NULL THEN {_OTHER} END END",
    f"{PERHAPS_INTEGER}(a) AS CASE WHEN {_INTEGER} THEN trim(a) END",
    f"{SECONDS_OF}(a) AS CAST(floor(epoch_us(a) / 1000000) AS BIGINT)",
    f"{MILLISECONDS}(a) AS CAST(floor(epoch_us(a) / 1000) AS BIGINT)",
    # The text of an integer with a point before its last digits.
    f"{POINT}(a, n) AS CASE WHEN a < 0 THEN '-' ELSE '' END || left({_PADDED}, length({_PADDED}) - n) || '.' || "
    f"right({_PADDED}, n)",
    f"{NUMBER}(a) AS CASE WHEN NOT isnan(a) THEN a END",
    # The text of a DOUBLE.
    f"{TEXT}(a) AS CASE WHEN isnan(a) THEN 'NaN' WHEN isinf(a) THEN CASE WHEN a > 0 THEN 'Infinity' ELSE '-Infinity' "
    "END ELSE CAST(a AS VARCHAR) END",
    f"{ABOVE_ZERO}(a) AS CASE WHEN a > 0 THEN a END",
    f"{START}(a) AS CASE WHEN a = 0 THEN 1 ELSE a END",
    f"{LENGTH}(a) AS CASE WHEN a < 0 THEN 0 ELSE a END",
    # A whole number as one of w bits, and shifts of one by n bits, modulo w.
    f"{WRAPPED}(v, w) AS ((v + ({_ONE} << (w - 1))) % ({_ONE} << w) + ({_ONE} << w)) % ({_ONE} << w) "
    f"- ({_ONE} << (w - 1))",
    f"{LEFT}(a, n, w) AS {WRAPPED}(CAST(a AS HUGEINT) * ({_ONE} << (n & (w - 1))), w)",
    f"{RIGHT}(a, n, w) AS a >> (n & (w - 1))",
    f"fv_{UNSIGNED}(a, n, w) AS {WRAPPED}((CAST(a AS HUGEINT) + CASE WHEN a < 0 THEN {_ONE} << w ELSE 0 END) "
    ">> (n & (w - 1)), w)",
    f"{TIMES}(n, width) AS CASE WHEN CAST(n AS HUGEINT) * width > {LONGEST_TEXT} THEN {_TOO_LONG} ELSE n END",
)
"""Functions of DuckDB that the rewritten text calls."""


class NotAnswered(Exception):
    """An expression that DuckDB would compute otherwise: the node, and what is accepted."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node


def mend(tree: Node) -> None:
    """Rewrite a tree, from its leaves to its root."""
    for node in reversed(list(tree.walk())):
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(node)


def level(tree: Node) -> bool:
    """Cast the columns of set operations and of VALUES to their common types; True if any was cast."""
    changed = False
    for node in reversed(list(tree.find_all(exp.SetOperation, exp.Values))):
        if isinstance(node, exp.Values):
            rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
        else:
            rows = [one.selects for one in (node.this.unnest(), node.expression.unnest())]
        if len({len(row) for row in rows}) != 1:
            continue
        for column in zip(*rows, strict=True):
            values = [one.unalias() for one in column]
            to = least_common(values)
            for one in values:
                if to is not None and kind_of(one) not in (None, to):
                    _put_cast(one, to)
                    changed = True
    return changed


def _put_cast(node: Node, to: SqlType) -> None:
    made = exp.Cast(to=as_node(to))
    made.type = as_node(to)
    node.replace(made)
    made.set("this", node)


def cast(node: Node, to: SqlType) -> Node:
    """The node as a value of a type, itself if it is one."""
    if kind_of(node) == to:
        return node
    made = exp.Cast(this=node, to=as_node(to))
    made.type = as_node(to)
    _to_whole(made, kind_of(node))
    return made


def _cast_in_place(parent: Node, name: str, to: SqlType) -> None:
    node = parent.args[name]
    if kind_of(node) != to:
        parent.set(name, cast(node.copy() if node.parent is not parent else node, to))


def _wrapped(node: Node, to: SqlType) -> None:
    """Cast a call, together with its OVER, FILTER and WITHIN GROUP."""
    while isinstance(node.parent, exp.Filter | exp.Window | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if node.parent.this is not node:
            break
        node = node.parent
    _put_cast(node, to)


def _arithmetic(node: Node) -> None:
    found = operand_kinds(node)
    if found is None:
        _moved(node)
        return
    one, other, _ = found
    result = kind_of(node)
    if isinstance(node, exp.Div | exp.IntDiv):
        _divide(node, one, other, result)
        return
    _cast_in_place(node, "this", one)
    _cast_in_place(node, "expression", other)
    if result is not None and result.is_decimal:
        _wrapped(node, result)


def _divide(node: Node, one: SqlType, other: SqlType, result: SqlType | None) -> None:
    """/ and DIV; those of decimals are computed from their digits."""
    if result is None:
        return
    whole = isinstance(node, exp.IntDiv)
    left, right = node.this, node.args["expression"]
    if not (one.is_decimal and other.is_decimal):
        to = BIGINT if whole else DOUBLE
        made = _own(WHOLE if whole else DIVIDE, cast(left, to), cast(right, to))
        made.type = as_node(to)
        node.replace(made)
        return
    # Of a/10^i and b/10^j with k digits of the result: a * 10^(k - i + j) / b.
    up = (0 if whole else result.scale) - one.scale + other.scale
    sides = ((left, one, max(up, 0)), (right, other, max(-up, 0)))
    digits = (_own(DIGITS, cast(side, kind), exp.Literal.string("0" * zeros)) for side, kind, zeros in sides)
    made = _own(WHOLE if whole else QUOTIENT, *digits)
    if not whole:
        made = _own(POINT, made, exp.Literal.number(result.scale))
    final = exp.Cast(this=made, to=as_node(result))
    final.type = as_node(result)
    node.replace(final)


def _own(name: str, *arguments: Node) -> Node:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _moved(node: Node) -> None:
    """DATE + days is a DATE; a DATE and an INTERVAL of days or more is one, too."""
    kinds = [kind_of(node.this), kind_of(node.args.get("expression"))]
    if isinstance(node, exp.Sub) and not {*kinds} - {DATE, TIMESTAMP}:
        raise NotAnswered(node, "a difference of dates is an INTERVAL, which only a view computes; use datediff(a, b)")
    if DATE in kinds and isinstance(node, exp.Add | exp.Sub):
        interval = next((one for one in (node.this, node.expression) if isinstance(one, exp.Interval)), None)
        unit = "" if interval is None or interval.args.get("unit") is None else interval.args["unit"].name.upper()
        if interval is not None and unit.rstrip("S") in ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR"):
            _wrapped(node, DATE)


def _compared(node: Node) -> None:
    names = ["this", "low", "high"] if isinstance(node, exp.Between) else ["this", "expression"]
    sides = [node.args.get(name) for name in names]
    if any(one is None or isinstance(one, exp.Query | exp.Any | exp.All | exp.Tuple) for one in sides):
        return
    _to_common([(node, name) for name in names])


def _listed(node: Node) -> None:
    if node.args.get("query") is not None or not node.expressions or isinstance(node.this, exp.Tuple):
        return
    values = [node.this, *node.expressions]
    to = _needed(values)
    if to is not None:
        node.set("this", cast(node.this, to))
        node.set("expressions", [cast(one, to) for one in node.expressions])


def _to_common(places: list[tuple[Node, str]]) -> None:
    to = _needed([node.args[name] for node, name in places])
    if to is not None:
        for node, name in places:
            _cast_in_place(node, name, to)


def _needed(values: list[Node]) -> SqlType | None:
    """The type to which values are cast before DuckDB compares them; None if it compares them as Spark does."""
    kinds = {kind for kind in map(kind_of, values) if kind is not None}
    if len(kinds) < 2 or kinds.isdisjoint((STRING, FLOAT, BOOLEAN)):
        return None
    return least_common(values)


def _conditional(node: Node) -> None:
    to = kind_of(node)
    if to is None:
        return
    for one in results_of(node):
        if kind_of(one) not in (None, to):
            _put_cast(one, to)


def _total(node: Node) -> None:
    kind = kind_of(node)
    inner = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if kind_of(inner) == STRING:
        _put_cast(inner, DOUBLE)
    if kind is not None and not kind.is_float:
        _wrapped(node, kind)


def _as_kind(node: Node) -> None:
    """A call of which DuckDB's result has a wider type than Spark's."""
    kind = kind_of(node)
    if kind is not None:
        _wrapped(node, kind)


def _to_whole(node: Node, kind: SqlType | None) -> None:
    """CAST to an integer cuts the fraction off, and takes texts of digits alone; a TIMESTAMP is its seconds. A DOUBLE
    that is no number has Spark's text."""
    to = kind_of(node.args["to"])
    if to is None or kind is None:
        return
    if to == STRING and kind.is_float:
        node.set("this", _own(TEXT, node.this))
    if to == TIMESTAMP and kind.is_integer:
        node.set("this", _own("timestamp_seconds", node.this))
    if not to.is_integer:
        return
    if kind.is_float or (kind.is_decimal and kind.scale):
        node.set("this", _own("trunc", node.this))
    elif kind == STRING:
        node.set("this", _own(PERHAPS_INTEGER if isinstance(node, exp.TryCast) else TO_INTEGER, node.this))
    elif kind == TIMESTAMP:
        node.set("this", _own(SECONDS_OF, node.this))


def _cast(node: Node) -> None:
    to = kind_of(node.args["to"])
    if to is not None:
        node.set("to", as_node(to))
    _to_whole(node, kind_of(node.this))


def _from_one(node: Node) -> None:
    """The first character of a text is at 1, and at 0. A piece of a negative length is empty."""
    _text(node)
    for name, function in (("start", START), ("length", LENGTH)):
        one = node.args.get(name)
        if one is not None and not (isinstance(one, exp.Literal) and one.name.strip("0").isdigit()):
            node.set(name, _own(function, one))


def _text(node: Node) -> None:
    """Cast the arguments of a function over texts."""
    counted = isinstance(node, exp.Left | exp.Right | exp.Pad | exp.Repeat)
    for name in ("this", "substr", "fill_pattern", *(() if counted else ("expression", "replacement"))):
        one = node.args.get(name)
        if isinstance(one, exp.Expr) and kind_of(one) not in (None, STRING):
            node.set(name, cast(one, STRING))


def _joined(node: Node) -> None:
    """Cast all parts of a text to texts; a concat of one is one, too."""
    if isinstance(node, exp.DPipe):
        _text(node)
        return
    node.set("expressions", [cast(one, STRING) if kind_of(one) is not None else one for one in node.expressions])


def _piece(node: Node) -> None:
    """A piece of a negative length is empty."""
    _text(node)
    length = node.expression
    if not (isinstance(length, exp.Literal) and length.name.isdigit()):
        node.set("expression", _own(LENGTH, length))


def _since_1970(node: Node) -> None:
    """Whole seconds or milliseconds, rounded down."""
    name = SECONDS_OF if isinstance(node, exp.UnixSeconds) else MILLISECONDS
    made = _own(name)
    made.type = as_node(BIGINT)
    node.replace(made)
    made.set("expressions", [cast(node.this, TIMESTAMP)])


def _repeated(node: Node) -> None:
    _text(node)
    times = node.args["times"]
    node.set("times", _own(TIMES, times, _own("strlen", node.this.copy())))


def _padded(node: Node) -> None:
    _text(node)
    kind = kind_of(node.expression)
    if kind is None or kind.is_integer:
        node.set("expression", exp.Cast(this=_own(TIMES, node.expression, exp.Literal.number(1)), to=as_node(INT)))


def _spaces(node: Node) -> None:
    node.set("this", _own(TIMES, node.this, exp.Literal.number(1)))


def _pattern(node: Node) -> None:
    """``\\`` stands before ``%`` and ``_`` of a pattern unless ESCAPE names another sign."""
    _text(node)
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if not plain and not isinstance(node.parent, exp.Escape):
        made = exp.Escape(expression=exp.Literal.string("\\"))
        node.replace(made)
        made.set("this", node)


def _logarithm(node: Node) -> None:
    """NULL for what has no logarithm."""
    for name in ("this", "expression"):
        if node.args.get(name) is not None:
            node.set(name, _own(ABOVE_ZERO, node.args[name]))


def _to_whole_alone(node: Node) -> None:
    if node.args.get("decimals") is not None:
        raise NotAnswered(
            node, f"{node.key} takes no number of digits in a SELECT; use round, or compute the value in a view"
        )
    _as_kind(node)


def _digest(node: Node) -> None:
    _text(node)
    if not isinstance(node.args.get("length"), exp.Literal):
        raise NotAnswered(node, "the length of sha2 must be a constant in a SELECT; write the number")


def _is_nan(node: Node) -> None:
    """NULL is a number."""
    made = exp.Coalesce(expressions=[exp.false()])
    node.replace(made)
    made.set("this", node)


def _counted_bits(node: Node) -> None:
    """A negative number has the bits of a BIGINT."""
    if kind_of(node.this) != BOOLEAN:
        _cast_in_place(node, "this", BIGINT)
    _as_kind(node)


def _measured_text(node: Node) -> None:
    _text(node)
    _as_kind(node)


def _extracted(node: Node) -> None:
    unit = node.this.name.upper()
    if unit in SECONDS:
        node.set("this", exp.var("MICROSECONDS"))
        text = _own(POINT, node.copy(), exp.Literal.number(6))
        node.replace(exp.Cast(this=text, to=as_node(decimal(8, 6))))
    elif unit in ("DOW", "DAYOFWEEK"):
        _day_of_week(node)
    else:
        _as_kind(node)


def _day_of_week(node: Node) -> None:
    """1 is Sunday; in DuckDB it is 0."""
    sunday = exp.Add(this=node.copy(), expression=exp.Literal.number(1))
    node.replace(exp.Cast(this=sunday, to=as_node(INT)))


def _abbreviated(node: Node) -> None:
    node.replace(_own("left", node.copy(), exp.Literal.number(3)))


def _to_eight_digits(node: Node) -> None:
    node.replace(_own("round", node.copy(), exp.Literal.number(8)))


def _no_nan(node: Node) -> None:
    """NULL, not NaN, where there are too few rows."""
    while isinstance(node.parent, exp.Filter | exp.Window) and node.parent.this is node:
        node = node.parent
    made = _own(NUMBER)
    node.replace(made)
    made.set("expressions", [node])


def _of_null_too(node: Node) -> None:
    """The value of the row with the least or greatest other value, even if it is NULL; DuckDB passes over NULL."""
    if node.args.get("count") is not None:
        raise NotAnswered(
            node, "max_by and min_by with a third argument would return lists, which a SELECT cannot; write 2 arguments"
        )
    made = _own("arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null", node.this, node.expression)
    made.type = node.type
    node.replace(made)


def _full_units(node: Node) -> None:
    """The whole units between two moments, not the borders between them."""
    sides = (cast(node.args[name], TIMESTAMP) for name in ("expression", "this"))
    made = _own("datesub", exp.Literal.string(node.args["unit"].name.lower().removesuffix("s")), *sides)
    node.replace(exp.Cast(this=made, to=as_node(BIGINT)))


def _as_doubles(node: Node) -> None:
    for name in ("this", "expression"):
        _cast_in_place(node, name, DOUBLE)


def _guarded(node: Node) -> None:
    """The terms of AND and OR that cannot fail decide whether those after them that may fail are computed."""
    if type(node.parent) is type(node) or (isinstance(node.parent, exp.Join) and node.parent.args.get("method")):
        # DuckDB reads the terms of an ASOF JOIN.
        return
    decided = exp.Boolean(this=isinstance(node, exp.Or))
    guards: list[Node] = []
    for term in list(node.flatten(unnest=False)):
        if not _may_fail(term):
            guards += [] if term.find(exp.Query) is not None else [term]
        elif guards:
            open_ = [
                exp.Not(this=exp.Paren(this=exp.Is(this=exp.Paren(this=one.copy()), expression=decided.copy())))
                for one in guards[-_GUARDS:]
            ]
            made = exp.Case()
            term.replace(made)
            made.set("ifs", [exp.If(this=exp.and_(*open_, copy=False), true=term)])


def _may_fail(term: Node) -> bool:
    return any(
        one.name in _FAILING if isinstance(one, exp.Anonymous) else isinstance(one, exp.Mod | exp.Cast)
        for one in term.walk()
    )


def _counted(node: Node) -> None:
    """COUNT of several values counts the rows in which none is NULL."""
    if not node.expressions or isinstance(node.this, exp.Distinct):
        return
    values = [node.this, *node.expressions]
    there = [exp.Not(this=exp.Is(this=one, expression=exp.Null())) for one in values]
    node.set("this", exp.Case(ifs=[exp.If(this=exp.and_(*there), true=exp.Literal.number(1))]))
    node.set("expressions", [])


def _exact(node: Node) -> None:
    """DuckDB counts the zero before the point as a digit."""
    kind = kind_of(node)
    if kind is not None and kind.is_decimal and kind.precision == kind.scale and not isinstance(node.parent, exp.Cast):
        _put_cast(node, kind)


def _called(node: Node) -> None:
    if node.name == UNSIGNED:
        _shifted(node)
    if node.name in CALLED:
        if node.name == "strlen":
            node.set("expressions", [cast(one, STRING) for one in node.expressions])
        _as_kind(node)


def _shifted(node: Node) -> None:
    """A shift of 32 or 64 bits, by a number of bits modulo as many; bits that leave are lost."""
    sides = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    of, by = map(kind_of, sides)
    wrong = next((one for one, kind in zip(sides, (of, by), strict=True) if kind not in (None, STRING)
                  and not (kind.is_integer if one is sides[0] else kind.is_numeric)), None)
    if wrong is not None:
        raise NotAnswered(wrong, f"a shift takes an INT or a BIGINT, and a number of bits, not {kind_of(wrong)}")
    to = BIGINT if of == BIGINT else INT
    names: dict[type[Node], str] = {exp.BitwiseLeftShift: LEFT, exp.BitwiseRightShift: RIGHT}
    width = exp.Literal.number(64 if to == BIGINT else 32)
    made = _own(names.get(type(node), f"fv_{UNSIGNED}"), cast(sides[0], to), cast(sides[1], INT), width)
    final = exp.Cast(this=made, to=as_node(to))
    final.type = as_node(to)
    node.replace(final)


def _statistic(node: Node) -> None:
    """A percentile is one of DOUBLEs, unless it has the type of its values."""
    value, kind = node.expressions[0], kind_of(node.expressions[0])
    name = node.meta.get(WRITTEN)
    if name == "mode" or name is None:
        return
    if kind is not None and kind == kind_of(node):
        return
    if kind is not None and kind != STRING and not kind.is_numeric:
        raise NotAnswered(node, f"{name} takes numbers, not {kind}")
    node.set("expressions", [cast(value, DOUBLE), *node.expressions[1:]])


_RULES: Mapping[type[Node], Callable[[Any], None]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _arithmetic),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between), _compared
    ),
    exp.In: _listed,
    **dict.fromkeys((exp.Coalesce, exp.Case, exp.If, exp.Greatest, exp.Least), _conditional),
    **dict.fromkeys((exp.Sum, exp.Avg), _total),
    **dict.fromkeys(
        (
            *(exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Week, exp.DayOfMonth, exp.DayOfYear, exp.Hour),
            *(exp.Minute, exp.Second, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.DateDiff, exp.Round),
            *(exp.Sign, exp.WeekOfYear, exp.Grouping, exp.GroupingId, exp.RegrCount, exp.BitLength, exp.Levenshtein),
            *(exp.RegexpInstr, exp.UnixDate, *DATES),
        ),
        _as_kind,
    ),
    **dict.fromkeys((exp.Length, exp.StrPosition, exp.Ascii, exp.RegexpCount), _measured_text),
    **dict.fromkeys(
        (
            *(exp.Initcap, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Replace),
            *(exp.Upper, exp.Lower, exp.Trim, exp.Reverse, exp.RegexpLike, exp.SHA, exp.MD5),
            *(exp.RegexpExtract, exp.RegexpReplace),
        ),
        _text,
    ),
    **dict.fromkeys((exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _no_nan),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), _of_null_too),
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift), _shifted),
    exp.AnonymousAggFunc: _statistic,
    **dict.fromkeys((exp.UnixSeconds, exp.UnixMillis), _since_1970),
    exp.Repeat: _repeated,
    exp.Pad: _padded,
    exp.Space: _spaces,
    **dict.fromkeys((exp.Like, exp.ILike), _pattern),
    **dict.fromkeys((exp.Left, exp.Right), _piece),
    **dict.fromkeys((exp.Concat, exp.ConcatWs, exp.DPipe), _joined),
    **dict.fromkeys((exp.Ln, exp.Log), _logarithm),
    **dict.fromkeys((exp.Ceil, exp.Floor), _to_whole_alone),
    exp.SHA2: _digest,
    exp.IsNan: _is_nan,
    exp.BitwiseCount: _counted_bits,
    exp.Substring: _from_one,
    exp.DayOfWeek: _day_of_week,
    exp.Extract: _extracted,
    exp.Anonymous: _called,
    **dict.fromkeys((exp.Dayname, exp.Monthname), _abbreviated),
    **dict.fromkeys((exp.And, exp.Or), _guarded),
    exp.Count: _counted,
    exp.Literal: _exact,
    exp.TimestampDiff: _full_units,
    exp.SafeDivide: _as_doubles,
    exp.MonthsBetween: _to_eight_digits,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
}
