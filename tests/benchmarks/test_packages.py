"""The packages of the benchmarks say what they are for, and the catalogue names modules that exist."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from benchmarks.measuring.catalogue import WORKLOADS, module_of

ROOT = Path(__file__).parents[2] / "benchmarks"
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
ORDER = ("measuring", "workloads", "timing", "counting", "pipeline", "peers", "running", "reporting")
"""Each may import the earlier ones."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_benchmark_package_has_a_docstring_and_lists_its_modules(package: str) -> None:
    found = importlib.import_module(f"benchmarks.{package}")
    assert found.__doc__
    assert list(found.__all__) == sorted(path.stem for path in (ROOT / package).glob("*.py") if path.stem != "__init__")


def test_a_benchmark_package_imports_only_packages_before_it() -> None:
    assert set(ORDER) == set(PACKAGES)
    for path in ROOT.glob("*/*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
                other = (node.module or "").split(".")[1]
                assert ORDER.index(other) <= ORDER.index(path.parent.name), f"{path} imports {node.module}"


def test_every_workload_has_a_title_and_a_unit() -> None:
    for workload in WORKLOADS:
        assert module_of(workload).TITLE and module_of(workload).UNIT, workload
