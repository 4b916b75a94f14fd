"""Tests with kernels and generated code as plain Python, in processes of their own, each with a share of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.agreement.profile import SHARES

TIME_LIMIT = 1800
ROOT = Path(__file__).parents[2]


def run_as_plain_python(tests: str) -> None:
    """Run the tests of a file, named from the root, all shares at once. Fails with what the first that failed said."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", tests]
    running = []
    for share in range(SHARES):
        env = os.environ | {"FRESHVIEWS_PURE_PYTHON": "1", "FRESHVIEWS_AGREEMENT_SHARE": str(share)}
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        running.append(subprocess.Popen(command, cwd=ROOT, env=env, text=True, **both))
    try:
        told = [process.communicate(timeout=TIME_LIMIT)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for process, text in zip(running, told, strict=True):
        assert process.returncode == 0, text[-20_000:]
