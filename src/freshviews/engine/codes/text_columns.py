"""Computes a function of strings (``expr.texts``), such as LIKE with a constant pattern, for a column of codes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from freshviews.codegen.module import compile_ahead
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.string_codes import codes_of
from freshviews.expr.host_evaluation import NO_FAILURES, Evaluator, Failures
from freshviews.expr.texts import TextFunction
from freshviews.kernel.codes import text_columns as kernel
from freshviews.kernel.codes.string_slots import UNKNOWN
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.types.dictionary import Dictionary

_PIECE = 1 << 14
"""Rows between two checks for Ctrl-C."""

_LARGEST_MEMO = 1 << 12
"""Size of the memo of results of Python values."""


def results_of(function: TextFunction, dictionary: Dictionary) -> Evaluator:
    """The evaluator of a function over columns of codes, by name."""
    strings = codes_of(dictionary)
    compile_ahead(kernel.of_codes)

    def evaluate(columns: Mapping[str, Codes]) -> tuple[Codes, Failures]:
        codes = columns[function.column]
        found = np.empty(len(codes), np.int64)
        unknown = 0
        for start in range(0, len(codes), _PIECE):
            if INTERRUPTION.asked:
                INTERRUPTION.raise_if_allowed()
            (source, stride), (target, _) = address_of(codes[start:]), address_of(found[start:])
            rows = min(len(codes) - start, _PIECE)
            unknown += kernel.of_codes(function.address, strings.address, source, stride, rows, target)
        if unknown:
            for row in np.flatnonzero(found == UNKNOWN).tolist():
                found[row] = dictionary.encode(str(function.of(dictionary.decode(int(codes[row])))))
        if dictionary.mark is not None:
            dictionary.mark(found)
        return found, NO_FAILURES

    return evaluate


class TextResults(Dictionary):
    """A dictionary that maps each string to the result of a function, and stores no strings."""

    def __init__(self, function: TextFunction, dictionary: Dictionary) -> None:
        super().__init__()
        self.function = function
        self._named = dictionary.encode
        self._memo: dict[object, str | int] = {}
        self.encode = self._result

    def _result(self, text: object) -> int:
        found = self._memo.get(text)
        if found is None:
            if len(self._memo) == _LARGEST_MEMO:
                self._memo.clear()
            found = self._memo[text] = self._of(text)
        return self._named(found) if isinstance(found, str) else found

    def _of(self, text: object) -> str | int:
        if not isinstance(text, str):
            raise TypeError(f"a text must be a str, not {type(text).__name__}")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"the text is not valid Unicode: {error.reason}") from None
        return self.function.of(text)
