"""Maps a 32-bit hash to the number of an entry, which is a row of a table or a group of an index.

A slot is one word, ``hash << 32 | number + 1``. An empty slot is 0. A search goes from slot to slot until an empty one
(open addressing, linear probing).
"""

from __future__ import annotations

from freshviews.kernel.memory.mapping import release_block
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, mix, shift_right, store


@jit
def hash_words(address: int, words: int) -> int:
    """The 32-bit hash of a key in memory; equals ``mem.hash_key`` of the same words.

    A slot is one word, ``hash << 32 | number + 1``, and 0 if empty. The number of slots is a power of two, and ``mask``
    is that number minus 1. A search starts at slot ``hash & mask`` and ends at an empty slot. A slot contains the hash.
    So the array grows without reading rows or groups, and most searches for an absent key read none. A deletion leaves
    no tombstone: it shifts later slots back.
    """
    state = 0
    for i in range(words):
        state = mix(state, load(address, i))
    return state & 0xFFFFFFFF


@inlined
def first_with(slots: int, mask: int, h: int) -> int:
    """The first number with a hash, or -1."""
    i = h & mask
    slot = load(slots, i)
    while slot != 0 and shift_right(slot, 32) != h:
        i = (i + 1) & mask
        slot = load(slots, i)
    return (slot & 0xFFFFFFFF) - 1


@jit
def fill_slot(slots: int, mask: int, h: int, number: int) -> None:
    """Write a number into the first empty slot of its hash."""
    i = h & mask
    while load(slots, i) != 0:
        i = (i + 1) & mask
    store(slots, i, h << 32 | (number + 1))


@jit
def empty_slot(slots: int, mask: int, h: int, number: int) -> None:
    """Remove the slot of a number, and shift back the slots that a search would no longer reach.

    No branch depends on whether a slot is shifted, because it is unpredictable.
    """
    hole = h & mask
    while load(slots, hole) & 0xFFFFFFFF != number + 1:
        hole = (hole + 1) & mask
    i = hole
    while True:
        i = (i + 1) & mask
        slot = load(slots, i)
        if slot == 0:
            break
        home = shift_right(slot, 32) & mask
        # All bits set if the slot stays, because its home is nearer than the hole; 0 if it is shifted.
        stays = (((i - home) & mask) - ((i - hole) & mask)) >> 63
        store(slots, hole, (slot & ~stays) | (load(slots, hole) & stays))
        hole = (i & ~stays) | (hole & stays)
    store(slots, hole, 0)


@jit
def widen_slots(slots: int, mask: int, wider: int, low: int, high: int) -> int:
    """Replace slots by more with the same content; returns their address, or 0 without memory: nothing changes.

    ``wider`` is the mask of the new ones. ``low`` and ``high`` bound the mapping that the old slots may lie in (see
    ``memory.mapping``).
    """
    widened = allocate(wider + 1)
    if widened == 0:
        return 0
    for i in range(mask + 1):
        slot = load(slots, i)
        if slot != 0:
            j = shift_right(slot, 32) & wider
            while load(widened, j) != 0:
                j = (j + 1) & wider
            store(widened, j, slot)
    release_block(slots, low, high)
    return widened
