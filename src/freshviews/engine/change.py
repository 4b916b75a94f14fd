"""The change of a view from one version to the next, and its subscribers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from freshviews import arguments
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import Decoder


class Change:
    """The change of a view at a version: rows with positive (inserted) or negative (deleted) multiplicity."""

    def __init__(self, view: str, version: int, batch: CodeBatch, decoder: Decoder) -> None:
        self.view = view
        """Name of the view."""
        self.version = version
        """The version that the change leads to."""
        self._batch = batch
        self._decoder = decoder

    def to_arrow(self) -> pa.Table:
        """The columns of the view and ``_multiplicity`` (BIGINT, never 0), a line per distinct row."""
        return pa.Table.from_batches([self._decoder.change(self._batch)])

    def to_batches(self, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """As ``to_arrow``, in record batches of at most ``rows`` rows, each made when it is asked for."""
        arguments.count("Change.to_batches(rows)", rows, 1)
        return self._pieces(rows)

    def _pieces(self, rows: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self._batch), rows):
            cut = slice(start, start + rows)
            columns = {name: column[cut] for name, column in self._batch.columns.items()}
            yield self._decoder.change(CodeBatch(self.view, columns, self._batch.multiplicities[cut]))

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Pairs of a row, as a tuple of Python values, and its multiplicity."""
        rows = self._decoder.tuples(self._batch)
        return iter(zip(rows, self._batch.multiplicities.tolist(), strict=True))

    def __len__(self) -> int:
        """Distinct rows that changed."""
        return len(self._batch)

    def __repr__(self) -> str:
        return f"<change of view {self.view} at version {self.version}: {len(self)} rows>"


class Subscription:
    """A callback for every change of a view. Call the subscription, or its ``unsubscribe``, to end it."""

    def __init__(self, callback: Callable[[Change], object], end: Callable[[Subscription], None]) -> None:
        self.callback = callback
        self.active = True
        self._end = end

    def unsubscribe(self) -> None:
        """No further change is handed to the callback; a second call does nothing."""
        if self.active:
            self.active = False
            self._end(self)

    __call__ = unsubscribe
