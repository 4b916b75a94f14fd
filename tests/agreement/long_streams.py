"""Long random streams of batches: tables grow, churn, shrink and are emptied, and stay small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.agreement.choices import Choices
from tests.agreement.random_tables import updates
from tests.agreement.scenario import BaseTable, Row, Update, Version

_MOST_ROWS = 9
"""Rows of a table above which most updates are deletes."""
_DELETES = {"grow": 10, "churn": 45, "shrink": 85}
"""Of 100 updates how many are deletes."""

Stored = Mapping[str, Counter[Row]]


class LongStream:
    """Draws one batch after the other.

    ``stored`` has the rows of all tables as they are after the last batch. ``below``: a trusted table may have rows
    below zero; else all are bags after every batch.
    """

    def __init__(self, choose: Choices, tables: Sequence[BaseTable], wild: bool, below: bool) -> None:
        self._choose = choose
        self._tables = tables
        self._wild = wild
        self.below = below
        self.stored: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}

    def batch(self, most: int = 4) -> Version:
        """Updates of one or more tables; a table may come twice."""
        choose = self._choose
        if choose.chance(4):
            # All rows of a table go at once.
            table = choose.pick(self._tables)
            gone = tuple((row, -m) for row, m in self.stored[table.name].items() if m)
            self.stored[table.name].clear()
            return ((table.name, gone),) if gone else self.batch(most)
        chosen = [table for table in self._tables if choose.chance(40)] or [choose.pick(self._tables)]
        if choose.chance(10):
            chosen.append(choose.pick(chosen))
        mode = choose.pick(tuple(_DELETES))
        return tuple((table.name, tuple(self._updates(table, _DELETES[mode], most))) for table in chosen)

    def halved(self) -> Version:
        """Half of the rows of every table go: what follows stays small."""
        version = []
        for table in self._tables:
            held = self.stored[table.name]
            gone = [(row, -m) for row, m in held.items() if m][::2]
            for row, _ in gone:
                del held[row]
            if gone:
                version.append((table.name, tuple(gone)))
        return tuple(version)

    def emptied(self) -> Version:
        """All rows of all tables go."""
        version = tuple(
            (name, tuple((row, -m) for row, m in rows.items() if m))
            for name, rows in self.stored.items()
            if any(rows.values())
        )
        for rows in self.stored.values():
            rows.clear()
        return version

    def is_bag(self) -> bool:
        """Whether no row is below zero."""
        return all(m >= 0 for rows in self.stored.values() for m in rows.values())

    def row(self, table: BaseTable) -> Row:
        """A row of a table, which may be there or not."""
        return updates(self._choose, table, Counter(), self._wild, 0)[0][0]

    def _updates(self, table: BaseTable, deletes: int, most: int) -> list[Update]:
        choose, held = self._choose, self.stored[table.name]
        found: list[Update] = []
        for _ in range(choose.between(1, most)):
            often = max(deletes, 80) if sum(abs(m) for m in held.values()) > _MOST_ROWS else deletes
            new = updates(choose, table, held, self._wild, often)
            if not self.below and any(held[row] < 0 for row, _ in new):
                # The row is there one more time instead.
                for row, m in new:
                    held[row] -= 2 * m
                new = [(row, -m) for row, m in new]
            found += new
            if choose.chance(8):
                # A row that comes and goes within the batch.
                row, m = new[0]
                found += [(row, -m), (row, m)]
        for row in [row for row, m in held.items() if not m]:
            del held[row]
        return found
