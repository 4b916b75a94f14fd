"""The pages of docs/ and the table of README.md, generated from the latest results.

A page has hand-written text, and generated text between pairs of marks. ``write_pages`` replaces the generated text,
and draws the charts if matplotlib is installed. Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring.environments import NAMES
from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.programs import BUILT
from benchmarks.reporting.comparison import draw_overview, draw_part, middle, summary_of
from benchmarks.reporting.curves import draw_curves
from benchmarks.reporting.figures import cases_of, number
from benchmarks.reporting.headlines import headlines
from benchmarks.reporting.tables import states, table
from benchmarks.reporting.verdicts import ahead, lead_table, refused
from benchmarks.running.results import Measured, latest
from benchmarks.running.schedule import APART, GROUPS

MARK = "<!-- measured, {}: {} -->"
BESIDE_OWN = ("eps", "windows", "trie")
"""Parts whose chart shows the strategies of freshviews and the peers."""
BY_SIZE = ("batches", "compiled")
"""Parts whose chart has lines over a size instead of dots."""
OVERVIEW = "overview.svg"


def parts() -> dict[str, tuple[dict[str, Any], list[Measured]]]:
    """By group, in the order of the pages: the machine and the measurements of the latest results."""
    whole = latest("????-??-??")
    found = {}
    for group in GROUPS:
        own = latest(f"????-??-??-{group}")
        several = [one for one in (own, None if group in APART else whole) if one is not None]
        for results in sorted(several, key=lambda one: str(one["machine"]["date"])):
            measured = [one for one in results["measured"] if one.get("group") == group]
            if measured:
                found[group] = (results["machine"], measured)
    shown = {}
    for group, (machine, measured) in found.items():
        gone = {(one["workload"], one["case"]) for one in measured if "refused" in one} & _later_than(group, found)
        shown[group] = (machine, [one for one in measured if (one["workload"], one["case"]) not in gone])
    return shown


def _later_than(group: str, found: dict[str, tuple[dict[str, Any], list[Measured]]]) -> set[tuple[str, str]]:
    """The cases of parts with a later date. Refusals of an earlier date are shown there only."""
    date = found[group][0]["date"]
    later = [measured for machine, measured in found.values() if machine["date"] > date]
    return {(one["workload"], one["case"]) for measured in later for one in measured}


def write_pages(root: Path = ROOT) -> list[Path]:
    """Generate README.md, docs/benchmarks.md and docs/benchmarks/*.md below a folder; returns the written files."""
    docs, found = root / "docs", parts()
    written = []
    for group, (machine, measured) in found.items():
        page = docs / "benchmarks" / f"{group}.md"
        drawn = charts_of(group, measured, docs / "plots") if can_draw() else pictures_in(page)
        fill(page, f"{group}, charts", charts_text(measured, drawn))
        fill(page, group, figures_text(machine, measured))
        written.append(page)
    if can_draw():
        draw_overview({GROUPS[group]: measured for group, (_, measured) in found.items()}, docs / "plots" / OVERVIEW)
    page = docs / "benchmarks.md"
    titled = {group: (GROUPS[group], measured) for group, (_, measured) in found.items()}
    fill(page, "ahead", _ahead_text(titled))
    fill(page, "parts", _parts_text(titled))
    fill(root / "README.md", "headlines", headlines([one for _, measured in found.values() for one in measured]))
    return [*written, page, root / "README.md"]


def can_draw() -> bool:
    """True if matplotlib is installed; without it, pages keep their links to existing pictures."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def charts_of(group: str, measured: Sequence[Measured], folder: Path) -> list[tuple[str, str]]:
    """Draw the charts of a part, growth first; their names and titles."""
    drawn = [(file.name, title) for file, title in draw_curves(group, measured, folder)]
    if group not in BY_SIZE and draw_part(measured, folder / f"{group}.svg", own=group in BESIDE_OWN):
        drawn.append((f"{group}.svg", f"{GROUPS[group]}: time of others where freshviews takes 1"))
    return drawn


def pictures_in(page: Path) -> list[tuple[str, str]]:
    """Names and titles of the charts that a page links."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("![")]
    return [(line.rpartition("/")[2].rstrip(")"), line[2:].partition("](")[0]) for line in lines]


def charts_text(measured: Sequence[Measured], drawn: Sequence[tuple[str, str]]) -> str:
    """The generated text at the beginning of a page of a part: charts, and cases in which others are faster."""
    texts = [f"![{title}](../plots/{name})" for name, title in drawn]
    return "\n\n".join([*texts, "## Where others are ahead", ahead(measured)])


def figures_text(machine: dict[str, Any], measured: Sequence[Measured]) -> str:
    """The generated text at the end of a page of a part: the machine, and all figures."""
    texts = ["## Figures", describe(machine), table(measured)]
    stored = states(measured)
    if stored:
        texts += ["State, the most at any point of comparison:", stored]
    return "\n\n".join(texts)


def _ahead_text(titled: dict[str, tuple[str, list[Measured]]]) -> str:
    texts = [lead_table(titled)]
    titles = dict.fromkeys(title for _, measured in titled.values() for title, _ in refused(measured))
    if titles:
        texts.append(f"When this was measured, freshviews refused these views: {'; '.join(titles)}.")
    return "\n\n".join(texts)


def _parts_text(titled: dict[str, tuple[str, list[Measured]]]) -> str:
    lines = [
        "| part | cases | time where freshviews takes 1, geometric mean of the cases of each peer |",
        "| --- | --- | --- |",
    ]
    for group, (title, measured) in titled.items():
        beside = "; ".join(f"{peer}: {number(middle(times))}" for peer, times in summary_of(measured).items())
        lines.append(f"| [{title}](benchmarks/{group}.md) | {len(cases_of(measured))} | {beside} |")
    return "\n".join(lines)


def describe(machine: dict[str, Any]) -> str:
    """The machine, the versions and the repetitions, in one paragraph."""
    names = ("python", "freshviews", "numba", "numpy", "pyarrow", "duckdb", "scikit-learn", "pyspark", *NAMES, *BUILT)
    versions = ", ".join(f"{name} {machine[name]}" for name in names if name in machine)
    load = " ".join(f"{x:g}" for x in machine["load"])
    return (
        f"Measured {machine['date']} on {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gib']} GiB, {machine['system']}; load before the run {load}; {versions}; "
        f"{machine['repetitions']} repetitions"
        + (f", each cut off after {machine['limit']:g} s." if "limit" in machine else ".")
    )


def fill(page: Path, part: str, text: str) -> None:
    """Replace the text between the two marks of a part. Raises ValueError if the page lacks a mark."""
    begin, end = MARK.format(part, "begin"), MARK.format(part, "end")
    before, rest = page.read_text().split(begin, 1)
    _, after = rest.split(end, 1)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
