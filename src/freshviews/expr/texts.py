"""Translates expressions over a text column, so that compiled code can compute them from the text's UTF-8 bytes.

Such an expression takes a part of the text, and may test or measure it. All its other arguments are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from freshviews.expr.like import segments
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS
from freshviews.expr.strings import members
from freshviews.kernel.codes import texts as kernel
from freshviews.types import STRING

MOST_MEMBERS = 16
"""Most constants with which a text is compared one by one; ``host_evaluation`` looks more up by their hash."""

_LONGEST = 2**31
_ORDERS = {"lt_string": 1, "le_string": 3, "gt_string": 4, "ge_string": 6}
_FLIPPED = {"lt_string": 4, "le_string": 6, "gt_string": 1, "ge_string": 3}
_PLACES = {"startswith": "{}%", "endswith": "%{}", "contains": "%{}%"}
_SIDES = {"ltrim": 1, "rtrim": 2, "trim": 3}

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextFunction:
    """A function of the strings of a column; NULL for NULL.

    ``words``: the function for ``kernel.codes.texts``, with memory that ``kept`` holds. ``of``: the same function in
    Python. ``has_text``: the result is a text; compiled code finds its code if it has one.
    """

    column: str
    of: Callable[[str], str | int]
    has_text: bool
    words: Words
    kept: tuple[object, ...] = field(repr=False)

    @property
    def address(self) -> int:
        """The address of the words."""
        return int(self.words.ctypes.data)


def text_function(expr: Expr) -> TextFunction | None:
    """The compiled function of an expression; None if it is not one over one text.

    ``text_function`` splits an expression into three: a column of strings, operations that take a part of the text, and
    a final operation that tests or measures this part. All other arguments are constants. ``host_evaluation`` computes
    every other expression. It also computes an expression with a constant that an operation refuses, because a compiled
    function must never fail.
    """
    if not isinstance(expr, Call):
        return None
    kept: list[object] = []
    steps: list[tuple[int, ...]] = []
    calls: list[Call] = []
    try:
        last = _final_step(expr, kept)
        node: Expr = expr
        if last is not None:
            calls.append(expr)
            node = next(arg for arg in expr.args if not isinstance(arg, Literal))
        while isinstance(node, Call):
            cut = _cut(node)
            if cut is None:
                return None
            steps.insert(0, cut)
            calls.insert(0, node)
            node = node.args[0]
    except (ValueError, UnicodeEncodeError):
        return None
    if not isinstance(node, Column) or node.type != STRING:
        return None
    steps.append(last or (kernel.CODE,))
    words = np.zeros(1 + kernel.STEP_WORDS * len(steps), np.int64)
    words[0] = len(steps)
    for i, step in enumerate(steps):
        at = 1 + kernel.STEP_WORDS * i
        words[at : at + len(step)] = step
    return TextFunction(node.name, _in_python(calls), last is None, words, tuple(kept))


def _in_python(calls: list[Call]) -> Callable[[str], str | int]:
    applied = []
    for call in calls:
        function = OPS[call.op].host
        assert function is not None
        values = [arg.value if isinstance(arg, Literal) else None for arg in call.args]
        place = next(i for i, arg in enumerate(call.args) if not isinstance(arg, Literal))
        applied.append((function, values[:place], values[place + 1 :]))

    def of(text: str) -> str | int:
        value: str | int = text
        for function, before, after in applied:
            value = function(*before, value, *after)
        return value if isinstance(value, str) else int(value)

    return of


def _cut(call: Call) -> tuple[int, ...] | None:
    """The step of an operation that cuts its first argument; None for another operation."""
    constants = _constants(call, 0)
    if constants is None:
        return None
    if call.op in _SIDES:
        character = constants[0] if constants else " "
        single = isinstance(character, str) and len(character) == 1 and character.isascii()
        return (kernel.TRIM, _SIDES[call.op], ord(character)) if single and isinstance(character, str) else None
    numbers = [number for number in constants if isinstance(number, int) and abs(number) <= _LONGEST]
    if len(numbers) != len(constants):
        return None
    if call.op == "substring":
        length = max(numbers[1], 0) if len(numbers) > 1 else kernel.TO_END
        return kernel.SLICE, numbers[0], length
    if call.op == "left":
        return kernel.SLICE, 1, max(numbers[0], 0)
    if call.op == "right":
        return (kernel.SLICE, -numbers[0], kernel.TO_END) if numbers[0] > 0 else (kernel.SLICE, 1, 0)
    return None


def _final_step(call: Call, kept: list[object]) -> tuple[int, ...] | None:
    """The final step: an operation that tests or measures its only non-constant argument; None for another operation.
    Raises ValueError for a refused constant."""
    if call.op == "length":
        return (kernel.LENGTH,)
    if call.op in _ORDERS:
        first = isinstance(call.args[0], Literal)
        constant = _constants(call, 1 if first else 0)
        if constant is None or not isinstance(constant[0], str):
            return None
        orders = _FLIPPED if first else _ORDERS
        return (kernel.COMPARE, orders[call.op], *_bytes(constant[0].encode(), kept))
    constants = _constants(call, 0)
    if not constants or not all(isinstance(constant, str) for constant in constants):
        return None
    given = [str(constant) for constant in constants]
    if call.op == "like":
        return _like(segments(given[0], given[1] if len(given) > 1 else "\\"), kept)
    if call.op in _PLACES:
        before, after = _PLACES[call.op].split("{}")
        part: list[str | None] = list(given[0])
        return _like([*([[]] if before else []), part, *([[]] if after else [])], kept)
    if call.op == "in_list" and call.args[0].type.name == "STRING":
        found = members(given[0])
        if len(found) <= MOST_MEMBERS:
            rows = [_bytes(str(member).encode(), kept) for member in sorted(map(str, found))]
            return kernel.ONE_OF, _block(rows, kept), len(rows)
    return None


def _constants(call: Call, place: int) -> list[str | int | float | bool] | None:
    """The arguments except the one at ``place``; None unless these alone are constants, and not NULL."""
    others = [arg for i, arg in enumerate(call.args) if i != place]
    found = [arg.value for arg in others if isinstance(arg, Literal) and arg.value is not None]
    return found if len(found) == len(others) and not isinstance(call.args[place], Literal) else None


def _like(pattern: list[list[str | None]], kept: list[object]) -> tuple[int, ...]:
    rows = []
    for segment in pattern:
        text = b"".join(bytes([kernel.ANY]) if one is None else one.encode() for one in segment)
        rows.append((*_bytes(text, kept), len(segment), int(None in segment)))
    return kernel.LIKE, _block(rows, kept), len(rows)


def _bytes(text: bytes, kept: list[object]) -> tuple[int, int]:
    """The address and the number of bytes of a text, which ``kept`` then holds."""
    held = np.frombuffer(text or b"\0", np.uint8)
    kept.append(held)
    return int(held.ctypes.data), len(text)


def _block(rows: Sequence[tuple[int, ...]], kept: list[object]) -> int:
    """The address of words, which ``kept`` then holds."""
    held = np.array(rows, np.int64)
    kept.append(held)
    return int(held.ctypes.data)
