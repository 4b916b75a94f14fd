"""Computes Spark's ``xxhash64`` over Arrow columns, so that workers route rows to cells as Spark does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip
_SEED = np.array([42], np.uint64)
_STRIPE = 32


def hashes(seed: int, values: pa.Array, kind: str) -> Numbers:
    """``xxhash64(seed, value)`` of each value. ``kind``: bigint, timestamp, double, date, boolean or string."""
    first = _int(np.array([seed], np.int64), _SEED)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    if kind == "string":
        found = _texts(values.cast(pa.large_string()), first)
    elif kind in ("date", "boolean"):
        as_ints = values.cast(pa.int32()) if kind == "boolean" else values.view(pa.int32())
        found = _int(pc.fill_null(as_ints, 0).to_numpy().astype(np.int64), first)
    else:
        words = values.view(pa.int64())
        if kind == "double":
            # As Java compares the bits of doubles: one NaN, and no zero with a sign.
            doubles = pc.fill_null(values, 0.0).to_numpy() + 0.0
            words = pa.array(np.where(np.isnan(doubles), np.nan, doubles).view(np.int64))
        found = _long(pc.fill_null(words, 0).to_numpy().view(np.uint64), first)
    return np.where(valid, found, first).view(np.int64)


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * _P2
    words = (words ^ (words >> np.uint64(29))) * _P3
    return words ^ (words >> np.uint64(32))


def _with_half(found: Words, half: Words) -> Words:
    return _rotated(found ^ half * _P1, 23) * _P2 + _P3


def _with_word(found: Words, word: Words) -> Words:
    return _rotated(found ^ _rotated(word * _P2, 31) * _P1, 27) * _P1 + _P4


def _int(values: Numbers, seed: Words) -> Words:
    half = values.view(np.uint64) & np.uint64(0xFFFFFFFF)
    return _mixed(_with_half(seed + _P5 + np.uint64(4), half))


def _long(values: Words, seed: Words) -> Words:
    return _mixed(_with_word(seed + _P5 + np.uint64(8), values))


def _texts(values: pa.Array, seed: Words) -> Words:
    """Hashes of the bytes of texts, of which each distinct one is hashed once."""
    encoded = values.dictionary_encode()
    bounds = np.frombuffer(encoded.dictionary.buffers()[1], np.int64, len(encoded.dictionary) + 1)
    data = encoded.dictionary.buffers()[2]
    # Reads of eight bytes may begin at any byte.
    padded = np.concatenate([np.frombuffer(data, np.uint8) if data is not None else [], np.zeros(8)]).astype(np.uint8)
    found = _of_bytes(padded, bounds[:-1].copy(), np.diff(bounds), seed)
    numbers = pc.fill_null(encoded.indices, 0).to_numpy().astype(np.int64)
    return found[numbers] if len(found) else np.zeros(len(values), np.uint64)


def _of_bytes(data: npt.NDArray[np.uint8], at: Numbers, size: Numbers, seed: Words) -> Words:
    """Hashes of parts of ``data``. Each step takes the next bytes of all parts that have as many left."""
    end = at + size
    found = np.broadcast_to(seed + _P5, at.shape).copy()
    lanes = [np.broadcast_to(lane, at.shape).copy() for lane in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    long = size >= _STRIPE
    while len(rows := np.flatnonzero(end - at >= _STRIPE)):
        for number, lane in enumerate(lanes):
            word = _words(data, at[rows] + 8 * number)
            lane[rows] = _rotated(lane[rows] + word * _P2, 31) * _P1
        at[rows] += _STRIPE
    if long.any():
        a, b, c, d = (lane[long] for lane in lanes)
        total = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        for lane in (a, b, c, d):
            total = (total ^ _rotated(lane * _P2, 31) * _P1) * _P1 + _P4
        found[long] = total
    found += size.view(np.uint64)
    while len(rows := np.flatnonzero(end - at >= 8)):
        found[rows] = _with_word(found[rows], _words(data, at[rows]))
        at[rows] += 8
    if len(rows := np.flatnonzero(end - at >= 4)):
        found[rows] = _with_half(found[rows], _words(data, at[rows]) & np.uint64(0xFFFFFFFF))
        at[rows] += 4
    while len(rows := np.flatnonzero(end > at)):
        found[rows] = _rotated(found[rows] ^ data[at[rows]].astype(np.uint64) * _P5, 11) * _P1
        at[rows] += 1
    return _mixed(found)


def _words(data: npt.NDArray[np.uint8], at: Numbers) -> Words:
    """The eight bytes at each place as a word."""
    found: Words = data[at[:, None] + np.arange(8)].view(np.uint64)[:, 0]
    return found
