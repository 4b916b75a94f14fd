"""The dictionary of a database: each distinct string and its code.

Codes count from 0 in the order of first use and are never reused, so a code keeps its meaning for the life of the
database. A refused batch may leave strings that no row uses. One thread at a time may add strings; others may decode
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.types.sqltype import NULL


class _Codes(dict[str, int]):
    """String to code; looking up a missing string adds it. A key that is no string raises."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[str] = []

    def __missing__(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a str is accepted, not {type(text).__name__}")
        text = str(text)  # or a subclass such as numpy.str_ would be stored and returned
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"it is not valid Unicode text: {error.reason}") from None
        code = self[text] = len(self.entries)
        self.entries.append(text)
        return code


class Dictionary:
    """Strings to codes and back."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """``entries``: the strings of codes 0, 1, ...; a string given twice raises ``ValueError``."""
        self._codes = _Codes()
        self._arrow = pa.nulls(0, pa.string())  # pa.array would import pandas
        self._heap = (np.zeros(1024, np.int64), np.zeros(16384, np.uint8))
        self._in_heap = 0
        self.encode = self._codes.__getitem__
        """The code of a string; a new one if the string is new.

        ``TypeError`` if it is no ``str``, ``ValueError`` if it has lone surrogates.
        """
        self.extend(entries)

    def __len__(self) -> int:
        return len(self._codes.entries)

    def decode(self, code: int) -> str:
        """The string of a code; ``IndexError`` if there is none."""
        if code < 0:
            raise IndexError(f"no string has the code {code}")
        return self._codes.entries[code]

    def find(self, text: str) -> int | None:
        """The code of a string; None if the dictionary does not have it. Adds nothing."""
        return self._codes.get(text)

    def entries_since(self, size: int) -> list[str]:
        """The strings added after the dictionary had ``size`` of them, in the order of codes."""
        return self._codes.entries[size:]

    def extend(self, entries: Iterable[str]) -> None:
        """Add strings that must be new, as a log or a snapshot lists them (see ``entries_since``)."""
        for text in entries:
            if text in self._codes:
                raise ValueError(f"{text!r} is in the dictionary already")
            self.encode(text)

    def extend_flat(self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> None:
        """Add strings that must be new, in the layout of ``heap`` from offset 0 on; raises ``ValueError`` if one is
        not.
        """
        count = len(offsets) - 1
        array = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
        array.validate(full=True)
        texts = array.to_pylist()
        self.heap()
        known = self._codes.entries
        self._codes.update(zip(texts, range(len(known), len(known) + count), strict=True))
        if len(self._codes) < len(known) + count:
            self._codes.clear()
            self._codes.update(zip(known, range(len(known)), strict=True))
            raise ValueError("a string is given twice, or is in the dictionary already")
        known += texts
        if count:
            self._lengthen_heap(offsets[1:], data)

    def heap(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """All strings as UTF-8: the offsets and the bytes. Code c is the bytes ``offsets[c]`` to ``offsets[c + 1]``.

        The arrays have room to grow, and stay the same arrays until they must be moved.
        """
        new = self.entries_since(self._in_heap)
        if new:
            texts = [text.encode() for text in new]
            ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
            self._lengthen_heap(ends, np.frombuffer(b"".join(texts), np.uint8))
        return self._heap

    def _lengthen_heap(self, ends: npt.NDArray[np.int64], texts: npt.NDArray[np.uint8]) -> None:
        """Append strings to the heap: their bytes, and where each ends among them."""
        offsets, data = self._heap
        start = int(offsets[self._in_heap])
        size = self._in_heap + len(ends)
        offsets = _with_room(offsets, size + 1)
        data = _with_room(data, start + len(texts))
        data[start : start + len(texts)] = texts
        offsets[self._in_heap + 1 : size + 1] = start + ends
        self._in_heap = size
        self._heap = (offsets, data)

    def encode_valid(self, texts: list[str]) -> list[int]:
        """Codes of strings that are known to be valid Unicode, as Arrow's are."""
        codes = self._codes
        new = [text for text in dict.fromkeys(texts) if text not in codes]
        codes.update(zip(new, range(len(codes.entries), len(codes.entries) + len(new)), strict=True))
        codes.entries += new
        return [codes[text] for text in texts]

    def encode_arrow(self, array: pa.Array) -> npt.NDArray[np.int64]:
        """Codes of an array of strings (plain, large, view, or dictionary-encoded), NULL for nulls.

        Only the distinct strings of the array are looked up.
        """
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        encode = self.encode
        texts = encoded.dictionary.to_pylist()
        codes = np.empty(len(texts) + 1, np.int64)
        codes[:-1] = [NULL if text is None else encode(text) for text in texts]
        codes[-1] = NULL
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(texts))
        places: npt.NDArray[np.integer] = indices.to_numpy()
        found: npt.NDArray[np.int64] = codes[places]
        return found

    def decode_array(self, codes: npt.NDArray[np.int64]) -> pa.Array:
        """The strings of an array of codes as ``pa.string()``, null for NULL."""
        size = len(self)
        # Many codes are looked up in an Arrow copy of the dictionary. Extending the copy by new strings pays only if
        # there are many codes compared with strings.
        if len(codes) * 8 < size and len(self._arrow) < size:
            entries = self._codes.entries
            return pa.array([None if code == NULL else entries[code] for code in codes.tolist()], pa.string())
        if len(self._arrow) < size:
            fresh = pa.array(self.entries_since(len(self._arrow)), pa.string())
            self._arrow = pa.concat_arrays([self._arrow, fresh])
        nulls = codes == NULL
        return self._arrow.take(pa.array(codes, mask=nulls if nulls.any() else None))


_A = TypeVar("_A", bound=np.generic)


def _with_room(array: npt.NDArray[_A], size: int) -> npt.NDArray[_A]:
    """The array if it holds ``size`` elements, else a copy at least twice as long."""
    if size <= len(array):
        return array
    wider = np.zeros(max(size, 2 * len(array)), array.dtype)
    wider[: len(array)] = array
    return wider
