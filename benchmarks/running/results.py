"""Results on disk. Each measurement is written at once, so that a stopped run can be continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import ROOT

FOLDER = ROOT / "benchmarks" / "results"
UNFINISHED = ROOT / "benchmarks" / "data"
"""The folder of unfinished and partial runs; git ignores it."""
Measured = dict[str, Any]
"""A measurement: ``group``, ``workload``, ``case``, ``strategy``, ``repetition``, and the worker's result."""
Key = tuple[str, str, str, int]


def key_of(one: Measured) -> Key:
    return (one["workload"], one["case"], one["strategy"], one["repetition"])


class Unfinished:
    """The measurements of an unfinished run, one per line, after a line that describes the machine."""

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
        """Write the results to a file, without answers, and delete the file of the unfinished run."""
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
