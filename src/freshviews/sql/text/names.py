"""Marks keywords that serve as names of tables or columns, so that the parser accepts them.

sqlglot's parser reserves many keywords that Spark does not reserve. A marked keyword is read as if in backquotes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token
from sqlglot import TokenType as T

_ONLY_FIRST = frozenset(
    (
        *(T.ALTER, T.CREATE, T.DESCRIBE, T.DROP, T.GRANT, T.INSERT, T.LOCK, T.REVOKE, T.ROLLBACK, T.UNCACHE),
        T.SERDE_PROPERTIES,
    )
)
"""Keywords that begin no clause inside a statement, except in ALTER."""
_WITHOUT_PARENTHESES = frozenset((T.CURRENT_DATE, T.CURRENT_TIME, T.CURRENT_TIMESTAMP, T.CURRENT_USER, T.SESSION_USER))
"""Functions called without parentheses. A column of the same name takes precedence."""
_LOGIC = frozenset((T.AND, T.OR, T.LIKE, T.ILIKE, T.RLIKE))
_INNER = _LOGIC | {
    *(T.ALIAS, T.BETWEEN, T.CROSS, T.ELSE, T.EXCEPT, T.FETCH, T.FOR, T.FROM, T.HAVING, T.IN, T.INNER, T.IS),
    *(T.INTERSECT, T.INTO, T.JOIN, T.LATERAL, T.ON, T.OUTER, T.TABLE_SAMPLE, T.THEN, T.UNION, T.USING, T.WHEN, T.WHERE),
}
"""Keywords that begin no operand."""
_OPERATORS = frozenset(
    (T.EQ, T.NEQ, T.NULLSAFE_EQ, T.LT, T.LTE, T.GT, T.GTE, T.PIPE, T.AMP, T.CARET, T.DPIPE, T.SLASH, T.MOD, T.DIV)
)
_SIGNS = frozenset((T.PLUS, T.DASH, T.STAR))
"""Operators that also begin an operand."""
_OPENING = (_OPERATORS | _SIGNS | _LOGIC) | {
    *(T.TILDE, T.COMMA, T.L_PAREN, T.DOT, T.SELECT, T.DISTINCT, T.ALL, T.WHERE, T.HAVING, T.QUALIFY, T.NOT, T.ON),
    *(T.GROUP_BY, T.ORDER_BY, T.PARTITION_BY, T.CASE, T.WHEN, T.THEN, T.ELSE, T.BETWEEN, T.FROM, T.JOIN),
    *(T.OVER, T.WINDOW, T.WITH),
}
"""Tokens before an operand."""
_ENDING = frozenset((T.COMMA, T.R_PAREN, T.R_BRACKET, T.SEMICOLON))
_AFTER = (_ENDING | _OPERATORS | _INNER) | {
    *(T.DCOLON, T.GROUP_BY, T.ORDER_BY, T.LIMIT, T.OFFSET, T.QUALIFY, T.WINDOW),
    *(T.END, T.ASC, T.DESC, T.LEFT, T.RIGHT, T.FULL, T.NATURAL, T.SEMI, T.ANTI, T.ROWS, T.RANGE),
}
"""Tokens after an operand."""
_BEGINNING = {
    T.NOT: (_ENDING | _OPERATORS) - {T.DIV},
    **dict.fromkeys((T.VALUES, T.WITH, T.INTERVAL, T.CUBE, T.ROLLUP, T.CASE), _AFTER - {T.WHEN}),
    **dict.fromkeys((T.SELECT, T.DISTINCT, T.ALL), _AFTER - {T.FROM}),
}
"""Keywords that may begin an operand, a query or a group, and the tokens before which each is a name."""
_QUERIES = {
    T.SELECT: frozenset((T.L_PAREN, T.ALL, T.DISTINCT, T.COMMA)),
    **dict.fromkeys((T.DISTINCT, T.ALL), frozenset((T.L_PAREN, T.SELECT))),
    **dict.fromkeys((T.CUBE, T.ROLLUP), frozenset((T.WITH,))),
}
"""Keywords, and the tokens after which each is not a name."""
_NEGATED = frozenset((T.IN, T.LIKE, T.ILIKE, T.RLIKE, T.BETWEEN))
_LISTING = frozenset((T.USING, T.PRIMARY_KEY))
"""Keywords before lists of names."""
_NO_WORDS = frozenset((T.STRING, T.NUMBER, T.IDENTIFIER, T.PRIMARY_KEY, T.FOREIGN_KEY))
_STATEMENTS = frozenset((T.CREATE, T.ALTER, T.DROP))
_DEFINING = frozenset((T.TABLE, T.VIEW, T.COLUMN, T.EXISTS))
_CONSTRAINTS = ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_NOT_ALIASES = frozenset(
    (
        *("ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "MINUS", "NATURAL", "ON"),
        *("RIGHT", "SEMI", "UNION", "USING"),
    )
)
_END = Token(token_type=T.SEMICOLON, text=";")


def is_no_alias(word: str) -> bool:
    """True if a word without backquotes cannot name a table in FROM."""
    return word.upper() in _NOT_ALIASES


def is_often_a_name(kind: T) -> bool:
    """True if Spark also takes a keyword of this kind for a name, though it is a keyword here."""
    return kind in _INNER or kind in _BEGINNING


def with_names(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with the keywords that are names marked as if in backquotes.

    Tokens are read from left to right. After some tokens, such as SELECT or +, an operand must come next. There, a
    keyword that cannot begin an operand is a name, if the token after it can follow an operand. Elsewhere, a keyword is
    a name only where no clause can begin. In column lists of CREATE, and in backquotes, every word is a name.
    """
    made: list[Token] = []
    statement, opened, depth, defining, listed, heading = _END, False, 0, False, False, False
    for i, token in enumerate(tokens):
        kind, around = token.token_type, _Around(tokens, i, made[-1] if made else _END, opened)
        if around.before == T.SEMICOLON:
            statement, depth, defining, heading = token, 0, kind in _STATEMENTS, kind == T.CREATE
        elif (
            kind not in _NO_WORDS
            and token.text[:1].isalpha()
            and (kind != T.VAR or defining)
            and not (kind == T.INSERT and around.begins_insert)
            and not (kind == T.ALIAS and heading and depth == 0 and around.before not in _DEFINING)
            and (
                listed
                or (defining and around.is_defined(depth == 1))
                or around.is_name(statement.token_type == T.ALTER)
            )
        ):
            made.append(as_name(token, T.IDENTIFIER))
            opened = False
            continue
        made.append(token)
        lists = around.before in _LISTING and statement.token_type != T.MERGE
        listed = kind != T.R_PAREN and (listed or (kind == T.L_PAREN and lists))
        depth += (kind == T.L_PAREN) - (kind == T.R_PAREN)
        # The AS after the name and the properties of a view comes before its query.
        heading = heading and not (kind == T.ALIAS and depth == 0)
        defining = defining and not (kind in (T.ALIAS, T.R_PAREN) and depth == 0)
        # A star of all columns, and names that the parser knows as names, are operands.
        is_operand = kind == T.STAR or (kind in (T.DIV, T.OVER, T.WINDOW) and around.after in _AFTER)
        opened = kind in _OPENING and not (opened and is_operand)
    return made


def as_name(token: Token, kind: T) -> Token:
    return Token(token_type=kind, text=token.text, line=token.line, col=token.col, start=token.start, end=token.end)


class _Around:
    """A word and its neighbours. ``opened``: an operand must come next."""

    def __init__(self, tokens: Sequence[Token], i: int, before: Token, opened: bool) -> None:
        self._tokens, self._i, self._opened = tokens, i, opened
        self._kind = tokens[i].token_type
        self.before = before.token_type
        self.after = self._at(1).token_type

    def _at(self, step: int) -> Token:
        place = self._i + step
        return self._tokens[place] if 0 <= place < len(self._tokens) else _END

    @property
    def begins_insert(self) -> bool:
        """True for INSERT after the THEN of MERGE, or after the queries of WITH."""
        return (self.before == T.THEN and self.after in (T.STAR, T.L_PAREN)) or (
            self.before == T.R_PAREN and self.after in (T.INTO, T.OVERWRITE)
        )

    def is_defined(self, inside: bool) -> bool:
        """True for a name that TABLE, VIEW or COLUMN defines, or a list of columns. ``inside``: in a list."""
        listed = inside and self.before in (T.L_PAREN, T.COMMA)
        if self._kind == T.CONSTRAINT and listed:
            return not self._at(2).text.upper().startswith(_CONSTRAINTS)
        if listed and self.after == T.FOR and self._at(0).text.upper() == "WATERMARK":
            return False
        if self._kind == T.VAR or listed:
            return listed and self.after not in (T.L_PAREN, T.DOT)
        return self.before in _DEFINING and (self._kind != T.ALIAS or self.after in (T.ALIAS, T.L_PAREN))

    def is_name(self, alters: bool) -> bool:
        kind, after = self._kind, self.after
        if kind == T.VAR or (alters and kind in _STATEMENTS):
            return False
        if self.before == T.DOT or (after == T.DOT and self._at(2).token_type != T.NUMBER and kind not in _VALUES):
            return True
        if kind in _WITHOUT_PARENTHESES or kind in _ONLY_FIRST:
            return after != T.L_PAREN
        return self._is_operand() if self._opened else self._is_alias()

    def _is_operand(self) -> bool:
        kind, after = self._kind, self.after
        if kind == T.WHEN and self.before == T.CASE:
            return after == T.WHEN
        if kind == T.WHERE and self._at(-2).token_type == T.FILTER:
            return False
        if after in (T.LEFT, T.RIGHT, T.WINDOW) and self._at(2).token_type == T.L_PAREN:
            return False
        if kind == T.WITH and self._at(2).token_type in (T.ALIAS, T.L_PAREN):
            return after == T.ALIAS
        if after == T.ALIAS and self._at(2).token_type == T.L_PAREN and self.before in (T.WITH, T.RECURSIVE, T.COMMA):
            return True
        if kind == T.CASE and self._at(2).token_type == T.WHEN:
            return False
        if after == T.NOT:
            return kind in _INNER and self._at(2).token_type in _NEGATED
        if after in _SIGNS:
            # INTERVAL - 1 DAY is not a difference.
            is_signed = kind == T.INTERVAL and self._at(3).text.upper().rstrip("S") in _UNITS
            if kind in (T.VALUES, T.SELECT):
                # The argument of a call is not a query.
                return self.before == T.L_PAREN and self._at(-2).token_type in (T.VAR, T.IDENTIFIER)
            return (kind in _INNER or kind == T.INTERVAL) and not is_signed
        if kind in _INNER:
            return after in _AFTER or self._at(1).text.upper() == "NULLS"
        return after in _BEGINNING.get(kind, ()) and self.before not in _QUERIES.get(kind, ())

    def _is_alias(self) -> bool:
        kind, after = self._kind, self.after
        if self.before == T.ALIAS:
            return kind == T.NOT and after in (*_ENDING, T.FROM)
        if kind == T.FETCH:
            return self._at(1).text.upper() not in ("FIRST", "NEXT")
        if kind in (T.OUTER, T.TABLE_SAMPLE) and self.before not in (T.LEFT, T.RIGHT, T.FULL):
            return after in _AFTER
        if kind not in _INNER - _LOGIC:
            return False
        return after == T.COMMA or (after == T.FROM and self._at(2).token_type in (T.VAR, T.IDENTIFIER, T.L_PAREN))


_VALUES = (T.TRUE, T.FALSE, T.NULL)
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
