"""Tests of a file run once more, with kernels and programs as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def assert_holds_in_plain_python(file: str, names: str = "") -> None:
    """Run the tests of a file, those whose names have one of some words (``a or b``), in a process that compiles
    nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-k", names, file],
        env=os.environ | {"FRESHVIEWS_PURE_PYTHON": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
