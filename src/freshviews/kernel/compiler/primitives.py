"""Writes the machine code of *primitives*.

A primitive is a function of ``kernel`` whose Python body Numba cannot compile, for example because of ctypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from freshviews.kernel.codes.ingest import RELEASE, call_release
from freshviews.kernel.codes.string_slots import half_at, word_at
from freshviews.kernel.machine.functions import Function
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.triggers import call_condition, call_reader, call_trigger
from freshviews.kernel.rings.wide import add_fours, add_pairs, add_products

_WORD = ir.IntType(64)
_HALF = ir.IntType(32)
_BYTE = ir.IntType(8)
_FLOAT = ir.DoubleType()
_LONG = ir.IntType(128)
_POINTER = _BYTE.as_pointer()


_KINDS = {"None": types.none, "float": types.float64}


def primitive(function: Callable[..., Any], lowering: Callable[..., Any]) -> None:
    """Give a Python function of words and doubles a machine-code body: ``lowering(builder, *llvm arguments)``.

    Arguments without an annotation are words.
    """
    body = getattr(function, "body", function)
    names = body.__code__.co_varnames[: body.__code__.co_argcount]
    *kinds, result = (_KINDS.get(body.__annotations__.get(name, "int"), types.int64) for name in (*names, "return"))

    def typer(*args: Any) -> Any:
        return result if len(args) == len(kinds) else None

    # Numba reads the arity off the signature.
    words = ", ".join(f"a{i}" for i in range(len(kinds)))
    scope: dict[str, Any] = {"typer": typer}
    exec(f"def arity({words}): return typer({words})", scope)
    type_callable(function)(lambda context: scope["arity"])

    abstract = [types.Float if kind is types.float64 else types.Integer for kind in kinds]

    @lower_builtin(function, *abstract)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        cast = [
            context.cast(builder, arg, given, wanted)
            for arg, given, wanted in zip(args, sig.args, kinds, strict=True)
        ]
        value = lowering(builder, *cast)
        return context.get_dummy_value() if result is types.none else value


def by_symbol(function: Function, enter: Callable[[], None]) -> None:
    """Make other functions call ``function`` by its symbol. ``enter`` defines the symbol in this process."""

    def lower(builder: Any, *arguments: Any) -> Any:
        enter()
        kind = _own_kind(len(arguments))
        found = cgutils.get_or_insert_function(builder.module, kind, function.symbol)
        return _call_own(builder, found, arguments)

    primitive(function, lower)


def _own_kind(words: int) -> Any:
    """The type of a function of words compiled by Numba: the result, or an exception, is written to an address."""
    return ir.FunctionType(_HALF, [_WORD.as_pointer(), _POINTER.as_pointer(), *[_WORD] * words])


def _call_own(builder: Any, function: Any, words: Any) -> Any:
    with builder.goto_entry_block():
        result = builder.alloca(_WORD)
        error = builder.alloca(_POINTER)
    builder.call(function, [result, error, *words])
    return builder.load(result)


def _lower_entry(builder: Any, entry: Any, *words: Any) -> Any:
    return _call_own(builder, builder.inttoptr(entry, _own_kind(len(words)).as_pointer()), words)


primitive(call_trigger, _lower_entry)
primitive(call_condition, _lower_entry)
primitive(call_reader, _lower_entry)


def _at(builder: Any, address: Any, index: Any, kind: Any) -> Any:
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


primitive(mem.load, lambda b, a, i: b.load(_at(b, a, i, _WORD)))
primitive(mem.store, lambda b, a, i, v: b.store(v, _at(b, a, i, _WORD)))
primitive(mem.load32, lambda b, a, i: b.sext(b.load(_at(b, a, i, _HALF)), _WORD))


def _lower_same8(builder: Any, address: Any, word: Any) -> Any:
    kind = ir.VectorType(_HALF, 8)
    there = builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)
    wanted = ir.Constant(kind, ir.Undefined)
    for i in range(8):
        wanted = builder.insert_element(wanted, builder.trunc(word, _HALF), ir.Constant(_HALF, i))
    return builder.zext(builder.bitcast(builder.icmp_unsigned("==", there, wanted), _BYTE), _WORD)


primitive(mem.same8, _lower_same8)
primitive(mem.store32, lambda b, a, i, v: b.store(b.trunc(v, _HALF), _at(b, a, i, _HALF)))
primitive(mem.load8, lambda b, a, i: b.zext(b.load(_at(b, a, i, _BYTE)), _WORD))


def _lower_prefetch(builder: Any, address: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_POINTER, _HALF, _HALF, _HALF])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # Arguments: read, keep in all caches, data.
    builder.call(function, [builder.inttoptr(address, _POINTER), *(ir.Constant(_HALF, n) for n in (0, 3, 1))])


primitive(mem.prefetch, _lower_prefetch)
primitive(mem.f64, lambda b, w: b.bitcast(w, _FLOAT))
primitive(mem.bits, lambda b, x: b.bitcast(x, _WORD))


def _extern(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


primitive(mem.allocate, lambda b, n: _extern(b, "calloc", _WORD, n, ir.Constant(_WORD, 8)))
primitive(mem.reallocate, lambda b, a, n: _extern(b, "realloc", _WORD, a, b.mul(n, ir.Constant(_WORD, 8))))
primitive(mem.release, lambda b, a: _extern(b, "free", ir.VoidType(), a))
primitive(mem.copy_words, lambda b, t, s, n: _extern(b, "memcpy", _WORD, t, s, b.mul(n, ir.Constant(_WORD, 8))))
primitive(mem.move_words, lambda b, t, s, n: _extern(b, "memmove", _WORD, t, s, b.mul(n, ir.Constant(_WORD, 8))))

primitive(mem.copy_bytes, lambda b, t, s, n: _extern(b, "memmove", _WORD, t, s, n))
primitive(mem.put_word, lambda b, a, w: b.store(w, b.inttoptr(a, _WORD.as_pointer()), align=1))


def _lower_call_pair(builder: Any, function: Any, a: Any, b: Any) -> Any:
    kind = ir.FunctionType(_WORD, [_WORD, _WORD])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [a, b])


primitive(mem.call_pair, _lower_call_pair)
primitive(mem.add_wrapping, lambda b, x, y: b.add(x, y))
primitive(mem.mul_wrapping, lambda b, x, y: b.mul(x, y))
primitive(mem.shift_right, lambda b, x, n: b.lshr(x, n))


def _overflowing(operation: str) -> Callable[[Any, Any, Any], Any]:
    def lowering(builder: Any, x: Any, y: Any) -> Any:
        kind = ir.FunctionType(ir.LiteralStructType([_WORD, ir.IntType(1)]), [_WORD, _WORD])
        function = cgutils.get_or_insert_function(
            builder.module, kind, f"llvm.{operation}.with.overflow.i64"
        )
        flag = builder.extract_value(builder.call(function, [x, y]), 1)
        return builder.zext(flag, _WORD)

    return lowering


primitive(mem.add_overflows, _overflowing("sadd"))
primitive(mem.mul_overflows, _overflowing("smul"))


# Consecutive words are processed eight at a time, and the last ones by four, two and one. A masked access would touch
# the words behind them, and wait for words just stored.

_LANES = 8


def _every_lane(builder: Any, word: Any, lanes: int) -> Any:
    vector = ir.VectorType(_WORD, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), word, ir.Constant(_HALF, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_HALF, lanes), [0] * lanes))


def _lanes_at(builder: Any, address: Any, index: Any, lanes: int) -> Any:
    return builder.bitcast(_at(builder, address, index, _WORD), ir.VectorType(_WORD, lanes).as_pointer())


def _by_lanes(builder: Any, words: Any, of: Callable[[Any, int], None]) -> None:
    """Call ``of(index, lanes)`` for groups of ``lanes`` words, the first with number ``index``."""
    with builder.goto_entry_block():
        place = builder.alloca(_WORD)
    builder.store(ir.Constant(_WORD, 0), place)
    whole = builder.and_(words, ir.Constant(_WORD, -_LANES))
    head, body, end = (builder.append_basic_block(name) for name in ("lanes", "lanes.body", "lanes.end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.load(place)
    builder.cbranch(builder.icmp_signed("<", index, whole), body, end)
    builder.position_at_end(body)
    of(index, _LANES)
    builder.store(builder.add(index, ir.Constant(_WORD, _LANES)), place)
    builder.branch(head)
    builder.position_at_end(end)
    for lanes in (4, 2, 1):
        some = builder.icmp_signed("!=", builder.and_(words, ir.Constant(_WORD, lanes)), ir.Constant(_WORD, 0))
        with builder.if_then(some):
            index = builder.load(place)
            of(index, lanes)
            builder.store(builder.add(index, ir.Constant(_WORD, lanes)), place)


def _or_into(builder: Any, address: Any, value: Any, lanes: int) -> None:
    """OR bits into the words for groups of this size; each size has its own words, so that none waits for another."""
    at = _lanes_at(builder, address, ir.Constant(_WORD, 16 - 2 * lanes), lanes)
    builder.store(builder.or_(builder.load(at, align=8), value), at, align=8)


def _lower_add_words(builder: Any, target: Any, source: Any, words: Any, k: Any, flags: Any) -> None:
    def add(index: Any, lanes: int) -> None:
        vector = ir.VectorType(_WORD, lanes)
        of = builder.load(_lanes_at(builder, source, index, lanes), align=8)
        product = builder.mul(of, _every_lane(builder, k, lanes))
        at = _lanes_at(builder, target, index, lanes)
        before = builder.load(at, align=8)
        total = builder.add(before, product)
        builder.store(total, at, align=8)
        wrapped = builder.and_(builder.xor(before, total), builder.xor(product, total))
        signs = builder.lshr(wrapped, ir.Constant(vector, [63] * lanes))
        least = builder.icmp_signed("==", total, ir.Constant(vector, [mem.signed(1 << 63)] * lanes))
        _or_into(builder, flags, builder.or_(signs, builder.zext(least, vector)), lanes)

    _by_lanes(builder, words, add)


primitive(mem.add_words, _lower_add_words)


def _lower_or_magnitudes(builder: Any, address: Any, words: Any, found: Any) -> None:
    def add(index: Any, lanes: int) -> None:
        word = builder.load(_lanes_at(builder, address, index, lanes), align=8)
        sign = builder.ashr(word, ir.Constant(ir.VectorType(_WORD, lanes), [63] * lanes))
        _or_into(builder, found, builder.xor(word, sign), lanes)

    _by_lanes(builder, words, add)


primitive(mem.or_magnitudes, _lower_or_magnitudes)


def _lower_mix(builder: Any, state: Any, word: Any) -> Any:
    half = ir.Constant(_WORD, 32)
    folded = builder.xor(state, word)
    product = builder.mul(builder.xor(folded, builder.lshr(folded, half)), ir.Constant(_WORD, mem.MIX))
    return builder.xor(product, builder.lshr(product, half))


primitive(mem.mix, _lower_mix)


# Operations on keys are unrolled to the length of the tuple.


def _words_of(context: Any, builder: Any, kind: Any, key: Any) -> list[Any]:
    return [
        context.cast(builder, builder.extract_value(key, i), element, types.int64)
        for i, element in enumerate(kind.types)
    ]


@type_callable(mem.hash_key)
def _type_hash_key(context: Any) -> Any:
    return lambda key: types.int64 if isinstance(key, types.BaseTuple) else None


@lower_builtin(mem.hash_key, types.BaseTuple)
def _lower_hash_key(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    state = ir.Constant(_WORD, 0)
    for word in _words_of(context, builder, sig.args[0], args[0]):
        state = _lower_mix(builder, state, word)
    return builder.and_(state, ir.Constant(_WORD, 0xFFFFFFFF))


@type_callable(mem.key_equals)
def _type_key_equals(context: Any) -> Any:
    return lambda address, key: types.boolean if isinstance(key, types.BaseTuple) else None


@lower_builtin(mem.key_equals, types.Integer, types.BaseTuple)
def _lower_key_equals(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = context.cast(builder, args[0], sig.args[0], types.int64)
    same = ir.Constant(ir.IntType(1), 1)
    for i, word in enumerate(_words_of(context, builder, sig.args[1], args[1])):
        stored = builder.load(_at(builder, address, ir.Constant(_WORD, i), _WORD))
        same = builder.and_(same, builder.icmp_signed("==", stored, word))
    return same


@type_callable(mem.write_key)
def _type_write_key(context: Any) -> Any:
    return lambda address, key: types.none if isinstance(key, types.BaseTuple) else None


@lower_builtin(mem.write_key, types.Integer, types.BaseTuple)
def _lower_write_key(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    address = context.cast(builder, args[0], sig.args[0], types.int64)
    for i, word in enumerate(_words_of(context, builder, sig.args[1], args[1])):
        builder.store(word, _at(builder, address, ir.Constant(_WORD, i), _WORD))
    return context.get_dummy_value()


def _lower_release(builder: Any, array: Any) -> None:
    place = _at(builder, array, ir.Constant(_WORD, RELEASE), _WORD)
    kind = ir.FunctionType(ir.VoidType(), [_WORD])
    builder.call(builder.inttoptr(builder.load(place), kind.as_pointer()), [array])


primitive(call_release, _lower_release)
primitive(word_at, lambda b, a: b.load(b.inttoptr(a, _WORD.as_pointer()), align=1))
primitive(half_at, lambda b, a: b.zext(b.load(b.inttoptr(a, _HALF.as_pointer()), align=1), _WORD))


def _lower_mul_high(builder: Any, a: Any, b: Any) -> Any:
    product = builder.mul(builder.zext(a, _LONG), builder.zext(b, _LONG))
    return builder.trunc(builder.lshr(product, ir.Constant(_LONG, 64)), _WORD)


primitive(mem.mul_high, _lower_mul_high)


# Numbers of several words. LLVM keeps each in registers, and adds words with their carries.


def _integer(words: int) -> Any:
    return ir.IntType(64 * words)


def _number(builder: Any, address: Any, place: Any, words: int) -> tuple[Any, Any]:
    """The address and the value of number ``place`` in a sequence of numbers."""
    at = builder.bitcast(
        _at(builder, address, builder.mul(place, ir.Constant(_WORD, words)), _WORD), _integer(words).as_pointer()
    )
    return at, builder.load(at, align=8)


def _for_each(builder: Any, n: Any, of: Callable[[Any], Any]) -> Any:
    """The OR of the results of ``of`` for 0 to n - 1, as a word."""
    with builder.goto_entry_block():
        place, found = builder.alloca(_WORD), builder.alloca(_WORD)
    for variable in (place, found):
        builder.store(ir.Constant(_WORD, 0), variable)
    head, body, end = (builder.append_basic_block(name) for name in ("numbers", "numbers.body", "numbers.end"))
    builder.branch(head)
    builder.position_at_end(head)
    builder.cbranch(builder.icmp_signed("<", builder.load(place), n), body, end)
    builder.position_at_end(body)
    bits = of(builder.load(place))
    builder.store(builder.or_(builder.load(found), bits), found)
    builder.store(builder.add(builder.load(place), ir.Constant(_WORD, 1)), place)
    builder.branch(head)
    builder.position_at_end(end)
    return builder.load(found)


def _top_bit(builder: Any, number: Any) -> Any:
    """The sign of a number, 0 or 1, as a word."""
    bits = number.type.width
    return builder.trunc(builder.lshr(number, ir.Constant(number.type, bits - 1)), _WORD)


def _word_times(builder: Any, number: Any, i: int, word: Any, kind: Any) -> Any:
    """Word ``i`` of a number times a word, both unsigned, at its place in a number of type ``kind``."""
    digits = builder.trunc(builder.lshr(number, ir.Constant(number.type, 64 * i)), _WORD)
    product = builder.mul(builder.zext(digits, _LONG), builder.zext(word, _LONG))
    wide = builder.zext(product, kind) if kind.width > _LONG.width else product
    return builder.shl(wide, ir.Constant(kind, 64 * i)) if i else wide


def _multiples(words: int) -> Callable[..., Any]:
    kind = _integer(words)

    def lowering(builder: Any, target: Any, source: Any, n: Any, k: Any) -> Any:
        negative = builder.icmp_signed("<", k, ir.Constant(_WORD, 0))
        magnitude = builder.select(negative, builder.neg(k), k)
        many = builder.icmp_signed("!=", magnitude, ir.Constant(_WORD, 1))

        def add(place: Any) -> Any:
            _, number = _number(builder, source, place, words)
            product = _word_times(builder, number, 0, magnitude, kind)
            for i in range(1, words):
                product = builder.add(product, _word_times(builder, number, i, magnitude, kind))
            at, before = _number(builder, target, place, words)
            added, taken = builder.add(before, product), builder.sub(before, product)
            builder.store(builder.select(negative, taken, added), at, align=8)
            wraps = builder.and_(builder.xor(before, added), builder.xor(product, added))
            sinks = builder.and_(builder.xor(before, product), builder.xor(before, taken))
            top = builder.trunc(builder.lshr(number, ir.Constant(kind, 64 * (words - 1))), _WORD)
            size = builder.xor(top, builder.ashr(top, ir.Constant(_WORD, 63)))
            beyond = _overflowing("smul")(builder, builder.add(size, ir.Constant(_WORD, 1)), magnitude)
            over = builder.and_(beyond, builder.zext(many, _WORD))
            return builder.or_(over, _top_bit(builder, builder.select(negative, sinks, wraps)))

        return _for_each(builder, n, add)

    return lowering


primitive(add_pairs, _multiples(2))
primitive(add_fours, _multiples(4))


def _lower_add_products(builder: Any, target: Any, one: Any, others: Any, n: Any) -> Any:
    half, kind = _integer(2), _integer(4)
    _, a = _number(builder, one, ir.Constant(_WORD, 0), 2)
    a_sign = builder.ashr(a, ir.Constant(half, 127))
    low, high = builder.trunc(a, _WORD), builder.trunc(builder.lshr(a, ir.Constant(half, 64)), _WORD)

    def add(place: Any) -> Any:
        _, b = _number(builder, others, place, 2)
        product = _word_times(builder, b, 0, low, kind)
        product = builder.add(product, _word_times(builder, b, 1, low, kind))
        upper = builder.add(
            builder.zext(_word_times(builder, b, 0, high, half), kind), _word_times(builder, b, 1, high, kind)
        )
        product = builder.add(product, builder.shl(upper, ir.Constant(kind, 64)))
        # So far the numbers are unsigned: a negative number is too large by 2^128.
        b_sign = builder.ashr(b, ir.Constant(half, 127))
        more = builder.add(
            builder.zext(builder.and_(a_sign, b), kind), builder.zext(builder.and_(b_sign, a), kind)
        )
        product = builder.sub(product, builder.shl(more, ir.Constant(kind, 128)))
        at, before = _number(builder, target, place, 4)
        total = builder.add(before, product)
        builder.store(total, at, align=8)
        return _top_bit(builder, builder.and_(builder.xor(before, total), builder.xor(product, total)))

    return _for_each(builder, n, add)


primitive(add_products, _lower_add_products)
