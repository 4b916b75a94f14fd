"""Defines the nodes of typed scalar expressions: ``Column``, ``Literal`` and ``Call``, an operation with arguments.

The values of columns and calls are codes, the int64 numbers that represent SQL values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

from freshviews.records import dataclass
from freshviews.types import SqlType
from freshviews.types.python_functions import name_of


@dataclass(frozen=True)
class Column:
    """A column or variable, by name."""
    name: str
    type: SqlType
    nullable: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal:
    """A constant. ``written``: the constant is an operand of the query's text; an integer beside a decimal then has the
    digits that are written, not those of its type."""
    value: str | int | float | bool | None
    type: SqlType
    written: bool = field(default=False, compare=False, repr=False)

    @property
    def nullable(self) -> bool:
        return self.value is None

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        return repr(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Call:
    """An operation applied to arguments."""
    op: str
    args: tuple[Expr, ...]
    type: SqlType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{name_of(self.op)}({', '.join(map(str, self.args))})"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the call reads, found once, as planning asks for them many times (``columns_of``)."""
        found: dict[str, None] = {}
        left: list[Expr] = [self]
        while left:
            node = left.pop()
            if isinstance(node, Column):
                found[node.name] = None
            elif isinstance(node, Call):
                left.extend(reversed(node.args))
        return tuple(found)


Expr = Column | Literal | Call


def columns_of(expr: Expr) -> tuple[str, ...]:
    """Names of the columns of an expression, each once, in order of first use."""
    if isinstance(expr, Column):
        return (expr.name,)
    return expr.columns if isinstance(expr, Call) else ()


WORDS = "words"
"""A call whose arguments are columns with the words of an element of a ring, in order. Only a lift may be one; it is
not an operation of ``freshviews.expr.ops``, as an element has no code."""


def words_in(expr: Expr) -> tuple[str, ...]:
    """The columns with the words of an element; () for a scalar."""
    return columns_of(expr) if isinstance(expr, Call) and expr.op == WORDS else ()


def substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """The expression with columns replaced by the mapping; columns that it lacks stay."""
    if isinstance(expr, Column):
        return mapping.get(expr.name, expr)
    if isinstance(expr, Literal):
        return expr
    return replace(expr, args=tuple(substitute(arg, mapping) for arg in expr.args))
