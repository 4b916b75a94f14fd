"""Code batches: what flows between ingestion, views and readers, columns of int64 codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class CodeBatch:
    """Updates of one relation: ``columns[name]`` are codes, ``multiplicities`` signed, all of one length.

    Columns that nobody reads may be absent. Arrays may be strided views of wider buffers; they are not
    written to after the batch is made.
    """

    relation: str
    columns: dict[str, Codes]
    multiplicities: Codes

    def __len__(self) -> int:
        return len(self.multiplicities)

    def negated(self) -> CodeBatch:
        """The batch that takes this one back."""
        return CodeBatch(self.relation, self.columns, -self.multiplicities)

    def first(self, rows: int) -> CodeBatch:
        """The first so many rows."""
        columns = {name: column[:rows] for name, column in self.columns.items()}
        return CodeBatch(self.relation, columns, self.multiplicities[:rows])


def address_of(array: Codes) -> tuple[int, int]:
    """Address of the first word and the stride in words."""
    return array.ctypes.data, array.strides[0] >> 3
