"""``freshviews run``, ``check`` and ``init`` for projects of Spark's declarative pipelines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from freshviews.cli.pipeline import end_session
from freshviews.cli.planned_script import plan_script
from freshviews.cli.report import check_table
from freshviews.cli.source import ReadError
from freshviews.cli.stopping import Stopping
from freshviews.errors import FreshviewsError
from freshviews.printable import say
from freshviews.spark.declarative.spec import read_spec
from freshviews.spark.settings import need_spark, packages_with, settings_of

if TYPE_CHECKING:
    from freshviews.spark.declarative.graph import Dataset
    from freshviews.spark.declarative.project import Project


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

    with _opened(name, master, packages, conf) as project:
        chosen = project.graph.selection(_names(wanted.only), _names(wanted.full), wanted.full_all)
        project.run(chosen, report, cells=cells)
    return 0


def check_project(name: str, packages: str | None, conf: Sequence[str]) -> None:
    """Print the plans of the views that are maintained, and why Spark recomputes the others; no table is changed."""
    with _opened(name, None, packages, conf) as project:
        planned = plan_script(project.views.definition.script)
        if planned.views:
            Console(width=None if sys.stdout.isatty() else 1000).print(check_table(planned))
            say()
        for why in project.views.refused.values():
            say(f"recomputed by Spark: {why}")
        kept, others = len(project.views.names), len(project.views.refused)
        say(f"{name}: {kept} materialized views can be maintained" + (f", {others} are recomputed" if others else ""))


@contextmanager
def _opened(name: str, master: str | None, packages: str | None, conf: Sequence[str]) -> Iterator[Project]:
    """A project in a session of its own; the errors of Spark in the block are messages."""
    spec = read_spec(name)
    need_spark()
    from freshviews.spark.declarative.project import Project
    from freshviews.spark.session import SPARK_ERRORS, reason, start_session

    settings = packages_with({**spec.configuration, **settings_of(conf)}, packages)
    with Stopping(lambda: f"stopped; nothing is lost, the next freshviews run {name} continues") as stopping:
        spark = start_session(master, settings, quiet=True)
        stopping.install()
        try:
            yield Project.open(spark, spec)
        except SPARK_ERRORS as error:
            raise ReadError(f"Spark cannot run {name}: {reason(error)}") from None
        except FreshviewsError:
            raise
        finally:
            end_session(spark)


def _names(given: Sequence[str]) -> list[str]:
    return [name.strip() for words in given for name in words.split(",") if name.strip()]
