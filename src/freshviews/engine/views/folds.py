"""Computes aggregates that users wrote in plain Python (``types.python_aggregates``).

``Folds`` computes a changed group again from all its rows. ``States`` keeps a state per group, adds inserted values to
the state, and removes deleted values from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.texts import Texts, between_groups, bounds_of, by_group
from freshviews.kernel.machine.interruption import FEW
from freshviews.query.block import Fold
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary
from freshviews.types.python_aggregates import aggregate_of
from freshviews.types.python_functions import Value, reader_of
from freshviews.types.values import decoder_for, literal_code, literal_value

_STATE_BYTES = 400
"""Bytes of a group with a small state."""


class Folds(Texts):
    """The values of the groups of a block, and the rows from which they are folded."""

    kept = "rows of values"

    def __init__(self, fold: Fold, dictionary: Dictionary) -> None:
        super().__init__(fold, dictionary)
        self._fold = fold
        self._aggregate = aggregate_of(fold.operation)

    def _made_of(self, rows: Codes, bounds: Codes) -> list[tuple[Value, ...]]:
        # ``rows`` are in the order of the columns.
        values = self._values_of(rows)
        spans = between_groups(pairwise(bounds.tolist()))
        return [(self._value(rows[begin], values[begin:end]),) for begin, end in spans]

    def _value(self, row: Codes, values: _Values) -> Value:
        """The value of a group. ``row``: one of its rows."""
        given = [one for one in values if one is not None]
        if not given:
            return None
        with self._computing(row):
            return self._aggregate.result(self._added(None, given))

    def _added(self, state: Any, values: Sequence[tuple[Sequence[Any], int]]) -> Any:
        """The state with values added. Raises KeyboardInterrupt, as ``between_groups``, between parts of them."""
        for part in between_groups(_parts(values)):
            state = self._aggregate.added(state, part)
        return state

    @contextmanager
    def _computing(self, row: Codes) -> Iterator[None]:
        """The context for calls for the group of a row, whose errors name the group. Raises Failed."""
        try:
            yield
        except ValueError as error:
            texts = [
                f"{name} = {decoder_for(kind, self._dictionary)(code)!r}"
                for name, kind, code in zip(self._fold.names, self._fold.types, row.tolist(), strict=False)
            ]
            of = f", group {', '.join(texts)}" if texts else ""
            raise Failed(Failure("evaluation", f"{error}{of}")) from None

    def _values_of(self, rows: Codes) -> _Values:
        """The arguments of each row and their number; None for a row that is passed over."""
        fold = self._fold
        columns = rows[:, fold.groups : fold.groups + len(fold.columns)]
        taken = (columns[:, :1] if fold.marked else columns) != NULL
        times = np.where(taken.all(axis=1), 1 if fold.distinct else np.abs(rows[:, -1]), 0).tolist()
        kinds = [one.type for one in fold.columns]
        lists = [self._decoded(column, kind) for column, kind in zip(columns.T, kinds, strict=True)][fold.marked :]
        given = zip(*lists, strict=True) if lists else [()] * len(rows)
        return [(values, number) if number else None for values, number in zip(given, times, strict=True)]

    def _decoded(self, codes: Codes, kind: Any) -> list[Any]:
        """The Python values of codes."""
        read = reader_of(kind)
        distinct, places = np.unique(codes, return_inverse=True)
        values = [read(literal_value(kind, code, self._dictionary)) for code in distinct.tolist()]
        return [values[place] for place in places.tolist()]

    def _codes_of(self, made: tuple[Value, ...]) -> list[int]:
        return [NULL if one is None else literal_code(self._fold.returns, one, self._dictionary) for one in made]


_Values = Sequence[tuple[Sequence[Any], int] | None]


def _parts(values: Sequence[tuple[Sequence[Any], int]]) -> Iterator[list[tuple[Sequence[Any], int]]]:
    """Parts of at most ``FEW`` values, each with the number of its times."""
    part: list[tuple[Sequence[Any], int]] = []
    room = FEW
    for value, times in values:
        while times > room:
            yield [*part, (value, room)]
            times, part, room = times - room, [], FEW
        part.append((value, times))
        room -= times
    yield part


@dataclass(slots=True)
class _State:
    """The state of a group. ``rows``: their number; ``values``: the number of those that are not passed over, and
    ``state`` is None without any. ``made``: the value, if ``is_made``."""

    rows: int = 0
    values: int = 0
    state: Any = None
    is_made: bool = False
    made: Value = None


class States(Folds):
    """The values of the groups of a block, and a state for each group.

    The states are made of all rows when a change is first read, and again after a change that is taken back or fails,
    since functions of a user may have changed a state in part.
    """

    def __init__(self, fold: Fold, dictionary: Dictionary) -> None:
        super().__init__(fold, dictionary)
        self._states: dict[bytes, _State] | None = None

    kept = "groups with a state"

    @property
    def rows(self) -> int:
        return len(self._states or ())

    @property
    def about_bytes(self) -> int:
        return (_STATE_BYTES + 8 * self._fold.groups) * self.rows

    def _before_and_after(self, change: Codes, every: Callable[[], Codes]) -> tuple[Codes, Codes]:
        change = by_group(change, self._fold.groups)
        if self._states is None:
            rows = by_group(consolidate(every()), self._fold.groups)
            self._states = {}
            self._apply(rows)
            gone = self._before(rows, change)
        else:
            gone = self._rows_of(self._groups_of(change))
            self._apply(change)
        return gone, self._rows_of(self._groups_of(change))

    def pass_over(self, take: Callable[[], Codes], forget: Callable[[], None]) -> None:
        if self._states is not None:
            self.forget()
        forget()

    def forget(self) -> None:
        super().forget()
        self._states = None

    def _before(self, rows: Codes, change: Codes) -> Codes:
        """The values of the changed groups before the change. ``rows``: all rows after it."""
        groups = self._fold.groups
        keys = {change[begin, :groups].tobytes() for begin in bounds_of(change, groups)[:-1].tolist()}
        spans = pairwise(bounds_of(rows, groups).tolist())
        found = [rows[begin:end] for begin, end in spans if rows[begin, :groups].tobytes() in keys]
        return self._rendered(self._with(np.concatenate([change[:0], *found]), change, -1), {})

    def _groups_of(self, change: Codes) -> Iterator[Codes]:
        """A row of each group of a change that has rows now."""
        assert self._states is not None
        for begin in bounds_of(change, self._fold.groups)[:-1].tolist():
            if change[begin, : self._fold.groups].tobytes() in self._states:
                yield change[begin]

    def _apply(self, change: Codes) -> None:
        """Add and remove the values of rows. Raises Failed."""
        states, groups = self._states, self._fold.groups
        assert states is not None
        signs = np.sign(change[:, -1]).tolist()
        values, numbers = self._values_of(change), change[:, -1].tolist()
        for begin, end in between_groups(pairwise(bounds_of(change, groups).tolist())):
            key = change[begin, :groups].tobytes()
            one = states.setdefault(key, _State())
            one.rows += sum(numbers[begin:end])
            if not one.rows:
                del states[key]
                continue
            span = range(begin, end)
            come = [found for i in span if signs[i] > 0 and (found := values[i]) is not None]
            gone = [found for i in span if signs[i] < 0 and (found := values[i]) is not None]
            if not come and not gone:
                continue
            one.is_made = False
            one.values += sum(times for _, times in come) - sum(times for _, times in gone)
            if not one.values:
                one.state = None
                continue
            with self._computing(change[begin]):
                one.state = self._added(one.state, come)
                one.state = self._aggregate.removed(one.state, gone)

    def _rows_of(self, groups: Iterator[Codes] | Sequence[Codes]) -> Codes:
        """The rows of some groups with their values."""
        width = self._fold.groups
        found = [[*row[:width].tolist(), *self._codes_of((self._made(row),)), 1] for row in between_groups(groups)]
        if self._fold.whole and not found:
            found = [[NULL, 1]]
        return np.array(found, np.int64).reshape(-1, self._fold.groups + 2)

    def _made(self, row: Codes) -> Value:
        assert self._states is not None
        one = self._states[row[: self._fold.groups].tobytes()]
        if not one.is_made:
            with self._computing(row):
                one.made = None if not one.values else self._aggregate.result(one.state)
            one.is_made = True
        return one.made
