"""Computes Spark's hash functions of texts and of rows of values."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable

_WORD, _LONG = 2**32 - 1, 2**64 - 1


def md5(text: str, charset: str = "utf-8") -> str:
    return hashlib.md5(text.encode(charset), usedforsecurity=False).hexdigest()


def sha1(text: str, charset: str = "utf-8") -> str:
    return hashlib.sha1(text.encode(charset), usedforsecurity=False).hexdigest()


def sha2(text: str | None, bits: int | None, charset: str = "utf-8") -> str | None:
    """SHA-2 of 224, 256, 384 or 512 bits; 0 is 256, and another number gives None."""
    if text is None or bits not in (0, 224, 256, 384, 512):
        return None
    return hashlib.new(f"sha{bits or 256}", text.encode(charset)).hexdigest()


def crc32(text: str, charset: str = "utf-8") -> int:
    return zlib.crc32(text.encode(charset))


Value = str | int | float | None


def hash_values(kinds: str, *values: Value) -> int:
    """Murmur3 of 32 bits, with the seed 42, of values; each has a letter of ``_words``. None changes nothing."""
    state = 42
    for kind, value in zip(kinds, values, strict=True):
        if value is not None:
            state = _murmur(_bytes_of(kind, value), state)
    return state - 2**32 if state >= 2**31 else state


def xxhash64_values(kinds: str, *values: Value) -> int:
    """XXH64, with the seed 42, of values; as ``hash_values``."""
    state = 42
    for kind, value in zip(kinds, values, strict=True):
        if value is not None:
            state = _xxh64(_bytes_of(kind, value), state)
    return state - 2**64 if state >= 2**63 else state


_FORMS: dict[str, Callable[[float], bytes]] = {
    "i": lambda value: struct.pack("<i", value),
    "l": lambda value: struct.pack("<q", value),
    "f": lambda value: struct.pack("<f", value),
    "d": lambda value: struct.pack("<d", value),
}


def _bytes_of(kind: str, value: str | int | float) -> bytes:
    """The bytes that are hashed: i an INT, l a BIGINT, f a FLOAT, d a DOUBLE, w a wide decimal, s a text, b a
    BINARY value."""
    if isinstance(value, str):
        return value.encode("latin-1" if kind == "b" else "utf-8")
    if kind == "w":
        whole = int(value)
        return whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, "big", signed=True)
    return _FORMS[kind](value)


def _rotated(word: int, by: int, bits: int) -> int:
    return (word << by | word >> (bits - by)) & ((1 << bits) - 1)


def _murmur(data: bytes, seed: int) -> int:
    """Murmur3_x86_32, except that each byte after the last whole word is mixed as a signed word of its own."""
    state, end = seed, len(data) // 4 * 4
    words = [*struct.unpack(f"<{end // 4}I", data[:end]), *struct.unpack(f"{len(data) - end}b", data[end:])]
    for word in words:
        mixed = _rotated(word * 0xCC9E2D51 & _WORD, 15, 32) * 0x1B873593 & _WORD
        state = (_rotated(state ^ mixed, 13, 32) * 5 + 0xE6546B64) & _WORD
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    return state ^ state >> 16


_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip


def _round(state: int, word: int) -> int:
    return _rotated((state + word * _P2) & _LONG, 31, 64) * _P1 & _LONG


def _xxh64(data: bytes, seed: int) -> int:
    at, size = 0, len(data)
    state = seed + _P5
    if size >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= size:
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        state = sum(_rotated(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _LONG
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _LONG
    state = (state + size) & _LONG
    while at + 8 <= size:
        state = (_rotated(state ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27, 64) * _P1 + _P4) & _LONG
        at += 8
    if at + 4 <= size:
        word = int.from_bytes(data[at : at + 4], "little")
        state = (_rotated(state ^ word * _P1 & _LONG, 23, 64) * _P2 + _P3) & _LONG
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ byte * _P5 & _LONG, 11, 64) * _P1 & _LONG
    state = (state ^ state >> 33) * _P2 & _LONG
    state = (state ^ state >> 29) * _P3 & _LONG
    return state ^ state >> 32
