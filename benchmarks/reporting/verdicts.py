"""Cases in which others are faster than freshviews, in which freshviews refuses a query, or in which answers differ."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring.machine import median
from benchmarks.measuring.strategies import PLANNED, is_peer
from benchmarks.reporting.figures import cases_of, noise, number, quantity, ratio, title_of, unit_of, values_of
from benchmarks.running.results import Measured

Lead = tuple[float, str, str]
"""The ratio of speeds, the title of the case, and the faster strategy."""


MOST = 3
"""Maximum number of cases named in a line of the table of leads."""


def leads(measured: Sequence[Measured], *, peers: bool) -> list[Lead]:
    """Cases in which a peer, or else a strategy of our own, is faster than the planner's choice by more than noise.

    Measurements that were cut off do not count: they did only the cheaper part of the work. The largest lead is first.
    """
    found = []
    for (workload, case), strategies in cases_of(measured).items():
        ours = values_of(strategies.get(PLANNED, []))
        for strategy, taken in strategies.items():
            values = values_of(taken)
            if strategy == PLANNED or is_peer(strategy) != peers or not ours or not values:
                continue
            if any("cut" in one for one in taken):
                continue
            times = 1 / ratio(ours, values, unit_of(workload))
            if times - 1 > noise(ours, values):
                found.append((times, title_of(workload, case), strategy))
    return sorted(found, key=lambda lead: -lead[0])


def refused(measured: Sequence[Measured]) -> list[tuple[str, str]]:
    """Titles of the cases that freshviews refuses, with its message."""
    return list(
        dict.fromkeys(
            (title_of(one["workload"], one["case"]), str(one["refused"]))
            for one in measured
            if "refused" in one and not is_peer(one["strategy"])
        )
    )


def ahead(measured: Sequence[Measured]) -> str:
    """Lists in Markdown: faster peers, faster strategies of our own, refused views, answers that differ."""
    lines = ["Peers that are faster:", "", *(_listed(leads(measured, peers=True)) or ["- none"])]
    own = leads(measured, peers=False)
    if own:
        words = "Strategies of freshviews that are faster than the one measured as freshviews:"
        lines += ["", words, "", *_listed(own)]
    messages = refused(measured)
    if messages:
        lines += ["", "Views that freshviews refused, and its message:", ""]
        lines += [f"- {title}: `{message}`" for title, message in messages]
        alone = _alone(measured)
        if alone:
            lines += ["", "Peers with a figure where freshviews has none:", "", *alone]
    wrong = dict.fromkeys(f"- {one['wrong']}" for one in measured if "wrong" in one)
    if wrong:
        lines += ["", "Answers that differ, so that their times do not count:", "", *wrong]
    return "\n".join(lines)


def _listed(found: Sequence[Lead]) -> list[str]:
    return [f"- {title}: {strategy}, {number(times)} times as fast as freshviews" for times, title, strategy in found]


def _alone(measured: Sequence[Measured]) -> list[str]:
    return [
        f"- {title_of(workload, case)}: {strategy}, {quantity(median(values_of(taken)), unit_of(workload))}"
        for (workload, case), strategies in cases_of(measured).items()
        if not values_of(strategies.get(PLANNED, []))
        for strategy, taken in strategies.items()
        if is_peer(strategy) and values_of(taken)
    ]


def lead_table(parts: dict[str, tuple[str, Sequence[Measured]]]) -> str:
    """A line for each part and peer that is faster in some case, with its largest leads.

    ``parts`` has title and measurements by group.
    """
    lines = ["| part | ahead | where | times as fast as freshviews |", "| --- | --- | --- | --- |"]
    for group, (title, measured) in parts.items():
        by_peer: dict[str, list[Lead]] = {}
        for lead in leads(measured, peers=True):
            by_peer.setdefault(lead[2], []).append(lead)
        for peer, found in by_peer.items():
            times = [lead[0] for lead in found]
            where = "; ".join(lead[1] for lead in found[:MOST])
            where += f"; and {len(found) - MOST} more" if len(found) > MOST else ""
            span = number(times[0]) if len(times) == 1 else f"{number(times[-1])} to {number(times[0])}"
            lines.append(f"| [{title}](benchmarks/{group}.md) | {peer} | {where} | {span} |")
    return "\n".join(lines)
