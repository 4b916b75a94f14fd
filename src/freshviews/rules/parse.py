"""Parses the text of rules with a grammar of the library lark, and returns their syntax trees."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from freshviews.errors import RuleError
from freshviews.rules.syntax import (
    Aggregate,
    Anything,
    Atom,
    Category,
    Comparison,
    Conjunction,
    Constant,
    Either,
    Key,
    Literal,
    Operation,
    Place,
    Rule,
    Term,
    Variable,
)

GRAMMAR = r"""
start: rule+
rule: head ARROW [aggregates] body "."
head: NAME "(" [NAME ("," NAME)*] ")" | NAME "[" [NAME ("," NAME)*] "]" EQUALS NAME -> functional_head
aggregates: "agg" "<<" aggregate ("," aggregate)* ">>"
aggregate: NAME "=" NAME "(" [_value ("," _value)* [order]] ")"
_value: term | category
category: NAME "(" term ")"
order: "order"i "by"i key ("," key)*
key: term [DIRECTION]
body: conjunction (";" conjunction)*
conjunction: _literal ("," _literal)*
_literal: atom | negated | comparison | either
atom: NAME "(" [argument ("," argument)*] ")" | NAME "[" [argument ("," argument)*] "]" EQUALS argument -> functional
negated: "!" (atom | either)
either: "(" body ")"
comparison: term (SIGN | EQUALS) term
?argument: term | ANYTHING -> anything
?term: product | term (PLUS | MINUS) product -> operation
?product: factor | product (TIMES | OVER) factor -> operation
?factor: NAME -> variable | NUMBER -> number | STRING -> string | MINUS factor -> negative | "(" term ")"

ARROW: "<-" | ":-"
EQUALS: "="
SIGN: "!=" | "<>" | "<=" | ">=" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*"
OVER: "/"
DIRECTION: "asc"i | "desc"i
ANYTHING: "_"
NAME: /(?!_(?!\w))[A-Za-z_]\w*/
NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?/
STRING: /"[^"\n]*"|'[^'\n]*'/
COMMENT: /\/\/[^\n]*|\/\*(.|\n)*?\*\//
%ignore /\s+/
%ignore COMMENT
"""

_WORDS = {
    "ARROW": "<-", "EQUALS": "=", "SIGN": "a comparison", "PLUS": "+", "MINUS": "-", "TIMES": "*", "OVER": "/",
    "ANYTHING": "_", "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "LPAR": "(", "RPAR": ")",
    "COMMA": ",", "SEMICOLON": ";", "DOT": ".", "BANG": "!", "AGG": "agg", "__ANON_0": "<<", "__ANON_1": ">>",
    "LSQB": "[", "RSQB": "]", "ORDER": "order by", "DIRECTION": "desc",
}  # fmt: skip


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of a text, in order. Raises RuleError with line and column."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as wrong:
        raise _error_of(wrong, text) from None
    try:
        rules: tuple[Rule, ...] = _Trees().transform(tree)
    except VisitError as wrong:
        raise wrong.orig_exc from None
    return rules


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _error_of(wrong: UnexpectedInput, text: str) -> RuleError:
    if isinstance(wrong, UnexpectedCharacters):
        return RuleError(f"{wrong.char!r} is not part of a rule; {_example()}", wrong.line, wrong.column)
    allowed: Any = getattr(wrong, "accepts", None) or getattr(wrong, "expected", None) or ()
    if isinstance(wrong, UnexpectedToken) and wrong.token.type != "$END":
        line, column, found = wrong.line, wrong.column, f"{str(wrong.token)!r} does not go here"
    else:
        lines = text.rstrip().split("\n")
        line, column = len(lines), len(lines[-1]) + 1
        found = "the text ends within a rule" if text.strip() else "there is no rule"
    assert not isinstance(wrong, UnexpectedEOF), "the LALR parser reports the end as a token"
    words = sorted(_WORDS.get(name, name) for name in allowed if name != "$END")
    return RuleError(f"{found}; accepted here: {'   '.join(words)}. {_example()}", line, column)


def _example() -> str:
    return "a rule looks like: big(a, n) <- agg<<n = count()>> r(a, b), !s(b), b > 3."


@v_args(meta=True)
class _Trees(Transformer[Token, Any]):
    """Parse trees to ``freshviews.rules.syntax``."""

    def start(self, meta: Any, rules: list[Rule]) -> tuple[Rule, ...]:
        return tuple(rules)

    def rule(self, meta: Any, parts: list[Any]) -> Rule:
        head, _, aggregates, body = parts
        return Rule(head, aggregates or (), body)

    def head(self, meta: Any, parts: list[Any]) -> Atom:
        name, *arguments = parts
        variables = tuple(Variable(str(one), _at(one)) for one in arguments if one is not None)
        return Atom(str(name), variables, _place(meta))

    def functional_head(self, meta: Any, parts: list[Any]) -> Atom:
        *parts, _, value = parts
        head = self.head(meta, [*parts, value])
        return replace(head, functional=True)

    def aggregates(self, meta: Any, parts: list[Aggregate]) -> tuple[Aggregate, ...]:
        return tuple(parts)

    def aggregate(self, meta: Any, parts: list[Any]) -> Aggregate:
        # The equals sign is a child of the tree where the grammar names it.
        name, function, *rest = (part for part in parts if not (isinstance(part, Token) and part.type == "EQUALS"))
        order = next((part for part in rest if isinstance(part, tuple)), ())
        given = [part for part in rest if part is not None and not isinstance(part, tuple)]
        arguments = tuple(one.term if isinstance(one, Category) else one for one in given)
        categories = tuple(i for i, one in enumerate(given) if isinstance(one, Category))
        return Aggregate(str(name), str(function), arguments, _at(function), order, categories)

    def category(self, meta: Any, parts: list[Any]) -> Category:
        name, term = parts
        if str(name).lower() != "category":
            message = f"{name}() is not a term; only SQL has functions, and only cofactor takes category(x)"
            raise RuleError(message, meta.line, meta.column)
        return Category(term, _place(meta))

    def order(self, meta: Any, parts: list[Key]) -> tuple[Key, ...]:
        return tuple(parts)

    def key(self, meta: Any, parts: list[Any]) -> Key:
        term, direction = parts
        return Key(term, "" if direction is None else str(direction).lower(), _place(meta))

    def body(self, meta: Any, parts: list[Conjunction]) -> tuple[Conjunction, ...]:
        return tuple(parts)

    def conjunction(self, meta: Any, parts: list[Literal]) -> Conjunction:
        return tuple(parts)

    def atom(self, meta: Any, parts: list[Any]) -> Atom:
        name, *arguments = parts
        return Atom(str(name), tuple(one for one in arguments if one is not None), _place(meta))

    def functional(self, meta: Any, parts: list[Any]) -> Atom:
        *parts, _, value = parts
        return replace(self.atom(meta, [*parts, value]), functional=True)

    def negated(self, meta: Any, parts: list[Atom | Either]) -> Atom:
        (what,) = parts
        if isinstance(what, Either):
            raise RuleError(
                "only an atom can be negated; move the text in parentheses into the body of a new rule h(...), and "
                "write !h(...) here",
                meta.line,
                meta.column,
            )
        return replace(what, place=_place(meta), negated=True)

    def either(self, meta: Any, parts: list[tuple[Conjunction, ...]]) -> Either:
        return Either(parts[0], _place(meta))

    def comparison(self, meta: Any, parts: list[Any]) -> Comparison:
        left, sign, right = parts
        return Comparison({"!=": "<>"}.get(str(sign), str(sign)), left, right, _place(meta))

    def operation(self, meta: Any, parts: list[Any]) -> Operation:
        left, sign, right = parts
        return Operation(str(sign), (left, right), _place(meta))

    def negative(self, meta: Any, parts: list[Any]) -> Operation:
        return Operation("-", (parts[1],), _place(meta))

    def variable(self, meta: Any, parts: list[Token]) -> Term:
        return Variable(str(parts[0]), _place(meta))

    def anything(self, meta: Any, parts: list[Token]) -> Term:
        return Anything(_place(meta))

    def number(self, meta: Any, parts: list[Token]) -> Term:
        return Constant(str(parts[0]), _place(meta))

    def string(self, meta: Any, parts: list[Token]) -> Term:
        text = str(parts[0])[1:-1].replace("\\", "\\\\").replace("'", "\\'")
        return Constant(f"'{text}'", _place(meta))


def _place(meta: Any) -> Place:
    return Place(meta.line, meta.column)


def _at(token: Token) -> Place:
    assert token.line is not None and token.column is not None
    return Place(token.line, token.column)
