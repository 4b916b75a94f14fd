"""``python -m tests TIER``: the two jobs of a tier, one after the other, each over several processes.

The first job runs the tests with the mark ``plain_python`` as plain Python, the second all others with compiled code.
Both always run; the exit code is 1 if either failed. Options after the tier go to both jobs of pytest. The fuzz tier
has the first job alone.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(tier: str, options: list[str]) -> int:
    seed = "0"
    if tier == "fuzz":
        seed = os.environ.get("FRESHVIEWS_SEED") or str(random.SystemRandom().randrange(2**31))
        print(f"seed {seed}; the same run again: make fuzz SEED={seed}")
    # The order of sets of strings is fixed by the seed, too.
    environment = os.environ | {"FRESHVIEWS_TESTS": tier, "FRESHVIEWS_SEED": seed, "PYTHONHASHSEED": seed}
    print(f"{tier}: tests in plain Python", flush=True)
    begun = time.monotonic()
    plain = _pytest(environment | {"FRESHVIEWS_PURE_PYTHON": "1"}, options)
    parts = f"{os.environ.get('FRESHVIEWS_PARTS', '')}tests in plain Python {time.monotonic() - begun:.0f}"
    if tier == "fuzz":
        return plain
    print(f"{tier}: tests with compiled code", flush=True)
    told = {"FRESHVIEWS_FAILED_BEFORE": "1" if plain else "", "FRESHVIEWS_PARTS": parts}
    compiled = _pytest(environment | told, options)
    return int(plain != 0 or compiled != 0)


def _pytest(environment: dict[str, str], options: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
