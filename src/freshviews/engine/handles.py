"""Defines ``View`` and ``Table``. They return the rows of a relation as Arrow, pandas, polars or Python tuples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from inspect import iscoroutinefunction
from itertools import chain, islice
from operator import index
from threading import RLock
from typing import Any, Literal, SupportsIndex

import numpy as np
import pyarrow as pa

from freshviews import arguments
from freshviews.catalog.definitions import ViewDef
from freshviews.catalog.nesting import room
from freshviews.catalog.row_keys import KEY, declared_key
from freshviews.catalog.widening import type_text
from freshviews.display.explanation import Explanation
from freshviews.display.grid import ROWS as SHOWN
from freshviews.display.grid import Grid, Shown, bytes_text, rows_text
from freshviews.engine.change import Called, Change, Subscription
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import repeated
from freshviews.engine.codes.key_codes import OneKey, key_codes
from freshviews.engine.commit.by_key import key_of
from freshviews.engine.commit.changes import Changes
from freshviews.engine.commit.notices import awaiting
from freshviews.engine.commit.queues import ChangeHistory, ChangeQueue, Queues, forget_ended
from freshviews.engine.measured.explaining import Measure, explained
from freshviews.engine.measured.listing import COUNTED
from freshviews.engine.reading import Reader
from freshviews.engine.relations import Relation, size_of
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.contents import not_readable
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import ArgumentError, CatalogError, FreshviewsError, shown
from freshviews.tracebacks import ends_at_the_call, lookup_ends_at_the_call
from freshviews.types import STRING
from freshviews.types.frames import Frames

ROWS = 1 << 16
"""Rows of a record batch, where the user does not say."""

COMPLETED = 1000
"""Most keys that completion offers."""

Guard = Callable[[Relation], AbstractContextManager[RLock]]
"""Locks the database and checks that it is open and the relation still there."""


def check_rows(method: str, rows: object) -> None:
    """Raise ArgumentError if ``rows``, of a record batch, is not a whole number of 1 or more."""
    if isinstance(rows, bool) or not isinstance(rows, SupportsIndex) or index(rows) < 1:
        raise ArgumentError(f"{method}: rows must be a whole number of 1 or more, not {shown(rows)}")


def found_or(default: Any, find: Callable[[Any], Any], key: Any) -> Any:
    """What ``find`` finds of a key, or a default. Raises ArgumentError if it is not a key."""
    try:
        found = find(key)
    except KeyError as error:
        raise ArgumentError(error.args[0]) from None
    return default if found is None else found


class Readable(Shown, Frames):
    """Rows of a table or view, as Arrow, pandas, polars or Python tuples."""

    def __init__(
        self, state: Relation, guard: Guard, version: Callable[[], int], is_held: Callable[[], bool]
    ) -> None:
        """``is_held``: whether this thread holds the version, so that others wait."""
        self._state = state
        self._guard = guard
        self._version = version
        self._is_held = is_held
        self._kept: tuple[int, pa.Table] | None = None

    @property
    def name(self) -> str:
        """Name of the table or view."""
        return self._state.name

    @ends_at_the_call
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

    @ends_at_the_call
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

    @ends_at_the_call
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

    @ends_at_the_call
    def head(self, n: int = 5) -> pa.Table:
        """Read the first rows, in the order of the view, and no more than these.

        Parameters
        ----------
        n
            Most rows, 0 or more; by default 5.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ArgumentError
            ``n`` is not a whole number of 0 or more.
        EvaluationError
            An output column cannot be computed for a row.

        Examples
        --------
        >>> db.view("by_part").head(1).to_pylist()
        [{'part': 'bolt', 'qty': 3}]
        """
        arguments.count("head(n)", n)
        decoder = self._state.decoder
        return pa.Table.from_batches(map(decoder.rows, self._first(n)), decoder.schema)[:n]

    def _first(self, rows: int) -> Iterator[CodeBatch]:
        """The batches with the first rows; the last one may have more."""
        batches = repeated(self._read(rows), rows) if rows else iter(())
        while rows > 0 and (batch := next(batches, None)) is not None:
            yield batch
            rows -= len(batch)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns, by Arrow's PyCapsule interface."""
        if self._is_held():
            # DuckDB asks for the rows in a thread of its own, which must not wait for the lock of the caller.
            self._kept = self._version(), self.to_arrow()
        return self.schema.__arrow_c_schema__()

    @ends_at_the_call
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows of one version, by Arrow's PyCapsule interface: polars, DuckDB and pyarrow read a view by it."""
        kept = self._kept
        if kept is None or self._state.closed or kept[0] != self._version() or kept[1].schema != self.schema:
            self._kept = None
            # Read at once: a consumer may ask for batches in another thread, while this one holds the lock.
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        return kept[1].__arrow_c_stream__(requested_schema)

    @ends_at_the_call
    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows. The first one has the names of the columns as ``_fields``, for pandas.

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
        rows = (row for batch in batches for row in decoder.tuples(batch))
        return chain(map(decoder.named, islice(rows, 1)), rows)

    @ends_at_the_call
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

    def _grid(self) -> Grid:
        state = self._state
        with self._guard(state):
            rows = [row for batch in self._first(SHOWN + 1) for row in state.decoder.tuples(batch)][: SHOWN + 1]
            held = size_of(state)
            count = len(rows) if len(rows) <= SHOWN else len(self) if held <= COUNTED else None
            size = f"more than {SHOWN} rows" if count is None else rows_text(count)
            kind = "view" if isinstance(state, ViewState) else "table"
            caption = f"{kind} {self.name} at version {self._version():,}: {size}, {bytes_text(held)}"
            columns = state.definition.columns
            types = [type_text(column) for column in columns]
            return Grid(caption, [c.name for c in columns], types, rows[:SHOWN], more=len(rows) > SHOWN)


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

    @ends_at_the_call
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
            self._check_has_key()
            side = state.stored.primary_key
            assert side is not None
            codes = key_codes(state.definition, side.columns, keys, state.decoder.dictionary)
            found = state.stored.with_keys(codes)
            return pa.Table.from_batches([state.decoder.rows(found)], self.schema)

    @lookup_ends_at_the_call
    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        """Find the row with a PRIMARY KEY.

        Parameters
        ----------
        key
            Value of the key's column, or a tuple of those of several, in the order of the PRIMARY KEY.

        Returns
        -------
        tuple[Any, ...]
            The row, as a tuple of Python values.

        Raises
        ------
        KeyError
            No row has the key, or it has another number or type of values.
        CatalogError
            The table has no PRIMARY KEY.

        Examples
        --------
        >>> db.table("parts")["nut"]
        ('nut', 20)
        """
        row = self._find(key)
        if row is None:
            raise KeyError(key)
        return row

    @ends_at_the_call
    def get(self, key: Any, default: Any = None) -> Any:
        """Find the row with a PRIMARY KEY, or else a default.

        Parameters
        ----------
        key
            As of ``table[key]``.
        default
            What is returned if no row has the key, by default None.

        Returns
        -------
        Any
            The row, as a tuple of Python values, or ``default``.

        Raises
        ------
        ArgumentError
            The key has another number or type of values.
        CatalogError
            The table has no PRIMARY KEY.

        Examples
        --------
        >>> db.table("parts").get("screw", "none")
        'none'
        """
        return found_or(default, self._find, key)

    @ends_at_the_call
    def __contains__(self, key: object) -> bool:
        """Whether a row has a PRIMARY KEY.

        Parameters
        ----------
        key
            As of ``table[key]``.

        Returns
        -------
        bool

        Raises
        ------
        ArgumentError, CatalogError
            As ``get``.

        Examples
        --------
        >>> "nut" in db.table("parts"), "screw" in db.table("parts")
        (True, False)
        """
        return found_or(None, self._find, key) is not None

    def _find(self, key: Any) -> tuple[Any, ...] | None:
        """The row with a key, or None. Raises KeyError if it is not a key of the table."""
        state = self._state
        with self._guard(state):
            self._check_has_key()
            assert state.stored is not None
            one = key_of(state)
            codes = one.codes(key)
            row = None if codes is None else state.stored.row_of(one.in_order(codes))
            return None if row is None else state.decoder.row(row)

    def _check_has_key(self) -> None:
        if not self._state.definition.has_primary_key:
            raise CatalogError(
                f"table {self.name} has no PRIMARY KEY, so rows cannot be looked up; declare one, or filter the rows"
            )

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
        version: Callable[[], int],
        is_held: Callable[[], bool],
        queues: Queues,
        replan: Callable[[], str | None],
        measure: Measure,
        inner: Callable[[], Sequence[ViewState]],
        derive: Callable[[], tuple[str, ...]],
    ) -> None:
        """``replan``: the ``'freshviews.updates'`` by which replanning pays, None where it does not. ``measure``: what
        is measured of a view's inputs. ``inner``: the internal views, each after its inputs. ``derive``: the columns
        that determine its rows, () if none do."""
        super().__init__(state, guard, version, is_held)
        self._queues = queues
        self._derive = derive
        self._derived: tuple[ViewDef | None, tuple[str, ...]] = (None, ())
        self._replan = replan
        self._measure = measure
        self._inner = inner

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

    @lookup_ends_at_the_call
    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        """Look up the row of a group, or of another key.

        A view without groups has a key if it shows columns that the PRIMARY KEYs of its tables make unique, as a join
        by keys or the first rows of a table, or if the property ``'freshviews.key'`` declares some. Its rows are all
        read to find one.

        Parameters
        ----------
        key
            Value of the GROUP BY column, or of the key's, or a tuple of those of several.

        Returns
        -------
        tuple[Any, ...]
            The row, as a tuple of Python values.

        Raises
        ------
        KeyError
            The view has no such row, or the key has another number or type of values.
        CatalogError
            The view has no groups, and no columns that are known to determine its rows; or several rows have the
            declared key.
        EvaluationError
            An output column cannot be computed for the row.

        Examples
        --------
        >>> db.view("by_part")["nut"]
        ('nut', 5)
        """
        row = self._find(key)
        if row is None:
            raise KeyError(key)
        return row

    @ends_at_the_call
    def get(self, key: Any, default: Any = None) -> Any:
        """Look up the row of a key, or else a default.

        Parameters
        ----------
        key
            As of ``view[key]``.
        default
            What is returned if the view has no such row, by default None.

        Returns
        -------
        Any
            The row, as a tuple of Python values, or ``default``.

        Raises
        ------
        ArgumentError
            The key has another number or type of values.
        CatalogError, EvaluationError
            As of ``view[key]``.

        Examples
        --------
        >>> db.view("by_part").get("nut"), db.view("by_part").get("screw", "none")
        (('nut', 5), 'none')
        """
        return found_or(default, self._find, key)

    def _find(self, key: Any) -> tuple[Any, ...] | None:
        """The row of a key, or None. Raises KeyError if it is not a key of the view."""
        state = self._state
        with self._guard(state):
            names, groups = self._key(), state.maintained.group_columns
            by_group = set(names) == set(groups)
            columns, stored = state.definition.columns, groups if by_group else ()
            one = OneKey(f"view {self.name}", names, columns, state.decoder.dictionary, stored)
            codes = one.codes(key)
            if codes is None:
                return None
            if not by_group:
                return self._only(names, codes, key)
            try:
                found = state.maintained.get(tuple(one.in_order(codes)))
            except Failed as failed:
                raise not_readable(self.name, failed.failure) from None
            # Before the lock is free: later the codes may be those of other strings.
            return state.decoder.row(found[0][0]) if found else None

    def _only(self, names: tuple[str, ...], codes: list[int], key: Any) -> tuple[Any, ...] | None:
        """The row with these codes in the columns of a key, or None. Raises CatalogError if a declared key has two."""
        rows = self._matching(names, codes)
        row = next(rows, None)
        if row is not None and declared_key(self._state.definition) and next(rows, None) is not None:
            listed = ", ".join(names)
            raise CatalogError(
                f"view {self.name}: its declared key ({listed}) is not unique, because several rows have "
                f"{shown(key)}; list these rows with where(column=value), or declare another key"
            )
        return row

    def _ipython_key_completions_(self) -> list[str]:
        """The first keys, for the completion of IPython; none if the key is not one string."""
        try:
            names = self._key()
        except CatalogError:
            return []
        column = next((c for c in self._state.definition.columns if (c.name,) == names), None)
        if column is None or column.type != STRING:
            return []
        return [key for key in self.head(COMPLETED)[column.name].to_pylist() if key is not None]

    @ends_at_the_call
    def scan(self, prefix: Any) -> list[tuple[Any, ...]]:
        """Find the rows whose key begins with given values, by reading all rows.

        Parameters
        ----------
        prefix
            Value of the first column of the key, or a tuple of those of the first columns.

        Returns
        -------
        list[tuple[Any, ...]]
            The rows, as tuples of Python values, in the order in which the view is read.

        Raises
        ------
        ArgumentError
            There are more values than columns of the key, or one is of another type.
        CatalogError, EvaluationError
            As of ``view[key]``.

        Examples
        --------
        >>> db.execute("CREATE MATERIALIZED VIEW pairs AS SELECT DISTINCT part, qty FROM items")
        >>> db.view("pairs").scan("nut")
        [('nut', 5)]
        """
        values = prefix if isinstance(prefix, tuple) else (prefix,)
        with self._guard(self._state):
            names = self._key()
            if len(values) > len(names):
                raise ArgumentError(f"view {self.name}: the key is ({', '.join(names)}), not {shown(prefix)}")
            return self.where(**dict(zip(names, values, strict=False)))

    @ends_at_the_call
    def where(self, /, **values: Any) -> list[tuple[Any, ...]]:
        """Find the rows with given values in some columns, by reading all rows.

        Parameters
        ----------
        values
            Values by column, in any case; None stands for NULL.

        Returns
        -------
        list[tuple[Any, ...]]
            The rows, as tuples of Python values, in the order in which the view is read.

        Raises
        ------
        ArgumentError
            The view has no such column, or the value is of another type.
        EvaluationError
            An output column cannot be computed for a row.

        Examples
        --------
        >>> db.view("by_part").where(qty=5)
        [('nut', 5)]
        """
        state = self._state
        with self._guard(state):
            columns = {column.name.lower(): column.name for column in state.definition.columns}
            names = []
            for name in values:
                if name.lower() not in columns or columns[name.lower()] in names:
                    reason = "is given twice" if name.lower() in columns else "is not a column"
                    known = ", ".join(columns.values())
                    raise ArgumentError(f"view {self.name}: {name} {reason}; the columns are {known}")
                names.append(columns[name.lower()])
            one = OneKey(f"view {self.name}", names, state.definition.columns, state.decoder.dictionary)
            try:
                codes = one.codes(tuple(values.values()))
            except KeyError as error:
                raise ArgumentError(error.args[0]) from None
            return [] if codes is None else [*self._matching(names, codes)]

    def _key(self) -> tuple[str, ...]:
        """The columns that the view declares as its key, or that determine its rows. Raises CatalogError if none do."""
        definition = self._state.definition
        if self._derived[0] is not definition:
            self._derived = definition, declared_key(definition) or self._derive()
        if not self._derived[1]:
            raise CatalogError(
                f"view {self.name} has no key to look up; declare one with ALTER VIEW {self.name} SET TBLPROPERTIES "
                f"('{KEY}' = 'column'), or filter rows with where(column=value)"
            )
        return self._derived[1]

    def _matching(self, names: Sequence[str], codes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The rows with these codes in some columns. The lock is held."""
        decoder = self._state.decoder
        for batch in repeated(self._read(ROWS), ROWS):
            same = np.ones(len(batch), bool)
            for name, code in zip(names, codes, strict=True):
                same &= batch.columns[name] == code
            if same.any():
                columns = {name: column[same] for name, column in batch.columns.items()}
                yield from decoder.tuples(CodeBatch(batch.relation, columns, batch.multiplicities[same]))

    @ends_at_the_call
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

            subscription = Subscription(callback, end, state.name)
            state.subscriptions.append(Called(subscription))
            state.want_change()
        return subscription

    @ends_at_the_call
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
        arguments.seconds(f"{name}(timeout)", timeout)
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
            known = f"start={now}, the present version"
            known = known if first == now else f"a start from {first} to {now}"
            raise ArgumentError(
                f"view {self.name}: the changes after version {start} are not kept; pass {known}, or "
                "start='snapshot' to begin with all rows. Call keep_changes(rows) earlier to keep more versions"
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
        >>> list(next(db.view("by_part").changes(version - 1)))
        [(('nut', 5), -1), (('nut', 6), 1)]
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

    @ends_at_the_call
    @room()
    def explain(self, strategies: bool = False) -> Explanation:
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
        Explanation
            A str of several lines: class, reason, strategy, the cost of an update, bounds, the program, what is stored
            and indexed, and whether replanning pays; the same of each internal view, and the bound of them all. Its
            ``to_dict``, ``mermaid`` and ``svg`` have the parts.

        Examples
        --------
        >>> print(db.view("by_part").explain().splitlines()[0])
        view by_part(part STRING, qty BIGINT)
        """
        arguments.flag("View.explain(strategies)", strategies)
        with self._guard(self._state):
            return explained(self._state, self._inner(), self._measure, strategies, self._replan())
