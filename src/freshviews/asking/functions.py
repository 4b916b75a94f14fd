"""Lists the functions that a SELECT may call: Spark's name, the class in sqlglot's tree, and DuckDB's function.

A SELECT that calls any other function is refused before DuckDB gets the SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from freshviews.asking.meaning import NotAnswered
from freshviews.asking.own_functions import call_of, is_python
from freshviews.asking.typing import CONTINUOUS, DISCRETE, WRITTEN
from freshviews.catalog.catalog import near
from freshviews.errors import SqlError
from freshviews.sql import FUNCTION_NAMES
from freshviews.sql.blocks.calls.percentiles import PERCENTILES, parts_of
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.functions import FUNCTIONS
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import REFUSED_FUNCTIONS
from freshviews.sql.text.typenames import type_of
from freshviews.types import BIGINT, INT, STRING

_REFUSED = frozenset(REFUSED_FUNCTIONS) | {"cofactor", "provenance", "covar_matrix", "corr_matrix", "category"}
_REFUSED |= {"bit_xor", "skewness", "kurtosis", "try_sum", "try_avg"}
_REFUSED |= {"hash", "xxhash64", "typeof", "url_encode", "printf", "format_string"}  # DuckDB's have other values.
_REFUSED |= {"raise_error", "assert_true", "bitmap_count"}
_SPARK = Spark()
ACCEPTED = FUNCTION_NAMES - _REFUSED
"""Names of functions that a SELECT may call, in lower case."""


_SAME = {
    "iff": "if",
    "std": "stddev",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "btrim": "trim",
    "mean": "avg",
    "octet_length": "strlen",
    "argmax": "max_by",
    "argmin": "min_by",
}
"""Names of Spark that mean another function, of Spark or of DuckDB."""

def _decoded(value: Node, *rest: Node) -> Node:
    pairs = zip(rest[::2], rest[1::2], strict=False)
    cases = [exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=one), true=then) for one, then in pairs]
    return exp.Case(ifs=cases, default=rest[-1] if len(rest) % 2 else None)


def _dated(node: Node) -> Node:
    return exp.Cast(this=node, to=exp.DataType.build("DATE"))


_MADE: Mapping[str, Callable[..., Node]] = {
    "isnull": lambda a: exp.Is(this=a, expression=exp.Null()),
    "isnotnull": lambda a: exp.Not(this=exp.Is(this=a, expression=exp.Null())),
    "zeroifnull": lambda a: exp.Coalesce(this=a, expressions=[exp.Literal.number(0)]),
    "nullifzero": lambda a: exp.Nullif(this=a, expression=exp.Literal.number(0)),
    "negative": lambda a: exp.Neg(this=exp.Paren(this=a)),
    "positive": lambda a: exp.Paren(this=a),
    "decode": _decoded,
    "unix_timestamp": lambda a: exp.Anonymous(this="unix_timestamp", expressions=[a]),
    "to_date": lambda a, b=None: _dated(a) if b is None else SparkParser.FUNCTIONS["TO_DATE"]([a, b], dialect=_SPARK),
    "date_part": lambda a, b: exp.Extract(this=exp.var(a.name), expression=b),
    "weekday": lambda a: exp.Anonymous(this="weekday", expressions=[_dated(a)]),
    "initcap": lambda a: exp.Anonymous(
        this="initcap", expressions=[exp.Cast(this=a, to=exp.DataType.build("STRING", dialect="spark"))]
    ),
    **dict.fromkeys(
        ("count_if", "countif"), lambda a: exp.Count(this=exp.Case(ifs=[exp.If(this=a, true=exp.Literal.number(1))]))
    ),
    **dict.fromkeys(
        ("datediff", "date_diff"),
        lambda a, b, c=None: exp.DateDiff(this=_dated(a), expression=_dated(b), unit=exp.var("DAY"))
        if c is None
        else exp.TimestampDiff(this=c, expression=b, unit=exp.var(a.name)),
    ),
    "position": lambda a, b: exp.StrPosition(this=b, substr=a),
    "replace": lambda a, b, c=None: exp.Anonymous(this="replace", expressions=[a, b, c or exp.Literal.string("")]),
}
"""Functions that are operators, or other functions with their arguments in another order."""

MACROS = (
    "initcap(a) AS array_to_string(list_transform(string_split(lower(a), ' '), lambda w: upper(w[1]) || w[2:]), ' ')",
    "unix_timestamp(a) AS CAST(trunc(epoch_us(CAST(a AS TIMESTAMP)) / 1000000) AS BIGINT)",
    "weekday(a) AS isodow(a) - 1",
    "nanvl(a, b) AS CASE WHEN isnan(a) THEN CAST(b AS DOUBLE) ELSE CAST(a AS DOUBLE) END",
    "log1p(a) AS CASE WHEN a > -1 THEN ln(1 + a) END",
    "expm1(a) AS exp(a) - 1",
    "pmod(a, b) AS ((a % b) + b) % b",
    "e() AS exp(1)",
    "timestamp_seconds(a) AS make_timestamp(CAST(a * CAST(1000000 AS DECIMAL(19, 0)) AS BIGINT))",
    "timestamp_millis(a) AS make_timestamp(CAST(a AS BIGINT) * 1000)",
    "timestamp_micros(a) AS make_timestamp(CAST(a AS BIGINT))",
    "substring_index(a, b, n) AS array_to_string(CASE WHEN n > 0 THEN string_split(a, b)[:n] "
    "WHEN n < 0 THEN string_split(a, b)[n:] ELSE [] END, b)",
    "regexp_substr(a, b) AS CASE WHEN regexp_matches(a, b) THEN regexp_extract(a, b) END",
    "tumble_start(a, b) AS time_bucket(CAST(b AS INTERVAL), a, TIMESTAMP '1970-01-01'), "
    "(a, b, c) AS time_bucket(CAST(b AS INTERVAL), a, TIMESTAMP '1970-01-01' + CAST(c AS INTERVAL))",
    "hop_start(a, b, c, n) AS tumble_start(a, b) - n * CAST(b AS INTERVAL), "
    "(a, b, c, n, d) AS tumble_start(a, b, d) - n * CAST(b AS INTERVAL)",
    "try_to_date(a) AS TRY_CAST(a AS DATE)",
    "try_to_timestamp(a) AS TRY_CAST(a AS TIMESTAMP)",
)
"""Functions that DuckDB lacks, in its SQL."""

_OF_NULLS = ("any_value", "first", "first_value", "lag", "last", "last_value", "lead", "nth_value")
"""Functions whose last argument may say that NULL is passed over."""

_CASTS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp")


_OF_TEXTS = {
    "get_json_object": "freshviews.expr.formats.json_texts:get_json_object",
    "json_array_length": "freshviews.expr.formats.json_texts:json_array_length",
    "crc32": "freshviews.expr.hashes:crc32",
}
"""Functions of texts that DuckDB lacks, and the Python functions that compute them in views."""


_RETURNED = {"json_array_length": INT, "crc32": BIGINT}
"""The types of those that return no text."""


def name_functions(text: SqlText, tree: Node, operations: dict[str, str]) -> None:
    """Replace calls that are kept as written by sqlglot's nodes. Adds the operations of Python functions by the names
    under which DuckDB calls them to ``operations``. Raises SqlError for an unknown function, and for arguments that it
    does not take."""
    for node in reversed(list(tree.find_all(exp.Anonymous, exp.Cast))):
        if isinstance(node, exp.Anonymous) and node.name.lower() in _OF_TEXTS:
            made = _of_texts(text, node, operations)
        else:
            made = _call(text, node) if isinstance(node, exp.Anonymous) else _cast(text, node)
        if made is not node:
            for key, value in node.meta.items():
                made.meta.setdefault(key, value)
            node.replace(made)


def _cast(text: SqlText, node: exp.Func) -> Node:
    """A CAST; sqlglot reads Spark's as TRY_CAST, and TRY_CAST as one that is safe."""
    if node.args.get("format"):
        raise text.unsupported(node, "CAST with a FORMAT", "leave FORMAT out, or use date_format")
    type_of(text, node.args["to"])
    return node if node.args.get("safe") else exp.Cast(this=node.this, to=node.args["to"])


def _of_texts(text: SqlText, call: exp.Anonymous, operations: dict[str, str]) -> Node:
    name = call.name.lower()
    if not FUNCTIONS[name].least <= len(call.expressions) <= FUNCTIONS[name].greatest:
        raise _misused(text, call)
    returns = _RETURNED.get(name, STRING)
    takes = [STRING for _ in call.expressions]
    return call_of(name, _OF_TEXTS[name], takes, call.expressions, returns, operations)


def _statistic(call: exp.Anonymous) -> Node:
    """PERCENTILE and its relatives, MEDIAN and MODE by DuckDB's functions, which read a negative fraction from the
    greatest value down."""
    name = call.name.lower()
    if any(isinstance(one, exp.Distinct) for one in call.expressions):
        raise NotAnswered(call, f"{name} of DISTINCT values is not supported; aggregate over SELECT DISTINCT in FROM")
    try:
        value, given, descending = parts_of(name, call.expressions)
    except Fault as fault:
        raise NotAnswered(call, str(fault)) from None
    if name == "mode":
        ordered = exp.Ordered(this=value.copy(), desc=descending, nulls_first=False)
        made = exp.AnonymousAggFunc(this=name, expressions=[exp.Order(this=value.copy(), expressions=[ordered])])
    else:
        if name == "percentile" and given[1:]:
            instead = "join a table that has each row as often as it counts"
            raise NotAnswered(call, f"percentile with a frequency is not supported; {instead}")
        fraction = 0.5 if name == "median" else _fraction(name, given[0])
        fraction = fraction if not descending else -fraction if fraction else 1.0
        function = CONTINUOUS if name in ("percentile", "median", "percentile_cont") else DISCRETE
        arguments = [value.copy(), exp.Literal.number(repr(fraction))]
        made = exp.AnonymousAggFunc(this=function, expressions=arguments)
    made.meta[WRITTEN] = name
    return made


def _fraction(name: str, node: Node) -> float:
    given = node.this if isinstance(node, exp.Cast) else node
    try:
        found = float(given.name) if isinstance(given, exp.Literal) else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise NotAnswered(node, f"the fraction of {name} must be a constant from 0 to 1")
    return found


def _call(text: SqlText, call: exp.Anonymous) -> Node:
    name = call.name.lower()
    if is_python(name):
        return call
    if name in _REFUSED:
        in_a_view = (f"function {name}", "call it in a view, and select from the view")
        raise text.unsupported(call, *REFUSED_FUNCTIONS.get(name, in_a_view))
    if name not in ACCEPTED:
        raise SqlError(f"unknown function {name}{near(name, ACCEPTED)}", *text.at(call))
    if name in PERCENTILES:
        return _statistic(call)
    arguments = list(call.expressions)
    known = FUNCTIONS.get(name)
    if known is not None and not known.least <= len(arguments) <= known.greatest:
        raise _misused(text, call)
    if name in _CASTS and len(arguments) == 1:
        return exp.Cast(this=arguments[0], to=exp.DataType.build(name, dialect="spark"))
    name = _SAME.get(name, name)
    least = 3 if name in ("lag", "lead") else 1
    if name in _OF_NULLS and len(arguments) > least and isinstance(arguments[-1], exp.Boolean):
        ignores = arguments.pop().this
        inner = _call(text, exp.Anonymous(this=name, expressions=arguments))
        return exp.IgnoreNulls(this=inner) if ignores else inner
    build = _MADE.get(name)
    if build is not None:
        try:
            return build(*arguments)
        except TypeError:
            raise _misused(text, call) from None
    build = SparkParser.FUNCTIONS.get(name.upper())
    if build is None:
        return exp.Anonymous(this=name, expressions=arguments)
    options = {"dialect": _SPARK} if "dialect" in build.__code__.co_varnames else {}
    try:
        made: Node = build(arguments, **options)
        wrong = made.error_messages(arguments)
    except Exception:  # A builder reads arguments that are not there.
        raise _misused(text, call) from None
    if wrong:
        raise _misused(text, call)
    return made


def _misused(text: SqlText, call: exp.Anonymous) -> SqlError:
    return SqlError(f"{call.name.lower()} takes another number of arguments, or others", *text.at(call))
