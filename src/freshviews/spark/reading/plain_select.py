"""Parses a *plain SELECT*, which needs no Spark: it reads rows of one view, with filter, order and limit.

::

    SELECT * | [v.]column [AS name], ... | COUNT(*) [AS name]
    FROM view [[AS] v] [WHERE condition] [ORDER BY column | position [ASC | DESC] [NULLS FIRST | LAST], ...]
    [LIMIT n] [OFFSET m]

A condition is made of comparisons, ``IS [NOT] NULL``, ``[NOT] BETWEEN``, ``[NOT] IN`` and ``[NOT] LIKE``, with AND, OR
and NOT. The grammar must never accept a text that Spark refuses or reads differently. So it has no comments, no escapes
in strings, no exponents, and no keywords as names.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError

GRAMMAR = r"""
start: "SELECT"i what "FROM"i name [alias] ["WHERE"i condition] ["ORDER"i "BY"i sort ("," sort)*] [limit] [offset] ";"*
what: [name "."] "*" -> star
    | WORD "(" "*" ")" ["AS"i name] -> count
    | item ("," item)* -> items
item: column ["AS"i name]
alias: ["AS"i] name
sort: (column | NUMBER) [ASCENDING | DESCENDING] ["NULLS"i (FIRST | LAST)]
limit: "LIMIT"i NUMBER
offset: "OFFSET"i NUMBER

?condition: conjunction | conjunction ("OR"i conjunction)+ -> either
?conjunction: negation | negation ("AND"i negation)+ -> both
?negation: predicate | "NOT"i negation -> negated
?predicate: "(" condition ")"
    | column -> flag
    | value SIGN value -> comparison
    | value "IS"i [NOT] "NULL"i -> is_null
    | value [NOT] "BETWEEN"i value "AND"i value -> between
    | value [NOT] "IN"i "(" constant ("," constant)* ")" -> within
    | value [NOT] "LIKE"i STRING -> like
?value: column | constant
column: [name "."] name
constant: MINUS NUMBER -> negative | NUMBER -> number | STRING -> string | WORD STRING -> typed
    | "TRUE"i -> true | "FALSE"i -> false
name: WORD | QUOTED

NOT: "NOT"i
ASCENDING: "ASC"i
DESCENDING: "DESC"i
FIRST: "FIRST"i
LAST: "LAST"i
SIGN: "<>" | "!=" | "<=" | ">=" | "<" | ">" | "="
MINUS: "-"
WORD: /[a-z_][a-z0-9_]*/i
QUOTED: /`[^`]+`/
NUMBER: /(?<![.\w])[0-9]+(\.[0-9]+)?(?![.\w])/
STRING: /'[^'\\]*'(?!')/
%ignore /[ \t\r\n]+/
"""

_WORDS = """
    ALL ALTER AND ANTI ANY AS ASC AUTHORIZATION BETWEEN BOTH BY CASE CAST CHECK CLUSTER COLLATE COLUMN CONSTRAINT
    CREATE CROSS CUBE CURRENT_DATE CURRENT_PATH CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DESC DISTINCT DISTRIBUTE
    DIV DROP ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FILTER FIRST FOR FOREIGN FROM FULL FUNCTION GRANT GROUP
    GROUPING HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEADING LEFT LIKE LIMIT
    MATCH_RECOGNIZE MINUS NATURAL NOT NULL NULLS OFFSET ON ONLY OR ORDER OUTER OVER OVERLAPS PIVOT PRIMARY QUALIFY
    REFERENCES REGEXP RIGHT RLIKE ROW ROWS SELECT SEMI SESSION_USER SET SETMINUS SOME SORT STREAM SYSTEM_TIME
    SYSTEM_VERSION TABLE TABLESAMPLE THEN TIME TO TRAILING TRANSFORM TRUE UNION UNIQUE UNKNOWN UNPIVOT USER USING
    VALUES VERSION WATERMARK WHEN WHERE WINDOW WITH WITHIN
"""
KEYWORDS = frozenset(_WORDS.split())
"""Words that are not accepted as names: reserved words of Spark, and words that may begin a clause."""


@dataclass(frozen=True)
class Column:
    """A column as written, perhaps with the name of its table."""

    table: str | None
    name: str


@dataclass(frozen=True)
class Constant:
    """A constant. ``kind``: number, string, date, timestamp or boolean; a date and a timestamp are texts."""

    kind: str
    value: Decimal | str | bool


@dataclass(frozen=True)
class Flag:
    """A BOOLEAN column as a condition."""

    column: Column


@dataclass(frozen=True)
class Comparison:
    """``sign``: one of = <> < <= > >=."""

    sign: str
    left: Column | Constant
    right: Column | Constant


@dataclass(frozen=True)
class IsNull:
    value: Column | Constant


@dataclass(frozen=True)
class Within:
    """``value IN (members)``."""

    value: Column | Constant
    members: tuple[Constant, ...]


@dataclass(frozen=True)
class Like:
    value: Column | Constant
    pattern: str


@dataclass(frozen=True)
class Negated:
    term: Condition


@dataclass(frozen=True)
class Joined:
    """Terms joined by AND, if ``every``, or by OR."""

    every: bool
    terms: tuple[Condition, ...]


Condition = Flag | Comparison | IsNull | Within | Like | Negated | Joined


@dataclass(frozen=True)
class Item:
    """A column of the result, and its name."""

    column: Column
    name: str


@dataclass(frozen=True)
class Star:
    """All columns of the view."""

    table: str | None


@dataclass(frozen=True)
class Count:
    """``COUNT(*)``, and the name of its column."""

    name: str


@dataclass(frozen=True)
class Sort:
    """A key of ORDER BY: a column, or a position in the result, from 1."""

    key: Column | int
    descending: bool
    nulls_last: bool


@dataclass(frozen=True)
class PlainSelect:
    """A SELECT over one view. ``alias``: the name of the view within it, if it has another one there."""

    what: tuple[Item, ...] | Star | Count
    view: str
    alias: str | None
    where: Condition | None
    order: tuple[Sort, ...]
    limit: int | None
    offset: int


class NotPlain(Exception):
    """The SELECT is not plain: Spark must read it."""


class UnknownName(NotPlain):
    """A SELECT that no engine accepts; the message names the unknown name."""


def parsed(sql: str) -> PlainSelect:
    """Read a plain SELECT. Raises NotPlain if it is more than that, or has an error."""
    try:
        made: PlainSelect = _Trees().transform(_parser().parse(sql))
        return made
    except (LarkError, RecursionError) as error:
        raise NotPlain from error


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", maybe_placeholders=True)


@v_args(inline=True)
class _Trees(Transformer[Token, Any]):
    """Parse trees to the classes above. Lark wraps its exceptions in a LarkError."""

    star, alias, negated, flag, column = Star, str, Negated, Flag, Column

    def start(self, what: Any, view: str, alias: str | None, where: Condition | None, *rest: Any) -> PlainSelect:
        *order, limit, offset = rest
        return PlainSelect(what, view, alias, where, tuple(filter(None, order)), limit, offset or 0)

    def count(self, function: str, name: str | None) -> Count:
        if function.upper() != "COUNT":
            raise NotPlain
        return Count(name or "count(1)")

    def items(self, *items: Item) -> tuple[Item, ...]:
        return items

    def item(self, column: Column, name: str | None) -> Item:
        return Item(column, name or column.name)

    def sort(self, key: Any, direction: Token | None, nulls: Token | None) -> Sort:
        descending = direction is not None and direction.type == "DESCENDING"
        nulls_last = descending if nulls is None else nulls.type == "LAST"
        return Sort(_whole(key) if isinstance(key, Token) else key, descending, nulls_last)

    def limit(self, digits: str) -> int:
        return _whole(digits)

    offset = limit

    def either(self, *terms: Condition) -> Joined:
        return Joined(False, terms)

    def both(self, *terms: Condition) -> Joined:
        return Joined(True, terms)

    def comparison(self, left: Any, sign: str, right: Any) -> Comparison:
        return Comparison("<>" if sign == "!=" else str(sign), left, right)

    def is_null(self, value: Any, negated: Token | None) -> Condition:
        return _negated(negated, IsNull(value))

    def between(self, value: Any, negated: Token | None, low: Any, high: Any) -> Condition:
        return _negated(negated, Joined(True, (Comparison(">=", value, low), Comparison("<=", value, high))))

    def within(self, value: Any, negated: Token | None, *members: Constant) -> Condition:
        return _negated(negated, Within(value, members))

    def like(self, value: Any, negated: Token | None, pattern: str) -> Condition:
        return _negated(negated, Like(value, pattern[1:-1]))

    def number(self, digits: str) -> Constant:
        return Constant("number", Decimal(digits))

    def negative(self, minus: str, digits: str) -> Constant:
        return Constant("number", Decimal(digits).copy_negate())

    def string(self, quoted: str) -> Constant:
        return Constant("string", quoted[1:-1])

    def typed(self, word: str, quoted: str) -> Constant:
        if word.lower() not in ("date", "timestamp"):
            raise NotPlain
        return Constant(word.lower(), quoted[1:-1])

    def true(self) -> Constant:
        return Constant("boolean", True)

    def false(self) -> Constant:
        return Constant("boolean", False)

    def name(self, word: str) -> str:
        if word.startswith("`"):
            return word[1:-1]
        if word.upper() in KEYWORDS:
            raise NotPlain
        return str(word)


def _negated(sign: Token | None, term: Condition) -> Condition:
    return term if sign is None else Negated(term)


def _whole(digits: str) -> int:
    """A whole number as in LIMIT."""
    if not digits.isdigit() or int(digits) >= 2**31:
        raise NotPlain
    return int(digits)
