"""Long random streams of batches: tables grow, churn, shrink and are emptied, and stay small."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from tests.agreement.choices import Choices
from tests.agreement.random_tables import updates
from tests.agreement.scenario import BaseTable, Row, Update, Version

_DELETES = {"grow": 10, "churn": 45, "shrink": 85}
"""Percentage of deletes among updates."""


class Stored:
    """The rows of tables. A table with a window has the latest arrivals."""

    def __init__(self, tables: Iterable[BaseTable]) -> None:
        self.rows: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}
        self._arrived = {table.name: deque[Row](maxlen=table.window) for table in tables if table.window}

    def apply(self, version: Version) -> None:
        """Apply the updates of a batch."""
        for table, changes in version:
            if table in self._arrived:
                self._arrived[table].extend(row for row, _ in changes)
                self.rows[table] = Counter(self._arrived[table])
                continue
            for row, m in changes:
                self.rows[table][row] += m
            self.rows[table] = Counter({row: m for row, m in self.rows[table].items() if m})

    def copy(self) -> Stored:
        other = Stored(())
        other.rows = {name: Counter(rows) for name, rows in self.rows.items()}
        other._arrived = {name: rows.copy() for name, rows in self._arrived.items()}
        return other

    def is_bag(self) -> bool:
        """True if no multiplicity is negative."""
        return all(m >= 0 for rows in self.rows.values() for m in rows.values())


class LongStream:
    """Draws one batch after the other.

    ``stored`` has the rows of all tables after the last batch. ``below``: rows of a trusted table may become negative;
    else all tables are bags after every batch. ``rows``: in a table with more rows, most updates are deletes.
    ``fixed``: until ``grow``, columns with a DEFAULT have it in every row.
    """

    def __init__(
        self, choose: Choices, tables: Sequence[BaseTable], below: bool, rows: int, fixed: bool = False
    ) -> None:
        self._choose = choose
        self._tables = [table.with_fixed(fixed) for table in tables]
        self._rows = rows
        self.below = below
        self.stored = Stored(tables)

    def grow(self) -> None:
        """From now on, columns with a DEFAULT have other values, too."""
        self._tables = [table.with_fixed(False) for table in self._tables]

    def batch(self, most: int = 4) -> Version:
        """Updates of one or more tables; a table may come twice."""
        choose = self._choose
        plain = [table for table in self._tables if not table.window]
        if plain and choose.chance(4):
            # One update deletes all rows of a table.
            table = choose.pick(plain)
            return self._applied(((table.name, self._negated(table.name)),))
        chosen = [table for table in self._tables if choose.chance(40)] or [choose.pick(self._tables)]
        if choose.chance(10):
            chosen.append(choose.pick(chosen))
        mode = choose.pick(tuple(_DELETES))
        held = self.stored.copy()
        version = []
        for table in chosen:
            drawn = self._updates(table, held.rows[table.name], _DELETES[mode], most)
            version.append((table.name, tuple(drawn)))
        return self._applied(tuple(version))

    def halved(self) -> Version:
        """Deletes half of the rows of every table, so that the rest of the stream stays small."""
        plain = [table.name for table in self._tables if not table.window]
        return self._applied(tuple((name, self._negated(name)[::2]) for name in plain))

    def emptied(self) -> Version:
        """Deletes all rows, except those in windows."""
        plain = [table.name for table in self._tables if not table.window]
        return self._applied(tuple((name, self._negated(name)) for name in plain))

    def row(self, table: BaseTable) -> Row:
        """A row of a table, stored or not."""
        return updates(self._choose, table, Counter(), False, 0)[0][0]

    def _negated(self, table: str) -> tuple[Update, ...]:
        return tuple((row, -m) for row, m in self.stored.rows[table].items())

    def _applied(self, version: Version) -> Version:
        """The batch without empty parts, applied to the stored rows."""
        kept = tuple((table, changes) for table, changes in version if changes)
        self.stored.apply(kept)
        return kept

    def _updates(self, table: BaseTable, held: Counter[Row], deletes: int, most: int) -> list[Update]:
        choose = self._choose
        if table.window:
            return [(self.row(table), 1) for _ in range(choose.between(1, most))]
        found: list[Update] = []
        for _ in range(choose.between(1, most)):
            often = max(deletes, 80) if sum(abs(m) for m in held.values()) > self._rows else deletes
            new = updates(choose, table, held, False, often)
            if not self.below and any(held[row] < 0 for row, _ in new):
                # Insert the row once more instead.
                for row, m in new:
                    held[row] -= 2 * m
                new = [(row, -m) for row, m in new]
            found += new
            if choose.chance(8):
                # A row that is inserted and deleted within the batch.
                row, m = new[0]
                found += [(row, -m), (row, m)]
        return found
