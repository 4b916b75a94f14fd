"""Finds or makes the token that clients of a server must send, and checks whether a request has it.

A user gives the token in a file or an environment variable. Otherwise, it is random.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from pathlib import Path

from freshviews.errors import ArgumentError

TOKEN = "FRESHVIEWS_TOKEN"
"""The variable of the environment that has a token."""
SHORTEST = 16
_LONGEST = 1024
_RANDOM_BYTES = 32


def read_token(file: str | None = None) -> str | None:
    """The token of a file, else of the environment, else None.

    Raises ArgumentError if the file cannot be read, or the token is none.
    """
    if file is None:
        found = os.environ.get(TOKEN)
        return None if found is None else checked(found, TOKEN)
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_LONGEST + 2)
    except OSError as error:
        raise ArgumentError(f"the token cannot be read from {file}: {error.strerror}") from None
    return checked(content.decode("utf-8", "replace").strip(), file)


def checked(token: object, place: str) -> str:
    """A token that can be sent in a header. Raises ArgumentError, which does not have it."""
    if not isinstance(token, str) or not SHORTEST <= len(token) <= _LONGEST or not token.isascii():
        raise ArgumentError(f"{place} must be a text of {SHORTEST} to {_LONGEST} ASCII characters")
    if not all(character.isprintable() and character != " " for character in token):
        raise ArgumentError(
            f"{place} has a space or a control character; choose a token without spaces and control characters"
        )
    return token


def random_token() -> str:
    """A token of 256 random bits."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def shows(header: str | bytes | None, token: str) -> bool:
    """Whether the header ``authorization`` of a request has the token: as Bearer, or as the password of Basic."""
    text = header.decode("latin-1") if isinstance(header, bytes) else header or ""
    scheme, _, given = text.partition(" ")
    shown = given.encode("utf-8", "replace")
    if scheme.lower() == "basic":
        try:
            shown = base64.b64decode(shown, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            shown = b""
    elif scheme.lower() != "bearer":
        shown = b""
    return hmac.compare_digest(shown, token.encode())
