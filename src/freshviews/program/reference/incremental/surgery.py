"""Tree surgery: what a change of rows does to the trie that presents them (section 4.2.1).

The rows 3-40-90 and 3-50-91 are one branch at 3 with two below it. Erasing the first of them erases the branch 3-40 as
well, and leaves 3. So an operation at depth ``j`` inserts or erases the branch that ``j`` codes lead to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from freshviews.program.reference.incremental.versions import END, Row, Trie, has_branch


@dataclass(frozen=True)
class Surgery:
    """A branch, by the codes that lead to it, that was inserted or erased.

    ``whole``: the branch that it grew from is in both versions, so no other operation takes this one along.
    A row that is in both versions and carries something else is no surgery of the trie: it is ``carries``.
    """

    path: Row
    inserted: bool
    whole: bool = True
    carries: bool = False

    def __str__(self) -> str:
        kind = "CARRY" if self.carries else "INSERT" if self.inserted else "ERASE"
        return f"{kind} {'-'.join(map(str, self.path))}"


def surgeries(old: Trie, new: Trie) -> Iterator[Surgery]:
    """The operations that make the trie of one version that of another, each once; erased branches from the leaves
    up, inserted ones from the root down, as rows come."""
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
            # Of several rows of one branch, the first inserted makes it, and the last erased takes it.
            if not inserted and depth < len(row) and _comes_again(held, path, row):
                break
            seen.add(path)
            found.append(Surgery(path, inserted, whole=depth == 1 or has_branch(without, path[:-1])))
        yield from reversed(found) if inserted else found


def _comes_again(held: Trie, path: Row, row: Row) -> bool:
    """Whether a row after this one has the path."""
    return any(held.seek(row[:depth], row[depth] + 1) < END for depth in range(len(path), len(row)))
