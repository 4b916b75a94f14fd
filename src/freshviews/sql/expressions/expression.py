"""Converts a scalar expression of SQL to a typed ``Expr`` over columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isinf
from typing import Any

from sqlglot import exp

from freshviews.catalog.functions import FunctionDef
from freshviews.catalog.known_functions import function_named
from freshviews.expr.binary import unhex
from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.records import dataclass
from freshviews.sql.expressions import arithmetic, intervals, logic
from freshviews.sql.expressions.attempts import try_cast
from freshviews.sql.expressions.build import FALSE, TRUE, VOID, Fault, Refusal, call, key, null, perhaps, retyped, text
from freshviews.sql.expressions.calls import arguments_of, value_of
from freshviews.sql.expressions.cast import cast, literal_decimal
from freshviews.sql.expressions.functions import (
    LAZY,
    bits_and,
    bits_not,
    bits_or,
    bits_xor,
    concatenated,
    date_part,
    scalar,
    trimmed,
)
from freshviews.sql.expressions.times import seconds_between
from freshviews.sql.text.parse import Node, SqlText, is_list, string_of
from freshviews.sql.text.refuse import GROUPINGS, is_aggregate_name
from freshviews.sql.text.terms import follows
from freshviews.sql.text.typenames import type_of
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    RESERVED,
    STRING,
    TIMESTAMP,
    SqlType,
)

_GREATEST_FLOAT = 3.4028235677973366e38
"""Half a unit above the greatest finite FLOAT: greater values round to infinity."""

COMPARISONS: dict[type[Node], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

_ARITHMETIC: dict[type[Node], Callable[[Expr, Expr], Expr]] = {
    exp.Add: arithmetic.add,
    exp.Sub: arithmetic.subtract,
    exp.Mul: arithmetic.multiply,
}

_DIVISION: dict[type[Node], Callable[[Expr, Expr], Expr]] = {
    exp.Div: arithmetic.divide,
    exp.IntDiv: arithmetic.integral_divide,
    exp.Mod: arithmetic.remainder,
}

_BITS: dict[type[Node], Callable[[Expr, Expr], Expr]] = {
    exp.BitwiseAnd: bits_and,
    exp.BitwiseOr: bits_or,
    exp.BitwiseXor: bits_xor,
}

WITHIN_GROUP = "it is accepted for LISTAGG, STRING_AGG, PERCENTILE_CONT, PERCENTILE_DISC and MODE"

_REFUSED: dict[type[Node], tuple[str, str]] = {
    exp.Window: ("a window function (OVER) here", "write the window function in SELECT, ORDER BY or QUALIFY"),
    exp.Exists: ("EXISTS here", "write EXISTS or NOT EXISTS as a separate AND term of WHERE"),
    exp.Subquery: ("a subquery as a value here", "write the subquery in WHERE, or put the subquery in FROM and join"),
    exp.Select: ("a subquery as a value here", "write the subquery in WHERE, or put the subquery in FROM and join"),
    exp.Any: ("ANY (subquery)", "join with the relation"),
    exp.All: ("ALL (subquery)", "join with the relation"),
    exp.Star: ("* here", "name the columns; * is accepted in SELECT and in COUNT"),
    exp.Lambda: ("a lambda", "scalar expressions over columns are accepted"),
    exp.SimilarTo: ("SIMILAR TO", "RLIKE takes a regular expression, as in s RLIKE '^(a|b).*$', and LIKE a pattern"),
    exp.Array: ("an array as a value", "columns have plain types; IN (1, 2) and = ANY (ARRAY[1, 2]) compare with each"),
    exp.Tuple: ("a row of values here", "write one value; (a, b) = (1, 2) and (a, b) IN ((1, 2)) compare rows"),
    exp.Bracket: ("an element of an array or map", "columns have plain types"),
    exp.Placeholder: ("a parameter", "write the value"),
    exp.Parameter: ("a parameter", "write the value"),
}

_LONG_LIST = 1000
"""Most members of an IN that are compared one by one."""


_WITH_UNIT = frozenset(("date_add", "dateadd", "timestampadd", "datediff", "date_diff", "timestampdiff"))


def is_unit(node: Node) -> bool:
    """True for a bare word that is a unit, not a column, as in ``timestampadd(MONTH, 1, t)``."""
    call = node.parent
    if not isinstance(node, exp.Column) or not isinstance(call, exp.Anonymous):
        return False
    return call.name.lower() in _WITH_UNIT and len(call.expressions) == 3 and call.expressions[0] is node


def is_subquery_value(node: Node) -> bool:
    """True for a window function, a subquery as a value, or IN, ANY, SOME or ALL of a subquery with its operand."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if type(node) in COMPARISONS:
        return isinstance(node.expression, (exp.Any, exp.All))
    return isinstance(node, (exp.Subquery, exp.Query, exp.Exists, exp.Window))


@dataclass(frozen=True)
class Binder:
    """Binds expressions of one clause, which ``clause`` names in errors. ``aggregate`` and ``subquery`` bind calls and
    subqueries; without them these are refused."""

    text: SqlText
    resolve: Callable[[exp.Column], Expr]
    clause: str
    aggregate: Callable[[Node], Expr] | None = None
    subquery: Callable[[Node, Callable[[Node], Expr]], Expr] | None = None
    group: Callable[[Node], Expr | None] | None = None
    """The value that replaces a node, or None to bind the node itself."""

    def bind(self, node: Node) -> Expr:
        """The expression as a value. Raises SqlError or UnsupportedSql at the node that is wrong."""
        try:
            return self._bound(node)
        except Refusal as refusal:
            raise self.text.unsupported(node, refusal.what, refusal.instead) from None
        except Fault as fault:
            raise self.text.error(node, str(fault)) from None

    def _value(self, node: Node) -> Expr:
        """An operand or an argument: an integer constant may keep its written digits."""
        bound = self.bind(node)
        return replace(bound, written=self._is_whole(node.unnest())) if isinstance(bound, Literal) else bound

    def _is_whole(self, node: Node) -> bool:
        """True for an integer constant without a suffix, or with L or S; one with Y has a TINYINT's digits."""
        if isinstance(node, exp.Cast):
            return self.text.of(node)[-1] in "lLsS" and isinstance(node.this, exp.Literal) and not node.this.is_string
        return isinstance(node, exp.Literal) and not node.is_string

    def condition(self, node: Node, casts: bool = False) -> Expr:
        """A condition, or a term that AND may skip after another one. ``casts``: cast other types to BOOLEAN, as HAVING
        does."""
        with perhaps(follows(node)):
            bound = self.bind(node)
        try:
            return cast(bound, BOOLEAN) if casts else logic.condition(bound, self.clause)
        except Fault as fault:
            raise self.text.error(node, str(fault)) from None

    def _bound(self, node: Node) -> Expr:
        found = None if self.group is None else self.group(node)
        if found is not None:
            return found
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Star):
                raise self.text.unsupported(node, *_REFUSED[exp.Star])
            return self.resolve(node)
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Boolean):
            return TRUE if node.this else FALSE
        if isinstance(node, exp.Null):
            return null(VOID)
        if isinstance(node, exp.Interval):
            return self._interval(node)
        if type(node) in _ARITHMETIC:
            return _ARITHMETIC[type(node)](self._value(node.this), self._value(node.expression))
        if isinstance(node, exp.Neg):
            return arithmetic.negative(self.bind(node.this))
        if type(node) in _DIVISION:
            return _DIVISION[type(node)](self._value(node.this), self._value(node.expression))
        if isinstance(node, (exp.Anonymous, exp.Filter)):
            return self._call(node)
        if self.subquery is not None and is_subquery_value(node):
            return self.subquery(node, self.bind)
        if type(node) in _REFUSED:
            raise self.text.unsupported(node, *_REFUSED[type(node)])
        return self._predicate(node)

    def _predicate(self, node: Node) -> Expr:
        if type(node) in COMPARISONS:
            listed = members_of_list(node.expression)
            if listed is not None:
                every, members = listed
                value, sign = self.bind(node.this), COMPARISONS[type(node)]
                compared = [logic.compare(sign, value, self.bind(member)) for member in members]
                return logic.all_of(compared) if every else logic.any_of(compared)
            apart = self._apart(node.this, node.expression)
            if apart is not None:
                return logic.compare(COMPARISONS[type(node)], *apart)
            self._refuse_quantified(node)
            if isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple):
                return self._rows_compared(node, node.expression)
            return logic.compare(COMPARISONS[type(node)], self.bind(node.this), self.bind(node.expression))
        if isinstance(node, exp.And):
            return logic.all_of(self._terms(node))
        if isinstance(node, exp.Or):
            return logic.one_of(self._terms(node))
        if isinstance(node, exp.Not):
            return logic.negation(self.bind(node.this))
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.NullSafeEQ):
            return logic.null_safe_equal(self.bind(node.this), self.bind(node.expression))
        if isinstance(node, exp.NullSafeNEQ):
            return logic.negation(logic.null_safe_equal(self.bind(node.this), self.bind(node.expression)))
        if isinstance(node, exp.Between):
            bounds = [self._apart(node.this, node.args[which]) for which in ("low", "high")]
            if bounds[0] is not None and bounds[1] is not None and not node.args.get("symmetric"):
                return logic.both(logic.compare(">=", *bounds[0]), logic.compare("<=", *bounds[1]))
            value = self.bind(node.this)
            low = self.bind(node.args["low"])
            high = self._after(node.args["high"], value, low)
            if node.args.get("symmetric"):
                return logic.either(_between(value, low, high), _between(value, high, low))
            return _between(value, low, high)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, (exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)):
            return self._like(node)
        return self._special(node)

    def _apart(self, difference: Node, size: Node) -> tuple[Expr, Expr] | None:
        """``a - b`` of two moments and a constant INTERVAL, as ``a`` and ``b + interval``, which an order finds; None
        for other comparisons, and for intervals so long that the sum may not be a TIMESTAMP."""
        difference = difference.unnest()
        if not isinstance(difference, exp.Sub) or not any(isinstance(one, exp.Interval) for one in size.walk()):
            return None
        length = self.bind(size)
        micros = intervals.constant_micros(length)
        if micros is None or abs(micros) > _LONGEST:
            return None
        a, b = self.bind(difference.this), self.bind(difference.expression)
        if not {a.type, b.type} <= {DATE, TIMESTAMP, STRING} or a.type == b.type == STRING:
            return None
        return cast(a, TIMESTAMP), intervals.shifted(cast(b, TIMESTAMP), length)

    def _rows_compared(self, node: Node, other: exp.Tuple) -> Expr:
        """A row of values compared with another one; NULLs in them are equal."""
        rows = node.this.expressions, other.expressions
        if len(rows[0]) != len(rows[1]):
            raise Fault(f"a row of {len(rows[0])} values cannot be compared with a row of {len(rows[1])}")
        if not isinstance(node, (exp.EQ, exp.NEQ, exp.In)):
            raise self.text.unsupported(node, f"{COMPARISONS[type(node)]} of rows of values", "compare each value")
        equal = [logic.null_safe_equal(self.bind(a), self.bind(b)) for a, b in zip(*rows, strict=True)]
        return logic.negation(logic.all_of(equal)) if isinstance(node, exp.NEQ) else logic.all_of(equal)

    def _terms(self, node: exp.Connector) -> list[Expr]:
        """The bound terms of a chain of AND, or of OR. A part of it that ``group`` replaces is one term."""
        terms = [node.expression]
        left = node.this
        while type(left) is type(node) and (self.group is None or self.group(left) is None):
            terms.append(left.expression)
            left = left.this
        return [self.bind(left), *(self.bind_perhaps(term) for term in reversed(terms))]

    def _after(self, node: Node, *compared: Expr) -> Expr:
        """The value compared last with others, which may exclude it if they are constants."""
        with perhaps(all(isinstance(one, Literal) for one in compared)):
            return self.bind(node)

    def bind_perhaps(self, node: Node) -> Expr:
        """A part that is evaluated for some rows only."""
        with perhaps():
            return self.bind(node)

    def _special(self, node: Node) -> Expr:
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, (exp.Cast, exp.TryCast)):
            if node.args.get("format"):
                raise self.text.unsupported(node, "CAST with a FORMAT", "leave FORMAT out, or use date_format")
            to = type_of(self.text, node.args["to"])
            if to.is_float and isinstance(node.this, exp.Literal) and self.text.of(node)[-1] in "dDfF":
                return _float(node.this, to)
            made = (try_cast if node.args.get("safe") else cast)(self.bind(node.this), to)
            if isinstance(made, Call) and isinstance(node.this, exp.Literal) and self.text.of(node)[-1] in "'\"":
                raise Fault(f"{self.text.of(node)} is not a {to}")
            return made
        if type(node) in _BITS:
            return _BITS[type(node)](self.bind(node.this), self.bind(node.expression))
        if isinstance(node, exp.BitwiseNot):
            return bits_not(self.bind(node.this))
        if isinstance(node, exp.DPipe):
            return concatenated(self.bind(node.this), self.bind(node.expression))
        if isinstance(node, exp.HexString):
            return _bytes(self.text.of(node)[2:-1])
        if isinstance(node, exp.Extract):
            between = node.expression.unnest()
            if node.this.name.lower() == "epoch" and isinstance(between, exp.Sub):
                return seconds_between(self.bind(between.expression), self.bind(between.this))
            return date_part(node.this.name, self.bind(node.expression))
        if isinstance(node, exp.Trim):
            characters = node.expression
            side = str(node.args.get("position") or "")
            return trimmed(side, self.bind(node.this), self.bind(characters) if characters is not None else None)
        if isinstance(node, exp.WithinGroup):
            raise self.text.unsupported(node, f"{node.this.name.upper()}(...) WITHIN GROUP", WITHIN_GROUP)
        kind = type(node).__name__.upper()
        instead = "write it with columns, constants, operators, CASE, CAST and functions"
        raise self.text.unsupported(node, f"{kind}, as in {self.text.of(node)},", instead)

    def _call(self, node: Node) -> Expr:
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.Window):
            raise self.text.unsupported(node, *_REFUSED[exp.Window])
        if isinstance(inner, exp.WithinGroup):
            return self._special(inner)
        if not isinstance(inner, exp.Anonymous):
            raise self.text.error(node, "FILTER (WHERE ...) is accepted only after an aggregate function")
        name = inner.name.lower()
        if is_aggregate_name(name) or (name in GROUPINGS and inner is node):
            if self.aggregate is None:
                what = "an aggregate function" if is_aggregate_name(name) else name.upper()
                raise self.text.error(
                    node, f"{what} cannot stand in {self.clause}; write {what} only in SELECT or HAVING"
                )
            return self.aggregate(node)
        if isinstance(node, exp.Filter):
            raise self.text.error(
                node, f"FILTER (WHERE ...) is accepted only after an aggregate function, not after {name}"
            )
        for argument in inner.expressions:
            if isinstance(argument, exp.Distinct):
                raise self.text.error(argument, f"DISTINCT is accepted only in an aggregate function, not in {name}")
        function = function_named(name)
        if function is not None:
            given = [None if node is None else self._value(node) for node in arguments_of(function, inner.expressions)]
            return value_of(function, given, bind_body)
        for argument in inner.expressions:
            if isinstance(argument, exp.Kwarg):
                raise self.text.error(
                    argument, f"{name} takes arguments by position alone; leave {argument.name} => out"
                )
        if name in LAZY and inner.expressions:
            first = self._value(inner.expressions[0])
            with perhaps():
                return scalar(name, [first, *map(self._value, inner.expressions[1:])])
        if name in _WITH_UNIT and len(inner.expressions) == 3 and not is_unit(inner.expressions[0]):
            raise Fault(f"{name} with three arguments takes a unit first, as in {name}(MONTH, ...)")
        return scalar(name, [text(arg.name) if is_unit(arg) else self._value(arg) for arg in inner.expressions])

    def _is(self, node: exp.Is) -> Expr:
        value, what = self.bind(node.this), node.expression
        if isinstance(what, exp.Null):
            return call("is_null", (value,), BOOLEAN) if value.nullable else FALSE
        flag = logic.condition(value, "IS TRUE")
        return call("is_true", (flag if what.this else logic.negation(flag),), BOOLEAN)

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None or node.args.get("unnest") is not None or node.args.get("field"):
            raise self.text.unsupported(
                node, "IN (subquery) here", "write IN or NOT IN as a separate AND term of WHERE"
            )
        if not node.expressions:
            raise Fault("IN takes at least one value, as in a IN (1, 2)")
        if isinstance(node.this, exp.Tuple):
            rows = [member for member in node.expressions if isinstance(member, exp.Tuple)]
            if len(rows) < len(node.expressions):
                raise Fault("(a, b) IN takes rows of the same length, as in (a, b) IN ((1, 2), (3, 4))")
            return logic.any_of([self._rows_compared(node, row) for row in rows])
        value = self.bind(node.this)
        first = node.expressions[0]
        if is_list(first):
            members = _constants(first)
        else:
            members = [self.bind(first), *(self._after(member, value) for member in node.expressions[1:])]
        to = logic.common_type([value, *{member.type: member for member in members}.values()], "IN")
        if not to.is_decimal:
            value, members = cast(value, to), [cast(member, to) for member in members]
        if len(members) <= _LONG_LIST:
            return logic.any_of([logic.compare("=", value, member) for member in members])
        return _in_list(value, members, to)

    def _like(self, node: Node) -> Expr:
        escape = None
        if isinstance(node, exp.Escape):
            escape = self.bind(node.expression)
            if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
                raise Fault("ESCAPE takes one character, as in LIKE '10!%' ESCAPE '!'")
            node = node.this
        op = "rlike" if isinstance(node, exp.RegexpLike) else "ilike" if isinstance(node, exp.ILike) else "like"
        value = cast(self.bind(node.this), STRING)
        every, patterns = members_of_list(node.expression) or (False, [node.expression])
        if not patterns:
            raise Fault("LIKE ANY and LIKE ALL take patterns, as in LIKE ANY ('a%', 'b%')")
        more = () if escape is None else (escape,)
        tests = [call(op, (value, cast(self.bind(one), STRING), *more), BOOLEAN) for one in patterns]
        if node.args.get("negate"):
            # The parser wraps NOT RLIKE and NOT IN in a NOT node, but marks NOT LIKE in the node itself.
            tests = [logic.negation(test) for test in tests]
        return logic.all_of(tests) if every else logic.any_of(tests)

    def _case(self, node: exp.Case) -> Expr:
        subject = self.bind(node.this) if node.this is not None else None
        branches: list[tuple[Expr, Expr]] = []
        for branch in node.args["ifs"]:
            with perhaps(bool(branches)):
                when = self.bind(branch.this)
                test = when if subject is None else logic.compare("=", subject, when)
            branches.append((test, self.bind_perhaps(branch.args["true"])))
        otherwise = node.args.get("default")
        return self._choose(branches, otherwise)

    def _choose(self, branches: list[tuple[Expr, Expr]], otherwise: Node | None) -> Expr:
        with perhaps():
            return logic.choose(branches, null(VOID) if otherwise is None else self.bind(otherwise))

    def _interval(self, node: exp.Interval) -> Expr:
        unit, amount = node.args.get("unit"), node.this
        if unit is None and isinstance(amount, exp.Literal) and amount.is_string:
            return intervals.interval_of_text(str(amount.this))
        negative = isinstance(amount, exp.Neg)
        amount = amount.this if isinstance(amount, (exp.Neg, exp.Paren)) else amount
        if not isinstance(amount, exp.Literal) or not isinstance(unit, (exp.Var, exp.IntervalSpan)):
            raise self.text.unsupported(
                node, f"{self.text.of(node)}", "write a constant and one unit, as in INTERVAL '90' DAY"
            )
        if isinstance(unit, exp.IntervalSpan):
            made: Expr = intervals.interval_of_fields(str(amount.this), unit.this.name, unit.expression.name)
        else:
            made = intervals.interval_of(str(amount.this), unit.name)
        return arithmetic.negative(made) if negative else made

    def _refuse_quantified(self, node: Node) -> None:
        for side in (node.this, node.expression):
            if isinstance(side, (exp.Any, exp.All)):
                raise self.text.unsupported(side, *_REFUSED[type(side)])


def _between(value: Expr, low: Expr, high: Expr) -> Expr:
    return logic.both(logic.compare(">=", value, low), logic.compare("<=", value, high))


def bind_body(function: FunctionDef, text: SqlText, node: Node, values: Mapping[str, Expr]) -> Expr:
    """An expression of a function over the values of its parameters, by lower-case name. Raises SqlError."""

    def resolve(column: exp.Column) -> Expr:
        value = values.get(column.name.lower())
        if value is None or column.table.lower() not in ("", function.name.lower()):
            names = ", ".join(one.name for one in function.parameters) or "none"
            raise text.error(column, f"{text.of(column)} is unknown in {function.name}; its parameters: {names}")
        return value

    return Binder(text, resolve, f"the body of function {function.name}").bind(node)


def members_of_list(node: Node) -> tuple[bool, list[Node]] | None:
    """True for ANY or SOME and False for ALL of a list, and its members: ``= ANY (ARRAY[1])``, ``LIKE ALL ('a', 'b')``;
    None for another node."""
    inside: Any = None
    every = isinstance(node, exp.All)
    if isinstance(node, (exp.Any, exp.All)):
        inside = node.this
    elif isinstance(node, exp.Anonymous) and node.name.lower() in ("any", "some", "all") and len(node.expressions) == 1:
        every, inside = node.name.lower() == "all", node.expressions[0]
    else:
        return None
    while isinstance(inside, exp.Paren):
        inside = inside.this
    if isinstance(inside, (exp.Array, exp.Tuple)) or (
        isinstance(inside, exp.Anonymous) and inside.name.lower() == "array"
    ):
        return every, list(inside.expressions)
    if isinstance(node, (exp.Any, exp.All)) and isinstance(node.this, exp.Paren):
        return every, [inside]
    return None


def _bytes(digits: str) -> Expr:
    """X'0102', a BINARY."""
    found = unhex(digits)
    if found is None:
        raise Fault(f"X'{digits}' is not BINARY; hexadecimal digits are accepted")
    return Literal(found, BINARY)


def _float(node: exp.Literal, to: SqlType) -> Expr:
    """A constant such as 1.5D and 1.5F; 1e39F, which would be infinity, is refused."""
    value = float(node.name)
    if isinf(value) or (to == FLOAT and abs(value) > _GREATEST_FLOAT):
        raise Fault(f"{node.name}{to.name[0]} is greater than every {to}; write CAST('Infinity' AS {to}) for infinity")
    return cast(Literal(value, DOUBLE), to)


def _in_list(value: Expr, members: list[Expr], to: SqlType) -> Expr:
    """A long IN. Strings, and constants of types whose codes are equal if the values are, become data: a JSON text of
    the codes. Other members are compared one by one."""
    codes: dict[Any, None] = {}
    compared: dict[Expr, None] = {}
    coded = to == STRING or to.is_integer or to.is_interval or to in (DATE, TIMESTAMP)
    for member in members:
        equal = logic.compare("=", value, member) if to.is_decimal else None
        if isinstance(equal, Call) and key(equal.args[0]) == key(value) and isinstance(equal.args[1], Literal):
            codes[equal.args[1].value] = None  # at the scale of the value
        elif coded and isinstance(member, Literal) and member.value is not None:
            codes[member.value] = None
        else:
            compared[equal or logic.compare("=", value, member)] = None
    if not codes:
        return logic.any_of([*compared])
    listed = Literal(json.dumps([*codes]), STRING)
    listable = value if to == STRING or value.type.wide else retyped(value, BIGINT)
    found = call("in_list", (listable, listed), BOOLEAN)
    return logic.any_of([found, *compared])


_LONGEST = 100 * 366 * 86_400_000_000
"""Microseconds of the longest interval that is added to the other side of a comparison: a century."""
_CONSTANT = re.compile(r"('(?:[^'\\]|\\.)*+')|(-?[0-9.]+(?:E[+-]?[0-9]+)?)|NULL", re.IGNORECASE | re.DOTALL)


def _constants(node: Node) -> list[Expr]:
    """The members of a long list."""
    found: list[Expr] = []
    for constant in _CONSTANT.finditer(node.this):
        string, digits = constant.groups()
        if string is not None:
            found.append(text(string_of(string)))
        elif digits is None:
            found.append(null(VOID))
        else:
            found.append(_number(digits))
    return found


def _literal(node: exp.Literal) -> Expr:
    return text(str(node.this)) if node.is_string else _number(str(node.this))


def _number(digits: str) -> Expr:
    if "e" in digits.lower():
        if digits[-1] not in "0123456789":
            raise Fault(f"{digits} is not a number; an exponent has digits, as in 1E3")
        value = float(digits)
        if isinf(value):
            raise Fault(f"{digits} is greater than every DOUBLE; write CAST('Infinity' AS DOUBLE) for infinity")
        return Literal(value, DOUBLE)
    if "." in digits:
        return literal_decimal(digits)
    whole = int(digits)
    if -(2**31) <= whole < 2**31:
        return Literal(whole, INT)
    if whole == NULL:
        raise Fault(RESERVED)
    return Literal(whole, BIGINT) if NULL < whole < 2**63 else literal_decimal(digits)
