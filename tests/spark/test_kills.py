"""Killed at any step of a version, a pipeline goes on: views exact, and every change delivered once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.reading import contents, latest
from freshviews.spark.steps import DRIVER, WORKER
from tests.spark.shop import Shop, delivered

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def run(folder: Path, step: str | None) -> subprocess.CompletedProcess[str]:
    """The pipeline in a process of its own, which is killed at a step, or in which a worker is."""
    environment = dict(os.environ)
    places = [str(ROOT / "src"), *([str(Path(__file__).parent / "killing")] if step else [])]
    environment["PYTHONPATH"] = os.pathsep.join(places)
    if step is not None:
        environment |= {"KILL_AT": step, "KILLED_FLAG": str(folder / f"killed at {step}")}
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--once", "--master", "local[2]"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def check(folder: Path, shop: Shop) -> None:
    expected = shop.by_part()
    root = folder / "shop.checkpoint"
    rows = contents(root, latest(root), "by_part").to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == expected
    assert delivered(folder / "out" / "by_part") == expected
    total = json.loads((folder / "out" / "all_of_it" / "contents.json").read_text())
    assert total == {"parts": len(expected), "qty": sum(qty for _, qty, _ in expected)}


def test_killed_at_every_step_it_goes_on_exactly(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    done = run(tmp_path, None)
    assert done.returncode == 0, done.stderr
    for step in (*DRIVER, *WORKER):
        # New input for every kill: what one run leaves behind, the next has to make good.
        shop.write()
        done = run(tmp_path, step)
        assert (tmp_path / f"killed at {step}").exists(), (step, done.stdout, done.stderr)
        assert done.returncode == (-9 if step in DRIVER else 1), (step, done.stderr)
    done = run(tmp_path, None)
    assert done.returncode == 0, done.stderr
    check(tmp_path, shop)
    # A run with nothing new makes no version and delivers nothing.
    version = latest(tmp_path / "shop.checkpoint").version
    assert run(tmp_path, None).returncode == 0
    assert latest(tmp_path / "shop.checkpoint").version == version
    check(tmp_path, shop)
