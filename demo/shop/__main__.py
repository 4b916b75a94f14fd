"""``python -m demo.shop``: start Kafka and PostgreSQL, send a shop's messages, compare the sinks with DuckDB."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from demo.servers import Missing
from demo.servers.kafka import broker, messages
from demo.servers.maven import jars_for_spark
from demo.servers.postgres import postgres, rows_in
from demo.shop.packages import DELTA, KAFKA_CONNECTOR, POSTGRES
from demo.shop.stream import Message, Shop
from demo.verify import Row, answers, first_difference
from freshviews.errors import FreshviewsError
from freshviews.spark import Pipeline, Query, start_session
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.script import read_script
from freshviews.spark.state.manifest import Manifest

SCRIPT = Path(__file__).with_name("shop.sql")
TOPICS = ("customers", "products", "orders", "unsold")
BEST = "SELECT city, category, orders, amount FROM revenue ORDER BY amount DESC LIMIT 1"


def main() -> int:
    """Parse the command line and run; return the exit code."""
    parser = argparse.ArgumentParser("python -m demo.shop", description=__doc__)
    parser.add_argument("--rounds", type=_count, default=10, metavar="N", help="how often messages are sent")
    parser.add_argument("--messages", type=_count, default=20_000, metavar="N", help="how many at a time")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="freshviews-shop-")))
        start = time.perf_counter()
        settings = jars_for_spark((KAFKA_CONNECTOR, POSTGRES, DELTA))
        address = stack.enter_context(broker(folder))
        database = stack.enter_context(postgres()).address
        _make_topics(address)
        os.environ |= {"KAFKA": address, "DATABASE": database, "FOLDER": str(folder)}
        console.print(f"started Kafka at {address} and PostgreSQL in {_since(start)}", highlight=False)
        return demonstrate(folder, settings, given.rounds, given.messages, console)


def demonstrate(folder: Path, settings: dict[str, str], rounds: int, count: int, console: Console) -> int:
    """Run the pipeline over the messages; return 0 if DuckDB agrees with the sinks."""
    shop, definition = Shop(), read_script(SCRIPT.read_text(), SCRIPT.parent)
    start = time.perf_counter()
    spark = start_session(settings={**definition.settings, **settings}, quiet=True)
    try:
        made: list[Manifest] = []
        query = Pipeline.from_script(spark, SCRIPT, folder / "checkpoint").start(listener=made.append)
        console.print(f"started Spark and the pipeline in {_since(start)}; the first round also compiles the views\n")
        try:
            sent = 0
            for number in range(1, rounds + 1):
                opening = shop.opening() if number == 1 else ()
                sent += _send(chain(opening, shop.round(count)))
                begun = time.perf_counter()
                _wait(query, made, sent)
                ((city, category, orders, amount),) = rows_in(os.environ["DATABASE"], BEST)
                console.print(
                    f"round {number}: {sent:,} messages so far, views fresh {_since(begun)} after the last "
                    f"(version {made[-1].version}); most revenue: {category} in {city}, {orders:,} orders, {amount:,}",
                    highlight=False,
                )
        finally:
            query.stop()
        return check(spark, definition, shop, console)
    finally:
        spark.stop()


def check(spark: Any, definition: Definition, shop: Shop, console: Console) -> int:
    """Compare the sinks of every view with DuckDB's answer over the shop's tables; return 0 if all agree."""
    shown = Table("view", "rows", "where it went", "against DuckDB", title="sinks after the last version")
    equal = True
    expected = answers({view.name: view.sql for view in definition.views}, shop.arrow())
    for view in definition.views:
        place, rows = _PLACES[str(view.provider)]
        difference = first_difference(rows(spark, view), expected[view.name])
        equal = equal and difference is None
        word = "[green]equal[/]" if difference is None else f"[red]{difference}[/]"
        shown.add_row(view.name, f"{len(expected[view.name]):,}", place, word)
    console.print()
    console.print(shown)
    return int(not equal)


def _in_postgres(_: Any, view: ViewSpec) -> Iterable[Row]:
    return rows_in(os.environ["DATABASE"], f"SELECT * FROM {view.name}")


def _in_delta(spark: Any, view: ViewSpec) -> Iterable[Row]:
    return [tuple(row) for row in spark.read.format("delta").load(view.folder).collect()]


def _in_kafka(_: Any, view: ViewSpec) -> Iterable[Row]:
    """The last message of each key, without messages that delete it."""
    last = {message.key(): message.value() for message in messages(os.environ["KAFKA"], view.name)}
    return [tuple(json.loads(value).values()) for value in last.values() if value is not None]


_PLACES = {"jdbc": ("PostgreSQL", _in_postgres), "delta": ("Delta", _in_delta), "kafka": ("Kafka", _in_kafka)}
"""By the name of a connector, the target of a view, and the function that reads it there."""


def _make_topics(address: str) -> None:
    client = AdminClient({"bootstrap.servers": address})
    compacted = {"cleanup.policy": "compact"}
    for one in client.create_topics([NewTopic(name, 2, 1, config=compacted) for name in TOPICS]).values():
        one.result(30)


def _send(stream: Iterable[Message]) -> int:
    """Send messages; returns their number."""
    producer, count = Producer({"bootstrap.servers": os.environ["KAFKA"], "linger.ms": 20}), 0
    for message in stream:
        producer.produce(**message.sent())
        producer.poll(0)
        count += 1
        if count % 10_000 == 0:
            producer.flush(60)
    if producer.flush(60):
        raise SystemExit("Kafka does not accept the messages")
    return count


def _wait(query: Query, made: list[Manifest], sent: int) -> None:
    """Wait until all messages are read and the sinks have their changes. Raises the error that ended the pipeline."""
    while not made or sum(made[-1].totals.get("rows", {}).values()) < sent:
        if query.awaitTermination(0.02):
            raise SystemExit("the pipeline ended before its input was read")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on, not {text!r}")
    return int(text)


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (FreshviewsError, Missing) as error:
        sys.exit(f"the demo failed: {error}")
