"""DBToaster's queries over an order book that always holds 100,000 open orders.

The events are those of ``orderbook``, repeated: each repetition has numbers and times of its own, and its prices are a
few cents off. The open orders at the end of the first repetitions fill the book, before the clock starts. From then on
each new order replaces the oldest one. A batch has the rows of 500 events, net, of one table. Without the file there
are no figures, as random events have other prices.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from benchmarks.measuring.stream import MULTIPLICITY, NoData, Step, Stream, spread_over
from benchmarks.workloads import orderbook
from benchmarks.workloads.orderbook import COLUMNS, RELATIONS, Order

TITLE = "order book of 100,000"
UNIT = "updates/s"
OPEN = 100_000
EVENTS = 100_000
"""Number of measured events."""
EVENTS_PER_BATCH = 500
ROWS_PER_LOAD = 10_000
TARGETS = {"vwap": 0.2e6}
_APART = 10_000_000
"""Difference of the numbers and of the times of two repetitions."""


def _top(book: str, outer: str) -> str:
    total = f"SELECT SUM(x.volume) FROM {book} x"
    return f"0.25 * ({total}) > (SELECT SUM(y.volume) FROM {book} y WHERE y.price > {outer}.price)"


VIEWS = {
    "vwap": f"SELECT SUM(b.price * b.volume) AS vwap FROM bids b WHERE {_top('bids', 'b')}",
    "mst": f"""
        SELECT b.broker, SUM(a.price * a.volume - b.price * b.volume) AS mst
        FROM bids b, asks a
        WHERE {_top("asks", "a")} AND {_top("bids", "b")}
        GROUP BY b.broker
    """,
    "missedtrades": f"""
        SELECT b.broker, SUM(b.mine * a.n + a.theirs * b.n) AS mst
        FROM (SELECT broker, -SUM(b0.price * b0.volume) AS mine, COUNT(*) AS n FROM bids b0
              WHERE {_top("bids", "b0")} GROUP BY broker) b,
          (SELECT SUM(a0.price * a0.volume) AS theirs, COUNT(*) AS n FROM asks a0 WHERE {_top("asks", "a0")}) a
        WHERE a.n > 0
        GROUP BY b.broker
    """,
    "pricespread": """
        SELECT SUM(a.price - b.price) AS psp
        FROM bids b, asks a
        WHERE b.volume > 0.0001 * (SELECT SUM(x.volume) FROM bids x)
          AND a.volume > 0.0001 * (SELECT SUM(x.volume) FROM asks x)
    """,
    "axfinder": orderbook.VIEWS["axf"],
    "brokerspread": orderbook.VIEWS["bsp"],
}
"""``mst`` joins the two books, as DBToaster's missedtrades; ``missedtrades`` has one sum for each book, as its
chrissedtrades."""


def stream(case: str) -> Stream:
    """The stream of a view. Raises NoData without the file of events."""
    if not orderbook.file_of_events().exists():
        raise NoData("ORDERBOOK names no file of events, and benchmarks/data/finance.csv is not there")
    filled, measured = _steps()
    used = tuple(relation for relation in RELATIONS if f"{relation.name} " in VIEWS[case])
    names = {relation.name for relation in used}
    first = [step for step in filled if step.table in names]
    rest = [step for step in measured if step.table in names]
    compared = tuple(len(first) + i for i in spread_over(len(rest), 10))
    return Stream(used, VIEWS[case], (*first, *rest), compared, before=len(first), pattern={"name": case})


def _steps() -> tuple[list[Step], list[Step]]:
    """The steps that fill the book, and those that are measured."""
    given = list(orderbook.events())
    book: dict[int, tuple[str, Order]] = {}
    repetition = 0
    while len(book) < OPEN:
        for event in _repeated(given, repetition):
            for _ in orderbook.changes(book, event):
                pass
        repetition += 1
    for key in list(book)[: len(book) - OPEN]:
        del book[key]
    filled = []
    for table in ("bids", "asks"):
        rows = [(*order, 1) for name, order in book.values() if name == table]
        filled += [_step(table, rows[i : i + ROWS_PER_LOAD]) for i in range(0, len(rows), ROWS_PER_LOAD)]
    measured: list[Step] = []
    net: dict[str, dict[Order, int]] = {"bids": {}, "asks": {}}
    for number in range(EVENTS):
        if number % len(given) == 0:
            events = list(_repeated(given, repetition + number // len(given)))
        changed = list(orderbook.changes(book, events[number % len(given)]))
        while len(book) > OPEN:
            table, order = book.pop(next(iter(book)))
            changed.append((table, order, -1))
        for table, order, sign in changed:
            net[table][order] = net[table].get(order, 0) + sign
        if number % EVENTS_PER_BATCH == EVENTS_PER_BATCH - 1:
            for table, orders in net.items():
                measured.append(_step(table, [(*order, sign) for order, sign in orders.items() if sign]))
                orders.clear()
    return filled, measured


def _repeated(given: list[list[int | str]], repetition: int) -> Iterator[list[int | str]]:
    """The events once more: other numbers, later times, prices up to 20 cents off."""
    further, off = repetition * _APART, (repetition * 17 % 41 - 20) * 100
    for t, number, operation, volume, price in given:
        yield [int(t) + further, int(number) + further, operation, volume, max(int(price) + off, 100)]


def _step(table: str, rows: list[tuple[int, ...]]) -> Step:
    names = [*(part.split()[0] for part in COLUMNS.split(", ")), MULTIPLICITY]
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return Step(0, table, pa.record_batch(columns, names))
