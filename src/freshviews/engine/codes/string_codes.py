"""The codes of a dictionary's strings, to be found by compiled code."""

from __future__ import annotations

from weakref import WeakKeyDictionary, ref

import numpy as np

from freshviews.codegen.module import compile_ahead
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.kernel.codes import string_slots as kernel
from freshviews.kernel.hash.slots import empty_slot
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
        dictionary.heap()
        self._enter(dictionary.live_codes())
        dictionary.on_heap, dictionary.on_free = self._enter, self._remove
        self._removes = False

    def compile_removal(self) -> None:
        """Compile what removes strings, before a commit does so."""
        if not self._removes:
            self._removes = True
            compile_ahead(kernel.hash_text, empty_slot)

    def refresh(self) -> None:
        """Add the strings since the last call."""
        self._name_heap()

    def _name_heap(self) -> None:
        """Write the addresses of the heap."""
        dictionary = self._dictionary()
        assert dictionary is not None, "the encoder holds the dictionary"
        heap = dictionary.heap()
        if heap is not self._heap:
            self._heap = heap
            self._block[kernel.OFFSETS] = address_of(heap[0])[0]
            self._block[kernel.DATA] = heap[1].__array_interface__["data"][0]

    def _enter(self, codes: Codes) -> None:
        """Add codes whose strings were written to the heap, in order."""
        dictionary = self._dictionary()
        if dictionary is None or len(codes) == 0:
            return
        self._name_heap()
        self._entered += len(codes)
        if 2 * self._entered > len(self._slots):
            self._slots = np.zeros(1 << (4 * self._entered - 1).bit_length(), np.int64)
            self._point()
            codes = dictionary.live_codes()
        ends = np.flatnonzero(np.diff(codes) != 1) + 1
        firsts = codes[np.concatenate([[0], ends])].tolist()
        lasts = codes[np.concatenate([ends, [len(codes)]]) - 1].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            kernel.enter_codes(self.address, first, last + 1)

    def _remove(self, codes: list[int]) -> None:
        """Remove codes before they are freed. The strings that no one has asked for are not written for that."""
        dictionary = self._dictionary()
        assert dictionary is not None, "it calls this"
        there, offsets, texts = dictionary.in_heap(codes)
        data: int = texts.__array_interface__["data"][0]
        slots, mask = int(self._block[kernel.SLOTS]), int(self._block[kernel.MASK])
        places = np.array(there, np.int64)
        for code, begin, end in zip(there, offsets[places].tolist(), offsets[places + 1].tolist(), strict=True):
            empty_slot(slots, mask, kernel.hash_text(data + begin, end - begin), code)
        self._entered -= len(there)

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
