"""Files of the strings of a dictionary. Each file has a range of codes, so no string is written twice.

A file holds where each string begins and ends, all their bytes, and which codes are free. Files are read in the order
of their codes, each starting where the one before ended. When there are many, one file over all their codes can replace
them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshviews.errors import StoreError
from freshviews.kernel.image import Array
from freshviews.kernel.memory.mapping import unmap
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary

KIND = "strings"
_PIECE = 1 << 14
"""Strings that are written together."""


def write_strings(path: Path, dictionary: Dictionary, first: int, *, sync: bool = True) -> int:
    """Write the strings of the codes from ``first`` on, completely or not at all; returns the code after the last one.

    With ``sync``, they are on disk when this returns. Raises StoreError.
    """
    end = len(dictionary)
    starts = np.zeros(end - first + 1, np.int64)
    at = 0
    for array in _pieces(dictionary, first, end):
        ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset + 1 : array.offset + 1 + len(array)]
        np.add(ends, starts[at], out=starts[at + 1 : at + 1 + len(array)])
        at += len(array)
    size = int(starts[-1])
    free = np.array(dictionary.free_between(first, end), np.int64) - first
    arrays = [
        Array(len(starts), len(starts), lambda: iter([starts.data.cast("B")])),
        Array(-(-size // 8), -(-size // 8), lambda: _texts(dictionary, first, end, size)),
    ]
    about = {"kind": KIND, "first": first, "end": end, "bytes": size}
    if len(free):
        about["free"] = len(free)
        arrays.append(Array(len(free), len(free), lambda: iter([free.data.cast("B")])))
    write_arrays(path, about, arrays, sync)
    return end


def _pieces(dictionary: Dictionary, first: int, end: int) -> Iterator[pa.Array]:
    """The strings from one code to before another, of which free ones have no bytes, as arrays."""
    for at in range(first, end, _PIECE):
        yield dictionary.decode_array(np.arange(at, min(at + _PIECE, end)))


def _texts(dictionary: Dictionary, first: int, end: int, size: int) -> Iterator[memoryview | bytes]:
    """The bytes of strings, and zeros up to a whole word."""
    for array in _pieces(dictionary, first, end):
        data = array.buffers()[2]
        if data is not None:
            yield memoryview(data)
    yield bytes(-size % 8)


def read_strings(path: Path, dictionary: Dictionary) -> None:
    """Add the strings of a file to the dictionary, which has those of all codes before.

    Raises StoreError if the file is damaged, or a file before it is missing.
    """
    with ArrayFile(path) as file:
        about = file.about
        if about.get("kind") != KIND:
            raise StoreError(f"{path} holds no strings")
        first, end, size = about["first"], about["end"], about["bytes"]
        if first != len(dictionary):
            raise StoreError(
                f"{path} goes on after {first} strings, and {len(dictionary)} are there: the files of strings are "
                "read in the order of their codes, none left out"
            )
        holes = about.get("free", 0)
        mapping = file.map(0, 3 if holes else 2, verify=True)
        try:
            starts, texts, *rest = mapping.places
            free = list((ctypes.c_int64 * holes).from_address(rest[0])) if holes else []
            offsets = np.frombuffer((ctypes.c_int64 * (end - first + 1)).from_address(starts), np.int64)
            data = np.frombuffer((ctypes.c_uint8 * size).from_address(texts), np.uint8)
            dictionary.extend_flat(offsets, data, free)
        except ValueError as error:
            raise StoreError(f"{path} cannot be read: {error}; restore the file from a copy") from error
        finally:
            unmap(mapping.low, mapping.high - mapping.low)
