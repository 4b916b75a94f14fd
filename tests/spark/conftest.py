"""One Spark for all tests here, and the folders that a pipeline reads from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session for the whole run: starting one takes seconds. Two cores, so that what several tasks do is tried;
    the other settings are those of every pipeline."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    from freshviews.spark.session import start_session

    # Tests may name what is defined in them, so workers must find the tests too.
    root = str(Path(__file__).parents[2])
    source = str(Path(root) / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([root, source, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = start_session("local[2]", quiet=True)
    yield session
    session.stop()
