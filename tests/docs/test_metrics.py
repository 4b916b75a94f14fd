"""docs/metrics.md lists every metric with its type, labels and unit, and every phase."""

from __future__ import annotations

import json
import re
from pathlib import Path

from freshviews.cli.metrics import METRICS
from freshviews.spark.phases import PHASES

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def rows(title: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_metric_is_listed_with_its_type_and_labels() -> None:
    expected = [
        [f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.unit, one.text]
        for one in METRICS
    ]
    assert rows("Every metric") == expected


def test_every_phase_is_listed_on_the_metrics_page() -> None:
    assert rows("Phases") == [[f"`{name}`", text] for name, text in PHASES.items()]


def test_the_metrics_page_lists_exactly_the_existing_metrics() -> None:
    named = set(re.findall(r"freshviews_[a-z_]+", PAGE.read_text()))
    assert named == {metric.name for metric in METRICS}


def test_the_dashboard_shows_exactly_the_existing_metrics() -> None:
    found = json.loads(DASHBOARD.read_text())
    shown = [target["expr"] for panel in found["panels"] for target in panel["targets"]]
    shown += [one["expr"] for one in found["annotations"]["list"]]
    shown += [one["query"]["query"] for one in found["templating"]["list"] if one["type"] == "query"]
    named = set(re.findall(r"freshviews_[a-z_]+", " ".join(shown)))
    assert named == {metric.name for metric in METRICS}


def test_the_dashboard_groups_only_by_labels_of_its_metrics() -> None:
    labels = {metric.name: {*metric.labels, "instance", "job"} for metric in METRICS}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            (name, *others) = re.findall(r"freshviews_[a-z_]+", target["expr"]) or ["up"]
            used = set(re.findall(r"{{([a-z]+)}}", target["legendFormat"]))
            used |= set(re.findall(r"by \(([a-z]+)\)", target["expr"]))
            assert used <= labels.get(name, {"instance", "job"}), (panel["title"], others)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for at in (panel["gridPos"] for panel in panels):
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not own & taken, at
        taken |= own
