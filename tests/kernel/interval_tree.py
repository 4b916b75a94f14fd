"""Interval trees of ``kernel.trace.intervals``, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.traces.ordered_tree import Fold, OrderedTree
from freshviews.errors import OutOfMemory
from freshviews.kernel.btree.folds import GREATEST
from freshviews.kernel.btree.tree import USUAL_PAGE_WORDS
from freshviews.kernel.memory.mem import allocate, copy_words, load, release
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.trace.intervals import STACK_WORDS, remove_found, stab


class IntervalTree(OrderedTree):
    """Closed intervals with ``prefix`` words before and ``context`` words behind them: columns are the prefix, start,
    end, context. They are inserted and deleted as rows of an ordered tree; ``stab`` finds those that contain a value.
    """

    def __init__(self, prefix: int = 0, context: int = 0, *, page_words: int = USUAL_PAGE_WORDS) -> None:
        super().__init__(prefix + 2 + context, folds=(Fold(GREATEST, prefix + 1),), page_words=page_words)
        self.prefix = prefix
        self.pages_read = 0
        self._stack = allocate(STACK_WORDS)
        self._found = buffers.new_buffer(self.key)
        if 0 in (self._stack, self._found):
            raise OutOfMemory("memory ran out while an interval tree was made")

    def stab(self, values: Sequence[Sequence[int]], *, remove: bool = False) -> Codes:
        """The intervals that contain a value under a prefix, for each (prefix ..., value), as rows of the key.
        ``remove`` deletes them from the tree; then each is returned once, in order."""
        buffers.clear_buffer(self._found)
        for value in values:
            words = np.array(value, np.int64)
            if len(words) != self.prefix + 1:
                raise ValueError(f"a stab takes {self.prefix} words of prefix and a value, not {len(words)} words")
            key = address_of(words)[0]
            self.pages_read += stab(
                self.root, self.prefix, self.key, self.prefix + 1, self.key, key, self._found, self._stack
            )
        if load(self._found, buffers.FAILED):
            raise OutOfMemory("memory ran out; intervals were not found")
        if remove and remove_found(self.handle, self._found) == 0:
            raise OutOfMemory("memory ran out; intervals were not removed")
        count = load(self._found, buffers.COUNT)
        rows = np.empty((count, self.key), np.int64)
        if count:
            copy_words(address_of(rows.ravel())[0], load(self._found, buffers.ROWS), count * self.key)
        return np.unique(rows, axis=0) if remove else rows

    def close(self) -> None:
        super().close()
        buffers.free_buffer(self._found)
        release(self._stack)
        self._found = self._stack = 0
