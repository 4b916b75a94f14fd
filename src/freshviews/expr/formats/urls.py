"""Parses URLs, and encodes texts for URLs, as Java does."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote_plus, unquote_to_bytes

from freshviews.expr.regular_expressions import finder
from freshviews.expr.strings import check_length
from freshviews.records import dataclass

_UNRESERVED = r"A-Za-z0-9_\-!.~'()*"
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_URIC, _PATH = r";/?:@&=+$,\[\]", ";/:@&=+$,"
_REGISTERED, _USER = "$,;:@&=+", ";:&=+$,"
_SPLIT = re.compile(r"(?:([^:/?#]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*")
_SERVER = re.compile(r"(?:(.*)@)?(\[.*\]|[^:@\[\]]*)(?::([0-9]*))?", re.DOTALL)
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_HOST = re.compile(rf"(?:{_BYTE}\.){{3}}{_BYTE}|(?:{_LABEL}\.)+(?=[A-Za-z]){_LABEL}\.?|{_LABEL}\.?")


@dataclass(frozen=True)
class Url:
    """The parts of a URL; None for one that it lacks."""

    scheme: str | None
    authority: str | None
    user: str | None
    host: str | None
    path: str | None
    query: str | None
    fragment: str | None


def _invalid(text: str) -> ValueError:
    return ValueError(f"{text!r} is not a URL; try_parse_url gives NULL instead")


@lru_cache(maxsize=8)
def _of(characters: str) -> re.Pattern[str]:
    """Texts of these characters, escapes, and characters beyond ASCII; it takes milliseconds to compile."""
    return re.compile(rf"(?:[{_UNRESERVED}{characters}\x80-\U0010ffff]|{_ESCAPED})*")


@lru_cache(maxsize=64)
def _url(text: str) -> Url:
    found = _SPLIT.fullmatch(text)
    assert found is not None
    scheme, authority, path, query, fragment = found.groups()
    beyond = (c for c in text if c >= "\x80")
    known = all(unicodedata.category(c) not in ("Zs", "Zl", "Zp", "Cc") for c in beyond)
    if not known or (scheme is not None and not _SCHEME.fullmatch(scheme)):
        raise _invalid(text)
    if not _of(_URIC).fullmatch(fragment or ""):
        raise _invalid(text)
    if scheme is not None and authority is None and not path.startswith("/"):
        opaque = path if query is None else f"{path}?{query}"
        if not opaque or not _of(_URIC).fullmatch(opaque):
            raise _invalid(text)
        return Url(scheme, None, None, None, None, None, fragment)
    if not _of(_PATH).fullmatch(path) or not _of(_URIC).fullmatch(query or ""):
        raise _invalid(text)
    if authority == "" and not (path or query is not None or fragment is not None):
        raise _invalid(text)
    user, host = _server(text, authority) if authority else (None, None)
    return Url(scheme, authority or None, user, host, path, query, fragment)


def _server(text: str, authority: str) -> tuple[str | None, str | None]:
    """User and host; None for both if the authority is only a registered name."""
    found = _SERVER.fullmatch(authority)
    if found is not None and _of(_USER).fullmatch(found[1] or "") and int(found[3] or 0) < 2**31:
        host = found[2]
        if _is_address(host) if host.startswith("[") else _HOST.fullmatch(host):
            return found[1], host
    if not _of(_REGISTERED).fullmatch(authority):
        raise _invalid(text)
    return None, None


def _is_address(host: str) -> bool:
    try:
        return bool(IPv6Address(host[1:-1].partition("%")[0]))
    except ValueError:
        return False


def parse_url(text: str, part: str, key: str | None = None) -> str | None:
    """A part of a URL, named as Spark names it; of the query, the value of a key, which is a regular expression."""
    if key is not None and part != "QUERY":
        return None
    url = _url(text)
    if key is not None:
        if url.query is None:
            return None
        match = next(finder(f"(&|^){key}=([^&]*)")[1](url.query), None)
        span = match[2] if match else None
        return None if span is None else url.query[span[0] : span[1]]
    match part:
        case "HOST":
            return url.host
        case "PATH":
            return url.path
        case "QUERY":
            return url.query
        case "REF":
            return url.fragment
        case "PROTOCOL":
            return url.scheme
        case "FILE":
            return url.path if url.query is None else f"{url.path}?{url.query}"
        case "AUTHORITY":
            return url.authority
        case "USERINFO":
            return url.user
    return None


def url_encode(text: str) -> str:
    check_length("url_encode", 3 * len(text.encode()))
    return quote_plus(text, safe="*").replace("~", "%7E")


_WRONG = re.compile("%(?![0-9A-Fa-f]{2})")


def url_decode(text: str) -> str:
    if _WRONG.search(text):
        raise ValueError(f"{text!r} is not an encoded URL; % must stand before two hexadecimal digits")
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")
