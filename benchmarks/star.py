"""COUNT over a star of six relations that join on one key, as F-IVM's Housing data set.

350,000 rows over 25,000 post codes: three houses, shops, institutions and restaurants each, one row of
demographics and of transport. Batches of 1000 rows go to the tables in turn, all in key order or all shuffled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers import recompute
from benchmarks.stream import ROWS_PER_BATCH, Relation, Step, Stream, keep_fresh, spread_over

TITLE = "star"
CASES = ("in key order", "shuffled")
STRATEGIES = ("freshviews", "DuckDB")
UNIT = "rows/s"
TARGETS = {"in key order": 10e6, "shuffled": 5e6}

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
VIEW = f"SELECT COUNT(*) AS n FROM {FIRST} " + " ".join(f"JOIN {name} USING (postcode)" for name in REST)


def stream(case: str) -> Stream:
    """The stream in key order or shuffled, always the same one."""
    random = np.random.default_rng(1)
    batches: list[list[Step]] = []
    for name, (copies, columns) in COLUMNS.items():
        keys = np.repeat(np.arange(KEYS), copies)
        if case == "shuffled":
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
    return Stream(relations, VIEW, steps, spread_over(len(steps), 10))


def measure(case: str, strategy: str) -> dict[str, Any]:
    return keep_fresh(stream(case)) if strategy == "freshviews" else recompute(stream(case))
