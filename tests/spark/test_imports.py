"""Everything except the pipeline works without pyspark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT = """
import sys
sys.modules["pyspark"] = None
import freshviews, freshviews.spark, freshviews.cli.main, freshviews.spark.script, freshviews.spark.reading.contents
import freshviews.spark.worker.worker, freshviews.spark.state.checkpoint
try:
    freshviews.spark.Pipeline
except ImportError:
    print("as it should be")
"""


def test_the_package_and_its_commands_work_without_pyspark() -> None:
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", WITHOUT], env={"PYTHONPATH": source}, capture_output=True, text=True)
    assert done.stdout == "as it should be\n", done.stderr
