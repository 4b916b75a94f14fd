"""The four tiers of tests, and the sizes of a run.

``FRESHVIEWS_TESTS`` names the tier:

- ``quick`` is ``make test``: every room, with few random examples and a diagonal of the tables of cases, and of each
  file no more tests than take ``SHARE_OF_A_FILE`` seconds from an empty cache (tests/seconds.json).
- ``change`` is ``make test-change``, which .ci/run runs: every test function, with a tenth of the random examples; not
  every case compiled, each case of a table of cases in one way of several and under a third of the strategies, in turn,
  and of each file no more cases than take ``SHARE_OF_A_FILE`` seconds. .ci/run also runs make fuzz and make states,
  which draw new cases.
- ``full`` is ``make test-all`` and pytest without the variable: every test at full size.
- ``fuzz`` is ``make fuzz``: the random tests alone, from a new seed.

``FRESHVIEWS_SEED`` is the seed of a fuzz run. ``FRESHVIEWS_FUZZ_SHARE`` divides its size. The marks are described in
pyproject.toml; tests/conftest.py acts on them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SHARE_OF_A_FILE = {"quick": 0.4, "change": 4.0}
"""By tier, seconds for the tests of a file in a job: for one test at least, and in the change tier for one case of each
test function at least."""
SLOWEST = 3.5
"""Seconds per test, on average over its file, above which the quick tier leaves a file out."""
BUDGET = {"quick": {"plain": 60.0, "compiled": 80.0}, "change": {"plain": 480.0, "compiled": 3200.0}}
"""By tier and job, most seconds of each of two processes. With set-up, imports, Spark's start, and kernels that all
tests compile first, the quick tier takes eight minutes, and .ci/run 45."""
SECONDS = json.loads((Path(__file__).parent / "seconds.json").read_text())
"""By tier, job and file, the average seconds of a test from an empty cache, which ``pytest --measure`` writes. Tests of
other files take ``USUAL`` seconds."""
USUAL = 0.02

TIER = os.environ.get("FRESHVIEWS_TESTS", "full")
QUICK, CHANGE, FUZZ = TIER == "quick", TIER == "change", TIER == "fuzz"
SEED = int(os.environ.get("FRESHVIEWS_SEED", "0"))
_SHARE = int(os.environ.get("FRESHVIEWS_FUZZ_SHARE", "1"))

LONG = 60
"""Seconds above which a test needs the mark ``long`` with its reason."""
_SHARE_OF_A_RUN = 10
"""``make test`` and ``make test-change`` draw a tenth of the random examples."""


def compiled(every: int) -> int:
    """The tier compiles one of this many tests of a file with the mark ``compiled(every)``; 0: none.

    ``change`` compiles as many as ``quick``, or one in forty if that compiles none.
    """
    return {"quick": every, "change": every or 40}.get(TIER, 1)


if TIER not in ("quick", "change", "full", "fuzz"):
    raise ValueError(f"FRESHVIEWS_TESTS is {TIER!r}; it must be quick, change, full or fuzz")


def examples(full: int) -> int:
    """Random examples of a test that draws ``full`` of them in the full tier."""
    share = {"quick": _SHARE_OF_A_RUN, "change": _SHARE_OF_A_RUN, "full": 1, "fuzz": _SHARE}[TIER]
    return max(1, full // share)


def in_turn(values: Sequence[T], number: int) -> Sequence[T]:
    """The values that case ``number`` of a table of cases runs with: one of them in ``make test-change``, else all."""
    return [values[number % len(values)]] if CHANGE else values


def some(values: Iterable[T]) -> Sequence[T]:
    """A tenth of the questions that Spark answered when they were recorded, in ``make test`` and ``make test-change``;
    else all."""
    every = 1 if TIER in ("full", "fuzz") else _SHARE_OF_A_RUN
    return list(values)[::every]


def seeds(full: int) -> range:
    """Seeds of a test that has ``full`` of them in the full tier: 0, 1, ..., or new ones in a fuzz run."""
    first = SEED * 2**16 if FUZZ else 0
    return range(first, first + examples(full))

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for the Java of tests, which runs for seconds: it compiles less, and takes half of the time."""
