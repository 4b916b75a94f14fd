"""The leapfrog join of one variable, a step at a time, so that it can be taken up where it was left.

Source: Veldhuizen, Leapfrog Triejoin (ICDT 2014), section 3.1. All iterators are opened; the greatest of their keys is
the candidate; in turn each iterator that stands before the candidate seeks it, and where one comes to a greater key,
this is the candidate; where all stand at the candidate, it is emitted, and the first iterator goes to its next key.

Departures. The iterators take turns in the order of the atoms, not in that of their first keys, so that a change of a
first key does not change all of the trace. After a key is emitted it is always the first iterator that moves. So what
comes next depends on little, a ``Place``: two walks over two versions that come to one place go on alike.

Conditions and negated atoms have their say where all iterators stand at the candidate: if the conditions hold, the
complements of negated atoms seek it, too. A complement that lacks it comes to the first gap, past all codes of the run
between the two, and the others go on from there (section 3.1.2 of the paper on maintenance).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Expr
from freshviews.program.reference.incremental.versions import BEFORE, END, Row, Trie
from freshviews.program.reference.scalars import ScalarError, evaluate
from freshviews.program.rule import Cursor, Level
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Place:
    """Where a leapfrog join is: the candidate, who came to it first, and how many have agreed on it, that one included
    and in turn from there; and who stands at it already though its turn is still to come, which only opening brings
    about. ``since`` is what the first one had been asked for: by it the record of that step is found."""

    candidate: int
    first: int = 0
    agreed: int = 0
    ahead: frozenset[int] = frozenset()
    since: int = BEFORE

    @property
    def order(self) -> tuple[int, int]:
        """Places of one trace come in this order."""
        return (self.candidate, self.agreed)


START = Place(BEFORE)
"""Before the iterators are opened."""
FINISH = Place(END)


@dataclass(frozen=True)
class Step:
    """An operation of an iterator: which cursor, under which binding, from what was asked for to what it came to, and
    the place where it was made. The trace is sensitive to changes between the two, ends included. One of a negated
    atom is that of its complement."""

    level: int
    cursor: Cursor
    binding: Row
    low: int
    high: int
    place: Place

    @property
    def recorded(self) -> bool:
        """Whether it is entered in an index. A code that a negated atom lacks is not where a change tells by itself."""
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
    """What a walk reads: a version per atom, in the order of its trie, and the names of the variables."""

    tries: Sequence[Trie]
    order: tuple[str, ...]
    dictionary: Dictionary | None = None

    def holds(self, conditions: tuple[Expr, ...], binding: Row) -> bool:
        """Whether none of the conditions is FALSE or NULL; each is TRUE, or cannot be told."""
        row: Mapping[str, int] = dict(zip(self.order, binding, strict=False))
        return all(self._may_hold(condition, row) for condition in conditions)

    def _may_hold(self, condition: Expr, row: Mapping[str, int]) -> bool:
        try:
            return evaluate(condition, row, self.dictionary) == 1
        except ScalarError:
            return True


class Walk:
    """A leapfrog join from a place on."""

    def __init__(
        self, number: int, level: Level, binding: Row, database: Database, place: Place, report: Report
    ) -> None:
        self.place = place
        self._number, self._level = number, level
        self._binding, self._database = binding, database
        self._report = report

    def step(self) -> int | None:
        """Go on by one operation, or, at the start, by one of each iterator; the key that is emitted, if one is."""
        place, cursors = self.place, self._level.cursors
        if place.candidate == BEFORE:
            firsts = [self._seek(cursor, BEFORE, place) for cursor in cursors]
            greatest = max(firsts)
            first = firsts.index(greatest)
            ahead = frozenset(i for i, code in enumerate(firsts) if code == greatest and i != first)
            self._agree(Place(greatest, first, 1, ahead))
        elif place.agreed < len(cursors):
            turn = (place.first + place.agreed) % len(cursors)
            code = self._seek(cursors[turn], place.candidate, place)
            if code == place.candidate and place.agreed > 0:
                self._agree(replace(place, agreed=place.agreed + 1))
            else:
                self._agree(Place(code, turn, 1, since=place.candidate))
        else:
            cursor = self._level.negated[place.agreed - len(cursors)]
            code = self._seek(cursor, place.candidate, place)
            if code != place.candidate:
                self.place = Place(code)
                return None
            self.place = replace(place, agreed=place.agreed + 1)
        return self._emitted()

    def _agree(self, place: Place) -> None:
        """Come to a place, and past those who stand at the candidate already."""
        if place.candidate == END:
            place = FINISH
        cursors = len(self._level.cursors)
        while place.agreed < cursors and (place.first + place.agreed) % cursors in place.ahead:
            place = replace(place, agreed=place.agreed + 1)
        self.place = place

    def _emitted(self) -> int | None:
        """The candidate, where nobody is left to be asked: then the join goes on behind it, as it does where all
        iterators stand at it and a condition does not hold."""
        place, level = self.place, self._level
        met = not level.conditions or place.agreed != len(level.cursors)
        if not met and not self._database.holds(level.conditions, (*self._binding, place.candidate)):
            self.place = Place(place.candidate + 1)
            return None
        if place.agreed < len(level.cursors) + len(level.negated):
            return None
        self.place = Place(place.candidate + 1)
        return place.candidate

    def _seek(self, cursor: Cursor, code: int, place: Place) -> int:
        above = tuple(self._binding[i] for i in cursor.above)
        trie = self._database.tries[cursor.atom]
        found = trie.gap(above, code) if place.agreed >= len(self._level.cursors) else trie.seek(above, code)
        self._report(Step(self._number, cursor, self._binding, code, found, place))
        return found


def is_emitted(level: Level, binding: Row, code: int, database: Database, count: Callable[[], None]) -> bool:
    """Whether the leapfrog join of a level emits a code; each operation of an iterator is counted."""

    def has(cursor: Cursor) -> bool:
        count()
        return database.tries[cursor.atom].seek(tuple(binding[i] for i in cursor.above), code) == code

    if not all(map(has, level.cursors)) or not database.holds(level.conditions, (*binding, code)):
        return False
    return not any(map(has, level.negated))
