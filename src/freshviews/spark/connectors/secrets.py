"""Removes passwords, and addresses that may contain a password, from messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from freshviews.secrets import is_secret, standing

_ADDRESS = re.compile(r"^url$|connection[._-]?ur[il]", re.I)
"""Names of options whose values may have a password anywhere."""
_NAMED = re.compile(r"(?:pass\w*|pwd|secret|token)\s*=\s*(?=(.+))", re.I | re.S)
"""A parameter of an address or of a configuration of JAAS, and all that follows."""
_VALUES = (r'"([^"]*)"', r"'([^']*)'", r"\{([^}]*)\}", r"([^&;\"']+)", r"([^&;,)\"']+)")
"""The possible values of the parameter: in quotes, in braces, or up to the next parameter, even after a comma."""
_USERS = (r"//([^/@?;\s]+)@", r"//([^/@?;:\s]*:.+)@")
"""User and password before a host. A password may have any letter, up to the last @."""
_CONTAINER = re.compile(r"(?:abfs|wasb)s?:$", re.I)
"""Matches ``//container@account``, where the part before @ is not a user."""
_ELSEWHERE = r":[^/:@?;]+/([^/@?;]+)@", r":thin:[^/:@]+/(.+)@", r",[^,/@?;:\s]+:([^,@]+)@"
"""``thin:user/password@host``, and the second of ``//user:password@host,user:password@host``."""
_SERVER = re.compile(r"[a-z][a-z0-9:+.-]*://(?:[^/@?;]*@)?([\w.:,\[\]-]+(?:/[\w.-]*)?)(?=[?;/][^@]*$|$)", re.I)


def _hides(name: str) -> bool:
    """True if no message has the value of an option of this name."""
    return is_secret(name) or _ADDRESS.search(name) is not None


def without_secrets(text: str, options: Mapping[str, str]) -> str:
    """A message without the values of options that are secret, each replaced by the option's name, and without the
    passwords and users in addresses."""
    hidden = {value: f"<{name}>" for name, value in options.items() if value and _hides(name)}
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
        for match in re.finditer(standing(value), text)
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


def server_of(url: str) -> str:
    """The server of an address, as ``localhost:5432/shop``, without user and password; ``<url>`` if the server cannot
    be separated, as with an @ after the host, since everything before it may be a password."""
    found = _SERVER.match(url)
    return "<url>" if found is None else found[1]
