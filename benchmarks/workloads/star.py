"""COUNT, by inner and by outer joins, and SUM of a product, over a star of six relations.

They join on one key, as in F-IVM's Housing data set.

350,000 rows over 25,000 post codes: three houses, shops, institutions and restaurants each, one row of
demographics and of transport. Batches of 1000 rows go to the tables in turn, all in key order or all shuffled.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measuring.stream import ROWS_PER_BATCH, Relation, Step, Stream, spread_over

TITLE = "star"
UNIT = "rows/s"
TARGETS = {"in key order": 10e6, "shuffled": 5e6}
LIKE = {"shuffled, LEFT JOIN": ("shuffled, INNER JOIN", 0.8)}
"""Cases whose rate must be at least a share of that of another case."""

KEYS = 25_000
COLUMNS = {
    "house": (
        3,
        "livingarea price nbbedrooms nbbathrooms kitchensize house flat unknown garden parking",
    ),
    "shop": (3, "openinghoursshop pricerangeshop sainsburys tesco ms"),
    "institution": (3, "typeeducation sizeinstitution"),
    "restaurant": (3, "openinghoursrest pricerangerest"),
    "demographics": (1, "averagesalary crimesperyear unemployment nbhospitals"),
    "transport": (1, "nbbuslines nbtrainstations distancecitycentre"),
}
FIRST, *REST = COLUMNS
JOINED = f"FROM {FIRST} " + " ".join(f"JOIN {name} ON {name}.postcode = {FIRST}.postcode" for name in REST)
VIEWS = {
    "": f"SELECT COUNT(*) AS n {JOINED}",
    "INNER JOIN": f"SELECT COUNT(*) AS n {JOINED}",
    "LEFT JOIN": f"SELECT COUNT(*) AS n {JOINED.replace(' JOIN', ' LEFT JOIN')}",
    "SUM": f"SELECT SUM(house.price * shop.tesco) AS worth {JOINED}",
}


def stream(case: str) -> Stream:
    """The stream of a case: ``in key order`` or ``shuffled``, then a view, or ``small`` for a tenth of the keys."""
    order, _, more = case.partition(", ")
    number = KEYS // 10 if more == "small" else KEYS
    random = np.random.default_rng(1)
    batches: list[list[Step]] = []
    for name, (copies, columns) in COLUMNS.items():
        keys = np.repeat(np.arange(number), copies)
        if order == "shuffled":
            random.shuffle(keys)
        values = {column: random.integers(0, 1000, len(keys)) for column in columns.split()}
        table = pa.table({"postcode": keys, **values})
        batches.append([Step(1, name, b) for b in table.to_batches(max_chunksize=ROWS_PER_BATCH)])
    longest = max(map(len, batches))
    steps = tuple(b[i] for i in range(longest) for b in batches if i < len(b))
    relations = tuple(
        Relation(name, ", ".join(f"{c} BIGINT" for c in ["postcode", *columns.split()]), ("postcode",))
        for name, (_, columns) in COLUMNS.items()
    )
    return Stream(relations, VIEWS["" if more == "small" else more], steps, spread_over(len(steps), 10))
