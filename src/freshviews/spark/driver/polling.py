"""Reads tables of databases again and again for new rows, in a thread, while a pipeline runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Event, Lock, current_thread

from pyspark import InheritableThread

from freshviews.errors import SourceError
from freshviews.records import dataclass
from freshviews.spark.connectors.polls import AWAY
from freshviews.spark.io.sources import Source

_LOGGER = logging.getLogger("freshviews")

MOST_PAUSE = 60.0
"""Seconds between two tries of a database that is away, at most."""
_LONGEST = 30.0
"""Seconds that a stop waits for a poll."""


def referring(sources: Sequence[Source], names: Collection[str]) -> set[str]:
    """The tables among ``sources`` that refer to tables with these ``names`` by FOREIGN KEYs, directly or through
    others."""
    found: set[str] = set()
    reached = {name.lower() for name in names}
    while True:
        more = {source.table.name for source in sources if reached & _parents(source)} - found
        if not more:
            return found
        found |= more
        reached |= {name.lower() for name in more}


def _tied_groups(sources: Sequence[Source]) -> list[list[Source]]:
    """Tables that are polled, in groups without a FOREIGN KEY from one group to another."""
    groups: list[list[Source]] = []
    for source in sources:
        tied = [group for group in groups if any(_are_tied(source, other) for other in group)]
        groups = [group for group in groups if group not in tied]
        groups.append([*(one for group in tied for one in group), source])
    return groups


def _are_tied(one: Source, other: Source) -> bool:
    return one.table.name.lower() in _parents(other) or other.table.name.lower() in _parents(one)


def _parents(source: Source) -> set[str]:
    """The names in lower case of the tables that a table refers to."""
    return {key.table.lower() for key in source.table.foreign_keys}


class Polling:
    """Polls tables in a thread until it is stopped. Tables that are connected by FOREIGN KEYs are polled together, at
    the shortest of their intervals, as rows of one may refer to new rows of another.

    ``poll`` makes a version of new rows of some tables, and returns the errors of tables that cannot be read. These are
    tried again, for ``AWAY`` seconds at most; then, and at any other error, ``fail`` is called with it.
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
        """Wait until it has ended; returns whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop polling. Waits for a poll under way, but not if called from it."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(_LONGEST)

    def _run(self) -> None:
        groups = _tied_groups(self._sources)
        next_at = [time.monotonic() + _every(group) for group in groups]
        away: dict[str, _Away] = {}
        while not self._stopped.wait(max(0.0, min(next_at) - time.monotonic())):
            now = time.monotonic()
            due = [number for number, at in enumerate(next_at) if at <= now]
            try:
                with self._one_at_a_time:
                    failed = self._poll([source for number in due for source in groups[number]])
            except BaseException as error:
                if not self._stopped.is_set():
                    self._fail(error)
                return
            now = time.monotonic()
            for number in due:
                every = longest = _every(groups[number])
                for name in (source.table.name for source in groups[number]):
                    before = away.pop(name, None)
                    if name not in failed:
                        continue
                    since = now if before is None else before.since
                    if now - since > AWAY:
                        self._fail(failed[name])
                        return
                    pause = min(max(every, 0.0 if before is None else 2 * before.pause), max(every, MOST_PAUSE))
                    away[name] = _Away(since, pause)
                    longest = max(longest, pause)
                    _LOGGER.warning("%s; the run continues, and tries again in %d seconds", failed[name], pause)
                next_at[number] = now + longest


@dataclass(frozen=True)
class _Away:
    """A table that cannot be read: since when, and the seconds until the next try."""

    since: float
    pause: float


def _every(group: Sequence[Source]) -> float:
    """Seconds between two polls of tables that are polled together."""
    return float(min(source.spec.poll.every for source in group if source.spec.poll is not None))
