"""Keeps versions of ordered rows, reads a version as a trie, and finds the difference of two versions.

A version is a sequence of immutable pages; an edit copies only the pages that it changes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from freshviews.records import dataclass

Row = tuple[int, ...]
Entry = tuple[Row, Any]
Page = tuple[Entry, ...]

BEFORE = -(2**63) - 1
"""Less than every code: the start of an iterator."""
END = 2**63
"""Greater than every code: the position of an iterator at its end."""
ROOM = 32


@dataclass(frozen=True)
class Change:
    """A row that differs between two versions, and its elements before and after; None if it is absent."""

    row: Row
    before: Any
    after: Any


class Trie(Protocol):
    """The interface of a version of ordered rows. ``Version`` implements it here; compiled tries do, too."""

    def seek(self, above: Row, code: int) -> int:
        """The least code of at least ``code`` below the node that the codes ``above`` lead to, or END."""

    def gap(self, above: Row, code: int) -> int:
        """The least code of at least ``code`` that is missing below the node of the codes ``above``, which are all
        columns except the last; or END."""

    def carried(self, row: Row) -> Any:
        """The element that a row carries; None if it is absent."""

    def edited(self, edits: Iterable[tuple[Row, Any]]) -> Trie:
        """A new version with other elements of rows, None for a removed row. This version is unchanged."""

    def changes(self, new: Any) -> Iterator[Change]:
        """The rows that differ between this version and a newer one, in order."""


def has_branch(trie: Trie, path: Row) -> bool:
    """True if a row of a trie begins with a path of one code or more."""
    return trie.seek(path[:-1], path[-1]) == path[-1]


@dataclass(frozen=True)
class Version:
    """Rows in order, in pages; no page is empty.

    A row is a tuple of codes that *carries* a ring element, for example its multiplicity.
    """

    pages: tuple[Page, ...] = ()

    def seek(self, above: Row, code: int) -> int:
        """The least code of at least ``code`` below the node that the codes ``above`` lead to, or END."""
        wanted = (*above, code)
        i = self._page(wanted)
        while i < len(self.pages):
            page = self.pages[i]
            at = bisect_left(page, wanted, key=_row)
            if at < len(page):
                row = page[at][0]
                return row[len(above)] if row[: len(above)] == above else END
            i += 1
        return END

    def gap(self, above: Row, code: int) -> int:
        """The least code of at least ``code`` that is missing below the node of the codes ``above``, which are all
        columns except the last; or END. It skips full pages by binary search."""
        wanted = (*above, code)
        i = self._page(wanted)
        at = bisect_left(self.pages[i], wanted, key=_row) if self.pages else 0
        for page in self.pages[i:]:
            run = _run(page, at, above, code)
            code += run
            if at + run < len(page):
                break
            at = 0
        return code

    def carried(self, row: Row) -> Any:
        """The element that a row carries; None if it is absent."""
        i = self._page(row)
        if i < len(self.pages):
            at = bisect_left(self.pages[i], row, key=_row)
            if at < len(self.pages[i]) and self.pages[i][at][0] == row:
                return self.pages[i][at][1]
        return None

    def rows(self) -> Iterator[Entry]:
        """All rows in order."""
        for page in self.pages:
            yield from page

    def below(self, path: Row) -> Iterator[Row]:
        """The rows that begin with a path, in order."""
        for page in self.pages[self._page(path) :]:
            for row, _ in page[bisect_left(page, path, key=_row) :]:
                if row[: len(path)] != path:
                    return
                yield row

    def edited(self, edits: Iterable[tuple[Row, Any]]) -> Version:
        """A new version with other elements of rows, None for a removed row."""
        by_page: dict[int, dict[Row, Any]] = {}
        for row, carried in edits:
            by_page.setdefault(self._page(row), {})[row] = carried
        pages: list[Page] = []
        for i, page in enumerate(self.pages or ((),)):
            if i not in by_page:
                pages.append(page)
                continue
            merged = {**dict(page), **by_page[i]}
            kept = sorted(((r, c) for r, c in merged.items() if c is not None), key=_row)
            if tuple(kept) == page:
                pages.append(page)
                continue
            pages += [tuple(kept[j : j + ROOM]) for j in range(0, len(kept), ROOM)]
        return Version(tuple(page for page in pages if page))

    def changes(self, new: Version) -> Iterator[Change]:
        """The rows that differ between this version and another, in order. It does not read pages that both share."""
        shared = {id(page) for page in self.pages}.intersection(id(page) for page in new.pages)
        before = {row: carried for page in self.pages if id(page) not in shared for row, carried in page}
        after = {row: carried for page in new.pages if id(page) not in shared for row, carried in page}
        for row in sorted(before.keys() | after.keys()):
            if before.get(row) != after.get(row):
                yield Change(row, before.get(row), after.get(row))

    def _page(self, row: Row) -> int:
        """The number of the page where a row is or would be."""
        return max(bisect_right(self.pages, row, key=_first) - 1, 0)


def _run(page: Page, at: int, above: Row, code: int) -> int:
    """The length of the run of rows from ``at`` on, below one node, with consecutive codes from ``code`` on."""
    return bisect_left(range(at, len(page)), True, key=lambda i: page[i][0] != (*above, code + i - at))


def _row(entry: Entry) -> Row:
    return entry[0]


def _first(page: Page) -> Row:
    return page[0][0]
