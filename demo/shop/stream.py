"""The shop's messages, generated from a seed: orders are placed, paid and cancelled, customers move, prices change."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

CUSTOMERS, PRODUCTS = 2_000, 500
CITIES = ("Berlin", "Lisbon", "Oslo", "Porto", "Riga", "Turin", "Vienna", "York")
CATEGORIES = ("books", "games", "garden", "music", "shoes", "tools")
SEED = 7

Row = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A message of a topic; without a ``value`` it deletes the row of its key."""

    topic: str
    key: int
    value: Row | None

    def sent(self) -> dict[str, Any]:
        """The arguments of a producer of confluent-kafka."""
        value = None if self.value is None else json.dumps(self.value).encode()
        return {"topic": self.topic, "key": str(self.key), "value": value}


@dataclass
class Shop:
    """``tables``: their contents after the messages so far, by key. ``begun``: the number of orders so far."""

    tables: dict[str, dict[int, Row]] = field(default_factory=lambda: {"customers": {}, "products": {}, "orders": {}})
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    begun: int = 0

    def opening(self) -> Iterator[Message]:
        """The customers and products that exist before the first order."""
        for customer in range(CUSTOMERS):
            yield self._put("customers", customer, {"name": f"customer {customer}", "city": self._one_of(CITIES)})
        for product in range(PRODUCTS):
            yield self._put("products", product, {"title": f"product {product}", **self._goods()})

    def round(self, count: int) -> Iterator[Message]:
        """The messages of a busy minute."""
        orders = self.tables["orders"]
        for _ in range(count):
            dice = self.chance.random()
            known = self.chance.randrange(self.begun) if self.begun else 0
            if known not in orders or dice < 0.6:
                self.begun += 1
                yield self._put("orders", self.begun - 1, self._order())
            elif dice < 0.9:
                yield self._put("orders", known, orders[known] | {"paid": True})
            elif dice < 0.97:
                yield self._delete("orders", known)
            elif dice < 0.99:
                yield self._changed("customers", self.chance.randrange(CUSTOMERS), city=self._one_of(CITIES))
            else:
                yield self._changed("products", self.chance.randrange(PRODUCTS), price=self._price())

    def arrow(self) -> dict[str, pa.Table]:
        """The tables, as a database would read them."""
        return {
            "customers": _columns("customer", self.tables["customers"], name=pa.string(), city=pa.string()),
            "products": _columns(
                "product", self.tables["products"], title=pa.string(), category=pa.string(), price=pa.string()
            ),
            "orders": _columns(
                "order_id",
                {key: row | {"customer": row["customer"]["id"]} for key, row in self.tables["orders"].items()},
                customer=pa.int64(),
                product=pa.int64(),
                quantity=pa.int32(),
                paid=pa.bool_(),
            ),
        }

    def _put(self, table: str, key: int, row: Row) -> Message:
        self.tables[table][key] = row
        return Message(table, key, row)

    def _changed(self, table: str, key: int, **values: Any) -> Message:
        return self._put(table, key, self.tables[table][key] | values)

    def _delete(self, table: str, key: int) -> Message:
        del self.tables[table][key]
        return Message(table, key, None)

    def _order(self) -> Row:
        # Some customers and products are in more orders than others, and some products in none.
        customer = int(CUSTOMERS * self.chance.random() ** 2)
        product = int(0.9 * PRODUCTS * self.chance.random() ** 2)
        return {"customer": {"id": customer}, "product": product, "quantity": self.chance.randint(1, 5), "paid": False}

    def _goods(self) -> Row:
        return {"category": self._one_of(CATEGORIES), "price": self._price()}

    def _price(self) -> str:
        return f"{self.chance.randint(100, 20_000) / 100:.2f}"

    def _one_of(self, names: tuple[str, ...]) -> str:
        return self.chance.choice(names)


def _columns(key: str, rows: dict[int, Row], **types: pa.DataType) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows.values()], kind) for name, kind in types.items()}
    if "price" in columns:
        columns["price"] = columns["price"].cast(pa.decimal128(8, 2))
    return pa.table({key: pa.array(list(rows), pa.int64()), **columns})
