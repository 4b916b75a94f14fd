"""Computes string functions, as Spark defines them, over Python values."""

from __future__ import annotations

import json
import operator
from functools import lru_cache

from freshviews.expr.like import matcher
from freshviews.expr.regular_expressions import searcher

# The order of code points is the order of UTF-8 bytes.
less = operator.lt
less_or_equal = operator.le
greater = operator.gt
greater_or_equal = operator.ge
contains = operator.contains

LONGEST = 2**27
"""Most characters of the result of a function that lengthens a text."""


def check_length(function: str, characters: int) -> None:
    """Refuse a result that would be too long, before it is computed. Raises ValueError."""
    if characters > LONGEST:
        raise ValueError(f"{function}: a text of {characters} characters is too long; at most {LONGEST} are accepted")


def in_list(value: int | str, listed: str) -> bool:
    """True if a value is in a list of constants, a JSON text."""
    return value in members(listed)


@lru_cache(maxsize=64)
def members(text: str) -> frozenset[int | str]:
    """The constants of a list, a JSON text."""
    return frozenset(json.loads(text))


def greatest(a: str | None, b: str | None) -> str | None:
    """The greater one; None is skipped."""
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


def least(a: str | None, b: str | None) -> str | None:
    """The lesser one; None is skipped."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """SQL's LIKE: ``%`` is any text, ``_`` any one character."""
    return matcher(pattern, escape)(text)


def ilike(text: str, pattern: str, escape: str = "\\") -> bool:
    """LIKE without regard to case."""
    return matcher(pattern.lower(), escape.lower())(text.lower())


def rlike(text: str, pattern: str) -> bool:
    """True if the pattern, a regular expression of Java, occurs in the text."""
    return searcher(pattern)(text)


def concat(*parts: str) -> str:
    check_length("concat", sum(map(len, parts)))
    return "".join(parts)


def concat_ws(separator: str | None, *parts: str | None) -> str | None:
    """The parts that are not None, joined; None if the separator is None."""
    if separator is None:
        return None
    joined = [part for part in parts if part is not None]
    check_length("concat_ws", sum(map(len, joined)) + len(separator) * (len(joined) - 1))
    return separator.join(joined)


def initcap(text: str) -> str:
    """First character of each word in title case and the rest in lower case; words end at spaces only."""
    return " ".join([word[:1].title() + word[1:].lower() for word in text.split(" ")])


def reverse(text: str) -> str:
    return text[::-1]


def ascii_code(text: str) -> int:
    """Code point of the first character, 0 for the empty text."""
    return ord(text[0]) if text else 0


def substring(text: str, position: int, length: int | None = None) -> str:
    """``length`` characters from the 1-based position, which counts from the end if negative.

    Position 0 is position 1. Positions outside the text are cut off.
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    if length is None:
        return text[max(start, 0) :]
    return text[max(start, 0) : max(start + length, 0)]


def trim(text: str, characters: str = " ") -> str:
    return text.strip(characters) if characters else text


def ltrim(text: str, characters: str = " ") -> str:
    return text.lstrip(characters) if characters else text


def rtrim(text: str, characters: str = " ") -> str:
    return text.rstrip(characters) if characters else text


def replace(text: str, search: str, replacement: str) -> str:
    """Every occurrence replaced; an empty search changes nothing."""
    if not search:
        return text
    if len(replacement) > len(search):
        check_length("replace", len(text) + text.count(search) * (len(replacement) - len(search)))
    return text.replace(search, replacement)


def _padding(function: str, text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return ""
    check_length(function, length)
    return (pad * (missing // len(pad) + 1))[:missing]


def lpad(text: str, length: int, pad: str = " ") -> str:
    """Padded on the left, or cut on the right, to ``length`` characters."""
    return (_padding("lpad", text, length, pad) + text)[: max(length, 0)]


def rpad(text: str, length: int, pad: str = " ") -> str:
    """Padded or cut on the right to ``length`` characters."""
    return (text + _padding("rpad", text, length, pad))[: max(length, 0)]


def repeat(text: str, times: int) -> str:
    check_length("repeat", times * len(text))
    return text * times


def left(text: str, length: int) -> str:
    return text[: max(length, 0)]


def right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


def instr(text: str, part: str) -> int:
    """1-based position of the first occurrence, 0 without one."""
    return text.find(part) + 1


def locate(part: str, text: str, position: int = 1) -> int:
    """1-based position of the first occurrence from ``position`` on, 0 without one."""
    if position < 1:
        return 0
    return text.find(part, position - 1) + 1 if part else 1


def split_part(text: str, delimiter: str, number: int) -> str:
    """The part at a 1-based position, from the end if negative; empty if there is none."""
    if number == 0:
        raise ValueError("split_part counts parts from 1, or from -1 backwards; there is no part 0")
    parts = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def translate(text: str, characters: str, by: str) -> str:
    """The text with each of the characters replaced by the one at its position in ``by``, or removed."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(characters):
        table.setdefault(ord(character), by[place] if place < len(by) else None)
    return text.translate(table)


def substring_index(text: str, delimiter: str, count: int) -> str:
    """The text before the delimiter number ``count``, or, from the end, after it. Delimiters may overlap."""
    if not delimiter or not count:
        return ""
    at = -1 if count > 0 else len(text) - len(delimiter) + 1
    for _ in range(abs(count)):
        at = text.find(delimiter, at + 1) if count > 0 else text.rfind(delimiter, 0, max(at - 1 + len(delimiter), 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(delimiter) :]


def split_at(text: str | None, delimiter: str | None, place: int | None) -> str | None:
    """The part at a position, counted from 0; None after the last one."""
    if text is None or delimiter is None or place is None:
        return None
    parts = text.split(delimiter) if delimiter else [*text]
    return parts[place] if 0 <= place < len(parts) else None


def hex_int(value: int) -> str:
    """64 bits in two's complement, as hexadecimal digits."""
    return f"{value % 2**64:X}"


def hex_string(text: str) -> str:
    """The bytes in UTF-8, as hexadecimal digits."""
    check_length("hex", 2 * octet_length(text))
    return text.encode().hex().upper()


def octet_length(text: str) -> int:
    """Number of bytes in UTF-8."""
    return len(text.encode())


def character(code: int) -> str:
    """The character of a code point modulo 256; empty for a negative one."""
    return chr(code % 256) if code >= 0 else ""


def bit_length(text: str) -> int:
    """Number of bits in UTF-8."""
    return 8 * octet_length(text)


def elt(number: int | None, *texts: str | None) -> str | None:
    """The text at a 1-based position."""
    if number is None:
        return None
    if not 1 <= number <= len(texts):
        raise ValueError(f"elt: text {number} is asked for, but {len(texts)} texts are given")
    return texts[number - 1]


def find_in_set(text: str, listed: str) -> int:
    """1-based position of a text in a list with commas, 0 without one."""
    parts = listed.split(",")
    return parts.index(text) + 1 if text in parts else 0


def levenshtein(one: str, other: str, most: int | None = None) -> int:
    """The least number of inserted, deleted and replaced characters; -1 if it exceeds ``most``."""
    row = list(range(len(other) + 1))
    for i, character in enumerate(one, 1):
        above, row = row, [i]
        for j, compared in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (character != compared)))
    return row[-1] if most is None or row[-1] <= most else -1


def luhn_check(digits: str) -> bool:
    """True if the last digit is the check digit of the others, by Luhn's algorithm."""
    if not digits.isascii() or not digits.isdecimal():
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(n - 9 * (n > 9) for n in doubled) % 10 == 0


def mask(text: str | None, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str | None:
    """The text with the characters of each class replaced; None keeps a class.

    A character of two UTF-16 units counts as two others."""
    if text is None:
        return None

    def masked(c: str) -> str:
        if c > "\uffff":
            return c if other is None else 2 * other
        by = upper if c.isupper() else lower if c.islower() else digit if c.isdecimal() else other
        return c if by is None else by

    return "".join(map(masked, text))


def overlay(text: str, by: str, position: int, length: int = -1) -> str:
    """``length`` characters from a 1-based position replaced; as many as ``by`` has if it is negative."""
    size = len(by) if length < 0 else length
    made = substring(text, 1, position - 1) + by + substring(text, position + size)
    check_length("overlay", len(made))
    return made


def raise_error(message: str | None) -> None:
    """Raise a ValueError with a message."""
    raise ValueError("null" if message is None else message)


def quote(text: str) -> str:
    """The text between quotes, with a backslash before each quote in it."""
    return "'" + text.replace("'", "\\'") + "'"


_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))


def soundex(text: str) -> str:
    """The Soundex code of an English word; another text as it is."""
    upper = "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)
    if upper[:1] not in _SOUNDS:
        return text
    made, last = upper[0], _SOUNDS[upper[0]]
    for character in upper[1:]:
        sound = _SOUNDS.get(character, "0")
        if sound == "7":
            continue
        if sound not in ("0", last):
            made += sound
        last = sound
    return made[:4].ljust(4, "0")
