"""Counts over all runs of a checkpoint, in the file ``runs``: how often it was started, and what its sinks refused.

A count that cannot be written is lost: no run fails for it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from freshviews.store.files import write_whole


@dataclass(frozen=True)
class Runs:
    """``starts``: runs that began; ``failures``: versions that the sink of a view refused, by view."""

    starts: int = 0
    failures: dict[str, int] = field(default_factory=dict)


def runs_of(root: Path) -> Runs:
    """The counts of a checkpoint; zeros if there are none that can be read."""
    try:
        found = json.loads((root / "runs").read_text())
        return Runs(int(found["starts"]), {str(view): int(count) for view, count in found["failures"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Runs()


def note_start(root: Path) -> None:
    """Count a start. The caller holds the checkpoint's lock."""
    before = runs_of(root)
    _write(root, replace(before, starts=before.starts + 1))


def note_failure(root: Path, view: str) -> None:
    """Count a version that the sink of a view refused. The caller holds the checkpoint's lock."""
    before = runs_of(root)
    _write(root, replace(before, failures={**before.failures, view: before.failures.get(view, 0) + 1}))


def _write(root: Path, runs: Runs) -> None:
    with suppress(OSError):
        write_whole(root / "runs", json.dumps(asdict(runs)).encode())
