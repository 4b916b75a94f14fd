"""Removes secrets from messages: passwords, and addresses that may contain one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

_SECRET = re.compile(
    r"pass(wor|w)d|passphrase|pwd|(^|[._-])pass$|secret|token|credential|jaas|user\.info"
    r"|(keystore|account|private|access|api)[._-]?key|^url$|connection[._-]?ur[il]",
    re.I,
)
"""Names of options whose values are hidden."""
_NAMED = re.compile(r"(?:pass\w*|pwd|secret|token)\s*=\s*(?=(.+))", re.I | re.S)
"""A parameter of an address or of a configuration of JAAS, and all that follows."""
_VALUES = (r'"([^"]*)"', r"'([^']*)'", r"\{([^}]*)\}", r"([^&;\"']+)", r"([^&;,)\"']+)")
"""The possible values of it: in quotes, in braces, or up to the next parameter, which may begin after a comma."""
_USERS = (r"//([^/@?;\s]+)@", r"//([^/@?;:\s]*:.+)@")
"""User and password before a host. A password may have any letter, up to the last @."""
_CONTAINER = re.compile(r"(?:abfs|wasb)s?:$", re.I)
"""Matches ``//container@account``, where the part before @ is not a user."""
_ELSEWHERE = r":[^/:@?;]+/([^/@?;]+)@", r":thin:[^/:@]+/(.+)@", r",[^,/@?;:\s]+:([^,@]+)@"
"""``thin:user/password@host``, and the second of ``//user:password@host,user:password@host``."""
_SERVER = re.compile(r"[a-z][a-z0-9:+.-]*://(?:[^/@?;]*@)?([\w.:,\[\]-]+(?:/[\w.-]*)?)(?=[?;/][^@]*$|$)", re.I)
_ANYWHERE, _AS_WORD = 8, 4
"""Minimum lengths of a secret that is hidden anywhere, and as a whole word. A shorter one is hidden only as a value."""


def without_secrets(text: str, options: Mapping[str, str]) -> str:
    """A message without the values of options that are secret, each replaced by the option's name, and without the
    passwords and users in addresses."""
    hidden = {value: f"<{name}>" for name, value in options.items() if value and _SECRET.search(name)}
    for value in options.values():
        for user in _users(value):
            hidden[f"//{user}@"] = "//<user>@"
    for value in list(options.values()):
        for password in _passwords(value):
            for one in (password, unquote(password)):
                hidden.setdefault(one, "<password>")
    found = [
        (match.start(), -match.end(), shown)
        for value, shown in hidden.items()
        for match in re.finditer(_secret_pattern(value), text)
    ]
    parts, end = [], 0
    for start, minus, shown in sorted(found):
        # Secrets may overlap: their union is hidden.
        if start >= end:
            parts += [text[end:start], shown]
        end = max(end, -minus)
    return "".join([*parts, text[end:]])


def _users(value: str) -> Iterator[str]:
    """Possible users and passwords before a host in a value."""
    for pattern in _USERS:
        for found in re.finditer(pattern, value, re.S):
            if not _CONTAINER.search(value[: found.start()]):
                yield found[1]


def _passwords(value: str) -> Iterator[str]:
    """Possible passwords within a value."""
    for named in _NAMED.finditer(value):
        yield from (found[1] for pattern in _VALUES if (found := re.match(pattern, named[1])) and found[1])
    yield from (user.partition(":")[2] for user in _users(value) if user.partition(":")[2])
    for pattern in _ELSEWHERE:
        yield from (found[1] for found in re.finditer(pattern, value, re.S))


def _secret_pattern(value: str) -> str:
    """The pattern of the places of a secret in a message."""
    if len(value) >= _ANYWHERE:
        return re.escape(value)
    before = r"(?<!\w)" if len(value) >= _AS_WORD else r"(?<=[=:/\"'{])"
    return rf"{before}{re.escape(value)}(?!\w)"


def server_of(url: str) -> str:
    """The server of an address, as ``localhost:5432/shop``, without user and password; ``<url>`` if the server cannot
    be separated, as with an @ after the host, since everything before it may be a password."""
    found = _SERVER.match(url)
    return "<url>" if found is None else found[1]
