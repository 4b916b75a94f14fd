"""Reads texts of JSON for get_json_object and json_array_length, as Spark does.

If a text is not JSON, the result is None. As in Spark, strings may have single quotes and contain control characters.
Text after the first value is ignored.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache

from freshviews.expr.casts import float_to_string
from freshviews.records import dataclass

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = r"\\(?:[\"\\/bfnrt']|u[0-9a-fA-F]{4})"
_TEXT = rf"\"(?:[^\"\\]+|{_ESCAPED})*+\"|'(?:[^'\\]+|{_ESCAPED})*+'"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(
    rf"[ \t\n\r]*(?:(?P<mark>[\[\]{{}},:])|(?P<text>{_TEXT})|(?P<number>{_NUMBER})|(?P<word>true|false|null))"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_QUOTED = re.compile(r"[\x00-\x1f\"\\\ud800-\udfff]|[^\x00-\uffff]")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_DEEPEST, _LONGEST_NUMBER, _LONGEST_NAME = 1000, 1000, 50_000
_STEPS = 100
_INDICES = 2**63


class _NoJson(Exception):
    """A text that is no JSON."""


@dataclass
class _Json:
    """A value as a flat list: marks ``[ ] { }``, names, texts, and other values as they are printed.

    ``kinds`` has a letter for each: the mark itself, n for a name, s for a text, v for another value. ``ends`` has the
    place of the closing mark of each opening one.
    """

    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    def add(self, kind: str, text: str = "") -> None:
        self.kinds.append(kind)
        self.texts.append(text)

    def after(self, at: int) -> int:
        """The place after the value at a place."""
        return self.ends.get(at, at) + 1

    def members(self, at: int) -> list[int]:
        """The places of the names of an object, or of the elements of an array."""
        found, end = [], self.ends[at]
        at += 1
        while at < end:
            found.append(at)
            at = self.after(at + (self.kinds[at] == "n"))
        return found


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])


def _plain(written: str) -> str:
    """The characters of a text in quotes."""
    inner = written[1:-1]
    if "\\" not in inner:
        return inner
    text = _ESCAPE.sub(_unescaped, inner)
    return _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _printed(found: re.Match[str]) -> str:
    """A number as Java prints it: a whole one with all digits, another as a DOUBLE."""
    written = found["number"]
    if len(written) > _LONGEST_NUMBER:
        raise _NoJson
    if found["fraction"] or found["exponent"]:
        value = float(written)
        return float_to_string(value) if abs(value) < float("inf") else f'"{float_to_string(value)}"'
    return "0" if written == "-0" else written


@lru_cache(maxsize=16)
def _parsed(text: str) -> _Json:
    """The first value of a text. Raises ``_NoJson``."""
    made, at, open_ = _Json(), 0, list[int]()
    # What may follow: v a value, e a value or the end of an array, n a name, m a name or the end of an object, : , as
    # themselves.
    state = "v"
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _NoJson
        at = found.end()
        mark = found["mark"]
        if mark in ("]", "}"):
            opened = made.kinds[open_[-1]] if open_ else ""
            if (opened, mark) not in (("[", "]"), ("{", "}")) or state not in (",", "e" if mark == "]" else "m"):
                raise _NoJson
            made.ends[open_.pop()] = len(made.kinds)
            made.add(mark)
            state = ","
        elif mark in (",", ":"):
            if state != mark:
                raise _NoJson
            state = "v" if mark == ":" or made.kinds[open_[-1]] == "[" else "n"
            continue
        elif state in ("n", "m"):
            name = _plain(found["text"]) if found["text"] else None
            if name is None or len(name) > _LONGEST_NAME:
                raise _NoJson
            made.add("n", name)
            state = ":"
            continue
        elif state not in ("v", "e"):
            raise _NoJson
        elif mark:
            if len(open_) == _DEEPEST:
                raise _NoJson
            open_.append(len(made.kinds))
            made.add(mark)
            state = "e" if mark == "[" else "m"
            continue
        elif found["text"]:
            made.add("s", _plain(found["text"]))
            state = ","
        else:
            made.add("v", found["word"] or _printed(found))
            state = ","
            if not open_ and not _ends(text, at, found["word"]):
                raise _NoJson
        if not open_:
            return made


def _ends(text: str, at: int, word: str | None) -> bool:
    """True if a number or a word that is the whole value ends here."""
    after = text[at : at + 1]
    return not after or after in " \t\n\r" or (word is not None and after != "$" and not f"a{after}".isidentifier())


@dataclass
class _Printer:
    """Prints values. ``escaped``: characters beyond U+FFFF are printed as two escapes, as bytes of Java are."""

    escaped: bool
    parts: list[str] = field(default_factory=list)
    depth: int = 0
    between: str = ""

    def value(self, text: str) -> None:
        self.parts += (self.between, text)
        self.between = "," if self.depth else " "

    def begin(self, mark: str) -> None:
        self.value(mark)
        self.depth, self.between = self.depth + 1, ""

    def end(self, mark: str) -> None:
        self.depth -= 1
        self.parts.append(mark)
        self.between = "," if self.depth else " "

    def copy(self, json: _Json, at: int) -> None:
        """Print the value at a place."""
        for place in range(at, json.after(at)):
            kind, text = json.kinds[place], json.texts[place]
            if kind in "[{":
                self.begin(kind)
            elif kind in "]}":
                self.end(kind)
            elif kind == "n":
                self.value(self._quoted(text))
                self.between = ":"
            else:
                self.value(self._quoted(text) if kind == "s" else text)

    def _quoted(self, text: str) -> str:
        return f'"{_QUOTED.sub(self._escape, text)}"'

    def _escape(self, found: re.Match[str]) -> str:
        character = found[0]
        if character >= "\ud800":
            units = character.encode("utf-16-be", "surrogatepass").hex().upper()
            return re.sub("....", r"\\u\g<0>", units) if self.escaped else character
        short = next((f"\\{letter}" for letter, meant in _ESCAPES.items() if meant == character), None)
        return short or (f"\\{character}" if character in '"\\' else f"\\u{ord(character):04X}")


@dataclass(frozen=True)
class _Step:
    """A step of a path: into the values of a name, the element of a number, each element, or nowhere."""

    name: str | None = None
    index: int = -1
    each: bool = False


_BLANKS = " \t\n\x0b\f\r"
_SPACE = f"[{_BLANKS}]*"
_STEP = re.compile(
    rf"(?P<any>{_SPACE}(?:\.\*|\['\*'\]))|\.{_SPACE}(?P<name>[^.\[]+)|{_SPACE}\['{_SPACE}(?P<quoted>[^']+){_SPACE}'\]"
    rf"|\[(?:(?P<each>\*)|{_SPACE}(?P<index>[0-9]+))\]"
)


@lru_cache(maxsize=64)
def path_of(path: str) -> tuple[_Step, ...] | None:
    """The steps of a path such as ``$.a[0]['b c'][*]``; None for a text that is no path. Raises ValueError for a path
    of more steps than are supported."""
    if not path.startswith("$"):
        return None
    at, steps = 1, list[_Step]()
    while path[at:].strip(_BLANKS):
        found = _STEP.match(path, at)
        if found is None:
            return None
        at = found.end()
        name = found["name"] if found["name"] is not None else found["quoted"]
        digits = found["index"] or "-1"
        index = int(digits[:20])
        if index >= _INDICES or len(digits) > 20:
            raise ValueError(f"get_json_object: the index in {found[0]} does not fit 64 bits")
        steps.append(_Step(name, index, found["each"] is not None))
    if len(steps) > _STEPS:
        raise ValueError(f"get_json_object: a path of {len(steps)} steps is too long; at most {_STEPS} are accepted")
    return tuple(steps)


_RAW, _INNER, _FLAT = range(3)
"""How values are printed: a text alone without quotes; with quotes; and arrays without their brackets."""


def _select(json: _Json, at: int, path: tuple[_Step, ...], how: int, out: _Printer) -> bool:
    """Print the values of a path in the value at a place; False if there are none."""
    kind = json.kinds[at]
    if not path:
        if kind == "s" and how == _RAW:
            out.parts.append(json.texts[at])
            return True
        if kind != "[" or how != _FLAT:
            out.copy(json, at)
            return True
        return _flattened(json, at, out)
    step, rest = path[0], path[1:]
    if step.name is not None and kind == "{":
        named = (one + 1 for one in json.members(at) if json.texts[one] == step.name)
        values = (one for one in named if (json.kinds[one], json.texts[one]) != ("v", "null"))
        return any(_select(json, one, rest, how, out) for one in values)
    if kind != "[":
        return False
    if step.index >= 0:
        elements = json.members(at)
        inner = _INNER if rest and rest[0].each else how
        return step.index < len(elements) and _select(json, elements[step.index], rest, inner, out)
    return step.each and _each(json, at, rest, how, out)


def _flattened(json: _Json, at: int, out: _Printer) -> bool:
    """Print the elements of an array, and those of arrays in it, without brackets."""
    end, printed, at = json.ends[at], False, at + 1
    while at < end:
        if json.kinds[at] in "[]":
            at += 1
        else:
            out.copy(json, at)
            at, printed = json.after(at), True
    return printed


def _each(json: _Json, at: int, rest: tuple[_Step, ...], how: int, out: _Printer) -> bool:
    """Print the values of a path in each element of an array."""
    elements = json.members(at)
    flat = bool(rest) and rest[0].each
    if flat or how == _INNER:
        out.begin("[")
        found = [_select(json, one, rest[1:] if flat else rest, _FLAT if flat else _INNER, out) for one in elements]
        out.end("]")
        return any(found)
    # One value is printed without brackets.
    buffer = _Printer(escaped=False, depth=1)
    found = [_select(json, one, rest, _INNER if how == _RAW else how, buffer) for one in elements]
    text = "".join(buffer.parts)
    if any(found):
        out.value(text if sum(found) == 1 else f"[{text}]")
    return any(found)


def get_json_object(text: str | None, path: str | None) -> str | None:
    """The value of a path in a text of JSON: a text without quotes, any other value as JSON. None if there is none."""
    steps = None if text is None or path is None else path_of(path)
    if text is None or steps is None:
        return None
    out = _Printer(escaped=True)
    try:
        if not _select(_parsed(text), 0, steps, _RAW, out):
            return None
        made = "".join(out.parts)
        made.encode()
    except (_NoJson, UnicodeEncodeError):
        return None
    return made


def json_array_length(text: str | None) -> int | None:
    """The number of elements of a JSON array; None for other texts."""
    try:
        json = None if text is None else _parsed(text)
    except _NoJson:
        return None
    return len(json.members(0)) if json is not None and json.kinds[0] == "[" else None
