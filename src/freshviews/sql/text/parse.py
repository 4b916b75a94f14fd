"""Parses SQL text to sqlglot trees. Each node has its place in the text, so that errors can name line and column."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from freshviews.catalog.nesting import DEPTH, TOO_DEEP
from freshviews.errors import SqlError, UnsupportedSql
from freshviews.records import dataclass
from freshviews.sql.text.dialects import Misuse, as_spark, tokens_of
from freshviews.sql.text.fields import unread
from freshviews.sql.text.names import is_no_alias, with_names
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.pipes import Pipes
from freshviews.sql.text.plainer import plainer, with_joined_texts, without_aggregate
from freshviews.sql.text.spelling import NO_STATEMENT, misspelt, other_style, plain_message

Node = exp.Expr

LONGEST_NUMBER = 1000
"""Most characters of a number in a text; no type holds a longer one."""

_LIST = "freshviews_list"
_LONG_LIST = 1000
"""Fewest constants of an IN that become one node."""

_CONSTANT = r"(?:-?[0-9]{1,18}(?:\.[0-9]{1,9})?(?:E[+-]?[0-9]{1,2})?|'(?:[^'\\]|\\.)*+'|NULL)"
_BLANK = r"[ \t\r\n]*+"
_CONSTANTS = re.compile(
    rf"\bIN{_BLANK}(\(){_BLANK}({_CONSTANT}(?:{_BLANK},{_BLANK}{_CONSTANT}){{{_LONG_LIST - 1},}}+){_BLANK}\)",
    re.IGNORECASE | re.DOTALL,
)

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "SUBSTR")
WATERMARK = "WATERMARK"
_QUANTIFIERS = {"EXISTS": exp.Exists, "ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}


def is_list(node: Node) -> bool:
    """True for a literal that has all constants of a long IN: ``this`` is their text, with the commas. A constant is a
    number, perhaps with a sign, a string or NULL."""
    return _LIST in node.meta


def string_of(quoted: str) -> str:
    """The value of a string that is written with its quotes."""
    return str(Spark().tokenize(quoted)[0].text) if "\\" in quoted else quoted[1:-1]


class _Parser(Pipes):
    """The Spark parser, extended: it stores spans and keeps function calls as written.

    ``lists``: the constants of an IN that the tokens omit, by the offset of its parenthesis. ``taken``: the offsets of
    the lists that were parsed.
    """

    FUNCTIONS = {}  # noqa: RUF012
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse for name, parse in Pipes.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse for name, parse in Pipes.NO_PAREN_FUNCTION_PARSERS.items() if name == "CASE"
    }

    FUNCTION_PARSERS["FLOOR"] = lambda self: self._parse_floor()

    FUNCTION_PARSERS["OVERLAY"] = lambda self: self._parse_overlaid()

    failed_at: int | None = None
    lists: Mapping[int, str] = MappingProxyType({})
    taken: frozenset[int] = frozenset()

    def _parse_floor(self) -> Any:
        """FLOOR(x), and FLOOR(t TO HOUR), which is date_trunc('HOUR', t)."""
        args = self._parse_csv(self._parse_disjunction)
        if len(args) == 1 and self._match_text_seq("TO"):
            unit = self._parse_var(any_token=True)
            args = [exp.Literal.string(unit.name if unit else ""), *args]
            return self.expression(exp.Anonymous(this="date_trunc", expressions=args))
        return self.expression(exp.Anonymous(this="FLOOR", expressions=args))

    def _parse_overlaid(self) -> Any:
        """OVERLAY(a, b, n[, m]), and OVERLAY(a PLACING b FROM n [FOR m])."""
        args = self._parse_csv(self._parse_disjunction)
        for word in ("PLACING", "FROM", "FOR") if len(args) == 1 else ():
            if self._match_text_seq(word):
                args.append(self._parse_disjunction())
        return self.expression(exp.Anonymous(this="overlay", expressions=args))

    def raise_error(self, message: str, *args: Any, **options: Any) -> None:
        token = args[0] if args else options.get("token") or self._curr or self._prev
        self.failed_at = token.start if token else None
        super().raise_error(plain_message(message), *args, **options)

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        """Refuse a node that lacks a part, at the word beside which the part is missing.

        sqlglot's message names its own classes, and has the place of the next token.
        """
        messages = expression.error_messages(args)
        if not messages:
            return expression
        if not messages[0].startswith("Required keyword"):
            self.raise_error(messages[0])
        right = expression.args.get("expression")
        if not expression.args.get("this") and isinstance(right, Node) and SPAN in right.meta:
            begin = right.meta[SPAN][0]
            sign = next(token for token in reversed(self._tokens[: self._index]) if token.start < begin)
            self.raise_error(f"something is missing before {sign.text}", sign)
        self.raise_error(f"something is missing after {self._prev.text}" if self._prev else NO_STATEMENT, self._prev)
        return expression

    def _parse_join(self, *args: Any, **options: Any) -> Any:
        """Refuse a comma, ON and USING that nothing follows; sqlglot accepts them."""
        comma = self._curr if self._curr and self._curr.token_type == TokenType.COMMA else None
        made = super()._parse_join(*args, **options)
        if made is None and comma is not None:
            self.raise_error("a table is missing after ,", comma)
        if made is not None and self._prev.token_type == TokenType.ON:
            self.raise_error("ON needs a condition, as in ON a.x = b.x", self._prev)
        if made is not None and made.args.get("using") == []:
            self.raise_error("USING needs columns in parentheses, as in USING (x)", self._prev)
        return made

    def _parse_table_alias(self, *args: Any, **options: Any) -> Any:
        """Refuse the words that Spark accepts as no alias; sqlglot accepts them after AS."""
        made = super()._parse_table_alias(*args, **options)
        name = made.this if made is not None else None
        if isinstance(name, exp.Identifier) and not name.args.get("quoted") and is_no_alias(name.name):
            self.raise_error(f"{name.name} is not accepted as an alias; write `{name.name}` in backquotes", self._prev)
        return made

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> Any:
        """Refuse a comma that nothing follows; sqlglot accepts it."""

        def parse() -> Any:
            before = self._prev
            made = parse_method()
            if made is None and before and before is self._prev and before.token_type == sep == TokenType.COMMA:
                self.raise_error("something is missing after the comma", before)
            return made

        return super()._parse_csv(parse, sep)

    def _parse_set(self, unset: bool = False, tag: bool = False) -> Any:
        """SET TIME ZONE 'name'."""
        if unset or not self._match_text_seq("TIME", "ZONE") or not self._match(TokenType.STRING):
            self.raise_error("SET TIME ZONE 'name' is accepted; another SET is not")
        return self.expression(exp.Set(expressions=[exp.Literal.string(self._prev.text)]))

    def _parse_constraint(self) -> Any:
        """WATERMARK FOR ts AS expression, of Flink, is a call of WATERMARK."""
        if not self._match_text_seq("WATERMARK", "FOR"):
            return super()._parse_constraint()
        column = self._parse_column()
        if not self._match(TokenType.ALIAS):
            self.raise_error("WATERMARK FOR column needs AS, as in WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES")
        parts = [column, self._parse_disjunction()]
        return self.expression(exp.Anonymous(this=WATERMARK, expressions=parts))

    def _parse_partition_by(self) -> Any:
        """Refuse PARTITION BY that nothing follows; sqlglot accepts it."""
        made = super()._parse_partition_by()
        if self._prev and self._prev.token_type == TokenType.PARTITION_BY:
            self.raise_error("something is missing after PARTITION BY", self._prev)
        return made

    def _warn_unsupported(self) -> None:
        """Log nothing: an unknown statement is refused by its first words."""

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> Any:
        """A query of VALUES outside FROM becomes a SELECT over them, so that it is accepted and ordered as one."""
        # A pipe operator after an item of FROM belongs to the query around it.
        piped = consume_pipe and not table
        made = super()._parse_select(nested, table, parse_subquery_alias, parse_set_operation, False)
        if isinstance(made, exp.Values) and not table:
            names = ("with_", "order", "limit", "offset")
            clauses = {name: made.args.pop(name) for name in names if made.args.get(name)}
            made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=made), **clauses)
        return self._parse_pipe_syntax_query(made) if piped and isinstance(made, exp.Query) else made

    def _parse_function(self, *args: Any, **options: Any) -> Any:
        """EXISTS, ANY, SOME and ALL of a query that does not begin with SELECT are not functions."""
        made = super()._parse_function(*args, **options)
        if not isinstance(made, exp.Anonymous) or len(made.expressions) != 1:
            return made
        kind, query = _QUANTIFIERS.get(made.name.upper()), made.expressions[0]
        return self.expression(kind(this=query)) if kind is not None and isinstance(query, exp.Query) else made

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        """Accept any expression inside CUBE and ROLLUP; sqlglot does not accept conditions there."""
        kind = exp.Cube if self._match(TokenType.CUBE) else exp.Rollup if self._match(TokenType.ROLLUP) else None
        if kind is None:
            return None
        inside = [] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction)
        return self.expression(kind(expressions=inside))

    def _parse_grouping_sets(self) -> Any:
        """Refuse GROUPING SETS without sets; sqlglot's message for it names internal classes."""
        if not self._match(TokenType.GROUPING_SETS):
            return None
        clause = self._prev
        sets = self._parse_wrapped_csv(self._parse_grouping_set)
        if not sets:
            self.raise_error("GROUPING SETS needs sets, as in GROUPING SETS ((a), ())", clause)
        return self.expression(exp.GroupingSets(expressions=sets))

    def _parse_grouping_set(self) -> Any:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_in(self, this: Any, *args: Any, **options: Any) -> Any:
        """A long list of constants is one node."""
        start = self._curr.start if self._curr else -1
        if start not in self.lists:
            return super()._parse_in(this, *args, **options)
        self.taken |= {start}
        self._advance(2)
        members = exp.Literal(this=self.lists[start], is_string=False)
        members.meta[_LIST] = True
        return self.expression(exp.In(this=this, expressions=[members]))

    def _parse_as_command(self, start: Any) -> Any:
        """Raise an error where sqlglot would keep unparsed text as an opaque command."""
        self.raise_error("Unexpected token")


def _remembering_spans(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def parse(self: Any, *args: Any, **options: Any) -> Any:
        first = self._curr
        node = method(self, *args, **options)
        if not first or not isinstance(node, Node):
            return node
        last = self._prev
        if last and last.end >= first.start:
            # Most calls only pass on what an inner one made.
            meta, start, end = node.meta, first.start, last.end
            known = meta.get(SPAN)
            if known is None:
                meta[SPAN] = (start, end)
            elif start < known[0] or end > known[1]:
                meta[SPAN] = (min(start, known[0]), max(end, known[1]))
        return node

    return parse


for _name in dir(_Parser):
    if _name.startswith("_parse_") and callable(getattr(_Parser, _name)):
        setattr(_Parser, _name, _remembering_spans(getattr(_Parser, _name)))


@dataclass(frozen=True)
class SqlText:
    """The text of a script, and the places of its nodes.

    sqlglot stores positions only for identifiers and a few other tokens. Here every parsing method also stores the span
    of characters that it consumed, on the node that it returns. So an error can point at any construct:
    ``SqlText.error(node, ...)`` has the 1-based line and column of the node's first character.

    Ordinary function calls stay as written, ``Anonymous(name, arguments)``; ``freshviews.sql.expressions.functions``
    gives them meaning. Calls with a syntax of their own (CAST, EXTRACT, TRIM ...) keep sqlglot's nodes.
    """

    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both 1-based, of a character offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def at(self, node: Node) -> tuple[int, int]:
        """Line and column of a node's first character; (0, 0) if unknown."""
        offset = _start(node)
        return (0, 0) if offset is None else self.place(offset)

    def before(self, node: Node, word: str) -> tuple[int, int]:
        """Line and column of the keyword before a node."""
        offset = _start(node) or 0
        found = self.text.upper().rfind(word, 0, offset)
        return self.place(found if found >= 0 else offset)

    def follows(self, node: Node, sign: str) -> bool:
        """True if the sign comes before the node."""
        return self.text[: _start(node) or 0].rstrip().endswith(sign)

    def of(self, node: Node) -> str:
        """The node's source text, white space collapsed to single spaces."""
        span = node.meta.get(SPAN)
        if span is None:
            return str(node.sql(dialect="spark"))
        return " ".join(self.text[span[0] : span[1] + 1].split())

    def whole(self, node: Node) -> str:
        """The node's source text as it was written."""
        start, end = node.meta.get(SPAN, (0, len(self.text)))
        return self.text[start : end + 1]

    def error(self, node: Node, message: str) -> SqlError:
        return SqlError(message, *self.at(node))

    def unsupported(self, node: Node, what: str, instead: str) -> UnsupportedSql:
        """An error for a refused construct; ``instead`` names what is accepted."""
        return UnsupportedSql(f"{what} is not supported; {instead}", *self.at(node))


def _start(node: Node) -> int | None:
    """The offset of the first character inside the node, or of the enclosing node."""
    places = [n.meta[SPAN][0] for n in node.walk() if SPAN in n.meta]
    places += [n.meta["start"] for n in node.walk() if n.meta.get("start") is not None]
    if places:
        return int(min(places))
    return _start(node.parent) if node.parent is not None else None


def parse(sql: SqlText) -> list[Node]:
    """The statements of a script, each a tree with spans.

    Raises SqlError, with line and column, if the text is not SQL.
    """
    found = _without_lists(sql)
    if found is None:
        found = _parsed(sql, sql.text, _Parser(dialect=Spark(), error_level=ErrorLevel.IMMEDIATE))
    for tree in found:
        nodes = list(tree.walk())
        if len(nodes) > DEPTH:
            _check_depth(sql, tree)
        ignored = unread(nodes)
        if ignored is not None:
            raise sql.unsupported(*ignored)
        try:
            kinds = frozenset(map(type, nodes))
            as_spark(tree, kinds)
            plainer(tree, kinds)
        except Misuse as misuse:
            raise sql.error(misuse.node, str(misuse)) from None
    return found


def copied(tree: Node) -> Node:
    """A copy of a tree, whose nodes have the values of ``meta`` of the nodes of the tree.

    ``tree.copy()`` copies these values, too, which takes most of its time.
    """
    root = tree.__class__()
    left = [(tree, root)]
    while left:
        node, made = left.pop()
        made.comments = node.comments
        if node.meta:
            made.meta.update(node.meta)
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                child = value.__class__()
                made.set(name, child)
                left.append((value, child))
            elif type(value) is list:
                made.args[name] = []
                for one in value:
                    if isinstance(one, exp.Expr):
                        child = one.__class__()
                        made.append(name, child)
                        left.append((one, child))
                    else:
                        made.append(name, one)
            else:
                made.args[name] = value
    return root


def _without_lists(sql: SqlText) -> list[Node] | None:
    """The statements of a script with long lists of constants, for which no tokens are made: blanks replace them, so
    that all other places stay. None if there is no such list or there is an error, or if a match is not a list of an IN
    but part of a string or a comment."""
    if len(sql.text) < 2 * _LONG_LIST:
        return None
    lists: dict[int, str] = {}
    kept: list[str] = []
    end = 0
    for found in _CONSTANTS.finditer(sql.text):
        lists[found.start(1)] = found[2]
        kept += [sql.text[end : found.start(2)], " " * len(found[2])]
        end = found.end(2)
    if not lists:
        return None
    parser = _Parser(dialect=Spark(), error_level=ErrorLevel.IMMEDIATE)
    parser.lists = lists
    try:
        trees = _parsed(sql, "".join([*kept, sql.text[end:]]), parser)
    except SqlError:
        return None
    return trees if parser.taken == lists.keys() else None


_SURROGATE = re.compile("[\ud800-\udfff]")


def _parsed(sql: SqlText, text: str, parser: _Parser) -> list[Node]:
    """The statements of a text whose places are those of the script."""
    alone = _SURROGATE.search(text)
    if alone is not None:
        raise SqlError(f"{alone[0]!a} is not valid Unicode; write the whole character", *sql.place(alone.start()))
    try:
        tokens = with_names(with_joined_texts(without_aggregate(Spark().tokenize(text)), text))
        for before, token in zip([None, *tokens], tokens, strict=False):
            if token.token_type == TokenType.ALIAS and before and before.token_type == TokenType.SELECT:
                raise SqlError("an expression is missing before AS", *sql.place(token.start))
            if token.token_type == TokenType.NUMBER and len(token.text) > LONGEST_NUMBER:
                raise SqlError(
                    f"this number has {len(token.text)} characters; at most {LONGEST_NUMBER} are allowed",
                    *sql.place(token.start),
                )
        _check_brackets(sql, tokens)
        trees = parser.parse(tokens_of(tokens), sql.text)
    except RecursionError:
        raise SqlError(TOO_DEEP, *(sql.place(parser._curr.start) if parser._curr else (0, 0))) from None
    except TokenError as error:
        raise _token_error(sql, str(error.__cause__ or error)) from None
    except ParseError as error:
        style = other_style(tokens, parser.failed_at, sql.text)
        if style is not None:
            written, at = style
            raise SqlError(f"{written} is not accepted as a parameter; write ? or :name", *sql.place(at)) from None
        message = error.errors[0]["description"] if error.errors else str(error)
        place = sql.place(parser.failed_at) if parser.failed_at is not None else (0, 0)
        near = _word(sql.text, parser.failed_at)
        advice = misspelt(tokens, parser.failed_at)
        raise SqlError((f"{message}, at {near!r}" if near else str(message)) + advice, *place) from None
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


_CASES = {TokenType.CASE: 1, TokenType.END: -1}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_CLOSED_BY = {opening: closing for closing, opening in _PAIRS.items()}
_LEVELS = (exp.Func, exp.Unary, exp.Binary, exp.Subquery)


def _check_brackets(sql: SqlText, tokens: list[Token]) -> None:
    """Refuse brackets without their partners, and nesting that is too deep for the parser."""
    cases = 0
    opened: list[Token] = []
    for token in tokens:
        cases += _CASES.get(token.token_type, 0)
        sign = token.text if token.end == token.start else ""
        if sign in _PAIRS.values():
            opened.append(token)
            if len(opened) + cases > DEPTH:
                raise SqlError(TOO_DEEP, *sql.place(token.start))
        elif sign == ";" and opened:
            break
        elif sign in _PAIRS and (not opened or opened.pop().text != _PAIRS[sign]):
            raise SqlError(f"{sign} has no opening bracket", *sql.place(token.start))
    if opened:
        raise SqlError(
            f"Missing {_CLOSED_BY[opened[-1].text]} to close what begins here",
            *sql.place(opened[-1].start),
        )


def _check_depth(sql: SqlText, tree: Node) -> None:
    """Refuse more than DEPTH nested calls, operators and subqueries."""
    below = [(tree, 0)]
    while below:
        node, depth = below.pop()
        if isinstance(node, _LEVELS) and not isinstance(node, exp.If | exp.Paren):
            depth += not (isinstance(node, exp.Connector) and type(node.parent) is type(node))
            if depth > DEPTH:
                raise sql.error(node, TOO_DEEP)
        below += [(child, depth) for child in node.iter_expressions()]


_QUOTES = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|(?P<open>['"`])""", re.DOTALL
)
"""Comments and quoted texts; ``open`` is a quote that is never closed."""


def _token_error(sql: SqlText, message: str) -> SqlError:
    """An error at the opening quote; sqlglot reports ``Missing ' from line:offset``, or no place if compiled."""
    found = re.search(r"(Missing \S+) from \d+:(\d+)", message)
    comment = sql.text.rfind("/*")
    if found is None and comment > sql.text.rfind("*/"):
        return SqlError("Missing */ to close what begins here", *sql.place(comment))
    opened = next((one for one in _QUOTES.finditer(sql.text) if one["open"]), None) if found is None else None
    if opened is not None:
        return SqlError(f"Missing {opened['open']} to close what begins here", *sql.place(opened.start()))
    if found is None:
        return SqlError(message, *sql.place(max(len(sql.text) - 1, 0)))
    return SqlError(f"{found.group(1)} to close what begins here", *sql.place(int(found.group(2))))


def _word(text: str, offset: int | None) -> str:
    if offset is None or offset >= len(text):
        return ""
    found = re.match(r"\w+|\S", text[offset:])
    return found.group() if found else ""
