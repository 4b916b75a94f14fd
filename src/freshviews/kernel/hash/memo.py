"""Sums that a join remembers: a table of so many places, in which a new sum takes the place of an old one.

The sum over the variables below a point of a join depends on those above that share an atom with them. Where that is
a part of what is bound, equal sums come again and again; each is looked up by the variables it depends on (Kalinsky,
Etsion, Kimelfeld, Flexible Caching in Trie Joins, EDBT 2017). An entry is ``taken, key ..., sum ...``, at a place by
the hash of its key.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import allocate, hash_key, inlined, jit, key_equals, load, release, store, write_key

PLACES = 1 << 16


@jit
def new_memo(words: int) -> int:
    """A memo of entries with so many words of key and sum; 0 where memory is out."""
    memo = allocate(PLACES * (words + 1))
    return memo


@inlined
def memo_place(memo: int, key: tuple[int, ...], words: int) -> int:
    """The address of the entry that a key has or would have."""
    return memo + 8 * (words + 1) * (hash_key(key) & (PLACES - 1))


@inlined
def has_sum(entry: int, key: tuple[int, ...]) -> bool:
    """Whether the entry is the key's."""
    return load(entry, 0) != 0 and key_equals(entry + 8, key)


@inlined
def enter_sum(entry: int, key: tuple[int, ...]) -> None:
    """Make the entry the key's; the words of the sum follow the key."""
    store(entry, 0, 1)
    write_key(entry + 8, key)


@jit
def free_memo(memo: int) -> None:
    """Give the memory back; 0, no memo, is allowed."""
    release(memo)
