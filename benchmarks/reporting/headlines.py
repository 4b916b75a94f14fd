"""The ratios that README.md shows, for each named peer."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring.machine import median
from benchmarks.measuring.strategies import PLANNED
from benchmarks.reporting.figures import cases_of, number, quantity, ratio, unit_of, values_of
from benchmarks.running.results import Measured

HEADLINES = (
    ("graph", "3-hop, Epinions", "plain Python", "paths of three edges in a window of the Epinions graph, counted"),
    ("tpch", "q3", "DuckDB", "TPC-H Q3 over all inserts, then deletes of a tenth; DuckDB recomputes"),
    ("tpch", "q3, small", "Flink", "TPC-H Q3 at a tenth of that size"),
    ("snb", "friends of friends", "Pathway", "friends of friends in a growing social network"),
    ("compiled", "triangle, batches of 1000", "differential dataflow", "triangles counted, in batches of 1,000 edges"),
    ("compiled", "q3, batches of 1000", "differential dataflow", "TPC-H Q3 kept full, in batches of 1,000 rows"),
    ("compiled", "q3, batches of 1000", "DBSP", "the same"),
    ("compiled", "triangle, batches of 1000", "C++", "triangles counted by a program written by hand for this query"),
    ("compiled", "q3, batches of 1000", "C++", "TPC-H Q3, by hand"),
    ("compiled", "2-hop, batches of 1000", "C++", "paths of two edges counted, by hand over numbered nodes"),
    ("graph", "triangle, skew 2.5 half, batches of 1", "plain Python", "triangles counted, in batches of one row"),
)
"""Workload, case, peer, and the words for the case. In the last four cases freshviews is slower."""


def headlines(measured: Sequence[Measured]) -> str:
    """The table in Markdown. Raises KeyError if a case or a peer was not measured."""
    cases = cases_of(measured)
    lines = ["| workload | freshviews | peer | freshviews is |", "| --- | --- | --- | --- |"]
    for workload, case, peer, words in HEADLINES:
        strategies = cases[workload, case]
        ours, theirs, unit = values_of(strategies[PLANNED]), values_of(strategies[peer]), unit_of(workload)
        times = ratio(ours, theirs, unit)
        verdict = f"**{number(times)} times as fast**" if times >= 1 else f"{number(1 / times)} times as slow"
        rates = [quantity(median(values), unit) for values in (ours, theirs)]
        lines.append(f"| {words} | {rates[0]} | {peer}, {rates[1]} | {verdict} |")
    return "\n".join(lines)
