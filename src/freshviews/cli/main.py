"""Defines the commands of ``freshviews`` and their options. An error prints a message, and the exit code is 1."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import freshviews
from freshviews.errors import FreshviewsError
from freshviews.kernel.memory.collection import no_collection
from freshviews.printable import say
from freshviews.secrets import masked
from freshviews.tracebacks import VARIABLE as TRACEBACK

if TYPE_CHECKING:
    from freshviews.cli.planned_script import PlannedScript
    from freshviews.cli.source import Source

# Each command imports what it needs when it runs: parser, planner and compiler take over a second to import, and --help
# and --version need none of them.

_UsageErrors: Any = typer.BadParameter.__bases__
"""The base of errors in a command line, for which typer has no public name."""


class _Commands(TyperGroup):
    """All commands. A wrong command line is one line on standard error and exit code 2; Ctrl-C is exit code 130."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **named: Any) -> NoReturn:
        given = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(given, *others, **named | {"standalone_mode": False})
        except typer.Abort:
            code = 130
        except _UsageErrors as error:
            code = 2
            if given:
                command = " ".join(["freshviews", *(given[:1] if given[0] in self.commands else ())])
                said = " ".join(error.format_message().split()).rstrip(".")
                ends = " " if said.endswith("?") else "; "
                say(f"{command}: {said[:1].lower()}{said[1:]}{ends}see {command} --help", to=sys.stderr)
            else:
                error.show()  # the help
        sys.exit(code)


app = typer.Typer(
    name="freshviews",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_SCRIPT = "A file with CREATE TABLE and CREATE MATERIALIZED VIEW; - reads standard input."

Script = Annotated[str, typer.Argument(metavar="SCRIPT", help=_SCRIPT)]


UNREACHED = 3
"""The exit code of ``check --connect`` if the script is valid but a place cannot be reached."""

Checkpoint = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="The folder of the state; default: shop.checkpoint beside shop.sql")
]
Packages = Annotated[
    str | None, typer.Option(metavar="LIST", help="Maven packages that Spark loads: GROUP:NAME:VERSION,...")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be repeated. It overrides SET in the script."),
]


@app.command()
def check(
    script: Script,
    cells: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Also show what would be in a single one of N cells, and why."),
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Try each source and sink; exit code 3 if one cannot be reached.")
    ] = False,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="With --connect: a checkpoint to try, too.")
    ] = None,
    packages: Packages = None,
    conf: Conf = None,
) -> None:
    """Parse and plan a script: strategy and bounds of each view, or the first error and exit code 1.

    Of a project of Spark's declarative pipelines (spark-pipeline.yml), the views that are maintained; Spark is started.
    """
    from rich.console import Console

    from freshviews.cli.checking import readers
    from freshviews.cli.report import cells_table, check_table, counts, readers_table
    from freshviews.cli.source import read
    from freshviews.spark.declarative.spec import is_project

    with _errors_as_messages():
        if is_project(script):
            given = {"--cells": cells, "--connect": connect, "--checkpoint": checkpoint}
            _refuse_options(script, "a script", given)
            from freshviews.cli.project import check_project

            check_project(script, packages, conf or [])
            return
        source = read(script)
        planned = _planned_of(source)
        found = []
        if cells is not None:
            from freshviews.cli.checking import cell_locations

            found = cell_locations(source, script, cells, folders=not connect)
        by_table = readers(source, script)
        width = None if sys.stdout.isatty() else 1000
        shown = [check_table(planned)] if planned.views else []
        shown += [cells_table(found)] if found else []
        for table in [*shown, readers_table(by_table)] if by_table else shown:
            Console(width=width).print(table)
            say()
        say(f"{script}: {counts(planned)}, all views can be maintained")
        if connect:
            raise typer.Exit(_connect(source, script, checkpoint, packages, conf or []))


def _connect(source: Source, script: str, checkpoint: str | None, packages: str | None, conf: list[str]) -> int:
    """Try the sources and sinks of a script; returns the exit code."""
    from freshviews.cli.checking import try_places

    sys.stdout.flush()
    number = refused = 0
    for one in try_places(source, script, checkpoint, packages, conf):
        number += 1
        if one.cause is not None:
            refused += 1
            say(f"warning: {one.name}: {one.place} cannot be reached: {one.cause}", to=sys.stderr)
    say(f"{script}: {number - refused} of {number} places can be reached")
    return UNREACHED if refused else 0


@app.command()
def explain(
    script: Script,
    view: Annotated[str | None, typer.Option(metavar="NAME", help="This view alone.")] = None,
    cells: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Print how N engines would share the rows instead.")
    ] = None,
    packages: Packages = None,
    conf: Conf = None,
) -> None:
    """Print the plan of each view: class, reason, strategy, bounds, program, stored views.

    Of a project of Spark's declarative pipelines (spark-pipeline.yml), the views that are maintained; Spark is started.
    """
    with _errors_as_messages():
        from freshviews.cli.planned_script import reduced_to
        from freshviews.cli.source import read
        from freshviews.plan.explain import explain as explanation
        from freshviews.spark.declarative.spec import is_project

        if is_project(script):
            _refuse_options(script, "a script", {"--cells": cells})
            from freshviews.cli.project import script_of

            source = script_of(script, packages, conf or [])
        else:
            _refuse_options(script, "a project, spark-pipeline.yml", {"--packages": packages, "--conf": conf})
            source = read(script)
        planned = _with_views(source)
        if cells is not None:
            from freshviews.cli.pipeline import explain_cells

            say(explain_cells(source, script, cells), end="")
            return
        if view is not None:
            planned = reduced_to(planned, view)
        say("\n".join(explanation(one.view, one.plans, {}) for one in planned.views), end="")


@app.command()
def advise(
    script: Script,
    stream: Annotated[str, typer.Option(metavar="FOLDER", help="A file of updates per table, TABLE.csv or .parquet.")],
    view: Annotated[str | None, typer.Option(metavar="NAME", help="This view alone.")] = None,
) -> None:
    """Compare the join trees of each view on a stream of updates: enclosureness, the best tree, its bound."""
    with _errors_as_messages():
        from freshviews.cli.advise import MOST_TREES
        from freshviews.cli.advise import advise as advice
        from freshviews.cli.planned_script import reduced_to
        from freshviews.cli.source import read

        planned = _with_views(read(script))
        if view is not None:
            planned = reduced_to(planned, view)
        for line in advice(planned, stream, MOST_TREES):
            say(line)


_PIPELINE = "A file with CREATE STREAMING TABLE and CREATE MATERIALIZED VIEW, or spark-pipeline.yml of a project."

PipelineScript = Annotated[str, typer.Argument(metavar="SCRIPT", help=_PIPELINE)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, an object per line.")]


@app.command()
def run(
    script: PipelineScript,
    once: Annotated[bool, typer.Option("--once", help="Read the current input, commit, and end.")] = False,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Spark's master; local mode without it.")] = None,
    checkpoint: Checkpoint = None,
    cells: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Engines that share the rows; the first run fixes them, one per core."),
    ] = None,
    packages: Packages = None,
    conf: Conf = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="Serve metrics for Prometheus at /metrics of this port."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(metavar="HOST", help="The address on which metrics are served, without a password.")
    ] = "127.0.0.1",
    as_json: Json = False,
    refresh: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLES", help="Of a project: update these tables alone, with commas between."),
    ] = None,
    full_refresh: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLES", help="Of a project: reset and recompute these tables, with commas between."),
    ] = None,
    full_refresh_all: Annotated[
        bool, typer.Option("--full-refresh-all", help="Of a project: reset and recompute all tables.")
    ] = False,
) -> None:
    """Maintain the views of a streaming script on Spark until it is stopped.

    A project of Spark's declarative pipelines (spark-pipeline.yml) is updated from what has arrived, once.
    """
    with _errors_as_messages():
        from freshviews.spark.declarative.spec import is_project

        if is_project(script):
            _refuse_options(script, "a script", {"--checkpoint": checkpoint, "--metrics-port": metrics_port})
            from freshviews.cli.project import Refresh, run_project

            wanted = Refresh(refresh or [], full_refresh or [], full_refresh_all)
            raise typer.Exit(run_project(script, wanted, master, as_json, cells, packages, conf or []))
        given = {"--refresh": refresh, "--full-refresh": full_refresh, "--full-refresh-all": full_refresh_all}
        _refuse_options(script, "a project, spark-pipeline.yml", given)
        from freshviews.cli.pipeline import run_script

        code = run_script(
            script, once, master, checkpoint, as_json, cells, packages, conf or [], metrics_port, metrics_host
        )
        raise typer.Exit(code)


@app.command()
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A new folder.")],
) -> None:
    """Write a project of Spark's declarative pipelines, which runs at once, to begin with."""
    with _errors_as_messages():
        from freshviews.spark.declarative.example import write_project

        file = write_project(name)
        say(f"{file.parent} has a project; to run it: freshviews run {file}")


@app.command()
def status(script: PipelineScript, checkpoint: Checkpoint = None, as_json: Json = False) -> None:
    """Version, rows, bad rows, bytes and last error of a pipeline."""
    with _errors_as_messages():
        with no_collection():
            from freshviews.cli.reading import show_status
        show_status(script, checkpoint, as_json)


@app.command()
def query(
    script: PipelineScript,
    sql: Annotated[str, typer.Argument(metavar="SELECT", help="Over the script's views.")],
    checkpoint: Checkpoint = None,
    as_json: Json = False,
    spark: Annotated[bool, typer.Option("--spark", help="Let Spark answer, which takes seconds to start.")] = False,
) -> None:
    """Print a SELECT over the views, at the last committed version.

    Joins, sums, windows and subqueries over any views, as Database.sql answers them, without Spark and Java.
    """
    with _errors_as_messages(), no_collection():
        from freshviews.cli.reading import query_script

        query_script(script, sql, checkpoint, as_json, spark)


@app.command()
def serve(
    script: PipelineScript,
    checkpoint: Checkpoint = None,
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0: a free one.")] = 8321,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address on which it answers, without a password.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of this machine that requests may use; may be repeated."),
    ] = None,
    max_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Most rows of an answer.")] = 1_000_000,
    flight_sql: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="Also serve Arrow Flight SQL there; 0: a free port."),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The token of Flight SQL; else FRESHVIEWS_TOKEN, else a random one."),
    ] = None,
) -> None:
    """Serve the views over HTTP, read only: pages, JSON, CSV and Arrow. The pipeline may run or not.

    http://127.0.0.1:8321/ has the pipeline, /view/NAME a view, /query?sql=SELECT... a SELECT over views, each with
    format=html, json, csv or arrow. Every answer names its version. Clients of Arrow Flight SQL ask any SELECT.
    """
    with _errors_as_messages():
        if token_file is not None and flight_sql is None:
            _fail("--token-file is for --flight-sql PORT; add --flight-sql PORT, or leave --token-file out")
        from freshviews.cli.reading import serve as answer_reads

        answer_reads(script, checkpoint, host, port, allow_host or [], max_rows, flight_sql, token_file)


@app.command()
def warm(
    shared: Annotated[
        bool, typer.Option("--shared", help="Let other users read the code, as in an image that runs as another user.")
    ] = False,
) -> None:
    """Prepare this machine for runs: compile kernels and, with pyspark, archive the classes of Spark. Once; a minute.

    Later databases and runs start sooner. The recipe of a container image calls it; docs/operations.md has one.
    """
    os.environ["FRESHVIEWS_COMPILE"] = "ahead"
    with _errors_as_messages():
        from freshviews.cli.warm import archive_classes, compile_kernels, has_spark

        say("compiling kernels", to=sys.stderr)
        made = compile_kernels(shared)
        say(f"{made.functions} compiled functions, {made.bytes / 1e6:.1f} MB, are in {made.folder}")
        if not has_spark():
            say("pyspark is not installed: there are no classes of Spark to archive")
            return
        say("starting Spark, to archive its classes", to=sys.stderr)
        archive_classes(shared)
        say("the classes of Spark are there as well")


@app.command()
def doctor() -> None:
    """Say what is installed here, what is missing and how to get it. Exit code 1 if something does not work."""
    with _errors_as_messages():
        from freshviews.doctor import report

        faults = 0
        for one in report():
            say(f"{one.state:<8} {one.text}")
            faults += one.state == "fault"
        if faults:
            raise typer.Exit(1)


@app.command()
def version() -> None:
    """Print the version."""
    with _errors_as_messages():
        say(f"freshviews {freshviews.__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit()


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Maintain SQL views while their tables change."""


def main() -> None:
    """The ``freshviews`` command."""
    app()


def _refuse_options(script: str, of: str, given: Mapping[str, object]) -> None:
    """End with a message if an option is given that is for another kind of file."""
    for option, value in given.items():
        if value:
            _fail(f"{script}: {option} is for {of}; leave it out")


def _with_views(source: Source) -> PlannedScript:
    planned = _planned_of(source)
    if not planned.views:
        _fail(f"{source.name}: the script has no view; write CREATE MATERIALIZED VIEW name AS SELECT ...")
    return planned


def _planned_of(source: Source) -> PlannedScript:
    from freshviews.cli.planned_script import plan_script
    from freshviews.cli.source import ScriptError, error_text

    try:
        planned = plan_script(source.text)
    except ScriptError as error:
        _fail(error_text(source, error))
    if not planned.tables:
        _fail(f"{source.name}: the script has no table and no view; write CREATE TABLE and CREATE MATERIALIZED VIEW")
    return planned


def _fail(message: str) -> NoReturn:
    say(message, to=sys.stderr)
    raise typer.Exit(1)


@contextmanager
def _errors_as_messages() -> Iterator[None]:
    """Print errors as messages. An unexpected error says how to see its traceback."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except FreshviewsError as error:
        _fail(str(error))
    except typer.Exit:
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader of the output has ended; typer ends without a message
        _fail(f"{error.filename or 'the output'} cannot be read or written: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        what = ": ".join(part for part in (type(error).__name__, _first_line(error)) if part)
        what = masked(what)
        _fail(f"an error inside freshviews: {what}; set {TRACEBACK}=1 in the environment to see the place")


def _first_line(error: Exception) -> str:
    """The first line of an error's text; errors of Spark have Java's stack trace after it."""
    try:
        return next((line for line in str(error).splitlines() if line.strip()), "")
    except Exception:  # an error of Java gets its text from the Java process, which may have ended
        return ""
