"""Parses operators by the rules of precedence in Spark's grammar, because sqlglot's rules differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import Token, TokenType, exp

from freshviews.sql.text.interpreted import spark_parser

if TYPE_CHECKING:
    from sqlglot.parsers.spark import SparkParser
else:
    SparkParser = spark_parser()

Node = exp.Expr

SPAN = "freshviews_span"
"""The key in ``meta`` of the offsets of a node's first and last character."""

_LEVELS: tuple[dict[TokenType, type[Node]], ...] = (
    {
        TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ, TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
        TokenType.LT: exp.LT, TokenType.LTE: exp.LTE, TokenType.GT: exp.GT, TokenType.GTE: exp.GTE,
    },
    {TokenType.PIPE: exp.BitwiseOr},
    {TokenType.CARET: exp.BitwiseXor},
    {TokenType.AMP: exp.BitwiseAnd},
    {},  # << >> >>>, of several tokens
    {
        TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe, TokenType.COLLATE: exp.Collate,
    },
    {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod, TokenType.DIV: exp.IntDiv},
)  # fmt: skip
_BINARY = {token: (level, kind) for level, kinds in enumerate(_LEVELS) for token, kind in kinds.items()}
_COMPARISON, _BITWISE, _SHIFT = 0, 1, 4
_NEGATED = (TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.SIMILAR_TO)


def _calling(name: str) -> Callable[..., Node]:
    """The call of a function for which an operator stands."""
    return lambda this, expression: exp.Anonymous(this=name, expressions=[this, expression])


_SHIFTS = {TokenType.LT: _calling("shiftleft"), TokenType.GT: _calling("shiftright")}


def _matching(kind: type[Node]) -> Callable[[Any, Any], Any]:
    """A parser of what follows LIKE and the like: a pattern, which may be a comparison, and ESCAPE."""

    def parse(self: Any, value: Any) -> Any:
        return self._parse_escape(self.expression(kind(this=value, expression=self._parse_comparison())))

    return parse


class Operators(SparkParser):
    """The Spark parser with Spark's operators.

    The levels, from the tightest: ``- + ~`` before an operand; ``* / % DIV``; ``+ - ||``; ``<< >> >>>``; ``&``; ``^``;
    ``|``; all comparisons, at one level; one predicate (IS, IN, BETWEEN, LIKE ...) whose operands may be comparisons;
    NOT; AND; OR. Binary operators of a level are read from left to right.
    """

    UNARY_PARSERS = {  # noqa: RUF012
        TokenType.PLUS: lambda self: self._parse_plus(),
        TokenType.DASH: lambda self: self._parse_minus(),
        TokenType.TILDE: lambda self: self.expression(exp.BitwiseNot(this=self._parse_unary())),
    }
    RANGE_PARSERS = {  # noqa: RUF012
        TokenType.IS: lambda self, value: self._parse_is(value),
        TokenType.IN: lambda self, value: self._parse_in(value),
        TokenType.BETWEEN: lambda self, value: self._parse_between(value),
        TokenType.LIKE: _matching(exp.Like),
        TokenType.ILIKE: _matching(exp.ILike),
        TokenType.RLIKE: _matching(exp.RegexpLike),
        TokenType.SIMILAR_TO: _matching(exp.SimilarTo),
    }

    def _parse_plus(self) -> Any:
        sign = self._prev
        operand = self._parse_unary()
        if operand is None:
            self.raise_error("something is missing after +", sign)
        return self.expression(exp.Anonymous(this="positive", expressions=[operand]))

    def _parse_minus(self) -> Any:
        """Minus. Before a number it is part of the number, so - 2 :: STRING is '-2'."""
        is_number = self._curr is not None and self._curr.token_type == TokenType.NUMBER
        operand = number = self._parse_unary()
        while isinstance(number, exp.Cast):
            number = number.this
        if not is_number or not isinstance(number, exp.Literal):
            return self.expression(exp.Neg(this=operand))
        number.set("this", f"-{number.this}")
        return operand

    def _parse_equality(self, parse_is: bool = True) -> Any:
        """NOT, or a comparison with at most one predicate after it."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        first, value = self._curr, self._parse_comparison()
        if value is None or not parse_is:
            return value
        negated = self._curr.token_type == TokenType.NOT and self._next.token_type in _NEGATED
        if negated:
            self._advance()
        if not self._match_set(self.RANGE_PARSERS):
            return value
        found = self.RANGE_PARSERS[self._prev.token_type](self, value)
        if found is None:
            return value
        return self._spanning(first, self._negate_range(found) if negated else found)

    def _parse_comparison(self, this: Any = None) -> Any:
        return self._parse_operators(_COMPARISON)

    def _parse_bitwise(self) -> Any:
        return self._parse_operators(_BITWISE)

    def _parse_is(self, this: Any) -> Any:
        negated = self._match(TokenType.NOT)
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.expression(kind(this=this, expression=self._parse_comparison()))
        if not self._match_texts(("NULL", "UNKNOWN", "TRUE", "FALSE")):
            self.raise_error("IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        word = self._prev.text.upper()
        what = exp.Boolean(this=word == "TRUE") if word in ("TRUE", "FALSE") else exp.Null()
        found = self.expression(exp.Is(this=this, expression=what))
        return self.expression(exp.Not(this=found)) if negated else found

    def _parse_between(self, this: Any) -> Any:
        symmetric = self._next.token_type != TokenType.AND and self._match_text_seq("SYMMETRIC")
        low = self._parse_comparison()
        if not self._match(TokenType.AND):
            self.raise_error("BETWEEN takes two bounds, as in x BETWEEN 1 AND 2")
        high = self._parse_comparison()
        return self.expression(exp.Between(this=this, low=low, high=high, symmetric=symmetric))

    def _parse_operators(self, least: int) -> Any:
        """Operands and binary operators of these levels and of tighter ones."""
        first = self._curr
        left = self._parse_at_time_zone(self._parse_unary())
        while left is not None:
            level, kind, size = self._operator()
            if kind is None or level < least:
                break
            at = self._index
            self._advance(size)
            right = self._parse_operators(level + 1)
            if right is None and kind is exp.IntDiv:
                self._retreat(at)  # a name
                break
            left = self._spanning(first, self.expression(kind(this=left, expression=right)))
        return left

    def _operator(self) -> tuple[int, Callable[..., Node] | None, int]:
        """The level, the class or maker, and the number of tokens of the binary operator that comes next."""
        token = self._curr.token_type
        following = self._next
        if token in _SHIFTS and following.token_type == token and following.start == self._curr.end + 1:
            third = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else following
            if token == TokenType.GT == third.token_type and third.start == following.end + 1:
                return _SHIFT, _calling("shiftrightunsigned"), 3
            return _SHIFT, _SHIFTS[token], 2
        return *_BINARY.get(token, (0, None)), 1

    def _spanning(self, first: Token, node: Any) -> Any:
        """The node, with the span from this token to the last one."""
        node.meta[SPAN] = (first.start, self._prev.end)
        return node
