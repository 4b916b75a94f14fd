"""Defines the dictionary of a database: it numbers the distinct strings. A string's number is its code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from sys import getsizeof
from typing import Any, Protocol
from weakref import ref

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.types.arrow_check import without_views
from freshviews.types.sqltype import NULL

Codes = npt.NDArray[np.int64]

RECENT = 1 << 15
"""Maximum number of strings that are remembered as Python objects."""
LONG = 256
"""Longest string, in characters, that is remembered."""


class Store(Protocol):
    """The interface of a store of the strings of a dictionary."""

    @property
    def size(self) -> Callable[[], int]:
        """One more than the largest code, free ones included."""

    @property
    def strings(self) -> Callable[[], int]:
        """The number of strings."""

    def enter(self, text: str, data: bytes) -> int:
        """The code of a string, a new one if it is new; ``data`` is its UTF-8."""

    def enter_all(self, texts: list[str]) -> tuple[list[int], list[int]]:
        """The codes of strings, adding the new ones, and the positions of the strings that were not new.

        Raises UnicodeEncodeError, and adds none, if one has lone surrogates.
        """

    def find(self, text: str, data: bytes) -> int | None:
        """The code of a string; None if the store does not have it."""

    def text(self, code: int) -> str:
        """The string of a code; raises ``IndexError`` for an unknown code."""

    def sizes(self, first: int, end: int) -> Codes:
        """The bytes of each string from one code to before another; -1 for a free code."""

    def data(self, first: int, starts: Codes) -> npt.NDArray[np.uint8]:
        """The UTF-8 of strings from code ``first`` on, one after the other. ``starts``: where each begins and the last
        one ends, by ``sizes``; it need not begin at 0."""

    def array(self, codes: Codes) -> pa.Array:
        """The strings of codes as ``pa.string()``, null for NULL."""

    def extend_flat(
        self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], free: Sequence[int]
    ) -> None:
        """Add strings of valid UTF-8 after the last code. Raises ``ValueError``, and adds none, if one is not new."""

    def unmarked(self, marks: npt.NDArray[np.bool_], first: int, end: int) -> Codes:
        """The codes in a range that have no mark, without free codes that may be used again."""

    def free(self, codes: Codes) -> int:
        """Free codes; returns how many were in use. If it raises, no code is freed."""

    def give_back(self, strings: int) -> int:
        """Give memory back, in a step over about this number of strings; 0 if none is left to give."""

    def bytes(self) -> int:
        """Bytes of memory."""


class _Objects:
    """A store of Python objects."""

    def __init__(self) -> None:
        self._texts: list[str | None] = []
        self._codes: dict[str, int] = {}
        self._free: list[int] = []
        self._holes: set[int] = set()
        self.size = self._texts.__len__
        self.strings = self._codes.__len__

    def enter(self, text: str, data: bytes) -> int:
        code = self._codes.get(text)
        if code is None:
            if self._free:
                code = self._free.pop()
                self._texts[code] = text
            else:
                code = len(self._texts)
                self._texts.append(text)
            self._codes[text] = code
        return code

    def enter_all(self, texts: list[str]) -> tuple[list[int], list[int]]:
        encoded = [text.encode() for text in texts]
        return [self.enter(text, data) for text, data in zip(texts, encoded, strict=True)], []

    def find(self, text: str, data: bytes) -> int | None:
        return self._codes.get(text)

    def text(self, code: int) -> str:
        text = self._texts[code] if code >= 0 else None
        if text is None:
            raise IndexError(f"no string has the code {code}")
        return text

    def sizes(self, first: int, end: int) -> Codes:
        texts = self._texts[first:end]
        return np.array([-1 if text is None else len(text.encode()) for text in texts], np.int64)

    def data(self, first: int, starts: Codes) -> npt.NDArray[np.uint8]:
        texts = self._texts[first : first + len(starts) - 1]
        return np.frombuffer("".join(text for text in texts if text is not None).encode(), np.uint8)

    def array(self, codes: Codes) -> pa.Array:
        texts = self._texts
        return texts_array([None if code == NULL else texts[code] for code in codes.tolist()])

    def extend_flat(
        self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], free: Sequence[int]
    ) -> None:
        texts: list[str | None] = [
            bytes(data[begin:end]).decode() for begin, end in pairwise(offsets.tolist())
        ]
        first = len(self._texts)
        for hole in free:
            texts[hole] = None
        new = {text: code for code, text in enumerate(texts, first) if text is not None}
        if len(new) < len(texts) - len(free) or new.keys() & self._codes.keys():
            raise ValueError("a string is given twice, or is in the dictionary already")
        self._codes.update(new)
        self._texts += texts
        self._holes.update(first + hole for hole in free)

    def unmarked(self, marks: npt.NDArray[np.bool_], first: int, end: int) -> Codes:
        codes = np.flatnonzero(~marks[first:end]) + first
        named = [self._texts[code] is not None or code in self._holes for code in codes.tolist()]
        return codes[np.array(named, np.bool_)]

    def free(self, codes: Codes) -> int:
        freed = 0
        for code in reversed(codes.tolist()):
            text = self._texts[code]
            if text is not None:
                del self._codes[text]
                self._texts[code] = None
                freed += 1
            elif code not in self._holes:
                continue
            self._holes.discard(code)
            self._free.append(code)
        return freed

    def give_back(self, strings: int) -> int:
        return 0

    def bytes(self) -> int:
        rounded = 8 + 32  # blocks are multiples of 16 bytes; the number
        texts = sum(getsizeof(text) + rounded for text in self._codes)
        return texts + sum(map(getsizeof, (self._texts, self._codes, self._free, self._holes)))


class _Recent(dict[str, int]):
    """Codes of recent strings; for another string, finds it in the store or adds it. A key that is not a string raises.

    ``texts`` has the same strings by code. It always has at least the strings that are keys, also if an error or Ctrl-C
    comes between two steps, because keys are forgotten by it.
    """

    __slots__ = ("store", "texts")

    def __init__(self) -> None:
        self.store: Store = _Objects()
        self.texts: dict[int, str] = {}

    def __missing__(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a text must be a str, not {type(text).__name__}")
        text = str(text)  # else a subclass such as numpy.str_ would be stored and returned
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the text is not valid Unicode: {error.reason}") from None
        code = self.store.enter(text, data)
        self.remember(text, code)
        return code

    def remember(self, text: str, code: int) -> None:
        """Remember the code of a string."""
        if len(text) <= LONG:
            if len(self) >= RECENT:
                self.forget()
            self.texts[code] = text
            self[text] = code

    def forget(self) -> None:
        """Forget all strings."""
        self.clear()
        self.texts.clear()

    def leave(self, codes: list[int]) -> None:
        """Forget the strings of codes, before these codes are freed."""
        if self.texts:
            for code in codes:
                text = self.texts.get(code)
                if text is not None:
                    self.pop(text, None)
                    self.texts.pop(code, None)


class Living:
    """Weak references to objects; iterating yields those that still live, each as often as it was added.

    A WeakSet calls a Python function for each object that ends, which takes a tenth of a commit of one row. This class
    drops references to ended objects when they may be half of all. For one thread at a time.
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
    """Strings to codes and back.

    Codes count from 0. ``engine.commit.collection`` finds the codes that nothing refers to, and ``free`` frees them. A
    new string gets the lowest freed code; if there is none, the next code after the last. Only one thread at a time may
    add strings; other threads may decode meanwhile.

    The dictionary first holds its strings as Python objects. ``engine.codes.string_codes`` moves them to native memory
    (``put``). From then on the dictionary caches a bounded number of recent strings as Python objects.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """``entries``: the strings of codes 0, 1, ...; a string given twice raises ``ValueError``."""
        self._recent = _Recent()
        self._texts = self._recent.texts
        self.freed = 0
        """How often codes were freed; each time, values remembered by code become invalid."""
        self.pinned: set[int] = set()
        """Codes of constants, which are never freed."""
        self.held = Living()
        """Batches of codes outside tables and views; see ``engine.codes.marks``."""
        self.mark: Any = None
        """While a collection runs: a function that marks codes as in use."""
        self.encode = self._recent.__getitem__
        """The code of a string, adding a new string.

        Raises ``TypeError`` if it is not a ``str``, ``ValueError`` if it has lone surrogates.
        """
        self.strings = self.store.strings
        """Returns the number of strings; each commit calls it."""
        self.extend(entries)

    @property
    def store(self) -> Store:
        """The store of the strings."""
        return self._recent.store

    def put(self, store: Store) -> None:
        """Move all strings, with their codes, to an empty store. A free code stays unused until a collection finds no
        reference to it, because an image that will be opened may refer to it."""
        sizes = self.sizes_between(0, len(self))
        starts = starts_of(sizes)
        if len(sizes):
            data = self.data_between(0, starts)
            store.extend_flat(starts, data, np.flatnonzero(sizes < 0).tolist())
        self._recent.store = store
        self.strings = store.strings

    def __len__(self) -> int:
        """One more than the largest code, free ones included."""
        return self._recent.store.size()

    def decode(self, code: int) -> str:
        """The string of a code; raises ``IndexError`` for an unknown code."""
        text = self._texts.get(code)
        return self._recent.store.text(code) if text is None else text

    def find(self, text: str) -> int | None:
        """The code of a string; None, adding nothing, if the dictionary does not have it."""
        code = self._recent.get(text)
        if code is not None:
            return code
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return None
        return self._recent.store.find(text, data)

    def encode_all(self, texts: Sequence[str]) -> Codes:
        """The codes of many strings. Raises UnicodeEncodeError, and adds none, if one has lone surrogates."""
        recent = self._recent
        codes = list(map(recent.get, texts))
        if None in codes:
            places = [place for place, code in enumerate(codes) if code is None]
            found, known = recent.store.enter_all([texts[place] for place in places])
            for place, code in zip(places, found, strict=True):
                codes[place] = code
            # Strings that occur once are not remembered: there may be many of them.
            if len(recent) < RECENT // 2 or 4 * (len(texts) - len(places)) > len(known):
                for number in known:
                    recent.remember(texts[places[number]], found[number])
        return np.array(codes, np.int64)

    def pin(self, text: str) -> int:
        """The code of a constant, which is never freed."""
        code = self.encode(text)
        self.pinned.add(code)
        return code

    def entries(self, first: int = 0, end: int | None = None) -> list[str | None]:
        """The strings from one code to before another, in the order of codes; None for a free code."""
        sizes = self.sizes_between(first, len(self) if end is None else end)
        starts = starts_of(sizes)
        data = self.data_between(first, starts).tobytes()
        return [
            None if size < 0 else data[start : start + size].decode()
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=False)
        ]

    def sizes_between(self, first: int, end: int) -> Codes:
        """The bytes of each string from one code to before another; -1 for a free code."""
        return self._recent.store.sizes(first, min(end, len(self)))

    def data_between(self, first: int, starts: Codes) -> npt.NDArray[np.uint8]:
        """The UTF-8 of strings from code ``first`` on, one after the other; ``starts`` as ``starts_of`` their sizes."""
        return self._recent.store.data(first, starts)

    def extend(self, entries: Iterable[str]) -> None:
        """Add strings that must be new, as a log or a snapshot lists them."""
        for text in entries:
            if self.find(text) is not None:
                raise ValueError(f"{text!r} is in the dictionary already")
            self.encode(text)

    def extend_flat(
        self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], free: Sequence[int] = ()
    ) -> None:
        """Add strings that must be new; string i is the bytes ``offsets[i]`` to ``offsets[i + 1]``. Raises
        ``ValueError`` if one is not new.

        ``free``: the codes among them that were free. A collection that finds no reference to them lets them be used
        again.
        """
        array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
        array.validate(full=True)
        self._recent.store.extend_flat(offsets, data, free)

    @property
    def bytes(self) -> int:
        """Bytes of the strings, and of those remembered as Python objects, estimated from a thousand of them."""
        recent = self._recent
        some = list(map(getsizeof, list(recent)[:: len(recent) // 1000 + 1]))
        # Blocks are multiples of 16 bytes; a number takes 32.
        objects = len(recent) * (sum(some) // max(len(some), 1) + 8 + 32)
        return recent.store.bytes() + objects + getsizeof(recent) + getsizeof(recent.texts)

    def free(self, codes: Sequence[int] | Codes) -> int:
        """Free codes; returns how many were in use."""
        freed = np.array(codes, np.int64)
        # Forget first: an error in between must leave no freed string remembered.
        self._recent.leave(freed.tolist())
        self.freed += len(freed) > 0
        return self._recent.store.free(freed)

    def free_unmarked(self, marks: npt.NDArray[np.bool_], first: int, end: int) -> int:
        """Free the codes from one to before another that have no mark; returns how many were in use."""
        return self.free(self._recent.store.unmarked(marks, first, end))

    def give_back(self, strings: int) -> int:
        """Give memory of freed strings back, in a step over about this number of strings; 0 if none is left to give."""
        return self._recent.store.give_back(strings)

    def encode_arrow(self, array: pa.Array) -> npt.NDArray[np.int64]:
        """Codes of an array of strings (plain, large, view, or dictionary-encoded), NULL for nulls.

        Only the distinct strings of the array are looked up.
        """
        array = without_views(array)
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
        return self._recent.store.array(codes)


def starts_of(sizes: Codes) -> Codes:
    """The offsets of strings of these sizes, one after the other, and the end of the last; -1 counts as 0."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.maximum(sizes, 0), out=starts[1:])
    return starts


def texts_array(texts: Sequence[str | None]) -> pa.Array:
    """Strings as ``pa.string()``. ``pa.array`` takes a third of the time for very many strings, but imports pandas,
    which takes half a second."""
    if len(texts) > _MANY_TEXTS:
        return pa.array(texts, pa.string())
    builder = pa.lib.StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def words_array(words: npt.NDArray[np.int64]) -> pa.Array:
    """Words as ``pa.int64()``, null for NULL."""
    buffers = [validity_of(words), pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(pa.int64(), len(words), buffers)


def validity_of(words: npt.NDArray[np.int64]) -> pa.Buffer | None:
    """Arrow's bitmap of the words that are not NULL; None if all are not NULL."""
    valid = words != NULL
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


_MANY_TEXTS = 1_000_000
