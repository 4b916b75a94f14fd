"""Computes functions of one text over its UTF-8 bytes, such as LIKE, LENGTH and SUBSTRING.

A function is a list of steps. Every step except the last replaces the text by a part of the text. The last step returns
a code. The table lists the result of each kind of step, then its arguments after a colon:

======== ============================================================================================
SLICE    a part of the text: its 1-based position, from the end if negative; its length, or ``TO_END``
TRIM     the text without all copies of a byte at its left (1), right (2) or both ends (3): that
         number, the byte
CODE     the code of the text, or UNKNOWN
LENGTH   the number of characters
COMPARE  whether the text is less than (1), equal to (2) or greater than (4) a constant: the sum of the
         accepted numbers, the address and the number of bytes of the constant
ONE_OF   whether the text is one of some constants: the address of a list with address and number of
         bytes of each, the number of constants
LIKE     whether the text contains segments in order: the address of a list with
         ``SEGMENT_WORDS`` words for each, the number of segments
======== ============================================================================================
"""

from __future__ import annotations

from freshviews.kernel.codes.string_slots import code_of, half_at, same_text, word_at
from freshviews.kernel.memory.mem import inlined, jit, load, load8
from freshviews.types.sqltype import NULL

SLICE, TRIM, CODE, LENGTH, COMPARE, ONE_OF, LIKE = range(7)
STEP_WORDS = 4
SEGMENT_WORDS = 4
TO_END = -1
ANY = 0xFF

_HIGH_BITS = -0x7F7F7F7F7F7F7F80


@jit
def is_text(text: int, size: int) -> bool:
    """Whether bytes are valid UTF-8."""
    at = 0
    while at < size:
        while at + 8 <= size and word_at(text + at) & _HIGH_BITS == 0:
            at += 8
        if at == size:
            return True
        first = load8(text, at)
        if first < 0x80:
            at += 1
            continue
        # Bounds of the second byte exclude surrogates, codes past U+10FFFF, and characters that need fewer bytes.
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            width = 2
        elif 0xE0 <= first <= 0xEF:
            width = 3
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            width = 4
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + width > size or not low <= load8(text, at + 1) <= high:
            return False
        for i in range(at + 2, at + width):
            if load8(text, i) & 0xC0 != 0x80:
                return False
        at += width
    return True


@inlined
def _after(at: int) -> int:
    """The address after the character at an address."""
    first = load8(at, 0)
    return at + (1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4)


@jit
def _forward(at: int, end: int, characters: int) -> int:
    """The address after some characters, or the end."""
    while characters > 0 and at < end:
        at = _after(at)
        characters -= 1
    return at


@jit
def _back(begin: int, at: int, characters: int) -> tuple[int, int]:
    """The address ``characters`` characters earlier, or the beginning; and the number of missing characters."""
    while characters > 0 and at > begin:
        at -= 1
        while load8(at, 0) & 0xC0 == 0x80:
            at -= 1
        characters -= 1
    return at, characters


@jit
def _slice(begin: int, end: int, position: int, length: int) -> tuple[int, int]:
    """The addresses of a part and of its end."""
    if position < 0:
        start, missing = _back(begin, end, -position)
        if length != TO_END:
            length = max(length - missing, 0)
    else:
        start = _forward(begin, end, position - 1)
    return start, end if length == TO_END else _forward(start, end, length)


@jit
def _matched(segment: int, size: int, at: int, end: int) -> int:
    """The address after a segment at an address; -1 if it does not match there."""
    for i in range(size):
        if at >= end:
            return -1
        byte = load8(segment, i)
        if byte == ANY:
            at = _after(at)
        elif byte == load8(at, 0):
            at += 1
        else:
            return -1
    return at


@jit
def _found(segment: int, size: int, plain: bool, at: int, end: int) -> int:
    """The address after the first match of a segment; -1 if there is none."""
    if size == 0:
        return at
    first = load8(segment, 0)
    if plain and size >= 4:
        half = half_at(segment)
        last = end - size
        while at <= last:
            if half_at(at) == half and same_text(at, segment, size):
                return at + size
            at += 1
        return -1
    while at < end:
        if first == ANY or first == load8(at, 0):
            after = _matched(segment, size, at, end)
            if after >= 0:
                return after
        at = _after(at)
    return -1


@jit
def _like(segments: int, count: int, at: int, end: int) -> bool:
    """Whether a text has the segments of a pattern.

    The first segment of LIKE is at the beginning of the text and the last at its end (``freshviews.expr.like``). The
    words of a segment are its address, its numbers of bytes and of characters, and 1 if it contains ``ANY``. ``ANY`` is
    a byte that no text has; it matches any one character. If no segment has ``ANY``, a search takes time linear in the
    length of the text.
    """
    if count == 1:
        return _matched(load(segments, 0), load(segments, 1), at, end) == end
    at = _matched(load(segments, 0), load(segments, 1), at, end)
    if at < 0:
        return False
    tail = segments + 8 * SEGMENT_WORDS * (count - 1)
    stop, missing = _back(at, end, load(tail, 2))
    if missing > 0 or _matched(load(tail, 0), load(tail, 1), stop, end) != end:
        return False
    for i in range(1, count - 1):
        segment = segments + 8 * SEGMENT_WORDS * i
        at = _found(load(segment, 0), load(segment, 1), load(segment, 3) == 0, at, stop)
        if at < 0:
            return False
    return True


@jit
def _order(one: int, size: int, other: int, other_size: int) -> int:
    """Compares bytes with others: 1 for less, 2 for equal, 4 for greater."""
    for i in range(min(size, other_size)):
        a = load8(one, i)
        b = load8(other, i)
        if a != b:
            return 1 if a < b else 4
    return 1 if size < other_size else 2 if size == other_size else 4


@jit
def _one_of(members: int, count: int, text: int, size: int) -> bool:
    for i in range(count):
        if load(members, 2 * i + 1) == size and same_text(load(members, 2 * i), text, size):
            return True
    return False


@jit
def function_of(function: int, text: int, size: int, slots: int) -> int:
    """The result of a function for a text. ``slots``: the block of ``string_slots``, which CODE alone reads."""
    begin = text
    end = text + size
    steps = load(function, 0)
    for i in range(steps):
        step = function + 8 * (1 + STEP_WORDS * i)
        kind = load(step, 0)
        a = load(step, 1)
        b = load(step, 2)
        if kind == SLICE:
            begin, end = _slice(begin, end, a, b)
        elif kind == TRIM:
            while a & 1 and begin < end and load8(begin, 0) == b:
                begin += 1
            while a & 2 and begin < end and load8(end, -1) == b:
                end -= 1
        elif kind == CODE:
            return code_of(slots, begin, end - begin)
        elif kind == LENGTH:
            characters = 0
            while begin < end:
                begin = _after(begin)
                characters += 1
            return characters
        elif kind == COMPARE:
            return 1 if _order(begin, end - begin, b, load(step, 3)) & a else 0
        elif kind == ONE_OF:
            return 1 if _one_of(a, b, begin, end - begin) else 0
        else:
            return 1 if _like(a, b, begin, end) else 0
    return NULL
