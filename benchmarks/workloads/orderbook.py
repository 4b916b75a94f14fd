"""An order book: bids and asks that are inserted and deleted, and queries of traders (as in DBToaster's evaluation).

The events are ``timestamp,order id,operation,volume,price`` in the file that ORDERBOOK names, or in
benchmarks/data/finance.csv: B and S put an order into the book of bids or of asks, E executes part of one, F all of it,
and D deletes it, others change nothing; the broker is the order's number modulo ten. Prices are in ten
thousandths of a dollar in the file and in cents here, so that ``bsv``, a squared sum, is a BIGINT. Without the file,
events are random. A batch has 10 events.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.stream import MULTIPLICITY, Relation, Step, Stream, spread_over

TITLE = "order book"
UNIT = "updates/s"
EVENTS_PER_BATCH = 10
BROKERS = 10
COLUMNS = "t BIGINT, number BIGINT, broker BIGINT, volume BIGINT, price BIGINT"
RELATIONS = (Relation("bids", COLUMNS, ("number",)), Relation("asks", COLUMNS, ("number",)))
VIEWS = {
    "axf": """
        SELECT b.broker, SUM(a.volume - b.volume) AS axf
        FROM bids b JOIN asks a ON b.broker = a.broker
        WHERE a.price - b.price > 10 OR b.price - a.price > 10
        GROUP BY b.broker
    """,
    "bsp": """
        SELECT x.broker, SUM(x.volume * x.price - y.volume * y.price) AS bsp
        FROM bids x JOIN bids y ON x.broker = y.broker
        WHERE x.t > y.t
        GROUP BY x.broker
    """,
    "bsv": """
        SELECT x.broker, SUM(x.volume * x.price * y.volume * y.price) AS bsv
        FROM bids x JOIN bids y ON x.broker = y.broker
        GROUP BY x.broker
    """,
    "vwap": """
        SELECT SUM(b.price * b.volume) AS vwap
        FROM bids b
        WHERE (SELECT SUM(c.volume) FROM bids c) * 0.25 > (SELECT SUM(d.volume) FROM bids d WHERE d.price > b.price)
    """,
}

Order = tuple[int, int, int, int, int]


def stream(case: str) -> Stream:
    """The stream of a view: changes of bids and asks, net within a batch of events."""
    steps: list[Step] = []
    book: dict[int, tuple[str, Order]] = {}
    net: dict[str, dict[Order, int]] = {"bids": {}, "asks": {}}
    for number, event in enumerate(events()):
        for table, order, sign in changes(book, event):
            net[table][order] = net[table].get(order, 0) + sign
        if number % EVENTS_PER_BATCH == EVENTS_PER_BATCH - 1:
            steps += _steps(net)
    steps += _steps(net)
    used = tuple(relation for relation in RELATIONS if f"{relation.name} " in VIEWS[case])
    names = {relation.name for relation in used}
    kept = tuple(step for step in steps if step.table in names)
    return Stream(used, VIEWS[case], kept, spread_over(len(kept), 10))


def _steps(net: dict[str, dict[Order, int]]) -> list[Step]:
    found = []
    for table, changes in net.items():
        rows = [(*order, sign) for order, sign in changes.items() if sign]
        changes.clear()
        if rows:
            names = [*(part.split()[0] for part in COLUMNS.split(", ")), MULTIPLICITY]
            columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
            found.append(Step(0, table, pa.record_batch(columns, names)))
    return found


def changes(book: dict[int, tuple[str, Order]], event: list[int | str]) -> Iterator[tuple[str, Order, int]]:
    """The rows that an event deletes and inserts."""
    t, number, operation, volume, price = event
    key = int(number)
    if operation in ("B", "S"):
        table = "bids" if operation == "B" else "asks"
        order = (int(t), key, key % BROKERS, int(volume), int(price) // 100)
        if key in book:
            yield (*book[key], -1)
        book[key] = (table, order)
        yield table, order, 1
    elif operation in ("D", "E", "F") and key in book:
        table, order = book.pop(key)
        yield table, order, -1
        left = order[3] - int(volume) if operation == "E" else 0
        if left > 0:
            book[key] = (table, (*order[:3], left, order[4]))
            yield (*book[key], 1)


def file_of_events() -> Path:
    """The file that ORDERBOOK names, or the one among the data; it may be missing."""
    return Path(os.environ.get("ORDERBOOK") or ROOT / "benchmarks" / "data" / "finance.csv")


def events() -> Iterator[list[int | str]]:
    """The events of the file, or random ones if it is missing."""
    file = file_of_events()
    if file.exists():
        with file.open() as lines:
            yield from csv.reader(lines)
        return
    random = np.random.default_rng(1)
    for i in range(5_000):
        old = int(random.integers(0, max(i, 1)))
        operation = str(random.choice(["B", "S", "E", "D"], p=[0.35, 0.35, 0.1, 0.2]))
        fresh = operation in "BS"
        volume, price = (int(random.integers(1, most)) * 100 for most in (20, 3000))
        yield [i, i if fresh else old, operation, volume, price]
