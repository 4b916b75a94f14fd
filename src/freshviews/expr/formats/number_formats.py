"""Parses and prints numbers for to_number and to_char, and prints values for format_string.

The formats of to_number and to_char are Spark's, with the letters 0 9 . D , G $ S MI PR. Both functions represent a
number by its unscaled integer: 12.30 is 1230. The formats of format_string are Java's. Refused arguments raise a
``ValueError`` with the reason.
"""

from __future__ import annotations

import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from math import isfinite, isnan

from freshviews.expr.casts import float32_to_string, float_to_string
from freshviews.expr.hashes import hash_values
from freshviews.expr.numbers import exact
from freshviews.expr.strings import check_length
from freshviews.records import dataclass

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
            f"{text!r} is not a number format; write, in this order: a sign S or MI, $, digits 0 or 9 (with , or G "
            "between groups), a point . or D with digits, a sign S or MI, PR"
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
        raise ValueError(f"{text!r} does not match the format {form!r}; use try_to_number to get NULL instead")
    value = int(whole + fraction.ljust(format_of(form).scale, "0"))
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


def float_to_char(x: float | None, scale: int, form: str) -> str | None:
    """A DOUBLE (``scale`` 15) or a FLOAT (7) in a format; None for what is no number."""
    value = None if x is None else exact(x, scale)
    return None if value is None else to_char(int(value.scaleb(scale)), scale, form)


def _appended(out: str, character: str) -> str:
    """A blank goes before a sign, so that the sign stands before the first digit."""
    number = out.rstrip("+-<")
    return f"{number} {out[len(number) :]}" if character == " " else out + character


_SPECIFIER = re.compile(
    r"%(?:(?P<index>\d+)\$)?(?P<flags>[-#+ 0,(<]*)(?P<width>[1-9]\d*)?(?:\.(?P<precision>\d+))?(?P<letter>[a-zA-Z%])"
)
_ACCEPTED = {
    "s": "-", "b": "-", "h": "-", "c": "-", "n": "", "%": "-", "d": "-+ 0,(", "o": "-#+ 0(", "x": "-#+ 0(",
    "e": "-#+ 0(", "f": "-#+ 0,(", "g": "-+ 0,(", "a": "-#+ 0",
}
"""The flags of each letter of a format of Java; ``<`` is the place of an argument."""
_KINDS = {"d": "yhil", "o": "yhil", "x": "yhil", "c": "yhi", "e": "fd", "f": "fd", "g": "fd", "a": "fd"}
"""The kinds of the values that a letter prints; others print every value."""
_BITS = {"y": 8, "h": 16, "i": 32, "l": 64}

Printed = str | int | float | bool | None


@dataclass(frozen=True)
class Specifier:
    """A part of a format of Java that prints a value: the text before it, and how it prints."""

    before: str
    index: int
    flags: str
    width: int
    precision: int
    letter: str
    upper: bool

    def padded(self, text: str) -> str:
        """The text in capital letters if so asked, and padded to the width."""
        text = text.upper() if self.upper else text
        width = self.width - sum(character > "\uffff" for character in text)
        return text.ljust(width) if "-" in self.flags else text.rjust(width)

    def cut(self, text: str) -> str:
        """The text cut to the precision, which counts units of UTF-16, as the width does."""
        if not 0 <= self.precision < len(text.encode("utf-16-le")) // 2:
            return text
        units = text.encode("utf-16-le")[: 2 * self.precision]
        return units.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()


@lru_cache(maxsize=256)
def specifiers(form: str) -> tuple[tuple[Specifier, ...], str]:
    """The specifiers of a format of Java, and the text after the last one. Raises ValueError for a wrong format."""
    found: list[Specifier] = []
    start = next_index = last = 0
    while (at := form.find("%", start)) >= 0:
        part = _SPECIFIER.match(form, at)
        letter = part["letter"].lower() if part is not None else ""
        if part is None or letter not in _ACCEPTED or (part["letter"].isupper() and letter in "dofn"):
            raise ValueError(
                f"format_string: {form[at : at + 8]!r} is not accepted; write for example %s, %d, %x, %.2f or %e"
            )
        flags, width, precision = part["flags"].replace("<", ""), int(part["width"] or 0), int(part["precision"] or -1)
        wrong = set(flags) - set(_ACCEPTED[letter]) or len(set(part["flags"])) < len(part["flags"])
        lacking = not width and ("-" in flags or "0" in flags)
        without = part["precision"] is not None and letter in "dxocn%a"
        if wrong or lacking or without or {"+", " "} <= set(flags) or {"-", "0"} <= set(flags):
            raise ValueError(f"format_string: {part[0]!r} cannot have this flag, width or precision; leave it out")
        if letter == "n" and width:
            raise ValueError("format_string: %n has no width")
        check_length("format_string", max(width, precision))
        precision = int(part["precision"]) if part["precision"] is not None else -1
        index = 0
        if letter not in "n%":
            if "<" in part["flags"]:
                index = last
            elif part["index"]:
                index = int(part["index"])
            else:
                next_index += 1
                index = next_index
            last = index
            index = index or -1
        found.append(
            Specifier(form[start:at], index, flags, width, precision, letter, part["letter"].isupper())
        )
        start = part.end()
    return tuple(found), form[start:]


def format_string(kinds: str, form: str | None, *values: Printed) -> str | None:
    """The values in a format of Java. ``kinds`` has a letter for each value: y h i l for integers of 8 to 64 bits, f
    and d for FLOAT and DOUBLE, b for BOOLEAN, s for a STRING, n for a decimal as a text, v for NULL."""
    if form is None:
        return None
    parts, rest = specifiers(form)
    texts: list[str] = []
    for part in parts:
        if part.index and not 1 <= part.index <= len(values):
            raise ValueError(
                f"format_string: the format asks for value {part.index}, but {len(values)} values are given"
            )
        texts.append(part.before)
        if part.letter in "n%":
            texts.append("\n" if part.letter == "n" else part.padded("%"))
        else:
            texts.append(_printed(part, kinds[part.index - 1], values[part.index - 1]))
        check_length("format_string", sum(map(len, texts)))
    return "".join((*texts, rest))


def _printed(part: Specifier, kind: str, value: Printed) -> str:
    letter = part.letter
    if letter == "b":
        text = "false" if value is None else "true" if value is True or kind != "b" else "false"
        return part.padded(part.cut(text))
    if value is not None and kind not in _KINDS.get(letter, kind):
        raise ValueError(f"format_string: %{letter} does not accept a value of this type; CAST the value")
    if value is None or letter in "sh":
        text = "null" if value is None else _text(kind, value) if letter == "s" else _hashed(kind, value)
        return part.padded(part.cut(text))
    if letter == "c":
        if not 0 <= int(value) <= 0x10FFFF:
            raise ValueError(f"format_string: {value} is no character")
        return part.padded(chr(int(value)))
    if letter in "ox":
        if set("+ (") & set(part.flags):
            raise ValueError(f"format_string: %{letter} does not take the flags +, ( and blank")
        return _digits_of_base(part, int(value), _BITS[kind])
    negative = value < 0 if not isinstance(value, str) else False
    if isinstance(value, float) and not isfinite(value):
        name = "NaN" if isnan(value) else "Infinity"
        return part.padded(name if isnan(value) else _signed(part, negative, name, 0))
    if letter == "d":
        return part.padded(_signed(part, negative, str(abs(int(value))), part.width))
    return part.padded(_signed(part, negative, _of_double(part, abs(float(value))), part.width))


def _signed(part: Specifier, negative: bool, digits: str, width: int) -> str:
    """Digits with commas, zeros before them, and a sign, as the flags say."""
    whole, point, rest = digits.partition(".")
    if "," in part.flags and whole.isdecimal():
        whole = f"{int(whole):,}"
    angles = negative and "(" in part.flags
    before = "(" if angles else "-" if negative else "+" if "+" in part.flags else " " if " " in part.flags else ""
    text = whole + point + rest
    if "0" in part.flags:
        text = text.rjust(width - len(before) - angles, "0")
    return before + text + ")" * angles


def _digits_of_base(part: Specifier, value: int, bits: int) -> str:
    text = f"{value % 2**bits:{part.letter}}"
    before = {"o": "0", "x": "0x"}[part.letter] if "#" in part.flags else ""
    if "0" in part.flags:
        text = text.rjust(part.width - len(before), "0")
    return part.padded(before + text)


def _of_double(part: Specifier, value: float) -> str:
    """The digits of a double that is not negative."""
    exact = Decimal(repr(value))
    digits = 6 if part.precision < 0 else part.precision
    letter = part.letter
    if letter == "a":
        return _hexadecimal(value)
    if letter == "g":
        digits = digits or 1
        rounded = _to_digits(exact, digits)
        letter = "f" if not rounded or -4 <= rounded.adjusted() < digits else "e"
        digits -= 1 + (rounded.adjusted() if letter == "f" and rounded else 0)
    if letter == "f":
        text = format(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE), "f")
        return f"{text}." if "#" in part.flags and not digits else text
    rounded = _to_digits(exact, digits + 1)
    exponent = rounded.adjusted() if rounded else 0
    mantissa = format(rounded.scaleb(-exponent, _WIDE).quantize(Decimal(1).scaleb(-digits), None, _WIDE), "f")
    point = "." if "#" in part.flags and not digits else ""
    return f"{mantissa}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _to_digits(value: Decimal, digits: int) -> Decimal:
    return Context(prec=max(digits, 1), rounding=ROUND_HALF_UP, Emax=10**6, Emin=-(10**6)).plus(value)


def _hexadecimal(value: float) -> str:
    """As Java's Double.toHexString."""
    mantissa, _, exponent = value.hex().removeprefix("0x").partition("p")
    whole, _, fraction = mantissa.partition(".")
    return f"0x{whole}.{fraction.rstrip('0') or '0'}p{int(exponent)}"


def _text(kind: str, value: Printed) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float32_to_string(value) if kind == "f" else float_to_string(value)
    return str(value)


def _hashed(kind: str, value: Printed) -> str:
    """The hash code that Java has for a value, as hexadecimal digits."""
    if kind == "b":
        return "4cf" if value else "4d5"
    if kind == "n":
        raise ValueError("format_string: %h does not print a DECIMAL")
    if isinstance(value, str):
        return f"{hash_values('s', value) % 2**32:x}"
    if isinstance(value, float):
        packed = struct.pack(">f" if kind == "f" else ">d", value)
        bits = int.from_bytes(packed, "big")
    else:
        bits = int(value or 0) % 2**64 if kind == "l" else int(value or 0) % 2**32
    return f"{(bits ^ bits >> 32) % 2**32:x}"


_WIDE = Context(prec=2000, Emax=10**6, Emin=-(10**6))
