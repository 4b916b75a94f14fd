"""Files of the strings of a dictionary. Each file has a range of codes, so no string is written twice.

A file holds strings as the dictionary's heap does. Files are read in the order of their codes, each starting where the
one before ended. When there are many, one file over all their codes can replace them.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from freshviews.errors import StoreError
from freshviews.kernel.image import Array
from freshviews.kernel.memory.mapping import unmap
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary

KIND = "strings"


def write_strings(path: Path, dictionary: Dictionary, first: int, *, sync: bool = True) -> int:
    """Write the strings of the codes from ``first`` on, completely or not at all; returns the code after the last one.

    With ``sync``, they are on disk when this returns. Raises StoreError.
    """
    end = len(dictionary)
    offsets, data = dictionary.heap()
    starts = offsets[first : end + 1] - offsets[first]
    texts = data[int(offsets[first]) : int(offsets[end])]
    arrays = [
        Array(len(starts), len(starts), lambda: iter([starts.data.cast("B")])),
        Array(-(-len(texts) // 8), -(-len(texts) // 8), lambda: iter([texts.data, bytes(-len(texts) % 8)])),
    ]
    about = {"kind": KIND, "first": first, "end": end, "bytes": len(texts)}
    write_arrays(path, about, arrays, sync)
    return end


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
        mapping = file.map(0, 2, verify=True)
        try:
            starts, texts = mapping.places
            offsets = np.frombuffer((ctypes.c_int64 * (end - first + 1)).from_address(starts), np.int64)
            data = np.frombuffer((ctypes.c_uint8 * size).from_address(texts), np.uint8)
            dictionary.extend_flat(offsets, data)
        except ValueError as error:
            raise StoreError(f"{path} cannot be read: {error}; restore the file from a copy") from error
        finally:
            unmap(mapping.low, mapping.high - mapping.low)
