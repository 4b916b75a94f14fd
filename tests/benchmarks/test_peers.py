"""Peers give right answers: hand-written programs and delta SQL, compared with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.measuring.answers import compare_answers
from benchmarks.measuring.stream import MULTIPLICITY, NoData, Relation, Step, Stream, interleaved, signed, with_deletes
from benchmarks.peers import plain_order_book
from benchmarks.peers.duckdb_sql import Delta, NotWritten, first_order, recompute
from benchmarks.peers.plain_python import PROGRAMS, run
from benchmarks.workloads import graph, large_book, orderbook, snb, tpch

Edge = tuple[int, int]


def changes(nodes: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Random edges without loops, inserted and deleted."""
    random = np.random.default_rng(nodes)
    there: set[Edge] = set()
    for _ in range(count):
        a, b = (int(n) for n in random.integers(0, nodes, 2))
        if a == b:
            continue
        sign = -1 if (a, b) in there else 1
        (there.remove if sign < 0 else there.add)((a, b))
        yield a, b, sign


def by_definition(name: str, edges: set[Edge]) -> list[tuple[int, ...]]:
    """Matches of a pattern, by nested loops over the edges."""
    pattern, columns, _ = graph.LISTED.get(name, (name, "", ""))
    found: list[dict[str, int]] = [{}]
    for _, first, second in graph.PATTERNS[pattern]:
        found = [
            {**known, first: a, second: b}
            for known, (a, b) in product(found, edges)
            if known.get(first, a) == a and known.get(second, b) == b
        ]
    return [tuple(known[variable] for variable in columns.split()) for known in found]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hand_written_program_agrees_with_the_definition_of_its_view(name: str) -> None:
    kept = PROGRAMS[name]()
    edges: set[Edge] = set()
    for number, (a, b, sign) in enumerate(changes(5, 120)):
        (edges.add if sign > 0 else edges.remove)((a, b))
        kept.change(a, b, sign)
        if number % 10 == 9:
            expected = by_definition(name, edges)
            if name in graph.LISTED:
                assert sorted(kept.rows) == sorted(expected)
            else:
                assert kept.count == len(expected)


@pytest.mark.parametrize("name", plain_order_book.PROGRAMS)
def test_a_hand_written_program_over_an_order_book_agrees_with_the_query(name: str) -> None:
    random = np.random.default_rng(7)
    there: list[tuple[str, tuple[int, ...]]] = []
    batches: list[tuple[str, tuple[int, ...], int]] = []
    for number in range(90):
        if there and random.random() < 0.4:
            table, order = there.pop(int(random.integers(len(there))))
            batches.append((table, order, -1))
            continue
        table = str(random.choice(["bids", "asks"]))
        order = (number // 2, number, *(int(random.integers(1, most)) for most in (4, 9, 40)))
        there.append((table, order))
        batches.append((table, order, 1))
    names = ["t", "number", "broker", "volume", "price", MULTIPLICITY]
    steps = tuple(
        Step(0, table, pa.record_batch([pa.array([x], pa.int64()) for x in (*order, sign)], names))
        for table, order, sign in batches
        if table == "bids" or "asks" in large_book.VIEWS[name]
    )
    used = tuple(relation for relation in orderbook.RELATIONS if f"{relation.name} " in large_book.VIEWS[name])
    compared = tuple(range(5, len(steps), 7))
    stream = Stream(used, large_book.VIEWS[name], steps, compared, before=3, pattern={"name": name})
    names_of = {"workload": "a stream", "case": name}
    one, other = recompute(stream), run(stream)
    compare_answers({**names_of, "strategy": "DuckDB", **one}, {**names_of, "strategy": "plain Python", **other})
    assert set(one["answers"]) == set(other["answers"])


def test_a_missing_file_of_the_large_order_book_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERBOOK", "no such file")
    with pytest.raises(NoData, match="ORDERBOOK"):
        large_book.stream("vwap")


def of_edges(name: str) -> Stream:
    given = list(changes(40, 200))
    rows = pa.table({"src": [a for a, _, _ in given], "dst": [b for _, b, _ in given]})
    steps = tuple(signed("edge", rows, np.array([sign for *_, sign in given]), 20))
    relation = Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst"))
    return Stream((relation,), graph.view_of(name), steps, (3, 6, len(steps) - 1))


def agree(stream: Stream) -> None:
    one, other = recompute(stream), first_order(stream)
    names = {"workload": "a stream", "case": "", "strategy": "DuckDB"}
    assert set(one["answers"]) == set(other["answers"]) == {str(i) for i in stream.compared}
    compare_answers({**names, **one}, {**names, **other})


@pytest.mark.parametrize("name", [*graph.PATTERNS, "triangle listed", "2-hop listed", "3-hop projected"])
def test_delta_sql_of_a_graph_pattern_returns_the_same_rows_as_the_query(name: str) -> None:
    agree(of_edges(name))


@pytest.mark.parametrize("case", ["posts of friends", "friends of friends", "tags among friends"])
def test_delta_sql_of_groups_returns_the_same_rows_as_the_query(case: str) -> None:
    stream = snb.stream(case)
    agree(Stream(stream.relations, stream.view, stream.steps[:16], (5, 15)))


def test_delta_sql_of_sums_returns_the_same_rows_as_the_query() -> None:
    stream = orderbook.stream("axf")
    agree(Stream(stream.relations, stream.view, stream.steps[:40], (10, 39)))


def test_delta_sql_of_sums_handles_null() -> None:
    values = pa.table({"k": [1, 1, 2, 2, 3], "x": pa.array([None, 4, None, None, 5], pa.int64())})
    signs = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (1, -1), (4, -1)]
    rows = values.take([row for row, _ in signs])
    steps = tuple(signed("t", rows, np.array([sign for _, sign in signs]), 1))
    relation = Relation("t", "k BIGINT, x BIGINT", ("k", "x"))
    agree(Stream((relation,), "SELECT k, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY k", steps, (0, 1, 4, 5, 6)))


def test_delta_sql_refuses_views_with_min_max_avg_or_exists() -> None:
    stream = snb.stream("posts of friends")
    for view in (
        "SELECT MIN(p1) AS m FROM knows",
        "SELECT p1, AVG(p2) AS m FROM knows GROUP BY p1",
        "SELECT p1, COUNT(*) AS n FROM knows WHERE EXISTS (SELECT * FROM post WHERE creator = p1) GROUP BY p1",
    ):
        with pytest.raises(NotWritten):
            Delta(Stream(stream.relations, view, (), ()))
    assert "no delta SQL" in first_order(Stream(stream.relations, "SELECT MAX(p1) AS m FROM knows", (), ()))["missing"]


def test_deletes_of_a_batch_come_before_its_inserts() -> None:
    rows = pa.table({"a": [1, 2, 3, 1]})
    (step,) = signed("t", rows, np.array([1, -1, 1, -1]), 10)
    reported = [(sign, part.column("a").to_pylist()) for sign, part in step.parts]
    assert reported == [(-1, [2]), (1, [3])]


def test_deletes_remove_every_tenth_batch_of_inserts() -> None:
    inserts = interleaved({"t": pa.table({"a": range(95)})}, 5)
    steps = with_deletes(inserts)
    assert [s.sign for s in steps] == [1] * 19 + [-1] * 2
    assert steps[-1] == Step(-1, "t", inserts[10].rows)


def test_columns_and_types_of_a_table_are_read_from_its_definition() -> None:
    assert tpch.RELATIONS["partsupp"].types()["ps_supplycost"] == "DECIMAL(15, 2)"
    assert list(tpch.RELATIONS["region"].types()) == ["r_regionkey", "r_name", "r_comment"]
