"""Escapes control characters in names and values, because a terminal would obey them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

_REORDERS = "\u2028-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERS}\ud800-\udfff]")
_IN_CELLS = re.compile(f"[\x00-\x1f\x7f-\x9f{_REORDERS}\ud800-\udfff]")
_IN_JSON = re.compile(f"[\x7f-\x9f{_REORDERS}\ud800-\udfff]")
"""The control characters that JSON does not escape itself."""


def say(text: str = "", *, to: TextIO | None = None, end: str = "\n") -> None:
    """Print text, by default to the standard output."""
    print(printable(text), file=to or sys.stdout, end=end)


def printable(text: str) -> str:
    """Text of several lines as it is printed."""
    return _CONTROLS.sub(_escaped, text)


def cell(text: object) -> str:
    """A name or a value as it is printed in one line."""
    return _IN_CELLS.sub(_escaped, str(text))


def json_line(row: Mapping[str, Any]) -> str:
    """A row as JSON, whose strings a terminal can be shown."""
    text = json.dumps(row, default=str, ensure_ascii=False)
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    written = f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(found[0], written)
