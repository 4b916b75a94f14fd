"""Writes the metrics of a running pipeline as Prometheus text; docs/metrics.md documents them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from http import HTTPStatus
from threading import Lock

from prometheus_client import Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from freshviews.cli.serving.server import SECONDS, Answer, Busy, Request, plain_answer
from freshviews.records import dataclass
from freshviews.spark.reading.contents import Status

PAGE = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

FRESH_SECONDS = 1.0
"""Seconds for which a text is served again, at least."""
SHARE = 20
"""A text is served again for this many times the seconds that it took. So reading the numbers, such as a long list of
files, takes at most a twentieth of a core."""

Samples = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels, and the value of the metric."""


@dataclass(frozen=True)
class Numbers:
    """The numbers from which the metrics are computed.

    ``release``: the release of freshviews. ``started``: the start of the run, in seconds since 1970. ``phases``:
    seconds by phase. ``sinks``: the format of each view's sink. ``status``: None while it cannot be read. ``disk``:
    bytes of the parts of a checkpoint in a folder.
    """

    release: str
    started: float
    phases: Mapping[str, float]
    sinks: Mapping[str, str]
    status: Status | None
    disk: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """A metric: its full name, type (counter or gauge), unit, labels, one sentence, and samples.

    ``of_run``: samples of the run; ``of_status``: samples of the checkpoint, absent while it has no version or cannot
    be read.
    """

    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    text: str
    of_run: Callable[[Numbers], Samples] | None = None
    of_status: Callable[[Numbers, Status], Samples] | None = None

    def samples(self, numbers: Numbers) -> Samples:
        """Its samples; none if the numbers lack them."""
        if self.of_run is not None:
            return self.of_run(numbers)
        if self.of_status is not None and numbers.status is not None:
            return self.of_status(numbers, numbers.status)
        return ()


def _one(value: float) -> Samples:
    return [((), value)]


def _each(by_name: Mapping[str, Mapping[str, int]], key: str) -> Samples:
    return [((name,), found[key]) for name, found in by_name.items() if key in found]


def _sinks(numbers: Numbers, status: Status, key: str) -> Samples:
    return [((view, numbers.sinks.get(view, "")), found[key]) for view, found in status.sinks.items()]


METRICS = (
    Described(
        "freshviews_info", "gauge", "always 1", ("release",),
        "The running release of freshviews.",
        of_run=lambda n: [((n.release,), 1)],
    ),
    Described(
        "freshviews_start_time_seconds", "gauge", "seconds since 1970", (),
        "When this run began.",
        of_run=lambda n: _one(n.started),
    ),
    Described(
        "freshviews_phase_seconds_total", "counter", "seconds", ("phase",),
        "Seconds that this run has spent in a phase of its versions.",
        of_run=lambda n: [((phase,), seconds) for phase, seconds in n.phases.items()],
    ),
    Described(
        "freshviews_status_readable", "gauge", "1 or 0", (),
        "0 while the checkpoint has no version or cannot be read; the metrics below are absent then.",
        of_run=lambda n: _one(n.status is not None),
    ),
    Described(
        "freshviews_starts_total", "counter", "runs", (),
        "Runs that began on the checkpoint, this one included; each restart adds 1.",
        of_status=lambda n, s: _one(s.starts),
    ),
    Described(
        "freshviews_versions_total", "counter", "versions", (),
        "Versions committed since the checkpoint began: the number of the last one.",
        of_status=lambda n, s: _one(s.version),
    ),
    Described(
        "freshviews_version_age_seconds", "gauge", "seconds", (),
        "Seconds since the last version was committed; it grows while no input arrives.",
        of_status=lambda n, s: _one(s.age),
    ),
    Described(
        "freshviews_lag_seconds", "gauge", "seconds", (),
        "Seconds from the arrival of the last version's newest input to its commit.",
        of_status=lambda n, s: _one(s.lag),
    ),
    Described(
        "freshviews_cells_loaded", "gauge", "cells", (),
        "Cells that workers read from files for the last version; 0 in a run without failures, after its first one.",
        of_status=lambda n, s: _one(s.cells_loaded),
    ),
    Described(
        "freshviews_cells_moved", "gauge", "cells", (),
        "Cells that another process had for the version before.",
        of_status=lambda n, s: _one(s.cells_moved),
    ),
    Described(
        "freshviews_waiting_files", "gauge", "files", ("table",),
        "Files in the folder of a table that no micro-batch has planned; absent for other sources.",
        of_status=lambda n, s: [((table,), count) for table, count in s.waiting.items()],
    ),
    Described(
        "freshviews_rows_in_total", "counter", "rows", ("table",),
        "Rows that versions took from the source of a table, since the checkpoint began.",
        of_status=lambda n, s: _each(s.tables, "rows"),
    ),
    Described(
        "freshviews_bad_rows_total", "counter", "rows", ("table",),
        "Rows of a table that were set aside, since the checkpoint began.",
        of_status=lambda n, s: _each(s.tables, "bad"),
    ),
    Described(
        "freshviews_table_bytes", "gauge", "bytes", ("table",),
        "Memory that the stored rows of a table take, over all cells.",
        of_status=lambda n, s: _each(s.tables, "bytes"),
    ),
    Described(
        "freshviews_cell_bytes", "gauge", "bytes", ("cell",),
        "Memory that the tables and views of a cell take; the merge counts as a cell.",
        of_status=lambda n, s: [((cell,), size) for cell, size in s.cells.items()],
    ),
    Described(
        "freshviews_stored_bytes", "gauge", "bytes", ("part",),
        "Bytes of a part of the checkpoint in its store; absent for a store that is not a folder.",
        of_status=lambda n, s: _each(n.disk, "bytes"),
    ),
    Described(
        "freshviews_changes_out_total", "counter", "rows", ("view",),
        "Rows of the changes of a view, since the checkpoint began.",
        of_status=lambda n, s: _each(s.views, "changed"),
    ),
    Described(
        "freshviews_view_rows", "gauge", "rows", ("view",),
        "Rows of a view, duplicates counted; absent if an older release began the view.",
        of_status=lambda n, s: _each(s.views, "rows"),
    ),
    Described(
        "freshviews_view_bytes", "gauge", "bytes", ("view",),
        "Memory that a view takes, over all cells and the merge.",
        of_status=lambda n, s: _each(s.views, "bytes"),
    ),
    Described(
        "freshviews_view_filling", "gauge", "1 or 0", ("view",),
        "1 while a view that was added, or has another SELECT, is backfilled.",
        of_status=lambda n, s: [
            ((v,), v in (*s.filling, *s.refilling)) for v in dict.fromkeys([*s.views, *s.filling])
        ],
    ),
    Described(
        "freshviews_sink_backlog_versions", "gauge", "versions", ("view", "sink"),
        "Committed versions that the sink of a view does not have yet.",
        of_status=lambda n, s: _sinks(n, s, "backlog"),
    ),
    Described(
        "freshviews_sink_failures_total", "counter", "versions", ("view", "sink"),
        "How often the sink of a view refused a version, since the checkpoint began. "
        "Sinks of Spark are tried again, others are not.",
        of_status=lambda n, s: _sinks(n, s, "failures"),
    ),
)  # fmt: skip
"""Every metric, in the order in which they are served."""


def families(numbers: Numbers) -> list[Metric]:
    """The metrics with their samples, as families of prometheus_client, without metrics that have no samples."""
    found: list[Metric] = []
    for one in METRICS:
        made: CounterMetricFamily | GaugeMetricFamily
        if one.kind == "counter":
            made = CounterMetricFamily(one.name, one.text, labels=one.labels)
        else:
            made = GaugeMetricFamily(one.name, one.text, labels=one.labels)
        for labels, value in one.samples(numbers):
            made.add_metric(labels, float(value))
        if made.samples:
            found.append(made)
    return found


def text_of(numbers: Numbers) -> bytes:
    """The text that Prometheus reads."""
    return generate_latest(_Collector(families(numbers)))


@dataclass(frozen=True)
class _Collector:
    """Hands families to prometheus_client in the form that it expects."""

    found: list[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.found


class Texts:
    """The text of the metrics, read by one thread at a time and served again for a while."""

    def __init__(self, read: Callable[[], Numbers]) -> None:
        self._read = read
        self._reading = Lock()
        self._text = b""
        self._until = 0.0

    def text(self, patience: float) -> bytes:
        """The text. Raises Busy if another thread reads for longer than ``patience`` seconds."""
        if not self._reading.acquire(timeout=patience):
            raise Busy
        try:
            start = time.monotonic()
            if start >= self._until:
                self._text = text_of(self._read())
                end = time.monotonic()
                self._until = end + max(FRESH_SECONDS, SHARE * (end - start))
            return self._text
        finally:
            self._reading.release()


def metrics_page(text: Callable[[float], bytes]) -> Callable[[Request], Answer]:
    """The handler of requests for /metrics. ``text`` gets the seconds that it may wait before it raises Busy."""

    def answer(request: Request) -> Answer:
        if request.target.partition("?")[0] != PAGE:
            return plain_answer(HTTPStatus.NOT_FOUND, f"the only page is {PAGE}")
        try:
            return Answer(HTTPStatus.OK, CONTENT_TYPE, text(SECONDS))
        except Busy:
            return plain_answer(HTTPStatus.SERVICE_UNAVAILABLE, "the numbers are being read")
        except Exception as error:
            message = f"the numbers cannot be read: {type(error).__name__}"
            return plain_answer(HTTPStatus.INTERNAL_SERVER_ERROR, message)

    return answer
