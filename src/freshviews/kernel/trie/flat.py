"""A trie over sorted rows, in flat arrays: what a leapfrog join walks.

Level ``l`` of a trie has a node for each distinct prefix of ``l + 1`` words of the sorted rows. Its *values* are the
last words of these prefixes, in order; the nodes below node ``p`` are those from ``children[p]`` to ``children[p + 1]``
of the next level. A node of the last level is a row; what the row carries is copied beside it, or, where every row
carries the one word 1, held once.

The operations of the paper (Veldhuizen, Leapfrog Triejoin, ICDT 2014, sections 3.1 and 4) are moves of positions:
*open* reads two children, *next* adds one, *seek* gallops, so that k seeks that visit m of n values in order take
O(k log(n / k)) steps. The first level has a table of jumps by the leading bits of a value: where keys are dense, a
seek there is one load.

Departure: positions are local variables of generated code (``codegen.writing.leapfrog``), not objects; *up* is
leaving a loop.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import inlined, jit, load, release, shift_right
from freshviews.kernel.trie.gallop import gallop

# Words of the header.
DEPTH = 0
CARRIED = 1  # address of what the first row carries
CARRIED_BYTES = 2  # bytes from one row's to the next one's; 0 where all carry the word 1
JUMPS = 3  # address of the positions from which a value of the first level is sought
LEAST = 4  # the least value of the first level
SHIFT = 5  # bits of (value - LEAST) that a jump leaves out
JUMP_COUNT = 6
FIRST_LEVEL = 8
LEVEL = 3  # words of a level
VALUES = 0  # address of its values
CHILDREN = 1  # address of its children, one more than it has nodes; 0 for the last level
NODES = 2  # its number of nodes


@inlined
def level_word(trie: int, level: int, word: int) -> int:
    """A word of the header about a level."""
    return load(trie, FIRST_LEVEL + LEVEL * level + word)


@inlined
def seek(values: int, at: int, end: int, wanted: int) -> int:
    """The first position after ``at`` with a value of at least ``wanted``, or ``end``; the value at ``at`` is less."""
    return gallop(values, at + 1, end, wanted - 1)


@inlined
def seek_first(trie: int, values: int, at: int, end: int, wanted: int) -> int:
    """As ``seek``, in the first level of a trie."""
    jump = shift_right(wanted - load(trie, LEAST), load(trie, SHIFT))
    if jump < 0 or jump >= load(trie, JUMP_COUNT):
        return end
    place = max(at, load(load(trie, JUMPS), jump))
    if place < end and load(values, place) < wanted:
        return seek(values, place, end, wanted)
    return place


@jit
def free_trie(trie: int) -> None:
    """Give the memory of a trie back; 0, no trie, is allowed."""
    if trie == 0:
        return
    for level in range(load(trie, DEPTH)):
        release(level_word(trie, level, VALUES))
        release(level_word(trie, level, CHILDREN))
    release(load(trie, CARRIED))
    release(load(trie, JUMPS))
    release(trie)
