"""Loads and stores words by address. Also defines the decorators ``jit`` and ``inlined``, which make kernels.

Addresses count bytes and are not checked: a wrong address crashes the process.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from freshviews.kernel.machine.beside import called_first
from freshviews.kernel.machine.functions import Function

PURE_PYTHON = os.environ.get("FRESHVIEWS_PURE_PYTHON") == "1"

F = TypeVar("F", bound=Callable[..., Any])

_MASK = 2**64 - 1
MIX = 0x9E3779B97F4A7C15

_libc = ctypes.CDLL(None)
_libc.calloc.restype = ctypes.c_void_p
_libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.realloc.restype = ctypes.c_void_p
_libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


def jit(function: F) -> F:
    """A kernel, compiled and cached on disk; in plain-Python mode, the function unchanged.

    Engine state is malloc'ed and addressed by int64. So compiled code can let tables grow, a call passes one integer
    per structure, and nothing is reference-counted on the hot path. Each primitive has two bodies: Python over ctypes,
    here, and machine code in ``kernel.compiler.primitives``. With ``FRESHVIEWS_PURE_PYTHON=1`` set before the first
    import, kernels and generated code run as plain Python over the same memory.
    """
    return function if PURE_PYTHON else Function(function, called_first)  # type: ignore[return-value]


def inlined(function: F) -> F:
    """As ``jit``, and LLVM must inline it: for the small functions of the hottest paths."""
    return function if PURE_PYTHON else Function(function, called_first, inline=True)  # type: ignore[return-value]


def signed(value: int) -> int:
    """The int64 with the low 64 bits of a Python int."""
    value &= _MASK
    return value - 2**64 if value >> 63 else value


def load(address: int, index: int) -> int:
    """The word at ``address + 8 * index``.

    Addresses count bytes. ``load(a, i)`` and ``store(a, i, v)`` count ``i`` in 8-byte words, ``load32`` and ``store32``
    in 4-byte half words. Nothing is checked: a wrong address crashes the process.
    """
    return ctypes.c_int64.from_address(address + 8 * index).value


def store(address: int, index: int, value: int) -> None:
    """Write a word at ``address + 8 * index``."""
    ctypes.c_int64.from_address(address + 8 * index).value = value


def load32(address: int, index: int) -> int:
    """The signed half word at ``address + 4 * index``."""
    return ctypes.c_int32.from_address(address + 4 * index).value


def store32(address: int, index: int, value: int) -> None:
    """Write a half word at ``address + 4 * index``."""
    ctypes.c_int32.from_address(address + 4 * index).value = value


def same8(address: int, word: int) -> int:
    """Bit i of the result is 1 if half word i of eight at an address equals the low half of a word."""
    return sum((ctypes.c_uint32.from_address(address + 4 * i).value == word & 0xFFFFFFFF) << i for i in range(8))


def load8(address: int, index: int) -> int:
    """The unsigned byte at ``address + index``."""
    return ctypes.c_uint8.from_address(address + index).value


def put_word(address: int, word: int) -> None:
    """Write eight bytes at any address, aligned or not."""
    ctypes.c_int64.from_address(address).value = word


def copy_bytes(target: int, source: int, size: int) -> None:
    """Copy bytes between places that may overlap."""
    ctypes.memmove(target, source, size)


def prefetch(address: int) -> None:
    """Ask the processor to fetch the memory at an address. Any address is allowed."""


def f64(word: int) -> float:
    """The float64 whose bits are the word."""
    value: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return value


def bits(value: float) -> int:
    """The bits of a float64 as a word. They are not a code yet: see ``scalar.code``."""
    word: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return word


def allocate(words: int) -> int:
    """Address of that many zeroed words; 0 without memory."""
    return int(_libc.calloc(max(words, 1), 8) or 0)


def reallocate(address: int, words: int) -> int:
    """The block resized to that many words, new words not zeroed. Returns 0 without memory; the block stays then."""
    return int(_libc.realloc(address, max(words, 1) * 8) or 0)


def release(address: int) -> None:
    """Free a block; address 0 is allowed."""
    _libc.free(address)


def copy_words(target: int, source: int, words: int) -> None:
    """Copy words between blocks that do not overlap."""
    ctypes.memmove(target, source, 8 * words)


def move_words(target: int, source: int, words: int) -> None:
    """Copy words between blocks that may overlap."""
    ctypes.memmove(target, source, 8 * words)


def call_pair(function: int, a: int, b: int) -> int:
    """Call the C function at an address, of two words to a word."""
    return int(_PAIR(function)(a, b))


_PAIR = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def add_wrapping(a: int, b: int) -> int:
    """a + b modulo 2^64."""
    return signed(a + b)


def mul_wrapping(a: int, b: int) -> int:
    """a * b modulo 2^64."""
    return signed(a * b)


def shift_right(a: int, n: int) -> int:
    """Logical shift to the right."""
    return signed((a & _MASK) >> n)


def add_overflows(a: int, b: int) -> int:
    """1 if a + b does not fit int64, else 0."""
    return int(not -(2**63) <= a + b < 2**63)


def mul_overflows(a: int, b: int) -> int:
    """1 if a * b does not fit int64, else 0."""
    return int(not -(2**63) <= a * b < 2**63)


def mul_high(a: int, b: int) -> int:
    """The high word of the product of two unsigned words."""
    return signed((a & _MASK) * (b & _MASK) >> 64)


OR_WORDS = 15
"""Number of words into which ``add_words`` and ``or_magnitudes`` OR their bits. The caller reads their union."""


def add_words(target: int, source: int, words: int, k: int, flags: int) -> None:
    """Add ``k`` times each word at ``source`` to the one at ``target``, modulo 2^64. The products fit a word.

    If a sum does not fit int64, or is the least int64, some of the OR_WORDS words at ``flags`` become nonzero.
    """
    for i in range(words):
        total = load(target, i) + k * load(source, i)
        store(flags, 0, load(flags, 0) | int(not -(2**63) < total < 2**63))
        store(target, i, signed(total))


def or_magnitudes(address: int, words: int, found: int) -> None:
    """OR the magnitudes of words into OR_WORDS words at ``found``. The union u of their bits bounds each word: -1 - u
    <= word <= u."""
    for i in range(words):
        word = load(address, i)
        store(found, 0, load(found, 0) | (word ^ (word >> 63)))


def mix(state: int, word: int) -> int:
    """One step of the hash: multiply by the golden ratio, fold the high half onto the low one."""
    folded = (state ^ word) & _MASK
    product = ((folded ^ (folded >> 32)) * MIX) & _MASK
    return signed(product ^ (product >> 32))


# Keys are tuples of words. The compiler unrolls the three operations on them to the length of the tuple.


def hash_key(key: tuple[int, ...]) -> int:
    """A 32-bit hash of a key, as a number from 0 to 2^32 - 1."""
    state = 0
    for word in key:
        state = mix(state, word)
    return state & 0xFFFFFFFF


def key_equals(address: int, key: tuple[int, ...]) -> bool:
    """Whether the words at the address are the key."""
    return all(load(address, i) == word for i, word in enumerate(key))


def write_key(address: int, key: tuple[int, ...]) -> None:
    """Write the words of a key at the address."""
    for i, word in enumerate(key):
        store(address, i, word)
