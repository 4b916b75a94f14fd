"""Strings to codes: hash slots over the heap that holds all strings of a dictionary.

The dictionary owns the heap; the bytes of a code are ``offsets[code]`` to ``offsets[code + 1]``. Slots are as of
``hash.slots``, with codes as numbers; none is ever removed. A block of words has the addresses of slots, offsets and
bytes.
"""

from __future__ import annotations

import ctypes

from freshviews.kernel.hash.slots import fill_slot
from freshviews.kernel.memory.mem import inlined, jit, load, load8, mix, shift_right

# Words of the block.
SLOTS = 0
MASK = 1
OFFSETS = 2
DATA = 3
BLOCK_WORDS = 4

UNKNOWN = -1
"""Stands for the code of a string that has none."""


def word_at(address: int) -> int:
    """The eight bytes at any address, aligned or not."""
    return ctypes.c_int64.from_address(address).value


def half_at(address: int) -> int:
    """The four bytes at any address, unsigned."""
    return ctypes.c_uint32.from_address(address).value


@inlined
def short_text(text: int, size: int) -> int:
    """Up to eight bytes as a word; no byte after them is read."""
    if size >= 8:
        return word_at(text)
    if size >= 4:  # two halves that overlap
        return half_at(text) | half_at(text + size - 4) << (8 * (size - 4))
    if size == 0:
        return 0
    middle = size >> 1
    last = size - 1
    return load8(text, 0) | load8(text, middle) << (8 * middle) | load8(text, last) << (8 * last)


@inlined
def hash_text(text: int, size: int) -> int:
    """A 32-bit hash of a string."""
    state = mix(0, size)
    at = 0
    while at + 8 < size:
        state = mix(state, word_at(text + at))
        at += 8
    # The last word of a long string overlaps the one before.
    state = mix(state, word_at(text + size - 8) if size > 8 else short_text(text, size))
    return state & 0xFFFFFFFF


@inlined
def same_text(one: int, other: int, size: int) -> bool:
    """Whether two strings of equal size are equal."""
    if size <= 8:
        return short_text(one, size) == short_text(other, size)
    at = 0
    while at + 8 < size:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    return word_at(one + size - 8) == word_at(other + size - 8)


@inlined
def code_of(block: int, text: int, size: int) -> int:
    """The code of a string, or UNKNOWN."""
    h = hash_text(text, size)
    slots = load(block, SLOTS)
    mask = load(block, MASK)
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return UNKNOWN
        if shift_right(slot, 32) == h:
            code = (slot & 0xFFFFFFFF) - 1
            begin = load(load(block, OFFSETS), code)
            if load(load(block, OFFSETS), code + 1) - begin == size and same_text(
                load(block, DATA) + begin, text, size
            ):
                return code
        i = (i + 1) & mask


@jit
def enter_codes(block: int, first: int, last: int) -> None:
    """Add the strings of the codes from ``first`` to before ``last`` to the slots, which have room."""
    slots = load(block, SLOTS)
    mask = load(block, MASK)
    for code in range(first, last):
        begin = load(load(block, OFFSETS), code)
        h = hash_text(load(block, DATA) + begin, load(load(block, OFFSETS), code + 1) - begin)
        fill_slot(slots, mask, h, code)
