"""Packs several columns of a stored row into one word. Five words describe where a column is::

    word | shift | mask | base | nullable

The number ``(row[word] >> shift) & mask`` is the code of the column minus ``base``. In a nullable column, the number 0
stands for NULL.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import inlined, jit, load, shift_right, store
from freshviews.types import NULL

WORD = 0
SHIFT = 1
MASK = 2
BASE = 3
NULLABLE = 4
COLUMN_WORDS = 5


@inlined
def code_at(packing: int, row: int, column: int) -> int:
    """The code of a column of a packed row."""
    place = packing + 8 * COLUMN_WORDS * column
    word = load(row, load(place, WORD))
    mask = load(place, MASK)
    if mask == -1:
        return word
    word = shift_right(word, load(place, SHIFT)) & mask
    if word == 0 and load(place, NULLABLE) != 0:
        return NULL
    return word + load(place, BASE)


@jit
def unpack(packing: int, columns: int, row: int, out: int) -> None:
    """Write the codes of the first columns of a packed row to ``out``."""
    for i in range(columns):
        store(out, i, code_at(packing, row, i))


@jit
def pack(packing: int, columns: int, batch: int, start: int, n: int, rows: int, width: int) -> int:
    """Pack ``n`` rows of a batch, from ``start`` on, into rows of ``width`` words; returns 0 if a code does not fit.

    ``batch`` has the address of each of the first columns, and its stride in words.

    A column holds ``code - base`` in the bits of ``mask`` above ``shift``; if nullable, 0 is NULL. The first column of
    a word has the shift 0. A column with a word of its own has the mask -1 and the base 0, and NULL is stored as its
    code.
    """
    misfits = 0
    for i in range(columns):
        place = packing + 8 * COLUMN_WORDS * i
        mask = load(place, MASK)
        column = load(batch, 2 * i)
        step = load(batch, 2 * i + 1)
        out = rows + 8 * load(place, WORD)
        if mask == -1:
            for r in range(n):
                store(out, r * width, load(column, (start + r) * step))
        else:
            shift = load(place, SHIFT)
            base = load(place, BASE)
            nullable = load(place, NULLABLE)
            for r in range(n):
                code = load(column, (start + r) * step)
                part = code - base
                if nullable != 0:
                    if code == NULL:
                        part = 0
                    elif part == 0:
                        misfits = -1
                misfits |= part & ~mask
                store(out, r * width, part if shift == 0 else load(out, r * width) | part << shift)
    return 1 if misfits == 0 else 0
