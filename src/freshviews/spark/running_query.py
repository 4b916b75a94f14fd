"""A running pipeline, with the interface of a StreamingQuery."""

from __future__ import annotations

import contextlib
from threading import Thread
from typing import Any

from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from freshviews.spark.driver.run import Run
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.io.java_errors import cause
from freshviews.spark.state.runs import Held


class Query:
    """A running pipeline. One without streaming tables has ended when ``start`` returns."""

    def __init__(self, run: Run, query: StreamingQuery | None, held: Held) -> None:
        self._run = run
        self._query = query
        self._held = held
        self._filling: Thread | None = None
        if run.fills:
            self._filling = InheritableThread(target=self._fill, daemon=True)
            self._filling.start()

    def _fill(self) -> None:
        try:
            self._run.fill()
        except BaseException as error:
            if not self._run.stopping:
                self._run.fail(error)
                self._end()

    @property
    def id(self) -> str | None:
        """The id of Spark's streaming query; None if there is none."""
        return None if self._query is None else str(self._query.id)

    @property
    def version(self) -> int:
        """The last committed version."""
        return 0 if self._run.latest is None else self._run.latest.version

    @property
    def isActive(self) -> bool:
        """True while it runs."""
        return self._query is not None and bool(self._query.isActive)

    @property
    def filling(self) -> tuple[str, ...]:
        """Views that are being backfilled while the stream continues."""
        return self._run.fills

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        """The last version: its number, input rows per table, changed rows per view, seconds, bytes per view, rows set
        aside in total, views being backfilled, and Spark's own progress under ``spark``."""
        latest = self._run.latest
        if latest is None:
            return None
        return {
            "version": latest.version,
            "batch": latest.batch,
            "rows": latest.rows,
            "changed": latest.changed,
            "bytes": latest.bytes,
            "seconds": latest.seconds,
            "bad": latest.totals.get("bad", {}),
            "filling": list(self.filling),
            "spark": None if self._query is None else self._query.lastProgress,
        }

    def exception(self) -> BaseException | None:
        """The error that ended it; None while it runs or after a stop. A FreshviewsError if a micro-batch was refused.
        """
        if self._run.error is not None:
            return self._run.error
        if self._query is None or self._run.stopping:
            return None
        found: BaseException | None = self._query.exception()
        return found

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait until it ends, at most ``timeout`` seconds; with a timeout, return whether it has ended. Raises the
        error that ended it."""
        if self._query is None:
            return None if timeout is None else True
        try:
            ended: bool | None = self._query.awaitTermination(*(() if timeout is None else (timeout,)))
        except StreamingQueryException as error:
            self._run.release()
            self._held.close()
            if self._run.stopping and self._run.error is None:
                return None if timeout is None else True
            if self._run.error is not None:
                raise self._run.error from None
            raise PipelineError(f"Spark ended the query: {cause(error)}") from error
        if ended is not False:
            self._run.release()
            self._held.close()
            if self._run.error is not None:
                raise self._run.error
        return ended

    def processAllAvailable(self) -> None:
        """Wait until all current input is applied and new views are backfilled. For tests."""
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
        """Finish the current version, then stop. Later input is read at the next start."""
        self._end()
        if self._filling is not None:
            self._filling.join()
        self._held.close()

    def _end(self) -> None:
        self._run.stop()
        if self._query is not None:
            with contextlib.suppress(StreamingQueryException):
                self._query.stop()
