"""Small kernels around a program's output buffer."""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED
from freshviews.kernel.memory.mem import add_wrapping, copy_words, inlined, jit, load, mul_wrapping, store
from freshviews.kernel.output.buffer import COUNT, ROWS, WIDTH, append
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_scaled


@inlined
def drop_equal(buffer: int) -> None:
    """Drop the last two rows where they agree in all words but the last: a row taken out and put back."""
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
def take_apart(change: int, payload: int, integers: int, words: int) -> None:
    """Of what a payload is and how it changed, what it was, at ``payload``, and what it is, at ``change``.

    Payloads have so many integers, modulo 2^64, and then reals, ``words`` in all.
    """
    for word in range(integers):
        store(payload, word, add_wrapping(load(payload, word), mul_wrapping(load(change, word), -1)))
        store(change, word, add_wrapping(load(change, word), load(payload, word)))
    for word in range(integers, words, REAL_WORDS):
        real_add_scaled(payload + 8 * word, change + 8 * word, -1)
        real_add_scaled(change + 8 * word, payload + 8 * word, 1)


@jit
def clear_words(address: int, words: int) -> None:
    """Make words zero."""
    for word in range(words):
        store(address, word, 0)


@inlined
def next_update(batch: int, columns: int) -> None:
    """Have a batch block begin one update later: each pair of an address and a stride in words moves on."""
    for i in range(columns):
        store(batch, 2 * i, load(batch, 2 * i) + 8 * load(batch, 2 * i + 1))


@jit
def any_failed(state: int, first: int, tables: int) -> int:
    """Whether one of the tables in the state's words from ``first`` has run out of memory."""
    failed = 0
    for i in range(tables):
        failed |= load(load(state, first + i), FAILED)
    return failed


@jit
def append_rows(buffer: int, rows: int, n: int) -> None:
    """Append ``n`` rows of the buffer's width that lie one after the other at an address."""
    words = load(buffer, WIDTH)
    for i in range(n):
        copy_words(append(buffer), rows + 8 * i * words, words)
