"""Writes and reads the strings of a dictionary. The dictionary gives each string an integer code.

Each file has the strings of one range of codes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from freshviews.errors import StoreError
from freshviews.kernel.image import Array
from freshviews.kernel.memory.mapping import unmap
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary, starts_of

KIND = "strings"
_PIECE = 1 << 20
"""Maximum number of bytes that are written together, except for a longer string."""


def write_strings(path: Path, dictionary: Dictionary, first: int, *, sync: bool = True) -> int:
    """Write the strings of the codes from ``first`` on, completely or not at all; returns the code after the last one.

    With ``sync``, they are on disk when this returns. Raises StoreError. A child process may call this
    (``spark.state.child_process``): it needs no Arrow, and the kernels that ``kernel.image.compile_writer`` loads.

    A file holds the bounds of each string, the bytes of all strings, and the free codes. Files are read in the order of
    their codes; each range starts where the preceding range ends. One file with the codes of several files can replace
    these files.
    """
    end = len(dictionary)
    sizes = dictionary.sizes_between(first, end)
    free = np.flatnonzero(sizes < 0)
    starts = starts_of(sizes)
    size = int(starts[-1])
    arrays = [
        Array(len(starts), len(starts), lambda: iter([starts.data.cast("B")])),
        Array(-(-size // 8), -(-size // 8), lambda: _texts(dictionary, first, starts)),
    ]
    about = {"kind": KIND, "first": first, "end": end, "bytes": size}
    if len(free):
        about["free"] = len(free)
        arrays.append(Array(len(free), len(free), lambda: iter([free.data.cast("B")])))
    write_arrays(path, about, arrays, sync)
    return end


def _texts(dictionary: Dictionary, first: int, starts: npt.NDArray[np.int64]) -> Iterator[memoryview | bytes]:
    """The bytes of strings, and zeros up to a whole word."""
    at = 0
    while at < len(starts) - 1:
        # The last of several strings that begin at the same byte, as empty ones do.
        last = int(np.searchsorted(starts, starts[at] + _PIECE, "right")) - 1
        end = max(last, at + 1)
        yield dictionary.data_between(first + at, starts[at : end + 1]).data
        at = end
    yield bytes(-int(starts[-1]) % 8)


def read_strings(path: Path, dictionary: Dictionary) -> None:
    """Add the strings of a file to the dictionary, which has those of all codes before.

    Raises StoreError if the file is damaged, or a file before it is missing.
    """
    with ArrayFile(path) as file:
        about = file.about
        if about.get("kind") != KIND:
            raise StoreError(f"{path} is not a file of strings")
        first, end, size = about["first"], about["end"], about["bytes"]
        if first != len(dictionary):
            raise StoreError(
                f"{path} begins after string {first}, but {len(dictionary)} strings were read; read the files of "
                "strings in order, without a gap"
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
