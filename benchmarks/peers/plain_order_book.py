"""Plain Python over an order book: a hand-written program for each query of ``benchmarks.workloads.large_book``.

``change`` inserts or deletes an order, ``rows`` are those of the view, computed once per batch from the sums stored by
price, volume or broker. A program knows its query: prices are whole cents, and there are few volumes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Row = tuple[Any, ...]
Order = tuple[int, int, int, int, int]
"""Time, number, broker, volume and price."""


class Levels:
    """The orders of a book by price: volume, and for each broker the number of orders and the sum of their values."""

    def __init__(self) -> None:
        self.volume: defaultdict[int, int] = defaultdict(int)
        self.count: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.value: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.total = 0

    def change(self, order: Order, sign: int) -> None:
        _, _, broker, volume, price = order
        self.total += sign * volume
        self.volume[price] += sign * volume
        if not self.volume[price]:
            del self.volume[price]
        self.count[price][broker] += sign
        self.value[price][broker] += sign * volume * price

    def top(self) -> list[int]:
        """The prices of the best quarter of the volume, except the very best, above which there is no sum."""
        found, above = [], 0
        for price in sorted(self.volume, reverse=True):
            if above and not self.total > 4 * above:
                break
            if above:
                found.append(price)
            above += self.volume[price]
        return found


class Vwap:
    def __init__(self) -> None:
        self.bids = Levels()

    def change(self, table: str, order: Order, sign: int) -> None:
        self.bids.change(order, sign)

    def rows(self) -> list[Row]:
        top = self.bids.top()
        return [(sum(sum(self.bids.value[price].values()) for price in top) if top else None,)]


class MissedTrades:
    def __init__(self) -> None:
        self.books = {"bids": Levels(), "asks": Levels()}

    def change(self, table: str, order: Order, sign: int) -> None:
        self.books[table].change(order, sign)

    def rows(self) -> list[Row]:
        bids, asks = self.books["bids"], self.books["asks"]
        top = asks.top()
        number = sum(sum(asks.count[price].values()) for price in top)
        theirs = sum(sum(asks.value[price].values()) for price in top)
        count: defaultdict[int, int] = defaultdict(int)
        mine: defaultdict[int, int] = defaultdict(int)
        for price in bids.top():
            for broker, orders in bids.count[price].items():
                count[broker] += orders
                mine[broker] += bids.value[price][broker]
        return [(b, theirs * n - mine[b] * number) for b, n in count.items() if n] if number else []


class PriceSpread:
    """The orders of a book by volume: their number, and the sum of their prices."""

    def __init__(self) -> None:
        self.total = {"bids": 0, "asks": 0}
        self.count: dict[str, defaultdict[int, int]] = {name: defaultdict(int) for name in self.total}
        self.price: dict[str, defaultdict[int, int]] = {name: defaultdict(int) for name in self.total}

    def change(self, table: str, order: Order, sign: int) -> None:
        _, _, _, volume, price = order
        self.total[table] += sign * volume
        self.count[table][volume] += sign
        self.price[table][volume] += sign * price

    def rows(self) -> list[Row]:
        sums = {}
        for table, total in self.total.items():
            large = [volume for volume in self.count[table] if 10_000 * volume > total]
            sums[table] = [sum(kept[table][v] for v in large) for kept in (self.count, self.price)]
        (n, b), (m, a) = sums["bids"], sums["asks"]
        return [(a * n - b * m if n and m else None,)]


class AxFinder:
    """For each broker and table the number of orders and their volume, in total and at each price."""

    FAR = 10

    def __init__(self) -> None:
        self.all: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
        self.at: defaultdict[tuple[str, int, int], list[int]] = defaultdict(lambda: [0, 0])
        self.axf: defaultdict[int, int] = defaultdict(int)
        self.pairs: defaultdict[int, int] = defaultdict(int)

    def change(self, table: str, order: Order, sign: int) -> None:
        _, _, broker, volume, price = order
        other = "asks" if table == "bids" else "bids"
        count, sums = self.all[other, broker]
        for near in range(price - self.FAR, price + self.FAR + 1):
            level = self.at.get((other, broker, near))
            if level is not None:
                count -= level[0]
                sums -= level[1]
        self.pairs[broker] += sign * count
        self.axf[broker] += sign * (sums - count * volume if table == "bids" else count * volume - sums)
        for kept in (self.all[table, broker], self.at[table, broker, price]):
            kept[0] += sign
            kept[1] += sign * volume

    def rows(self) -> list[Row]:
        return [(broker, self.axf[broker]) for broker, pairs in self.pairs.items() if pairs]


class BrokerSpread:
    """For each broker the orders by time; one pass over them per batch."""

    def __init__(self) -> None:
        self.orders: defaultdict[int, dict[Order, int]] = defaultdict(dict)

    def change(self, table: str, order: Order, sign: int) -> None:
        if sign > 0:
            self.orders[order[2]][order] = order[3] * order[4]
        else:
            del self.orders[order[2]][order]

    def rows(self) -> list[Row]:
        found: list[Row] = []
        for broker, orders in self.orders.items():
            bsp = pairs = number = sums = 0
            at, here = -1, []
            for (t, *_), value in sorted(orders.items()):
                if t != at:
                    number += len(here)
                    sums += sum(here)
                    at, here = t, []
                bsp += value * number - sums
                pairs += number
                here.append(value)
            if pairs:
                found.append((broker, bsp))
        return found


PROGRAMS: dict[str, type[Any]] = {
    "vwap": Vwap,
    "mst": MissedTrades,
    "missedtrades": MissedTrades,
    "pricespread": PriceSpread,
    "axfinder": AxFinder,
    "brokerspread": BrokerSpread,
}
"""By the name of the view."""
