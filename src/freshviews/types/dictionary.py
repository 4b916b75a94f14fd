"""The dictionary of a database: each distinct string and its code.

Codes count from 0 in the order of first use. ``free`` frees the codes of strings that nothing names any more; who finds
these is ``engine.commit.collection``, and without it a code keeps its meaning for the life of the dictionary. A free
code is used again by a string of as many bytes, whose place in the heap it takes, so that nothing is moved. One thread
at a time may add strings; others may decode meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import Any, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.types.sqltype import NULL

Codes = npt.NDArray[np.int64]


class _Codes(dict[str, int]):
    """String to code; looking up a missing string adds it. A key that is no string raises.

    ``entries``: by code; None where it is free. ``sizes``: the bytes of each free code. ``free``: codes to be used
    again, by their bytes. ``reused``: codes whose strings are others than those in the heap.
    """

    __slots__ = ("entries", "free", "reused", "sizes")

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.sizes: dict[int, int] = {}
        self.free: dict[int, list[int]] = {}
        self.reused: set[int] = set()

    def __missing__(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a str is accepted, not {type(text).__name__}")
        text = str(text)  # or a subclass such as numpy.str_ would be stored and returned
        size = len(text)
        if not text.isascii():
            try:
                size = len(text.encode())
            except UnicodeEncodeError as error:
                raise ValueError(f"it is not valid Unicode text: {error.reason}") from None
        again = self.free.get(size)
        if again:
            code = again.pop()
            del self.sizes[code]
            self.entries[code] = text
            self.reused.add(code)
        else:
            code = len(self.entries)
            self.entries.append(text)
        self[text] = code
        return code


class Living:
    """Objects that are held elsewhere; iterating yields those that still are, each as often as it was added.

    A WeakSet calls a function of Python for each object that ends, which takes a tenth of a commit of one row. Here
    references to such objects are dropped when they may be half of all. For one thread at a time.
    """

    __slots__ = ("_most", "_refs")

    def __init__(self) -> None:
        self._refs: list[ref[Any]] = []
        self._most = 1024

    def add(self, one: Any) -> None:
        self._refs.append(ref(one))
        if len(self._refs) > self._most:
            self._refs = [found for found in self._refs if found() is not None]
            self._most = 2 * len(self._refs) + 1024

    def __iter__(self) -> Iterator[Any]:
        return (one for one in [found() for found in self._refs] if one is not None)


class Dictionary:
    """Strings to codes and back."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """``entries``: the strings of codes 0, 1, ...; a string given twice raises ``ValueError``."""
        self._codes = _Codes()
        self._holes: set[int] = set()
        self._arrow = pa.nulls(0, pa.string())  # pa.array would import pandas
        self._arrow_state = (0, 0)
        self._heap = (np.zeros(1024, np.int64), np.zeros(16384, np.uint8))
        self._in_heap = 0
        self.on_heap: Callable[[Codes], None] | None = None
        """Called with codes after their strings were written to the heap."""
        self.on_free: Callable[[list[int]], None] | None = None
        """Called with codes before they are freed."""
        self.freed = 0
        """How often codes were freed: what was remembered by code before is not to be used."""
        self.pinned: set[int] = set()
        """Codes of constants, which are never freed."""
        self.held = Living()
        """Batches of codes outside tables and views; see ``engine.codes.marks``."""
        self.mark: Callable[[Codes], None] | None = None
        """While a collection runs: marks codes as in use."""
        self.encode = self._codes.__getitem__
        """The code of a string; a new one if the string is new.

        ``TypeError`` if it is no ``str``, ``ValueError`` if it has lone surrogates.
        """
        self.strings = self._codes.__len__
        """The number of strings."""
        self.extend(entries)

    def __len__(self) -> int:
        """One more than the largest code, free ones included."""
        return len(self._codes.entries)

    def decode(self, code: int) -> str:
        """The string of a code; ``IndexError`` if there is none."""
        if code < 0:
            raise IndexError(f"no string has the code {code}")
        text: str = self._codes.entries[code]
        return text

    def find(self, text: str) -> int | None:
        """The code of a string; None if the dictionary does not have it. Adds nothing."""
        return self._codes.get(text)

    def pin(self, text: str) -> int:
        """The code of a constant, which is never freed."""
        code = self.encode(text)
        self.pinned.add(code)
        return code

    def entries_since(self, size: int) -> list[Any]:
        """The strings from code ``size`` on, in the order of codes; None for a free code."""
        return self._codes.entries[size:]

    def extend(self, entries: Iterable[str]) -> None:
        """Add strings that must be new, as a log or a snapshot lists them (see ``entries_since``)."""
        for text in entries:
            if text in self._codes:
                raise ValueError(f"{text!r} is in the dictionary already")
            self.encode(text)

    def extend_flat(
        self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], free: Iterable[int] = ()
    ) -> None:
        """Add strings that must be new, in the layout of ``heap`` from offset 0 on; raises ``ValueError`` if one is
        not.

        ``free``: which of them were free. They are used again once a collection finds that nothing names them.
        """
        count = len(offsets) - 1
        array = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
        array.validate(full=True)
        texts = array.to_pylist()
        self.heap()
        known = self._codes.entries
        first, before = len(known), len(self._codes)
        holes = list(free)
        for hole in holes:
            texts[hole] = None
        self._codes.update((text, code) for code, text in enumerate(texts, first) if text is not None)
        if len(self._codes) < before + count - len(holes):
            self._codes.clear()
            self._codes.update((text, code) for code, text in enumerate(known) if text is not None)
            raise ValueError("a string is given twice, or is in the dictionary already")
        known += texts
        self._holes.update(first + hole for hole in holes)
        self._codes.sizes.update((first + hole, int(offsets[hole + 1] - offsets[hole])) for hole in holes)
        if count:
            self._lengthen_heap(offsets[1:], data)
            self._written([code for code in range(first, first + count) if known[code] is not None])

    def heap(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """All strings as UTF-8: the offsets and the bytes. Code c is the bytes ``offsets[c]`` to ``offsets[c + 1]``.

        The arrays have room to grow, and stay the same arrays until they must be moved. The bytes of a free code mean
        nothing.
        """
        codes = self._codes
        written: list[int] = []
        if codes.reused:
            offsets, data = self._heap
            written = sorted(code for code in codes.reused if code < self._in_heap)
            codes.reused.clear()
            for code, begin in zip(written, offsets[written].tolist(), strict=True):
                text = codes.entries[code].encode()
                data[begin : begin + len(text)] = np.frombuffer(text, np.uint8)
        first = self._in_heap
        if first < len(codes.entries):
            new = codes.entries[first:]
            texts = [
                bytes(codes.sizes[code]) if text is None else text.encode() for code, text in enumerate(new, first)
            ]
            ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
            self._lengthen_heap(ends, np.frombuffer(b"".join(texts), np.uint8))
            written += [code for code, text in enumerate(new, first) if text is not None]
        if written:
            self._written(written)
        return self._heap

    def in_heap(self, codes: list[int]) -> tuple[list[int], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Those of some codes whose strings are in the heap, and its arrays, to which nothing is written."""
        reused = self._codes.reused
        return [code for code in codes if code < self._in_heap and code not in reused], *self._heap

    def _written(self, codes: list[int]) -> None:
        if self.on_heap is not None and codes:
            self.on_heap(np.array(codes, np.int64))

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

    @property
    def bytes(self) -> int:
        """Bytes that the strings take, as Python objects and in the heap; looks at every string."""
        return sum(map(getsizeof, self._codes)) + self._bytes_beside()

    def about_bytes(self) -> int:
        """About as many, from the sizes of a thousand strings."""
        codes = self._codes
        some = [getsizeof(text) for text in codes.entries[:: len(codes.entries) // 1000 + 1] if text is not None]
        return len(codes) * sum(some) // max(len(some), 1) + self._bytes_beside()

    def _bytes_beside(self) -> int:
        codes = self._codes
        rounded = 8 * len(codes)  # blocks are multiples of 16 bytes
        numbers = 32 * (len(codes) + len(codes.sizes))
        containers = (codes, codes.entries, codes.sizes, codes.free, *codes.free.values(), codes.reused)
        heap = sum(array.nbytes for array in self._heap)
        return rounded + numbers + sum(map(getsizeof, containers)) + heap + int(self._arrow.nbytes)

    @property
    def heap_bytes(self) -> int:
        """Bytes of the heap."""
        return self._heap[1].nbytes

    def live_codes(self) -> Codes:
        """The codes of all strings in the heap."""
        entries = self._codes.entries
        if not self._codes.sizes:
            return np.arange(self._in_heap)
        return np.array([code for code in range(self._in_heap) if entries[code] is not None], np.int64)

    def free_sizes(self) -> dict[int, int]:
        """The bytes of each free code."""
        return self._codes.sizes

    def free(self, codes: list[int]) -> int:
        """Free codes; returns how many were in use."""
        strings, entries = self._codes, self._codes.entries
        used = [code for code in codes if entries[code] is not None]
        if used and self.on_free is not None:
            self.on_free(used)
        for code in used:
            text = entries[code]
            size = strings.sizes[code] = len(text) if text.isascii() else len(text.encode())
            entries[code] = None
            del strings[text]
            strings.free.setdefault(size, []).append(code)
        if used:
            self.freed += 1
            strings.reused.difference_update(used)
        if self._holes:
            for code in self._holes.intersection(codes):
                self._holes.discard(code)
                strings.free.setdefault(strings.sizes[code], []).append(code)
        return len(used)

    def encode_valid(self, texts: list[str]) -> list[int]:
        """Codes of strings that are known to be valid Unicode, as Arrow's are."""
        codes = self._codes
        if codes.sizes:
            return [codes[text] for text in texts]
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
        # Free codes only become fewer until the next are freed, so this changes where a code gets another string.
        state = (self.freed, len(self._codes.sizes))
        # Many codes are looked up in an Arrow copy of the dictionary. Extending the copy by new strings pays only if
        # there are many codes compared with strings.
        if len(codes) * 8 < size and (len(self._arrow) < size or state != self._arrow_state):
            entries = self._codes.entries
            return texts_array([None if code == NULL else entries[code] for code in codes.tolist()])
        if state != self._arrow_state:
            self._arrow, self._arrow_state = pa.nulls(0, pa.string()), state
        if len(self._arrow) < size:
            fresh = texts_array(self.entries_since(len(self._arrow)))
            self._arrow = pa.concat_arrays([self._arrow, fresh])
        return self._arrow.take(words_array(codes))


def texts_array(texts: Sequence[str | None]) -> pa.Array:
    """Strings as ``pa.string()``. ``pa.array``, which imports pandas, takes them in a third of the time: that is more
    than its half second only if they are very many."""
    if len(texts) > _MANY_TEXTS:
        return pa.array(texts, pa.string())
    builder = pa.lib.StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def words_array(words: npt.NDArray[np.int64]) -> pa.Array:
    """Words as ``pa.int64()``, null for NULL."""
    valid = words != NULL
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(words), [validity, pa.py_buffer(np.ascontiguousarray(words))])


_MANY_TEXTS = 1_000_000
_A = TypeVar("_A", bound=np.generic)


def _with_room(array: npt.NDArray[_A], size: int) -> npt.NDArray[_A]:
    """The array if it holds ``size`` elements, else a copy at least twice as long."""
    if size <= len(array):
        return array
    wider = np.zeros(max(size, 2 * len(array)), array.dtype)
    wider[: len(array)] = array
    return wider
