"""Pages of connectors: the script and the command shown there, run in a process of their own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.spark.faults import Fault, environment
from tests.spark.jars import spark_jars


def write_script(page: Path, folder: Path) -> None:
    (folder / "shop.sql").write_text(_blocks(page)["sql"])


def run_command(page: Path, folder: Path, package: str, fault: Fault | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command of a page with local jars in place of its Maven package, as asking Maven takes long."""
    line, named = _blocks(page)["sh"].strip().split(" --packages ")
    assert named == package
    words = [sys.executable, "-m", "freshviews.cli", *shlex.split(line)[1:], "--conf", "=".join(*spark_jars().items())]
    return subprocess.run(words, cwd=folder, env=environment(fault), capture_output=True, text=True, timeout=300)


def _blocks(page: Path) -> dict[str, str]:
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
