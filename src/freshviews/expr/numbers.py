"""Computes functions of numbers in Python, such as ``conv`` and ``format_number``, which compiled code lacks."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

import numpy as np

from freshviews.types import NotHeldError

_ROUNDING = Context(prec=5000, rounding=ROUND_HALF_EVEN)


def factorial(n: int | None) -> int | None:
    """A factorial; None for None and for numbers outside 0 to 20, whose factorial no BIGINT holds."""
    return math.factorial(n) if n is not None and 0 <= n <= 20 else None


def width_bucket(x: float | None, low: float | None, high: float | None, count: int | None) -> int | None:
    """The bucket of ``x``, of ``count`` equal ones from ``low`` to ``high``, which may be less: 0 before the first and
    ``count + 1`` after the last. None without buckets."""
    if x is None or low is None or high is None or count is None:
        return None
    if not 0 < count < 2**63 - 1 or low == high or math.isnan(x) or not math.isfinite(low) or not math.isfinite(high):
        return None
    below, above = (x < low, x >= high) if low < high else (x > low, x <= high)
    if below or above:
        return 0 if below else count + 1
    return int(count * (x - low) / (high - low) if low < high else count * (low - x) / (low - high)) + 1


def round_float_even(x: float, digits: int) -> float:
    """HALF_EVEN on the shortest decimal text of ``x``."""
    if not math.isfinite(x):
        return x
    return float(Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), context=_ROUNDING)) + 0.0


def exact(x: float, scale: int) -> Decimal | None:
    """The decimal as which Spark reads a DOUBLE (``scale`` 15) or a FLOAT (7): its shortest text, HALF_UP to ``scale``
    digits after the point. None for what is no number. Raises ValueError for more than as many digits before it."""
    if not math.isfinite(x):
        return None
    digits = Decimal(repr(x) if scale == 15 else np.format_float_scientific(np.float32(x)))
    value = digits.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_ROUNDING)
    if abs(value) >= Decimal(10) ** scale:
        raise ValueError(f"{x!r} does not fit DECIMAL({2 * scale}, {scale})")
    return value


def _toward(how: str, x: float | None, scale: int, digits: int) -> int | None:
    value = None if x is None else exact(x, scale)
    if value is None:
        return None
    kept = min(digits, scale)
    rounded = value.quantize(Decimal(1).scaleb(-kept), rounding=how, context=_ROUNDING)
    made = int(rounded.scaleb(max(kept, 0), _ROUNDING))
    if abs(made) >= 2**63:
        raise NotHeldError(f"{x!r} with {kept} digits does not fit the 64 bits in which a DECIMAL is stored")
    return made


def floor_of_float(x: float | None, scale: int, digits: int) -> int | None:
    """A DOUBLE or FLOAT rounded down to a number of digits after the point, unscaled; see ``exact``."""
    return _toward(ROUND_FLOOR, x, scale, digits)


def ceil_of_float(x: float | None, scale: int, digits: int) -> int | None:
    """As ``floor_of_float``, rounded up."""
    return _toward(ROUND_CEILING, x, scale, digits)


def bin_text(value: int) -> str:
    """64 bits in two's complement, as binary digits."""
    return f"{value % 2**64:b}"


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def conv(text: str | None, source: int | None, target: int | None) -> str | None:
    """A whole number of 64 bits in another base, signed if ``target`` is negative; read up to what is no digit."""
    if text is None or source is None or target is None or not 2 <= source <= 36 or not 2 <= abs(target) <= 36:
        return None
    digits = text.strip(" ")
    if not digits:
        return None
    negative = digits.startswith("-")
    value = 0
    for character in digits[negative:]:
        digit = _DIGITS.find(character.upper()) if character.isascii() else -1
        if not 0 <= digit < source:
            break
        value = value * source + digit
        if value >= 2**64:
            raise ValueError(f"conv: {text!r} in base {source} does not fit 64 bits")
    if negative and target > 0:
        value = 2**64 - 1 if value >= 2**63 else -value % 2**64
    elif target < 0 and value >= 2**63:
        value, negative = 2**64 - value, True
    made = ""
    while value or not made:
        value, digit = divmod(value, abs(target))
        made = _DIGITS[digit] + made
    return f"-{made}" if negative and target < 0 else made


_PATTERN = re.compile(r"([#0,]*)(?:\.(0*#*))?")


@lru_cache(maxsize=64)
def _layout(how: int | str) -> tuple[int, int, int, int]:
    """Least digits before the point, size of groups, least and most digits after the point."""
    if isinstance(how, int):
        return 1, 3, how, how
    if not how:
        return 1, 3, 0, 0
    found = _PATTERN.fullmatch(how)
    whole, fraction = (found[1], found[2] or "") if found else ("", "")
    digits = whole.replace(",", "")
    if not found or "0#" in digits or not digits + fraction or whole.startswith(",") or whole.endswith(","):
        what = f"format_number: the pattern {how!r} is not supported"
        raise ValueError(f"{what}; a format has the characters '#', '0', ',' and '.', as in '#,##0.00'")
    group = len(whole) - whole.rindex(",") - 1 if "," in whole else 0
    least = digits.count("0") or ("." in how and "0" not in fraction)
    return int(least), group, fraction.count("0"), len(fraction)


def format_number(value: int | float, scale: int, how: int | str) -> str | None:
    """A number with groups of three digits, to ``how`` digits after the point (None if negative), or by a pattern of
    # 0 , and . An integer is ``value / 10**scale``."""
    if isinstance(how, int) and how < 0:
        return None
    if isinstance(how, int) and how > 4000 and isinstance(value, int):
        raise ValueError(f"format_number: {how} digits are too many; at most 4000 are accepted")
    least, group, shown, most = _layout(how)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    exact = Decimal(value).scaleb(-scale, _ROUNDING) if isinstance(value, int) else Decimal(repr(value))
    if isinstance(value, float):
        most = min(most, 340)
    unit = Decimal(1).scaleb(-most)
    rounded = exact.copy_abs().quantize(unit, context=_ROUNDING)  # abs() would round to 28 digits
    if isinstance(value, float) and abs(abs(exact) - rounded) * 2 == unit:
        rounded = abs(Decimal(value)).quantize(unit, context=_ROUNDING)  # what is no tie among all digits
    whole, _, fraction = f"{rounded:f}".partition(".")
    fraction = fraction.rstrip("0").ljust(min(shown, most), "0")
    whole = whole.lstrip("0").rjust(least, "0") or ("" if fraction else "0")
    if group and whole:
        first = (len(whole) - 1) % group + 1
        whole = ",".join((whole[:first], *(whole[i : i + group] for i in range(first, len(whole), group))))
    return f"{'-' if exact < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"
