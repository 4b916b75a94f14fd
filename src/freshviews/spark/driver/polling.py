"""The thread that polls tables of databases while a pipeline runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, current_thread

from pyspark import InheritableThread

from freshviews.errors import SourceError
from freshviews.spark.io.sources import Source

_LOGGER = logging.getLogger("freshviews")

AWAY = 600.0
"""Seconds that a database may be away while a run goes on."""
_LONGEST = 30.0
"""Seconds that a stop waits for a poll."""


class Polling:
    """Polls tables in a thread until it is stopped, each in its own time.

    ``poll`` makes a version of what is new of some tables. A database that is away is tried again, for ``AWAY`` seconds
    at most; then, and at any other error, ``fail`` is called with it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        poll: Callable[[Sequence[Source]], None],
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
        """Poll all tables at once. Raises what ``poll`` raises."""
        with self._one_at_a_time:
            self._poll(self._sources)

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
        away_since: float | None = None
        while not self._stopped.wait(max(0.0, min(next_at.values()) - time.monotonic())):
            due = [source for source in self._sources if next_at[source.table.name] <= time.monotonic()]
            try:
                with self._one_at_a_time:
                    self._poll(due)
                away_since = None
            except SourceError as error:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > AWAY:
                    self._fail(error)
                    return
                _LOGGER.warning("%s; the run goes on, and tries again", error)
            except BaseException as error:
                if not self._stopped.is_set():
                    self._fail(error)
                return
            next_at |= {source.table.name: time.monotonic() + _every(source) for source in due}


def _every(source: Source) -> float:
    assert source.spec.poll is not None
    return float(source.spec.poll.every)
