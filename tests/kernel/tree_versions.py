"""Versions of ordered trees, and the differences between two of them, read row by row."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np

from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.btree.difference import (
    DELTA_PAGES,
    delta_begin,
    delta_branch,
    delta_next,
    delta_word,
    new_delta,
)
from freshviews.kernel.btree.folds import rows_below
from freshviews.kernel.btree.pages import COUNT, LEVEL, READERS, TOP, child_at, column, pin, revert, unpin
from freshviews.kernel.memory.mem import load, release
from freshviews.kernel.trie.complement import run_length


class TreeVersion:
    """The current state of a tree, pinned until it is released; also a context manager."""

    def __init__(self, tree: OrderedTree) -> None:
        self.tree = tree
        self.handle = pin(tree.handle)
        assert self.handle
        self.root = load(self.handle, TOP)

    def __len__(self) -> int:
        return rows_below(self.root, self.tree.key)

    @property
    def readers(self) -> int:
        return load(self.handle, READERS)

    def columns(self) -> list[Codes]:
        """The rows in order, key and payload, read leaf by leaf."""
        parts: list[list[Codes]] = [[] for _ in range(self.tree.key + self.tree.payload)]
        for leaf in leaves(self.root, self.tree.key):
            rows = load(leaf, COUNT)
            for c, part in enumerate(parts):
                words = (ctypes.c_int64 * rows).from_address(column(leaf, c))
                part.append(np.frombuffer(words, np.int64, rows).copy() if rows else np.empty(0, np.int64))
        return [np.concatenate(part) for part in parts]

    def gap(self, key: Sequence[int]) -> int:
        """The least last word, not less than the key's, that no row with the key's prefix has."""
        words = np.array(key, np.int64)
        return key[-1] + run_length(self.root, self.tree.key, address_of(words)[0])

    def revert(self) -> None:
        """Undo all edits of the tree since this version, which is its newest."""
        revert(self.tree.handle, self.handle)

    def release(self) -> None:
        """Unpin the version; a second call does nothing."""
        if self.handle and self.tree.handle:
            unpin(self.tree.handle, self.handle)
        self.handle = 0

    def __enter__(self) -> TreeVersion:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def leaves(page: int, k: int) -> Iterator[int]:
    """The leaves below a page, in order."""
    if load(page, LEVEL) == 0:
        yield page
        return
    for i in range(load(page, COUNT)):
        yield from leaves(child_at(page, k, i), k)


@dataclass(frozen=True)
class Difference:
    """A row that was deleted (sign -1) or inserted (1), with its branches of the trie from ``depth`` on."""

    sign: int
    row: tuple[int, ...]
    depth: int


class Differences:
    """The differences from one version to a later one, in the order of keys. ``pages`` counts the pages opened."""

    def __init__(self, old: TreeVersion, new: TreeVersion) -> None:
        self.width = old.tree.key + old.tree.payload
        self._versions = old, new
        self._handle = new_delta(old.tree.key, old.tree.payload)
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
        release(self._handle)
