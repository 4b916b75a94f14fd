"""Runs a script in two processes, one after the other, that share an initially empty cache of compiled code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def printed_by_two(source: str, folder: Path) -> list[list[str]]:
    """The words that each process prints. ``source`` is the script; script and cache go into ``folder``."""
    script = folder / "script.py"
    script.write_text(source)
    env = os.environ | {"FRESHVIEWS_CACHE_DIR": str(folder / "cache")}
    run = [sys.executable, str(script)]
    return [subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
