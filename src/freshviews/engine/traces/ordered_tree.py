"""Owns an ordered tree: a B+-tree of rows in native memory. The rows are inserted and deleted as columns of codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.errors import OutOfMemory
from freshviews.kernel.btree.folds import FUNCTION, KIND, WORD, fold_at, rows_below
from freshviews.kernel.btree.load import edit_in_order, load_rows
from freshviews.kernel.btree.pages import NEWEST, ROOT, free_tree, tree_bytes
from freshviews.kernel.btree.tree import USUAL_PAGE_WORDS, new_tree
from freshviews.kernel.memory.mem import load, store
from freshviews.records import dataclass


@dataclass(frozen=True)
class Fold:
    """A fold over one word of every row: ``kind`` of ``kernel.btree.folds``, ``word`` counts the key first, then the
    payload; ``function`` is the address of an OWN fold's C function, which the caller keeps alive."""

    kind: int
    word: int
    function: int = 0


class OrderedTree:
    """A versioned B+-tree of rows of ``key`` + ``payload`` words; ``summed`` as in ``kernel.btree.tree``.

    One thread at a time may call methods. ``close`` frees the memory, and ends all versions.
    """

    def __init__(
        self,
        key: int,
        payload: int = 0,
        *,
        summed: bool = False,
        folds: Sequence[Fold] = (),
        page_words: int = USUAL_PAGE_WORDS,
    ) -> None:
        self.key = key
        self.payload = payload
        self.folds = tuple(folds)
        self.handle = new_tree(key, payload, int(summed), len(folds), page_words)
        if self.handle == 0:
            raise OutOfMemory("memory ran out while an ordered tree was made")
        for f, fold in enumerate(folds):
            at = fold_at(self.handle, f)
            store(at, KIND, fold.kind)
            store(at, WORD, fold.word)
            store(at, FUNCTION, fold.function)

    def load(self, columns: Sequence[Codes]) -> None:
        """Load rows in any order into an empty tree without versions; sorted rows are not moved.

        Equal keys become one row, with the last payload or the sum of all. OutOfMemory leaves the tree empty.
        """
        if len(self) or load(self.handle, NEWEST):
            raise ValueError("rows can be loaded only into an empty tree without versions; apply edits instead")
        batch, rows = self._batch(columns, None)
        if rows and load_rows(self.handle, address_of(batch)[0], rows) == 0:
            raise OutOfMemory(f"memory ran out while {rows} rows were loaded into an ordered tree")

    def apply(self, columns: Sequence[Codes], signs: Codes | None = None) -> None:
        """Apply edits in any order, equal keys in the given order; sign +1 inserts or replaces, -1 deletes.

        OutOfMemory leaves a part of the edits applied; ``revert`` undoes them.
        """
        batch, rows = self._batch(columns, signs)
        if rows and edit_in_order(self.handle, address_of(batch)[0], rows) == 0:
            raise OutOfMemory(f"memory ran out during {rows} edits of an ordered tree; revert to its last version")

    def _batch(self, columns: Sequence[Codes], signs: Codes | None) -> tuple[Codes, int]:
        width = self.key + self.payload
        if len(columns) != width:
            raise ValueError(f"{len(columns)} columns given, but the tree has {width}")
        rows = len(columns[0])
        every = (*columns, *(() if signs is None else (signs,)))
        if any(len(column) != rows for column in every):
            raise ValueError("columns of one batch have different lengths")
        if any(column.dtype != np.int64 for column in every):
            raise ValueError("columns and signs of a tree's edits must be int64")
        places = [address_of(column) for column in columns]
        places.append((0, 0) if signs is None else address_of(signs))
        return np.array(places, np.int64).ravel(), rows

    @property
    def root(self) -> int:
        """The current root page; valid until the next edit."""
        return load(self.handle, ROOT)

    def __len__(self) -> int:
        return rows_below(self.root, self.key)

    @property
    def bytes(self) -> int:
        return tree_bytes(self.handle)

    def close(self) -> None:
        if self.handle:
            free_tree(self.handle)
            self.handle = 0

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.close()
