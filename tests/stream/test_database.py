"""The signed rows of every format, applied to a database, lead to the contents that the changes describe."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freshviews as fv
from freshviews.stream import DebeziumJson, DeltaFeed, Multiplicities, OpColumn, Snapshots, Upserts, signed_rows
from tests.stream.tables import table

pytestmark = pytest.mark.compiled(2)

SQL = "CREATE TABLE items (id BIGINT PRIMARY KEY, part STRING, qty INT)"
VIEW = "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM items GROUP BY part"
ITEMS = table(SQL)
NAMES = ("id", "part", "qty")

Row = tuple[int, str, int]
Steps = list[tuple[str, Row]]


def columns(rows):
    found = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    kinds = (pa.int64(), pa.string(), pa.int32())
    return {name: pa.array(values, kind) for name, values, kind in zip(NAMES, found, kinds, strict=True)}


def random_steps(rng: random.Random, contents: dict[int, Row], count: int) -> Steps:
    """Successive inserts, updates and deletes of few keys, many for each key."""
    steps: Steps = []
    for _ in range(count):
        key = rng.randrange(6)
        row = (key, rng.choice("ab"), rng.randrange(3))
        if key not in contents:
            steps.append(("insert", row))
            contents[key] = row
        elif rng.random() < 0.5:
            steps.append(("update", row))
            contents[key] = row
        else:
            steps.append(("delete", contents.pop(key)))
    return steps


def as_whole_rows(steps: Steps, before: dict[int, Row]) -> list[tuple[str, Row]]:
    """The same steps with the rows that updates replace, in Delta's words."""
    current, found = dict(before), []
    for word, row in steps:
        if word == "update":
            found += [("update_preimage", current[row[0]]), ("update_postimage", row)]
        else:
            found.append((word, row))
        if word == "delete":
            del current[row[0]]
        else:
            current[row[0]] = row
    return found


class Applied:
    """A database that gets the steps in one format."""

    def __init__(self) -> None:
        self.db = fv.Database()
        self.db.execute(f"{SQL}; {VIEW}")

    def lookup(self, keys: pa.RecordBatch) -> pa.Table:
        asked = set(keys.column("id").to_pylist())
        return pa.Table.from_batches(
            [pa.RecordBatch.from_pydict(columns([row for row in self.contents if row[0] in asked]))]
        )

    @property
    def contents(self) -> list[Row]:
        return [tuple(row.values()) for row in self.db.table("items").to_arrow().to_pylist()]

    def tell(self, name: str, steps: Steps, before: dict[int, Row], after: dict[int, Row]) -> None:
        self.db.apply("items", FORMATS[name](self, steps, before, after).rows)


def by_multiplicity(applied, steps, before, after):
    whole = as_whole_rows(steps, before)
    signs = [1 if word in ("insert", "update_postimage") else -1 for word, _ in whole]
    given = pa.RecordBatch.from_pydict({**columns([r for _, r in whole]), "_multiplicity": pa.array(signs, pa.int64())})
    return signed_rows(given, ITEMS, Multiplicities())


def by_delta(applied, steps, before, after):
    whole = as_whole_rows(steps, before)
    versions = list(range(len(whole)))
    order = versions[::2] + versions[1::2]
    given = pa.RecordBatch.from_pydict(
        {
            **columns([whole[i][1] for i in order]),
            "_change_type": pa.array([whole[i][0] for i in order], pa.string()),
            "_commit_version": pa.array(order, pa.int64()),
        }
    )
    return signed_rows(given, ITEMS, DeltaFeed())


def by_words(applied, steps, before, after):
    given = pa.RecordBatch.from_pydict(
        {**columns([r for _, r in steps]), "op": pa.array([w for w, _ in steps], pa.string())}
    )
    return signed_rows(given, ITEMS, OpColumn(), lookup=applied.lookup)


def by_upserts(applied, steps, before, after):
    given = pa.RecordBatch.from_pydict(
        {**columns([r for _, r in steps]), "op": pa.array([w for w, _ in steps], pa.string())}
    )
    return signed_rows(given, ITEMS, Upserts("op"), lookup=applied.lookup)


def debezium(steps, before, partial):
    current, texts = dict(before), []
    for word, row in steps:
        old = current.pop(row[0], None)
        image = None if old is None else dict(zip(NAMES, old, strict=True))
        if partial and image is not None:
            image = {"id": old[0], "part": None, "qty": None} if word == "delete" else None
        new = None if word == "delete" else dict(zip(NAMES, row, strict=True))
        texts += [json.dumps({"op": word[0].replace("i", "c"), "before": image, "after": new})]
        texts += [None] if word == "delete" else []
        if word != "delete":
            current[row[0]] = row
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.string())})


def by_debezium(applied, steps, before, after):
    return signed_rows(debezium(steps, before, partial=False), ITEMS, DebeziumJson())


def by_partial_debezium(applied, steps, before, after):
    given = debezium(steps, before, partial=True)
    return signed_rows(given, ITEMS, DebeziumJson(by_key=True), lookup=applied.lookup)


def by_snapshot(applied, steps, before, after):
    given, previous = (pa.RecordBatch.from_pydict(columns(list(c.values()))) for c in (after, before))
    return signed_rows(given, ITEMS, Snapshots(), previous=previous)


FORMATS = {
    "signed": by_multiplicity,
    "delta": by_delta,
    "words": by_words,
    "upserts": by_upserts,
    "debezium": by_debezium,
    "debezium by key": by_partial_debezium,
    "snapshots": by_snapshot,
}


@pytest.mark.parametrize("name", FORMATS)
def test_applied_changes_lead_to_the_contents_that_they_describe(name):
    rng = random.Random(name)
    applied, contents = Applied(), {}
    for _ in range(12):
        before = dict(contents)
        steps = random_steps(rng, contents, rng.randrange(15))
        applied.tell(name, steps, before, contents)
        assert sorted(applied.contents) == sorted(contents.values())
    expected: dict[str, tuple[int, int]] = {}
    for _, part, qty in contents.values():
        total, count = expected.get(part, (0, 0))
        expected[part] = (total + qty, count + 1)
    view = applied.db.view("by_part").to_arrow().to_pylist()
    assert {v["part"]: (v["qty"], v["n"]) for v in view} == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 12))
def test_all_formats_give_the_same_net_change(seed, first, second):
    rng = random.Random(seed)
    contents: dict[int, Row] = {}
    random_steps(rng, contents, first)
    before = dict(contents)
    steps = random_steps(rng, contents, second)

    class Known:
        def lookup(self, keys):
            asked = keys.column("id").to_pylist()
            return pa.RecordBatch.from_pydict(columns([before[key] for key in asked if key in before]))

    expected = dict.fromkeys(before.values(), -1)
    for row in contents.values():
        expected[row] = expected.get(row, 0) + 1
    expected = {row: sign for row, sign in expected.items() if sign}
    for name, reported in FORMATS.items():
        found: dict[Row, int] = {}
        for change in reported(Known(), steps, before, contents).rows.to_pylist():
            row = (change["id"], change["part"], change["qty"])
            found[row] = found.get(row, 0) + change["_multiplicity"]
        assert {row: sign for row, sign in found.items() if sign} == expected, name
