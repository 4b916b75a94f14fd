"""Stores the input rows of a view that is computed again after each batch.

Only the columns that the view reads are stored, and equal rows are merged.
"""

from __future__ import annotations

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.views.output import consolidate


class StoredRows:
    """Stored rows of the inputs, by relation."""

    def __init__(self, columns: dict[str, tuple[str, ...]]) -> None:
        self._columns = columns
        self._rows: dict[str, Codes] = {
            name: np.empty((0, len(names) + 1), np.int64) for name, names in columns.items()
        }

    def add(self, batch: CodeBatch) -> None:
        """Add the rows of a batch; deletes cancel earlier rows."""
        names = self._columns[batch.relation]
        rows = np.column_stack([*(batch.columns[name] for name in names), batch.multiplicities])
        self._rows[batch.relation] = consolidate(np.concatenate([self._rows[batch.relation], rows]))

    def batches(self) -> list[CodeBatch]:
        """All rows, a batch per relation."""
        return [
            CodeBatch(
                name,
                {c: rows[:, i] for i, c in enumerate(self._columns[name])},
                rows[:, -1],
            )
            for name, rows in self._rows.items()
            if len(rows)
        ]

    @property
    def rows(self) -> dict[str, Codes]:
        """The rows by relation, their multiplicities last."""
        return self._rows

    def take(self, rows: dict[str, Codes]) -> None:
        """Replace all rows by these, in the form of ``rows``."""
        self._rows = rows

    def clear(self) -> None:
        for name, rows in self._rows.items():
            self._rows[name] = rows[:0]
