"""``freshviews doctor`` says what is there and what is missing, and ends with 1 if something does not work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import freshviews as fv
from freshviews import doctor
from freshviews.cli.main import app
from freshviews.doctor import Requirement, fits, packages, requirements

pytestmark = pytest.mark.plain_python

METADATA = [
    "numpy>=1.26",
    "sqlglot<31,>=30.26",
    'polars>=1; extra == "polars"',
    "pyspark<4.2,>=4.1; extra == 'spark'",
    'protobuf>=5; extra == "spark"',
    'server[all]>=2; sys_platform == "linux"',
]


def run() -> Result:
    return CliRunner().invoke(app, ["doctor"])


def states(needed: list[Requirement], **installed: str) -> list[tuple[str, str]]:
    return [(one.state, one.text) for one in packages(needed, installed)]


def test_the_doctor_command_finds_no_fault_on_this_machine() -> None:
    done = run()
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[1].startswith(f"ok       freshviews {fv.__version__} at ")
    assert any(line.startswith("ok       compiled code in ") for line in lines)
    assert lines[-1] == "ok       a view was made, changed and read"


def test_the_doctor_command_reads_requirements_from_package_metadata() -> None:
    found = requirements(METADATA)
    assert [(one.name, one.extra) for one in found] == [
        ("numpy", ""), ("sqlglot", ""), ("polars", "polars"), ("pyspark", "spark"), ("protobuf", "spark"),
    ]  # fmt: skip
    assert found[1].bounds == (("<", "31"), (">=", "30.26"))


@pytest.mark.parametrize(
    "version, fit", [("30.26", True), ("30.26.1", True), ("30.9", False), ("31", False), ("31.0.0", False)]
)
def test_versions_of_packages_are_compared_by_number(version: str, fit: bool) -> None:
    assert fits(version, (("<", "31"), (">=", "30.26"))) is fit


def test_the_doctor_command_prints_how_to_install_missing_packages() -> None:
    needed = requirements(METADATA)
    assert states(needed, numpy="2.0", sqlglot="30.26", polars="1.1") == [
        ("ok", "packages: numpy 2.0, sqlglot 30.26"),
        ("ok", "polars, for to_polars: polars 1.1"),
        ("missing", "pyspark, for pipelines on Spark (freshviews run), and freshviews query --spark: "
         "pip install 'freshviews[spark]'"),
    ]  # fmt: skip
    assert states(needed, numpy="1.2", pyspark="4.3") == [
        ("fault", "numpy 1.2 is installed, and >=1.26 is expected: pip install 'numpy>=1.26'"),
        ("fault", "sqlglot is needed, and not installed: pip install 'sqlglot<31,>=30.26'"),
        ("missing", "polars, for to_polars: pip install 'freshviews[polars]'"),
        ("fault", "protobuf is needed, and not installed: pip install 'freshviews[spark]'"),
        ("note", "pyspark 4.3 is installed, and <4.2,>=4.1 is expected: pip install 'freshviews[spark]'"),
    ]


def test_the_doctor_command_reports_a_failing_check_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(fv, "Database", broken)
    done = run()
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "fault    view: RuntimeError: the disk is on fire"


def test_the_doctor_command_reports_a_wrong_java_as_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", "/no/java")
    done = run()
    assert done.exit_code == 1
    (line,) = [line for line in done.stdout.splitlines() if "Java" in line]
    assert line.startswith("fault    JAVA_HOME is /no/java, ") and "install Java 17 or 21" in line


def test_the_doctor_command_reports_a_too_new_python_as_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LAST", (3, 10))
    found = next(doctor.report())
    assert found.state == "fault" and found.text.endswith("install Python 3.11, 3.12 or 3.13, and freshviews in an "
                                                          "environment of it")  # fmt: skip


def test_the_doctor_command_reports_a_writable_cache_folder(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    environment = {**os.environ, "FRESHVIEWS_CACHE_DIR": str(tmp_path / "open"), "FRESHVIEWS_PURE_PYTHON": "1"}
    command = [sys.executable, "-m", "freshviews", "doctor"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "note     compiled code is kept in " in done.stdout and "other users can write to" in done.stdout
    assert "note     FRESHVIEWS_PURE_PYTHON=1 in the environment: nothing is compiled" in done.stdout


def test_running_the_package_as_a_module_prints_its_version() -> None:
    command = [sys.executable, "-m", "freshviews", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"freshviews {fv.__version__}\n")
