"""Recognises conditions that compare two variables. A kernel evaluates such conditions without generated code."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from freshviews.expr.nodes import Call, Column, Expr
from freshviews.records import dataclass

_SIGNS = MappingProxyType({"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="})
_TURNED = MappingProxyType({"gt": "lt", "ge": "le"})
_OPPOSITE = MappingProxyType({"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"})


@dataclass(frozen=True)
class Comparison:
    """``left sign right`` of two variables; ``sign`` is ``=``, ``<>``, ``<`` or ``<=``. ``floats``: they are doubles.
    ``null_safe``: NULL equals NULL; otherwise a comparison with NULL is never TRUE."""

    left: str
    sign: str
    right: str
    floats: bool = False
    null_safe: bool = False

    def __str__(self) -> str:
        sign = {"=": "<=>", "<>": "is distinct from"}[self.sign] if self.null_safe else self.sign
        return f"{self.left} {sign} {self.right}"


def comparison_of(condition: Expr) -> Comparison | None:
    """The comparison that is TRUE for the same codes as a condition; None if there is none."""
    if not isinstance(condition, Call):
        return None
    if condition.op == "not":
        inner = condition.args[0]
        if not isinstance(inner, Call):
            return None
        if inner.op == "null_safe_eq":
            found = comparison_of(inner)
            return None if found is None else replace(found, sign="<>")
        name, _, kind = inner.op.partition("_")
        if name not in _OPPOSITE:
            return None
        return comparison_of(replace(inner, op=_OPPOSITE[name] + (f"_{kind}" if kind else "")))
    if len(condition.args) != 2:
        return None
    left, right = condition.args
    if not isinstance(left, Column) or not isinstance(right, Column):
        return None
    if condition.op == "null_safe_eq":
        return Comparison(left.name, "=", right.name, null_safe=True)
    name, _, kind = condition.op.partition("_")
    if name not in _SIGNS or kind not in ("", "float"):
        return None
    if name in _TURNED:
        name, left, right = _TURNED[name], right, left
    return Comparison(left.name, _SIGNS[name], right.name, floats=kind == "float" and name in ("lt", "le"))
