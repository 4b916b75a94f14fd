"""Computes tree surgery: the branches that a change of rows inserts into a trie or erases from it (section 4.2.1).

The rows 3-40-90 and 3-50-91 share the branch 3. Erasing the first row erases the branches 3-40-90 and 3-40, but not 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.program.reference.incremental_trie_join.versions import END, Row, Trie, has_branch
from freshviews.records import dataclass


@dataclass(frozen=True)
class Surgery:
    """An inserted or erased branch. ``path``: the codes that lead to it.

    ``whole``: its parent branch is in both versions, so that no other operation includes this one. ``carries``: the row
    is in both versions with different elements; the trie itself does not change.
    """

    path: Row
    inserted: bool
    whole: bool = True
    carries: bool = False

    def __str__(self) -> str:
        kind = "CARRY" if self.carries else "INSERT" if self.inserted else "ERASE"
        return f"{kind} {'-'.join(map(str, self.path))}"


def surgeries(old: Trie, new: Trie) -> Iterator[Surgery]:
    """The operations that turn the trie of one version into that of another, each once, in order of rows: erased
    branches from the leaf up, inserted ones from the root down."""
    seen: set[Row] = set()
    for change in old.changes(new):
        row = change.row
        if change.before is not None and change.after is not None:
            yield Surgery(row, True, carries=True)
            continue
        inserted = change.before is None
        without, held = (old, new) if inserted else (new, old)
        found: list[Surgery] = []
        for depth in range(len(row), 0, -1):
            path = row[:depth]
            if depth < len(row) and (path in seen or has_branch(without, path)):
                break
            # The first inserted row of a branch inserts it; the last erased row of a branch erases it.
            if not inserted and depth < len(row) and _comes_again(held, path, row):
                break
            seen.add(path)
            found.append(Surgery(path, inserted, whole=depth == 1 or has_branch(without, path[:-1])))
        yield from reversed(found) if inserted else found


def _comes_again(held: Trie, path: Row, row: Row) -> bool:
    """True if a later row has the path."""
    return any(held.seek(row[:depth], row[depth] + 1) < END for depth in range(len(path), len(row)))
