"""Reads a flat trie for the leapfrog join. A flat trie has sorted rows in arrays, with a level of nodes per column.

The children of node ``p`` are the nodes of the next level from ``children[p]`` up to ``children[p + 1]``.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import inlined, jit, load, release, shift_right
from freshviews.kernel.trie.gallop import gallop

# Words of the header.
DEPTH = 0
CARRIED = 1  # address of the payload of the first row
CARRIED_BYTES = 2  # bytes from one payload to the next; 0 if all are the word 1
JUMPS = 3  # address of the positions where a seek in the first level starts
LEAST = 4  # the least value of the first level
SHIFT = 5  # low bits of (value - LEAST) that the table of jumps ignores
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
    """The first position after ``at`` whose value is not below ``wanted``, or ``end``; the value at ``at`` is below.

    Level ``l`` has a node for each distinct prefix of ``l + 1`` words of the sorted rows. The *values* of a level are
    the last words of these prefixes, in order. The children of node ``p`` are the nodes of the next level from
    ``children[p]`` up to ``children[p + 1]``. A node of the last level is a row, with a copy of its payload. If every
    payload is the single word 1, this word is stored only once.

    The operations of the paper (Veldhuizen, Leapfrog Triejoin, ICDT 2014, sections 3.1 and 4) move positions: *open*
    reads the bounds of the children, *next* adds one, *seek* gallops. A walk of k seeks in rising order over n values
    takes O(k log(n / k)) steps. The first level has a table of jumps by the leading bits of a value: with dense keys, a
    seek there reads one word.

    Positions are local variables of generated code (``codegen.writing.leapfrog_loops``); *up* leaves a loop.
    """
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
    """Release a flat trie; 0 is allowed."""
    if trie == 0:
        return
    for level in range(load(trie, DEPTH)):
        release(level_word(trie, level, VALUES))
        release(level_word(trie, level, CHILDREN))
    release(load(trie, CARRIED))
    release(load(trie, JUMPS))
    release(trie)
