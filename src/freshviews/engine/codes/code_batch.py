"""Defines ``CodeBatch``, which has updates of one relation: an array of int64 codes per column, and multiplicities."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.expr.host_evaluation import Failures

Codes = NDArray[np.int64]


@dataclass(eq=False, slots=True, weakref_slot=True)
class CodeBatch:
    """Updates of one relation: ``columns[name]`` are codes, ``multiplicities`` signed, all of one length.

    Unread columns may be absent, or replaced by results of text functions. Arrays may be strided views of wider
    buffers; they are read-only once the batch is made. The class is not frozen, because a frozen one takes three times
    as long to make.
    """

    relation: str
    columns: dict[str, Codes]
    multiplicities: Codes
    computed: dict[str, tuple[Codes, Failures]] = field(default_factory=dict)
    """Host columns computed so far, by name; blocks and views share them."""

    def __len__(self) -> int:
        return len(self.multiplicities)

    def negated(self) -> CodeBatch:
        """The batch that takes this one back."""
        return CodeBatch(self.relation, self.columns, -self.multiplicities, self.computed)

    def between(self, first: int, end: int) -> CodeBatch:
        """The rows from ``first`` to before ``end``."""
        columns = {name: column[first:end] for name, column in self.columns.items()}
        return CodeBatch(self.relation, columns, self.multiplicities[first:end])


class ViewRows(CodeBatch):
    """Output rows of a view, shape (n, columns + 1) with the multiplicity last, as a batch.

    The arrays of its columns are made when they are first asked for: a subscriber may need only the number of rows.
    """

    __slots__ = ("_names", "_rows")

    def __init__(self, relation: str, names: Sequence[str], rows: Codes) -> None:
        self.relation = relation
        self._names = names
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        """Called for a slot that is still empty."""
        rows = self._rows
        if name == "columns":
            self.columns = {column: rows[:, i] for i, column in enumerate(self._names)}
        elif name == "multiplicities":
            self.multiplicities = rows[:, -1]
        elif name == "computed":
            self.computed = {}
        else:
            raise AttributeError(f"ViewRows has no attribute {name}")
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        return len(self._rows)


def address_of(array: Codes) -> tuple[int, int]:
    """Address of the first word and the stride in words."""
    stride = array.strides[0] >> 3
    if stride == 1 or array.ndim == 2:
        # NumPy takes four times as long, which matters for a batch of one row.
        buffer: Any = array
        try:
            return addressof(c_char.from_buffer(buffer)), stride
        except (TypeError, ValueError):  # The array is empty, read-only or strided.
            pass
    return array.ctypes.data, stride
