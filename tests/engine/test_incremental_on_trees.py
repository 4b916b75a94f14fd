"""Maintenance by trace runs over compiled ordered trees, by their versions, tries and differences."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from freshviews.engine.traces.ordered_tree import OrderedTree
from freshviews.kernel.btree.pages import PAGES
from freshviews.kernel.memory.mem import load, release
from freshviews.kernel.trie.iterator import (
    iter_at_end,
    iter_begin,
    iter_key,
    iter_open,
    iter_room,
    iter_row,
    iter_seek_lub,
    new_iterator,
    open_top,
)
from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule
from freshviews.program.reference.incremental_trie_join.versions import END, Change, Row
from freshviews.ring import INTEGER
from tests.kernel.tree_versions import Differences, TreeVersion
from tests.program.incremental.rules import RULES, Relations, shuffled, taken_in

PAGE_WORDS = 64
"""Few words, so that small trees have levels."""


class Empty:
    """A version without rows, before it is known how many words a row has."""

    def seek(self, above: Row, code: int) -> int:
        return END

    def gap(self, above: Row, code: int) -> int:
        return code

    def carried(self, row: Row) -> None:
        return None

    def edited(self, edits: Iterable[tuple[Row, Any]]) -> Empty | Tree:
        rows = list(edits)
        if not rows:
            return self
        tree = OrderedTree(len(rows[0][0]), 1, page_words=PAGE_WORDS)
        return Tree(tree, TreeVersion(tree)).edited(rows)

    def changes(self, new: Any) -> Iterator[Change]:
        if isinstance(new, Tree):
            empty = Tree(new.tree, new.first)
            yield from empty.changes(new)


class Tree:
    """A version of an ordered tree as a trie whose rows carry one word."""

    def __init__(self, tree: OrderedTree, version: TreeVersion, first: TreeVersion | None = None) -> None:
        self.tree, self.version = tree, version
        self.first = version if first is None else first

    def _walked(self, path: Row, code: int, wanted: type) -> Any:
        """The end of a walk down the path: the key, or the payload of the row; END if the path ends."""
        it = new_iterator(self.tree.key)
        try:
            iter_begin(it, self.version.root)
            for depth, sought in enumerate((*path, code)):
                if depth == 0:
                    open_top(it)
                else:
                    iter_open(it, depth)
                sought = max(sought, -(2**63))
                if not iter_at_end(it, depth) and iter_key(it, depth) < sought:
                    iter_seek_lub(it, depth, sought)
                if iter_at_end(it, depth) or (depth < len(path) and iter_key(it, depth) != sought):
                    return END
            found = iter_key(it, len(path))
            if wanted is Change and found == code:
                return load(iter_row(it, len(path)), iter_room(it, len(path)) * self.tree.key)
            return END if wanted is Change else found
        finally:
            release(it)

    def seek(self, above: Row, code: int) -> int:
        return END if code == END else int(self._walked(above, code, int))

    def gap(self, above: Row, code: int) -> int:
        return self.version.gap((*above, code))

    def carried(self, row: Row) -> int | None:
        found = self._walked(row[:-1], row[-1], Change)
        return None if found == END else int(found)

    def edited(self, edits: Iterable[tuple[Row, Any]]) -> Tree:
        rows = list(edits)
        columns = [np.array([row[i] for row, _ in rows], np.int64) for i in range(self.tree.key)]
        payload = np.array([carried or 0 for _, carried in rows], np.int64)
        signs = np.array([-1 if carried is None else 1 for _, carried in rows], np.int64)
        self.tree.apply([*columns, payload], signs)
        return Tree(self.tree, TreeVersion(self.tree), self.first)

    def changes(self, new: Any) -> Iterator[Change]:
        found: dict[Row, list[int | None]] = {}
        for one in Differences(self.version, new.version):
            found.setdefault(one.row[:-1], [None, None])[one.sign > 0] = one.row[-1]
        assert list(found) == sorted(found)
        yield from (Change(row, before, after) for row, (before, after) in found.items())


ON_TREES = [
    "triangle", "path", "triangle of one relation", "two cycles", "negated", "negated sets below another", "paper",
]  # fmt: skip


@pytest.mark.parametrize("name", ON_TREES)
def test_the_reference_trie_join_reads_ordered_trees(name: str) -> None:
    for seed in range(2):
        choices = random.Random(f"{name} {seed}")
        one = replace(shuffled(RULES[name], choices), keep_all=seed == 1)
        plain, on_trees = MaintainedRule(one, INTEGER), MaintainedRule(one, INTEGER, empty=Empty())
        relations = Relations(one)
        held: dict[Row, int] = {}
        for batch in range(12):
            edits = relations.some_edits(choices, 9, 80 if batch == 0 else choices.choice([1, 5]), several=seed == 0)
            relations.apply(edits)
            delta = on_trees.apply(edits)
            assert delta == plain.apply(edits)
            assert on_trees.counters == plain.counters
            held = taken_in(held, delta)
        assert held == relations.derivations()


def test_the_old_and_the_new_version_of_a_tree_can_be_read_together() -> None:
    """One page of the tree differs: both walks read the pages that the versions share."""
    tree = OrderedTree(1, 1, page_words=PAGE_WORDS)
    old = Tree(tree, TreeVersion(tree)).edited(((i,), 1) for i in range(500))
    pages = load(tree.handle, PAGES)
    new = old.edited([((250,), None)])
    assert (old.seek((), 250), new.seek((), 250)) == (250, 251)
    assert load(tree.handle, PAGES) - pages < 6
    assert list(old.changes(new)) == [Change((250,), 1, None)]
