"""Queues the changes of a view for each iterator over them, and keeps the last changes for iterators that begin later.

A full queue drops its changes, or makes later commits wait until the iterator has taken some.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from threading import Condition, RLock, get_ident
from typing import TYPE_CHECKING

import numpy as np

from freshviews.engine.change import Change, Waiting
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.marks import keep_strings
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import QueueFull

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_PIECE = 1 << 16
_LOOK_SECONDS = 0.1
"""Seconds after which a waiting commit looks whether the iterator is garbage, or its event loop closed."""


def all_rows(view: ViewState, version: int) -> Change:
    """All rows of a view, as the change from no rows; called with the database locked."""
    batches = list(view.batches(_PIECE))
    columns = {
        column.name: np.concatenate([batch.columns[column.name] for batch in batches] or [np.zeros(0, np.int64)])
        for column in view.definition.columns
    }
    signs = np.concatenate([batch.multiplicities for batch in batches] or [np.zeros(0, np.int64)])
    rows = keep_strings(CodeBatch(view.name, columns, signs), view.decoder.dictionary)
    return Change(view.name, version, rows, view.decoder, is_snapshot=True)


class ChangeQueue:
    """The changes of a view that one iterator has not taken yet.

    ``size``: most rows that wait, not counting the last change. ``waits``: later commits wait if it is full; else it
    drops its changes and is ``behind``, until ``refresh`` puts all rows of the view in.
    """

    def __init__(self, view: ViewState, size: int, waits: bool, timeout: float, behind: bool) -> None:
        self.view = view
        self.size = size
        self.waits = waits
        self.timeout = timeout
        self.behind = behind
        self.active = True
        """False once the iterator is closed or garbage: the next commit or iterator takes the queue out of its view."""
        self.ended = False
        """Whether the view or the database is closed, so that no further change comes."""
        self.taker: int | None = None
        """The thread that last took a change."""
        self.loop: AbstractEventLoop | None = None
        """The event loop that last waited for a change."""
        self.rows = 0
        self._changes: deque[Change] = deque()
        # Its lock is reentrant: a signal handler may commit while this thread takes a change.
        self.moved = Condition(RLock())
        self._wakers: list[Callable[[], None]] = []

    @property
    def is_full(self) -> bool:
        return self.rows >= self.size and not self.has_ended

    def put(self, change: Change, waiting: Waiting | None = None) -> None:
        if not self.active or self.behind:
            return
        with self.moved:
            if self.rows and self.rows + len(change) > self.size and not self.waits:
                self._changes.clear()
                self.rows, self.behind = 0, True
            else:
                self._changes.append(change)
                self.rows += len(change)
        self._wake()

    def refresh(self, version: Callable[[], int]) -> None:
        """Put all rows of the view in, if the queue is behind; called with the database locked."""
        if self.behind and self.active:
            found = all_rows(self.view, version())
            with self.moved:
                self._changes.append(found)
                self.rows, self.behind = len(found), False
            if not self.active:
                self._changes.clear()

    def poll(self) -> Change | None:
        """Take the first change, if there is one."""
        self.taker = get_ident()
        with self.moved:
            try:
                found = self._changes.popleft()
            except IndexError:
                return None
            self.rows -= len(found)
            self.moved.notify_all()
        return found

    @property
    def has_ended(self) -> bool:
        """Whether no change comes after those that wait."""
        return self.ended or not self.active

    @property
    def has_more(self) -> bool:
        """Whether a change waits, or may be asked for, or none can come any more."""
        return bool(self._changes) or self.behind or self.has_ended

    def wait(self, until: float | None) -> bool:
        """Wait until there is more; False if that takes longer than ``until``, a time of ``time.monotonic``."""
        with self.moved:
            return self.moved.wait_for(lambda: self.has_more, None if until is None else until - time.monotonic())

    def call_when_more(self, waker: Callable[[], None]) -> bool:
        """Call a function from any thread once there is more; False if there is already."""
        with self.moved:
            if self.has_more:
                return False
            self._wakers.append(waker)
            return True

    def forget(self, waker: Callable[[], None]) -> None:
        with self.moved:
            if waker in self._wakers:
                self._wakers.remove(waker)

    def end(self) -> None:
        """The view or the database is closed: no further change comes."""
        self.ended = True
        self._wake()

    def close(self) -> None:
        self.abandon()
        self._wake()

    def abandon(self) -> None:
        """Drop the changes. Takes no lock: it runs wherever garbage is collected."""
        self.active = False
        self._changes.clear()

    def _wake(self) -> None:
        with self.moved:
            self.moved.notify_all()
            wakers, self._wakers = self._wakers, []
        for waker in wakers:
            waker()


class ChangeHistory:
    """The last changes of a view, so that an iterator can begin after an earlier version. ``rows``: most rows."""

    def __init__(self, rows: int, version: int) -> None:
        self.active = True
        self._most = rows
        self.first = version
        """All changes after this version are known."""
        self._rows = 0
        self._changes: deque[Change] = deque()

    def put(self, change: Change, waiting: Waiting | None = None) -> None:
        self._changes.append(change)
        self._rows += len(change)
        self.keep(self._most)

    def keep(self, rows: int) -> None:
        """Keep at most so many rows."""
        self._most = rows
        while self._rows > rows:
            dropped = self._changes.popleft()
            self._rows -= len(dropped)
            self.first = dropped.version

    def after(self, version: int) -> list[Change]:
        """The changes after a version, in order."""
        return [change for change in self._changes if change.version > version]

    def end(self) -> None:
        self._changes.clear()


class Queues:
    """The queues of a database that commits wait for. ``version``: returns the present version.

    A commit puts each change into the queues of its view as soon as the version counts, and never waits there. A full
    queue drops its changes and later gets all rows of the view. If the queue has ``waits`` set, it drops nothing: while
    it is full, later commits wait before they begin (``wait_for_room``), so they hold no lock while they wait. An
    iterator takes changes under the lock of its queue, so it never waits for a commit. Only a read of all rows takes
    the lock of the database, always before the lock of the queue.
    """

    def __init__(self, version: Callable[[], int]) -> None:
        self.version = version
        self.waited: list[ChangeQueue] = []


def hand_out(view: ViewState, change: Change, waiting: Waiting) -> None:
    """Give a change to all that follow the view: into queues at once, to functions when ``waiting`` is delivered."""
    ended = False
    for one in view.subscriptions:
        one.put(change, waiting)
        ended = ended or not one.active
    if ended:
        forget_ended(view)


def forget_ended(view: ViewState) -> None:
    """Take the queues of closed iterators out of a view; called with the database locked."""
    if not all(one.active for one in view.subscriptions):
        view.subscriptions[:] = [one for one in view.subscriptions if one.active]
        if not view.closed:
            view.want_change()


def wait_for_room(queues: list[ChangeQueue], views: Collection[ViewState], lock: RLock) -> None:
    """Before a commit that may change ``views``: wait until no queue of theirs that commits wait for is full.

    Raises QueueFull if that takes too long, or cannot happen because this thread takes the changes, or holds the
    database locked.
    """
    queues[:] = [one for one in queues if not one.has_ended]
    for queue in _full(queues, views):
        until = time.monotonic() + queue.timeout
        while queue.is_full:
            left = until - time.monotonic()
            if queue.loop is not None and queue.loop.is_closed():
                queue.abandon()
                break
            if queue.taker == get_ident():
                raise _refused(queue, "this thread reads the iterator, so the commit cannot wait for the iterator")
            if lock._is_owned():  # type: ignore[attr-defined]
                raise _refused(queue, "a commit in a subscriber or in at_one_version cannot wait for the iterator")
            if left <= 0:
                raise _refused(queue, f"the iterator took no change for {queue.timeout:g} seconds")
            with queue.moved:
                if queue.is_full:
                    queue.moved.wait(min(left, _LOOK_SECONDS))


def _full(queues: Iterable[ChangeQueue], views: Collection[ViewState]) -> list[ChangeQueue]:
    return [queue for queue in queues if queue.is_full and queue.view in views]


def _refused(queue: ChangeQueue, why: str) -> QueueFull:
    return QueueFull(
        f"view {queue.view.name}: {queue.rows} rows of changes wait for an iterator of full='wait', and {why}; the "
        "batch is not applied: take changes or close the iterator, commit in another thread, or use full='snapshot'"
    )
