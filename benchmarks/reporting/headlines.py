"""The ratios that README.md shows, one for each named peer."""

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
    ("graph", "triangle, skew 2.5 half, batches of 1", "plain Python", "triangles counted, in batches of one row"),
)
"""Workload, case, peer, and the words for the case. The last one is a case that freshviews loses."""


def headlines(measured: Sequence[Measured]) -> str:
    """The table in Markdown. Raises KeyError where a case or a peer was not measured."""
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
