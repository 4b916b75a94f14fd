"""Maps files into memory. A page of a file is read when it is first used, and copied when it is first written."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

from freshviews.kernel.memory.mem import allocate, copy_words, inlined, reallocate, release

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

_FAILED = ctypes.c_void_p(-1).value
_WRITABLE = mmap.PROT_READ | mmap.PROT_WRITE
_FIXED = 0x10
# MAP_NORESERVE: reserved room does not count as memory in use before it is written.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def reserve(size: int) -> int:
    """Address of ``size`` zeroed bytes, which take memory only when written. Raises OSError without room."""
    return _map(None, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE, -1, 0)


def map_file(address: int, size: int, file: int, offset: int) -> None:
    """Map a piece of an open file over reserved memory. Raises OSError.

    ``address`` and ``offset`` are multiples of the page size. Writes do not reach the file. The file must not change
    while it is mapped; it may be deleted.
    """
    _map(address, size, mmap.MAP_PRIVATE | _FIXED | _NO_RESERVE, file, offset)


def _map(address: int | None, size: int, flags: int, file: int, offset: int) -> int:
    found = _libc.mmap(address, size, _WRITABLE, flags, file, offset)
    if found == _FAILED or found is None:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(found)


def unmap(address: int, size: int) -> None:
    """Release reserved memory and the files mapped into it."""
    _libc.munmap(address, size)


@inlined
def is_mapped(block: int, low: int, high: int) -> bool:
    """Whether a block belongs to the mapping from ``low`` to ``high``."""
    return low <= block < high


@inlined
def release_block(block: int, low: int, high: int) -> None:
    """Free a block, unless it belongs to the mapping from ``low`` to ``high``; address 0 is allowed.

    The header of a table or index has two words, LOW and HIGH, the bounds of the mapping in which its arrays may lie;
    both are 0 without a mapping. A block between these bounds must not be passed to ``free`` or ``realloc``:
    ``release_block`` and ``widen_block`` check that.
    """
    if not is_mapped(block, low, high):
        release(block)


@inlined
def widen_block(block: int, words: int, wider: int, low: int, high: int) -> int:
    """Resize a block to ``wider`` words, new ones undefined; returns its address, or 0 without memory: the block stays.

    A block inside the mapping from ``low`` to ``high`` is copied: its first ``words`` words.
    """
    if not is_mapped(block, low, high):
        return reallocate(block, wider)
    copied = allocate(wider)
    if copied != 0:
        copy_words(copied, block, words)
    return copied
