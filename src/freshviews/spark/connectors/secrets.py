"""What of a connector's options no message has: passwords, and addresses that may have one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

_SECRET = re.compile(r"pass(wor|w)d|passphrase|secret|token|credential|jaas|keystore\.key|access\.?key|^url$", re.I)
"""Names of options whose values are hidden."""
_IN_ADDRESS = re.compile(
    r"(?:pass\w*|pwd|secret|token)\s*=\s*[\"']?([^&;,)\"']+)|//[^/:@?;]*:([^/@?;]+)@|:[^/:@?;]+/([^/@?;]+)@",
    re.IGNORECASE,
)
"""A password within an address or a configuration of JAAS: a parameter, ``//user:password@host``,
``thin:user/password@host``."""
_SERVER = re.compile(r"[a-z][a-z0-9:+.-]*://(?:[^/@?;]*@)?([\w.:,\[\]-]+(?:/[\w.-]*)?)(?=[?;/]|$)", re.I)


def without_secrets(text: str, options: Mapping[str, str]) -> str:
    """A message without the values of options that are secret, each replaced by the option's name."""
    hidden = {value: name for name, value in options.items() if value and _SECRET.search(name)}
    for value in list(hidden):
        for found in _IN_ADDRESS.finditer(value):
            password = next(part for part in found.groups() if part)
            hidden |= dict.fromkeys((password, unquote(password)), "password")
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, f"<{hidden[value]}>")
    return text


def server_of(url: str) -> str:
    """The server of an address, as ``localhost:5432/shop``, without user and password; ``<url>`` where it is not known
    which part is the server."""
    found = _SERVER.match(url)
    return "<url>" if found is None else found[1]
