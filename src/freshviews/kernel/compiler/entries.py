"""Writes *entries*, through which Python calls machine code.

An entry is a function of Python's C interface. It unpacks the arguments and calls a compiled function of words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir

from freshviews.kernel.machine.functions import KIND
from freshviews.kernel.machine.native import target_machine

_WORD, _HALF, _BYTE, _DOUBLE = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()
_POINTER = _BYTE.as_pointer()
_RESULTS: dict[str, ir.Type] = {"w": _WORD, "b": _BYTE, "d": _DOUBLE}


def entry_name(kinds: str, result: str) -> str:
    """The symbol of an entry. ``result``: ``n`` none, ``w`` a word, ``b`` a truth value, ``d`` a double, or several of
    them for a tuple after ``t``."""
    return f"freshviews_entry_{kinds}_{result}"


def entry_code(kinds: str, result: str) -> bytes:
    """The object file of an entry.

    An entry is a function of Python's C interface (METH_FASTCALL). Its ``self`` is the address of a compiled function
    of words. The entry unpacks the arguments, calls that function without the interpreter's lock, and makes a Python
    value of the result. An entry raises no exception: in a process with Numba, symbols of exceptions such as
    PyExc_TypeError have another meaning.
    """
    module = binding.parse_assembly(str(_Entry(kinds, result).module))
    module.verify()
    code: bytes = target_machine().emit_object(module)
    return code


class _Entry:
    """One entry while it is written."""

    def __init__(self, kinds: str, result: str) -> None:
        self.module = ir.Module()
        kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _WORD])
        function = ir.Function(self.module, kind, entry_name(kinds, result))
        self._builder = ir.IRBuilder(function.append_basic_block())
        address, given, count = function.args
        parts = list(KIND.finditer(kinds))
        self._return_if(
            self._builder.icmp_signed("!=", count, ir.Constant(_WORD, len(parts))),
            lambda: self._call("PyErr_BadArgument", _HALF),
        )
        arguments: list[ir.Value] = []
        for i, part in enumerate(parts):
            one = self._builder.load(self._builder.gep(given, [ir.Constant(_WORD, i)]))
            arguments += [self._unpack(one, part[0])] if part[1] is None else self._unpack_tuple(one, int(part[1]))
        target = self._call("PyLong_AsVoidPtr", _POINTER, address)
        self._builder.ret(self._run(target, arguments, result))

    def _run(self, target: ir.Value, arguments: list[ir.Value], result: str) -> ir.Value:
        builder = self._builder
        if result == "n":
            kind: ir.Type = _POINTER
        elif result.startswith("t"):
            kind = ir.LiteralStructType([_RESULTS[one] for one in result[1:]])
        else:
            kind = _RESULTS[result]
        place, error = builder.alloca(kind), builder.alloca(_POINTER)
        wanted = ir.FunctionType(
            _HALF, [kind.as_pointer(), _POINTER.as_pointer(), *(argument.type for argument in arguments)]
        )
        state = self._call("PyEval_SaveThread", _POINTER)
        status = builder.call(builder.bitcast(target, wanted.as_pointer()), [place, error, *arguments])
        self._call("PyEval_RestoreThread", ir.VoidType(), state)
        if result == "n":
            none = self._outside("_Py_NoneStruct")
            self._call("Py_IncRef", ir.VoidType(), none)
            return none
        self._return_if(
            builder.icmp_signed("!=", status, ir.Constant(_HALF, 0)),
            lambda: self._call("PyErr_BadInternalCall", ir.VoidType()),
        )
        if not result.startswith("t"):
            return self._object(builder.load(place), result)
        made = self._call("PyTuple_New", _POINTER, ir.Constant(_WORD, len(result) - 1))
        self._return_if(self._is_null(made), lambda: None)
        whole = builder.load(place)
        for i, one in enumerate(result[1:]):
            part = self._object(builder.extract_value(whole, i), one)
            self._return_if(self._is_null(part), lambda: self._call("Py_DecRef", ir.VoidType(), made))
            self._call("PyTuple_SetItem", _HALF, made, ir.Constant(_WORD, i), part)
        return made

    def _unpack_tuple(self, given: ir.Value, count: int) -> list[ir.Value]:
        """Unpacks the words of a tuple."""
        size = self._call("PyTuple_Size", _WORD, given)
        self._return_if(
            self._builder.icmp_signed("!=", size, ir.Constant(_WORD, count)),
            lambda: self._call("PyErr_BadArgument", _HALF),
        )
        places = [ir.Constant(_WORD, place) for place in range(count)]
        return [self._unpack(self._call("PyTuple_GetItem", _POINTER, given, place), "w") for place in places]

    def _unpack(self, given: ir.Value, kind: str) -> ir.Value:
        """Unpacks an argument as a word or a double; the entry ends if it is neither."""
        if kind == "d":
            value = self._call("PyFloat_AsDouble", _DOUBLE, given)
            suspect = self._builder.fcmp_ordered("==", value, ir.Constant(_DOUBLE, -1.0))
        else:
            value = self._call("PyLong_AsLongLong", _WORD, given)
            suspect = self._builder.icmp_signed("==", value, ir.Constant(_WORD, -1))
        with self._builder.if_then(suspect, likely=False):
            raised = self._builder.not_(self._is_null(self._call("PyErr_Occurred", _POINTER)))
            self._return_if(raised, lambda: None)
        return value

    def _object(self, value: ir.Value, kind: str) -> ir.Value:
        if kind == "d":
            return self._call("PyFloat_FromDouble", _POINTER, value)
        if kind == "b":
            return self._call("PyBool_FromLong", _POINTER, self._builder.zext(value, _WORD))
        return self._call("PyLong_FromLongLong", _POINTER, value)

    def _return_if(self, condition: ir.Value, before: Callable[[], Any]) -> None:
        """Return NULL, which signals an exception to Python, if a condition holds."""
        with self._builder.if_then(condition, likely=False):
            before()
            self._builder.ret(ir.Constant(_POINTER, None))

    def _is_null(self, pointer: ir.Value) -> ir.Value:
        return self._builder.icmp_unsigned("==", pointer, ir.Constant(_POINTER, None))

    def _outside(self, name: str) -> ir.Value:
        """The address of a variable of the interpreter."""
        known = self.module.globals.get(name) or ir.GlobalVariable(self.module, _BYTE, name)
        return known

    def _call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Call a function of the interpreter."""
        known = self.module.globals.get(name)
        if known is None:
            kind = ir.FunctionType(result, [argument.type for argument in arguments])
            known = ir.Function(self.module, kind, name)
        return self._builder.call(known, arguments)
