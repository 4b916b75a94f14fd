"""Converts Arrow columns to codes. Numbers are widened, scaled and checked; strings are looked up in the dictionary."""

from __future__ import annotations

import ctypes

from freshviews.kernel.codes.string_slots import UNKNOWN, code_of, short_text
from freshviews.kernel.memory.mem import inlined, jit, load, load8, load32, mul_wrapping, store
from freshviews.types.sqltype import NAN, NULL

# Words of Arrow's C structure of an array.
LENGTH = 0
NULL_COUNT = 1
OFFSET = 2
BUFFER_COUNT = 3
BUFFERS = 5
CHILDREN = 6
RELEASE = 8
ARRAY_WORDS = 10

# Words of a plan, one group per column.
KIND = 0
FACTOR = 1
LEAST = 2  # bounds of the value before it is multiplied by the factor
GREATEST = 3
NULLABLE = 4
TARGET = 5  # the row of the target for the codes
PLAN_WORDS = 6

# Kinds.
CHECK_NULLS = 0  # the column is not read, only checked for NULLs
INT8, INT16, INT32, INT64 = 1, 2, 3, 4
UINT8, UINT16, UINT32 = 5, 6, 7
DECIMAL128 = 8
DOUBLE = 9
BOOLEAN = 10
STRING, LARGE_STRING, STRING_VIEW = 11, 12, 13
OTHER = 14  # the caller converts the column

_INFINITY = 0x7FF0000000000000
_POSITIVE = 0x7FFFFFFFFFFFFFFF


def call_release(array: int) -> None:
    """Call the release function of an Arrow C structure."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(load(array, RELEASE))(array)


@inlined
def is_set(bits: int, i: int) -> int:
    """Bit ``i`` of a bitmap."""
    return (load8(bits, i >> 3) >> (i & 7)) & 1


@inlined
def _small(data: int, kind: int, i: int) -> int:
    """A signed integer of 8 or 16 bits, or an unsigned one of up to 32."""
    if kind == INT8:
        return (load8(data, i) ^ 0x80) - 0x80
    if kind == UINT8:
        return load8(data, i)
    if kind == UINT32:
        return load32(data, i) & 0xFFFFFFFF
    half = load8(data, 2 * i) | load8(data, 2 * i + 1) << 8
    return half if kind == UINT16 else (half ^ 0x8000) - 0x8000


@inlined
def _canonical(word: int) -> int:
    """The code of a double from its bits: one NaN, no -0.0."""
    if word == NULL:
        return 0
    return NAN if word & _POSITIVE > _INFINITY else word


@jit
def integers(kind: int, data: int, start: int, n: int, factor: int, least: int, greatest: int, out: int) -> int:
    """Codes of numbers without NULLs; 1 if one is out of bounds. The loops are written to vectorise."""
    bad = 0
    if kind == INT64:
        for i in range(n):
            value = load(data, start + i)
            bad |= (value < least) | (value > greatest)
            store(out, i, mul_wrapping(value, factor))
    elif kind == INT32:
        for i in range(n):
            value = load32(data, start + i)
            bad |= (value < least) | (value > greatest)
            store(out, i, mul_wrapping(value, factor))
    elif kind == DECIMAL128:
        for i in range(n):
            value = load(data, 2 * (start + i))
            high = load(data, 2 * (start + i) + 1)
            bad |= (high != value >> 63) | (value < least) | (value > greatest)
            store(out, i, mul_wrapping(value, factor))
    elif kind == DOUBLE:
        for i in range(n):
            store(out, i, _canonical(load(data, start + i)))
    elif kind == BOOLEAN:
        for i in range(n):
            store(out, i, is_set(data, start + i))
    else:
        for i in range(n):
            value = _small(data, kind, start + i)
            bad |= (value < least) | (value > greatest)
            store(out, i, mul_wrapping(value, factor))
    return 1 if bad else 0


@jit
def nullable_integers(
    kind: int, data: int, bits: int, start: int, n: int, factor: int, least: int, greatest: int, out: int
) -> int:
    """As ``integers``, for a column with NULLs; the bytes of a NULL are not read."""
    for i in range(n):
        if is_set(bits, start + i) == 0:
            store(out, i, NULL)
        elif integers(kind, data, start + i, 1, factor, least, greatest, out + 8 * i):
            return 1
    return 0


@inlined
def text_at(kind: int, buffers: int, i: int) -> tuple[int, int]:
    """Address and number of bytes of string ``i``."""
    data = load(buffers, 1)
    if kind == STRING:
        begin = load32(data, i)
        return load(buffers, 2) + begin, load32(data, i + 1) - begin
    if kind == LARGE_STRING:
        begin = load(data, i)
        return load(buffers, 2) + begin, load(data, i + 1) - begin
    view = data + 16 * i
    size = load32(view, 0)
    if size <= 12:
        return view + 4, size
    return load(buffers, 2 + load32(view, 2)) + load32(view, 3), size


@jit
def inside(kind: int, column: int, bits: int, start: int, n: int) -> bool:
    """Whether all strings of a column lie in its memory. Its first and last offset, and lengths, have been checked.

    ``bits``: the bitmap of rows that are not NULL, or 0.
    """
    buffers = load(column, BUFFERS)
    data = load(buffers, 1)
    bad = 0
    if kind == STRING:
        for i in range(start, start + n):
            bad |= load32(data, i + 1) < load32(data, i)
    elif kind == LARGE_STRING:
        for i in range(start, start + n):
            bad |= load(data, i + 1) < load(data, i)
    else:
        others = load(column, BUFFER_COUNT) - 3
        sizes = load(buffers, others + 2)
        for i in range(start, start + n):
            if bits != 0 and is_set(bits, i) == 0:
                continue
            size = load32(data, 4 * i)
            bad |= size < 0
            if size > 12:
                number, begin = load32(data, 4 * i + 2), load32(data, 4 * i + 3)
                if number < 0 or number >= others or begin < 0 or begin + size > load(sizes, number):
                    return False
    return bad == 0


@jit
def strings(kind: int, buffers: int, bits: int, start: int, n: int, slots: int, out: int) -> int:
    """Write the codes of strings, UNKNOWN for a string without a code; returns the number of UNKNOWNs."""
    unknown = 0
    before = 0
    before_size = -1
    code = 0
    for i in range(n):
        if bits != 0 and is_set(bits, start + i) == 0:
            store(out, i, NULL)
            continue
        text, size = text_at(kind, buffers, start + i)
        # Neighbouring strings are often equal.
        if size != before_size or size > 8 or short_text(text, size) != before:
            code = code_of(slots, text, size)
            before_size = size
            before = short_text(text, size) if size <= 8 else 0
        unknown += code == UNKNOWN
        store(out, i, code)
    return unknown


@jit
def any_null(bits: int, start: int, n: int) -> bool:
    """Whether any of ``n`` rows is NULL by the validity bitmap."""
    for i in range(start, start + n):
        if is_set(bits, i) == 0:
            return True
    return False


@jit
def read_columns(array: int, columns: int, plan: int, slots: int, start: int, target: int, rows: int) -> int:
    """Write the codes of a batch of ``columns`` columns to ``target``, from row ``start`` on.

    The target has ``rows`` words per column. Arrow has compared the sizes of buffers with the lengths. Returns -1 if a
    value is refused, else the number of strings without a code.

    A batch is a C structure of Arrow's data interface, with a child per column. For each column a group of words, made
    once per schema, says how to convert the column. A refused value stops the batch. Then ``freshviews.types.columns``,
    which handles all types, converts the batch or raises the error.
    """
    n = load(array, LENGTH)
    unknown = 0
    for c in range(columns):
        column = load(load(array, CHILDREN), c)
        entry = plan + 8 * c * PLAN_WORDS
        kind = load(entry, KIND)
        buffers = load(column, BUFFERS)
        offset = load(column, OFFSET) + load(array, OFFSET)
        bits = load(buffers, 0)
        if load(column, NULL_COUNT) == 0 or (bits != 0 and not any_null(bits, offset, n)):
            bits = 0
        if bits != 0 and load(entry, NULLABLE) == 0:
            return -1
        if kind == CHECK_NULLS or kind == OTHER:
            continue
        out = target + 8 * (load(entry, TARGET) * rows + start)
        if STRING <= kind <= STRING_VIEW:
            if not inside(kind, column, bits, offset, n):
                return -1
            unknown += strings(kind, buffers, bits, offset, n, slots, out)
            continue
        data = load(buffers, 1)
        factor = load(entry, FACTOR)
        least = load(entry, LEAST)
        greatest = load(entry, GREATEST)
        if bits == 0:
            bad = integers(kind, data, offset, n, factor, least, greatest, out)
        else:
            bad = nullable_integers(kind, data, bits, offset, n, factor, least, greatest, out)
        if bad != 0:
            return -1
    return unknown


@jit
def read_and_release(array: int, columns: int, plan: int, slots: int, start: int, target: int, rows: int) -> int:
    """``read_columns``, then release the structure."""
    unknown = read_columns(array, columns, plan, slots, start, target, rows)
    call_release(array)
    return unknown
