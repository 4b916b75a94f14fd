"""Maintains a rule by its trace: the recorded operations of a leapfrog triejoin, with their results.

A change of relations is handled in three steps (Veldhuizen's paper, section 4):

1. *Tree surgery* finds the differences between the old and the new version of the relations.
2. The *change oracle* finds, by the recorded operations, at which bindings the differences affect the rule.
3. At these bindings, leapfrog joins walk over both versions. A derivation, which is a row of the join, is erased if
   only the old version has it, and inserted if only the new version has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from freshviews.program.reference.incremental_trie_join.leapfrog import (
    START,
    Database,
    Position,
    Step,
    Walk,
    is_emitted,
)
from freshviews.program.reference.incremental_trie_join.oracle import Contribution, Region
from freshviews.program.reference.incremental_trie_join.sensitivity import Record, SensitivityIndex
from freshviews.program.reference.incremental_trie_join.surgery import Surgery, surgeries
from freshviews.program.reference.incremental_trie_join.versions import BEFORE, END, Row, Trie, Version, has_branch
from freshviews.program.rule import Cursor, Rule
from freshviews.records import dataclass
from freshviews.ring.protocol import Ring
from freshviews.types.dictionary import Dictionary

Edits = Mapping[str, Mapping[Row, Any]]
"""By relation and row, the ring element to add to the row's element."""
Derivation = tuple[Row, Any]
"""A binding of all variables, in order, and the product of the elements of its rows."""

Trace = list[tuple[int, int, Row, int, int, tuple[Any, ...]]]
"""The operations of a leapfrog triejoin, in order: level, atom, binding, the code sought, the code reached, and the
elements of rows that are bound or reached. An operation on a row with another element is a different one."""

SLACK = 4
"""The number of extra steps per cursor that a walk may do to meet the other."""


@dataclass
class Counters:
    """Counts of the work. ``operations``: operations of iterators, in the old version, in the new one, and for lookups.

    ``trace`` is the length of the present trace, ``edits`` the sum of edit distances. Both are derived from the walks:
    they are exact if every cursor has an index and no row changes its element, otherwise approximate.
    """

    operations: int = 0
    surgeries: int = 0
    matched: int = 0
    recorded: int = 0
    removed: int = 0
    derivations: int = 0
    trace: int = 0
    edits: int = 0


@dataclass(frozen=True)
class Delta:
    """The derivations that a batch erased and inserted, in the order in which heads take them."""

    erased: tuple[Derivation, ...]
    inserted: tuple[Derivation, ...]


@dataclass
class MaintainedRule:
    """A rule over relations, empty at first, and its sensitivity indices. Rows carry elements of a ring.

    ``empty`` is a version without rows, of the class that all versions will have.

    Departure: in the paper, a matched record of an inner variable causes a new evaluation of all bindings below its
    interval, so the time exceeds the edit distance. Here only the leapfrog join of this variable runs again. It starts,
    in both versions, at the position that the record holds, and ends where the two walks meet.

    Correctness. Consider a code under a binding that the rule reaches. If the code is emitted, a record of every cursor
    covers it. If not, some cursor lacks the code, and a record of that cursor covers it. (A cursor without an index,
    see ``oracle``, counts as if a record covered every code.) So wherever the emitted codes change, a record is
    matched. A removed record lies within the range that the new walk records again.
    """

    rule: Rule
    ring: Ring[Any]
    dictionary: Dictionary | None = None
    empty: Trie = field(default_factory=Version)
    counters: Counters = field(default_factory=Counters)
    indices: dict[tuple[int, int], SensitivityIndex] = field(default_factory=dict)
    oracle: Region = field(default_factory=Region)

    def __post_init__(self) -> None:
        for number, level in enumerate(self.rule.levels):
            for cursor in (*level.cursors, *level.negated):
                if cursor.kept:
                    self.indices[number, cursor.atom] = SensitivityIndex()
        self._orders = [self.rule.permutation(atom) for atom in self.rule.atoms]
        self._old = self._new = Database([self.empty] * len(self.rule.atoms), self.rule.order, self.dictionary)
        self._evaluate(self._new, (), self._record, [])

    def apply(self, edits: Edits) -> Delta:
        """Make a new version from a batch of edits. Returns the derivations that it erases and inserts."""
        self._old = self._new
        self._new = Database(self._edited(edits), self.rule.order, self.dictionary)
        self.oracle = self._ask()
        erased: list[Derivation] = []
        inserted: list[Derivation] = []
        self._maintain((), self.oracle, erased, inserted)
        self._old = self._new
        return Delta(tuple(erased), tuple(inserted))

    def trace(self) -> Trace:
        """The trace of an evaluation of the present version from scratch."""
        trace: Trace = []
        self._evaluate(self._new, (), lambda step: trace.append(self._traced(step)), [])
        return trace

    def present(self, atom: int, path: Row) -> bool:
        """True if a row of an atom begins with codes, in the order of its trie, in the present version."""
        return has_branch(self._new.tries[atom], path)

    @property
    def held(self) -> int:
        """The number of recorded intervals."""
        return sum(len(index) for index in self.indices.values())

    def _edited(self, edits: Edits) -> list[Trie]:
        tries = []
        made: dict[tuple[str, Row], Trie] = {}
        for atom, order, trie in zip(self.rule.atoms, self._orders, self._new.tries, strict=True):
            if (atom.relation, order) not in made:
                rows = []
                for row, more in edits.get(atom.relation, {}).items():
                    permuted = tuple(row[i] for i in order)
                    carried = trie.carried(permuted)
                    sum_ = more if carried is None else self.ring.add(carried, more)
                    rows.append((permuted, None if self.ring.is_zero(sum_) else sum_))
                made[atom.relation, order] = trie.edited(rows) if rows else trie
            tries.append(made[atom.relation, order])
        return tries

    # The change oracle.

    def _ask(self) -> Region:
        """The change oracle for the difference of the old and the new version."""
        oracle = Region()
        found = [tuple(surgeries(old, new)) for old, new in zip(self._old.tries, self._new.tries, strict=True)]
        for number, level in enumerate(self.rule.levels):
            for turn, cursor in enumerate((*level.cursors, *level.negated)):
                operations = [s for s in found[cursor.atom] if len(s.path) == cursor.depth]
                self.counters.surgeries += len(operations)
                # Surgery removes the records that it matches, so rows that only change their element come first.
                operations.sort(key=lambda surgery: not surgery.carries)
                for surgery in operations:
                    if cursor.kept:
                        self._match(oracle, number, cursor, surgery)
                    if cursor.pointed:
                        self._point(oracle, turn, cursor, surgery)
        return oracle

    def _point(self, oracle: Region, turn: int, cursor: Cursor, surgery: Surgery) -> None:
        """The contribution of an operation to a pointed cursor: its own branch."""
        negated = self.rule.atoms[cursor.atom].negated
        above, code = surgery.path[:-1], surgery.path[-1]
        if surgery.carries:
            # The element of a row of a negated atom does not matter.
            if not negated:
                oracle.under(above).carried.add(code)
        elif surgery.whole or negated:
            oracle.under(above).contributions.append(Contribution(Position(code, 0 if negated else turn), code))

    def _match(self, oracle: Region, number: int, cursor: Cursor, surgery: Surgery) -> None:
        """Match an operation of tree surgery with the sensitivity index of its depth."""
        if surgery.carries and self.rule.atoms[cursor.atom].negated:
            return
        index = self.indices[number, cursor.atom]
        above, code = surgery.path[:-1], surgery.path[-1]
        for record in index.stab(above, code):
            self.counters.matched += 1
            codes = dict(zip((*cursor.above, *cursor.beside), (*above, *record.beside), strict=True))
            region = oracle.under(tuple(codes[i] for i in range(number)))
            if surgery.carries:
                region.carried.add(code)
            else:
                index.remove(above, record.low, record.beside)
                region.contributions.append(Contribution(record.place, record.high))

    # The maintenance rule.

    def _maintain(self, binding: Row, region: Region, erased: list[Derivation], inserted: list[Derivation]) -> None:
        """Walk both versions under a binding that both reach, where a region of the oracle says so."""
        emitted: dict[int, tuple[bool, bool]] = {}
        for code, in_old, in_new in self._walk_both(binding, region.in_order()):
            emitted[code] = (in_old, in_new)
        for code in sorted(emitted.keys() | region.carried | region.below.keys()):
            in_old, in_new = emitted.get(code) or self._looked_up(binding, code)
            carries = code in region.carried
            if in_old and (carries or not in_new):
                self._evaluate(self._old, (*binding, code), self._forget, erased)
            if in_new and (carries or not in_old):
                self._evaluate(self._new, (*binding, code), self._record, inserted)
            if in_old and in_new and not carries and code in region.below:
                self._maintain((*binding, code), region.below[code], erased, inserted)

    def _looked_up(self, binding: Row, code: int) -> tuple[bool, bool]:
        """True if the join emits a code that no contribution is about, so that both versions agree."""
        level = self.rule.levels[len(binding)]
        there = is_emitted(level, binding, code, self._new, self._count)
        return there, there

    def _walk_both(self, binding: Row, contributions: list[Contribution]) -> Iterator[tuple[int, bool, bool]]:
        """The codes within the contributions that the join emits, with whether the old and the new version emit each.

        The two walks start at the same position. The one that is behind makes the next step, until both have covered
        the contributions and are at the same position again. If they do not meet soon after a common candidate, the old
        walk stops, and the new one continues to the code that the last operation of the old one reached.
        """
        level, number = self.rule.levels[len(binding)], len(binding)
        following = iter([*contributions, None])
        ahead = next(following)
        while ahead is not None:
            olds: list[Step] = []
            news: list[Step] = []
            place = self._believed(binding, ahead.place)
            old = Walk(number, level, binding, self._old, place, olds.append)
            new = Walk(number, level, binding, self._new, place, news.append)
            high, ahead = ahead.high, next(following)
            found: dict[int, list[bool]] = {}
            slack = SLACK * len(level.cursors)
            while True:
                while ahead and ahead.place.candidate <= max(old.place.candidate, new.place.candidate):
                    high, ahead = max(high, ahead.high), next(following)
                behind = old if old.place.order <= new.place.order else new
                if behind.place.candidate > high or behind.place.candidate == END:
                    if old.place == new.place:
                        break
                    # The steps of the walk behind, up to the other's candidate, are in its trace only.
                    if old.place.candidate == new.place.candidate:
                        if slack == 0:
                            while new.place.candidate <= old.place.candidate and new.place.candidate != END:
                                new.step()
                            break
                        slack -= 1
                code = behind.step()
                if code is not None:
                    found.setdefault(code, [False, False])[behind is new] = True
            for step in olds:
                self._forget(step)
            for step in news:
                self._record(step)
            # Steps that both walks did were counted as one erased and one inserted.
            self.counters.edits -= 2 * len({_mark(s) for s in olds} & {_mark(s) for s in news})
            yield from ((code, in_old, in_new) for code, (in_old, in_new) in sorted(found.items()) if code <= high)

    def _believed(self, binding: Row, place: Position) -> Position:
        """The position, if the cursors that agreed on its candidate still do; else its candidate with no agreement.

        A record may be older than the records before it. An unmatched record of a cursor that reached the candidate
        proves that it still does; a cursor without a record seeks the candidate again.
        """
        level = self.rule.levels[len(binding)]
        for i in range(place.agreed):
            turn = (place.first + i) % len(level.cursors)
            negated = i >= len(level.cursors)
            cursor = level.negated[i - len(level.cursors)] if negated else level.cursors[turn]
            above = tuple(binding[j] for j in cursor.above)
            if not cursor.pointed:
                low = place.candidate if negated or i else place.since
                if i and not negated and turn in place.ahead:
                    low = BEFORE
                beside = tuple(binding[j] for j in cursor.beside)
                record = self.indices[len(binding), cursor.atom].find(above, low, beside)
                holds = record is not None and record.high == place.candidate
            else:
                self._count()
                holds = (self._new.tries[cursor.atom].seek(above, place.candidate) == place.candidate) != negated
            if not holds:
                return Position(place.candidate, place.first)
        return place

    def _evaluate(
        self, database: Database, binding: Row, report: Callable[[Step], None], derivations: list[Derivation]
    ) -> None:
        """Leapfrog triejoin below a binding. Calls ``report`` for every step."""
        if len(binding) == len(self.rule.order):
            self.counters.derivations += 1
            derivations.append((binding, self._product(database, binding)))
            return
        walk = Walk(len(binding), self.rule.levels[len(binding)], binding, database, START, report)
        while walk.place.candidate != END:
            code = walk.step()
            if code is not None:
                self._evaluate(database, (*binding, code), report, derivations)

    def _product(self, database: Database, binding: Row) -> Any:
        product = self.ring.one
        for carried in self._elements(database, binding):
            product = self.ring.multiply(product, carried)
        return product

    def _elements(self, database: Database, binding: Row) -> Iterator[Any]:
        """The elements of the rows of fully bound atoms, in order of atoms."""
        codes = dict(zip(self.rule.order, binding, strict=False))
        for i, atom in enumerate(self.rule.atoms):
            if not atom.negated and codes.keys() >= set(atom.variables):
                row = tuple(codes[atom.variables[j]] for j in self._orders[i])
                yield database.tries[i].carried(row)

    def _traced(self, step: Step) -> tuple[int, int, Row, int, int, tuple[Any, ...]]:
        trie = self._new.tries[step.cursor.atom]
        carried = (*self._elements(self._new, step.binding), trie.carried((*step.above, step.high)))
        return (step.level, step.cursor.atom, step.binding, step.low, step.high, carried)

    # Steps.

    def _count(self) -> None:
        self.counters.operations += 1

    def _record(self, step: Step) -> None:
        """Count an operation of the new version, and record its interval."""
        self.counters.operations += 1
        self.counters.trace += 1
        self.counters.edits += 1
        if step.recorded:
            self.counters.recorded += 1
            self.indices[step.level, step.cursor.atom].add(
                step.above, Record(step.low, step.beside, step.high, step.place)
            )

    def _forget(self, step: Step) -> None:
        """Count an operation of the old version, and remove its record."""
        self.counters.operations += 1
        self.counters.trace -= 1
        self.counters.edits += 1
        if step.recorded and self.indices[step.level, step.cursor.atom].remove(step.above, step.low, step.beside):
            self.counters.removed += 1


def _mark(step: Step) -> tuple[int, int, int]:
    """A key of a step within one leapfrog join."""
    return (step.cursor.atom, step.low, step.high)
