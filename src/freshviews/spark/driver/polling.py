"""The thread that polls tables of databases while a pipeline runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock, current_thread

from pyspark import InheritableThread

from freshviews.errors import SourceError
from freshviews.spark.io.sources import Source

_LOGGER = logging.getLogger("freshviews")

AWAY = 600.0
"""Seconds that a database may be away while a run goes on."""
MOST_PAUSE = 60.0
"""Seconds between two tries of a database that is away, at most."""
_LONGEST = 30.0
"""Seconds that a stop waits for a poll."""


class Polling:
    """Polls tables in a thread until it is stopped, each in its own time.

    ``poll`` makes a version of what is new of some tables, and returns the errors of those that cannot be read. These
    are tried again, for ``AWAY`` seconds at most; then, and at any other error, ``fail`` is called with it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        poll: Callable[[Sequence[Source]], Mapping[str, SourceError]],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._sources = sources
        self._poll, self._fail = poll, fail
        self._one_at_a_time = Lock()
        self._stopped = Event()
        self._thread = InheritableThread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive() and not self._stopped.is_set()

    def now(self) -> None:
        """Poll all tables at once. Raises SourceError of one that cannot be read, and what ``poll`` raises."""
        with self._one_at_a_time:
            for error in self._poll(self._sources).values():
                raise error

    def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Poll no more. Waits for a poll under way, but not for itself."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(_LONGEST)

    def _run(self) -> None:
        next_at = {source.table.name: time.monotonic() + _every(source) for source in self._sources}
        away: dict[str, _Away] = {}
        while not self._stopped.wait(max(0.0, min(next_at.values()) - time.monotonic())):
            due = [source for source in self._sources if next_at[source.table.name] <= time.monotonic()]
            try:
                with self._one_at_a_time:
                    failed = self._poll(due)
            except BaseException as error:
                if not self._stopped.is_set():
                    self._fail(error)
                return
            now = time.monotonic()
            for source in due:
                name, pause = source.table.name, _every(source)
                before = away.pop(name, None)
                if name in failed:
                    since = now if before is None else before.since
                    if now - since > AWAY:
                        self._fail(failed[name])
                        return
                    pause = min(max(pause, 0.0 if before is None else 2 * before.pause), max(pause, MOST_PAUSE))
                    away[name] = _Away(since, pause)
                    _LOGGER.warning("%s; the run goes on, and tries again in %d seconds", failed[name], pause)
                next_at[name] = now + pause


@dataclass(frozen=True)
class _Away:
    """A table that cannot be read: since when, and the seconds until the next try."""

    since: float
    pause: float


def _every(source: Source) -> float:
    assert source.spec.poll is not None
    return float(source.spec.poll.every)
