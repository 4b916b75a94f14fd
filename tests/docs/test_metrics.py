"""docs/metrics.md lists every metric that is served, with its type, labels and unit, and every phase."""

from __future__ import annotations

import re
from pathlib import Path

from freshviews.cli.metrics import METRICS
from freshviews.spark.phases import PHASES

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def rows(title: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_metric_is_listed_as_it_is_served() -> None:
    expected = [
        [f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.unit, one.text]
        for one in METRICS
    ]
    assert rows("Every metric") == expected


def test_every_phase_is_listed() -> None:
    assert rows("Phases") == [[f"`{name}`", text] for name, text in PHASES.items()]


def test_queries_name_metrics_that_exist() -> None:
    named = set(re.findall(r"freshviews_[a-z_]+", PAGE.read_text()))
    assert named == {metric.name for metric in METRICS}
