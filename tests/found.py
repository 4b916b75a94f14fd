"""Failures that random exploration found: stored under tests/cases, replayed by every later run.

``FRESHVIEWS_CASES`` names another folder than tests/cases.

A case is a JSON file with the ``test`` (its pytest id without the seed), the ``seed``, the number of ``examples`` drawn
from it, and the ``failure`` as printed by pytest, with the smallest scenario. The seed alone replays the case; the text
is for the reader, who adds a row to a table of cases.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(os.environ.get("FRESHVIEWS_CASES", Path(__file__).parent / "cases"))


@dataclass(frozen=True)
class Found:
    """A failure of one random test."""

    test: str
    seed: int
    examples: int
    failure: str

    def store(self) -> Path:
        """Write the case to its file, named by the test and the seed."""
        digest = hashlib.sha256(self.test.encode()).hexdigest()[:8]
        path = FOLDER / f"{self.test.rpartition('::')[2].partition('[')[0]}-{digest}-{self.seed}.json"
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return path


@cache
def stored() -> tuple[Found, ...]:
    """All stored cases, in order of their files."""
    return tuple(Found(**json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json")))


def cases_of(test: str) -> Iterator[Found]:
    """The stored cases of a test."""
    return (one for one in stored() if one.test == test)
