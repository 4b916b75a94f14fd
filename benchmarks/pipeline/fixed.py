"""The fixed cost of a micro-batch of 1,000 changes, with little and with much state."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.pipeline.run import after_warming, folder, scaled, seconds_of, session
from benchmarks.pipeline.state import bytes_of, filled, settle

TITLE = "pipeline, 1,000 rows"
CASES = ("20 MB of state", "2 GB of state")
STRATEGIES = ("freshviews",)
UNIT = "s"
TARGETS = dict.fromkeys(CASES, 0.5)
LIKE = {"2 GB of state": ("20 MB of state", 1.2)}
"""Cases whose time must be at most a factor times that of another case."""

BYTES = {"20 MB of state": scaled(20_000_000), "2 GB of state": scaled(2_000_000_000)}
BATCHES = 40
WARMING = 10


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Seconds of the median micro-batch, and of the longest."""
    with folder() as place, session() as spark:
        with filled(spark, place / "shop", BYTES[case]) as (shop, running):
            settle()
            before = running.versions[-1].manifest
            for _ in range(BATCHES):
                shop.write_small()
            # Each file is a micro-batch of its own.
            last = running.wait_for_batch(before.batch + BATCHES)
            versions = [version for version in running.versions if version.manifest.batch > before.batch]
        shop.check()
        seconds = after_warming(seconds_of(versions), WARMING)
        made = [version.manifest.seconds for version in versions]
        return {
            "value": float(np.median(seconds)),
            "most": max(seconds),
            "made": float(np.median(made)),
            "bytes": bytes_of(last),
            "seconds": seconds,
            "note": f"{bytes_of(before) / 1e6:,.0f} MB; {np.median(made):.2f} s of it until the manifest",
        }
