"""Runs the leapfrog join of one variable, step by step. A join can start from any position of a former join.

Source: Veldhuizen, Leapfrog Triejoin (ICDT 2014), section 3.1. Iterators over 1 3 5 and 3 4 5 do these steps::

    both open       at 1 and 3: the candidate is 3
    first seeks 3   at 3: both are at 3, which is emitted
    first seeks 4   at 5: the candidate is 5
    second seeks 5  at 5: both are at 5, which is emitted
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Expr
from freshviews.program.reference.incremental_trie_join.versions import BEFORE, END, Row, Trie
from freshviews.program.reference.scalars import ScalarError, evaluate
from freshviews.program.rule import Cursor, Level
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Position:
    """The position of a leapfrog join.

    ``candidate`` is the code in question, ``first`` the iterator that reached it first, ``agreed`` the number of
    iterators, in turn from ``first``, that are known to be at it. ``ahead``: iterators that are at it before their
    turn, which happens only at the start. ``since`` is the code that ``first`` had to seek, which identifies its
    record.
    """

    candidate: int
    first: int = 0
    agreed: int = 0
    ahead: frozenset[int] = frozenset()
    since: int = BEFORE

    @property
    def order(self) -> tuple[int, int]:
        """A sort key: the positions of one trace are in this order."""
        return (self.candidate, self.agreed)


START = Position(BEFORE)
"""Before the iterators are opened."""
FINISH = Position(END)


@dataclass(frozen=True)
class Step:
    """An operation of an iterator: the cursor, the binding, the code ``low`` that it sought, the code ``high`` that it
    reached, and the position of the join. The trace is sensitive to changes from ``low`` to ``high``, both included.
    For a negated atom it is an operation of its complement."""

    level: int
    cursor: Cursor
    binding: Row
    low: int
    high: int
    place: Position

    @property
    def recorded(self) -> bool:
        """True if the operation is recorded in a sensitivity index. A pointed cursor of a negated atom records runs
        only."""
        return self.cursor.kept and (not self.cursor.pointed or self.low < self.high)

    @property
    def above(self) -> Row:
        """The codes above the cursor in its trie."""
        return tuple(self.binding[i] for i in self.cursor.above)

    @property
    def beside(self) -> Row:
        """The other codes that were bound."""
        return tuple(self.binding[i] for i in self.cursor.beside)


Report = Callable[[Step], None]


@dataclass(frozen=True)
class Database:
    """The input of a walk: a version per atom, in the order of its trie, and the names of the variables."""

    tries: Sequence[Trie]
    order: tuple[str, ...]
    dictionary: Dictionary | None = None

    def holds(self, conditions: tuple[Expr, ...], binding: Row) -> bool:
        """True if none of the conditions is FALSE or NULL. A condition that fails to evaluate counts as TRUE."""
        row: Mapping[str, int] = dict(zip(self.order, binding, strict=False))
        return all(self._may_hold(condition, row) for condition in conditions)

    def _may_hold(self, condition: Expr, row: Mapping[str, int]) -> bool:
        try:
            return evaluate(condition, row, self.dictionary) == 1
        except ScalarError:
            return True


class Walk:
    """A leapfrog join from a position on.

    All iterators are opened, and the greatest of their keys is the candidate. In turn, each iterator that is before the
    candidate seeks it. If the iterator lands on a greater key, that key becomes the candidate. When all iterators are
    at the candidate, the candidate is emitted, and the first iterator moves to its next key.

    Departure: the iterators take turns in the order of the atoms, so the remaining steps of a join depend only on its
    ``Position``. The paper sorts the iterators by their first keys: a change of one key could change the whole trace.

    Before the candidate is emitted, the join evaluates the conditions. If they hold, the complements of negated atoms
    seek the candidate, too. A complement that lacks the candidate moves to the next code that it has, and the iterators
    continue there (Incremental Maintenance for Leapfrog Triejoin, section 3.1.2).
    """

    def __init__(
        self, number: int, level: Level, binding: Row, database: Database, place: Position, report: Report
    ) -> None:
        self.place = place
        self._number, self._level = number, level
        self._binding, self._database = binding, database
        self._report = report

    def step(self) -> int | None:
        """Do one operation, or, at the start, one of each iterator. Returns the key that is emitted, if any."""
        place, cursors = self.place, self._level.cursors
        if place.candidate == BEFORE:
            firsts = [self._seek(cursor, BEFORE, place) for cursor in cursors]
            greatest = max(firsts)
            first = firsts.index(greatest)
            ahead = frozenset(i for i, code in enumerate(firsts) if code == greatest and i != first)
            self._agree(Position(greatest, first, 1, ahead))
        elif place.agreed < len(cursors):
            turn = (place.first + place.agreed) % len(cursors)
            code = self._seek(cursors[turn], place.candidate, place)
            if code == place.candidate and place.agreed > 0:
                self._agree(replace(place, agreed=place.agreed + 1))
            else:
                self._agree(Position(code, turn, 1, since=place.candidate))
        else:
            cursor = self._level.negated[place.agreed - len(cursors)]
            code = self._seek(cursor, place.candidate, place)
            if code != place.candidate:
                self.place = Position(code)
                return None
            self.place = replace(place, agreed=place.agreed + 1)
        return self._emitted()

    def _agree(self, place: Position) -> None:
        """Move to a position, and skip the iterators that are at the candidate already."""
        if place.candidate == END:
            place = FINISH
        cursors = len(self._level.cursors)
        while place.agreed < cursors and (place.first + place.agreed) % cursors in place.ahead:
            place = replace(place, agreed=place.agreed + 1)
        self.place = place

    def _emitted(self) -> int | None:
        """The candidate, if all cursors and complements agree on it; then, and if a condition does not hold, the join
        continues after it."""
        place, level = self.place, self._level
        met = not level.conditions or place.agreed != len(level.cursors)
        if not met and not self._database.holds(level.conditions, (*self._binding, place.candidate)):
            self.place = Position(place.candidate + 1)
            return None
        if place.agreed < len(level.cursors) + len(level.negated):
            return None
        self.place = Position(place.candidate + 1)
        return place.candidate

    def _seek(self, cursor: Cursor, code: int, place: Position) -> int:
        above = tuple(self._binding[i] for i in cursor.above)
        trie = self._database.tries[cursor.atom]
        found = trie.gap(above, code) if place.agreed >= len(self._level.cursors) else trie.seek(above, code)
        self._report(Step(self._number, cursor, self._binding, code, found, place))
        return found


def is_emitted(level: Level, binding: Row, code: int, database: Database, count: Callable[[], None]) -> bool:
    """True if the leapfrog join of a level emits a code. Calls ``count`` for each operation of an iterator."""

    def has(cursor: Cursor) -> bool:
        count()
        return database.tries[cursor.atom].seek(tuple(binding[i] for i in cursor.above), code) == code

    if not all(map(has, level.cursors)) or not database.holds(level.conditions, (*binding, code)):
        return False
    return not any(map(has, level.negated))
