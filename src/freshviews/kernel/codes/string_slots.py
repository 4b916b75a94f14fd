"""Maps strings to codes and back. All strings of a dictionary are in one block of bytes, the *heap*.

- The *place* of a code is the position in the heap where the code's string begins.
- A *slot* of the hash table has a code, and 8 bits of the hash of the code's string.
"""

from __future__ import annotations

import ctypes

from freshviews.kernel.memory.mem import inlined, jit, load, load8, mix, shift_right

# Words of the block.
SLOTS = 0  # address
SLOT_COUNT = 1
PLACES = 2  # address
HEAP = 3  # address
CODES = 4  # one more than the largest code, free ones included
LIVE = 5  # number of strings
END = 6  # bytes of the heap in use, dead strings included
DEAD = 7  # bytes of dead strings
FILLED = 8  # number of slots that are not empty
FIRST_OWN = 9  # the words from here on are those of ``string_heap``

UNKNOWN = -1
"""Stands for the code of a string without a code."""

PLACE = 5
"""Bytes of a place, and of a slot."""
LOW_40 = 2**40 - 1
FREE = LOW_40
"""The place of a free code."""
HOLE = FREE - 1
"""The place of a code without a string to which something may still refer."""
GONE = 2**32 - 1
"""A slot whose string was removed."""


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
def place_of(block: int, code: int) -> int:
    """The place of a code."""
    return word_at(load(block, PLACES) + PLACE * code) & LOW_40


@jit
def head_of(at: int) -> tuple[int, int]:
    """The address of the bytes of a record, and the number in its head.

    The *heap* is one block of bytes with a *record* per string: a head, then the bytes. The head is the number of
    bytes, shifted left by one; the lowest bit is 1 if the string is dead. The head is stored in bytes of seven bits,
    the lowest first; the eighth bit is 1 if another byte follows. Each code has a *place* of five bytes: the start of
    its record, or FREE or HOLE.
    """
    byte = load8(at, 0)
    number = byte & 127
    bits = 7
    at += 1
    while byte >= 128:
        byte = load8(at, 0)
        number |= (byte & 127) << bits
        bits += 7
        at += 1
    return at, number


@inlined
def text_of(block: int, code: int) -> tuple[int, int]:
    """Address and number of bytes of the string of a code that is not free."""
    at = load(block, HEAP) + place_of(block, code)
    byte = load8(at, 0)
    if byte < 128:
        return at + 1, byte >> 1
    at, number = head_of(at)
    return at, number >> 1


@inlined
def home_of(h: int, count: int) -> int:
    """The slot of ``count`` at which a search for a hash begins."""
    return shift_right(h * count, 32)


@inlined
def slot_at(slots: int, i: int) -> int:
    """A slot; there are three bytes more behind the last one.

    A *slot* is five bytes: code + 1 in the low four, the low byte of the hash in the highest. An empty slot is 0; GONE
    replaces the code of a removed string. A search starts at the *home* of a hash and ends at an empty slot. The home
    is the hash scaled to the number of slots, which need not be a power of two. A search reads a string only if the
    byte of its hash is equal.
    """
    return word_at(slots + PLACE * i) & LOW_40


@inlined
def code_with(block: int, h: int, text: int, size: int) -> int:
    """The code of a string with a hash, or UNKNOWN."""
    slots = load(block, SLOTS)
    count = load(block, SLOT_COUNT)
    tag = h & 0xFF
    i = home_of(h, count)
    while True:
        slot = slot_at(slots, i)
        if slot == 0:
            return UNKNOWN
        if slot >> 32 == tag and slot != GONE:
            code = (slot & 0xFFFFFFFF) - 1
            at, other_size = text_of(block, code)
            if other_size == size and same_text(at, text, size):
                return code
        i += 1
        if i == count:
            i = 0


@inlined
def code_of(block: int, text: int, size: int) -> int:
    """The code of a string, or UNKNOWN."""
    return code_with(block, hash_text(text, size), text, size)
