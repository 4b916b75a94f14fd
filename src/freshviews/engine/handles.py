"""Handles by which users read views and stored tables, as Arrow, pandas, polars or Python tuples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from inspect import iscoroutinefunction
from operator import index
from threading import RLock
from typing import Any, Literal, SupportsIndex

import numpy as np
import pyarrow as pa

from freshviews import arguments
from freshviews.catalog.nesting import room
from freshviews.engine.change import Called, Change, Subscription
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import repeated
from freshviews.engine.codes.key_codes import key_codes
from freshviews.engine.commit.changes import Changes
from freshviews.engine.commit.notices import awaiting
from freshviews.engine.commit.queues import ChangeHistory, ChangeQueue, Queues, forget_ended
from freshviews.engine.measured.replanning import ADVISED_GAIN, cheaper_strategy
from freshviews.engine.measured.samples import Measurements
from freshviews.engine.reading import Reader
from freshviews.engine.relations import Relation
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.contents import not_readable
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import ArgumentError, CatalogError, FreshviewsError, shown
from freshviews.types.values import encoder_for

ROWS = 1 << 16
"""Rows of a record batch, where the user does not say."""

Guard = Callable[[Relation], AbstractContextManager[RLock]]
"""Locks the database and checks that it is open and the relation still there."""


def check_rows(method: str, rows: object) -> None:
    """Raise ArgumentError if ``rows``, of a record batch, is not a whole number of 1 or more."""
    if isinstance(rows, bool) or not isinstance(rows, SupportsIndex) or index(rows) < 1:
        raise ArgumentError(f"{method}: rows must be a whole number of 1 or more, not {shown(rows)}")


class Readable:
    """Rows of a table or view, as Arrow, pandas, polars or Python tuples."""

    def __init__(self, state: Relation, guard: Guard) -> None:
        self._state = state
        self._guard = guard

    @property
    def name(self) -> str:
        """Name of the table or view."""
        return self._state.name

    def check(self) -> None:
        """Raise what reading would, where the database is closed or the relation was dropped.

        Raises
        ------
        FreshviewsError
            The database is closed.
        CatalogError
            The table or view was dropped.

        Examples
        --------
        >>> db.view("by_part").check()
        """
        with self._guard(self._state):
            pass

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as a pyarrow Schema."""
        return self._state.decoder.schema

    def to_batches(self, rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        """Read the rows in record batches, one after the other.

        Parameters
        ----------
        rows
            Most rows of a record batch, 1 or more; by default 65,536.

        Returns
        -------
        Iterator[pyarrow.RecordBatch]

        Raises
        ------
        ArgumentError
            ``rows`` is no whole number of 1 or more.
        EvaluationError
            An output column cannot be computed for a row.

        Examples
        --------
        >>> [batch.num_rows for batch in db.view("by_part").to_batches(1)]
        [1, 1]
        """
        check_rows("to_batches", rows)
        decoder = self._state.decoder
        return map(decoder.rows, repeated(self._read(rows), rows))

    def to_arrow(self) -> pa.Table:
        """Read all rows as one Arrow table.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> db.view("by_part").to_arrow().to_pydict()
        {'part': ['bolt', 'nut'], 'qty': [3, 5]}
        """
        decoder = self._state.decoder  # that of this version: a table may get columns meanwhile
        return pa.Table.from_batches([decoder.rows(one) for one in repeated(self._read(ROWS), ROWS)], decoder.schema)

    def to_pandas(self) -> Any:
        """Read all rows as a pandas DataFrame. Where a DATE is outside the years 1 to 9999, dates are ``datetime64``.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> db.view("by_part").to_pandas()["qty"].tolist()
        [3, 5]
        """
        rows = self.to_arrow()
        try:
            return rows.to_pandas()
        except (ValueError, OverflowError):
            return rows.to_pandas(date_as_object=False)

    def to_polars(self) -> Any:
        """Read all rows as a polars DataFrame.

        Returns
        -------
        polars.DataFrame

        Examples
        --------
        >>> db.view("by_part").to_polars().shape
        (2, 2)
        """
        import polars

        return polars.from_arrow(self.to_arrow())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows.

        Returns
        -------
        Iterator[tuple[Any, ...]]
            Tuples of Python values.

        Examples
        --------
        >>> list(db.view("by_part"))
        [('bolt', 3), ('nut', 5)]
        """
        decoder = self._state.decoder  # that of this version: a table may get columns meanwhile
        batches = repeated(self._read(ROWS), ROWS)
        return (row for batch in batches for row in decoder.tuples(batch))

    def __len__(self) -> int:
        """Count the rows, each as often as it is there, by reading them.

        Returns
        -------
        int
            The number of rows.

        Raises
        ------
        FreshviewsError
            There are more rows than ``len`` can return.

        Examples
        --------
        >>> len(db.view("by_part"))
        2
        """
        counts = (np.maximum(batch.multiplicities, 0) for batch in Readable._read(self, ROWS))
        rows = sum((int((count >> 32).sum()) << 32) + int((count & 0xFFFFFFFF).sum()) for count in counts)
        if rows > sys.maxsize:
            raise FreshviewsError(f"{self.name} has {rows} rows, more than len() can return")
        return rows

    def _read(self, rows: int) -> Iterator[CodeBatch]:
        state = self._state
        with self._guard(state) as lock:
            return Reader(lambda: state.batches(rows), state.readers, lock, state.decoder.dictionary)

    def __repr__(self) -> str:
        columns = ", ".join(f"{c.name} {c.type}" for c in self._state.definition.columns)
        kind = "view" if isinstance(self._state, ViewState) else "table"
        return f"<{kind} {self.name} ({columns})>"


class Table(Readable):
    """A stored base table, as ``Database.table`` finds it.

    Reading and its errors are as of ``View``.

    Examples
    --------
    >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT)")
    >>> db.insert("parts", [("bolt", 30), ("nut", 20)])
    2
    >>> list(db.table("parts"))
    [('bolt', 30), ('nut', 20)]
    """

    _state: TableState

    def lookup(self, keys: pa.RecordBatch | pa.Table) -> pa.Table:
        """Look stored rows up by their PRIMARY KEY. The cost is by the keys, not by the table.

        Parameters
        ----------
        keys
            The columns of the key, by name in any case; other columns are ignored.

        Returns
        -------
        pyarrow.Table
            The rows with one of the keys: all columns, each row once, in any order. A key of which no row is stored,
            and one with a NULL, finds nothing.

        Raises
        ------
        CatalogError
            The table has no PRIMARY KEY.
        BatchError
            A column of the key is missing, or a value, whose row it has, cannot be of its type.
        ArgumentError
            ``keys`` is neither a RecordBatch nor a Table.

        Examples
        --------
        >>> import pyarrow as pa
        >>> db.table("parts").lookup(pa.table({"part": ["nut", "screw"]})).to_pylist()
        [{'part': 'nut', 'price': 20}]
        """
        if not isinstance(keys, pa.RecordBatch | pa.Table):
            raise ArgumentError(
                f"lookup takes keys as a pyarrow RecordBatch or Table, not {type(keys).__name__}; for one key: "
                f"pyarrow.table({{'{self._key_name()}': [value]}})"
            )
        state = self._state
        with self._guard(state):
            assert state.stored is not None
            side = state.stored.primary_key
            if side is None:
                raise CatalogError(
                    f"table {self.name} has no PRIMARY KEY to look rows up by; declare one, or filter its rows"
                )
            codes = key_codes(state.definition, side.columns, keys, state.decoder.dictionary)
            found = state.stored.with_keys(codes)
            return pa.Table.from_batches([state.decoder.rows(found)], self.schema)


    def _key_name(self) -> str:
        """The first column of the key, for an example."""
        keys = self._state.definition.keys
        return keys[0][0] if keys else self._state.definition.columns[0].name


class View(Readable):
    """A view, maintained at every commit, as ``Database.view`` finds it.

    If its query has an ORDER BY, its rows come in that order. Every reader sees the version at which it began, also if
    others are committed meanwhile. A row of multiplicity 2 comes twice; a row of negative multiplicity, which only
    trusted tables can bring about, does not come. Reading raises EvaluationError where an output column cannot be
    computed for a row, CatalogError once the view was dropped, and FreshviewsError once the database is closed.

    Examples
    --------
    >>> view = db.view("by_part")
    >>> view["bolt"], len(view), view.schema.names
    (('bolt', 3), 2, ['part', 'qty'])
    """

    _state: ViewState

    def __init__(
        self,
        state: ViewState,
        guard: Guard,
        queues: Queues,
        replan: Callable[[], str | None],
        measure: Callable[[], Measurements],
    ) -> None:
        """``replan``: the ``'freshviews.updates'`` by which replanning pays, None where it does not. ``measure``: what
        is measured of the view's inputs."""
        super().__init__(state, guard)
        self._queues = queues
        self._replan = replan
        self._measure = measure

    @property
    def state(self) -> ViewState:
        """The view as the engine knows it; not for programs, as it changes between releases."""
        return self._state

    def _read(self, rows: int) -> Iterator[CodeBatch]:
        state = self._state
        with self._guard(state) as lock:
            reader = Reader(lambda: state.ordered(rows), state.readers, lock, state.decoder.dictionary)
            if state.ordered_from is not None:
                state.ordered_from.readers.add(reader)
            return reader

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        """Look up the row of a group.

        Parameters
        ----------
        key
            Value of the GROUP BY column, or a tuple of those of several.

        Returns
        -------
        tuple[Any, ...]
            The row, as a tuple of Python values.

        Raises
        ------
        KeyError
            The view has no such row, or the key has another number or type of values.
        CatalogError
            The rows of the view are not found by a group key.
        EvaluationError
            An output column cannot be computed for the row.

        Examples
        --------
        >>> db.view("by_part")["nut"]
        ('nut', 5)
        """
        state = self._state
        with self._guard(state):
            names = state.maintained.group_columns
            if not names:
                raise CatalogError(
                    f"view {self.name} has no group key to look up; a view has one if it is SELECT DISTINCT, "
                    "or if its SELECT has all columns of its GROUP BY"
                )
            values = key if isinstance(key, tuple) else (key,)
            if len(values) != len(names):
                raise KeyError(f"the key of view {self.name} is ({', '.join(names)}), not {key!r}")
            codes = self._key_codes(names, values)
            try:
                found = [] if codes is None else state.maintained.get(codes)
            except Failed as failed:
                raise not_readable(self.name, failed.failure) from None
            if not found:
                raise KeyError(key)
            # Before the lock is free: later the codes may be those of other strings.
            return state.decoder.row(found[0][0])

    def _key_codes(self, names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[int, ...] | None:
        """The codes of a key; None if the dictionary lacks a string of it."""
        columns = {column.name: column for column in self._state.definition.columns}
        codes = []
        for name, value in zip(names, values, strict=True):
            kind = columns[name].type
            if kind.name == "STRING" and isinstance(value, str):
                code = self._state.decoder.dictionary.find(value)
                if code is None:
                    return None
            else:
                try:
                    code = encoder_for(kind, True, self._state.decoder.dictionary)(value)
                except (TypeError, ValueError, OverflowError) as error:
                    raise KeyError(f"{name} of view {self.name}: {shown(value)}: {error}") from None
            codes.append(code)
        return tuple(codes)

    def subscribe(self, callback: Callable[[Change], object]) -> Subscription:
        """Call a function with every change of the view that is not empty, from now on.

        It is called after the commit, in the thread that committed, one change after the other. What it raises does not
        undo the batch: the other subscribers are still called, then SubscriberError is raised to the caller of the
        commit. A callback may insert; subscribers are called with that change afterwards.

        Parameters
        ----------
        callback
            Function of a ``Change``.

        Returns
        -------
        Subscription
            ``close`` ends the subscription, as does the end of its ``with`` block.

        Raises
        ------
        ArgumentError
            ``callback`` cannot be called, or is an ``async def``, which ``changes`` is for.

        Examples
        --------
        >>> subscription = db.view("by_part").subscribe(lambda change: print(list(change)))
        >>> version = db.insert("items", [("bolt", 4)])
        [(('bolt', 3), -1), (('bolt', 7), 1)]
        """
        state = self._state
        if not callable(callback):
            came = type(callback).__name__
            raise ArgumentError(f"view {state.name}: a subscriber must be a function of a change, not {came}")
        if iscoroutinefunction(callback) or iscoroutinefunction(getattr(callback, "__call__", None)):  # noqa: B004
            raise ArgumentError(
                f"view {state.name}: a subscriber is called in the thread that commits, and cannot be an async def; "
                f"{awaiting(state.name)}"
            )

        with self._guard(state) as lock:

            def end(subscription: Subscription) -> None:
                with lock:
                    forget_ended(state)

            subscription = Subscription(callback, end)
            state.subscriptions.append(Called(subscription))
            state.want_change()
        return subscription

    def changes(
        self,
        start: Literal["snapshot", "now"] | int = "snapshot",
        *,
        size: int = ROWS,
        full: Literal["snapshot", "wait"] = "snapshot",
        timeout: float = 60.0,
    ) -> Changes:
        """Iterate over the changes of the view, in a thread (``for``) or in an event loop (``async for``).

        No change is left out and none comes twice: what comes first is the view at one version, and each change leads
        from there to a later one. A commit puts changes into a queue, and goes on. docs/following.md has examples.

        Parameters
        ----------
        start
            ``"snapshot"``, the default: all rows come first, at the version at which they are taken. ``"now"``: only
            changes after this call. A version: the changes after it, if they are known (``keep_changes``).
        size
            Most rows that wait to be taken, 1 or more, by default 65,536; a single change may have more.
        full
            What happens when more would wait. ``"snapshot"``, the default: they are dropped, and all rows of the view,
            as a change whose ``is_snapshot`` is True, are in their place; a commit never waits. ``"wait"``: later
            commits wait before they begin until changes are taken, in this process only.
        timeout
            Seconds after which a commit that waits raises QueueFull, by default 60. It raises at once in the thread
            that takes the changes, in a subscriber and within ``at_one_version``.

        Returns
        -------
        Changes
            The iterator. Close it, use it in a ``with`` block, or drop it.

        Raises
        ------
        ArgumentError
            An argument is of a wrong type or out of range, or the changes after the version are not known.

        Examples
        --------
        >>> rows = {}
        >>> with db.view("by_part").changes() as changes:
        ...     version = db.insert("items", [("nut", 1)])
        ...     for row, multiplicity in next(changes):
        ...         print(row, multiplicity)
        ('bolt', 3) 1
        ('nut', 6) 1
        """
        name = f"view {self.name}: changes"
        arguments.count(f"{name}(size)", size, 1)
        arguments.number(f"{name}(timeout)", timeout)
        if full not in ("snapshot", "wait"):
            raise ArgumentError(f"{name}: full must be 'snapshot' or 'wait', not {shown(full)}")
        is_version = isinstance(start, int) and not isinstance(start, bool)
        if start not in ("snapshot", "now") and not is_version:
            raise ArgumentError(f"{name}: start must be 'snapshot', 'now' or a version, not {shown(start)}")
        state = self._state
        with self._guard(state) as lock:
            queue = ChangeQueue(state, size, full == "wait", timeout, start == "snapshot")
            for change in self._changes_after(int(start)) if is_version else ():
                queue.put(change)
            forget_ended(state)
            state.subscriptions.append(queue)
            state.want_change()
            if queue.waits:
                self._queues.waited.append(queue)
            return Changes(queue, lock, partial(self._guard, state), self._queues.version)

    def _changes_after(self, start: int) -> list[Change]:
        """The changes after a version. Raises ArgumentError if they are not known."""
        now = self._queues.version()
        kept = next((one for one in self._state.subscriptions if isinstance(one, ChangeHistory)), None)
        first = now if kept is None else kept.first
        if not first <= start <= now:
            known = f"those after version {now}, the present one,"
            known = known if first == now else f"those after versions {first} to {now}"
            raise ArgumentError(
                f"view {self.name}: the changes after version {start} are not known; {known} are. keep_changes(rows), "
                "called before, keeps more of them; start='snapshot' begins with all rows"
            )
        return [] if kept is None else kept.after(start)

    def keep_changes(self, rows: int = ROWS) -> None:
        """Keep the last changes of the view in memory, so that ``changes`` can start at an earlier version.

        Parameters
        ----------
        rows
            Most rows of changes that are kept, by default 65,536; the oldest changes go first. 0 keeps none.

        Raises
        ------
        ArgumentError
            ``rows`` is no whole number of 0 or more.

        Examples
        --------
        >>> db.view("by_part").keep_changes()
        >>> version = db.insert("items", [("nut", 1)])
        >>> next(db.view("by_part").changes(version - 1))
        <change of view by_part at version 2: 2 rows>
        """
        arguments.count(f"view {self.name}: keep_changes(rows)", rows)
        state = self._state
        with self._guard(state):
            kept = next((one for one in state.subscriptions if isinstance(one, ChangeHistory)), None)
            if kept is None:
                if rows:
                    state.subscriptions.append(ChangeHistory(rows, self._queues.version()))
            else:
                kept.keep(rows)
                kept.active = bool(rows)
            forget_ended(state)
            state.want_change()

    @room()
    def explain(self, strategies: bool = False) -> str:
        """Explain how the view is maintained, and whether another way would be cheaper (docs/explain.md).

        The cost is computed from a sample of the rows of what the view reads; where that has no rows, or does not store
        them, from assumed degrees.

        Parameters
        ----------
        strategies
            True: also plan the view by every strategy, which may take seconds, and show the steps of an update under
            each; if one takes less than half of the steps, say how it is named. Default: False.

        Returns
        -------
        str
            Text of several lines: class, reason, strategy, the cost of an update, bounds, the program, what is stored
            and indexed, and whether replanning pays.

        Examples
        --------
        >>> print(db.view("by_part").explain().splitlines()[0])
        view by_part(part STRING, qty BIGINT)
        """
        arguments.flag("View.explain(strategies)", strategies)
        with self._guard(self._state):
            maintained, measured = self._state.maintained, self._measure()
            comparisons = maintained.compare(measured.degrees, measured.rates) if strategies else ()
            text = maintained.explain(measured.degrees, comparisons)
            cheaper = cheaper_strategy(maintained.plans, comparisons, ADVISED_GAIN)
            if cheaper is not None:
                best, steps, now = cheaper
                text += f"\nsteps: an update takes {steps:,.1f} steps with {best}, {now:,.1f} with this plan; "
                text += f"db.replan('{self.name}', strategies=True) switches to {best}\n"
            updates = self._replan()
            if updates is None:
                return text
            advice = f"replan: another join tree would at least halve the cost of updates; db.replan('{self.name}')"
            return f"{text}\n{advice} chooses it, and sets 'freshviews.updates' = '{updates}'\n"
