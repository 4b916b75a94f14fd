r"""Translates Java's regular expressions to RE2, which searches in time linear in the text.

Constructs that RE2 lacks, such as lookaround and references to groups, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NoReturn

import re2

from freshviews.records import dataclass

LAST = 0x10FFFF

LONGEST = 10_000
"""Most characters of a pattern; the time of a search also grows with this length."""

Ranges = list[tuple[int, int]]
"""Code points from the first to the second, inclusive."""

_LINE_ENDS: Ranges = [(0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029)]
_BLANK = [0x20, 0x09]
_PUNCT: Ranges = [(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)]
_DIGIT: Ranges = [(0x30, 0x39)]
_UPPER: Ranges = [(0x41, 0x5A)]
_LOWER: Ranges = [(0x61, 0x7A)]
_SPACE: Ranges = [(0x09, 0x0D), (0x20, 0x20)]
_WORD: Ranges = [*_DIGIT, *_UPPER, (0x5F, 0x5F), *_LOWER]
_SHORT: dict[str, Ranges] = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _SPACE,
    "v": [(0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029)],
    "h": [(0x09, 0x09), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A),
          (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)],
}  # fmt: skip
_POSIX: dict[str, Ranges] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": [(0, 0x7F)],
    "Alpha": [*_UPPER, *_LOWER],
    "Digit": _DIGIT,
    "Alnum": [*_DIGIT, *_UPPER, *_LOWER],
    "Punct": _PUNCT,
    "Graph": [(0x21, 0x7E)],
    "Print": [(0x20, 0x7E)],
    "Blank": [(point, point) for point in _BLANK],
    "Cntrl": [(0, 0x1F), (0x7F, 0x7F)],
    "XDigit": [*_DIGIT, (0x41, 0x46), (0x61, 0x66)],
    "Space": _SPACE,
}
_CATEGORIES = frozenset(
    (
        *("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe"),
        *("Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"),
    )
)
_CONTROLS = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}
_OCTAL = re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}")
_HEX = re.compile(r"x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))|u([0-9a-fA-F]{4})")
_QUANTIFIER = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})([?+]?)")
_PROPERTY = re.compile(r"[pP](?:\{(?:Is|general_category=|gc=)?(\w+)\}|(\w))")
_GROUP = re.compile(r"\?(?:<([a-zA-Z][a-zA-Z0-9]*)>|([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)]))")
_AROUND = {"?=": "looking ahead", "?!": "looking ahead", "?<=": "looking back", "?<!": "looking back",
           "?>": "an independent group"}  # fmt: skip
_LINE_END_AT_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"


@lru_cache(maxsize=1024)
def searcher(pattern: str) -> Callable[[str], bool]:
    r"""The test whether a pattern occurs in a text. Raises ValueError if it is not a regular expression, or is refused.

    RLIKE asks only whether the pattern occurs. So groups do not capture and reluctant quantifiers become greedy, except
    in ``finder``, which returns matches and groups. ``\b`` is a boundary of ASCII word characters, as in Java 19 and
    later. ``$`` is accepted only at the end, and consumes a line terminator there, if any. So, unlike in Java, ``\r$``
    occurs in a text that ends in ``\r\n``.
    """
    search = _compiled(pattern, to_re2(pattern).encode(), False).search
    return lambda text: search(text.encode()) is not None


Spans = tuple[tuple[int, int] | None, ...]
"""The places of a match and of its groups in a text; None for a group that takes no part."""


@lru_cache(maxsize=256)
def finder(pattern: str) -> tuple[int, Callable[[str], Iterator[Spans]]]:
    """The number of groups of a pattern, and a function that yields its matches in a text, from left to right."""
    parser = _Parser(pattern, True)
    matches = _compiled(pattern, _written(parser), True).finditer
    groups = [i for i, is_group in enumerate(parser.groups, 1) if is_group]
    ends = [i for i, is_group in enumerate(parser.groups, 1) if not is_group]

    def found(text: str) -> Iterator[Spans]:
        for match in matches(text):
            # ``$`` consumes the end of the line, which is not part of the match.
            last = min((match.start(i) for i in ends if match.start(i) >= 0), default=len(text))
            spans = [match.span(i) for i in (0, *groups)]
            yield tuple((start, min(end, last)) if start >= 0 else None for start, end in spans)

    return len(groups), found


def _compiled(pattern: str, written: str | bytes, capture: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not capture
    try:
        return re2.compile(written, options=options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else ""
        raise ValueError(f"{pattern!r} is not a regular expression that RE2 can search: {reason}") from None


def to_re2(pattern: str) -> str:
    r"""The pattern in RE2's syntax, with the same meaning. Raises ValueError.

    A pattern is parsed by the grammar of ``java.util.regex.Pattern`` and rewritten for RE2, where some constructs have
    another meaning: a class within a class, ``&&``, ``\v``, ``.`` and ``$`` at ends of lines, and case-insensitive
    letters. Constructs without an equivalent in RE2 are refused: references to groups, lookaround, and constructs that
    depend on the version of Java or of Unicode.
    """
    return _written(_Parser(pattern))


def _written(parser: _Parser) -> str:
    pattern = parser.pattern
    if len(pattern) > LONGEST:
        raise ValueError(
            f"a regular expression of {len(pattern)} characters is too long; at most {LONGEST} are accepted"
        )
    try:
        made = parser.alternatives(_Flags(), True)
    except RecursionError:
        raise ValueError(f"the regular expression {pattern[:40]!r}... nests groups too deeply") from None
    if parser.place < len(pattern):
        parser.fail("has a ) without its (")
    return made


@dataclass(frozen=True)
class _Flags:
    """Flags: case is ignored, ``.`` matches ends of lines, ``^`` and ``$`` match at them."""

    i: bool = False
    s: bool = False
    m: bool = False


@dataclass(frozen=True)
class _Set:
    """A set of characters: ranges, and Unicode classes in RE2's syntax."""

    ranges: Ranges
    classes: tuple[str, ...] = ()

    def written(self, negated: bool = False) -> str:
        inside = "".join(_range(first, last) for first, last in _merged(self.ranges)) + "".join(self.classes)
        if not inside:
            return rf"[\x{{0}}-\x{{{LAST:x}}}]" if negated else rf"[^\x{{0}}-\x{{{LAST:x}}}]"
        return f"[{'^' if negated else ''}{inside}]"


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, capture: bool = False) -> None:
        self.pattern = pattern
        self.place = 0
        self.names: set[str] = set()
        self.capture = capture
        self.groups: list[bool] = []
        """For each captured group, True if it is a group of the pattern and not the end of a line."""

    def fail(self, reason: str, place: int | None = None) -> NoReturn:
        at = (self.place if place is None else place) + 1
        raise ValueError(f"{self.pattern!r} is not a regular expression: it {reason}, at character {at}")

    def refuse(self, what: str, instead: str, place: int | None = None) -> NoReturn:
        at = (self.place if place is None else place) + 1
        raise ValueError(
            f"{what} is not supported in the regular expression {self.pattern!r}, at character {at}; {instead}"
        )

    def peek(self, length: int = 1) -> str:
        return self.pattern[self.place : self.place + length]

    def alternatives(self, flags: _Flags, is_last: bool) -> str:
        """Alternatives, up to the end of the pattern or of their group. ``is_last``: nothing follows them."""
        made = []
        while True:
            one, flags = self.sequence(flags, is_last)
            made.append(one)
            if self.peek() != "|":
                return "|".join(made)
            self.place += 1

    def sequence(self, flags: _Flags, is_last: bool) -> tuple[str, _Flags]:
        """One alternative, and the flags after it."""
        made: list[str] = []
        ended: int | None = None
        while self.peek() not in ("", "|", ")"):
            if ended is not None:
                self.refuse("$ before the end", "put it last", ended)
            start = self.place
            character = self.peek()
            if character in "*+?":
                self.fail(f"has a {character} with nothing before it to repeat")
            if character == "{":
                self.fail("has a { that begins no repetition; write \\{ for the character")
            if character == "(":
                one, flags = self.group(flags, is_last)
            else:
                one = self.atom(flags)
            if one == _LINE_END_AT_END:
                if not is_last:
                    self.refuse("$ before the end", "put it last", start)
                ended = start
            if one == _LINE_END_AT_END and self.capture:
                self.groups.append(False)
                one = f"({one})"
            made.append(one + self.quantifier(start, one))
        return "".join(made), flags

    def quantifier(self, start: int, one: str) -> str:
        """The atom ``one``, which began at ``start``, with the quantifier after it, if any."""
        found = _QUANTIFIER.match(self.pattern, self.place)
        if found is None:
            return ""
        if found[1] == "+":
            self.refuse("a possessive quantifier", "leave out the + after the quantifier")
        if one in ("", _LINE_END_AT_END, f"({_LINE_END_AT_END})"):
            self.refuse("a repetition of flags or of $", "leave it out", start)
        self.place = found.end()
        if _QUANTIFIER.match(self.pattern, self.place):
            self.refuse("a repetition of a repetition", "put the inner one in parentheses")
        return found[0].removesuffix(found[1]) if found[1] and not self.capture else found[0]

    def group(self, flags: _Flags, is_last: bool) -> tuple[str, _Flags]:
        """A group, and the flags after it: ``(?i)`` holds up to the end of the enclosing group."""
        start = self.place
        self.place += 1
        inner = flags
        captured = self.capture
        if self.peek() == "?":
            for opening, what in _AROUND.items():
                if self.pattern.startswith(opening, self.place):
                    self.refuse(what, "it cannot be searched in linear time", start)
            found = _GROUP.match(self.pattern, self.place)
            if found is None:
                self.fail("has a (? that begins no group", start)
            self.place = found.end()
            if found[1] in self.names:
                self.fail(f"has two groups {found[1]}", start)
            if found[1] is not None:
                self.names.add(found[1])
            else:
                captured = False
                inner = self.flagged(flags, found[2] or "", found[3] or "", start)
                if found[4] == ")":
                    return "", inner
        if captured:
            self.groups.append(True)
        # A repeated group is followed by itself.
        closing = self._closing()
        repeated = closing is not None and self.pattern[closing + 1 : closing + 2] in ("*", "+", "{")
        rest = closing is not None and self.pattern[closing + 1 :].lstrip("?")[:1] not in ("", "|", ")")
        made = self.alternatives(inner, is_last and not repeated and not rest)
        if self.peek() != ")":
            self.fail("has a ( without its )", start)
        self.place += 1
        return f"({made})" if captured else f"(?:{made})", flags

    def _closing(self) -> int | None:
        """The position at which the current group ends."""
        depth, place, within, quoted = 0, self.place, 0, False
        while place < len(self.pattern):
            two, one = self.pattern[place : place + 2], self.pattern[place]
            if quoted or two == "\\Q":
                quoted = two != "\\E"
                place += 2 if two in ("\\E", "\\Q") else 1
                continue
            if one == "\\":
                place += 2
                continue
            if one == "[" or (one == "]" and within):
                within += 1 if one == "[" else -1
            elif not within and one == "(":
                depth += 1
            elif not within and one == ")":
                if depth == 0:
                    return place
                depth -= 1
            place += 1
        return None

    def flagged(self, flags: _Flags, on: str, off: str, start: int) -> _Flags:
        for letter in on + off:
            if letter not in "ism":
                self.refuse(f"the flag {letter}", "i, s and m are accepted", start)
        given = dict.fromkeys(on, True) | dict.fromkeys(off, False)
        return _Flags(given.get("i", flags.i), given.get("s", flags.s), given.get("m", flags.m))

    def atom(self, flags: _Flags) -> str:
        """A character, a class, or an anchor."""
        character = self.peek()
        if character in "^$" and flags.m:
            self.refuse(f"{character} under the flag m", "match the end of a line by \\n")
        if character == "[":
            return self.char_class(flags).written()
        if character == "\\":
            return self.escape(flags)
        self.place += 1
        if character == ".":
            return f"[\\x{{0}}-\\x{{{LAST:x}}}]" if flags.s else _Set(_LINE_ENDS).written(True)
        if character == "^":
            return r"\A"
        if character == "$":
            return _LINE_END_AT_END
        return _literal(ord(character), flags)

    def escape(self, flags: _Flags) -> str:
        """An escape outside classes."""
        following = self.pattern[self.place + 1 : self.place + 2]
        if following in ("A", "z", "b", "B"):
            if self.pattern.startswith("b{", self.place + 1):
                self.refuse("\\b{...}", "\\b is accepted")
            self.place += 2
            return "\\" + following
        if following == "Z":
            self.place += 2
            return _LINE_END_AT_END
        if following == "Q":
            end = self.pattern.find("\\E", self.place + 2)
            quoted = self.pattern[self.place + 2 : None if end < 0 else end]
            if self.pattern[end + 2 : end + 3] in ("*", "+", "?", "{") and end >= 0 and len(quoted) != 1:
                self.refuse("a repetition of a quotation", "put it in parentheses")
            self.place = len(self.pattern) if end < 0 else end + 2
            return "".join(_literal(ord(c), flags) for c in quoted)
        found = self.escaped(flags)
        return _literal(found, flags) if isinstance(found, int) else found.written()

    def escaped(self, flags: _Flags) -> int | _Set:
        """The character or set of an escape, in a class or outside."""
        start = self.place
        self.place += 1
        following = self.peek()
        if following == "":
            self.fail("ends in a \\", start)
        if found := _HEX.match(self.pattern, self.place):
            self.place = found.end()
            return self.code_point(int(next(filter(None, found.groups())), 16), start)
        if following == "0" and (octal := _OCTAL.match(self.pattern, self.place + 1)):
            self.place = octal.end()
            return int(octal[0], 8)
        if found := _PROPERTY.match(self.pattern, self.place):
            self.place = found.end()
            return self.property(found[1] or found[2], following == "P", flags, start)
        if following == "c" and self.peek(2)[1:].isascii() and len(self.peek(2)) == 2:
            self.place += 2
            return ord(self.pattern[self.place - 1]) ^ 0x40
        self.place += 1
        if following.lower() in _SHORT:
            chosen = _SHORT[following.lower()]
            return _Set(chosen if following.islower() else _complement(chosen))
        if following in _CONTROLS:
            return _CONTROLS[following]
        if following.isascii() and following.isalnum():
            what = "a reference to a group" if following.isdigit() or following == "k" else f"\\{following}"
            self.refuse(what, "write out the text or characters", start)
        return ord(following)

    def code_point(self, point: int, start: int) -> int:
        """A code point written as a number, or as two surrogates."""
        if 0xD800 <= point < 0xDC00 and (low := re.compile(r"\\u([dD][c-fC-F]..)").match(self.pattern, self.place)):
            self.place = low.end()
            return 0x10000 + ((point - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        if point > LAST or 0xD800 <= point < 0xE000:
            self.fail(f"names U+{point:04X}, which is not a character", start)
        return point

    def property(self, name: str, negated: bool, flags: _Flags, start: int) -> _Set:
        """``\\p{name}``."""
        if flags.i and name in ("Lower", "Upper", "Lu", "Ll", "Lt"):
            self.refuse(f"\\p{{{name}}} under the flag i", "name the letters", start)
        if name in _POSIX and not self.pattern.startswith("Is", start + 3):
            return _Set(_complement(_POSIX[name]) if negated else _POSIX[name])
        if name not in _CATEGORIES:
            self.refuse(f"\\p{{{name}}}", f"{', '.join(_POSIX)} and the general categories are accepted", start)
        return _Set([], (rf"\{'P' if negated else 'p'}{{{name}}}",))

    def char_class(self, flags: _Flags) -> _Set:
        """``[...]``."""
        start = self.place
        self.place += 1
        negated = self.peek() == "^"
        self.place += negated
        parts: list[_Set] = []
        made = _Set([])
        has_parts = False
        is_first = True
        while is_first or self.peek() != "]":
            if self.peek() == "":
                self.fail("has a [ without its ]", start)
            if self.peek() == "]":
                self.refuse("] as the first character of a class", "write \\]")
            is_first = False
            if self.peek(2) == "&&":
                self.place += 2
                if not made.ranges and not made.classes:
                    self.refuse("&& without a class before it", "write [a-z&&[^b]]")
                if self.peek() == "]" or self.peek(2) == "&&":
                    self.refuse("&& without a class after it", "write [a-z&&[^b]]")
                parts.append(made)
                made, has_parts = _Set([]), True
                continue
            if self.peek() == "[":
                place = self.place
                inner = self.char_class(flags)
                if isinstance(inner, _Negated):
                    self.refuse("a negated class of Unicode within a class", "name the characters", place)
                has_parts = True
                made = _Set([*made.ranges, *inner.ranges], (*made.classes, *inner.classes))
                continue
            one = self.class_item(flags)
            made = _Set([*made.ranges, *one.ranges], (*made.classes, *one.classes))
        self.place += 1
        if has_parts and negated:
            self.refuse("[^...] of a class within a class", "Java's versions differ in its meaning", start)
        for part in parts:
            if part.classes or made.classes:
                self.refuse("&& of classes of Unicode", "name the characters", start)
            made = _Set(_intersection(part.ranges, made.ranges))
        if negated:
            if made.classes:
                return _Negated(made.ranges, made.classes)
            return _Set(_complement(made.ranges))
        return made

    def class_item(self, flags: _Flags) -> _Set:
        """A character, a range or an escape within a class."""
        start = self.place
        first = self.class_character(flags)
        if isinstance(first, _Set):
            if self.peek() == "-" and self.peek(2) != "-]":
                self.refuse("a - after a class", "write \\- or put it last")
            return first
        if self.peek() != "-" or self.peek(2) in ("-", "-]"):
            return _Set(_cased(first, first, flags))
        if self.peek(2) in ("-[", "-&"):
            self.refuse("a - before a class", "write \\-")
        self.place += 1
        last = self.class_character(flags)
        if isinstance(last, _Set):
            self.refuse("a range up to a class", "write \\-", start)
        if last < first:
            self.fail("has a range whose end is before its beginning", start)
        return _Set(_cased(first, last, flags))

    def class_character(self, flags: _Flags) -> int | _Set:
        if self.peek() == "":
            self.fail("has a [ without its ]")
        if self.peek() != "\\":
            self.place += 1
            return ord(self.pattern[self.place - 1])
        if self.peek(2) in ("\\Q", "\\E", "\\b", "\\B", "\\A", "\\z", "\\Z"):
            self.refuse(f"{self.peek(2)} within a class", "write the characters")
        return self.escaped(flags)


@dataclass(frozen=True)
class _Negated(_Set):
    """All characters except those of a set."""

    def written(self, negated: bool = False) -> str:
        return super().written(not negated)


def _literal(point: int, flags: _Flags) -> str:
    if flags.i and point < 0x80 and chr(point).isalpha():
        return _Set(_cased(point, point, flags)).written()
    return _point(point)


def _point(point: int) -> str:
    return chr(point) if point > 0x7F or chr(point).isalnum() else rf"\x{{{point:x}}}"


def _range(first: int, last: int) -> str:
    return _point(first) if first == last else f"{_point(first)}-{_point(last)}"


def _cased(first: int, last: int, flags: _Flags) -> Ranges:
    """A range, with the other case of its ASCII letters if case is ignored: Java folds only these."""
    found = [(first, last)]
    if flags.i:
        for low, high, other in ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20)):
            if max(first, low) <= min(last, high):
                found.append((max(first, low) + other, min(last, high) + other))
    return found


def _merged(ranges: Ranges) -> Ranges:
    made: Ranges = []
    for first, last in sorted(ranges):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(last, made[-1][1]))
        else:
            made.append((first, last))
    return made


def _complement(ranges: Ranges) -> Ranges:
    made: Ranges = []
    after = 0
    for first, last in _merged(ranges):
        if after < first:
            made.append((after, first - 1))
        after = last + 1
    return [*made, (after, LAST)] if after <= LAST else made


def _intersection(one: Ranges, other: Ranges) -> Ranges:
    return _complement([*_complement(one), *_complement(other)])
