"""Computes operations over constants, so that ``DATE '2026-01-01' - INTERVAL '90' DAY`` is a literal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freshviews.expr.nodes import Call, Literal
from freshviews.expr.ops import OPS
from freshviews.types import SqlType

_FOR_ROWS = ("only_value", "unless_failed", "unless_counted", "raise_error")
"""Operations that report failures of rows."""


def is_computed(op: str, args: Sequence[Literal]) -> bool:
    """True if an operation over constants is a constant. A host operation that may take NULL stays a call over one."""
    how = OPS[op]
    if how.host is not None and op not in _FOR_ROWS:
        return all(arg.value is not None for arg in args)
    return how.kernel is not None and op not in _FOR_ROWS


def computed(op: str, args: Sequence[Literal], result: SqlType) -> Any:
    """The value of an operation over constants. Raises ValueError or OverflowError if it fails."""
    how = OPS[op]
    if how.host is not None:
        return how.host(*(arg.value for arg in args))
    # This import loads machine code, which a process that only reads a script does not need.
    from freshviews.expr.host_evaluation import constant

    return constant(Call(op, tuple(args), result, True))
