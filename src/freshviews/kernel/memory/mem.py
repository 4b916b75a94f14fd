"""Load and store words by address; the compiler of kernels.

Engine state is malloc'ed and addressed by int64: tables grow inside compiled code, a call passes one integer, and
nothing is reference-counted on the hot path. Each primitive has two bodies: Python over ctypes, and machine code for
Numba. With ``FRESHVIEWS_PURE_PYTHON=1`` set before the first import, ``jit`` is the identity; kernels and generated
code then run as plain Python over the same memory.

Addresses count bytes. ``load(a, i)`` and ``store(a, i, v)`` count ``i`` in 8-byte words, ``load32`` and ``store32`` in
4-byte half words. Nothing is checked: a wrong address crashes the process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from freshviews.kernel.beside import called_first
from freshviews.kernel.cache import VersionedCache

PURE_PYTHON = os.environ.get("FRESHVIEWS_PURE_PYTHON") == "1"

F = TypeVar("F", bound=Callable[..., Any])

_WORD = ir.IntType(64)
_HALF = ir.IntType(32)
_FLOAT = ir.DoubleType()
_MASK = 2**64 - 1
_MIX = 0x9E3779B97F4A7C15

_libc = ctypes.CDLL(None)
_libc.calloc.restype = ctypes.c_void_p
_libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.realloc.restype = ctypes.c_void_p
_libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


def jit(function: F) -> F:
    """Compile a kernel with Numba, cached on disk; in plain-Python mode, return it unchanged."""
    # Explicit, because a function compiled on behalf of an inlined one would inherit its flag.
    made: F = compiled(function, forceinline=False)
    return made


def inlined(function: F) -> F:
    """As ``jit``, and LLVM must inline it: for the small functions of the hottest paths."""
    made: F = compiled(function, forceinline=True)
    return made


def compiled(function: F, *, forceinline: bool, no_cfunc_wrapper: bool = True) -> Any:
    """The Numba dispatcher of a function, cached on disk; in plain-Python mode, the function."""
    if PURE_PYTHON:
        return function
    made = numba.njit(
        nogil=True, error_model="numpy", no_cfunc_wrapper=no_cfunc_wrapper, forceinline=forceinline
    )(function)
    made._cache = VersionedCache(function)
    made._compile_for_args = partial(called_first, made, made._compile_for_args)
    return made


def called(function: F) -> F:
    """As ``jit``, for functions that compiled code calls by address: see ``entry_of`` and ``call_pair``."""
    made: F = compiled(function, forceinline=False, no_cfunc_wrapper=False)
    return made


def signed(value: int) -> int:
    """The int64 with the low 64 bits of a Python int."""
    value &= _MASK
    return value - 2**64 if value >> 63 else value


def primitive(function: Callable[..., Any], result: Any, lowering: Callable[..., Any], *kinds: Any) -> None:
    """Give a Python function a machine-code body: ``lowering(builder, *llvm arguments)``.

    ``kinds`` are the Numba types of the arguments, ``result`` is that of the result.
    """

    def typer(*args: Any) -> Any:
        return result if len(args) == len(kinds) else None

    # Numba reads the arity off the signature.
    names = ", ".join(f"a{i}" for i in range(len(kinds)))
    scope: dict[str, Any] = {"typer": typer}
    exec(f"def arity({names}): return typer({names})", scope)
    type_callable(function)(lambda context: scope["arity"])

    abstract = [types.Float if kind is types.float64 else types.Integer for kind in kinds]

    @lower_builtin(function, *abstract)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        cast = [
            context.cast(builder, arg, given, wanted)
            for arg, given, wanted in zip(args, sig.args, kinds, strict=True)
        ]
        value = lowering(builder, *cast)
        return context.get_dummy_value() if value is None else value


def _at(builder: Any, address: Any, index: Any, kind: Any) -> Any:
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def load(address: int, index: int) -> int:
    """The word at ``address + 8 * index``."""
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
    """Which of eight half words at an address equal the low half of a word: bit i of the result is number i."""
    return sum((ctypes.c_uint32.from_address(address + 4 * i).value == word & 0xFFFFFFFF) << i for i in range(8))


def load8(address: int, index: int) -> int:
    """The unsigned byte at ``address + index``."""
    return ctypes.c_uint8.from_address(address + index).value


primitive(
    load, types.int64, lambda b, a, i: b.load(_at(b, a, i, _WORD)), types.int64, types.int64
)
primitive(
    store,
    types.none,
    lambda b, a, i, v: b.store(v, _at(b, a, i, _WORD)) and None,
    types.int64,
    types.int64,
    types.int64,
)
primitive(
    load32,
    types.int64,
    lambda b, a, i: b.sext(b.load(_at(b, a, i, _HALF)), _WORD),
    types.int64,
    types.int64,
)


def _lower_same8(builder: Any, address: Any, word: Any) -> Any:
    kind = ir.VectorType(_HALF, 8)
    there = builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)
    wanted = ir.Constant(kind, ir.Undefined)
    for i in range(8):
        wanted = builder.insert_element(wanted, builder.trunc(word, _HALF), ir.Constant(_HALF, i))
    return builder.zext(builder.bitcast(builder.icmp_unsigned("==", there, wanted), ir.IntType(8)), _WORD)


primitive(same8, types.int64, _lower_same8, types.int64, types.int64)
primitive(
    store32,
    types.none,
    lambda b, a, i, v: b.store(b.trunc(v, _HALF), _at(b, a, i, _HALF)) and None,
    types.int64,
    types.int64,
    types.int64,
)
primitive(
    load8,
    types.int64,
    lambda b, a, i: b.zext(b.load(_at(b, a, i, ir.IntType(8))), _WORD),
    types.int64,
    types.int64,
)


def prefetch(address: int) -> None:
    """Ask the processor to fetch the memory at an address. Any address is allowed."""


def _lower_prefetch(builder: Any, address: Any) -> None:
    half, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, half, half, half])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # For reading, kept in all caches, data.
    builder.call(function, [builder.inttoptr(address, pointer), *(ir.Constant(half, n) for n in (0, 3, 1))])


primitive(prefetch, types.none, _lower_prefetch, types.int64)


def f64(word: int) -> float:
    """The float64 whose bits are the word."""
    value: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return value


def bits(value: float) -> int:
    """The bits of a float64 as a word. They are not a code yet: see ``scalar.code``."""
    word: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return word


primitive(f64, types.float64, lambda b, w: b.bitcast(w, _FLOAT), types.int64)
primitive(bits, types.int64, lambda b, x: b.bitcast(x, _WORD), types.float64)


def allocate(words: int) -> int:
    """Address of that many zeroed words; 0 without memory."""
    return int(_libc.calloc(max(words, 1), 8) or 0)


def reallocate(address: int, words: int) -> int:
    """The block resized to that many words, new words not zeroed. Returns 0 without memory; the block stays then."""
    return int(_libc.realloc(address, max(words, 1) * 8) or 0)


def release(address: int) -> None:
    """Free a block; address 0 is allowed."""
    _libc.free(address)


def _extern(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


primitive(
    allocate, types.int64, lambda b, n: _extern(b, "calloc", _WORD, n, ir.Constant(_WORD, 8)), types.int64
)
primitive(
    reallocate,
    types.int64,
    lambda b, a, n: _extern(b, "realloc", _WORD, a, b.mul(n, ir.Constant(_WORD, 8))),
    types.int64,
    types.int64,
)
primitive(release, types.none, lambda b, a: _extern(b, "free", ir.VoidType(), a) and None, types.int64)


def copy_words(target: int, source: int, words: int) -> None:
    """Copy words between blocks that do not overlap."""
    ctypes.memmove(target, source, 8 * words)


primitive(
    copy_words,
    types.none,
    lambda b, t, s, n: _extern(b, "memcpy", _WORD, t, s, b.mul(n, ir.Constant(_WORD, 8))) and None,
    types.int64,
    types.int64,
    types.int64,
)


def move_words(target: int, source: int, words: int) -> None:
    """Copy words between blocks that may overlap."""
    ctypes.memmove(target, source, 8 * words)


primitive(
    move_words,
    types.none,
    lambda b, t, s, n: _extern(b, "memmove", _WORD, t, s, b.mul(n, ir.Constant(_WORD, 8))) and None,
    types.int64,
    types.int64,
    types.int64,
)


def call_pair(function: int, a: int, b: int) -> int:
    """Call the C function at an address, of two words to a word."""
    return int(_PAIR(function)(a, b))


_PAIR = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_entries: dict[Any, Any] = {}


def entry_of(function: Any) -> int:
    """Address of the C function of a kernel marked ``called``, compiled for its one signature.

    In plain-Python mode the kernel has two arguments.
    """
    if PURE_PYTHON:
        entry = _entries.setdefault(function, _PAIR(function))
        return ctypes.cast(entry, ctypes.c_void_p).value or 0
    (overload,) = function.overloads.values()
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_cfunc_wrapper_name))


def _lower_call_pair(builder: Any, function: Any, a: Any, b: Any) -> Any:
    kind = ir.FunctionType(_WORD, [_WORD, _WORD])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [a, b])


primitive(call_pair, types.int64, _lower_call_pair, types.int64, types.int64, types.int64)


def add_wrapping(a: int, b: int) -> int:
    """a + b modulo 2^64."""
    return signed(a + b)


def mul_wrapping(a: int, b: int) -> int:
    """a * b modulo 2^64."""
    return signed(a * b)


def shift_right(a: int, n: int) -> int:
    """Logical shift to the right."""
    return signed((a & _MASK) >> n)


primitive(add_wrapping, types.int64, lambda b, x, y: b.add(x, y), types.int64, types.int64)
primitive(mul_wrapping, types.int64, lambda b, x, y: b.mul(x, y), types.int64, types.int64)
primitive(shift_right, types.int64, lambda b, x, n: b.lshr(x, n), types.int64, types.int64)


def _overflowing(operation: str) -> Callable[[Any, Any, Any], Any]:
    def lowering(builder: Any, x: Any, y: Any) -> Any:
        kind = ir.FunctionType(ir.LiteralStructType([_WORD, ir.IntType(1)]), [_WORD, _WORD])
        function = cgutils.get_or_insert_function(
            builder.module, kind, f"llvm.{operation}.with.overflow.i64"
        )
        flag = builder.extract_value(builder.call(function, [x, y]), 1)
        return builder.zext(flag, _WORD)

    return lowering


def add_overflows(a: int, b: int) -> int:
    """1 if a + b does not fit int64, else 0."""
    return int(not -(2**63) <= a + b < 2**63)


def mul_overflows(a: int, b: int) -> int:
    """1 if a * b does not fit int64, else 0."""
    return int(not -(2**63) <= a * b < 2**63)


primitive(add_overflows, types.int64, _overflowing("sadd"), types.int64, types.int64)
primitive(mul_overflows, types.int64, _overflowing("smul"), types.int64, types.int64)


def mix(state: int, word: int) -> int:
    """One step of the hash: multiply by the golden ratio, fold the high half onto the low one."""
    folded = (state ^ word) & _MASK
    product = ((folded ^ (folded >> 32)) * _MIX) & _MASK
    return signed(product ^ (product >> 32))


def _lower_mix(builder: Any, state: Any, word: Any) -> Any:
    half = ir.Constant(_WORD, 32)
    folded = builder.xor(state, word)
    product = builder.mul(builder.xor(folded, builder.lshr(folded, half)), ir.Constant(_WORD, _MIX))
    return builder.xor(product, builder.lshr(product, half))


primitive(mix, types.int64, _lower_mix, types.int64, types.int64)


# Keys are tuples of words. Numba unrolls the three operations on them to the length of the tuple.


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


def _words_of(context: Any, builder: Any, kind: Any, key: Any) -> list[Any]:
    return [
        context.cast(builder, builder.extract_value(key, i), element, types.int64)
        for i, element in enumerate(kind.types)
    ]


@type_callable(hash_key)
def _type_hash_key(context: Any) -> Any:
    return lambda key: types.int64 if isinstance(key, types.BaseTuple) else None


@lower_builtin(hash_key, types.BaseTuple)
def _lower_hash_key(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    state = ir.Constant(_WORD, 0)
    for word in _words_of(context, builder, sig.args[0], args[0]):
        state = _lower_mix(builder, state, word)
    return builder.and_(state, ir.Constant(_WORD, 0xFFFFFFFF))


@type_callable(key_equals)
def _type_key_equals(context: Any) -> Any:
    return lambda address, key: types.boolean if isinstance(key, types.BaseTuple) else None


@lower_builtin(key_equals, types.Integer, types.BaseTuple)
def _lower_key_equals(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = context.cast(builder, args[0], sig.args[0], types.int64)
    same = ir.Constant(ir.IntType(1), 1)
    for i, word in enumerate(_words_of(context, builder, sig.args[1], args[1])):
        stored = builder.load(_at(builder, address, ir.Constant(_WORD, i), _WORD))
        same = builder.and_(same, builder.icmp_signed("==", stored, word))
    return same


@type_callable(write_key)
def _type_write_key(context: Any) -> Any:
    return lambda address, key: types.none if isinstance(key, types.BaseTuple) else None


@lower_builtin(write_key, types.Integer, types.BaseTuple)
def _lower_write_key(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = context.cast(builder, args[0], sig.args[0], types.int64)
    for i, word in enumerate(_words_of(context, builder, sig.args[1], args[1])):
        builder.store(word, _at(builder, address, ir.Constant(_WORD, i), _WORD))
    return context.get_dummy_value()
