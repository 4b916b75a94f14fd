"""Hides secrets in text: values of options such as ``password``, and users and passwords in addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

HIDDEN = "***"

_SECRET = re.compile(
    r"pass(wor|w)d|passphrase|pwd|(^|[._-])pass$|secret|token|credential|jaas|user\.info"
    r"|(keystore|account|private|access|api|shared|encryption|signing)[._-]?key",
    re.I,
)
_STRINGS = r"""(?:(?:'(?:\\.|[^'\\])*+(?:'|$)|"(?:\\.|[^"\\])*+(?:"|$))\s*+)++"""
"""Strings that follow each other, which are one value; the last one may lack its closing quote."""
_NAME = r"(?<![\w.\-])([\w.\-]++)"
_OPTION = re.compile(
    rf"""{_NAME}(?=(?:(?:\\?['"`]\s*+[=:]?|\s*+=)?\s*+)({_STRINGS})|['"`]?\s*+=\s*+(?!<)([^\s'"=,;)&]++))""", re.S
)
"""``password 'x'``, ``"password": "x"`` and ``password=x``."""
_OPTIONS = re.compile(r"\b(?:OPT|TBLPROP)\w*\s*+\(?[^;]*+", re.I)
_BARE = re.compile(rf"""{_NAME}(?=['"`]?\s++([^\s'",;()=][^\s,;)]*+))""")
"""In the options of a script: a value without its first quote."""
_USER = re.compile(
    r"""(?:(?<!abfs:)(?<!abfss:)(?<!wasb:)(?<!wasbs:)//"""
    r"""((?>[^/@?;:\s'"]*+):(?!\d+[/?,\s'"])[^\s'"]{0,256}(?=@)|[^/@?;\s'"]++(?=@))|:thin:([^/:@\s'"]++/[^@\s'"]++)(?=@))""",
    re.I,
)
"""The user and password before a host. A password may have any letter, up to the last @; before ``@`` in the addresses
of Azure is a container."""

_ANYWHERE, _AS_WORD = 8, 4
"""Letters of a secret from which on it is hidden anywhere, and as a whole word. A shorter one is hidden as a value."""


def is_secret(name: str) -> bool:
    """Whether the value of an option of this name is hidden."""
    return _SECRET.search(name) is not None


def masked(text: str) -> str:
    """A message whose secrets are ``***``."""
    return _replaced(text, _places(text), lambda secret: HIDDEN)


def starred(script: str) -> str:
    """A script whose secrets are stars; each character keeps its place."""
    return _replaced(script, _script_places(script), lambda secret: re.sub(r"[^\n]", "*", secret))


def without_those_of(script: str, message: str) -> str:
    """A message about a script without the secrets of the script, however the message quotes them."""
    values = {script[start:end].strip().strip("'\"") for start, end in _script_places(script)}
    for value in sorted(values, key=len, reverse=True):
        if value and value != HIDDEN:
            message = re.sub(standing(value), HIDDEN, message)
    return message


def standing(value: str) -> str:
    """The pattern of the places of a secret in a message."""
    if len(value) >= _ANYWHERE:
        return re.escape(value)
    before = r"(?<!\w)" if len(value) >= _AS_WORD else r"(?<=[=:/\"'{])"
    return rf"{before}{re.escape(value)}(?!\w)"


def _places(text: str) -> Iterator[tuple[int, int]]:
    for found in _OPTION.finditer(text):
        if is_secret(found[1]):
            if found[3]:
                yield found.span(3)
            else:
                start, end = found.span(2)
                value = found[2].rstrip()
                closed = len(value) > 1 and value[-1] == value[0]
                yield start + 1, start + len(value) - closed if closed else end
    for found in _USER.finditer(text):
        yield found.span(1) if found[1] else found.span(2)


def _script_places(script: str) -> Iterator[tuple[int, int]]:
    yield from _places(script)
    for options in _OPTIONS.finditer(script):
        for found in _BARE.finditer(script, *options.span()):
            if is_secret(found[1]):
                yield found.span(2)


def _replaced(text: str, places: Iterable[tuple[int, int]], shown: Callable[[str], str]) -> str:
    parts, done = [], 0
    for start, end in sorted(places):
        if end > done:
            begin = max(start, done)
            parts += [text[done:begin], shown(text[begin:end])]
            done = end
    return "".join([*parts, text[done:]])
