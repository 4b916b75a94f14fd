"""Stores sensitivity indices: the intervals of codes in which a change would change the trace (section 4.2).

There is an index per cursor, which is an atom at one of its variables. For variables in the order a, b, c, the
index of ``S(b, c)`` at ``c`` has records like this::

    (b; [low, high]; a; where)

If a row of S with this ``b`` and a ``c`` in the interval changes, the join for this ``a`` runs again from ``where``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from freshviews.program.reference.incremental_trie_join.leapfrog import Position
from freshviews.program.reference.incremental_trie_join.versions import Row

MOST = 32
"""A page with more records is split."""


@dataclass(frozen=True, order=True)
class Record:
    """An interval, ends included, and the binding of the variables beside its prefix."""

    low: int
    beside: Row
    high: int = field(compare=False)
    place: Position = field(compare=False)


@dataclass
class IntervalTree:
    """Records in order, in pages, with the greatest end of each page.

    The records with one prefix are an interval tree (section 3.2): pages in order of ``low``, each with its greatest
    ``high``.
    """

    pages: list[list[Record]] = field(default_factory=lambda: [[]])
    ends: list[int] = field(default_factory=lambda: [0])
    size: int = 0

    def add(self, record: Record) -> None:
        """Add a record, or replace the one with the same start and the same binding."""
        i = self._page(record)
        page = self.pages[i]
        at = bisect_left(page, record)
        if at < len(page) and page[at] == record:
            page[at] = record
        else:
            insort(page, record)
            self.size += 1
        if len(page) > MOST:
            self.pages[i : i + 1] = [page[: MOST // 2], page[MOST // 2 :]]
            self.ends[i : i + 1] = [0, 0]
            self._measure(i + 1)
        self._measure(i)

    def remove(self, low: int, beside: Row) -> Record | None:
        """Remove and return the record with this start and binding, if there is one."""
        wanted = Record(low, beside, 0, Position(0))
        i = self._page(wanted)
        page = self.pages[i]
        at = bisect_left(page, wanted)
        if at == len(page) or page[at] != wanted:
            return None
        record = page.pop(at)
        self.size -= 1
        if not page and len(self.pages) > 1:
            del self.pages[i], self.ends[i]
        else:
            self._measure(i)
        return record

    def find(self, low: int, beside: Row) -> Record | None:
        """The record with this start and binding, if there is one."""
        wanted = Record(low, beside, 0, Position(0))
        page = self.pages[self._page(wanted)]
        at = bisect_left(page, wanted)
        return page[at] if at < len(page) and page[at] == wanted else None

    def stab(self, code: int) -> list[Record]:
        """The records whose interval contains a code."""
        found: list[Record] = []
        for page, end in zip(self.pages, self.ends, strict=True):
            if page and page[0].low > code:
                break
            if page and end >= code:
                found += [record for record in page if record.low <= code <= record.high]
        return found

    def _page(self, record: Record) -> int:
        return max(bisect_right(self.pages, record, key=_first) - 1, 0) if self.pages[0] else 0

    def _measure(self, i: int) -> None:
        self.ends[i] = max((record.high for record in self.pages[i]), default=0)


@dataclass
class SensitivityIndex:
    """The records of one cursor."""

    trees: dict[Row, IntervalTree] = field(default_factory=dict)

    def add(self, above: Row, record: Record) -> None:
        """Record that the trace depends on an interval."""
        self.trees.setdefault(above, IntervalTree()).add(record)

    def remove(self, above: Row, low: int, beside: Row) -> bool:
        """Remove the interval that starts at ``low`` under a binding. Returns whether there was one."""
        tree = self.trees.get(above)
        if tree is None or tree.remove(low, beside) is None:
            return False
        if not tree.size:
            del self.trees[above]
        return True

    def find(self, above: Row, low: int, beside: Row) -> Record | None:
        """The record that starts at ``low`` under a binding, if there is one."""
        tree = self.trees.get(above)
        return tree.find(low, beside) if tree is not None else None

    def stab(self, above: Row, code: int) -> list[Record]:
        """The records whose interval contains a code that is inserted or erased below a branch."""
        tree = self.trees.get(above)
        return tree.stab(code) if tree is not None else []

    def __len__(self) -> int:
        return sum(tree.size for tree in self.trees.values())

    def records(self) -> Iterator[tuple[Row, Record]]:
        """All records, with the codes above them, in order."""
        for above in sorted(self.trees):
            for page in self.trees[above].pages:
                yield from ((above, record) for record in page)


def _first(page: list[Record]) -> Record:
    return page[0]
