"""Checks that a dictionary fits an image, the stored state of a table or view, before the image is read.

An image has codes instead of strings. So the dictionary must have the strings that it had when the image was written.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from freshviews.errors import StoreError
from freshviews.types.dictionary import Dictionary

_MARKED = 16
"""Number of last strings that the mark of a dictionary covers."""


def mark_of(dictionary: Dictionary) -> list[int]:
    """The number of strings and a checksum of the last ones, to write into an image."""
    size = len(dictionary)
    return [size, _checksum(dictionary, size)]


def check_mark(path: Path, what: str, about: dict[str, Any], dictionary: Dictionary) -> None:
    """Raise StoreError if the dictionary lacks the strings that it had when the image was written.

    ``what`` names the table or view of the image, ``about`` is the head of the file at ``path``.
    """
    size, checksum = about["strings"]
    if len(dictionary) < size or _checksum(dictionary, size) != checksum:
        raise StoreError(
            f"{path}: the image of {what} needs {size} strings, but the dictionary has {len(dictionary)}; load the "
            "strings of the image before the image"
        )


def _checksum(dictionary: Dictionary, size: int) -> int:
    """A checksum of the last strings among the first ``size``."""
    last = dictionary.entries(max(size - _MARKED, 0), size)
    return zlib.crc32("\0".join("" if text is None else text for text in last).encode())
