"""Defines ``Query``, which stands for a running pipeline and has the interface of Spark's ``StreamingQuery``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from freshviews.spark.driver.polling import Polling
from freshviews.spark.driver.progress import Made, progress
from freshviews.spark.driver.run import Run
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.sources import Source
from freshviews.spark.state.runs import Held


class Query:
    """A running pipeline, with the interface of a StreamingQuery, as ``Pipeline.start`` returns it.

    Without streaming and polled tables, it has ended when ``start`` returns.

    Examples
    --------
    >>> query = p.start(once=True)
    >>> query.version, query.isActive
    (1, False)
    """

    def __init__(self, run: Run, query: StreamingQuery | None, held: Held, polled: Sequence[Source] = ()) -> None:
        self._run = run
        self._query = query
        self._held = held
        self._polling = Polling(polled, run.poll, self._failed) if polled else None
        self._filling: Thread | None = None
        if run.fills:
            self._filling = self._in_thread(run.fill)
        if run.goes_on and (run.fills or run.layout.reads_clock):
            self._in_thread(run.keep_time)

    def _in_thread(self, work: Callable[[], None]) -> Thread:
        """Work in a thread, whose error ends the pipeline."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._failed(error)

        thread: Thread = InheritableThread(target=run, daemon=True)
        thread.start()
        return thread

    def _failed(self, error: BaseException) -> None:
        """End with the error of a thread, unless it only reports the end."""
        if not self._run.stopping:
            self._run.fail(error)
            self._end()

    @property
    def id(self) -> str | None:
        """The id of Spark's streaming query; None if there is none."""
        return None if self._query is None else str(self._query.id)

    @property
    def runId(self) -> str | None:
        """The id of this run of Spark's streaming query; None if there is none."""
        return None if self._query is None else str(self._query.runId)

    @property
    def version(self) -> int:
        """The last committed version."""
        return 0 if self._run.latest is None else self._run.latest.version

    @property
    def isActive(self) -> bool:
        """True while it runs."""
        if self._query is None:
            return self._polling is not None and self._polling.is_active
        return bool(self._query.isActive)

    @property
    def filling(self) -> tuple[str, ...]:
        """Views that are being backfilled while the stream continues, those with another SELECT among them."""
        return self._run.fills

    @property
    def refilling(self) -> tuple[str, ...]:
        """The views being backfilled that the last version has with another SELECT, and those that read such a view."""
        return self._run.refills

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        """The last version, as a dict, None if there is none.

        It has the number of the version, input rows per table, changed rows per view, seconds, bytes per view, rows set
        aside in total, views being backfilled, lag; and, under the names of Spark's progress, that of its micro-batch,
        with our phases in ``durationMs`` and tables and views in ``stateOperators``. Spark reports it when the
        micro-batch has ended, just after the version is delivered; until then the version has only the fields known
        without Spark. ``spark`` has Spark's own progress, of that micro-batch alone.
        """
        made = self._run.recent.versions[-1:]
        latest = self._run.latest
        if not made and latest is not None:  # of an earlier run
            made = [Made(latest, {}, False)]
        return self._merged(made)[-1] if made else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        """The last versions of this run, at most 100, each as ``lastProgress`` has it."""
        return self._merged(self._run.recent.versions)

    def _merged(self, versions: Sequence[Made]) -> list[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = []
        if self._query is not None and any(one.of_batch for one in versions):
            found = self._query.recentProgress
        filling = list(self.filling)
        return [{**progress(one, found), "filling": filling} for one in versions]

    def exception(self) -> BaseException | None:
        """Return the error that ended it.

        Returns
        -------
        BaseException | None
            The error, a FreshviewsError if a micro-batch was refused; None while it runs or after a stop.

        Examples
        --------
        >>> query.exception()
        """
        if self._run.error is not None:
            return self._run.error
        if self._query is None or self._run.stopping:
            return None
        found: BaseException | None = self._query.exception()
        return found

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait until it ends. Raises the error that ended it.

        Parameters
        ----------
        timeout
            Most seconds to wait. None, the default: no limit.

        Returns
        -------
        bool | None
            With a timeout, True if it has ended, and False if not; without one None.

        Raises
        ------
        PipelineError
            A version cannot be made, or Spark ended the query; else the error as ``exception`` returns it.

        Examples
        --------
        >>> query.awaitTermination(timeout=10)
        True
        """
        try:
            ended = self._ended(timeout)
        except StreamingQueryException as error:
            self._release()
            if self._run.stopping and self._run.error is None:
                return None if timeout is None else True
            if self._run.error is not None:
                raise self._run.error from None
            failure = PipelineError(f"Spark ended the query: {cause(error)}")
            failure.__cause__ = error
            self._run.definition.hide_secrets(failure)
            raise failure from failure.__cause__
        if ended is not False:
            self._release()
            if self._run.error is not None:
                raise self._run.error
        return ended

    def _ended(self, timeout: float | None) -> bool | None:
        """Wait; returns whether it has ended, None without a timeout."""
        if self._query is not None:
            found: bool | None = self._query.awaitTermination(*(() if timeout is None else (timeout,)))
            return found
        ended = self._polling is None or self._polling.wait(timeout)
        return None if timeout is None else ended

    def _release(self) -> None:
        if self._polling is not None:
            self._polling.stop()
        self._run.release()
        self._held.close()

    def processAllAvailable(self) -> None:
        """Wait until all current input is applied and new views are backfilled. For tests.

        Raises
        ------
        PipelineError
            A version cannot be made; else the error as ``exception`` returns it.

        Examples
        --------
        >>> query.processAllAvailable()
        """
        if self._polling is not None:
            self._polling.now()
        if self._query is None:
            return
        if self._filling is not None:
            self._filling.join()
            if self._run.error is not None:
                raise self._run.error
        try:
            self._query.processAllAvailable()
        except StreamingQueryException:
            if self._run.error is not None:
                raise self._run.error from None
            raise

    def stop(self) -> None:
        """Finish the current version, then stop. Later input is read at the next start.

        A listener or a sink is part of the current version: called there it returns at once, and ``awaitTermination``
        returns when the version is finished.

        Examples
        --------
        >>> query.stop()
        """
        if self._run.is_made_here():
            self._run.stopping = True
            InheritableThread(target=self._stop, daemon=True).start()
        else:
            self._stop()

    def _stop(self) -> None:
        self._end()
        if self._filling is not None:
            self._filling.join()
        if self._polling is not None:
            self._polling.stop()
        self._held.close()

    def _end(self) -> None:
        self._run.stop()
        if self._query is not None:
            with contextlib.suppress(StreamingQueryException):
                self._query.stop()
