"""Operations over constants, so that ``DATE '2026-01-01' - INTERVAL '90' DAY`` is a literal.

Host operations compute values, compiled ones codes: both as they do for the rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freshviews.expr.host_evaluation import HostFailure, compiled
from freshviews.expr.nodes import Call, Literal
from freshviews.expr.ops import OPS
from freshviews.kernel.scalar.failure import ERRORS, LEAST
from freshviews.types import RESERVED, NotHeldError, SqlType
from freshviews.types.values import number_code, number_value

_FOR_ROWS = ("only_value", "unless_failed", "unless_counted")
"""Operations that say what fails for a row."""


def is_computed(op: str, args: Sequence[Literal]) -> bool:
    """Whether an operation over constants is a constant. A host operation over a NULL that it may take stays a call."""
    how = OPS[op]
    if how.host is not None:
        return all(arg.value is not None for arg in args)
    return how.kernel is not None and op not in _FOR_ROWS


def computed(op: str, args: Sequence[Literal], result: SqlType) -> Any:
    """The value of an operation over constants. Raises ValueError or OverflowError where it fails."""
    how = OPS[op]
    if how.host is not None:
        return how.host(*(arg.value for arg in args))
    texts: dict[str, int] = {}
    codes = [
        texts.setdefault(arg.value, len(texts)) if isinstance(arg.value, str) else number_code(arg.type, arg.value)
        for arg in args
    ]
    code = compiled(Call(op, tuple(args), result, True), how)(*codes)
    if isinstance(code, HostFailure):
        if code.reason == ERRORS[LEAST]:
            raise NotHeldError(RESERVED)
        raise ValueError(code.reason)
    return number_value(result, code)
