"""Random scalar expressions in both dialects of SQL.

Every expression has a kind: int, decimal, double, ratio, string, date or bool. A ratio is a DOUBLE that is rounded
(a quotient, an average): it is grouped by, counted and compared for order, but not summed or compared with a constant,
because the last bits of two engines may differ. No expression fails: those that could are guarded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text

KINDS = ("int", "decimal", "double", "string", "date", "bool", "timestamp")
SUMMABLE = ("int", "decimal", "double")
DATES = ("2024-01-30", "2024-01-31", "2024-02-29")
TIMESTAMPS = ("2024-01-30 23:59:59", "2024-01-31 00:00:00", "2024-02-29 12:30:00.5")
_LEVELS = {"*": 0, "+": 1, "-": 1, "&": 2, "^": 3, "|": 4}
STRINGS = ("a", "b", "ab", "", "1", "20", "2024-01-31", "true")
_DAY = "'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$'"
_READ = {
    "int": ("'^[0-9]{{1,9}}$'", "INT"),
    "decimal": ("'^[0-9]{{1,4}}$'", "DECIMAL(6, 2)"),
    "date": (_DAY, "DATE"),
    "timestamp": (_DAY, "TIMESTAMP"),
    "bool": ("'^(true|false)$'", "BOOLEAN"),
}
"""Texts that are values of a kind, and the type as which they are read."""


@dataclass(frozen=True)
class Term:
    """An expression; ``precision`` and ``scale`` are those of decimals. ``column``: it is a plain column."""

    text: Text
    kind: str
    precision: int = 0
    scale: int = 0
    column: bool = False


def made(kind: str, spark: str, *parts: Term, duck: str | None = None, **more: int) -> Term:
    """A term of a template, whose ``{0}``, ``{1}``, ... are the parts."""
    other = spark if duck is None else duck
    return Term(
        Text(
            spark.format(*(p.text.spark for p in parts)),
            other.format(*(p.text.duck for p in parts)),
        ),
        kind,
        **more,
    )


def constant(choose: Choices, kind: str) -> Term:
    match kind:
        case "int":
            return made("int", str(choose.pick((0, 1, 2, 3))))
        case "decimal":
            return made("decimal", choose.pick(("1.5", "0.5", "2.0")), precision=2, scale=1)
        case "double":
            return made("double", choose.pick(("0.5E0", "2E0", "1E0")))
        case "string":
            return made("string", "'" + choose.pick(STRINGS[:3]) + "'")
        case "date":
            return made("date", f"DATE '{choose.pick(DATES)}'")
        case "timestamp":
            return made("timestamp", f"TIMESTAMP '{choose.pick(TIMESTAMPS)}'")
        case _:
            return made("bool", choose.pick(("TRUE", "FALSE")))


class Expressions:
    """Draws expressions over columns."""

    def __init__(self, choose: Choices, columns: Sequence[Term]) -> None:
        self.choose = choose
        self.columns = columns

    def kinds(self, wanted: Sequence[str]) -> list[str]:
        """The wanted kinds that some column has."""
        present = {c.kind for c in self.columns}
        return [kind for kind in wanted if kind in present]

    def column(self, kind: str) -> Term | None:
        found = [c for c in self.columns if c.kind == kind]
        return self.choose.pick(found) if found else None

    def leaf(self, kind: str) -> Term:
        column = self.column(kind)
        if column is None or self.choose.chance(10):
            return constant(self.choose, kind)
        return column

    def two(self, kind: str) -> tuple[Term, Term]:
        """Two leaves, different ones if the columns allow it."""
        first, second = self.leaf(kind), self.leaf(kind)
        others = [c for c in self.columns if c.kind == kind and c != first]
        return first, self.choose.pick(others) if second == first and others else second

    def any(self, kind: str, depth: int = 1) -> Term:
        """A column, or with depth an operation on shallower ones."""
        if kind == "ratio":
            return self.column("ratio") or self.ratio(depth)
        if depth == 0 or self.choose.chance(45):
            return self.leaf(kind)
        below = depth - 1
        general = [self.case, self.coalesce, self.nullif]
        own: dict[str, list[Callable[[str, int], Term]]] = {
            "int": [self.arithmetic, self.arithmetic, self.integer, self.flat],
            "decimal": [self.decimals, self.decimals, self.read],
            "double": [self.arithmetic],
            "string": [self.string],
            "date": [self.dates, self.dates, self.read],
            "bool": [self.predicate, self.predicate, self.predicate, self.read],
            "timestamp": [self.timestamp, self.timestamp, self.read],
        }
        return self.choose.pick([*own[kind], *general])(kind, below)

    def case(self, kind: str, depth: int) -> Term:
        test, then = self.predicate("bool", depth), self.any(kind, depth)
        if self.choose.chance(50):
            made_ = made(kind, "CASE WHEN {0} THEN {1} END", test, then)
            return replace(made_, precision=then.precision, scale=then.scale)
        other = self.any(kind, depth)
        return _wider(made(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", test, then, other), then, other)

    def coalesce(self, kind: str, depth: int) -> Term:
        first, other = self.any(kind, depth), self.leaf(kind)
        return _wider(made(kind, "COALESCE({0}, {1})", first, other), first, other)

    def nullif(self, kind: str, depth: int) -> Term:
        first = self.any(kind, depth)
        if self.choose.chance(50) and kind != "bool":
            function = self.choose.pick(("greatest", "least"))
            other = self.leaf(kind)
            return _wider(made(kind, f"{function}({{0}}, {{1}})", first, other), first, other)
        made_ = made(kind, "NULLIF({0}, {1})", first, self.leaf(kind))
        return replace(made_, precision=first.precision, scale=first.scale)

    def timestamp(self, kind: str, depth: int) -> Term:
        if self.choose.chance(20):
            duck = "time_bucket(INTERVAL '7 hours', {0}, TIMESTAMP '1970-01-01')"
            return made("timestamp", "date_bin('7 hours', {0})", self.any("timestamp", depth), duck=duck)
        if self.choose.chance(50):
            return made("timestamp", "CAST({0} AS TIMESTAMP)", self.any("date", depth))
        if self.choose.chance(20):
            a = self.any("timestamp", depth)
            return made("timestamp", "from_utc_timestamp({0}, '+02:00')", a, duck="({0} + INTERVAL '2' HOUR)")
        if self.choose.chance(20):
            a, length = self.any("timestamp", depth), self.interval(depth)
            return made("timestamp", "({0} + {1})", a, length)
        return made("timestamp", "({0} + INTERVAL '1' HOUR)", self.any("timestamp", depth))

    def interval(self, depth: int) -> Term:
        """A term of days to seconds; the views have no columns of it, since DuckDB prints and averages it otherwise."""
        pairs = (self.any("timestamp", depth), self.leaf("timestamp"))
        forms = ("({0} - {1})", "({0} - {1}) * 2", "-({0} - {1})", "({0} - {1} + INTERVAL '90' MINUTE)")
        if self.choose.chance(30):
            duck = "INTERVAL '30 hours' * {0}"
            whole = made("interval", "INTERVAL '1 06:00:00' DAY TO SECOND * {0}", self.leaf("int"), duck=duck)
            return made("interval", "(CASE WHEN {1} IS NULL THEN {0} ELSE {1} - {2} END)", whole, *pairs)
        return made("interval", self.choose.pick(forms), *pairs)

    def arithmetic(self, kind: str, depth: int) -> Term:
        a = self.any(kind, depth)
        if self.choose.chance(10):
            return made(kind, "(-{0})", a)
        op = self.choose.pick(("+", "-", "*"))
        return made(kind, f"({{0}} {op} {{1}})", a, self.any(kind, depth))

    def flat(self, kind: str, depth: int) -> Term:
        """Operators of several levels without parentheses; DuckDB gets the parentheses of Spark's precedence."""
        parts = [self.leaf("int") for _ in range(self.choose.between(3, 4))]
        signs = [self.choose.pick(tuple(_LEVELS)) for _ in parts[1:]]
        negated = tuple(self.choose.pick(("", "", "- ", "~ ")) for _ in parts)
        pairs = zip(["", *signs], negated, strict=True)
        flat = " ".join(f"{sign} {before}{{{i}}}" for i, (sign, before) in enumerate(pairs))
        duck = [f"({before}{{{i}}})" for i, before in enumerate(negated)]
        for level in sorted(set(_LEVELS.values())):
            while level in (levels := [_LEVELS[sign] for sign in signs]):
                at = levels.index(level)
                sign, right = signs.pop(at), duck.pop(at + 1)
                duck[at] = f"xor({duck[at]}, {right})" if sign == "^" else f"({duck[at]} {sign} {right})"
        return made("int", f"({flat})", *parts, duck=duck[0])

    def integer(self, kind: str, depth: int) -> Term:
        forms = ("mod", "abs", "div", "guarded", "length", "part", "diff", "hour", "sign", "cast", "text")
        forms = (*forms, "bits", "try", "iso", "parsed", "edits", "shift", "attempt")
        choice = self.choose.pick(forms)
        if choice == "edits":
            return made("int", "levenshtein({0}, {1})", self.any("string", depth), self.any("string", depth))
        if choice == "length":
            return made("int", "length({0})", self.any("string", depth))
        if choice == "part":
            part = self.choose.pick(("year", "month", "day", "dayofweek"))
            duck = f"({part}({{0}}) + 1)" if part == "dayofweek" else f"{part}({{0}})"
            return made("int", f"{part}({{0}})", self.any("date", depth), duck=duck)
        if choice == "diff":
            dates = self.any("date", depth), self.any("date", depth)
            return made("int", "datediff({0}, {1})", *dates, duck="({0} - {1})")
        if choice == "hour":
            part = self.choose.pick(("hour", "minute", "day"))
            if self.choose.chance(30):
                a, b = self.any("timestamp", depth), self.leaf("timestamp")
                return made("int", f"EXTRACT({part} FROM {{0}} - {{1}})", a, b, duck=f"{part}({{0}} - {{1}})")
            return made("int", f"{part}({{0}})", self.any("timestamp", depth))
        if choice == "cast":
            of = self.choose.pick(("bool", "decimal", "double"))
            duck = "CAST({0} AS INT)" if of == "bool" else "CAST(trunc({0}) AS BIGINT)"
            a = self.any(of, depth)
            # The decimals that columns hold fit an INT; their sums may not.
            return made("int", "CAST({0} AS INT)" if of != "decimal" else "CAST({0} AS BIGINT)", a, duck=duck)
        if choice == "try":
            return made("int", "TRY_CAST({0} AS BIGINT)", self.any("string", depth))
        if choice == "parsed":
            return self.read("int", depth)
        if choice == "iso":
            part = self.choose.pick(("ISODOW", "ISOYEAR", "CENTURY", "DOY"))
            return made("int", f"EXTRACT({part} FROM {{0}})", self.any("date", depth))
        a = self.any("int", depth)
        if choice == "shift":
            form = self.choose.pick((("(({0} & 7) << 2)",) * 2, ("shiftright({0} & 7, 1)", "(({0} & 7) >> 1)")))
            return made("int", form[0], a, duck=form[1])
        if choice == "attempt":
            return made("int", "try_add({0}, {1})", a, self.any("int", depth), duck="({0} + {1})")
        if choice == "bits":
            return made("int", f"({{0}} {self.choose.pick(('&', '|'))} {{1}})", a, self.any("int", depth))
        if choice == "text":
            return made("int", f"CAST(CAST({{0}} AS STRING) AS {self.choose.pick(('BIGINT', 'INT'))})", a)
        if choice == "sign":
            return made("int", "CASE {0} WHEN 0 THEN 0 WHEN 1 THEN {0} ELSE 2 END", a)
        if choice == "mod":
            return made("int", "({0} % 3)", a)
        if choice == "abs":
            return made("int", "abs({0})", a)
        if choice == "div":
            return made("int", "({0} DIV 2)", a, duck="({0} // 2)")
        b = self.divisor(depth)
        return made(
            "int",
            "CASE WHEN {1} <> 0 THEN {0} DIV {1} END",
            a,
            b,
            duck="CASE WHEN {1} <> 0 THEN {0} // {1} END",
        )

    def ratio(self, depth: int) -> Term:
        a = self.any("int", depth)
        if self.choose.chance(50):
            return made("ratio", "({0} / 3)", a)
        return made("ratio", "CASE WHEN {1} <> 0 THEN {0} / {1} END", a, self.divisor(depth))

    def divisor(self, depth: int) -> Term:
        """An integer, which may be 0."""
        return self.any("int", depth)

    def read(self, kind: str, depth: int) -> Term:
        """A string read as a value, with a guard for strings that are not one."""
        a = self.any("string", depth)
        if kind == "int" and self.choose.chance(30):
            return made("int", "COALESCE(length({0}) - 1, CAST({0} AS INT))", a, duck="(length({0}) - 1)")
        test, value = read(self.choose, kind, a)
        spark = self.choose.pick(("CASE WHEN {0} THEN {1} END", "IF({0} IS NOT TRUE, NULL, {1})"))
        case = made(kind, spark, test, value, duck="CASE WHEN {0} THEN {1} END")
        return replace(case, precision=value.precision, scale=value.scale)

    def decimals(self, kind: str, depth: int) -> Term:
        a = self.any("decimal", depth)
        op = self.choose.pick(("+", "-", "*", "neg", "int", "round"))
        if op == "neg":
            return made("decimal", "(-{0})", a, precision=a.precision, scale=a.scale)
        if op == "round":
            scale = min(a.scale, 1)
            return made("decimal", "round({0}, 1)", a, precision=a.precision + 1, scale=scale)
        if op == "int":
            if a.precision > 17:
                return a
            b = self.leaf("int")
            return made("decimal", "({0} + {1})", a, b, precision=max(a.precision, 20 + a.scale) + 1, scale=a.scale)
        b = self.any("decimal", depth)
        if op == "*":
            if a.precision + b.precision > 17 or a.scale + b.scale > 6:
                return a
            return made(
                "decimal",
                "({0} * {1})",
                a,
                b,
                precision=a.precision + b.precision + 1,
                scale=a.scale + b.scale,
            )
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return made("decimal", f"({{0}} {op} {{1}})", a, b, precision=whole + scale + 1, scale=scale)

    def string(self, kind: str, depth: int) -> Term:
        a = self.any("string", depth)
        forms = ("upper", "concat", "substring", "cast", "dates", "lower", "trim", "replace", "bool", "regexp", "bytes")
        choice = self.choose.pick(forms)
        if choice == "bytes":
            spark, duck = self.choose.pick(
                (
                    ("md5({0})", "md5({0})"),
                    ("sha2({0}, 256)", "sha256({0})"),
                    ("base64({0})", "to_base64(encode({0}))"),
                    ("decode(unhex(hex({0})), 'utf-8')", "{0}"),
                )
            )
            return made("string", spark, a, duck=duck)
        if choice == "upper":
            return made("string", "upper({0})", a)
        if choice == "concat":
            return made("string", "({0} || {1})", a, self.any("string", depth))
        if choice in ("lower", "trim"):
            return made("string", f"{choice}({{0}})", a)
        if choice == "regexp":
            if self.choose.chance(50):
                return made("string", "regexp_extract({0}, '(a)(b?)', 2)", a)
            duck = r"regexp_replace({0}, '(a)|b', '\1c', 'g')"
            return made("string", "regexp_replace({0}, '(a)|b', '$1c')", a, duck=duck)
        if choice == "replace":
            return made("string", "replace({0}, 'a', 'bb')", a)
        if choice == "bool":
            return made("string", "CAST({0} AS STRING)", self.any("bool", depth))
        if choice == "substring":
            forms = ("substring({0}, 1, 1)", "substring({0}, 2, 3)", "left({0}, 2)", "right({0}, 1)", "ltrim({0})")
            return made("string", self.choose.pick(forms), a)
        if choice == "cast":
            return made("string", "CAST({0} AS STRING)", self.any("int", depth))
        return made("string", "CAST({0} AS STRING)", self.any("date", depth))

    def dates(self, kind: str, depth: int) -> Term:
        if self.choose.chance(20):
            return made("date", "CAST({0} AS DATE)", self.any("timestamp", depth))
        a = self.any("date", depth)
        if self.choose.chance(50):
            return made("date", "date_add({0}, 1)", a, duck="({0} + 1)")
        duck = "CAST({0} + INTERVAL 1 MONTH AS DATE)"
        return made("date", "add_months({0}, 1)", a, duck=duck)

    def predicate(self, kind: str = "bool", depth: int = 1) -> Term:
        """A condition, mostly a comparison."""
        kinds = self.kinds(KINDS) or ["int"]
        forms = ("compare", "compare", "null", "in", "between", "like", "and", "or", "not", "is", "guard")
        choice = self.choose.pick(forms)
        if choice == "guard":
            kind = self.choose.pick(("int", *_READ))
            test, value = read(self.choose, kind, self.any("string", max(depth - 1, 0)))
            guards = ("({0} AND {1} > {2})", "({0} IS NOT TRUE OR {1} > {2})", "({0} AND {1} <> 0 AND 10 / {1} > 1)")
            guard = self.choose.pick(guards[: 3 if kind == "int" else 2])
            duck = guard.replace("10 / {1}", "10 / NULLIF({1}, 0)")
            return made("bool", guard, test, value, constant(self.choose, kind), duck=duck)
        if choice == "or" and depth > 0 and self.choose.chance(40):
            a, b = self.two("int")
            flat = "(NOT {0} < {1} OR {2} AND {1} <= {0} = {2})"
            duck = "((NOT ({0} < {1})) OR ({2} AND (({1} <= {0}) = {2})))"
            return made("bool", flat, a, b, self.predicate("bool", depth - 1), duck=duck)
        if choice in ("and", "or") and depth > 0:
            sides = self.predicate("bool", depth - 1), self.predicate("bool", depth - 1)
            return made("bool", f"({{0}} {choice.upper()} {{1}})", *sides)
        if choice == "not" and depth > 0:
            return made("bool", "(NOT {0})", self.predicate("bool", depth - 1))
        of = self.choose.pick(kinds)
        if of == "timestamp" and self.choose.chance(20):
            below = max(depth - 1, 0)
            sign = self.choose.pick(("<", ">=", "=", "<=>"))
            duck = "({0} IS NOT DISTINCT FROM {1})" if sign == "<=>" else f"({{0}} {sign} {{1}})"
            return made("bool", f"({{0}} {sign} {{1}})", self.interval(below), self.interval(below), duck=duck)
        a = self.any(of, max(depth - 1, 0))
        if choice == "null":
            return made("bool", f"({{0}} IS {self.choose.pick(('', 'NOT '))}NULL)", a)
        if choice == "like":
            # DuckDB 2.0 takes CASE ... END LIKE '%b' for TRUE where the CASE is NULL.
            a = self.leaf("string")
            sign = self.choose.pick(("LIKE", "LIKE", "NOT LIKE", "RLIKE"))
            if sign == "RLIKE":
                pattern = self.choose.pick(("^a", "b$", "^.$", "(a|b)b*", "^[^b]?$"))
                return made("bool", f"({{0}} RLIKE '{pattern}')", a, duck=f"regexp_matches({{0}}, '{pattern}')")
            if self.choose.chance(15):
                how, word = self.choose.pick((("ANY", "OR"), ("ALL", "AND")))
                duck = f"({{0}} LIKE 'a%' {word} {{0}} LIKE '%b')"
                return made("bool", f"({{0}} LIKE {how} ('a%', '%b'))", a, duck=duck)
            pattern = self.choose.pick(("a%", "%b", "_", "%", "%a%b%", "_%_", "%_%a"))
            return made("bool", f"({{0}} {sign} '{pattern}')", a)
        if choice == "in":
            negated = self.choose.pick(("", "NOT "))
            if self.choose.chance(20):
                b, c, quantified = constant(self.choose, of), self.leaf(of), "<> ALL" if negated else "= ANY"
                duck = f"({{0}} {negated}IN ({{1}}, {{2}}))"
                return made("bool", f"({{0}} {quantified} (ARRAY[{{1}}, {{2}}]))", a, b, c, duck=duck)
            return made("bool", f"({{0}} {negated}IN ({{1}}, {{2}}))", a, constant(self.choose, of), self.leaf(of))
        if choice == "between" and of != "bool" and self.choose.chance(20):
            duck = "(({0} >= {1} AND {0} <= {2}) OR ({0} >= {2} AND {0} <= {1}))"
            b, c = constant(self.choose, of), self.leaf(of)
            return made("bool", "({0} BETWEEN SYMMETRIC {1} AND {2})", a, b, c, duck=duck)
        if choice == "between" and of != "bool":
            return made("bool", "({0} BETWEEN {1} AND {2})", a, constant(self.choose, of), self.leaf(of))
        b = self.any(of, max(depth - 1, 0))
        if not has_column(a) or a == b:
            a, b = self.two(of)
        if choice == "is":
            return made("bool", "({0} <=> {1})", a, b, duck="({0} IS NOT DISTINCT FROM {1})")
        op = self.choose.pick(("=", "<>", "<", "<=", ">", ">="))
        return made("bool", f"({{0}} {op} {{1}})", a, b)


def has_column(term: Term) -> bool:
    """True if the term, whose columns are all qualified, reads a column."""
    return "." in re.sub(r"\d\.\d", "", term.text.spark)


def read(choose: Choices, kind: str, string: Term) -> tuple[Term, Term]:
    """Whether a string is a value of a kind; and the value, for which DuckDB also accepts other strings."""
    texts, of = _READ[kind]
    test = made("bool", f"({{0}} RLIKE {texts})", string, duck=f"regexp_matches({{0}}, {texts})")
    spark = "to_date({0})" if kind == "date" and choose.chance(40) else f"CAST({{0}} AS {of})"
    digits = {"precision": 6, "scale": 2} if kind == "decimal" else {}
    return test, made(kind, spark, string, duck=f"TRY_CAST({{0}} AS {of})", **digits)


def _wider(term: Term, a: Term, b: Term) -> Term:
    """The term with enough digits for both decimals."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return replace(term, precision=whole + scale if term.kind == "decimal" else 0, scale=scale)
