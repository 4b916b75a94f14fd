"""``python -m tests.agreement.states``: compares many random states of many random views with DuckDB.

Each scenario has random tables and views, and a long random stream of batches. Several databases maintain the views:
by the planner's choice and by other strategies; with views over empty tables, over tables that have rows, altered
between batches, or durable; with tables that get a column before the views are created. After each batch every view has
the rows that DuckDB computes from the tables, and the changes that its subscriber received add up to them. A *state* is
the contents of one view after one batch, compared under all strategies of its scenario.

The run is determined by ``--seed``. A difference is printed with the shortest stream that shows it, and with the
options that repeat its scenario: ``--seed S --only N``. Everything runs as plain Python (FRESHVIEWS_PURE_PYTHON=1),
unless ``--compiled`` is given.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from unittest.mock import patch

from freshviews import BatchError, Database, InterruptedAfterCommit
from freshviews.catalog.row_keys import row_keys
from freshviews.engine.change import Change
from freshviews.engine.commit import commit
from freshviews.engine.tables import base_table
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import EvaluationError, PlanError, UnsupportedSql
from freshviews.kernel.hash import base_store
from freshviews.plan import STRATEGIES
from tests.agreement.by_key import Call, calls_of, commit_by_key, may_change_by_key
from tests.agreement.choices import Choices, seeded
from tests.agreement.collecting import collecting, rows_in_steps
from tests.agreement.constructs import NAMES, constructs
from tests.agreement.duckdb_peer import PEER_FAILED, DuckDb, comparable, exact, restart
from tests.agreement.long_streams import LongStream, Stored
from tests.agreement.random_tables import with_default
from tests.agreement.scenario import Row, Scenario, Version
from tests.agreement.shrinking import is_allowed, shrunk
from tests.agreement.sql_dependent import dependent_scenario
from tests.agreement.sql_forms import forms_scenario
from tests.agreement.sql_places import places_scenario, range_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario
from tests.agreement.sql_windows import windows_scenario
from tests.agreement.views_of_script import FACTORISED, properties_of

Generator = Callable[[Choices], Scenario]
GENERATORS: tuple[Generator, ...] = (
    *(scenario,) * 4,
    *(places_scenario,) * 3,
    dependent_scenario,
    forms_scenario,
    range_scenario,
    set_scenario,
    top_scenario,
    *(windows_scenario,) * 2,
)
_BATCHES = (30, 40, 50)
_ROWS = (8, 8, 8, 24)
"""Rows of a table above which most updates are deletes."""
_MOST_ROWS = 150
"""Rows of a view above which the next batch deletes half of all rows."""
_LONG = 120
"""Maximum seconds of a scenario."""
_SHRINKING = 60
"""Maximum seconds for reducing a failing stream."""
_TOO_LARGE = "overflow: the result does not fit 64 bits"
"""The error for a decimal that DuckDB computes in 128 bits."""
_SEVERAL = ("; one is allowed", "two values where one is allowed")
"""Parts of the errors for a scalar subquery of several rows, and for equal rows that LIMIT numbers for each row of the
enclosing query. freshviews refuses such a batch even if no row of the enclosing query looks the subquery up; DuckDB
then does not."""


@dataclass(frozen=True)
class Course:
    """How one database maintains the views: the strategy, after how many batches the views are created, the batch at
    which they are altered and their new strategy, and whether the database is reopened now and then. ``grown``: tables
    get their columns with a DEFAULT just before the views are created. ``interrupted``: Ctrl-C comes in the middle of
    batches, which are then committed again."""

    strategy: str | None = None
    late: int = 0
    altered: tuple[int, str] | None = None
    durable: bool = False
    grown: bool = False
    interrupted: bool = False

    @property
    def grows(self) -> bool:
        return self.grown and self.late > 0


@dataclass
class Totals:
    """The numbers of a run."""

    scenarios: int = 0
    views: int = 0
    states: int = 0
    comparisons: int = 0
    batches: int = 0
    updates: int = 0
    refused_batches: int = 0
    interrupts: int = 0
    uncompared: int = 0
    nulls: int = 0
    peer_failed: int = 0
    by_construct: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in NAMES})
    by_strategy: Counter[str] = field(default_factory=Counter)
    by_course: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def report(self, seconds: float) -> str:
        lines = [
            f"{self.states:,} states of {self.views:,} views in {self.scenarios:,} scenarios, {self.comparisons:,} "
            f"comparisons with DuckDB, {seconds:.0f} s",
            f"{self.batches:,} batches of {self.updates:,} updates; {self.refused_batches:,} refused, as a scalar "
            f"subquery has several rows; {self.interrupts:,} times taken back after Ctrl-C; {self.uncompared:,} states "
            f"below zero passed over; {self.nulls:,} states of tables with a NULL; {self.peer_failed:,} scenarios that "
            "DuckDB ends with an internal error",
            "",
            "comparisons by strategy: " + ", ".join(f"{k} {n:,}" for k, n in self.by_strategy.most_common()),
            "databases: " + ", ".join(f"{k} {n:,}" for k, n in self.by_course.most_common()),
            "",
            f"{'construct':30} {'views':>8} {'states':>10}",
        ]
        lines += [f"{name:30} {n['views']:8,} {n['states']:10,}" for name, n in self.by_construct.items()]
        if self.refused:
            lines += ["", "refused at CREATE:", *(f"{n:6,}  {text}" for text, n in self.refused.most_common(12))]
        return "\n".join(lines)


class _Maintained:
    """A database, and the sums of the changes of its views."""

    def __init__(self, found: Scenario, course: Course, directory: Path | None, totals: Totals) -> None:
        self.course = course
        self._totals = totals
        self._scenario = found
        self._directory = directory
        self._batches = 0
        self.created = False
        self.sums: dict[str, Counter[Row]] = {}
        self.database = collecting(Database(directory))
        self._narrow = course.grows
        tables = [table.before if course.grows else table for table in found.tables]
        self.database.execute("; ".join(table.text.spark for table in tables))
        if not course.late:
            self._create()
        elif course.strategy is not None:
            # A strategy that cannot maintain the views says so at once.
            _Maintained(found, replace(course, late=0, durable=False), None, totals).database.close()

    @property
    def is_due(self) -> bool:
        """True if the next batch comes after the views are created."""
        return self._batches >= self.course.late

    def apply(self, version: Version) -> None:
        """Commit a batch. Raises BatchError if it is refused."""
        course, database = self.course, self.database
        if self.is_due and not self.created:
            self._create()
        if course.altered is not None and self._batches == course.altered[0]:
            for view in self._scenario.views:
                properties = f"('freshviews.strategy' = '{course.altered[1]}')"
                # If the strategy cannot maintain the view, the view stays as it was.
                with suppress(PlanError, UnsupportedSql):
                    database.execute(f"ALTER VIEW {view.name} SET TBLPROPERTIES {properties}")
        self._batches += 1
        if not (course.interrupted and self._is_in_spite_of_ctrl_c(version)):
            self._commit(version)
        if self._directory is not None and self._batches % 7 == 0:
            database.close()
            self.database = collecting(Database(self._directory))
            if self.created:
                self._subscribe()

    def _is_in_spite_of_ctrl_c(self, version: Version) -> bool:
        """Try to commit a batch while Ctrl-C comes, twice at most; returns whether a try succeeds."""
        draw, made = random.Random(self._batches), self.database.version
        for _ in range(2):
            try:
                with pressing(draw.randint(1, 12)):
                    self._commit(version)
                return True
            except InterruptedAfterCommit as late:
                assert late.version == self.database.version == made + 1
                self.database._notices.deliver()
                return True
            except KeyboardInterrupt:
                assert self.database.version == made
                self._totals.interrupts += 1
        return False

    def _commit(self, version: Version) -> None:
        """A batch of one table by ``insert``, ``delete`` or ``apply``; a batch of several tables by ``batch``; every
        other one by key, as far as tables have keys."""
        if self._batches % 2 and (calls := self._calls_by_key(version)):
            commit_by_key(self.database, calls)
            return
        ((table, updates), *more) = version
        signs = {m for _, m in updates}
        if more:
            with self.database.batch() as batch:
                for name, changes in version:
                    batch.apply(name, [(*self._row(name, row), m) for row, m in changes])
        elif signs == {1}:
            self.database.insert(table, [self._as_input(table, row, i) for i, (row, _) in enumerate(updates)])
        elif signs == {-1}:
            self.database.delete(table, [self._as_input(table, row, i) for i, (row, _) in enumerate(updates)])
        else:
            self.database.apply(table, [(*self._row(table, row), m) for row, m in updates])

    def _calls_by_key(self, version: Version) -> list[Call]:
        """The calls for a batch, by key where a table has one; none if no table has one."""
        calls: list[Call] = []
        if any(may_change_by_key(self._scenario.table(name)) for name, _ in version):
            for name, changes in version:
                updates = [(self._row(name, row), m) for row, m in changes]
                table = self._scenario.table(name)
                calls += calls_of(table.before if self._narrow else table, updates, self._batches // 2 % 4)
        return calls

    def _row(self, name: str, row: Row) -> Row:
        """The row as the table has it now: without a column that is added later."""
        table = self._scenario.table(name)
        if not self._narrow or not table.default:
            return row
        if row[-1] != table.default[0]:
            raise ValueError(f"{row} has a value other than {table.default} in a column that is added to {name} later")
        return row[:-1]

    def _as_input(self, name: str, row: Row, number: int) -> Row | dict[str, Any]:
        """The row as it is inserted and deleted: now and then by name, without the column that has its DEFAULT."""
        table = self._scenario.table(name)
        if self._narrow or not table.default or number % 2 or row[-1] != table.default[0]:
            return self._row(name, row)
        return dict(zip([column.name for column in table.columns[:-1]], row[:-1], strict=True))

    def undo(self, version: Version) -> None:
        """Before views exist: delete the rows that a batch inserted, and the other way round."""
        with self.database.batch() as batch:
            for table, updates in version:
                batch.apply(table, [(*self._row(table, row), -m) for row, m in updates])

    def refuse(self, table: str, row: Row) -> None:
        """A batch that deletes a missing row is refused as a whole."""
        if self._narrow and self._scenario.table(table).default:
            row = row[:-1]
        try:
            with self.database.batch() as batch:
                batch.apply(table, [(*row, 1)])
                batch.apply(table, [(*row, -1000)])
        except BatchError:
            return
        raise AssertionError(f"a delete of a missing row is accepted: {table} {row}")

    def compared(self, view: str, expected: Counter[Row]) -> bool:
        """Compare a view with DuckDB's rows, and with the sum of its changes; False if it is not created yet."""
        if not self.created:
            return False
        # A few rows at a time, so that reading stops and resumes anywhere.
        own = Counter(map(exact, rows_in_steps(self.database.view(view), 1 + self.database.version % 5)))
        found: Counter[Row] = Counter()
        for row, m in own.items():
            found[comparable(row)] += m
        assert found == expected, _difference(f"{view} under {self.course}, and DuckDB", found, expected)
        for key in self._keys(view):
            times = Counter[Row]()
            for row, m in own.items():
                times[tuple(row[i] for i in key)] += m
            assert max(times.values(), default=1) == 1, f"{key} are no key of {view} under {self.course}: {times}"
        reported = Counter({row: m for row, m in self.sums[view].items() if m})
        assert reported == own, _difference(f"the changes and the rows of {view} under {self.course}", reported, own)
        return True

    def _keys(self, view: str) -> list[list[int]]:
        """The positions of columns that are known to determine the rows of a view."""
        definition = self.database.view(view).state.definition
        names = [column.name for column in definition.columns]
        return [[names.index(name) for name in key] for key in row_keys(definition, self.database._relations.catalog)]

    def _create(self) -> None:
        strategy = self.course.strategy
        found = self._scenario
        if self._narrow:
            self.database.execute(";\n".join(table.addition for table in found.tables if table.default))
            self._narrow = False
        if strategy is None:
            self.database.execute(";\n".join(view.text.spark for view in (*found.plain, *found.views)))
        else:
            properties = ", ".join(f"'{name}' = '{value}'" for name, value in properties_of(strategy))
            named = f" TBLPROPERTIES ({properties}) AS "
            texts = [v.text.spark for v in found.plain]
            texts += [f"CREATE MATERIALIZED VIEW {v.name}{named}{v.query.spark}" for v in found.views]
            self.database.execute(";\n".join(texts))
        self.created = True
        for view in found.views:
            self.sums[view.name] = Counter(map(exact, self.database.view(view.name)))
        self._subscribe()

    def _subscribe(self) -> None:
        def add(change: Change) -> None:
            for row, m in change:
                self.sums[change.view][exact(row)] += m

        for view in self._scenario.views:
            self.database.view(view.name).subscribe(add)


@contextmanager
def pressing(every: int) -> Iterator[None]:
    """Within this block a batch has pieces of at most three rows, and Ctrl-C comes in every n-th of the calls by which
    tables and views take a piece or give it back, a view reads its change, and the log gets its record."""
    calls = count(1)

    def pressed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            if not next(calls) % every:
                signal.raise_signal(signal.SIGINT)
            return function(*arguments, **named)

        return run

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    views = [(MaintainedView, "apply"), (MaintainedView, "take_change")]
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGINT, before)
        for place, name in [*views, (commit, "record_of"), (base_store, "add_rows")]:
            stack.enter_context(patch.object(place, name, pressed(getattr(place, name))))
        for module in (commit, base_table):
            stack.enter_context(patch.object(module, "PIECE", 3))
        yield


def _difference(what: str, ours: Counter[Row], theirs: Counter[Row]) -> str:
    return f"{what} differ: only the first has {dict(ours - theirs)}, only the second {dict(theirs - ours)}"


class _Comparison:
    """A scenario in DuckDB and in several databases."""

    def __init__(self, found: Scenario, courses: Sequence[Course], totals: Totals) -> None:
        self._scenario = found
        self._totals = totals
        self._folder = TemporaryDirectory()
        self._peer = DuckDb(found)
        self._stale = {table.name for table in found.tables}
        self._constructs = {view.name: constructs(found, view) for view in found.views}
        self.maintained: list[_Maintained] = []
        try:
            for i, course in enumerate(courses):
                directory = Path(self._folder.name, str(i)) if course.durable else None
                try:
                    self.maintained.append(_Maintained(found, course, directory, totals))
                except PlanError:
                    # A strategy may refuse a view, the planner may not.
                    if course.strategy is None:
                        raise
        except BaseException:
            self.close()
            raise

    def step(self, version: Version, stored: Stored) -> int | None:
        """Commit a batch everywhere, and compare; returns the rows of the largest view, None if the batch is
        refused."""
        totals = self._totals
        refusals, accepted = [], []
        for one in self.maintained:
            try:
                one.apply(version)
                accepted.append(one)
            except (BatchError, EvaluationError) as refusal:
                refusals.append(refusal)
        if refusals:
            for one in accepted:
                assert not one.created, f"{one.course} accepts what others refuse: {refusals[0]}"
                one.undo(version)
            known = (*_SEVERAL, _TOO_LARGE) if self._has_long_decimals() else _SEVERAL
            if not any(part in str(refusals[0]) for part in known):
                raise refusals[0]
            totals.refused_batches += 1
            # The batch must be undone: the next batches are compared.
            return None
        totals.batches += 1
        totals.updates += sum(len(updates) for _, updates in version)
        self._stale.update(table for table, _ in version)
        if not stored.is_bag():
            totals.uncompared += len(self._scenario.views)
            return 0
        for table in self._stale:
            self._peer.fill(table, stored.rows[table])
        self._stale.clear()
        largest = 0
        null = any(value is None for rows in stored.rows.values() for row in rows for value in row)
        for view in self._scenario.views:
            expected = self._peer.rows(view.name)
            largest = max(largest, expected.total())
            under = [one for one in self.maintained if one.compared(view.name, expected)]
            totals.comparisons += len(under)
            for one in under:
                totals.by_strategy[one.course.strategy or "the planner's choice"] += 1
            if under:
                totals.states += 1
                totals.nulls += null
                for name in self._constructs[view.name]:
                    totals.by_construct[name]["states"] += 1
        return largest

    def _has_long_decimals(self) -> bool:
        """True if a view has a column whose type allows more digits than 64 bits have."""
        for one in self.maintained:
            if one.created:
                views = [one.database.view(view.name).state.definition for view in self._scenario.views]
                types = [column.type for view in views for column in view.columns]
                return any(t.name == "DECIMAL" and t.precision > 18 for t in types)
        return False

    def close(self) -> None:
        for one in self.maintained:
            one.database.close()
        self._folder.cleanup()


def replay(found: Scenario, course: Course) -> None:
    """Raises if the scenario's versions lead to a difference."""
    beside = _Comparison(found, [course], Totals())
    stored = Stored(found.tables)
    try:
        for version in found.versions:
            before = stored.copy()
            stored.apply(version)
            if beside.step(version, stored) is None:
                stored = before
    finally:
        beside.close()


@dataclass(frozen=True)
class Failure:
    """A scenario whose stream leads to a difference, and how its views are maintained."""

    scenario: Scenario
    course: Course
    error: Exception

    def least(self) -> Failure:
        """The same failure by a shorter stream, reduced for at most a minute."""
        until = time.monotonic() + _SHRINKING
        simple = replace(self.course, late=0, altered=None, durable=False)
        for course in dict.fromkeys((simple, self.course)):

            def fails(less: Scenario, course: Course = course) -> bool:
                if time.monotonic() > until or not is_allowed(less):
                    return False
                try:
                    replay(less, course)
                except type(self.error):
                    return True
                except Exception:
                    return False
                return False

            if fails(self.scenario):
                return replace(self, scenario=shrunk(self.scenario, fails), course=course)
        return self

    def __str__(self) -> str:
        try:
            replay(self.scenario, self.course)
            error: Exception = self.error
        except Exception as same:
            error = same
        return f"{self.scenario}\n{self.course}\n{type(error).__name__}: {error}"


def run_one(choose: Choices, totals: Totals, generators: Sequence[Generator]) -> Failure | None:
    """Draws the views and the stream of one scenario, and runs them."""
    found = _with_windows(choose, replace(choose.pick(generators)(choose), versions=()))
    if choose.chance(25):
        found = replace(found, tables=tuple(with_default(choose, table) for table in found.tables))
    batches = choose.pick(_BATCHES)
    below = any(table.trusted for table in found.tables) and choose.chance(15)
    courses = _courses(choose, found, batches)
    stream = LongStream(choose, found.tables, below, choose.pick(_ROWS), any(course.grows for course in courses))
    versions: list[Version] = []
    try:
        beside = _Comparison(found, courses, totals)
    except UnsupportedSql as refusal:
        totals.refused[str(refusal).partition(": ")[2]] += 1
        return None
    except PEER_FAILED:
        totals.peer_failed += 1
        restart()
        return None
    except Exception as error:
        return Failure(found, courses[0], error)
    try:
        for view in found.views:
            for name in constructs(found, view):
                totals.by_construct[name]["views"] += 1
        totals.scenarios += 1
        totals.views += len(found.views)
        for one in beside.maintained:
            totals.by_course[_kind(one.course)] += 1
        _run(choose, stream, beside, found, batches, versions)
    except PEER_FAILED:
        totals.peer_failed += 1
        restart()
    except Exception as error:
        failing = replace(found, versions=tuple(versions))
        for one in beside.maintained:
            try:
                replay(failing, one.course)
            except Exception as same:
                return Failure(failing, one.course, same)
        return Failure(failing, courses[0], error)
    finally:
        beside.close()
    return None


def _run(
    choose: Choices, stream: LongStream, beside: _Comparison, found: Scenario, batches: int, versions: list[Version]
) -> None:
    largest = 0
    checked = [table for table in found.tables if not table.trusted]
    for _ in range(batches):
        if any(one.course.grows and one.is_due for one in beside.maintained):
            stream.grow()
        before = stream.stored.copy()
        version = stream.halved() if largest > _MOST_ROWS and not stream.below else stream.batch()
        if not version:
            continue
        versions.append(version)
        size = beside.step(version, stream.stored)
        if size is None:
            stream.stored = before
            versions.pop()
        largest = size or 0
        if checked and choose.chance(5):
            table = choose.pick(checked)
            row = stream.row(table)
            for one in beside.maintained:
                one.refuse(table.name, row)
    if version := stream.emptied():
        versions.append(version)
        beside.step(version, stream.stored)


def _with_windows(choose: Choices, found: Scenario) -> Scenario:
    """Some tables without keys keep their latest rows only."""
    tables = tuple(
        replace(table, window=choose.between(3, 8)) if not table.key and choose.chance(5) else table
        for table in found.tables
    )
    return replace(found, tables=tables)


def _courses(choose: Choices, found: Scenario, batches: int) -> list[Course]:
    """The planner's choice, and one or two other strategies."""
    courses = [Course()]
    for _ in range(choose.between(1, 2)):
        courses.append(Course(choose.pick((*STRATEGIES, FACTORISED))))
    which = choose.between(0, len(courses) - 1)
    # Views over a trusted table, whose rows are not stored, are created before its first row.
    afterwards = () if any(t.trusted or t.window for t in found.tables) else ("late", "late", "altered", "altered")
    if afterwards and any(table.default for table in found.tables):
        afterwards = (*afterwards, *("grown",) * 8)
    match choose.pick(("live", "live", "live", "durable", "interrupted", *afterwards)):
        case "late":
            courses[which] = replace(courses[which], late=choose.between(1, batches // 2))
            # Only existing views can refuse a batch.
            courses.append(Course())
        case "grown":
            late, durable = choose.between(1, batches // 2), choose.chance(30)
            courses[which] = replace(courses[which], late=late, durable=durable, grown=True)
            courses.append(Course())
        case "altered":
            courses[which] = replace(courses[which], altered=(batches // 2, choose.pick(tuple(STRATEGIES))))
        case "durable" if choose.chance(30):
            courses[which] = replace(courses[which], durable=True)
        case "interrupted":
            courses[which] = replace(courses[which], interrupted=True, durable=choose.chance(15))
    return list(dict.fromkeys(courses))


def _kind(course: Course) -> str:
    if course.grown or course.interrupted:
        return "grown" if course.grown else "interrupted"
    return "durable" if course.durable else "late" if course.late else "altered" if course.altered else "live"


@contextmanager
def at_most(seconds: int, what: str = "a scenario") -> Iterator[None]:
    """Raises TimeoutError if the block takes longer."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"{what} takes more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def compare(
    states: int,
    seed: int,
    failures: int,
    shown: Callable[[str], Any],
    first: int = 0,
    generators: Sequence[Generator] = GENERATORS,
) -> tuple[Totals, int]:
    """Compare scenarios until ``states`` states are compared or ``failures`` scenarios have failed. Returns the totals
    and the number of failures. Ctrl-C ends it early."""
    totals, failed, number, said = Totals(), 0, first, time.monotonic()
    try:
        while totals.states < states and failed < failures:
            failed += run_number(seed, number, totals, shown, generators)
            number += 1
            if time.monotonic() > said + 60:
                said = time.monotonic()
                shown(f"{totals.states:,} states, {totals.scenarios:,} scenarios (the next is {number})")
    except KeyboardInterrupt:
        shown(f"interrupted; the next is {number}")
    return totals, failed


def run_number(
    seed: int, number: int, totals: Totals, shown: Callable[[str], Any], generators: Sequence[Generator] = GENERATORS
) -> bool:
    """Run one scenario of a seed, and print its failure; returns whether there is one."""
    try:
        with at_most(_LONG):
            failure = run_one(seeded(seed * 10**7 + number), totals, generators)
    except TimeoutError as late:
        shown(f"--seed {seed} --only {number}: {late}")
        return True
    if failure is None:
        return False
    shown(f"--seed {seed} --only {number}\n{failure.least()}\n")
    return True


def main(arguments: Sequence[str]) -> int:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.agreement.states", description=about)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first scenario")
    parser.add_argument("--only", type=int, help="the number of the one scenario to run")
    parser.add_argument("--failures", type=int, default=10, help="the number of failures that ends the run")
    names = list(dict.fromkeys(one.__name__ for one in GENERATORS))
    parser.add_argument("--generator", choices=names, help="this one alone")
    parser.add_argument("--compiled", action="store_true", help="compile every query, a second or more for each")
    chosen = parser.parse_args(arguments)
    # The order of sets of strings is fixed by the seed, too.
    wanted = {"PYTHONHASHSEED": str(chosen.seed), "FRESHVIEWS_PURE_PYTHON": "" if chosen.compiled else "1"}
    if any(os.environ.get(name, "") != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, "-m", "tests.agreement.states", *arguments], os.environ | wanted)

    def shown(text: str) -> None:
        print(text, flush=True)

    begun = time.monotonic()
    generators = [one for one in GENERATORS if chosen.generator in (None, one.__name__)]
    if chosen.only is not None:
        totals = Totals()
        failed = int(run_number(chosen.seed, chosen.only, totals, shown, generators))
    else:
        totals, failed = compare(chosen.states, chosen.seed, chosen.failures, shown, chosen.first, generators)
    shown(totals.report(time.monotonic() - begun))
    shown(f"{failed} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
