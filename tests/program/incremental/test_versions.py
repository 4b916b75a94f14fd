"""Versions against dicts, differences against sets, interval trees against lists."""

from __future__ import annotations

import random

from freshviews.program.reference.incremental_trie_join.leapfrog import Position
from freshviews.program.reference.incremental_trie_join.sensitivity import IntervalTree, Record
from freshviews.program.reference.incremental_trie_join.versions import BEFORE, END, Version


def test_old_versions_never_change() -> None:
    choices = random.Random(1)
    version, kept = Version(), []
    rows: dict[tuple[int, ...], int] = {}
    for _ in range(60):
        edits: dict[tuple[int, ...], int | None] = {
            (choices.randrange(20), choices.randrange(20)): choices.choice([1, 2, None])
            for _ in range(choices.choice([1, 30]))
        }
        version = version.edited(edits.items())
        rows = {row: m for row, m in {**rows, **edits}.items() if m is not None}
        kept.append((version, rows))
    for version, rows in kept:
        assert list(version.rows()) == sorted(rows.items())
        for above in ((), (7,)):
            for code in (BEFORE, 0, 5, 19, 20):
                below = {row[len(above)] for row in rows if row[: len(above)] == above}
                assert version.seek(above, code) == min((c for c in below if c >= code), default=END)
    for (old, before), (new, after) in zip(kept, kept[5:], strict=False):
        differing = {row for row in before.keys() | after.keys() if before.get(row) != after.get(row)}
        found = list(old.changes(new))
        assert [change.row for change in found] == sorted(differing)
        assert all((c.before, c.after) == (before.get(c.row), after.get(c.row)) for c in found)


def test_an_edit_copies_only_the_pages_it_changes() -> None:
    old = Version().edited(((i,), 1) for i in range(1000))
    new = old.edited([((500,), None)])
    assert sum(page not in old.pages for page in new.pages) == 1
    assert old.edited([((500,), 1), ((2000,), None)]).pages == old.pages


def test_an_interval_tree_finds_the_same_intervals_as_a_list() -> None:
    choices = random.Random(2)
    tree = IntervalTree()
    listed: dict[tuple[int, tuple[int, ...]], int] = {}
    for _ in range(1500):
        low, beside = choices.randrange(200), (choices.randrange(3),)
        if choices.random() < 0.35:
            assert (tree.remove(low, beside) is None) == (listed.pop((low, beside), None) is None)
        else:
            high = low + choices.choice([0, 1, 5, 120])
            tree.add(Record(low, beside, high, Position(low)))
            listed[low, beside] = high
        code = choices.randrange(320)
        found = [(record.low, record.beside) for record in tree.stab(code)]
        assert found == sorted(key for key, high in listed.items() if key[0] <= code <= high)
        assert tree.size == len(listed)
