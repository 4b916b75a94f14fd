"""Ordered trees and their versions, held from Python: columns of codes in, columns of codes out.

A thin face over ``kernel.btree.pages`` and its neighbours. Kernels and generated code take ``OrderedTree.handle`` and
``TreeVersion.root``, and go on by address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.errors import OutOfMemory
from freshviews.kernel.btree import pages
from freshviews.kernel.btree.difference import (
    DELTA_PAGES,
    delta_begin,
    delta_branch,
    delta_next,
    delta_word,
    new_delta,
)
from freshviews.kernel.btree.folds import FUNCTION, KIND, VALUE, WORD, fold_at
from freshviews.kernel.btree.load import edit_in_order, load_rows
from freshviews.kernel.btree.pages import (
    COPIED,
    PAGES,
    READERS,
    ROOT,
    TOP,
    VISITED,
    free_tree,
    pin,
    revert,
    tree_bytes,
    unpin,
)
from freshviews.kernel.btree.scan import SCAN_WORDS, copy_rows, fold_interval, rank, row_count
from freshviews.kernel.btree.tree import USUAL_PAGE_WORDS, new_tree
from freshviews.kernel.memory.mem import load, release, store
from freshviews.kernel.trie.complement import run_length


@dataclass(frozen=True)
class Fold:
    """A fold over one word of every row: ``kind`` of ``kernel.btree.folds``, ``word`` counts the key first, then the
    payload; ``function`` is the address of an OWN fold's C function, which the caller keeps alive."""

    kind: int
    word: int
    function: int = 0


class OrderedTree:
    """A versioned B+-tree of rows of ``key`` + ``payload`` words; ``summed`` as in ``kernel.btree.tree``.

    All methods are for one thread at a time. ``close`` gives the memory back, and ends all versions.
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
            raise OutOfMemory("memory ran out; an ordered tree could not be made")
        for f, fold in enumerate(folds):
            at = fold_at(self.handle, f)
            store(at, KIND, fold.kind)
            store(at, WORD, fold.word)
            store(at, FUNCTION, fold.function)

    def load(self, columns: Sequence[Codes]) -> None:
        """Fill the tree, which is empty and has no version, with rows in any order; sorted ones are not moved.

        Equal keys become one row: with the last payload, or the sum of them. OutOfMemory leaves it empty.
        """
        if len(self) or load(self.handle, pages.NEWEST):
            raise ValueError("a tree that has rows or versions is not loaded; apply edits instead")
        batch, rows = self._batch(columns, None)
        if rows and load_rows(self.handle, address_of(batch)[0], rows) == 0:
            raise OutOfMemory(f"memory ran out; {rows} rows were not loaded")

    def apply(self, columns: Sequence[Codes], signs: Codes | None = None) -> None:
        """Make edits, in any order, equal keys in the order given; sign +1 inserts or replaces, -1 deletes.

        OutOfMemory leaves part of the edits made; ``revert`` takes them back.
        """
        batch, rows = self._batch(columns, signs)
        if rows and edit_in_order(self.handle, address_of(batch)[0], rows) == 0:
            raise OutOfMemory(f"memory ran out within {rows} edits; revert to the last version")

    def _batch(self, columns: Sequence[Codes], signs: Codes | None) -> tuple[Codes, int]:
        width = self.key + self.payload
        if len(columns) != width:
            raise ValueError(f"{len(columns)} columns were given, and the tree has {width}")
        rows = len(columns[0])
        every = (*columns, *(() if signs is None else (signs,)))
        if any(len(column) != rows for column in every):
            raise ValueError("columns of one batch have different lengths")
        if any(column.dtype != np.int64 for column in every):
            raise ValueError("columns and signs of a tree's edits are int64")
        places = [address_of(column) for column in columns]
        places.append((0, 0) if signs is None else address_of(signs))
        return np.array(places, np.int64).ravel(), rows

    def version(self) -> TreeVersion:
        """Keep the present state; to be released."""
        handle = pin(self.handle)
        if handle == 0:
            raise OutOfMemory("memory ran out; the version was not made")
        return TreeVersion(self, handle)

    def revert(self, version: TreeVersion) -> None:
        """Take back all edits since the newest version."""
        if load(self.handle, pages.NEWEST) != version.handle:
            raise ValueError("a tree goes back to its newest version only")
        revert(self.handle, version.handle)

    @property
    def root(self) -> int:
        """The root page as it is now; good until the next edit."""
        return load(self.handle, ROOT)

    def __len__(self) -> int:
        return row_count(self.root, self.key)

    @property
    def pages(self) -> int:
        """Pages of the tree and of all its versions together."""
        return load(self.handle, PAGES)

    @property
    def copied(self) -> int:
        """Pages ever copied because a version had them."""
        return load(self.handle, COPIED)

    @property
    def visited(self) -> int:
        """Pages that edits ever went through."""
        return load(self.handle, VISITED)

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


class TreeVersion:
    """A state of a tree that stays as it is until it is released; also a context."""

    def __init__(self, tree: OrderedTree, handle: int) -> None:
        self.tree = tree
        self.handle = handle
        self.root = load(handle, TOP)

    def __len__(self) -> int:
        return row_count(self.root, self.tree.key)

    @property
    def readers(self) -> int:
        return load(self.handle, READERS)

    def columns(self, start: int = 0, stop: int | None = None) -> list[Codes]:
        """The rows from one place in the order to another, key and payload."""
        rows = len(self)
        stop = rows if stop is None or stop > rows else stop
        width = self.tree.key + self.tree.payload
        found = [np.empty(max(stop - start, 0), np.int64) for _ in range(width)]
        if stop > start:
            places = np.array([address_of(column)[0] for column in found], np.int64)
            copy_rows(self.root, self.tree.key, width, start, stop, address_of(places)[0])
        return found

    def first(self, rows: int, prefix: Sequence[int] = ()) -> list[Codes]:
        """The first so many rows, of those with a prefix: O(log n) pages and those of the rows."""
        start, stop = self._places(prefix, prefix)
        return self.columns(start, min(start + rows, stop))

    def last(self, rows: int, prefix: Sequence[int] = ()) -> list[Codes]:
        """The last so many rows, in rising order, of those with a prefix."""
        start, stop = self._places(prefix, prefix)
        return self.columns(max(stop - rows, start), stop)

    def count(self, low: Sequence[int] = (), high: Sequence[int] = ()) -> int:
        """Rows of an interval, from one prefix of a key to another, both inclusive."""
        start, stop = self._places(low, high)
        return max(stop - start, 0)

    def _places(self, low: Sequence[int], high: Sequence[int]) -> tuple[int, int]:
        a, b = np.array(low, np.int64), np.array(high, np.int64)
        k = self.tree.key
        start = rank(self.root, k, len(a), address_of(a)[0], 0) if len(a) else 0
        return start, rank(self.root, k, len(b), address_of(b)[0], 1) if len(b) else len(self)

    def fold(self, f: int, low: Sequence[int] = (), high: Sequence[int] = ()) -> int | None:
        """Fold number ``f`` of the rows of an interval; None where there are none."""
        a, b, result = np.array(low, np.int64), np.array(high, np.int64), np.zeros(SCAN_WORDS, np.int64)
        places = [address_of(array)[0] for array in (a, b, result)]
        handle, k = self.tree.handle, self.tree.key
        found = fold_interval(handle, self.root, k, f, len(a), places[0], len(b), places[1], places[2])
        return int(result[VALUE]) if found else None

    def gap(self, key: Sequence[int]) -> int:
        """The least last word, from that of a key on, with which there is no row under the key's prefix."""
        words = np.array(key, np.int64)
        return key[-1] + run_length(self.root, self.tree.key, address_of(words)[0])

    def release(self) -> None:
        """One reader less; twice does no harm."""
        if self.handle and self.tree.handle:
            unpin(self.tree.handle, self.handle)
        self.handle = 0

    def __enter__(self) -> TreeVersion:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@dataclass(frozen=True)
class Difference:
    """A row that went (sign -1) or came (1); branches of the trie from ``depth`` on went or came with it."""

    sign: int
    row: tuple[int, ...]
    depth: int


class Differences:
    """The differences from one version of a tree to a later one, in the order of keys; an iterator over rows.

    For tests and for changes that are handed out one by one; kernels use ``kernel.btree.difference``. ``pages`` is the
    number of pages opened.
    """

    def __init__(self, old: TreeVersion, new: TreeVersion) -> None:
        self.width = old.tree.key + old.tree.payload
        self._versions = old, new
        self._handle = new_delta(old.tree.key, old.tree.payload)
        if self._handle == 0:
            raise OutOfMemory("memory ran out; versions were not compared")
        delta_begin(self._handle, old.root, new.root)

    def __iter__(self) -> Iterator[Difference]:
        d = self._handle
        while (sign := delta_next(d)) != 0:
            row = tuple(delta_word(d, c) for c in range(self.width))
            yield Difference(sign, row, delta_branch(d))

    @property
    def pages(self) -> int:
        return load(self._handle, DELTA_PAGES)

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            release(self._handle)
