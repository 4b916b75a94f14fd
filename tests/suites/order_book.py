"""DBToaster's queries over an order book, in standard SQL.

Prices and volumes are doubles there, and doubles here whose sums are exact. ``AND -1 *`` and the like are written as a
subtraction. What only its dialect has: CREATE STREAM ... FROM FILE with an adaptor that plays the book.
"""

from __future__ import annotations

from tests.suites.suite import Column, Query, Suite, Table

_COLUMNS = (
    Column("t", "DOUBLE", tuple(float(t) for t in range(8))),
    Column("id", "INT NOT NULL", tuple(range(40))),
    Column("broker_id", "INT", (1, 2, 3)),
    Column("volume", "DOUBLE", (1.0, 5.0, 10.0, 40.0, 0.5)),
    Column("price", "DOUBLE", (10.0, 20.0, 25.5, 1500.0, 1510.0, 4000.0)),
)
TABLES = (Table("bids", _COLUMNS, ("id",), 14), Table("asks", _COLUMNS, ("id",), 14))


def _at_the_top(book: str, outer: str) -> str:
    """Whether an order is among the best priced quarter of the volume of its book."""
    return f"""
        0.25 * (SELECT SUM(x.volume) FROM {book} AS x) > (
          SELECT SUM(y.volume) FROM {book} AS y WHERE y.price > {outer}.price)
    """


QUERIES = {
    "vwap": f"SELECT SUM(b.price * b.volume) AS vwap FROM bids AS b WHERE {_at_the_top('bids', 'b')}",
    "vwap, joined": """
        SELECT SUM(b.price * b.volume) AS vwap
        FROM bids AS b, (SELECT SUM(volume) AS total FROM bids) AS x
        WHERE 0.25 * total > (SELECT SUM(y.volume) FROM bids AS y WHERE y.price > b.price)
    """,
    "vwap, from the best price on": """
        SELECT SUM(b.price * b.volume) AS vwap FROM bids AS b
        WHERE 0.25 * (SELECT SUM(x.volume) FROM bids AS x) >
          COALESCE((SELECT SUM(y.volume) FROM bids AS y WHERE y.price > b.price), 0)
    """,
    "axfinder": """
        SELECT b.broker_id, SUM(a.volume - b.volume) AS axfinder
        FROM bids AS b, asks AS a
        WHERE b.broker_id = a.broker_id AND (a.price - b.price > 1000 OR b.price - a.price > 1000)
        GROUP BY b.broker_id
    """,
    "brokerspread": """
        SELECT x.broker_id, SUM(x.volume * x.price - y.volume * y.price) AS bsp
        FROM bids AS x, bids AS y
        WHERE x.broker_id = y.broker_id AND x.t > y.t
        GROUP BY x.broker_id
    """,
    "brokervariance": """
        SELECT x.broker_id, SUM(x.volume * x.price * y.volume * y.price * 0.5) AS bsv
        FROM bids AS x, bids AS y
        WHERE x.broker_id = y.broker_id
        GROUP BY x.broker_id
    """,
    "missedtrades": f"""
        SELECT b.broker_id, SUM(a.price * a.volume - b.price * b.volume) AS mst
        FROM bids AS b, asks AS a
        WHERE {_at_the_top("asks", "a")} AND {_at_the_top("bids", "b")}
        GROUP BY b.broker_id
    """,
    "chrissedtrades": f"""
        SELECT b.broker_id, SUM(a.foo + b.foo) AS mst
        FROM
          (SELECT b0.broker_id, SUM(-1 * b0.price * b0.volume * ba.cnt) AS foo
           FROM bids AS b0, (SELECT COUNT(*) AS cnt FROM asks) AS ba
           WHERE {_at_the_top("bids", "b0")}
           GROUP BY b0.broker_id) AS b,
          (SELECT ab.broker_id, SUM(aa.foo) AS foo
           FROM (SELECT SUM(a0.price * a0.volume) AS foo FROM asks AS a0 WHERE {_at_the_top("asks", "a0")}) AS aa,
             bids AS ab
           GROUP BY ab.broker_id) AS a
        WHERE a.broker_id = b.broker_id
        GROUP BY b.broker_id
    """,
    "pricespread": """
        SELECT SUM(a.price - b.price) AS psp
        FROM bids AS b, asks AS a
        WHERE b.volume > 0.0001 * (SELECT SUM(x.volume) FROM bids AS x)
          AND a.volume > 0.0001 * (SELECT SUM(x.volume) FROM asks AS x)
    """,
    "pricespread, a tenth": """
        SELECT SUM(a.price - b.price) AS psp
        FROM bids AS b, asks AS a
        WHERE b.volume > 0.1 * (SELECT SUM(x.volume) FROM bids AS x)
          AND a.volume > 0.1 * (SELECT SUM(x.volume) FROM asks AS x)
    """,
    "sum of volumes": "SELECT SUM(volume) AS total FROM bids WHERE price > 20",
}

SUITE = Suite(TABLES, {name: Query(text) for name, text in QUERIES.items()})
