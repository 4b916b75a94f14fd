"""Compiled operations agree with Python's own arithmetic and calendar."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from freshviews.expr.ops import DATE_UNITS, OPS, TIMESTAMP_UNITS
from freshviews.kernel.scalar import operations as scalar
from freshviews.types import NULL
from tests.expr.scalar_reference import REFERENCE, all_outcomes, expected, outcome, samples

# Libraries differ in the last bits of the results of these.
TRANSCENDENTAL = {
    "exp", "ln", "log10", "power", "sin", "cos", "tan", "log2", "log1p", "expm1", "cbrt", "asin", "acos", "atan",
    "atan2", "tanh", "comoment", "third_moment", "fourth_moment", "sinh", "cosh", "asinh", "acosh", "atanh", "hypot",
}  # fmt: skip


def close(name: str, got: int | None, wanted: int | None) -> bool:
    if got == wanted:
        return True
    if name not in TRANSCENDENTAL or got is None or wanted is None or NULL in (got, wanted):
        return False
    x, y = np.array([got, wanted], np.int64).view(np.float64).tolist()
    return math.isclose(x, y, rel_tol=1e-13, abs_tol=1e-300)


def test_every_compiled_op_has_a_reference() -> None:
    assert set(REFERENCE) == {op.name for op in OPS.values() if op.kernel is not None}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_a_compiled_op_agrees_with_its_reference(name: str) -> None:
    for row in samples(name, 400):
        got, wanted = outcome(name, row), expected(name, row)
        assert close(name, got, wanted), (name, row, got, wanted)


@pytest.mark.full
def test_plain_python_and_machine_code_agree() -> None:
    root = Path(__file__).parents[2]
    plain = subprocess.run(
        [sys.executable, "-m", "tests.expr.scalar_reference"],
        cwd=root,
        env={**os.environ, "FRESHVIEWS_PURE_PYTHON": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = json.loads(plain.stdout)
    for name, compiled in all_outcomes(60).items():
        for row, one, other in zip(samples(name, 60), compiled, outcomes[name], strict=True):
            assert close(name, one, other), (name, row, one, other)


def test_only_fallible_operations_have_a_status_argument() -> None:
    for op in OPS.values():
        if op.kernel is not None:
            function = getattr(scalar, op.kernel)
            function = getattr(function, "dispatcher", function)
            names = getattr(function, "body", function).__code__.co_varnames
            count = getattr(function, "body", function).__code__.co_argcount
            assert ("status" in names[:count]) == op.fallible, op.name
            assert count - op.fallible == op.arity[0] == op.arity[1], op.name


def test_a_later_error_does_not_replace_the_first_error() -> None:
    status = np.zeros(1, np.int64)
    assert scalar.div_int(1, 0, status.ctypes.data) == NULL
    assert scalar.add_int(2**62, 2**62, status.ctypes.data) == NULL
    assert "division by zero" in scalar.ERRORS[int(status[0])]


def test_a_double_is_rounded_by_its_text_as_in_spark() -> None:
    def rounded(x: float, digits: int) -> float:
        code = scalar.round_float(scalar.code(x), digits)
        return float(np.int64(code).view(np.float64))

    assert rounded(1.005, 2) == 1.01
    assert rounded(2.5, 0) == 3.0
    assert rounded(-2.5, 0) == -3.0
    assert rounded(0.285, 2) == 0.29
    assert rounded(12345678901234567.0, -1) == 12345678901234570.0
    assert rounded(1e-25, 20) == 0.0
    assert rounded(1.5e300, 3) == 1.5e300


@pytest.mark.sample(9)
@pytest.mark.parametrize("day", range(-800, 800, 3))
def test_weeks_are_iso_weeks_before_and_after_1970(day: int) -> None:
    assert outcome("weekofyear", (day,)) == expected("weekofyear", (day,))


def test_adding_months_clamps_to_the_last_day_of_the_month() -> None:
    def shift(text: str, months: int) -> str:
        days = int(np.datetime64(text).astype("datetime64[D]").astype(np.int64))
        return str(np.datetime64(outcome("add_months", (days, months)), "D"))

    assert shift("2024-01-31", 1) == "2024-02-29"
    assert shift("2023-01-31", 1) == "2023-02-28"
    assert shift("1969-03-31", -1) == "1969-02-28"
    assert shift("2024-02-29", 12) == "2025-02-28"
    assert shift("2024-02-29", 1) == "2024-03-29"


def test_a_result_outside_the_range_of_dates_or_timestamps_is_an_error() -> None:
    assert outcome("date_add_days", (2**31 - 1, 1)) is None
    assert outcome("date_add_days", (0, 2**63 - 1)) is None
    assert outcome("add_months", (0, 2**62)) is None
    assert outcome("add_months", (2**31 - 1, 1)) is None
    assert outcome("last_day", (2**31 - 1,)) is None
    assert outcome("trunc_date", (-(2**31), DATE_UNITS["year"])) is None
    assert outcome("date_to_timestamp", (2**31 - 1,)) is None
    assert outcome("add_months_timestamp", (2**63 - 1, 1)) is None
    assert outcome("trunc_timestamp", (-(2**63) + 1, TIMESTAMP_UNITS["second"])) is None


def test_a_shift_by_zero_months_keeps_the_first_and_the_last_timestamp() -> None:
    for t in (-(2**63) + 1, 2**63 - 1):
        assert outcome("add_months_timestamp", (t, 0)) == t


def test_the_least_int64_as_a_result_is_an_error() -> None:
    assert outcome("float_to_int", (-(2.0**63), -(2**63), 2**63 - 1)) is None
    assert outcome("sub_int", (-(2**63) + 1, 1)) is None
