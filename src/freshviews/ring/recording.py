"""Records a Python function as a formula, by calling the function with symbols that record the arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from freshviews.ring.formula import CONSTANT, PARAMETER, REAL, WHOLE, Branch, Formula, Node, Tree

MOST_NODES = 4_000
MOST_PATHS = 64
MOST_TESTS = 64
"""Bounds of a formula: its operations, its results, and the tests on the way to one."""

ARITHMETIC = (
    "accepted: + - * // % ** abs min max & | ^ ~ >> and comparisons of integers, + - * / ** abs and comparisons of "
    "doubles, round, math.floor, math.ceil and math.trunc of doubles, and if"
)


class RecordingError(Exception):
    """A function cannot be recorded; the message says why."""


class _Recorder:
    """The nodes of one function, and the tests of the run that is under way.

    ``script`` are the outcomes of the first tests of the run; later ones are true.
    """

    def __init__(self) -> None:
        self.nodes: dict[Node, int] = {}
        self.script: list[bool] = []
        self.tests: list[int] = []
        self.outcomes: list[bool] = []
        self.known: dict[int, bool] = {}

    def begin(self, script: Sequence[bool]) -> None:
        self.script = list(script)
        self.tests, self.outcomes, self.known = [], [], {}

    def symbol(self, node: Node) -> Any:
        number = self.nodes.setdefault(node, len(self.nodes))
        if number >= MOST_NODES:
            raise RecordingError(f"the function takes more than {MOST_NODES:,} operations")
        return (Whole if node.kind == WHOLE else Double)(self, number)

    def test(self, number: int) -> bool:
        """The outcome of a test in this run."""
        known = self.known.get(number)
        if known is None:
            at = len(self.tests)
            if at >= MOST_TESTS:
                raise RecordingError(
                    f"the function makes more than {MOST_TESTS} tests; the length of a loop must not depend on an "
                    "argument"
                )
            known = self.script[at] if at < len(self.script) else True
            self.tests.append(number)
            self.outcomes.append(known)
            self.known[number] = known
        return known

    def number_of(self, value: Any, kind: str) -> int:
        """The node of a symbol or a constant."""
        if isinstance(value, Symbol):
            assert value.kind == kind
            return value.number
        found: int = self.symbol(_constant(value, kind)).number
        return found


def _constant(value: Any, kind: str) -> Node:
    if kind == REAL:
        if not isfinite(value):
            raise RecordingError(f"the constant {value} is not finite")
        return Node(CONSTANT, (float(value),), REAL)
    value = int(value)
    if not -(2**63) < value < 2**63:
        raise RecordingError(f"the constant {value} does not fit 64 bits")
    return Node(CONSTANT, (value,))


class Symbol:
    """A number that is not known yet."""

    kind = ""

    def __init__(self, recorder: _Recorder, number: int) -> None:
        self.recorder = recorder
        self.number = number

    __hash__ = None  # type: ignore[assignment]

    def _recorded(self, op: str, *args: Any, of: str = "", kind: str = "") -> Any:
        of = of or self.kind
        numbers = tuple(self.recorder.number_of(arg, of) for arg in args)
        return self.recorder.symbol(Node(op, numbers, kind or of))

    def __bool__(self) -> bool:
        return self.recorder.test(self.number)

    def __pos__(self) -> Any:
        return self

    def __index__(self) -> int:
        raise RecordingError(
            "a parameter of the function cannot be an index, the length of a loop, or the argument of int()"
        )

    __int__ = __index__

    def __float__(self) -> float:
        raise RecordingError(
            "float() and functions of the module math accept only constants; write x * 1.0 for float(x)"
        )

    def __iter__(self) -> Any:
        raise RecordingError("a number cannot be indexed or iterated over")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | Whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Symbol)


def _as_double(value: Any) -> Any:
    return value._recorded("double", value, kind=REAL) if isinstance(value, Whole) else value


def _operation(op: str, whole: bool = True, double: bool = True, test: bool = False) -> Any:
    """An operator and the one with its operands exchanged."""

    def made(a: Any, b: Any) -> Any:
        if not (_is_number(a) and _is_number(b)):
            return NotImplemented
        symbol = a if isinstance(a, Symbol) else b
        if _is_whole(a) and _is_whole(b):
            found = _folded(op, a, b) if whole else NotImplemented
            return symbol._recorded(op, a, b) if found is None else found
        if not double:
            return NotImplemented
        return symbol._recorded(op, _as_double(a), _as_double(b), of=REAL, kind=WHOLE if test else REAL)

    return made, lambda self, other: made(other, self)


def _folded(op: str, a: Any, b: Any) -> Any:
    """The result if it is one of the operands or 0; otherwise None."""
    if op == "add" and (_is(a, 0) or _is(b, 0)):
        return b if _is(a, 0) else a
    if op == "sub" and _is(b, 0):
        return a
    if op == "mul":
        if _is(a, 0) or _is(b, 0):
            return 0
        if _is(a, 1) or _is(b, 1):
            return b if _is(a, 1) else a
    return None


def _is(value: Any, constant: int) -> bool:
    return isinstance(value, int) and value == constant


class Whole(Symbol):
    """An integer that is not known yet."""

    kind = WHOLE

    __add__, __radd__ = _operation("add")
    __sub__, __rsub__ = _operation("sub")
    __mul__, __rmul__ = _operation("mul")
    __floordiv__, __rfloordiv__ = _operation("floor_div", double=False)
    __mod__, __rmod__ = _operation("mod", double=False)
    __and__, __rand__ = _operation("and", double=False)
    __or__, __ror__ = _operation("or", double=False)
    __xor__, __rxor__ = _operation("xor", double=False)
    __lt__, __gt__ = _operation("lt", test=True)
    __le__, __ge__ = _operation("le", test=True)
    __eq__ = _operation("eq", test=True)[0]
    __ne__ = _operation("ne", test=True)[0]

    def __truediv__(self, other: Any) -> Any:
        return _as_double(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / _as_double(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self._recorded("neg", self)

    def __invert__(self) -> Any:
        return self._recorded("invert", self)

    def __abs__(self) -> Any:
        return self._recorded("abs", self)

    def __rshift__(self, other: Any) -> Any:
        if not (isinstance(other, int) and 0 <= other < 64):
            raise RecordingError("x >> n takes a constant n from 0 to 63")
        return self._recorded("right", self, other)

    def __lshift__(self, other: Any) -> Any:
        if not (isinstance(other, int) and 0 <= other < 63):
            raise RecordingError("x << n takes a constant n from 0 to 62")
        return self * (1 << other)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if not (isinstance(exponent, int) and 0 <= exponent <= 2**63):
            raise RecordingError("x ** n of an integer x takes a constant n of 0 or more")
        found: Any = 1
        square: Any = self
        while exponent:
            if exponent & 1:
                found = found * square if modulus is None else found * square % modulus
            exponent >>= 1
            if exponent:
                square = square * square if modulus is None else square * square % modulus
        return found

    def __round__(self, digits: Any = None) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__ = __round__


class Double(Symbol):
    """A double that is not known yet."""

    kind = REAL

    __add__, __radd__ = _operation("add", False)
    __sub__, __rsub__ = _operation("sub", False)
    __mul__, __rmul__ = _operation("mul", False)
    __truediv__, __rtruediv__ = _operation("div", False)
    __pow__, __rpow__ = _operation("pow", False)
    __lt__, __gt__ = _operation("lt", False, test=True)
    __le__, __ge__ = _operation("le", False, test=True)
    __eq__ = _operation("eq", False, test=True)[0]
    __ne__ = _operation("ne", False, test=True)[0]

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def __neg__(self) -> Any:
        return self._recorded("neg", self)

    def __abs__(self) -> Any:
        return self._recorded("abs", self)

    def __round__(self, digits: Any = None) -> Any:
        if digits:
            raise RecordingError("round takes a number and no digits; write round(x * 100) for two digits")
        return self._recorded("round", self, kind=WHOLE)

    def __floor__(self) -> Any:
        return self._recorded("floor", self, kind=WHOLE)

    def __ceil__(self) -> Any:
        return self._recorded("ceil", self, kind=WHOLE)

    def __trunc__(self) -> Any:
        return self._recorded("trunc", self, kind=WHOLE)


def record(
    function: Callable[..., Any],
    kinds: Sequence[str],
    arguments: Callable[[Sequence[Any]], Sequence[Any]],
    results: Callable[[Any], Sequence[Any]],
    made: Sequence[str],
) -> Formula:
    """The formula of a function.

    ``kinds``: the kinds of its parameters, from which ``arguments`` makes the arguments of the call. ``results`` makes
    numbers of the kinds ``made`` from the return value; an integer may stand for a double. Raises RecordingError.

    The function may have loops, comprehensions, closures, and calls of other functions; only their arithmetic is
    recorded. A test of a symbol, as in ``if``, ``min`` or ``and``, is a branch: the function is called once per
    outcome. This module refuses a loop whose length depends on an argument, an argument used as an index, and
    arithmetic that docs/rings.md does not list.
    """
    recorder = _Recorder()
    symbols = [recorder.symbol(Node(PARAMETER, (i,), kind)) for i, kind in enumerate(kinds)]
    paths = 0

    def explored(script: Sequence[bool]) -> Tree:
        nonlocal paths
        paths += 1
        if paths > MOST_PATHS:
            raise RecordingError(f"the function has more than {MOST_PATHS} paths; use fewer ifs, or arithmetic instead")
        recorder.begin(script)
        try:
            returned = results(function(*arguments(symbols)))
            tree: Tree = tuple(
                recorder.number_of(_result(value, kind), kind) for value, kind in zip(returned, made, strict=True)
            )
        except RecordingError:
            raise
        except Exception as error:
            raise RecordingError(f"{type(error).__name__}: {error}; {ARITHMETIC}") from error
        tests, outcomes = recorder.tests, recorder.outcomes
        for i in reversed(range(len(script), len(tests))):
            tree = Branch(tests[i], tree, explored([*outcomes[:i], False]))
        return tree

    tree = explored(())
    return _with_used(Formula(tuple(kinds), tuple(recorder.nodes), tree))


def _result(value: Any, kind: str) -> Any:
    """A number that a function returned, of a kind."""
    if not _is_number(value):
        raise RecordingError(f"the function returns {value!r} of type {type(value).__name__} instead of a number")
    if kind == REAL:
        return _as_double(value)
    if not _is_whole(value):
        raise RecordingError(
            "the function returns a double, but sums of doubles are rounded, so a delete might not undo its insert; "
            "return an integer, as round(x * 2**20)"
        )
    return value


def _with_used(formula: Formula) -> Formula:
    """The formula without nodes that nothing reads, numbered again; so equal functions have equal formulas."""
    used: set[int] = set()
    waiting: list[Tree] = [formula.tree]
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, Branch):
            waiting += [tree.yes, tree.no, (tree.test,)]
        else:
            used.update(formula._reached(tree))
    places = {old: new for new, old in enumerate(sorted(used))}

    def moved(tree: Tree) -> Tree:
        if isinstance(tree, Branch):
            return Branch(places[tree.test], moved(tree.yes), moved(tree.no))
        return tuple(places[one] for one in tree)

    nodes = []
    for old in sorted(used):
        node = formula.nodes[old]
        if node.op not in (PARAMETER, CONSTANT):
            node = Node(node.op, tuple(places[arg] for arg in node.args), node.kind)
        nodes.append(node)
    return Formula(formula.parameters, tuple(nodes), moved(formula.tree))


def numbers(value: Any, count: int) -> Sequence[Any]:
    """``count`` numbers that a function returned: a tuple or list, or, of one, the number."""
    if count == 1 and not isinstance(value, tuple | list):
        return (value,)
    if not isinstance(value, tuple | list) or len(value) != count:
        raise RecordingError(f"the function returns {value!r}, not a tuple of {count} numbers")
    return value

