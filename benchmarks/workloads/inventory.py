"""The stock of a retailer: a snowflake of five relations with 43 columns, as in F-IVM's Retailer data set.

400,000 counts of stock by location, day and item; 3,000 items, the weather of 300 locations on 100 days, and behind
each location the census of its post code. All rows are shuffled; batches of 1,000 go to the tables in turn.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measuring.stream import ROWS_PER_BATCH, Relation, Step, Stream, spread_over

ROWS, LOCATIONS, DAYS, ITEMS = 400_000, 300, 100, 3_000
COLUMNS = {
    "inventory": (("locn", "dateid", "ksn"), "inventoryunits"),
    "location": (
        ("locn",),
        "zip regioncode climatezone totalarea sellarea averageincome supertargetdistance supertargetdrivetime "
        "targetdistance targetdrivetime walmartdistance walmartdrivetime walmartsupercenterdistance "
        "walmartsupercenterdrivetime",
    ),
    "census": (
        ("zip",),
        "population white asian pacific black medianage occupiedhouseunits houseunits families households husbwife "
        "males females householdschildren hispanic",
    ),
    "item": (("ksn",), "subcategory category categorycluster prize"),
    "weather": (("locn", "dateid"), "rain snow maxtemp mintemp meanwind thunder"),
}
"""Columns of the key and others by table."""
JOINED = "FROM inventory NATURAL JOIN location NATURAL JOIN census NATURAL JOIN item NATURAL JOIN weather"


def variables() -> list[str]:
    """All columns, each once, as ``table.column``."""
    found: dict[str, str] = {}
    for table, (key, others) in COLUMNS.items():
        for column in (*key, *others.split()):
            found.setdefault(column, f"{table}.{column}")
    return list(found.values())


def relations(kind: str) -> tuple[Relation, ...]:
    """The tables, with columns of one type."""
    return tuple(
        Relation(table, ", ".join(f"{column} {kind}" for column in (*key, *others.split())), key)
        for table, (key, others) in COLUMNS.items()
    )


def stream(view: str, small: bool = False) -> Stream:
    """The stream for a view over the tables, or one of a tenth of the counts of stock, items and days."""
    random = np.random.default_rng(3)
    rows, days, items = (n // 10 if small else n for n in (ROWS, DAYS, ITEMS))
    place = np.arange(LOCATIONS * days)
    count = random.choice(LOCATIONS * days * items, rows, replace=False)
    keys = {
        "inventory": (count % LOCATIONS, count // LOCATIONS % days, count // (LOCATIONS * days)),
        "location": (np.arange(LOCATIONS),),
        "census": (np.arange(LOCATIONS),),
        "item": (np.arange(items),),
        "weather": (place % LOCATIONS, place // LOCATIONS),
    }
    batches: list[list[Step]] = []
    for table, (key, others) in COLUMNS.items():
        order = random.permutation(len(keys[table][0]))
        columns = {name: values[order] for name, values in zip(key, keys[table], strict=True)}
        columns |= {name: random.integers(0, 1000, len(order)) for name in others.split()}
        if table == "location":
            columns["zip"] = random.permutation(LOCATIONS)
        made = pa.table(columns).to_batches(max_chunksize=ROWS_PER_BATCH)
        batches.append([Step(1, table, batch) for batch in made])
    steps = tuple(b[i] for i in range(max(map(len, batches))) for b in batches if i < len(b))
    return Stream(relations("BIGINT NOT NULL"), view, steps, spread_over(len(steps), 10))
