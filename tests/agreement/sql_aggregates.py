"""Random aggregates in both dialects of SQL."""

from __future__ import annotations

from collections import Counter

import freshviews as fv
from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import SUMMABLE, Expressions, Term, has_column, made

JOINED, JOINED_BY_STATES = "joined_in_python", "joined_by_states_in_python"
"""Aggregates of plain Python that join texts in their order: without ``remove``, and with it."""


@fv.register_aggregate(JOINED, takes=["STRING"], returns="STRING")
class _Joined:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        self.texts.append(text)

    def output(self) -> str:
        return "-".join(self.texts)


@fv.register_aggregate(JOINED_BY_STATES, takes=["STRING"], returns="STRING")
class _Counted:
    def __init__(self) -> None:
        self.texts = Counter[str]()

    def add(self, text: str) -> None:
        self.texts[text] += 1

    def remove(self, text: str) -> None:
        assert self.texts[text] > 0
        self.texts[text] -= 1

    def output(self) -> str:
        return "-".join(sorted(self.texts.elements()))


def aggregate(choose: Choices, expressions: Expressions, kind: str | None = None) -> Term:
    """An aggregate, of the given kind if there is one."""
    kind = kind or choose.pick(("int", "int", "decimal", "double", "ratio", "string", "date", "bool"))
    rows = Text.same("")
    if choose.chance(10):
        rows = made("bool", " FILTER (WHERE {0})", expressions.predicate(depth=1)).text
    return _aggregate(choose, expressions, kind, rows)


def _aggregate(choose: Choices, expressions: Expressions, kind: str, rows: Text) -> Term:
    """``rows``: FILTER (WHERE ...), or nothing."""

    def call(of: str, spark: str, *args: Term, duck: str | None = None, precision: int = 0, scale: int = 0) -> Term:
        other = (spark if duck is None else duck).format(*(a.text.duck for a in args), rows=rows.duck)
        text = Text(spark.format(*(a.text.spark for a in args), rows=rows.spark), other)
        return Term(text, of, precision, scale)

    if kind == "ratio":
        if choose.chance(40):
            return call("ratio", _moment(choose), expressions.any("int", 1), expressions.any("int", 1))
        if choose.chance(30):
            fraction, value = choose.pick(("0.0", "0.3", "0.5", "1.0")), expressions.any("int", 1)
            forms = [f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {{0}})", f"PERCENTILE({{0}}, {fraction})"]
            spark = choose.pick([*forms, "MEDIAN({0})"] if fraction == "0.5" else forms) + "{rows}"
            return call("ratio", spark, value, duck=f"quantile_cont(CAST({{0}} AS DOUBLE), {fraction}){{rows}}")
        if choose.chance(30):
            return call("ratio", "TRY_AVG({0}){rows}", expressions.any("int", 1), duck="AVG({0}){rows}")
        if choose.chance(15) and (columns := [one for one in expressions.columns if one.kind == "int"]):
            return call("ratio", "round(SKEWNESS({0}){rows}, 6)", choose.pick(columns), duck=_SKEWNESS)
        return call("ratio", "AVG({0}){rows}", expressions.any(choose.pick(("int", "double")), 1))
    functions = ["MIN", "MAX", choose.pick(("MIN_BY", "MAX_BY", "ANY_VALUE", "FIRST", "LAST", "MODE"))]
    if kind == "int":
        functions += ["COUNT", "COUNT", "COUNT", "SUM", "SUM", "SUM", "PAIRS", "BIT_AND", "BIT_OR", "BIT_XOR"]
    elif kind in SUMMABLE:
        functions += ["SUM", "SUM", "SUM", "AVG"] if kind == "decimal" else ["SUM", "SUM", "SUM"]
    function = choose.pick(functions)
    distinct = "DISTINCT " if choose.chance(20) else ""
    if function == "COUNT":
        if choose.chance(40):
            return call("int", "COUNT(*){rows}")
        of = choose.pick([c.kind for c in expressions.columns])
        if choose.chance(10):
            duck = "COUNT(DISTINCT {0}){rows}"
            return call("int", "APPROX_COUNT_DISTINCT({0}){rows}", expressions.any(of, 1), duck=duck)
        return call("int", f"COUNT({distinct}{{0}}){{rows}}", expressions.any(of, 1))
    if function == "PAIRS":
        a, b = choose.pick(expressions.columns), choose.pick(expressions.columns)
        known = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN ({0}, {1}) END"
        return call("int", f"COUNT({distinct}{{0}}, {{1}}){{rows}}", a, b, duck=f"COUNT({distinct}{known}){{rows}}")
    if function.endswith("_BY"):
        value, by = expressions.any(kind, 1), choose.pick(expressions.columns)
        spark, duck = by_texts(function[:3])
        return call(kind, spark, value, by, duck=duck, precision=value.precision, scale=value.scale)
    if function == "MODE":
        columns = [one for one in expressions.columns if one.kind == kind]
        if not columns:
            return call(kind, "MAX({0}){rows}", expressions.any(kind, 0))
        value = choose.pick(columns)
        spark = "MODE() WITHIN GROUP (ORDER BY {0}){rows}"
        return call(kind, spark, value, duck=_MODE, precision=value.precision, scale=value.scale)
    if function in _OF_ANY:
        value = expressions.any(kind, 1)
        duck = f"{_OF_ANY[function]}({{0}}){{rows}}"
        return call(
            kind, f"{function}({{0}}){{rows}}", value, duck=duck, precision=value.precision, scale=value.scale
        )
    argument = _factor(choose, expressions, kind) if function == "SUM" else expressions.any(kind, 1)
    if function in ("MIN", "MAX", "BIT_AND", "BIT_OR", "BIT_XOR"):
        return call(kind, f"{function}({{0}}){{rows}}", argument, precision=argument.precision, scale=argument.scale)
    if kind != "decimal":
        tried = "TRY_" if function == "SUM" and not distinct and choose.chance(25) else ""
        duck = f"{function}({distinct}{{0}}){{rows}}"
        return call(kind, f"{tried}{duck}", argument, duck=duck)
    if argument.precision > 18:
        return call(kind, "MAX({0}){rows}", argument, precision=argument.precision, scale=argument.scale)
    if function == "SUM":
        precision = argument.precision + 10
        duck = f"CAST(SUM({distinct}{{0}}){{rows}} AS DECIMAL({precision}, {argument.scale}))"
        return call(
            kind, f"SUM({distinct}{{0}}){{rows}}", argument, duck=duck, precision=precision, scale=argument.scale
        )
    spark, duck = average_texts(argument.scale, distinct)
    return call(kind, spark, argument, duck=duck, precision=argument.precision + 4, scale=argument.scale + 4)


def extreme_of_sum(choose: Choices, expressions: Expressions) -> Term:
    """MIN or MAX of a sum or difference of columns, often of several tables."""
    one, other = expressions.two(choose.pick(expressions.kinds(("int",)) or ["int"]))
    total = made("int", f"({{0}} {choose.pick('+-')} {{1}})", one, other)
    if choose.chance(25):
        total = made("int", f"({{0}} {choose.pick('+-')} {{1}})", expressions.leaf("int"), total)
    if choose.chance(15):
        total = made("int", f"{choose.pick(('least', 'greatest'))}({{0}}, {{1}})", one, other)
    return made("int", f"{choose.pick(('MIN', 'MAX'))}({{0}})", total)


def joined_texts(choose: Choices, expressions: Expressions) -> Term:
    """The values of a group as one text. In DuckDB equal rows have no fixed order, so its ORDER BY also has the
    value."""
    value = expressions.any(choose.pick(("string", "string", "int", "date")), 1)
    rows = Text.same("")
    if choose.chance(20):
        rows = made("bool", " FILTER (WHERE {0})", expressions.predicate(depth=1)).text
    text = f"CAST({value.text.duck} AS VARCHAR)"
    if not has_column(value):
        # DuckDB refuses to order by a constant.
        return Term(Text(f"GROUP_CONCAT({value.text.spark}){rows.spark}", f"STRING_AGG({text}){rows.duck}"), "string")
    if choose.chance(30):
        function, distinct = choose.pick((JOINED, JOINED_BY_STATES)), choose.pick(("", "DISTINCT "))
        duck = f"STRING_AGG({distinct}{text}, '-' ORDER BY {text}){rows.duck}"
        return Term(Text(f"{function}({distinct}{value.text.spark}){rows.spark}", duck), "string")
    if choose.chance(25):
        duck = f"STRING_AGG(DISTINCT {text}, '-' ORDER BY {text}){rows.duck}"
        return Term(Text(f"STRING_AGG(DISTINCT CAST({value.text.spark} AS STRING), '-'){rows.spark}", duck), "string")
    by = [column for column in expressions.columns if column.kind != "ratio"]
    if not by or choose.chance(20):
        duck = f"STRING_AGG({text}, '' ORDER BY {value.text.duck}){rows.duck}"
        return Term(Text(f"LISTAGG({value.text.spark}){rows.spark}", duck), "string")
    key, last = choose.pick(by).text, choose.pick(("", " DESC"))
    nulls = "LAST" if last else "FIRST"
    duck = f"STRING_AGG({text}, ', ' ORDER BY {key.duck}{last} NULLS {nulls}, {text}){rows.duck}"
    return Term(Text(f"STRING_AGG({value.text.spark}, ', ' ORDER BY {key.spark}{last}){rows.spark}", duck), "string")


_SQUARES = "(COUNT({0}){rows} * SUM({0} * {0}){rows} - SUM({0}){rows} * SUM({0}){rows})"
_CUBES = (
    "COUNT({0}){rows} * COUNT({0}){rows} * SUM({0} * {0} * {0}){rows}"
    " - 3 * COUNT({0}){rows} * SUM({0}){rows} * SUM({0} * {0}){rows}"
    " + 2 * SUM({0}){rows} * SUM({0}){rows} * SUM({0}){rows}"
)
_SKEWNESS = f"round(CAST({_CUBES} AS DOUBLE) / power(CAST(nullif({_SQUARES}, 0) AS DOUBLE), 1.5), 6)"
"""Spark's SKEWNESS of integers; that of DuckDB is of a sample."""
_KNOWN = "list_filter(list({0}){rows}, lambda one: one IS NOT NULL)"
_TIMES = f"len(list_filter({_KNOWN}, lambda other: other = one))"
_MODE = (
    f"list_min(list_filter({_KNOWN}, lambda one: {_TIMES} = list_max(list_transform({_KNOWN}, lambda one: {_TIMES}))))"
)
"""The least of the most frequent values; DuckDB's MODE takes any of them."""
_OF_ANY = {"ANY_VALUE": "MIN", "FIRST": "MIN", "LAST": "MAX"}


def _moment(choose: Choices) -> str:
    """A variance or covariance, rounded: DuckDB adds in another way, so its last digits differ."""
    function = choose.pick(("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV", "COVAR_POP", "COVAR_SAMP", "REGR_SXX"))
    if function.startswith(("COVAR", "REGR")):
        return f"round({function}({{0}}, {{1}}){{rows}}, 6)"
    return f"round({function}({'DISTINCT ' if choose.chance(20) else ''}{{0}}){{rows}}, 6)"


def by_texts(end: str) -> tuple[str, str]:
    """{0} of the row with the least or greatest {1}; of several, the least or greatest {0}, NULL first."""
    pair = "{{'by': {1}, 'known': {0} IS NOT NULL, 'value': {0}}}"
    duck = f"struct_extract({end}(CASE WHEN {{1}} IS NOT NULL THEN {pair} END){{rows}}, 'value')"
    return f"{end}_BY({{0}}, {{1}}){{rows}}", duck


def average_texts(scale: int, distinct: str = "") -> tuple[str, str]:
    """AVG of a decimal {0}: Spark's has four more digits, rounded HALF_UP; DuckDB's is a DOUBLE, so its text computes
    Spark's."""
    unscaled = f"CAST(SUM({distinct}CAST({{0}} * {10**scale} AS BIGINT)){{rows}} AS HUGEINT) * 10000"
    number = f"COUNT({distinct}{{0}}){{rows}}"
    rounded = f"sign({unscaled}) * ((2 * abs({unscaled}) + {number}) // (2 * nullif({number}, 0)))"
    unit = f"CAST(1E-{scale + 4} AS DECIMAL({scale + 4}, {scale + 4}))"
    duck = f"(CAST(CAST({rounded} AS BIGINT) AS DECIMAL(18, 0)) * {unit})"
    return f"AVG({distinct}{{0}}){{rows}}", duck


def _factor(choose: Choices, expressions: Expressions, kind: str) -> Term:
    """The argument of a SUM: often a product of columns, which may come from several tables."""
    if kind == "decimal" or choose.chance(50):
        return expressions.any(kind, choose.between(0, 2))
    product = made(kind, "{0} * {1}", expressions.leaf(kind), expressions.leaf(kind))
    if choose.chance(25):
        product = made(kind, "{0} * {1}", product, expressions.leaf(kind))
    return product
