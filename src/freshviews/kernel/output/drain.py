"""Has the small kernels that generated code calls while it appends rows to the output."""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED
from freshviews.kernel.memory.mem import copy_words, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.output.buffer import COUNT, ROWS, WIDTH, append
from freshviews.kernel.rings.elements import add_elements


@inlined
def drop_equal(buffer: int) -> None:
    """Drop the last two rows if they agree in all words except the last: a row removed and inserted again."""
    n = load(buffer, COUNT)
    width = load(buffer, WIDTH)
    last = load(buffer, ROWS) + 8 * (n - 1) * width
    before = last - 8 * width
    same = True
    for i in range(width - 1):
        if load(last, i) != load(before, i):
            same = False
            break
    if same:
        store(buffer, COUNT, n - 2)


@jit
def take_apart(change: int, payload: int, layout: int) -> None:
    """From a payload and its change, compute the payload before and after.

    On entry ``payload`` has the new payload and ``change`` the change; on return ``payload`` has the old payload and
    ``change`` the new one. ``layout``: as in ``kernel.rings.elements``.
    """
    add_elements(payload, change, layout, -1)
    add_elements(change, payload, layout, 1)


@jit
def clear_words(address: int, words: int) -> None:
    """Set words to zero."""
    for word in range(words):
        store(address, word, 0)


@inlined
def next_update(batch: int, columns: int) -> None:
    """Advance a batch block by one update: each pair of an address and a stride in words moves on."""
    for i in range(columns):
        store(batch, 2 * i, load(batch, 2 * i) + 8 * load(batch, 2 * i + 1))


@outside
def gather_words(target: int, columns: int, words: int, row: int) -> None:
    """Write the words of one row in consecutive columns of a batch block to ``target``."""
    for i in range(words):
        store(target, i, load(load(columns, 2 * i), row * load(columns, 2 * i + 1)))


@jit
def any_failed(state: int, first: int, tables: int) -> int:
    """Whether a table in the state's words from ``first`` on has run out of memory."""
    failed = 0
    for i in range(tables):
        failed |= load(load(state, first + i), FAILED)
    return failed


@jit
def append_rows(buffer: int, rows: int, n: int) -> None:
    """Append ``n`` rows of the buffer's width from an address."""
    words = load(buffer, WIDTH)
    for i in range(n):
        copy_words(append(buffer), rows + 8 * i * words, words)
