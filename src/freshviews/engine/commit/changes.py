"""Defines ``Changes``, an iterator over the changes of a view, for threads and for asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING

from freshviews import arguments
from freshviews.engine.change import Change
from freshviews.engine.commit.queues import ChangeQueue
from freshviews.errors import FreshviewsError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


class Changes:
    """The changes of a view, one after the other, for ``for`` and for ``async for``: what ``View.changes`` returns.

    The iteration waits for the next change. It ends when the iterator or the database is closed, or the view is
    dropped; before that come the changes that wait. Several threads or tasks may share an iterator; each change comes
    to one of them. An iterator that is garbage is closed.

    Examples
    --------
    >>> with db.view("by_part").changes() as changes:
    ...     list(next(changes))
    [(('bolt', 3), 1), (('nut', 5), 1)]
    """

    def __init__(
        self,
        queue: ChangeQueue,
        lock: RLock,
        guard: Callable[[], AbstractContextManager[RLock]],
        version: Callable[[], int],
    ) -> None:
        """``guard``: takes ``lock``, that of the database, and raises an error if it is closed or the view dropped."""
        self._queue = queue
        self._lock = lock
        self._guard = guard
        self._version = version
        self._process = os.getpid()

    def __iter__(self) -> Changes:
        """Iterate in a thread.

        Returns
        -------
        Changes
            The iterator itself.

        Examples
        --------
        >>> for change in db.view("by_part").changes():
        ...     print(list(change))
        ...     break
        [(('bolt', 3), 1), (('nut', 5), 1)]
        """
        return self

    def __next__(self) -> Change:
        found = self.take()
        if found is None:
            raise StopIteration
        return found

    def take(self, timeout: float | None = None) -> Change | None:
        """Take the next change, waiting for it if need be.

        Parameters
        ----------
        timeout
            Most seconds to wait; 0 does not wait. None, the default: until there is a change.

        Returns
        -------
        Change | None
            None if no change came in time, or the iteration has ended.

        Raises
        ------
        ArgumentError
            ``timeout`` is not a number of 0 or more.
        FreshviewsError
            No change can come, because this thread holds the version (``Database.at_one_version``, a subscriber).
        EvaluationError
            All rows of the view are needed, and an output column cannot be computed for a row.

        Examples
        --------
        >>> changes = db.view("by_part").changes("now")
        >>> version = db.insert("items", [("nut", 1)])
        >>> list(changes.take()), changes.take(0)
        ([(('nut', 5), -1), (('nut', 6), 1)], None)
        """
        if timeout is not None:
            arguments.seconds("Changes.take(timeout)", timeout)
        until = None if timeout is None else time.monotonic() + timeout
        queue = self._queue
        while True:
            ended = queue.has_ended  # Before the queue is read: a last change may come meanwhile.
            found = queue.poll()
            if found is not None or ended:
                return found
            if queue.behind:
                self._refresh()
                continue
            if timeout != 0 and self._is_locked_here:
                raise FreshviewsError(
                    f"view {queue.view.name}: waiting would never end, because this thread blocks new versions; wait "
                    "outside of at_one_version and subscribers, or call take(0)"
                )
            self._check_process()
            if not queue.wait(until):
                return None

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        from asyncio import get_running_loop  # Imported here: programs without an event loop start faster.

        queue = self._queue
        loop = queue.loop = get_running_loop()
        while True:
            ended = queue.has_ended
            # Nothing is awaited once a change is taken, so a task that is cancelled loses none.
            found = queue.poll()
            if found is not None:
                return found
            if ended:
                raise StopAsyncIteration
            if queue.behind:
                if self._is_locked_here:
                    self._refresh()
                else:  # In another thread, as a commit may hold the lock.
                    await loop.run_in_executor(None, self._refresh)
                continue
            self._check_process()
            future = loop.create_future()
            waker = partial(_wake, loop, future)
            if queue.call_when_more(waker):
                try:
                    await future
                finally:
                    queue.forget(waker)

    def close(self) -> None:
        """End the iteration, also for threads and tasks that wait for a change. A second call does nothing.

        Examples
        --------
        >>> changes = db.view("by_part").changes()
        >>> changes.close()
        >>> list(changes)
        []
        """
        self._queue.close()

    def _refresh(self) -> None:
        try:
            with self._guard():
                self._queue.refresh(self._version)
        except FreshviewsError:
            if not self._queue.has_ended:
                raise

    def _check_process(self) -> None:
        """Before waiting in a forked child: raise FreshviewsError if it cannot use the database, so no change comes."""
        if os.getpid() != self._process:
            with self._guard():
                pass

    @property
    def _is_locked_here(self) -> bool:
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def __del__(self) -> None:
        self._queue.abandon()

    def __enter__(self) -> Changes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Changes:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<changes of view {self._queue.view.name}{', ended' if self._queue.has_ended else ''}>"


def _wake(loop: AbstractEventLoop, future: Future[None]) -> None:
    """Wake a task from any thread. A closed loop has none: its task, and so its iterator, becomes garbage."""

    def found() -> None:
        if not future.done():
            future.set_result(None)

    with suppress(RuntimeError):
        loop.call_soon_threadsafe(found)
