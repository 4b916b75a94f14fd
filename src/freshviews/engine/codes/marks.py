"""Marks the codes of strings in use. The collection of strings (``engine.commit.collection``) frees all other codes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.words import words_in
from freshviews.kernel.hash.table import KEY, PAYLOAD, ROWS, WIDTH
from freshviews.kernel.memory.mem import load
from freshviews.types.dictionary import Dictionary


def columns_of(table: int, first: int, end: int, positions: Iterable[int]) -> Iterator[Codes]:
    """The words at each of ``positions`` in the rows of a table from number ``first`` to before ``end``."""
    width, key = load(table, WIDTH), load(table, KEY)
    rows = words_in(load(table, ROWS) + 8 * first * width, max(end - first, 0), width)
    there = rows[:, key : key + load(table, PAYLOAD)].any(axis=1)
    for position in positions:
        yield rows[there, position]


class Marks:
    """Marks for the codes that a dictionary has now; later codes have no mark and count as in use."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.size = len(dictionary)
        self._marked = np.zeros(self.size, np.bool_)

    def words(self, codes: Codes) -> None:
        """Mark codes; words that are not codes are ignored."""
        # NULL and UNKNOWN as unsigned numbers are above all codes.
        self._marked[codes[codes.view(np.uint64) < self.size]] = True

    def free(self, dictionary: Dictionary, first: int, end: int) -> int:
        """Free the codes without a mark from ``first`` to before ``end``; returns how many were in use."""
        return dictionary.free_unmarked(self._marked, first, min(end, self.size, len(dictionary)))


def keep_strings(batch: CodeBatch, dictionary: Dictionary) -> CodeBatch:
    """The batch, registered so that its strings stay in the dictionary while this object lives.

    Register batches that are decoded or committed later, before the next version.
    """
    dictionary.held.add(batch)
    if dictionary.mark is not None:
        mark_columns(batch, batch.columns.keys(), dictionary)
    return batch


def mark_columns(batch: CodeBatch, names: Collection[str], dictionary: Dictionary) -> None:
    """Mark the columns ``names`` that a batch has, and its results of text functions, if a collection runs."""
    if dictionary.mark is not None:
        for name, column in batch.columns.items():
            if name in names or name.startswith("#"):
                dictionary.mark(column)
