"""Computes functions of texts, such as LENGTH, for all strings of a column: an Arrow column, or a column of codes."""

from __future__ import annotations

from freshviews.kernel.codes.ingest import (
    BUFFERS,
    CHILDREN,
    LENGTH,
    NULL_COUNT,
    OFFSET,
    call_release,
    inside,
    is_set,
    read_columns,
    text_at,
)
from freshviews.kernel.codes.string_slots import text_of
from freshviews.kernel.codes.texts import function_of, is_text
from freshviews.kernel.memory.mem import jit, load, store
from freshviews.types.sqltype import NULL

# Words of a function of a column of strings, whose results take a row of the target.
COLUMN = 0
LAYOUT = 1  # a kind of strings in ``ingest``
FUNCTION = 2
RESULTS = 3
TEXT_WORDS = 4


@jit
def of_codes(function: int, block: int, codes: int, stride: int, n: int, out: int) -> int:
    """Write the results for the strings of ``n`` codes to ``out``, NULL for NULL; returns the number of UNKNOWN codes.

    ``block``: that of ``string_slots``. ``stride`` counts words.
    """
    unknown = 0
    for i in range(n):
        code = load(codes, i * stride)
        if code == NULL:
            store(out, i, NULL)
            continue
        text, size = text_of(block, code)
        found = function_of(function, text, size, block)
        unknown += found < 0
        store(out, i, found)
    return unknown


@jit
def _of_column(array: int, entry: int, slots: int, out: int) -> int:
    n = load(array, LENGTH)
    column = load(load(array, CHILDREN), load(entry, COLUMN))
    buffers = load(column, BUFFERS)
    offset = load(column, OFFSET) + load(array, OFFSET)
    bits = 0 if load(column, NULL_COUNT) == 0 else load(buffers, 0)
    layout = load(entry, LAYOUT)
    function = load(entry, FUNCTION)
    if not inside(layout, column, bits, offset, n):
        return -1
    unknown = 0
    for i in range(n):
        if bits != 0 and is_set(bits, offset + i) == 0:
            store(out, i, NULL)
            continue
        text, size = text_at(layout, buffers, offset + i)
        if not is_text(text, size):
            return -1
        found = function_of(function, text, size, slots)
        unknown += found < 0
        store(out, i, found)
    return unknown


@jit
def read_with_texts(
    array: int, columns: int, plan: int, texts: int, count: int, slots: int, start: int, target: int, rows: int
) -> int:
    """As ``ingest.read_and_release``, and the results of ``count`` functions, of ``TEXT_WORDS`` words each at
    ``texts``, become rows of the target."""
    unknown = read_columns(array, columns, plan, slots, start, target, rows)
    for t in range(count):
        if unknown >= 0:
            entry = texts + 8 * TEXT_WORDS * t
            found = _of_column(array, entry, slots, target + 8 * (load(entry, RESULTS) * rows + start))
            unknown = unknown + found if found >= 0 else -1
    call_release(array)
    return unknown
