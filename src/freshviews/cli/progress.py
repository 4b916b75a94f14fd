"""Prints the progress of a pipeline: on a terminal a live line per view, else a line or a JSON object per version."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from freshviews.cli.units import duration, size
from freshviews.printable import cell, printable
from freshviews.spark.definition import Definition
from freshviews.spark.state.manifest import Manifest

_CURSOR = b"\x1b[?25h"


class Progress:
    """Shows every version. ``close`` removes the live table; it may be called twice, and by a signal handler."""

    def __init__(self, definition: Definition, as_json: bool) -> None:
        self._tables = tables_by_view(definition)
        self._json = as_json
        self._latest: Manifest | None = None
        self._begun = time.time()
        self._out = sys.stdout
        self._aside = contextlib.ExitStack()
        self._live: Live | None = None
        if sys.stdout.isatty() and not as_json:
            self._live = Live(console=Console(), refresh_per_second=2, get_renderable=self._table)

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        if self._json:
            # The output of a console sink is not JSON.
            self._aside.enter_context(contextlib.redirect_stdout(sys.stderr))
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            os.write(self._out.fileno(), _CURSOR)
        self._aside.close()

    def version(self, manifest: Manifest) -> None:
        """Show a version that was delivered."""
        self._latest = manifest
        if self._json:
            print(json.dumps(as_json(manifest)), file=self._out, flush=True)
        elif self._live is None:
            print(printable(self.line(manifest)), flush=True)
        else:
            self._live.refresh()

    def line(self, manifest: Manifest) -> str:
        """A version as one line of a log."""
        changed = ", ".join(f"{name} {manifest.changed.get(name, 0):,}" for name in self._tables)
        return f"{_headline(manifest)}; changes: {changed}"

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, title_justify="left")
        table.add_column("view")
        for name in ("rows in", "in all", "changes out", "in all", "rows/s", "lag", "state"):
            table.add_column(name, justify="right")
        latest = self._latest
        if latest is None:
            table.title = f"Spark starts, {time.time() - self._begun:.0f} s"
            return table
        table.title = f"{_headline(latest)}; {time.time() - latest.time:.0f} s ago"
        for name, tables in self._tables.items():
            rows = sum(latest.rows.get(one, 0) for one in tables)
            table.add_row(
                Text(cell(name)),
                f"{rows:,}",
                f"{sum(latest.totals.get('rows', {}).get(one, 0) for one in tables):,}",
                f"{latest.changed.get(name, 0):,}",
                f"{latest.totals.get('changed', {}).get(name, 0):,}",
                f"{_rate(rows, latest.seconds):,.0f}",
                duration(latest.lag),
                size(latest.bytes.get(name, 0)) if name in latest.views else "backfilling",
            )
        return table


def as_json(manifest: Manifest) -> dict[str, object]:
    """A version as a JSON object."""
    return {
        "version": manifest.version,
        "batch": manifest.batch,
        "rows": manifest.rows,
        "changed": manifest.changed,
        "bytes": manifest.bytes,
        "seconds": round(manifest.seconds, 3),
        "rows_per_second": round(_rate(sum(manifest.rows.values()), manifest.seconds), 1),
        "lag": round(manifest.lag, 3),
        "bad": manifest.totals.get("bad", {}),
        "refilled": manifest.refilled,
        "cellsLoaded": manifest.cells_loaded,
        "cellsMoved": manifest.cells_moved,
    }


def tables_by_view(definition: Definition) -> dict[str, list[str]]:
    """The base tables that each view depends on."""
    catalog = definition.catalog

    def below(name: str) -> list[str]:
        table, view = catalog.table(name), catalog.view(name)
        if table is not None:
            return [table.name]
        return [] if view is None else list(dict.fromkeys(one for read in view.inputs for one in below(read)))

    return {view.name: below(view.name) for view in definition.views}


def _headline(manifest: Manifest) -> str:
    rows = sum(manifest.rows.values())
    bad = sum(manifest.totals.get("bad", {}).values())
    return (
        f"version {manifest.version}: {rows:,} rows in {manifest.seconds:.2f} s, "
        f"{_rate(rows, manifest.seconds):,.0f} rows/s, lag {duration(manifest.lag)}"
        + (f"; {bad:,} bad rows set aside" if bad else "")
        + (f"; refilled: {', '.join(manifest.refilled)}" if manifest.refilled else "")
    )


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if seconds else 0.0
