"""Measurements on their way to a file: every one is written as it comes, so that a run can be gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import ROOT

FOLDER = ROOT / "benchmarks" / "results"
UNFINISHED = ROOT / "benchmarks" / "data"
"""Where runs lie that are not over, or are not whole; git knows nothing of it."""
Measured = dict[str, Any]
"""A measurement: ``group``, ``workload``, ``case``, ``strategy``, ``repetition``, and what the worker found."""
Key = tuple[str, str, str, int]


def key_of(one: Measured) -> Key:
    return (one["workload"], one["case"], one["strategy"], one["repetition"])


class Unfinished:
    """The measurements of a run that is not over, a line each; the first line says what the machine is."""

    def __init__(self, path: Path, about: dict[str, Any], *, go_on: bool) -> None:
        self.path = path
        self.about = about
        self.measured: list[Measured] = []
        if go_on and path.exists():
            first, *lines = path.read_text().splitlines()
            self.about = json.loads(first)
            self.measured = [json.loads(line) for line in lines]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(about) + "\n")

    def add(self, one: Measured) -> None:
        self.measured.append(one)
        with self.path.open("a") as file:
            file.write(json.dumps(one) + "\n")

    def finish(self, path: Path) -> Path:
        """Write the results into a file of their own, and drop the unfinished ones. Answers are not kept."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": self.about, "measured": list(self._without_answers())}, indent=1) + "\n")
        self.path.unlink()
        return path

    def _without_answers(self) -> Iterator[Measured]:
        for one in self.measured:
            yield {key: value for key, value in one.items() if key != "answers"}


def latest(names: str = "*") -> dict[str, Any] | None:
    """The results with the latest date."""
    found = sorted(FOLDER.glob(f"{names}.json"))
    return json.loads(found[-1].read_text()) if found else None
