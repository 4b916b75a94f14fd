"""Computes the form of an expression. Expressions have equal forms if they are the same to Spark's GROUP BY.

These pairs have equal forms: ``a + b`` and ``b + a``; ``a > b`` and ``b < a``; ``NOT (a > b)`` and ``a <= b``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from freshviews.records import dataclass
from freshviews.sql.expressions.expression import is_subquery_value
from freshviews.sql.names.scope import Scope
from freshviews.sql.names.star import columns_of, is_star
from freshviews.sql.text.parse import Node, SqlText

_CHAINS = (exp.Add, exp.Mul, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_COMMUTATIVE = (*_CHAINS, exp.EQ, exp.NullSafeEQ)
_TURNED: dict[type[Node], type[Node]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_OPPOSITE: dict[type[Node], type[Node]] = {exp.LT: exp.LTE, exp.LTE: exp.LT}
_NEGATED: dict[type[Node], type[Node]] = {exp.NEQ: exp.EQ, exp.NullSafeNEQ: exp.NullSafeEQ}
_BINARY = (*_COMMUTATIVE, *_TURNED, *_OPPOSITE, *_NEGATED)
_IN_ANY_ORDER = ("greatest", "least")
Form = tuple[Any, ...]
"""The form of an expression as written, with columns of FROM as entries."""

NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Forms:
    """Forms of the expressions of a SELECT: of its list, and of its aliases."""

    scope: Scope
    items: tuple[Form | None, ...]
    aliases: Mapping[str, Form | None]

    def of(self, node: Node, shown: Mapping[str, int] = NONE) -> Form | None:
        """The form of an expression; None if a name in it is not a column.

        ``shown``: names that denote a column of the list, by position, rather than one of FROM.
        """
        return form_of(node, self.scope.find, self.aliases, {name: self.items[i] for name, i in shown.items()})


def forms_of(text: SqlText, listed: Sequence[Node], scope: Scope) -> Forms:
    """The forms of a SELECT list."""
    items: list[Form | None] = []
    aliases: dict[str, Form | None] = {}
    for node in listed:
        if is_star(node):
            items += map(column_form, columns_of(text, node, scope))
            continue
        items.append(form_of(node, scope.find, aliases))
        if isinstance(node, exp.Alias):
            aliases.setdefault(node.alias.lower(), items[-1])
    return Forms(scope, tuple(items), aliases)


def form_of(
    node: Any,
    find: Callable[[exp.Column], Any],
    aliases: Mapping[str, Form | None] = NONE,
    shown: Mapping[str, Form | None] = NONE,
) -> Form | None:
    """The form of a node or of a node's argument.

    ``find``: what a column of FROM is known by, None for no such column. ``aliases`` apply if FROM has no such name;
    ``shown`` applies before FROM.
    """

    def of(inner: Any) -> Form | None:
        return form_of(inner, find, aliases, shown)

    if isinstance(node, (exp.Paren, exp.Alias)):
        return of(node.this)
    if isinstance(node, exp.Column):
        name = "" if node.table else node.name.lower()
        if name in shown:
            return shown[name]
        entry = find(node)
        return aliases.get(name) if entry is None else column_form(entry)
    if isinstance(node, exp.Literal):
        return (exp.Literal, node.is_string, node.this)
    if isinstance(node, Node) and is_subquery_value(node) and not isinstance(node, exp.Window):
        # A subquery's names are its own, so only equal texts are the same.
        return (exp.Subquery, node.unnest())
    if type(node) in _BINARY:
        left, right = of(node.this), of(node.expression)
        return None if left is None or right is None else _in_order(type(node), left, right)
    if isinstance(node, exp.Not):
        inner = of(node.this)
        return None if inner is None else negated(inner)
    if isinstance(node, Node):
        parts = [(name, of(value)) for name, value in node.args.items() if value and name != "negate"]
        if any(part is None for _, part in parts):
            return None
        made = _sorted((type(node), *parts))
        return negated(made) if node.args.get("negate") else made
    if isinstance(node, list):
        forms = [of(one) for one in node]
        return None if None in forms else tuple(forms)
    return (node.lower() if isinstance(node, str) else node,)


def _in_order(kind: type[Node], left: Form, right: Form) -> Form:
    """The form of a binary operation: the operands of a commutative one, also across a chain of it, are sorted."""
    if kind in _NEGATED:
        return negated(_in_order(_NEGATED[kind], left, right))
    if kind in _TURNED:
        return (_TURNED[kind], right, left)
    if kind not in _COMMUTATIVE:
        return (kind, left, right)
    return (kind, *_members(kind in _CHAINS and (kind,), (left, right)))


def negated(form: Form) -> Form:
    """The form of NOT of an expression."""
    if form[0] is exp.Not:
        return form[1]  # type: ignore[no-any-return]
    return (_OPPOSITE[form[0]], form[2], form[1]) if form[0] in _OPPOSITE else (exp.Not, form)


def _sorted(form: Form) -> Form:
    """The form of a call, with its arguments sorted if their order does not matter."""
    args = dict(form[1:])
    if form[0] is exp.In and "expressions" in args:
        return (exp.In, args["this"], *_members(False, args["expressions"]))
    if form[0] is exp.Anonymous and args["this"][0] in _IN_ANY_ORDER and "expressions" in args:
        head = (exp.Anonymous, args["this"])
        return (*head, *_members(head, args["expressions"]))
    return form


def _members(head: Form | bool, forms: Sequence[Form]) -> list[Form]:
    """The sorted operands of an operation; an operand that begins with ``head`` is a chain and adds its own."""
    size = len(head) if isinstance(head, tuple) else 0
    parts = [part for one in forms for part in (one[size:] if size and one[:size] == head else (one,))]
    return sorted(parts, key=repr)


def column_form(entry: Any) -> Form:
    return (exp.Column, entry)
