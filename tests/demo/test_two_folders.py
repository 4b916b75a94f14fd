"""The example of two folders in the README: its commands print the output shown there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SECTION = re.compile(r"^## On Spark\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    section = _SECTION.search((ROOT / "README.md").read_text())
    assert section is not None
    return [(found.group(1), found.group(2)) for found in _FENCE.finditer(section.group(1))]


def run(folder: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Commands of a shell that finds ``freshviews``."""
    program = folder / "bin" / "freshviews"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m freshviews.cli \"$@\"\n")
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    command = ["sh", "-e", "-c", commands]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_error_that_the_readme_shows_is_printed(tmp_path: Path) -> None:
    found = blocks()
    script = next(text for language, text in found if language == "sql")
    shown = next(text for language, text in found if language == "text" and "unknown column" in text)
    (tmp_path / "in" / "orders").mkdir(parents=True)
    (tmp_path / "in" / "items").mkdir()
    (tmp_path / "shop.sql").write_text(script.replace("SUM(qty)", "SUM(qyt)"))
    done = run(tmp_path, "freshviews check shop.sql")
    assert done.returncode == 1
    assert [line.rstrip() for line in done.stderr.splitlines()] == [line.rstrip() for line in shown.splitlines()]


@pytest.mark.spark
@pytest.mark.full
def test_the_readme_example_of_two_folders_prints_the_output_shown(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    found = blocks()
    (install, first, second) = (text for language, text in found if language == "sh")
    shown = [text for language, text in found if language == "text"]
    (tmp_path / "shop.sql").write_text(next(text for language, text in found if language == "sql"))
    folders = [line for line in install.splitlines() if line.startswith("mkdir")]
    for commands, printed in ((first, shown[0]), (second, shown[1])):
        done = run(tmp_path, "\n".join([*folders, commands]))
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        assert lines[-len(printed.splitlines()) :] == printed.splitlines()
