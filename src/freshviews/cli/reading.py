"""Implements ``freshviews status``, ``query`` and ``serve``, which read a checkpoint, also while its pipeline runs."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING

from freshviews.cli.source import STANDARD_INPUT, ReadError, read
from freshviews.cli.streaming_script import checkpoint_of, definition_if_readable
from freshviews.cli.units import duration, size
from freshviews.printable import cell, json_line, say
from freshviews.spark.declarative.spec import is_project
from freshviews.spark.reading.contents import latest, status
from freshviews.spark.reading.disk import on_disk
from freshviews.spark.reading.select import select
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.store import Store

if TYPE_CHECKING:
    from freshviews.cli.serving.site import Site
    from freshviews.wire import FlightServer


def _checkpoint(name: str, given: str | None) -> Store:
    """The store with the views of a script or project. Raises ReadError if neither the script nor a version there can
    be read."""
    store = checkpoint_of(name, given)
    if name != STANDARD_INPUT and not is_project(name):
        try:
            read(name)
        except ReadError:
            if not Manifests(store).versions():
                raise
    return store


def show_status(name: str, checkpoint: str | None, as_json: bool) -> None:
    """Print the status of a script's pipeline."""
    store = _checkpoint(name, checkpoint)
    found = status(store, definition_if_readable(name))
    disk = on_disk(store)
    if as_json:
        shown = asdict(found)
        moves = {"cellsLoaded": shown.pop("cells_loaded"), "cellsMoved": shown.pop("cells_moved")}
        say(json.dumps({**shown, **moves, "disk": disk}))
        return
    state = {True: "running", False: "not running", None: "not known whether it runs"}[found.running]
    say(f"version {found.version} ({state}), made {duration(found.age)} ago, delivered up to {found.delivered}")
    say(f"lag {duration(found.lag)} from the newest input to its version; {_waiting_files(found.waiting)}")
    for table, numbers in found.tables.items():
        aside = f", {numbers['bad']:,} set aside" if numbers["bad"] else ""
        say(f"table {table}: {numbers['rows']:,} rows in, {size(numbers['bytes'])} in memory{aside}")
    for view, numbers in found.views.items():
        rows = f"{numbers['rows']:,} rows, " if "rows" in numbers else ""
        say(f"view {view}: {rows}{numbers['changed']:,} changes out, {size(numbers['bytes'])} in memory")
    for view in found.filling:
        absent = found.running is False
        say(f"view {view}: {'not there yet; run the script to backfill it' if absent else 'backfill is running'}")
    for view in found.refilling:
        absent = found.running is False
        say(
            f"view {view}: has the rows of the old SELECT; "
            + ("run the script to backfill the new one" if absent else "backfill with the new one is running")
        )
    for view, numbers in found.sinks.items():
        if numbers["backlog"] or numbers["failures"]:
            said = f"; {found.refused[view]}" if view in found.refused else ""
            waits = f"waiting versions: {numbers['backlog']}"
            say(f"sink of {view}: refused {numbers['failures']:,} times, {waits}{said}")
    engines = _counted(len(found.cells), "engine")
    say(f"in memory: {size(sum(found.cells.values()))} of tables and views, in {engines}")
    parts = ", ".join(f"{part} {size(numbers['bytes'])}" for part, numbers in disk.items())
    objects, total = (sum(numbers[key] for numbers in disk.values()) for key in ("objects", "bytes"))
    say(f"stored: {size(total)} in {objects:,} objects: {parts}")
    if found.error:
        say(f"last error: {found.error}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _waiting_files(waiting: dict[str, int]) -> str:
    if not waiting:
        return "the number of waiting files is not known"
    files = ", ".join(f"{count:,} of {table}" for table, count in waiting.items() if count)
    return f"waiting files: {files}" if files else "no files wait"


def query_script(name: str, sql: str, checkpoint: str | None, as_json: bool, on_spark: bool) -> None:
    """Print the result of a SELECT over the views at the last committed version."""
    store = _checkpoint(name, checkpoint)
    found = select(store, sql, latest(store), on_spark=on_spark)
    if as_json:
        for row in found.to_pylist():
            say(json_line(row))
        return
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    names = (Column(Text(cell(name))) for name in found.schema.names)
    table = Table(*names, box=None, pad_edge=False, header_style="bold")
    for row in found.to_pylist():
        table.add_row(*("NULL" if value is None else Text(cell(value)) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 1000).print(table)


def serve(
    name: str,
    checkpoint: str | None,
    host: str,
    port: int,
    allowed: Sequence[str],
    most_rows: int,
    flight_port: int | None = None,
    token_file: str | None = None,
) -> None:
    """Answer reads over HTTP until SIGINT or SIGTERM, and by Arrow Flight SQL if it has a port. ``allowed``: other
    names of this server that requests may use. ``token_file``: the token of Flight SQL; else that of the environment,
    else a random one, which is printed.

    Raises ServerError or ArgumentError if a port cannot be taken.
    """
    from freshviews.cli.serving.server import HttpServer
    from freshviews.cli.serving.site import ANSWER_SECONDS, Site

    own = f"[{host}]" if ":" in host else host
    store = _checkpoint(name, checkpoint)
    # Another run of a project may begin another checkpoint.
    site = Site(
        name, lambda: checkpoint_of(name, checkpoint), lambda: definition_if_readable(name), [own, *allowed], most_rows
    )
    server = HttpServer(host, port, site.answer, seconds=ANSWER_SECONDS)
    ended = Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: ended.set())
    flight = None
    try:
        site.start()
        server.start()
        if flight_port is not None:
            flight = _flight_server(site, host, flight_port, token_file)
        say(f"{store.address} at {server.address}/ until Ctrl-C", to=sys.stderr)
        ended.wait()
    finally:
        server.close()
        if flight is not None:
            flight.close()
        site.close()


def _flight_server(site: Site, host: str, port: int, token_file: str | None) -> FlightServer:
    """Serve the views of a site by Arrow Flight SQL too, and say where."""
    from freshviews.asking import SelectProcesses
    from freshviews.cli.serving.checkpoint import ServedCheckpoint
    from freshviews.wire import TOKEN, FlightServer, read_token

    token = read_token(token_file)
    processes = SelectProcesses()
    served = ServedCheckpoint(lambda: site.versions, processes)
    server = FlightServer(served, host, port, token, processes.close)
    processes.start()
    place = token_file or TOKEN
    shown = f"the token {server.token}" if token is None else f"the token of {place}"
    # Written as it is: messages hide tokens, and this one is for the user.
    print(f"Arrow Flight SQL at {server.uri} with {shown}", file=sys.stderr, flush=True)
    return server
