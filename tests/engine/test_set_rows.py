"""UNION, EXCEPT and INTERSECT of rows that are not held: results, delay and space."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews import Database
from freshviews.catalog.definitions import SetOperation, SetTerm, looked_up_blocks
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.durable import recovery
from freshviews.engine.views.set_rows import change_of, counts, has, rows_of

pytestmark = pytest.mark.compiled(5)

JOINS = """
CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT); CREATE TABLE t (b BIGINT, c BIGINT);
"""
FIRST = "SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b"
SECOND = "SELECT r.a, r.b, t.c FROM r JOIN t ON r.b = t.b"


class Listed:
    """An operand with a list of rows and their counts; it counts the requests."""

    def __init__(self, before: Counter[int], after: Counter[int], asked: Counter[str], counted: bool = False) -> None:
        self.counted = counted
        self.before = before if counted else Counter(set(before))
        self.after = after if counted else Counter(set(after))
        self.asked = asked

    def rows(self, limit: int) -> Iterator[Codes]:
        found = np.array([[value, self.after[value]] for value in sorted(self.after)], np.int64).reshape(-1, 2)
        for start in range(0, len(found), limit):
            self.asked["rows"] += len(found[start : start + limit])
            yield found[start : start + limit]

    def counts(self, rows: Codes) -> Codes:
        self.asked["lookups"] += len(rows)
        return np.array([self.after[int(value)] for value in rows[:, 0]], np.int64)

    def change(self) -> Codes:
        values = {*self.before, *self.after}
        found = [[v, self.after[v] - self.before[v]] for v in values if self.after[v] != self.before[v]]
        return np.array(found, np.int64).reshape(-1, 2)


def evaluated(term: SetTerm, bags: list[Counter[int]]) -> Counter[int]:
    if isinstance(term, int):
        return bags[term]
    left, right = evaluated(term.left, bags), evaluated(term.right, bags)
    match term.kind:
        case "all":
            return left + right
        case "except_all":
            return left - right
        case "intersect_all":
            return left & right
        case "union":
            return Counter({*left, *right})
        case "intersect":
            return Counter({*left} & {*right})
    return Counter({*left} - {*right})


OPERANDS = 6
KINDS = ("union", "except", "intersect", "all", "except_all", "intersect_all")
terms = st.recursive(
    st.just(0), lambda inner: st.builds(SetOperation, st.sampled_from(KINDS), inner, inner), max_leaves=OPERANDS
).filter(lambda term: isinstance(term, SetOperation))
bags = st.lists(
    st.dictionaries(st.integers(0, 9), st.sampled_from((1, 1, 2, 3, 1 << 33))).map(Counter),
    min_size=OPERANDS,
    max_size=OPERANDS,
)


def numbered(term: SetTerm, numbers: Iterator[int]) -> SetTerm:
    """The term with operands 0, 1, ... from left to right."""
    if isinstance(term, int):
        return next(numbers)
    return SetOperation(term.kind, numbered(term.left, numbers), numbered(term.right, numbers))


@settings(deadline=None)
@given(terms, bags, bags, st.integers(1, 5))
def test_rows_lookups_and_changes_of_random_set_operations_are_right(
    written: SetTerm, before: list[Counter[int]], after: list[Counter[int]], limit: int
) -> None:
    term = numbered(written, iter(range(OPERANDS)))
    assert isinstance(term, SetOperation)
    looked_up = looked_up_blocks(term)
    # Blocks below only UNION ALLs are bags, too.
    operands = [
        Listed(b, a, Counter(), looked_up.get(i, True)) for i, (b, a) in enumerate(zip(before, after, strict=True))
    ]
    was, expected = (evaluated(term, [getattr(one, name) for one in operands]) for name in ("before", "after"))
    batches = list(rows_of(term, operands, limit))
    assert all(len(batch) <= limit for batch in batches)
    found: Counter[int] = Counter()
    for value, multiplicity in (row for batch in batches for row in batch.tolist()):
        assert multiplicity > 0 and (value not in found or term.kind == "all")
        found[value] += multiplicity
    assert found == expected
    every = np.array([[value, 1] for value in range(10)], np.int64)
    assert dict(enumerate(counts(term, operands, every).tolist())) == {value: expected[value] for value in range(10)}
    assert has(term, operands, every).tolist() == [expected[value] > 0 for value in range(10)]
    change = dict(change_of(term, operands).tolist())
    assert change == {v: expected[v] - was[v] for v in {*was, *expected} if expected[v] != was[v]}


@pytest.mark.parametrize("shared", [0, 1, 500, 1000])
def test_the_delay_of_a_union_is_constant(shared: int) -> None:
    """Between two rows: a row of each operand and a lookup, however many rows are in both."""
    for term, most in (
        (SetOperation("union", 0, 1), 3),
        (SetOperation("union", SetOperation("union", 0, 1), 2), 5),
        (SetOperation("union", 0, SetOperation("union", 1, 2)), 6),
    ):
        asked: Counter[str] = Counter()
        starts = (0, 1000 - shared, 1000 - shared)
        operands = [Listed(Counter(), Counter(range(at, at + 1000)), asked) for at in starts]
        delays = []
        total = 0
        for batch in rows_of(term, operands, 1):
            assert len(batch) == 1
            delays.append(asked.total() - total)
            total = asked.total()
        assert len(delays) == 2000 - shared
        assert max(delays) <= most


def test_a_union_of_joins_is_read_and_changed_in_linear_space() -> None:
    """The result has 2 n^2 rows over n rows of each table; no memory of that order is used."""
    n = 300
    with Database() as db:
        db.execute(f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} UNION {SECOND};")
        for i, table in enumerate("rst"):
            rows = range(i * n, (i + 1) * n)
            db.insert(table, [(x, 0) if table == "r" else (0, x) for x in rows])
        view = db.view("v")
        assert len(view) == 2 * n * n
        assert db.bytes_of("v") < 600 * 3 * n
        tracemalloc.start()
        batches = view.to_batches(100)
        for _, batch in zip(range(50), batches, strict=False):
            assert batch.num_rows == 100
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 400_000


def test_a_row_in_several_blocks_of_a_union_is_reported_once() -> None:
    with Database() as db:
        db.execute(f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} UNION {SECOND};")
        told: list[dict[tuple[int, ...], int]] = []
        db.view("v").subscribe(lambda change: told.append(dict(change)))
        db.insert("r", [(1, 1), (1, 1), (None, 1)])
        db.insert("s", [(1, 5)])
        db.insert("t", [(1, 5), (1, 6)])
        db.delete("s", [(1, 5)])
        db.delete("r", [(1, 1)])
        db.delete("t", [(1, 5)])
        assert told == [
            {(1, 1, 5): 1, (None, 1, 5): 1},
            {(1, 1, 6): 1, (None, 1, 6): 1},
            {(1, 1, 5): -1, (None, 1, 5): -1},
        ]


@pytest.mark.parametrize("operation", ["EXCEPT", "INTERSECT"])
def test_changes_of_both_blocks_of_a_set_operation_are_exact(operation: str) -> None:
    """A self-join adds a row to both parts at once."""
    with Database() as db:
        db.execute(
            "CREATE TABLE e (x BIGINT, y BIGINT); CREATE MATERIALIZED VIEW v AS"
            f" SELECT p.x, q.y FROM e p JOIN e q ON p.y = q.x {operation} SELECT x, y FROM e;"
        )
        changes: Counter[tuple[int, int]] = Counter()
        db.view("v").subscribe(lambda change: changes.update(dict(change)))
        edges: set[tuple[int, int]] = set()
        for come, go in (
            ({(1, 1)}, set()),
            ({(1, 2), (2, 3), (1, 3)}, set()),
            ({(3, 1)}, {(1, 3)}),
            ({(1, 3)}, {(1, 1), (2, 3)}),
            (set(), {(1, 2), (3, 1), (1, 3)}),
        ):
            db.apply("e", [(*e, 1) for e in come] + [(*e, -1) for e in go])
            edges = edges - go | come
            joined = {(x, z) for x, y in edges for w, z in edges if y == w}
            expected = joined - edges if operation == "EXCEPT" else joined & edges
            assert set(db.view("v")) == expected and len(db.view("v")) == len(expected)
            assert +changes == Counter(dict.fromkeys(expected, 1))


def test_rows_of_set_operations_may_have_strings_and_nulls() -> None:
    with Database() as db:
        db.execute(
            "CREATE TABLE r (n STRING, x INT); CREATE TABLE s (n STRING, y BIGINT);"
            "CREATE MATERIALIZED VIEW v AS SELECT upper(n) AS n, x FROM r EXCEPT SELECT n, y FROM s;"
            "CREATE MATERIALIZED VIEW w AS SELECT n, 1 AS one FROM v INTERSECT SELECT n, y FROM s"
            " UNION ALL SELECT n, y FROM s WHERE y IS NULL;"
        )
        db.insert("r", [("a", 1), ("A", 1), (None, None), ("b", None)])
        db.insert("s", [("A", 1), (None, None), ("B", 1)])
        assert set(db.view("v")) == {("B", None)}
        assert Counter(db.view("w")) == Counter([("B", 1), (None, None)])
        db.delete("s", [("A", 1), (None, None)])
        assert set(db.view("v")) == {("A", 1), (None, None), ("B", None)}
        assert db.view("v")[None, None] == (None, None)
        with pytest.raises(KeyError):
            db.view("v")["zz", 1]


def test_a_paused_reader_of_a_union_keeps_its_version() -> None:
    with Database() as db:
        db.execute(f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} UNION {SECOND};")
        db.insert("r", [(x, 0) for x in range(40)])
        db.insert("s", [(0, x) for x in range(40)])
        db.insert("t", [(0, x) for x in range(20, 60)])
        before = set(db.view("v"))
        started = db.view("v").to_batches(7)
        seen = next(started).to_pylist()
        abandoned = db.view("v").to_batches(7)
        next(abandoned)
        del abandoned
        db.delete("t", [(0, x) for x in range(20, 60)])
        for batch in started:
            seen += batch.to_pylist()
        assert len(seen) == len(before) and {tuple(row.values()) for row in seen} == before
        late = db.view("v").to_batches(7)
        next(late)
        db.execute("DROP MATERIALIZED VIEW v")
        assert sum(batch.num_rows for batch in late) == 40 * 40 - 7


def test_a_refused_batch_changes_no_block_of_a_set_operation() -> None:
    with Database() as db:
        db.execute(
            f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} EXCEPT {SECOND};"
            "CREATE MATERIALIZED VIEW z AS SELECT 10 div c AS q FROM t;"
        )
        told: list[object] = []
        db.view("v").subscribe(told.append)
        db.insert("r", [(1, 1)])
        db.insert("s", [(1, 5), (1, 6)])
        before = set(db.view("v"))
        with pytest.raises(Exception, match="division by zero"), db.batch() as batch:
            batch.insert("t", [(1, 5)])
            batch.insert("r", [(2, 1)])
            batch.insert("t", [(1, 0)])
        assert set(db.view("v")) == before and len(told) == 1
        db.insert("t", [(1, 5)])
        assert set(db.view("v")) == {(1, 1, 6)} and len(told) == 2


def test_set_operations_survive_a_reopen(tmp_path: Path) -> None:
    script = (
        f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} UNION {SECOND};"
        "CREATE MATERIALIZED VIEW w AS SELECT a, c FROM v EXCEPT SELECT b, c FROM s;"
    )
    with Database(tmp_path / "db") as db:
        db.execute(script)
        db.insert("r", [(1, 1), (2, 1)])
        db.insert("s", [(1, 5)])
        db.snapshot()
        db.insert("t", [(1, 5), (1, 6)])
        expected = set(db.view("v")), set(db.view("w"))
    with Database(tmp_path / "db") as db:
        assert (set(db.view("v")), set(db.view("w"))) == expected
        db.delete("r", [(1, 1)])
        assert set(db.view("v")) == {(2, 1, 5), (2, 1, 6)}
        assert set(db.view("w")) == {(2, 5), (2, 6)}


def test_a_view_that_is_missing_from_a_snapshot_is_backfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another version of freshviews had made other internal views of the same SQL."""
    script = f"{JOINS} CREATE MATERIALIZED VIEW v AS SELECT b, COUNT(*) AS n FROM r GROUP BY b EXCEPT SELECT * FROM s;"
    known = recovery._Images
    with Database(tmp_path / "db") as db:
        db.execute(script)
        db.insert("r", [(1, 1), (2, 1), (1, 2)])
        db.snapshot()

    def without(folder: Path, views: dict[str, str] | None = None, unstored: tuple[int, ...] = ()) -> recovery._Images:
        return known(folder, {name: file for name, file in (views or {}).items() if name != "v#1"}, unstored)

    monkeypatch.setattr(recovery, "_Images", without)
    with Database(tmp_path / "db") as db:
        assert set(db.view("v")) == {(1, 2), (2, 1)}
        db.insert("s", [(1, 2)])
        assert set(db.view("v")) == {(2, 1)}


def test_explain_shows_how_the_blocks_of_a_set_operation_are_combined() -> None:
    with Database() as db:
        db.execute(
            f"{JOINS} CREATE MATERIALIZED VIEW v AS {FIRST} UNION {SECOND};"
            f"CREATE MATERIALIZED VIEW w AS {FIRST} EXCEPT SELECT b, b, c FROM t;"
        )
        told = db.view("v").explain()
        assert "rows      1 UNION 2, of blocks: rows of one are looked up in the others; no row of the result" in told
        assert "except those" not in told and told.count("strategy  crown") == 2 and "no bound" not in told
        told = db.view("w").explain()
        assert "except those of block 2" in told and "no bound where EXCEPT skips rows" in told
