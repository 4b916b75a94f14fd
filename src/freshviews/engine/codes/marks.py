"""Which codes of strings are in use; and batches of codes that are read after their commit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.words import words_in
from freshviews.kernel.hash.table import KEY, PAYLOAD, ROWS, WIDTH
from freshviews.kernel.memory.mem import load
from freshviews.types.dictionary import Dictionary


def columns_of(table: int, first: int, end: int, positions: Iterable[int]) -> Iterator[Codes]:
    """The words at ``positions``, one after the other, of the rows of a table from one number to before another."""
    width, key = load(table, WIDTH), load(table, KEY)
    rows = words_in(load(table, ROWS) + 8 * first * width, max(end - first, 0), width)
    there = rows[:, key : key + load(table, PAYLOAD)].any(axis=1)
    for position in positions:
        yield rows[there, position]


class Marks:
    """Marks of the codes that a dictionary has now; later ones are not marked and count as in use."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.size = len(dictionary)
        self._marked = np.zeros(self.size, np.bool_)

    def words(self, codes: Codes) -> None:
        """Mark codes; words that are no code are passed over."""
        # As unsigned numbers NULL and UNKNOWN are above all codes.
        self._marked[codes[codes.view(np.uint64) < self.size]] = True

    def free(self, dictionary: Dictionary, first: int, end: int) -> int:
        """Free the codes without a mark from one code to before another; returns how many were in use."""
        return dictionary.free_unmarked(self._marked, first, min(end, self.size, len(dictionary)))


def held(batch: CodeBatch, dictionary: Dictionary) -> CodeBatch:
    """The batch, whose strings stay in the dictionary as long as this object lives.

    To be called with what is decoded or committed later, before another version can be.
    """
    dictionary.held.add(batch)
    if dictionary.mark is not None:
        mark_columns(batch, batch.columns.keys(), dictionary)
    return batch


def mark_columns(batch: CodeBatch, names: Collection[str], dictionary: Dictionary) -> None:
    """Mark columns of a batch, those that it has, and results of text functions, if a collection runs."""
    if dictionary.mark is not None:
        for name, column in batch.columns.items():
            if name in names or name.startswith("#"):
                dictionary.mark(column)
