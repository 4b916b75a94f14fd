"""Parses and prints numbers by Spark's formats for to_number and to_char, such as ``$9,999.00``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from freshviews.types import NotHeldError

_FORMAT = re.compile(
    r"(?P<before>S|MI)?(?P<dollar>\$)?(?P<whole>[09]+(?:[,G][09]+)*)?(?:(?P<point>[.D])(?P<fraction>[09]*))?"
    r"(?P<after>S|MI)?(?P<angle>PR)?"
)


@dataclass(frozen=True)
class Format:
    """A format: its signs before and after, whether a dollar and angles are in it, groups of digits from the left, and
    digits after the point, None without a point."""

    before: str
    dollar: bool
    groups: tuple[str, ...]
    fraction: str | None
    after: str
    angle: bool

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return sum(map(len, self.groups))

    @property
    def scale(self) -> int:
        """Digits after the point."""
        return len(self.fraction or "")


@lru_cache(maxsize=64)
def format_of(text: str) -> Format:
    found = _FORMAT.fullmatch(text.upper())
    digits = found and (found["whole"] or "") + (found["fraction"] or "")
    if found is None or not digits or (found["before"] and found["after"] == found["before"]):
        raise ValueError(
            f"{text!r} is not a number format; accepted, in this order: S or MI, $, groups of 0 or 9 with , or G "
            "between, . or D and digits, S or MI, PR"
        )
    groups = tuple(re.split("[,G]", found["whole"] or ""))
    fraction = found["fraction"] if found["point"] else None
    before, after = found["before"] or "", found["after"] or ""
    return Format(before, bool(found["dollar"]), groups, fraction, after, bool(found["angle"]))


@lru_cache(maxsize=64)
def _reader(text: str) -> re.Pattern[str]:
    form = format_of(text)

    def signed(word: str, name: str) -> str:
        return f"(?P<{name}>[+-])?" if word == "S" else f"(?P<{name}>-)?" if word else ""

    def digits(group: str) -> str:
        return rf"\d{{{len(group)}}}" if group.startswith("0") else rf"\d{{0,{len(group)}}}"

    whole = digits(form.groups[0])
    for i, group in enumerate(form.groups[1:], 1):
        # Groups on the left may be absent, unless they have a 0.
        left = f"{whole}," if any(one.startswith("0") for one in form.groups[:i]) else f"(?:{whole},)?"
        whole = left + digits(group)
    fraction = "" if form.fraction is None else rf"(?:\.(?P<fraction>\d{{0,{form.scale}}}))?"
    angles = ("(?P<angle><)?", "(?(angle)>)") if form.angle else ("", "")
    dollar = r"\$" if form.dollar else ""
    number = f"(?P<whole>{whole}){fraction}"
    return re.compile(
        f"{angles[0]}{signed(form.before, 'before')}{dollar}{number}{signed(form.after, 'after')}{angles[1]}"
    )


def to_number(text: str, form: str) -> int:
    """The number, unscaled at the digits of the format after the point."""
    found = _reader(form).fullmatch("".join(text.split()))
    parts = found.groupdict() if found else {}
    whole, fraction = (parts.get("whole") or "").replace(",", ""), parts.get("fraction") or ""
    if found is None or not whole + fraction:
        raise ValueError(f"{text!r} does not match the format {form!r}; try_to_number gives NULL instead")
    value = int(whole + fraction.ljust(format_of(form).scale, "0"))
    if value >= 2**63:
        raise NotHeldError(f"{text!r} does not fit the 64 bits in which a DECIMAL is stored")
    negative = (parts.get("before") == "-") + (parts.get("after") == "-") + bool(parts.get("angle"))
    return -value if negative % 2 else value


def to_char(value: int, scale: int, form: str) -> str:
    """The number ``value / 10**scale`` in a format; # for digits if it does not fit."""
    made, negative = format_of(form), value < 0
    text = str(abs(value)).rjust(scale + 1, "0")
    whole, fraction = text[: len(text) - scale].lstrip("0"), text[len(text) - scale :].rstrip("0")
    fits = len(whole) <= made.whole and len(fraction) <= made.scale
    digits = iter(whole.rjust(made.whole) if fits else "#" * made.whole)
    out = "<" if made.angle and negative else ""
    out += {"S": "-" if negative else "+", "MI": "-" if negative else " "}.get(made.before, "")
    out += "$" * made.dollar
    for place, group in enumerate(made.groups):
        if place:
            out = _appended(out, "," if out[-1:].isdigit() else " ")
        for _ in group:
            digit = next(digits)
            out = _appended(out, "0" if digit == " " and group.startswith("0") else digit)
    if made.fraction is not None:
        out = out[:-1] + "0" if out.endswith(" ") else out
        out += "." + (fraction.ljust(made.scale, "0") if fits else "#" * made.scale) if made.fraction else " "
    sign = "-" if made.after and negative else "+" if made.after == "S" else ""
    number = out.rstrip(" ")
    out = number + sign + out[len(number) :] + " " * (made.after == "MI" and not negative)
    return out + (">" if negative else "  ") * made.angle


def _appended(out: str, character: str) -> str:
    """A blank goes before a sign, so that the sign stands before the first digit."""
    number = out.rstrip("+-<")
    return f"{number} {out[len(number) :]}" if character == " " else out + character
