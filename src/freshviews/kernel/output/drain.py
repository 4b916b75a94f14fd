"""Small kernels that generated code uses while it fills the output buffer."""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED
from freshviews.kernel.memory.mem import add_wrapping, copy_words, inlined, jit, load, mul_wrapping, store
from freshviews.kernel.output.buffer import COUNT, ROWS, WIDTH, append
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_scaled


@inlined
def drop_equal(buffer: int) -> None:
    """Drop the last two rows if they agree in all words but the last: a row removed and inserted again."""
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
    """From a payload and its change, compute the payload before and after.

    On entry ``payload`` holds the payload now and ``change`` how it changed; on return ``payload`` holds the old one
    and ``change`` the new one. Payloads have ``integers`` integers, modulo 2^64, then reals, ``words`` words in all.
    """
    for word in range(integers):
        store(payload, word, add_wrapping(load(payload, word), mul_wrapping(load(change, word), -1)))
        store(change, word, add_wrapping(load(change, word), load(payload, word)))
    for word in range(integers, words, REAL_WORDS):
        real_add_scaled(payload + 8 * word, change + 8 * word, -1)
        real_add_scaled(change + 8 * word, payload + 8 * word, 1)


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
