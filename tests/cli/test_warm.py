"""``freshviews warm`` prepares a machine, also one without Spark, and a folder that other users can read."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from freshviews.cli import warm

pytestmark = pytest.mark.plain_python

WITHOUT_SPARK = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *others: None if name == "pyspark" else found(name, *others)
sys.modules["pyspark"] = None
from freshviews.cli import warm
from freshviews.cli.main import app
warm.ROWS = 60
app()
"""


def _environment(cache: Path) -> dict[str, str]:
    """Kernels run as plain Python, so nothing is compiled."""
    return {**os.environ, "FRESHVIEWS_CACHE_DIR": str(cache), "FRESHVIEWS_PURE_PYTHON": "1", "COLUMNS": "200"}


def test_the_warm_command_works_without_pyspark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SPARK, "warm", "--shared"]
    done = subprocess.run(command, env=_environment(tmp_path / "code"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (version,) = (tmp_path / "code").iterdir()
    made, spark = done.stdout.splitlines()
    assert made.startswith("0 compiled functions, 0.") and made.endswith(f" MB, are in {version}")
    assert spark == "pyspark is not installed: there are no classes of Spark to archive"
    assert done.stderr == "compiling kernels\n"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "code", version)}
    assert modes == {0o755} and any(version.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in version.iterdir()} == {0o644}


def test_a_shared_folder_can_be_read_by_all_and_written_by_its_user(tmp_path: Path) -> None:
    folder = tmp_path / "code" / "v1"
    (folder / "classes").mkdir(parents=True, mode=0o700)
    for name in ("find.code", "classes/spark.jsa"):
        (folder / name).touch(mode=0o600)
    warm.share(folder)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, folder / "classes")]
    assert modes == [0o755] * 3
    assert stat.S_IMODE((folder / "classes" / "spark.jsa").stat().st_mode) == 0o644
