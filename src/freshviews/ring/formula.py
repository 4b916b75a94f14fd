"""Represents a Python function of a user's ring as data: arithmetic and branches, without loops.

A formula can be printed as source, compiled, and sent to another process.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

from freshviews.records import dataclass
from freshviews.ring.protocol import RingError

WHOLE = "w"
REAL = "d"
"""The kinds of numbers: an integer of 64 bits, a double."""

PARAMETER = "parameter"
CONSTANT = "constant"


@dataclass(frozen=True)
class Node:
    """An operation, the numbers of its argument nodes, and the kind of its result.

    ``parameter`` has the number of a parameter, ``constant`` the constant.
    """

    op: str
    args: tuple[Any, ...]
    kind: str = WHOLE


@dataclass(frozen=True)
class Branch:
    """A branch: ``yes`` if a node is not 0, otherwise ``no``."""

    test: int
    yes: Tree
    no: Tree


Tree = tuple[int, ...] | Branch
"""The nodes of the results, or a branch."""

_KEEPING = frozenset((PARAMETER, CONSTANT, "add", "sub", "mul", "neg", "and", "or", "xor", "invert"))
"""Operations whose result modulo 2^64 follows from the arguments modulo 2^64."""


_SURE = frozenset((PARAMETER, CONSTANT, "lt", "le", "eq", "ne", "right", "double"))
"""Operations that have a result of 64 bits for all arguments."""


class Lines(Protocol):
    """The interface through which source is written."""

    def line(self, text: str) -> None: ...

    def block(self, head: str) -> AbstractContextManager[None]: ...

    def fresh(self, wish: str) -> str: ...


Spelling = Callable[[Node, Sequence[str]], str]
"""The source of an operation on sources."""


@dataclass(frozen=True)
class Formula:
    """A function of ``parameters``, given by their kinds, with ``results`` results.

    A formula has *nodes*, each an operation on earlier nodes, and a *tree* of branches whose leaves name the result
    nodes. ``ring.recording`` records a formula from a Python function. ``compiled`` makes it a Python function again;
    ``codegen.writing.payloads.own_rings`` writes it as calls to kernels. A formula refers to nothing outside of it, so
    it can be sent to another process.
    """

    parameters: tuple[str, ...]
    nodes: tuple[Node, ...]
    tree: Tree

    @property
    def keeps_modulo(self) -> bool:
        """True if the function modulo 2^64 depends on its arguments modulo 2^64 alone, as sums and products do."""
        return not isinstance(self.tree, Branch) and {self.nodes[i].op for i in self._reached(self.tree)} <= _KEEPING

    @property
    def may_fail(self) -> bool:
        """True if a step may have no result, or none of 64 bits."""
        return not {node.op for node in self.nodes} <= _SURE

    def _reached(self, roots: Sequence[int], known: Mapping[int, str] = MappingProxyType({})) -> list[int]:
        """The nodes that nodes are made of, and themselves, in order; without those that are known."""
        found: set[int] = set()
        waiting = list(roots)
        while waiting:
            one = waiting.pop()
            if one in found or one in known:
                continue
            found.add(one)
            if self.nodes[one].op not in (PARAMETER, CONSTANT):
                waiting += self.nodes[one].args
        return sorted(found)

    def write(self, lines: Lines, spelling: Spelling, given: Sequence[str], results: Sequence[str]) -> None:
        """Write lines that assign the results for the arguments that are ``given``."""
        self._write(lines, spelling, given, results, self.tree, {})

    def _write(
        self,
        lines: Lines,
        spelling: Spelling,
        given: Sequence[str],
        results: Sequence[str],
        tree: Tree,
        known: dict[int, str],
    ) -> None:
        roots = [tree.test] if isinstance(tree, Branch) else list(tree)
        for one in self._reached(roots, known):
            node = self.nodes[one]
            if node.op == PARAMETER:
                known[one] = given[node.args[0]]
            elif node.op == CONSTANT:
                known[one] = repr(node.args[0])
            else:
                known[one] = lines.fresh("step")
                lines.line(f"{known[one]} = {spelling(node, [known[arg] for arg in node.args])}")
        if not isinstance(tree, Branch):
            for result, one in zip(results, tree, strict=True):
                lines.line(f"{result} = {known[one]}")
            return
        with lines.block(f"if {known[tree.test]} != 0:"):
            self._write(lines, spelling, given, results, tree.yes, dict(known))
        with lines.block("else:"):
            self._write(lines, spelling, given, results, tree.no, dict(known))

    @property
    def results(self) -> tuple[str, ...]:
        """The kinds of the results."""
        tree = self.tree
        while isinstance(tree, Branch):
            tree = tree.yes
        return tuple(self.nodes[one].kind for one in tree)

    @cached_property
    def source(self) -> str:
        """The function as plain Python."""
        lines = _Source()
        given = [f"given_{i}" for i in range(len(self.parameters))]
        results = [f"result_{i}" for i in range(len(self.results))]
        with lines.block(f"def formula({', '.join(given)}):"):
            self.write(lines, python_of, given, results)
            lines.line(f"return ({', '.join(results)},)")
        return lines.text()

    @cached_property
    def digest(self) -> str:
        """A hash that equal formulas share, also across processes."""
        return hashlib.sha256(f"{self.parameters} {self.source}".encode()).hexdigest()

    @cached_property
    def compiled(self) -> Callable[..., tuple[Any, ...]]:
        """The function: it takes numbers, integers of any size among them, and returns a tuple of them. Raises
        RingError if a step has no result."""
        scope: dict[str, Any] = dict(_PYTHON)
        exec(self.source, scope)
        function: Callable[..., tuple[Any, ...]] = scope["formula"]
        return function

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in ("parameters", "nodes", "tree")}


class _Source:
    """Lines of plain Python."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, wish: str) -> str:
        self._names += 1
        return f"{wish}_{self._names}"

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def floor_quotient(a: int, b: int) -> int:
    if b == 0:
        raise RingError(f"{a} // 0 has no value")
    return a // b


def floor_rest(a: int, b: int) -> int:
    if b == 0:
        raise RingError(f"{a} % 0 has no value")
    return a % b


def quotient(x: float, y: float) -> float:
    if y == 0.0:
        raise RingError(f"{x} / 0 has no value")
    return x / y


def power(x: float, y: float) -> float:
    try:
        found = x**y
    except (OverflowError, ZeroDivisionError):
        raise RingError(f"{x} ** {y} has no value as a double") from None
    if not isinstance(found, float):
        raise RingError(f"{x} ** {y} has no value as a double")
    return found


def double(a: int) -> float:
    try:
        return float(a)
    except OverflowError:
        raise RingError(f"{a} is not a double") from None


def whole(how: Callable[[float], int], x: float) -> int:
    if not math.isfinite(x):
        raise RingError(f"{x} is not an integer")
    return how(x)


_PYTHON: Mapping[str, Any] = MappingProxyType(
    {
        "floor_quotient": floor_quotient,
        "floor_rest": floor_rest,
        "quotient": quotient,
        "power": power,
        "double": double,
        "whole": whole,
        "floor": math.floor,
        "ceil": math.ceil,
        "trunc": math.trunc,
    }
)

_SPELLED = MappingProxyType(
    {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "neg": "-{}",
        "abs": "abs({})",
        "floor_div": "floor_quotient({}, {})",
        "mod": "floor_rest({}, {})",
        "and": "{} & {}",
        "or": "{} | {}",
        "xor": "{} ^ {}",
        "invert": "~{}",
        "right": "{} >> {}",
        "lt": "int({} < {})",
        "le": "int({} <= {})",
        "eq": "int({} == {})",
        "ne": "int({} != {})",
        "double": "double({})",
        "div": "quotient({}, {})",
        "pow": "power({}, {})",
        "floor": "whole(floor, {})",
        "ceil": "whole(ceil, {})",
        "trunc": "whole(trunc, {})",
        "round": "whole(round, {})",
    }
)


def python_of(node: Node, args: Sequence[str]) -> str:
    """An operation as plain Python."""
    return _SPELLED[node.op].format(*(f"({arg})" if arg.startswith("-") else arg for arg in args))
