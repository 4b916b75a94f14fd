"""Answers as text or as a sum of hashes, and their comparison across processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

MOST_ROWS = 2000
"""Maximum rows of an answer as text. A larger answer of integers is its number of rows and the sum of their hashes."""
Answer = list[list[str]]


def answer(rows: Iterable[Iterable[Any]]) -> Answer:
    """Rows as text, sorted, so that equal bags give equal lists."""
    return sorted([repr(v) if isinstance(v, float) else str(v) for v in row] for row in rows)


def answer_of(table: pa.Table) -> Answer:
    """The answer of an Arrow table."""
    # DuckDB's sums of integers are decimals of scale 0.
    whole = all(
        pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0) for kind in table.schema.types
    )
    if table.num_rows <= MOST_ROWS or not whole:
        return answer(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return hashed([column.cast(pa.int64()).to_numpy() for column in table.columns])


def hashed(columns: Sequence[np.ndarray]) -> Answer:
    """The number of rows and the sum of their hashes, independent of their order; columns of int64."""
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state ^= column.astype(np.int64).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor) + np.uint64(0x9E3779B97F4A7C15)
    return [["rows", str(len(state)), str(int(state.sum(dtype=np.uint64)))]]


class Disagreement(Exception):
    """Two strategies gave different answers, so none of their times counts."""


def compare_answers(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise ``Disagreement`` if two measurements of a case have different answers at a step that both have."""
    for step, rows in one.get("answers", {}).items():
        others = other.get("answers", {}).get(step)
        if others is not None and not same_rows(rows, others):
            raise Disagreement(
                f"{one['workload']} {one['case']}, after step {step}: {one['strategy']} has {rows[:3]}, "
                f"{other['strategy']} has {others[:3]}"
            )


def same_rows(rows: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> bool:
    if len(rows) != len(others):
        return False
    return all(
        len(row) == len(other) and all(_same(a, b) for a, b in zip(row, other, strict=True))
        for row, other in zip(rows, others, strict=True)
    )


def _same(a: str, b: str) -> bool:
    """True if two texts are equal up to the last of six or more digits: DuckDB divides doubles, Spark decimals."""
    if a == b:
        return True
    try:
        x, y = Decimal(a), Decimal(b)
    except InvalidOperation:
        return False
    digits = min(-int(x.as_tuple().exponent), -int(y.as_tuple().exponent))
    last_digit = Decimal(1).scaleb(-digits) if digits >= 6 else Decimal(0)
    return abs(x - y) <= max(last_digit, Decimal("1e-9") * max(abs(x), abs(y)))
