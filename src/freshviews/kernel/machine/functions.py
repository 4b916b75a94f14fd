"""Defines ``Function``: a function of words that runs as machine code, or as plain Python until that is loaded.

The decorators ``jit``, ``inlined`` and ``outside`` of ``kernel.memory`` make a ``Function`` of a Python function.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from types import CodeType, ModuleType
from typing import Any

KIND = re.compile(r"t(\d+)|[wd]")
"""The kind of one argument."""


@dataclass(frozen=True)
class MachineCode:
    """Machine code of a function: ``call`` it from Python, or from machine code by its ``address``.

    The code at ``address`` takes a pointer for its result, an unused pointer to a pointer, then the arguments, with the
    words of a tuple one by one; it returns 0.
    """

    call: Callable[..., Any]
    address: int


class Function:
    """A function with a Python ``body``.

    ``first`` returns the code that a call runs before machine code is loaded; ``made``: machine code by kinds.
    ``inline``: LLVM must inline it. ``symbol``: the name by which machine code calls a function of words; without it,
    each caller links a copy.

    A function has machine code for each combination of the *kinds* of its arguments: ``w`` is a word, ``d`` a double,
    ``t3`` a tuple of three words. Most functions take only words.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        body: Callable[..., Any],
        first: Callable[[Function, str], Callable[..., Any]],
        *,
        inline: bool = False,
        symbol: str = "",
    ) -> None:
        update_wrapper(self, body)
        self.body = body
        self._called_first = first
        self.inline = inline
        self.symbol = symbol
        self.made: dict[str, MachineCode] = {}
        self.arguments = body.__code__.co_argcount
        assert not body.__defaults__, f"{body.__name__} has default arguments, which machine code lacks"
        self.run: Callable[..., Any] = self._first
        if symbol:
            assert symbol not in by_symbol, f"two kernels are called {body.__name__}"
            by_symbol[symbol] = self

    def __call__(self, *words: Any) -> Any:
        return self.run(*words)

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__

    @cached_property
    def kinds(self) -> str | None:
        """The kinds of all its calls; None if it takes tuples, whose lengths depend on the call."""
        found = [str(self.body.__annotations__.get(name, "int")) for name in self._names]
        if any(kind.startswith("tuple") for kind in found):
            return None
        return "".join("d" if kind == "float" else "w" for kind in found)

    def kinds_of(self, words: tuple[Any, ...]) -> str:
        """The kinds of arguments."""
        return self.kinds if self.kinds is not None else "".join(map(_kind, words))

    @property
    def code(self) -> MachineCode | None:
        """The loaded machine code of a function without tuples, or None."""
        return self.made.get(self.kinds) if self.kinds is not None else None

    def take(self, kinds: str, made: MachineCode) -> None:
        """Run machine code from now on."""
        self.made[kinds] = made
        if kinds == self.kinds:
            self.run = made.call

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of a function that another function calls, unless it is called by its symbol."""
        if self.symbol:
            raise AttributeError
        return compiler().type_of(self)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.body.__code__.co_varnames[: self.arguments]

    def _first(self, *words: Any) -> Any:
        """Runs a call before machine code is loaded."""
        return self._called_first(self, self.kinds_of(words))(*words)


def reached_from(functions: Iterable[Function]) -> set[Function]:
    """Functions and all functions that they call."""
    found: set[Function] = set()
    left = list(functions)
    while left:
        function = left.pop()
        if function not in found:
            found.add(function)
            left += _called_by(function.body.__code__, function.body.__globals__)
    return found


def _called_by(code: CodeType, names: Mapping[str, Any]) -> Iterator[Function]:
    """The functions that code names, also as ``module.function``."""
    values = [names.get(name) for name in code.co_names]
    modules = [one for one in values if isinstance(one, ModuleType)]
    values += [getattr(module, name, None) for module in modules for name in code.co_names]
    yield from (value for value in values if isinstance(value, Function))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _called_by(inner, names)


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The code that a call of a function runs now: the machine code itself, once it is loaded."""
    return function.run if isinstance(function, Function) else function


def compiler() -> Any:
    """``kernel.compiler``, imported at the first call, which takes a second for Numba.

    Imported by name, because it imports kernels, which import this module.
    """
    return importlib.import_module("freshviews.kernel.compiler")


def _kind(word: Any) -> str:
    if isinstance(word, tuple):
        return f"t{len(word)}"
    return "d" if isinstance(word, float) else "w"


by_symbol: dict[str, Function] = {}
"""Functions that machine code calls by a symbol."""

SYMBOL_PREFIX = "freshviews_outside_"

