"""Implements ``freshviews run``, ``check`` and ``explain`` for projects of Spark's declarative pipelines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from freshviews.cli.pipeline import end_session, java_is_gone, started_in
from freshviews.cli.planned_script import plan_script
from freshviews.cli.progress import Stages
from freshviews.cli.report import check_table
from freshviews.cli.source import ReadError, Source
from freshviews.cli.stopping import Stopping
from freshviews.printable import say
from freshviews.records import dataclass
from freshviews.spark.declarative.spec import read_spec
from freshviews.spark.settings import need_spark, packages_with, settings_of

if TYPE_CHECKING:
    from freshviews.spark.declarative.graph import Dataset, Selection
    from freshviews.spark.declarative.project import Project, Stage


def _stopped() -> str:
    return "stopped; no table was changed"


@dataclass(frozen=True)
class Refresh:
    """Which tables to update: all, or these; which to reset and recompute. Names may have commas between them."""

    only: Sequence[str] = ()
    full: Sequence[str] = ()
    full_all: bool = False


def run_project(
    name: str,
    wanted: Refresh,
    master: str | None,
    as_json: bool,
    cells: int | None,
    packages: str | None,
    conf: Sequence[str],
) -> int:
    """Update the tables of a project from what has arrived; a line for each. Returns the exit code."""

    def report(one: Dataset, how: str) -> None:
        if as_json:
            say(json.dumps({"name": ".".join(one.parts), "kind": one.kind, "update": how}))
        else:
            say(f"{one.name}: {one.kind}, {how}")

    with Stages(as_json) as stages:

        def stopped() -> str:
            stages.close()
            return f"stopped; nothing is lost, the next freshviews run {name} continues"

        with _opened(name, master, packages, conf, stopped, stages.stage) as project:
            chosen = project.graph.selection(_names(wanted.only), _names(wanted.full), wanted.full_all)
            _warn(project, chosen)
            project.run(chosen, report, stages.stage, cells)
    return 0


def check_project(name: str, packages: str | None, conf: Sequence[str]) -> None:
    """Print the plans of the views that are maintained, and why Spark recomputes the others; no table is changed."""
    with _opened(name, None, packages, conf) as project:
        _warn(project, project.graph.selection([], [], False))
        planned = plan_script(project.views.definition.script)
        if planned.views:
            Console(width=None if sys.stdout.isatty() else 1000).print(check_table(planned))
            say()
        for why in project.views.refused.values():
            say(f"recomputed by Spark: {why}")
        kept, others = len(project.views.names), len(project.views.refused)
        say(f"{name}: {kept} materialized views can be maintained" + (f", {others} are recomputed" if others else ""))


def script_of(name: str, packages: str | None, conf: Sequence[str]) -> Source:
    """The script of the views that are maintained; prints why Spark recomputes the others. Raises ReadError."""
    with _opened(name, None, packages, conf) as project:
        for why in project.views.refused.values():
            say(f"recomputed by Spark: {why}", to=sys.stderr)
        if not project.views.names:
            raise ReadError(
                f"{name}: the script has no view to maintain; write CREATE MATERIALIZED VIEW name AS SELECT ..."
            )
        return Source(name, project.views.definition.script)


def _warn(project: Project, chosen: Selection) -> None:
    spec = project.spec
    unmatched = (
        f"{spec.file}: libraries: no file matches {pattern}; correct the pattern, or leave it out"
        for pattern in spec.without_files()
    )
    for message in (*unmatched, *project.lost_rows(chosen)):
        say(f"warning: {message}", to=sys.stderr)


@contextmanager
def _opened(
    name: str,
    master: str | None,
    packages: str | None,
    conf: Sequence[str],
    stopped: Callable[[], str] = _stopped,
    stage: Stage = lambda text: None,
) -> Iterator[Project]:
    """A project in a session of its own; the errors of Spark in the block are messages. ``stopped``: what a stop
    prints. ``stage``: shows what is done until the project is there."""
    spec = read_spec(name)
    spec.files()  # refuses wrong patterns before Spark starts
    need_spark()
    from freshviews.spark.declarative.project import Project
    from freshviews.spark.session import SPARK_ERRORS, reason, start_session

    settings = packages_with({**spec.configuration, **settings_of(conf)}, packages)
    spark = None
    with Stopping(stopped) as stopping:
        try:
            stage("starting Spark")
            start = time.monotonic()
            spark = start_session(master, settings, quiet=True)
            stopping.install()
            stage(started_in(start, "reading the definitions"))
            yield Project.open(spark, spec)
        except KeyboardInterrupt:  # Spark's own handler raised it before ours was installed again
            stopping.end()
        except Exception as error:
            if java_is_gone(0.5):
                message = "Spark's Java process was killed or ran out of memory; nothing is lost"
                raise ReadError(f"{message}: run the command again") from None
            if isinstance(error, SPARK_ERRORS):
                raise ReadError(f"Spark cannot run {name}: {reason(error)}") from None
            raise
        finally:
            if spark is not None:
                end_session(spark)


def _names(given: Sequence[str]) -> list[str]:
    return [name.strip() for words in given for name in words.split(",") if name.strip()]
