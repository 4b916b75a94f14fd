"""A script that is run twice, by processes of their own, over one cache of compiled code that is empty at first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def told_by_two(source: str, folder: Path) -> list[list[str]]:
    """The words that each of the two prints."""
    script = folder / "script.py"
    script.write_text(source)
    env = os.environ | {"FRESHVIEWS_CACHE_DIR": str(folder / "cache")}
    run = [sys.executable, str(script)]
    return [subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
