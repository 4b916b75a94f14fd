"""Importing the package imports few modules, and none that only some programs need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numba", "numpy", "pyarrow", "sqlglot", "pandas", "pyspark"}


@pytest.mark.parametrize(
    ("script", "unwanted"),
    [
        ("import freshviews; freshviews.SqlError", HEAVY),
        ("import freshviews.cli.main", HEAVY),
        # Numba imports scipy by itself if it is installed.
        ("import freshviews; freshviews.Database().close()", {"pandas", "pyspark", "sklearn", "matplotlib"}),
    ],
)
def test_imports_and_commands_load_only_modules_that_they_need(script: str, unwanted: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{script}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not unwanted.intersection(done.stdout.split())


def test_subpackages_need_no_separate_import() -> None:
    names = ("dbapi.paramstyle", "learn.LinearRegression", "sql.parse_script", "stream.__name__")
    script = f"import freshviews as fv; {'; '.join(f'fv.{name}' for name in names)}"
    subprocess.run([sys.executable, "-c", script], check=True)
