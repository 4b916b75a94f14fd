"""Caches sums for a join, in a table of fixed size.

The hash of a key determines the place of its sum. A new sum replaces whatever sum is there.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import allocate, hash_key, inlined, jit, key_equals, load, release, store, write_key

PLACES = 1 << 16


@jit
def new_memo(words: int) -> int:
    """An empty memo; ``words`` is the size of key and sum together. 0 without memory.

    In the join R(a, b) S(b, c), the sum over c depends only on b. So the join computes the sum when b first occurs, and
    looks it up by b for every later a (Kalinsky, Etsion, Kimelfeld, Flexible Caching in Trie Joins, EDBT 2017). An
    entry is ``taken | key ... | sum ...``, at the position given by the hash of its key.
    """
    memo = allocate(PLACES * (words + 1))
    return memo


@inlined
def memo_place(memo: int, key: tuple[int, ...], words: int) -> int:
    """Address of the entry that a key has or would have; ``words`` as of ``new_memo``."""
    return memo + 8 * (words + 1) * (hash_key(key) & (PLACES - 1))


@inlined
def has_sum(entry: int, key: tuple[int, ...]) -> bool:
    """Whether the entry belongs to the key."""
    return load(entry, 0) != 0 and key_equals(entry + 8, key)


@inlined
def enter_sum(entry: int, key: tuple[int, ...]) -> None:
    """Write a key into an entry; the caller writes the sum after it."""
    store(entry, 0, 1)
    write_key(entry + 8, key)


@jit
def free_memo(memo: int) -> None:
    """Release a memo; 0 is allowed."""
    release(memo)
