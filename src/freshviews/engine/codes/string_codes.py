"""The strings of a dictionary in native memory, to be found by compiled code (``kernel.codes.string_slots``)."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet, finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews.codegen.module import compile_ahead
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.words import words_in
from freshviews.kernel.codes import string_heap as kernel
from freshviews.kernel.codes.string_slots import CODES, LIVE, UNKNOWN
from freshviews.kernel.machine.functions import direct
from freshviews.types.dictionary import Dictionary, validity_of

_PIECE = 1 << 14
"""Codes that are decoded while no string can be added."""
_BYTES_AT = bytes.__basicsize__ - 1
"""Where the bytes of a bytes object begin, from its address: they are its last member, with a zero behind them."""


class StringCodes:
    """A store of strings (``types.dictionary.Store``). ``address`` is that of the block that compiled code reads; it
    stays the same.

    Only the thread that adds strings finds them by compiled code, without the lock: what moves strings waits for the
    lock, as does what decodes them.
    """

    def __init__(self) -> None:
        self.address = kernel.new_strings()
        if self.address == 0:
            raise MemoryError
        finalize(self, kernel.free_strings, self.address).atexit = False
        words = words_in(self.address, 1, kernel.BLOCK_WORDS)[0].data
        self.size: Callable[[], int] = partial(words.__getitem__, CODES)
        self.strings: Callable[[], int] = partial(words.__getitem__, LIVE)
        self._lock = threading.Lock()
        self._removes = False
        _all.add(self)

    def compile_for_strings(self) -> None:
        """Compile what adds and removes strings, before a commit does so."""
        if not self._removes:
            self._removes = True
            compile_ahead(kernel.enter_text, kernel.enter_texts, kernel.enter_column)
            compile_ahead(kernel.free_unmarked, kernel.give_back)

    def enter(self, text: str, data: bytes) -> int:
        with self._lock:
            code: int = direct(kernel.enter_text)(self.address, id(data) + _BYTES_AT, len(data))
        if code < 0:
            raise MemoryError
        return code

    def enter_all(self, texts: list[str]) -> tuple[list[int], list[int]]:
        encoded = [text.encode() for text in texts]
        data = b"".join(encoded)
        count = len(texts)
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, count), out=offsets[1:])
        found = np.empty(count, np.int64)
        with self._lock:
            result = kernel.enter_texts(
                self.address, address_of(offsets)[0], id(data) + _BYTES_AT, count, address_of(found)[0]
            )
        if result != 0:
            raise MemoryError
        known = np.flatnonzero(found >= 0).tolist()
        codes: list[int] = np.where(found >= 0, found, kernel.NEW - found).tolist()
        return codes, known

    def enter_column(self, array: int, kind: int, codes: Codes) -> None:
        """Give the strings of an Arrow column, by the address of its C structure, codes where these are UNKNOWN.

        ``UnicodeDecodeError`` if one is not valid UTF-8.
        """
        with self._lock:
            result = kernel.enter_column(array, kind, self.address, address_of(codes)[0])
        if result == kernel.INVALID:
            raise UnicodeDecodeError("utf-8", b"", 0, 0, "invalid")
        if result != 0:
            raise MemoryError

    def find(self, text: str, data: bytes) -> int | None:
        with self._lock:
            code: int = kernel.find_text(self.address, id(data) + _BYTES_AT, len(data))
        return None if code == UNKNOWN else code

    def text(self, code: int) -> str:
        with self._lock:
            address, size = kernel.string_at(self.address, code)
            if size < 0:
                raise IndexError(f"no string has the code {code}")
            return ctypes.string_at(address, size).decode()

    def texts(self, first: int, end: int) -> list[str | None]:
        texts: list[str | None] = self.array(np.arange(first, end)).to_pylist()
        for code in self.free_between(first, end):
            texts[code - first] = None
        return texts

    def free_between(self, first: int, end: int) -> list[int]:
        """The free codes from one code to before another."""
        free = np.zeros(max(end - first, 1), np.int64)
        with self._lock:
            if kernel.mark_free(self.address, first, end - first, address_of(free)[0]) == 0:
                return []
        found: list[int] = (np.flatnonzero(free) + first).tolist()
        return found

    def array(self, codes: Codes) -> pa.Array:
        offsets, data = self.flat(codes)
        return pa.Array.from_buffers(
            pa.string(), len(codes), [validity_of(codes), pa.py_buffer(offsets), pa.py_buffer(data)]
        )

    def flat(self, codes: Codes) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The strings of codes: the bytes of number i are ``offsets[i]`` to ``offsets[i + 1]``. NULL and free codes
        have none. ``OverflowError`` if the bytes are 2 GB or more."""
        count = len(codes)
        offsets = np.zeros(count + 1, np.int32)
        ends = offsets.ctypes.data + 4
        end = 0
        for start in range(0, count, _PIECE):
            rows = min(_PIECE, count - start)
            source, stride = address_of(codes[start:])
            with self._lock:
                end = kernel.sizes_of(self.address, source, stride, rows, ends + 4 * start, end)
            if end < 0:
                raise OverflowError("a column of strings has 2 GB or more; read fewer rows at a time")
        data = np.empty(end, np.uint8)
        for start in range(0, count, _PIECE):
            rows = min(_PIECE, count - start)
            source, stride = address_of(codes[start:])
            with self._lock:
                kernel.copy_texts(self.address, source, stride, rows, ends + 4 * start, data.ctypes.data)
        return offsets, data

    def extend_flat(self, offsets: Codes, data: NDArray[np.uint8], free: Sequence[int]) -> None:
        count = len(offsets) - 1
        is_free = np.zeros(count + 1, np.uint8)
        is_free[list(free)] = 1
        with self._lock:
            result = kernel.enter_flat(
                self.address, offsets.ctypes.data, data.ctypes.data, is_free.ctypes.data, count
            )
        if result == UNKNOWN:
            raise ValueError("a string is given twice, or is in the dictionary already")
        if result != 0:
            raise MemoryError

    def free(self, codes: list[int]) -> int:
        listed = np.array(codes or [0], np.int64)
        with self._lock:
            return int(kernel.free_codes(self.address, address_of(listed)[0], len(codes)))

    def free_unmarked(self, marks: NDArray[np.bool_], first: int, end: int) -> list[int]:
        freed = np.empty(end - first + 1, np.int64)
        with self._lock:
            found = kernel.free_unmarked(self.address, marks.ctypes.data, first, end, address_of(freed)[0])
        codes: list[int] = freed[:found].tolist()
        return codes

    def give_back(self, strings: int) -> int:
        with self._lock:
            return int(kernel.give_back(self.address, strings))

    def bytes(self) -> int:
        return kernel.strings_bytes(self.address)

    def renew_lock(self) -> None:
        """Have a lock that no thread holds."""
        self._lock = threading.Lock()


_all: WeakSet[StringCodes] = WeakSet()


def _renew_locks() -> None:
    for store in _all:
        store.renew_lock()


# A thread that decodes may hold a lock where another forks.
os.register_at_fork(after_in_child=_renew_locks)


def codes_of(dictionary: Dictionary) -> StringCodes:
    """The store of a dictionary's strings in native memory, which is made once."""
    store = dictionary.store
    if not isinstance(store, StringCodes):
        made = StringCodes()
        dictionary.put(made)
        return made
    return store
