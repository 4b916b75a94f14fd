"""Copies the strings of a dictionary to native memory, where compiled code reads them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from functools import partial
from typing import Any
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
"""Codes decoded under one hold of the lock."""
_Room = c_char * 256
"""A buffer for the bytes of a short string."""
_BYTES_AT = bytes.__basicsize__ - 1
"""Offset of the data in a bytes object: the data is its last member, with a zero behind it."""


class StringCodes:
    """A store of strings (``types.dictionary.Store``). ``address`` is the constant address of the block that compiled
    code reads.

    The thread that adds strings finds them by compiled code without the lock; moving and decoding strings take the
    lock.

    A signal handler may read strings, and commit. So the lock is held for one call of compiled code only, and each call
    checks what the previous one found.
    """

    def __init__(self) -> None:
        self.address = kernel.new_strings()
        if self.address == 0:
            raise MemoryError
        finalize(self, kernel.free_strings, self.address).atexit = False
        words = words_in(self.address, 1, kernel.BLOCK_WORDS)[0].data
        self.size: Callable[[], int] = partial(words.__getitem__, CODES)
        self.strings: Callable[[], int] = partial(words.__getitem__, LIVE)
        self._lock = threading.RLock()
        self._removes = False
        _all.add(self)

    def compile_for_strings(self) -> None:
        """Compile the functions that add and remove strings, before a commit needs them."""
        if not self._removes:
            self._removes = True
            compile_ahead(kernel.enter_text, kernel.enter_texts, kernel.enter_column)
            compile_ahead(kernel.list_unmarked, kernel.free_codes, kernel.give_back)

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
        """Add strings of an Arrow column, by the address of its C structure, where codes are UNKNOWN, and set these.

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
        room: Any = _Room()
        size = self._copy(code, addressof(room), len(room))
        while size > len(room):
            room = bytearray(size)
            size = self._copy(code, addressof(c_char.from_buffer(room)), len(room))
        if size < 0:
            raise IndexError(f"no string has the code {code}")
        text: str = room[:size].decode()
        return text

    def _copy(self, code: int, address: int, room: int) -> int:
        with self._lock:
            size: int = direct(kernel.copy_text)(self.address, code, address, room)
        return size

    def sizes(self, first: int, end: int) -> Codes:
        sizes = np.empty(max(end - first, 0), np.int64)
        place = sizes.ctypes.data
        for start in range(0, len(sizes), _PIECE):
            with self._lock:
                kernel.sizes_between(
                    self.address, first + start, min(_PIECE, len(sizes) - start), place + 8 * start
                )
        return sizes

    def data(self, first: int, starts: Codes) -> NDArray[np.uint8]:
        data = np.zeros(starts[-1] - starts[0], np.uint8)
        with self._lock:
            kernel.copy_between(self.address, first, len(starts) - 1, starts.ctypes.data, data.ctypes.data)
        return data

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

    def unmarked(self, marks: NDArray[np.bool_], first: int, end: int) -> Codes:
        codes = np.empty(max(end - first, 1), np.int64)
        with self._lock:
            found = kernel.list_unmarked(self.address, marks.ctypes.data, first, end, codes.ctypes.data)
        return codes[:found]

    def free(self, codes: Codes) -> int:
        with self._lock:
            return int(kernel.free_codes(self.address, codes.ctypes.data, len(codes)))

    def give_back(self, strings: int) -> int:
        with self._lock:
            return int(kernel.give_back(self.address, strings))

    def bytes(self) -> int:
        return kernel.strings_bytes(self.address)

    def renew_lock(self) -> None:
        """Replace the lock by a free one."""
        self._lock = threading.RLock()


_all: WeakSet[StringCodes] = WeakSet()


def _renew_locks() -> None:
    for store in _all:
        store.renew_lock()


# One thread may decode, and hold a lock, while another forks.
os.register_at_fork(after_in_child=_renew_locks)


def codes_of(dictionary: Dictionary) -> StringCodes:
    """The store of a dictionary's strings in native memory, made at the first call."""
    store = dictionary.store
    if not isinstance(store, StringCodes):
        made = StringCodes()
        dictionary.put(made)
        return made
    return store
