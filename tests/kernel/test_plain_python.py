from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from freshviews.kernel.memory.mem import PURE_PYTHON


@pytest.mark.skipif(PURE_PYTHON, reason="this is that run")
def test_the_kernels_pass_the_same_tests_as_plain_python() -> None:
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(here.parent)]
    done = subprocess.run(
        command,
        env=os.environ | {"FRESHVIEWS_PURE_PYTHON": "1"},
        cwd=here.parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
