"""Finds the rows that a statement may change, in the table and in the changes of the open transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded, joined
from freshviews.engine.commit.data.evaluation import numbered
from freshviews.engine.tables.table_state import TableState
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.records import dataclass

ROWS = 1 << 16
"""Most rows that a statement looks at together."""


@dataclass(frozen=True)
class Target:
    """A stored table and the signed rows that wait for it."""

    table: TableState
    waiting: Sequence[Encoded] = ()

    def batches(self) -> Iterator[CodeBatch]:
        """All rows with their multiplicities."""
        stored = []
        for batch in self.table.batches(ROWS):
            INTERRUPTION.raise_if_unchanged()
            stored.append(batch)
        if not self.waiting:
            yield from stored
            return
        yield self._net([*stored, joined(self.waiting).batch])

    def with_keys(self, keys: Sequence[Codes]) -> CodeBatch:
        """The rows whose primary key, in the order of its stored columns, is one of the keys."""
        stored = self.table.stored
        assert stored is not None and stored.primary_key is not None
        found = stored.with_keys(keys)
        if not self.waiting:
            return found
        waiting = joined(self.waiting).batch
        names = stored.primary_key.columns
        wanted = set(zip(*(codes.tolist() for codes in keys), strict=True))
        rows = zip(*(waiting.columns[name].tolist() for name in names), strict=True)
        at = np.array([place for place, row in enumerate(rows) if row in wanted], np.int64)
        return self._net([found, rows_at(waiting, at)])

    def _net(self, batches: Sequence[CodeBatch]) -> CodeBatch:
        names = [column.name for column in self.table.definition.columns]
        columns = {name: np.concatenate([one.columns[name] for one in batches]) for name in names}
        _, first, place = np.unique(numbered([*columns.values()]), return_index=True, return_inverse=True)
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, place, np.concatenate([one.multiplicities for one in batches]))
        kept = first[counts > 0]
        return CodeBatch(self.table.name, {n: codes[kept] for n, codes in columns.items()}, counts[counts > 0])


def rows_at(batch: CodeBatch, at: Codes) -> CodeBatch:
    """The rows at some positions."""
    columns = {name: codes[at] for name, codes in batch.columns.items()}
    return CodeBatch(batch.relation, columns, batch.multiplicities[at])
