"""Killed at any step of a version, a pipeline goes on: views exact, and every change delivered once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
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


KILLS = int(os.environ.get("KILLS", "4"))
"""Random kills; ``KILLS=100 pytest tests/spark/test_kills.py -k random`` is the long form."""


def descendants(process: int) -> list[int]:
    """Processes below one: the JVM, and the Python workers below that."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = list(parents.get(process, []))
    for one in found:
        found += parents.get(one, [])
    return found


def test_killed_at_random_moments_it_goes_on_exactly(tmp_path: Path) -> None:
    """The driver, the JVM or a Python worker, while input keeps coming."""
    shop = Shop(tmp_path)
    chance = random.Random(int(os.environ.get("KILLS_SEED", "7")))
    for _ in range(KILLS):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--master", "local[2]", "--json"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=quiet, text=True
        ) as process:
            assert process.stdout is not None
            shop.write()
            process.stdout.readline()
            until = time.time() + chance.uniform(0, 4)
            while time.time() < until and process.poll() is None:
                shop.write(10, 30)
                time.sleep(0.2)
            victim = chance.choice([process.pid, *descendants(process.pid)])
            os.kill(victim, signal.SIGKILL)
            if victim != process.pid:
                time.sleep(chance.uniform(0, 2))
            process.kill()
    done = run(tmp_path, None)
    assert done.returncode == 0, done.stderr
    check(tmp_path, shop)
