"""Defines functions of BINARY values. Here a BINARY value is a Python string with one character per byte."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from freshviews.expr.strings import check_length

_CHARSETS = {
    "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-8": "utf-8", "utf-16": "utf-16", "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le", "utf-32": "utf-32",
}  # fmt: skip
_UNITS = re.compile("[^A-Za-z0-9+/=]")


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.lower())
    if found is None:
        raise ValueError(f"the charset {name!r} is not known; accepted: {', '.join(_CHARSETS)}")
    return found


def bytes_of_string(text: str) -> str:
    """The bytes in UTF-8."""
    check_length("CAST AS BINARY", len(text.encode()))
    return text.encode().decode("latin-1")


def string_of_bytes(value: str) -> str:
    """The text whose bytes in UTF-8 these are; U+FFFD for what is none."""
    return value.encode("latin-1").decode(errors="replace")


def encode(text: str, charset: str) -> str:
    name = _charset(charset)
    try:
        made = b"\xfe\xff" + text.encode("utf-16-be") if name == "utf-16" else text.encode(name.replace("32", "32-be"))
    except UnicodeEncodeError:
        raise ValueError(
            f"encode: charset {charset} lacks some characters of the text; choose another charset"
        ) from None
    check_length("encode", len(made))
    return made.decode("latin-1")


def decode(value: str, charset: str) -> str:
    name, data = _charset(charset), value.encode("latin-1")
    if name in ("utf-16", "utf-32"):
        width = int(name[4:]) // 8
        marks = {b"\xfe\xff".rjust(width, b"\0"): "be", b"\xff\xfe".ljust(width, b"\0"): "le"}
        order = marks.get(data[:width])
        name, data = f"{name}-{order or 'be'}", data[width:] if order else data
    try:
        return data.decode(name)
    except UnicodeDecodeError:
        raise ValueError(f"decode: the bytes are not text in {charset}") from None


def hex_bytes(value: str) -> str:
    """Two hexadecimal digits for each byte."""
    check_length("hex", 2 * len(value))
    return value.encode("latin-1").hex().upper()


def unhex(text: str) -> str | None:
    """The bytes of hexadecimal digits; None for other characters."""
    if not re.fullmatch("[0-9A-Fa-f]*", text):
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text).decode("latin-1")


def base64(value: str) -> str:
    """MIME's base64: lines of 76 characters."""
    check_length("base64", len(value) * 3 // 2)
    made = b64encode(value.encode("latin-1")).decode()
    return "\r\n".join(made[at : at + 76] for at in range(0, len(made), 76))


def unbase64(text: str) -> str:
    """The bytes of a text in MIME's base64; other characters are passed over."""
    units = _UNITS.sub("", text)
    digits = units.rstrip("=")
    padding, rest = len(units) - len(digits), len(digits) % 4
    if "=" in digits or rest == 1 or padding not in (0, (4 - rest) % 4):
        raise ValueError("unbase64: the text is not base64; pass groups of four characters, padded with =")
    return b64decode(digits + "=" * ((4 - rest) % 4)).decode("latin-1")


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?")


def to_binary(text: str, form: str) -> str:
    """The bytes of a text in the form hex, base64 or utf-8."""
    if form in ("utf-8", "utf8"):
        return bytes_of_string(text)
    made = unhex(text) if form == "hex" else None
    if form == "base64" and _BASE64.fullmatch(re.sub(r"[ \t\r\n]", "", text)):
        made = unbase64(text)
    if made is None:
        raise ValueError(f"to_binary: {text!r} is not {form}; use try_to_binary to get NULL instead")
    return made


def bit_count_bytes(value: str) -> int:
    """Number of ones among the bits of bytes."""
    return sum(byte.bit_count() for byte in value.encode("latin-1"))
