"""The codes of a dictionary's strings, to be found by compiled code."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

import numpy as np

from freshviews.engine.codes.code_batch import address_of
from freshviews.kernel.codes import string_slots as kernel
from freshviews.types.dictionary import Dictionary

_FIRST_SLOTS = 64


class StringCodes:
    """``address`` is that of the block that ``kernel.codes.string_slots`` reads; it holds from ``refresh`` to
    ``refresh``."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = ref(dictionary)
        self._entered = 0
        self._slots = np.zeros(_FIRST_SLOTS, np.int64)
        self._block = np.zeros(kernel.BLOCK_WORDS, np.int64)
        self._heap: object = None
        self.address = address_of(self._block)[0]
        self._point()

    def refresh(self) -> None:
        """Add the strings since the last call."""
        dictionary = self._dictionary()
        assert dictionary is not None, "the encoder holds the dictionary"
        size = len(dictionary)
        if size == self._entered:
            return
        offsets, data = self._heap = dictionary.heap()
        self._block[kernel.OFFSETS] = address_of(offsets)[0]
        self._block[kernel.DATA] = data.__array_interface__["data"][0]
        if 2 * size > len(self._slots):
            self._slots = np.zeros(1 << (4 * size - 1).bit_length(), np.int64)
            self._point()
            self._entered = 0
        kernel.enter_codes(self.address, self._entered, size)
        self._entered = size

    def _point(self) -> None:
        self._block[kernel.SLOTS] = address_of(self._slots)[0]
        self._block[kernel.MASK] = len(self._slots) - 1


_shared: WeakKeyDictionary[Dictionary, StringCodes] = WeakKeyDictionary()


def codes_of(dictionary: Dictionary) -> StringCodes:
    """The string codes of a dictionary, made once."""
    found = _shared.get(dictionary)
    if found is None:
        found = _shared[dictionary] = StringCodes(dictionary)
    return found
