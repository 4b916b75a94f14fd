"""``freshviews run``, ``status`` and ``query``, as a user meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from tests.spark.shop import Shop, delivered

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "freshviews.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=200)


def test_an_error_in_the_script_is_shown_at_its_place_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("CREATE STREAMING TABLE t (a INT)\n  USING csv OPTIONS (path 'nowhere');\n")
    done = run(tmp_path, "run", "bad.sql")
    assert done.returncode == 1
    assert done.stderr.startswith("bad.sql:2:27: table t: there is no folder")
    assert "^" in done.stderr.splitlines()[2]


def test_status_before_the_first_run_says_so(tmp_path: Path) -> None:
    Shop(tmp_path)
    done = run(tmp_path, "status", "shop.sql")
    assert done.returncode == 1 and "no version yet" in done.stderr


def test_run_until_interrupted_then_status_and_query(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    with subprocess.Popen(
        [*COMMAND, "run", "shop.sql", "--json", "--master", "local[2]"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            seen = [json.loads(process.stdout.readline()), json.loads(process.stdout.readline())]
            shop.write()
            seen.append(json.loads(process.stdout.readline()))
            assert [line["version"] for line in seen] == [1, 2, 3]
            assert seen[2]["rows"]["orders"] == 20
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            assert "stopped at version 3; go on with: freshviews run shop.sql" in process.stderr.read()
        finally:
            process.kill()
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()
    found = json.loads(run(tmp_path, "status", "shop.sql", "--json").stdout)
    assert (found["version"], found["delivered"], found["running"]) == (3, 3, False)
    assert found["tables"]["orders"] == {"rows": 40, "bad": 0} and not found["error"]
    done = run(tmp_path, "query", "shop.sql", "SELECT * FROM by_part ORDER BY part LIMIT 5", "--json")
    rows = [tuple(json.loads(line).values()) for line in done.stdout.splitlines()]
    assert rows == sorted(rows) and Counter(rows) == shop.by_part()
