"""Adds strings to a dictionary, frees strings, and releases the memory of freed strings in bounded steps.

``string_slots`` describes the memory of a dictionary. Only one thread at a time may change a dictionary.
"""

from __future__ import annotations

from freshviews.kernel.codes.ingest import BUFFERS, LENGTH, OFFSET, call_release, text_at
from freshviews.kernel.codes.string_slots import (
    CODES,
    DEAD,
    END,
    FILLED,
    FIRST_OWN,
    FREE,
    GONE,
    HEAP,
    HOLE,
    LIVE,
    LOW_40,
    PLACE,
    PLACES,
    SLOT_COUNT,
    SLOTS,
    UNKNOWN,
    code_with,
    hash_text,
    head_of,
    home_of,
    place_of,
    slot_at,
    text_of,
    word_at,
)
from freshviews.kernel.codes.texts import is_text
from freshviews.kernel.memory.mem import (
    allocate,
    copy_bytes,
    inlined,
    jit,
    load,
    load8,
    load32,
    prefetch,
    put_word,
    reallocate,
    release,
    store,
    store32,
)
from freshviews.types.sqltype import NULL

# Words of the block, after those of ``string_slots``.
FREE_CODES = FIRST_OWN  # number of free codes
LOWEST = FIRST_OWN + 1  # no code below it is free
HEAP_ROOM = FIRST_OWN + 2  # words of the heap
TOUCHED = FIRST_OWN + 3  # bytes of the heap that have been written since it was cut
PLACES_ROOM = FIRST_OWN + 4  # words of the places
NEXT = FIRST_OWN + 5  # address of the slots that are being written, or 0
NEXT_COUNT = FIRST_OWN + 6
NEXT_FILLED = FIRST_OWN + 7
CURSOR = FIRST_OWN + 8
OLD = FIRST_OWN + 9  # address of slots that are being released, or 0
OLD_ROOM = FIRST_OWN + 10  # their number of words
PACKING = FIRST_OWN + 11
READ = FIRST_OWN + 12
WRITE = FIRST_OWN + 13
BLOCK_WORDS = FIRST_OWN + 14

OUT_OF_MEMORY = -2
NEW = -4
"""Marks an added string: its result is NEW minus the code."""
INVALID = -3
"""A string is not valid UTF-8."""

FIRST_SLOTS = 64
FIRST_WORDS = 64
LARGE = 1 << 22
"""Least words of a block that grows by a sixteenth; smaller blocks grow by a quarter."""
PIECE = 1 << 20
"""Words that are cut off at a time."""
LOOKED_AT = 1 << 12
"""Most codes that are searched for a free one, per added string."""
TOGETHER = 32
"""Codes whose slots are prefetched together."""
HEAD = 10
"""Maximum number of bytes before a string."""
LAST_CODE = 2**32 - 3
LEAST_PACKED = 1 << 12
"""Size of the heap in bytes up to which it is not packed."""


def new_strings() -> int:
    """Address of a block without strings; 0 without memory."""
    block = allocate(BLOCK_WORDS)
    slots, places, heap = allocate(slot_words(FIRST_SLOTS)), allocate(FIRST_WORDS), allocate(FIRST_WORDS)
    if 0 in (block, slots, places, heap):
        for address in (block, slots, places, heap):
            release(address)
        return 0
    store(block, SLOTS, slots)
    store(block, SLOT_COUNT, FIRST_SLOTS)
    store(block, PLACES, places)
    store(block, PLACES_ROOM, FIRST_WORDS)
    store(block, HEAP, heap)
    store(block, HEAP_ROOM, FIRST_WORDS)
    return block


def free_strings(block: int) -> None:
    """Release all memory of a block."""
    for word in (SLOTS, PLACES, HEAP, NEXT, OLD):
        release(load(block, word))
    release(block)


def strings_bytes(block: int) -> int:
    """Bytes of a block and of all its arrays, without room that was never written."""
    slots = slot_words(load(block, SLOT_COUNT)) + load(block, OLD_ROOM)
    if load(block, NEXT) != 0:
        slots += slot_words(load(block, NEXT_COUNT))
    heap = min(8 * load(block, HEAP_ROOM), load(block, TOUCHED))
    return 8 * (BLOCK_WORDS + slots + load(block, PLACES_ROOM)) + heap


@inlined
def slot_words(count: int) -> int:
    """Words of ``count`` slots, with the three bytes behind them."""
    return (PLACE * count + 3 + 7) >> 3


@inlined
def wider(words: int, room: int) -> int:
    """The new size of a block of ``room`` words that needs ``words``."""
    return max(words, room + (room >> 4 if room >= LARGE else room >> 2) + 8)


@inlined
def put_place(block: int, code: int, place: int) -> None:
    """Write the place of a code."""
    at = load(block, PLACES) + PLACE * code
    put_word(at, (word_at(at) & ~LOW_40) | place)


@inlined
def put_slot(slots: int, i: int, slot: int) -> None:
    """Write a slot."""
    at = slots + PLACE * i
    put_word(at, (word_at(at) & ~LOW_40) | slot)


@inlined
def enter_slot(slots: int, count: int, h: int, code: int) -> int:
    """Write a code into the first free slot of its hash; 1 if the slot was empty, 0 if its code was removed."""
    i = home_of(h, count)
    slot = slot_at(slots, i)
    while slot != 0 and slot != GONE:
        i += 1
        if i == count:
            i = 0
        slot = slot_at(slots, i)
    put_slot(slots, i, (h & 0xFF) << 32 | (code + 1))
    return 1 if slot == 0 else 0


@inlined
def leave_slot(slots: int, count: int, h: int, code: int) -> int:
    """Remove the slot of a code; 1 if it is empty now, 0 if a search must continue behind it."""
    i = home_of(h, count)
    while slot_at(slots, i) & 0xFFFFFFFF != code + 1:
        i += 1
        if i == count:
            i = 0
    emptied = slot_at(slots, i + 1 if i + 1 < count else 0) == 0
    put_slot(slots, i, 0 if emptied else GONE)
    return 1 if emptied else 0


@inlined
def hash_of(block: int, code: int) -> int:
    """The hash of the string of a code that is not free."""
    text, size = text_of(block, code)
    return hash_text(text, size)


@jit
def cut_old(block: int) -> None:
    """Release a piece of the slots that were replaced."""
    room = load(block, OLD_ROOM)
    if room > PIECE:
        cut = reallocate(load(block, OLD), room - PIECE)
        if cut != 0:
            store(block, OLD, cut)
            store(block, OLD_ROOM, room - PIECE)
            return
    release(load(block, OLD))
    store(block, OLD, 0)
    store(block, OLD_ROOM, 0)


@jit
def begin_slots(block: int) -> int:
    """Begin to write new slots, for twice the present strings; 0 without memory, and then nothing changes."""
    release(load(block, NEXT))
    store(block, NEXT, 0)
    count = 2 * load(block, LIVE) + FIRST_SLOTS
    slots = allocate(slot_words(count))
    if slots == 0:
        return 0
    store(block, NEXT, slots)
    store(block, NEXT_COUNT, count)
    store(block, NEXT_FILLED, 0)
    store(block, CURSOR, 0)
    return 1


@jit
def write_slots(block: int, n: int) -> None:
    """Write the next ``n`` codes into the new slots, and use these once they have all codes.

    A new array of *slots* (``NEXT``) is written in small steps. While strings are added, a few codes at a time are
    written to it, in rising order; codes below ``CURSOR`` are in it. Searches read the old slots until the new ones are
    complete. A larger array is begun when 23/32 of the slots are filled, a smaller array when less than a quarter are.
    """
    slots = load(block, NEXT)
    count = load(block, NEXT_COUNT)
    first = load(block, CURSOR)
    codes = load(block, CODES)
    end = min(first + n, codes)
    filled = load(block, NEXT_FILLED)
    while first < end:
        if 8 * (filled + TOGETHER) > 7 * count:
            begin_slots(block)
            return
        last = min(first + TOGETHER, end)
        for code in range(first, last):
            if place_of(block, code) < HOLE:
                prefetch(slots + PLACE * home_of(hash_of(block, code), count))
        for code in range(first, last):
            if place_of(block, code) < HOLE:
                filled += enter_slot(slots, count, hash_of(block, code), code)
        first = last
    store(block, NEXT_FILLED, filled)
    store(block, CURSOR, first)
    if first < codes:
        return
    while load(block, OLD) != 0:
        cut_old(block)
    store(block, OLD, load(block, SLOTS))
    store(block, OLD_ROOM, slot_words(load(block, SLOT_COUNT)))
    store(block, SLOTS, slots)
    store(block, SLOT_COUNT, count)
    store(block, FILLED, filled)
    store(block, NEXT, 0)
    cut_old(block)


@inlined
def make_slot(block: int) -> int:
    """Ensure an empty slot, and begin to write more slots in time; 0 without memory."""
    count = load(block, SLOT_COUNT)
    if load(block, OLD) != 0 and load(block, LIVE) & 63 == 0:
        cut_old(block)
    if load(block, NEXT) == 0:
        if 32 * load(block, FILLED) < 23 * count or begin_slots(block) != 0:
            return 1
        return 1 if 16 * load(block, FILLED) < 15 * count else 0
    if 8 * (load(block, NEXT_FILLED) + TOGETHER) > 7 * load(block, NEXT_COUNT) and begin_slots(block) == 0:
        return 1 if 16 * load(block, FILLED) < 15 * count else 0
    # The new slots are complete before an eighth more is filled. Several codes together wait for memory once.
    if 16 * load(block, FILLED) >= 15 * count:
        write_slots(block, load(block, CODES))
    elif load(block, LIVE) & 7 == 0 or count < 1024:
        write_slots(block, 8 + 64 * load(block, CODES) // count)
    return 1


@inlined
def _have_words(block: int, array: int, room: int, words: int) -> int:
    """Grow an array to ``words`` words or more; 0 without memory. ``array`` and ``room`` are the words of the block
    with its address and its size."""
    if words > load(block, room):
        more = wider(words, load(block, room))
        made = reallocate(load(block, array), more)
        if made == 0:
            return 0
        store(block, array, made)
        store(block, room, more)
    return 1


@jit
def make_heap(block: int, more: int) -> int:
    """Make room for ``more`` bytes in the heap; 0 without memory."""
    return _have_words(block, HEAP, HEAP_ROOM, (load(block, END) + more + 7) >> 3)


@jit
def make_places(block: int, codes: int) -> int:
    """Make room for the places of ``codes`` codes; 0 without memory."""
    return _have_words(block, PLACES, PLACES_ROOM, slot_words(codes))


@jit
def free_code(block: int) -> int:
    """A free code, or UNKNOWN if a short search finds none."""
    if load(block, FREE_CODES) == 0:
        return UNKNOWN
    code = load(block, LOWEST)
    end = min(code + LOOKED_AT, load(block, CODES))
    while code < end and place_of(block, code) != FREE:
        code += 1
    store(block, LOWEST, code)
    return code if code < end else UNKNOWN


@inlined
def write_head(at: int, number: int) -> int:
    """Write a number to the head of a record; returns the address where its bytes begin."""
    while number >= 128:
        put_word(at, (word_at(at) & ~0xFF) | 128 | (number & 127))
        number >>= 7
        at += 1
    put_word(at, (word_at(at) & ~0xFF) | number)
    return at + 1


@jit
def add_text(block: int, h: int, text: int, size: int, last: int) -> int:
    """Add a new string with the hash ``h``; returns its code, or OUT_OF_MEMORY. If ``last`` is 1, no free code is used.
    """
    # Heads are written as whole words.
    if make_heap(block, HEAD + size + 8) == 0 or make_slot(block) == 0:
        return OUT_OF_MEMORY
    code = UNKNOWN if last != 0 else free_code(block)
    if code == UNKNOWN:
        code = load(block, CODES)
        if code > LAST_CODE or make_places(block, code + 1) == 0:
            return OUT_OF_MEMORY
        store(block, CODES, code + 1)
    else:
        store(block, FREE_CODES, load(block, FREE_CODES) - 1)
        store(block, LOWEST, code + 1)
    place = load(block, END)
    at = write_head(load(block, HEAP) + place, size << 1)
    copy_bytes(at, text, size)
    end = at + size - load(block, HEAP)
    store(block, END, end)
    store(block, TOUCHED, max(end, load(block, TOUCHED)))
    put_place(block, code, place)
    store(block, LIVE, load(block, LIVE) + 1)
    store(block, FILLED, load(block, FILLED) + enter_slot(load(block, SLOTS), load(block, SLOT_COUNT), h, code))
    if load(block, NEXT) != 0 and code < load(block, CURSOR):
        entered = enter_slot(load(block, NEXT), load(block, NEXT_COUNT), h, code)
        store(block, NEXT_FILLED, load(block, NEXT_FILLED) + entered)
    return code


@jit
def enter_text(block: int, text: int, size: int) -> int:
    """The code of a string, which is added if it is new; or OUT_OF_MEMORY."""
    h = hash_text(text, size)
    code = code_with(block, h, text, size)
    return code if code != UNKNOWN else add_text(block, h, text, size, 0)


@jit
def enter_column(array: int, kind: int, block: int, codes: int) -> int:
    """Add the strings of an Arrow column whose codes are UNKNOWN, write their codes, and release the column. Returns 0,
    OUT_OF_MEMORY or INVALID.

    ``array`` is its C structure, ``kind`` one of ``ingest``.
    """
    buffers = load(array, BUFFERS)
    offset = load(array, OFFSET)
    n = load(array, LENGTH)
    failed = 0
    first = 0
    while first < n and failed == 0:
        last = min(first + TOGETHER, n)
        for i in range(first, last):
            if load(codes, i) == UNKNOWN:
                text, size = text_at(kind, buffers, offset + i)
                prefetch(load(block, SLOTS) + PLACE * home_of(hash_text(text, size), load(block, SLOT_COUNT)))
        for i in range(first, last):
            if load(codes, i) == UNKNOWN and failed == 0:
                text, size = text_at(kind, buffers, offset + i)
                code = enter_text(block, text, size) if is_text(text, size) else INVALID
                if code < 0:
                    failed = code
                else:
                    store(codes, i, code)
        first = last
    call_release(array)
    return failed


@jit
def enter_texts(block: int, offsets: int, data: int, n: int, out: int) -> int:
    """Write the codes of ``n`` strings to ``out``; a new string is added, and ``NEW - code`` written. Returns 0 or
    OUT_OF_MEMORY. String i is the bytes ``offsets[i]`` to ``offsets[i + 1]`` of ``data``."""
    first = 0
    while first < n:
        last = min(first + TOGETHER, n)
        for i in range(first, last):
            text = data + load(offsets, i)
            h = hash_text(text, load(offsets, i + 1) - load(offsets, i))
            prefetch(load(block, SLOTS) + PLACE * home_of(h, load(block, SLOT_COUNT)))
        for i in range(first, last):
            text = data + load(offsets, i)
            size = load(offsets, i + 1) - load(offsets, i)
            h = hash_text(text, size)
            code = code_with(block, h, text, size)
            if code == UNKNOWN:
                code = add_text(block, h, text, size, 0)
                if code < 0:
                    return OUT_OF_MEMORY
                code = NEW - code
            store(out, i, code)
        first = last
    return 0


@jit
def enter_flat(block: int, offsets: int, data: int, free: int, n: int) -> int:
    """Add ``n`` strings that must be new, after the last code; string i is the bytes ``offsets[i]`` to ``offsets[i +
    1]`` of ``data``. Byte i at ``free`` is not 0 if code i is free and has no string.

    Returns 0, or, with nothing added, OUT_OF_MEMORY, or UNKNOWN if a string is not new.
    """
    first = load(block, CODES)
    failed = 0
    for i in range(n):
        if load8(free, i) != 0:
            code = load(block, CODES)
            if code > LAST_CODE or make_places(block, code + 1) == 0:
                failed = OUT_OF_MEMORY
                break
            store(block, CODES, code + 1)
            put_place(block, code, HOLE)
            continue
        text = data + load(offsets, i)
        size = load(offsets, i + 1) - load(offsets, i)
        h = hash_text(text, size)
        if code_with(block, h, text, size) != UNKNOWN:
            failed = UNKNOWN
            break
        if add_text(block, h, text, size, 1) < 0:
            failed = OUT_OF_MEMORY
            break
    if failed != 0:
        for code in range(first, load(block, CODES)):
            remove_code(block, code)
        while load(block, CODES) > first:
            drop_last(block)
    return failed


@inlined
def remove_code(block: int, code: int) -> int:
    """Free a code; returns 1 if it had a string."""
    place = place_of(block, code)
    if place == FREE:
        return 0
    put_place(block, code, FREE)
    store(block, FREE_CODES, load(block, FREE_CODES) + 1)
    store(block, LOWEST, min(code, load(block, LOWEST)))
    if place == HOLE:
        return 0
    record = load(block, HEAP) + place
    text, number = head_of(record)
    size = number >> 1
    h = hash_text(text, size)
    store(block, FILLED, load(block, FILLED) - leave_slot(load(block, SLOTS), load(block, SLOT_COUNT), h, code))
    if load(block, NEXT) != 0 and code < load(block, CURSOR):
        emptied = leave_slot(load(block, NEXT), load(block, NEXT_COUNT), h, code)
        store(block, NEXT_FILLED, load(block, NEXT_FILLED) - emptied)
    put_word(record, word_at(record) | 1)
    store(block, DEAD, load(block, DEAD) + text + size - record)
    store(block, LIVE, load(block, LIVE) - 1)
    return 1


@jit
def free_codes(block: int, codes: int, n: int) -> int:
    """Free codes; returns the number that had strings."""
    freed = 0
    for first in range(0, n, TOGETHER):
        last = min(first + TOGETHER, n)
        for i in range(first, last):
            code = load(codes, i)
            if place_of(block, code) < HOLE:
                prefetch(load(block, SLOTS) + PLACE * home_of(hash_of(block, code), load(block, SLOT_COUNT)))
        for i in range(first, last):
            freed += remove_code(block, load(codes, i))
    return freed


@jit
def list_unmarked(block: int, marks: int, first: int, end: int, out: int) -> int:
    """Write to ``out`` the codes from ``first`` to before ``end`` that are not free and whose byte at ``marks`` is 0;
    returns their number."""
    found = 0
    for code in range(first, end):
        if load8(marks, code) == 0 and place_of(block, code) != FREE:
            store(out, found, code)
            found += 1
    return found


@inlined
def drop_last(block: int) -> None:
    """Remove the last code, which is free."""
    codes = load(block, CODES) - 1
    store(block, CODES, codes)
    store(block, FREE_CODES, load(block, FREE_CODES) - 1)
    store(block, CURSOR, min(load(block, CURSOR), codes))
    store(block, LOWEST, min(load(block, LOWEST), codes))


@inlined
def slot_of_place(block: int, h: int, place: int) -> int:
    """The code of the string with this hash at this place."""
    slots = load(block, SLOTS)
    count = load(block, SLOT_COUNT)
    tag = h & 0xFF
    i = home_of(h, count)
    while True:
        slot = slot_at(slots, i)
        if slot >> 32 == tag and slot != GONE and slot != 0:
            code = (slot & 0xFFFFFFFF) - 1
            if place_of(block, code) == place:
                return code
        i += 1
        if i == count:
            i = 0


@jit
def pack(block: int, n: int) -> int:
    """Pack ``n`` records, or all that are left; returns the number packed.

    The *heap* is *packed* when a third of it is dead: live records move down, in order. When a record moves, the place
    of its code changes. A record does not hold its code, so the code is found by looking up the string. Below ``WRITE``
    the heap is packed; between ``WRITE`` and ``READ`` it has no live record.
    """
    heap = load(block, HEAP)
    end = load(block, END)
    read = load(block, READ)
    write = load(block, WRITE)
    done = 0
    while done < n and read < end:
        ahead = read
        for _ in range(TOGETHER):
            if ahead < end:
                text, number = head_of(heap + ahead)
                if number & 1 == 0:
                    h = hash_text(text, number >> 1)
                    prefetch(load(block, SLOTS) + PLACE * home_of(h, load(block, SLOT_COUNT)))
                ahead = text + (number >> 1) - heap
        while read < ahead:
            text, number = head_of(heap + read)
            size = text + (number >> 1) - heap - read
            if number & 1 == 0:
                if write < read:
                    code = slot_of_place(block, hash_text(text, number >> 1), read)
                    copy_bytes(heap + write, heap + read, size)
                    put_place(block, code, write)
                write += size
            else:
                store(block, DEAD, load(block, DEAD) - size)
            read += size
            done += 1
    store(block, READ, read)
    store(block, WRITE, write)
    if read == end:
        store(block, END, write)
        store(block, PACKING, 0)
    return done


@jit
def cut(block: int, address: int, room: int, words: int) -> int:
    """Cut a piece off a block that uses ``words``; returns 1 if there was one. Its words: ``address``, ``room``.

    Large blocks grow by only a sixteenth at a time. That is cheap, because ``realloc`` moves their pages without
    copying. They shrink piece by piece, because the system needs time to release each page.
    """
    have = load(block, room)
    keep = max(words + (words >> 4), FIRST_WORDS, have - PIECE)
    # A block that has just grown by a quarter stays.
    if have <= words + (words >> 2) + (words >> 3) + FIRST_WORDS or keep >= have:
        return 0
    made = reallocate(load(block, address), keep)
    if made == 0:
        return 0
    store(block, address, made)
    store(block, room, keep)
    return 1


@jit
def give_back(block: int, n: int) -> int:
    """Release memory in a step of about ``n`` strings; returns the number of visited strings, 0 at the end."""
    if load(block, OLD) != 0:
        cut_old(block)
        return n
    codes = load(block, CODES)
    done = 0
    while done < 16 * n and codes > 0 and place_of(block, codes - 1) == FREE:
        drop_last(block)
        codes -= 1
        done += 1
    if done > 0:
        return (done >> 4) + 1
    if load(block, NEXT) != 0:
        write_slots(block, n)
        return n
    if load(block, SLOT_COUNT) > 4 * load(block, LIVE) + 2 * FIRST_SLOTS and begin_slots(block) != 0:
        return n
    end = load(block, END)
    if load(block, PACKING) == 0 and end > LEAST_PACKED and 3 * load(block, DEAD) > end:
        store(block, PACKING, 1)
        store(block, READ, 0)
        store(block, WRITE, 0)
    if load(block, PACKING) != 0:
        if load(block, LIVE) == 0:
            store(block, PACKING, 0)
            store(block, END, 0)
            store(block, DEAD, 0)
            return n
        return pack(block, n)
    used = (end + HEAD + 15) >> 3
    if cut(block, HEAP, HEAP_ROOM, used) != 0:
        store(block, TOUCHED, min(load(block, TOUCHED), 8 * load(block, HEAP_ROOM)))
        return n
    if cut(block, PLACES, PLACES_ROOM, slot_words(codes)) != 0:
        return n
    return 0


@jit
def copy_text(block: int, code: int, out: int, room: int) -> int:
    """Write the bytes of the string of any code to ``out`` if they have ``room``; returns their number, or -1."""
    if code < 0 or code >= load(block, CODES) or place_of(block, code) >= HOLE:
        return -1
    text, size = text_of(block, code)
    if size <= room:
        copy_bytes(out, text, size)
    return size


@jit
def find_text(block: int, text: int, size: int) -> int:
    """The code of a string, or UNKNOWN."""
    return code_with(block, hash_text(text, size), text, size)


@jit
def sizes_of(block: int, codes: int, stride: int, n: int, offsets: int, start: int) -> int:
    """Write the ends of the strings of ``n`` codes, as half words, the first one beginning at ``start``; returns the
    last end, or OUT_OF_MEMORY if it does not fit a half word. NULL and free codes have no bytes."""
    end = start
    for i in range(n):
        code = load(codes, i * stride)
        if code != NULL and place_of(block, code) < HOLE:
            _, size = text_of(block, code)
            end += size
        if end >= 2**31:
            return OUT_OF_MEMORY
        store32(offsets, i, end)
    return end


@jit
def copy_texts(block: int, codes: int, stride: int, n: int, ends: int, data: int) -> None:
    """Write the bytes of the strings of ``n`` codes, each up to its end as ``sizes_of`` wrote it; the first one begins
    at the half word before ``ends``. A string whose size has changed is left out."""
    for i in range(n):
        code = load(codes, i * stride)
        if code != NULL and place_of(block, code) < HOLE:
            text, size = text_of(block, code)
            at = load32(ends, i - 1)
            if load32(ends, i) - at == size:
                copy_bytes(data + at, text, size)


@jit
def sizes_between(block: int, first: int, n: int, sizes: int) -> None:
    """Write the sizes in bytes of the strings of ``n`` codes from ``first`` on; -1 for a code without a string."""
    for i in range(n):
        size = -1
        if place_of(block, first + i) < HOLE:
            _, size = text_of(block, first + i)
        store(sizes, i, size)


@jit
def copy_between(block: int, first: int, n: int, starts: int, data: int) -> None:
    """Write the strings of ``n`` codes from ``first`` on one after the other to ``data``; the words at ``starts`` are
    the beginnings of all and the end of the last one. A string whose size has changed is left out."""
    for i in range(n):
        if place_of(block, first + i) < HOLE:
            text, size = text_of(block, first + i)
            at = load(starts, i)
            if load(starts, i + 1) - at == size:
                copy_bytes(data + at - load(starts, 0), text, size)
